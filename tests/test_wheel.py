"""The built wheel, installed alone, predicts with what ships in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_wheel_installed_alone_predicts_with_the_shipped_model(tmp_path: Path) -> None:
    def run(*command: str) -> str:
        # PYTHONPATH comes before site-packages, so the wheel's mlscale is the one that runs.
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
        finished = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("mlscale-*.whl")
    into = ("--target", str(tmp_path / "installed"))
    run("-m", "pip", "install", "--no-deps", "--no-compile", *into, str(wheel))

    home = run("-c", "import mlscale; print(mlscale.__file__)").strip()
    assert Path(home).is_relative_to(tmp_path / "installed")

    shipped = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")
    printed = json.loads(run("-m", "mlscale", "predict", *shipped, "--format", "json"))
    # From the card: one kernel, 4 x 4 x 3 configurations; at the base the factor is 1.
    assert len(printed["predictions"]) == 48
    run("-m", "mlscale", "report", *shipped, "-o", "report.html")
    assert "<style>:root {" in (tmp_path / "report.html").read_text(encoding="utf-8")

    at_base = [
        row
        for row in printed["predictions"]
        if all(row[axis] == value for axis, value in printed["base"].items())
    ]
    assert [row["time_factor"] for row in at_base] == [1.0]
