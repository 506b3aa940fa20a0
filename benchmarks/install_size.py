"""What `pip install mlscale` installs, alone and with each extra, and how it starts.

Each in a fresh environment of its own, with the versions of constraints.txt, from the index of
pip. MLSCALE_EXTRAS="tables" names other extras.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from table import Row

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = os.environ.get("MLSCALE_EXTRAS", "tables,figures,study,train")
PREDICT = ("predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")


def processor_s() -> float:
    """The processor's seconds of the processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*command: str | Path) -> str:
    """Run, and return wall and processor seconds as text."""
    started, used = time.perf_counter(), processor_s()
    subprocess.run([*map(str, command)], check=True, capture_output=True, cwd=tempfile.gettempdir())
    return f"{time.perf_counter() - started:.1f} s ({processor_s() - used:.1f} s)"


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
