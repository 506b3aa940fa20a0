"""One row of the benchmark table, and how it is printed."""

from dataclasses import dataclass
from typing import Self

HEADINGS = ("benchmark", "what", "mlscale", "peer", "ratio", "the peer is")
WIDTHS = (15, 46, 12, 12, 7, 0)


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


def line(benchmark: str, row: Row) -> str:
    """The row, aligned."""
    return _aligned((benchmark, row.what, row.ours, row.peer, row.ratio, row.peer_is))


def heading() -> str:
    """The names of the columns, and a rule below them."""
    return f"{_aligned(HEADINGS)}\n{_aligned(tuple('-' * len(name) for name in HEADINGS))}"


def _aligned(cells: tuple[str, ...]) -> str:
    left, what, *numbers, last = cells
    aligned = [f"{left:{WIDTHS[0]}s}", f"{what:{WIDTHS[1]}s}"]
    aligned += [f"{c:>{width}s}" for c, width in zip(numbers, WIDTHS[2:5], strict=True)]
    return "  ".join([*aligned, last]).rstrip()
