"""mlscale demo: the main job on the shipped data."""

import re
from pathlib import Path

import pytest

from mlscale.cli.main import main
from mlscale.model_file import load


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda *text, **_: printed.append(" ".join(map(str, text))))
        assert main(["demo", "-o", str(folder)]) == 0
    return folder, "\n".join(printed)


def test_demo_predicts_a_kernel_that_its_model_has_not_seen(demo: tuple[Path, str]) -> None:
    folder, text = demo
    model = load(folder / "model.mlscale")
    kernel = re.search(r"Predicted time \[ms\] of (\S+),", text)
    assert kernel is not None
    assert kernel[1] not in model.card["kernels"]
    left_out = re.search(r"left out, by random number: (.*)\.", text)
    assert left_out is not None
    assert not set(left_out[1].split(", ")) & set(model.card["applications"])


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


def test_demo_refuses_a_file_as_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("mlscale: error: ")
    assert message.count("\n") == 1
    assert "file" in message
