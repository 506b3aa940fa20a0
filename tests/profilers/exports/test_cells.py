"""Cells as Arrow's strings answer as the same cells as Python's do."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlscale.profilers.exports.cells import ArrowCells, ListedCells


@given(st.lists(st.text(" a", max_size=3), max_size=4))
def test_a_blank_at_a_beginning(cells: list[str]) -> None:
    has_blank = ArrowCells(pa.array(cells, pa.string())).begins_with_blank()
    assert has_blank == any(cell.startswith(" ") for cell in cells)


@given(st.lists(st.integers(0, 10**17), min_size=1, max_size=9), st.integers(0, 6))
@example([93_071_269_749_820], 2)  # of so many digits a float holds no hundredths exactly
def test_grouped_numbers(counts: list[int], decimals: int) -> None:
    """Expected: Python's reading of each, to the last bit."""
    cells = [f"{count:,}" + f".{count:06}"[: decimals + (decimals > 0)] for count in counts]
    numbers = ArrowCells(pa.array(cells, pa.string())).numbers()
    np.testing.assert_array_equal(numbers, [float(cell.replace(",", "")) for cell in cells])


@pytest.mark.parametrize(
    "odd",
    [
        *("1234", "12,34", "1,23", ",123", "0,123", "1,2345", "1,,234", "1,234,", "1.234"),
        *("50", ".50", "5.", "1,234.5", "1234.50", "0,123.50", ",123.50", "1.2.3", "-5", ""),
    ],
)
@pytest.mark.parametrize("others", [["1,234", "56", "7,890"], ["1,234.50", "56.25", "7,890.00"]])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_cell_that_is_not_grouped_as_the_others(odd: str, others: list[str], at: int) -> None:
    """Expected: Python's reading of each cell."""
    cells = [*others[:at], odd, *others[at:]]
    numbers = ArrowCells(pa.array(cells, pa.string())).numbers()
    np.testing.assert_array_equal(numbers, ListedCells(cells).numbers())
