"""mlscale demo: an export to advice, then the main job on the shipped, simulated data."""

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import mlscale
from mlscale.cli.main import main
from mlscale.data.datasets import path
from mlscale.model.model import load

# What `find_spec` and `import` find of torch where it is not installed: nothing.
WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder

class WithoutTorch(PathFinder):
    @classmethod
    def find_spec(cls, name, *rest):
        return None if name == "torch" else PathFinder.find_spec(name, *rest)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutTorch
from mlscale.cli.main import main
sys.exit(main(["demo", "-o", sys.argv[1]]))
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["demo", "-o", str(folder)]) == 0
    return folder, printed.getvalue()


def test_demo_shows_the_advice_for_an_export_first(
    demo: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is what the command that it shows prints."""
    command = re.search(r"^\$ mlscale (advise .*)$", demo[1], re.MULTILINE)
    assert command is not None
    assert main(command[1].split()) == 0
    advice = capsys.readouterr().out
    assert advice.startswith("Set the engine clock to ")
    assert f"{command[0]}\n{advice}" in demo[1]
    assert demo[1].index(advice) < demo[1].index("Simulated data")
    assert "written by hand (not measured)" in demo[1][: demo[1].index(advice)]


def test_demo_predicts_a_kernel_that_its_model_has_not_seen(demo: tuple[Path, str]) -> None:
    folder, text = demo
    model = load(folder / "model.mlscale")
    kernel = re.search(r"Predicted time \[ms\] of (\S+),", text)
    assert kernel is not None
    assert kernel[1] not in model.card["kernels"]
    left_out = re.search(r"left out by random number: (.*)\.", text)
    assert left_out is not None
    assert not set(left_out[1].split(", ")) & set(model.card["applications"])


def test_demo_takes_the_left_out_kernel_that_depends_most_on_the_memory_clock(
    demo: tuple[Path, str],
) -> None:
    """Computed anew by a loop: mean over the other axes of time at 400 over that at 1000 MHz."""
    data = mlscale.read(path("simulated-gcn3.parquet"))
    trained = load(demo[0] / "model.mlscale").card["applications"]
    dependence = {}
    for k, kernel in enumerate(data.kernels):
        if data.applications[k] not in trained:
            slow, quick = data.time_ms[k, :, :, 0].ravel(), data.time_ms[k, :, :, 2].ravel()
            dependence[kernel] = np.prod(slow / quick) ** (1 / slow.size)
    assert f"Predicted time [ms] of {max(dependence, key=lambda k: dependence[k])}," in demo[1]


def test_demo_prints_every_configuration_and_the_base_exactly(demo: tuple[Path, str]) -> None:
    # 4 x 4 x 3 configurations from the data set's card, each as 'predicted (simulated)'.
    cells = re.findall(r"([\d.]+) \(([\d.]+)\)", demo[1])
    assert len(cells) == 48
    base_row = re.search(r"^ *16 +800 .*$", demo[1], re.MULTILINE)
    assert base_row is not None
    # At the base (memory 700 MHz, the middle column) the prediction is the measurement.
    predicted, simulated = re.findall(r"([\d.]+) \(([\d.]+)\)", base_row[0])[1]
    assert predicted == simulated


def test_demo_shows_wu_below_every_training_free_baseline(demo: tuple[Path, str]) -> None:
    errors = {
        line.split()[0]: float(line.split()[1])
        for line in demo[1].splitlines()
        if re.match(r"(no-scaling|engine-bound|core-bound|memory-bound|mean-surface|wu) ", line)
    }
    assert len(errors) == 6
    assert min(errors, key=lambda name: errors[name]) == "wu"


def test_demo_draws_a_picture(demo: tuple[Path, str]) -> None:
    picture = (demo[0] / "surface.png").read_bytes()
    # The PNG signature and the width in the IHDR chunk (PNG specification, 5.2 and 11.2.2).
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(picture[16:20], "big") > 1000


def test_demo_without_torch_says_what_it_leaves_out_and_does_the_rest(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "demo")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    first, *_ = process.stdout.splitlines()
    assert first.startswith("Not installed: torch (pip install")
    assert "leaves out training" in first
    assert "Set the engine clock to " in process.stdout
    # The one application that the shipped model was trained without (models/README.md).
    assert "left out of simulated-gcn3.mlscale: fastwalshtransform." in process.stdout
    assert re.search(r"^extra-trees +\d", process.stdout, re.MULTILINE)
    assert {file.name for file in (tmp_path / "demo").iterdir()} == {"surface.png"}


def test_demo_refuses_a_file_as_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("mlscale: error: ")
    assert message.count("\n") == 1
    assert "file" in message
