"""Lines and blocks of text files in whatever encoding and with whatever ends of lines."""

from pathlib import Path

import pytest

from mlscale import InputError
from mlscale.profilers.exports import text_lines
from mlscale.profilers.exports.text_lines import TextLines

TEXT = "head\n\nk\u00e4rnel,1\n\U0001f600,2\nlast"
# By hand: what Python's own `open` makes of the same bytes, each with its number.
LINES = [(1, "head"), (2, ""), (3, "k\u00e4rnel,1"), (4, "\U0001f600,2"), (5, "last")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("above", [0, 1, 5])
def test_lines_then_blocks(
    tmp_path: Path,
    above: int,
    size: int,
    encoding: str,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`above`: how many lines are read one at a time before the blocks."""
    monkeypatch.setattr(text_lines, "BLOCK", size)
    path = tmp_path / "lines.txt"
    path.write_bytes(TEXT.replace("\n", end).encode(encoding))
    read: list[int] = []
    with path.open(encoding=encoding.removesuffix("-sig"), errors="replace") as file:
        lines = TextLines(path, file, read.append)
        first = [next(lines) for _ in range(above)]
        rest = b"".join(iter(lines.block, b""))
    assert first == LINES[:above]
    assert rest.decode() == "".join(line + "\n" for _, line in LINES[above:])
    assert lines.number == len(LINES)
    assert sum(read) == path.stat().st_size


def test_what_is_no_character_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_bytes(b"a\xe4b\n\xe2\x82\nc\xf0")
    with (tmp_path / "lines.txt").open(encoding="utf-8", errors="replace") as file:
        texts = [text for _, text in TextLines(tmp_path, file, print)]
    assert texts == ["a\ufffdb", "\ufffd", "c\ufffd"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_that_is_no_text_is_named(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "BLOCK", 8)
    path = tmp_path / "lines.txt"
    path.write_bytes(f"a{end}b{end}c{end}d\0{end}e{end}".encode())
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = TextLines(path, file, print)
        with pytest.raises(InputError, match="row 4: is not text"):
            list(lines)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("a.ncu-rep", "export .*ncu --import"),
        ("a.nsys-rep", "export .*nsys export"),
        ("a.pftrace", "profile again with --output-format csv"),
        ("a.csv", "export .*as CSV"),
    ],
)
def test_a_report_says_what_exports_it(tmp_path: Path, name: str, command: str) -> None:
    """Regression only: the commands of the tools' manuals."""
    path = tmp_path / name
    path.write_bytes(b"NVR\0\1\2")
    with path.open() as file, pytest.raises(InputError, match=f"is not text; {command}"):
        next(TextLines(path, file, lambda _: None))
