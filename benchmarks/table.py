"""One row of the benchmark table, and how it is printed."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HEADINGS = ("benchmark", "what", "mlscale", "peer", "ratio", "last version", "the peer is")
WIDTHS = (15, 46, 12, 12, 7, 21, 0)
LAST_VERSION = Path(__file__).with_name("last_version.csv")


@dataclass(frozen=True)
class Row:
    """Two figures with their unit, and what is better about ours; peer and ratio may lack."""

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    peer_is: str = ""

    @classmethod
    def beside(
        cls,
        what: str,
        ours: float,
        theirs: float,
        form: str,
        peer_is: str = "",
        ratio: str = "{:.2f}",
    ) -> Self:
        """A figure beside the peer's, of which the lower is the better one.

        form: of both, with the unit, such as '{:.2f} s'.
        """
        return cls(
            what, form.format(ours), form.format(theirs), ratio.format(theirs / ours), peer_is
        )


@dataclass
class LastVersion:
    """What each row was in the last version: the version, ours and the ratio.

    By benchmark, what it is, and the how manieth row of that benchmark that is called so.
    """

    cells: dict[tuple[str, str, str], tuple[str, ...]]

    @classmethod
    def read(cls) -> Self:
        """That of the file."""
        with LAST_VERSION.open(encoding="utf-8", newline="") as file:
            [_, *rows] = csv.reader(file)
        return cls({(name, what, n): (*rest,) for name, what, n, *rest in rows})

    def of(self, benchmark: str, rows: Sequence[Row]) -> str:
        """The version, ours and the ratio of the last of these rows; '-' if it did not have it."""
        version, ours, ratio = self.cells.get(_key(benchmark, rows), ("", "-", ""))
        return f"{version} {ours}{f', {ratio}' if ratio else ''}".strip()

    def renew(self, benchmark: str, rows: Sequence[Row]) -> None:
        """Put a benchmark's rows in place of those of the last version, in the file too."""
        from mlscale import __version__

        self.cells = {key: cells for key, cells in self.cells.items() if key[0] != benchmark}
        for n, row in enumerate(rows, start=1):
            self.cells[_key(benchmark, rows[:n])] = (__version__, row.ours, row.ratio)
        with LAST_VERSION.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("benchmark", "what", "number", "version", "mlscale", "ratio"))
            writer.writerows((*key, *cells) for key, cells in self.cells.items())


def _key(benchmark: str, rows: Sequence[Row]) -> tuple[str, str, str]:
    what = rows[-1].what
    return benchmark, what, str(sum(row.what == what for row in rows))


def line(benchmark: str, row: Row, last: str) -> str:
    """The row, aligned, beside what it was in the last version."""
    return _aligned((benchmark, row.what, row.ours, row.peer, row.ratio, last, row.peer_is))


def heading() -> str:
    """The names of the columns, and a rule below them."""
    return f"{_aligned(HEADINGS)}\n{_aligned(tuple('-' * len(name) for name in HEADINGS))}"


def _aligned(cells: tuple[str, ...]) -> str:
    left, what, *numbers, last = cells
    aligned = [f"{left:{WIDTHS[0]}s}", f"{what:{WIDTHS[1]}s}"]
    aligned += [f"{c:>{width}s}" for c, width in zip(numbers, WIDTHS[2:6], strict=True)]
    return "  ".join([*aligned, last]).rstrip()
