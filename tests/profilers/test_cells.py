"""Cells as Arrow's strings answer as the same cells as Python's do."""

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlscale.profilers.cells import ArrowCells, ListedCells

NAMES = st.text("k [12]\t,", max_size=8) | st.from_regex(r"k[<2>]? \[[0-9]{1,3}\]", fullmatch=True)


@settings(deadline=None)
@given(st.lists(NAMES, max_size=6))
@example(["gemm [1]", "gemm [23]", "scan [4]"])  # as nvprof writes them
@example(["gemm [1]", "gemm"])
@example(["k []"])
@example(["k  [1]"])  # one blank is nvprof's, the other the name's
@example(["k [1]2]"])
def test_names_without_numbers_of_launches(names: list[str]) -> None:
    """Expected: by Python's regular expression."""
    arrow = ArrowCells(pa.array(names, pa.string())).unnumbered()
    listed = ListedCells(names).unnumbered()
    assert [arrow.of(cell) for cell in range(len(names))] == [
        listed.of(cell) for cell in range(len(names))
    ]


@settings(deadline=None)
@given(st.lists(st.text(" a", max_size=3), max_size=4))
def test_a_blank_at_a_beginning(cells: list[str]) -> None:
    has_blank = ArrowCells(pa.array(cells, pa.string())).begins_with_blank()
    assert has_blank == any(cell.startswith(" ") for cell in cells)
