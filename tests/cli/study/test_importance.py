"""mlscale study importance: text, files and the picture."""

from pathlib import Path

from command import Capture, succeed
from synthetic import kernels as made


def test_text_and_files(tmp_path: Path, capsys: Capture) -> None:
    table, folder = tmp_path / "made.csv", tmp_path / "new"
    made.measurements(power=False).write(table)
    words = ("study", "importance", table, "--clusters", 4, "--seeds", 1, "--protocol", "k-fold")
    out, _ = succeed(capsys, *words, "-o", folder)
    assert "made: error of time [%], wu with raw features, 12 kernels" in out
    assert all(f"\nbusy_{law} " in out for law in made.LAWS)
    assert "\nbest 1 " in out
    assert "\nall " in out
    names = {"study.json", "importance.csv"}
    names |= {f"importance-made-time-raw.{kind}" for kind in ("png", "svg")}
    assert {file.name for file in folder.iterdir()} == names
