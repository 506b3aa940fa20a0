"""What `pip install mlscale` installs, alone and with each extra, and how it starts.

Each in a fresh environment of its own, with the versions of constraints.txt, from the index of
pip. MLSCALE_EXTRAS="tables" names other extras.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from table import Row
from timing import by_command

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = os.environ.get("MLSCALE_EXTRAS", "tables,figures,study,train")
PREDICT = ("predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")


def run(*command: str | Path) -> str:
    """Run, and return wall and processor seconds as text."""
    spent = by_command(*command)
    return f"{spent.wall_s:.1f} s ({spent.processor_s:.1f} s)"


def rows() -> Iterator[Row]:
    """Size on disk and seconds to install, and to predict for the first and the second time."""
    for extra in ("", *EXTRAS.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, "-m", "venv", "--without-pip", folder)
            python = Path(folder) / "bin" / "python"
            what = f"{ROOT}[{extra}]" if extra else str(ROOT)
            pins = ("-c", ROOT / "constraints.txt")
            seconds = run(
                sys.executable, "-m", "pip", "--python", python, "install", "-q", *pins, what
            )
            files = [path for path in (Path(folder) / "lib").rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in files) / 1e6
            name = f"mlscale[{extra}]" if extra else "mlscale"
            yield Row(f"pip install '{name}', wall (processor)", f"{size:.0f} MB", seconds)
            if not extra:
                for time_of in ("first", "second"):
                    started = run(python, "-m", "mlscale", *PREDICT)
                    yield Row(f"  mlscale predict, the {time_of} time", "", started)
