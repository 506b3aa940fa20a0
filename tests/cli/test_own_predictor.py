"""A model of a predictor of one's own, from the command line: its class is named, or nothing is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Capture, at_base, refuse, succeed
from synthetic import tidy

MODULE = """
from pathlib import Path

from mlscale import MeanSurface, Nearest

class Mine(MeanSurface):
    name = "mine"

class Other(Nearest):
    name = "other"

Path("imported.txt").write_text("imported")
"""


@pytest.fixture
def model(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A model of mine:Mine in the current directory, where nothing of mine.py is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    (tmp_path / "mine.py").write_text(MODULE)
    rows = tidy.rows(["a", "b", "c"])
    tidy.write_csv(tmp_path / "t.csv", rows)
    tidy.write_csv(tmp_path / "p.csv", at_base(rows))
    given = ["train", "t.csv", "--base", "mid", "--predictor", "mine:Mine"]
    succeed(capsys, *given, "-o", "m.mlscale")
    del sys.modules["mine"]
    (tmp_path / "imported.txt").unlink()
    yield tmp_path / "m.mlscale"
    sys.modules.pop("mine", None)


@pytest.mark.parametrize("command", ["predict", "advise", "report"])
class TestCommands:
    def test_with_the_class(self, capsys: Capture, model: Path, command: str) -> None:
        # The class does what mean-surface does, so it says the same.
        answers = []
        plain = model.with_name("plain.mlscale")
        succeed(
            capsys, "train", "t.csv", "--base", "mid", "--predictor", "mean-surface", "-o", plain
        )
        for given in ([model, "p.csv", "--predictor", "mine:Mine"], [plain, "p.csv"]):
            out, _ = succeed(capsys, command, *given, "-o", "out.txt")
            answers.append(out + (Path("out.txt").read_text() if command != "report" else ""))
        assert answers[0] == answers[1]

    def test_without_it_nothing_is_imported(
        self, capsys: Capture, model: Path, command: str
    ) -> None:
        message = refuse(capsys, model.parent, command, model, "p.csv", "-o", "out.txt")
        assert message.startswith(
            f"{model}: was made by the predictor 'mine:Mine', which is not part of mlscale; give "
            "its class, if you trust it, by --predictor package.module:Class"
        )
        assert "mine" not in sys.modules
        assert not Path("imported.txt").exists()

    def test_with_another_class(self, capsys: Capture, model: Path, command: str) -> None:
        sys.modules.pop("mine", None)
        before = [command, model, "p.csv", "-o", "out.txt", "--predictor"]
        Path("imported.txt").write_text("imported")
        message = refuse(capsys, model.parent, *before, "mine:Other")
        assert "was made by the predictor 'mine:Mine'" in message
