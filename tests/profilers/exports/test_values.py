"""Cells as numbers: each is read as it is written, or refused in one line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlscale import InputError
from mlscale.profilers.exports.values import (
    parse_counter,
    parse_number,
    parse_timestamp,
    quick_number,
)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("10,195,552", 10195552), ("85,824", 85824), ("'5,376'", 5376), ("1,234.5", 1234.5),
        ("1.5e3", 1500), ("1.234", 1.234), ("0.0000000000", 0),
    ],
)  # fmt: skip
def test_numbers(cell: str, value: float) -> None:
    assert parse_number(cell, "here") == value


@pytest.mark.parametrize("cell", ["0,123", "1234,567", "1_000", "0x10", "1.2.3", "١٢", "1 000"])
def test_no_numbers(cell: str) -> None:
    with pytest.raises(InputError, match=r"^here: "):
        parse_number(cell, "here")


@given(st.integers(0, 10**15))
@settings(max_examples=60)
def test_thousands_commas_change_no_number(value: int) -> None:
    assert parse_counter(f"{value:,}", "here") == value
    assert parse_timestamp(str(value), "here") == value


@given(cell=st.text("0123456789.,eE+-' ", max_size=12))
@settings(max_examples=400)
def test_an_accepted_number_is_the_one_that_is_written(cell: str) -> None:
    """Python reads it the same once groups of three lose their commas."""
    try:
        value = parse_number(cell, "here")
    except InputError:
        return
    digits = cell.strip().strip("'")
    groups = digits.partition(".")[0].split(",")[1:]
    if np.isnan(value):
        assert digits in ("", "-") or np.isinf(float(digits))
    else:
        assert all(len(group) == 3 for group in groups)
        assert value == float(digits.replace(",", ""))


@given(cell=st.one_of(st.text("0123456789.,-", max_size=12), st.integers(0).map("{:,}".format)))
@settings(max_examples=400)
def test_the_quick_way_reads_what_the_careful_one_does(cell: str) -> None:
    quick = quick_number(cell)
    assert quick is None or quick == parse_counter(cell, "here")


def test_a_header_that_comes_again_is_told() -> None:
    """As where one export was appended to another."""
    with pytest.raises(InputError, match=r"'a.sum' is the header again; keep one export"):
        parse_number("a.sum", "run.csv: row 9, column 'a.sum'")
    with pytest.raises(InputError, match=r"'b' is not a number$"):
        parse_number("b", "run.csv: row 9, column 'a.sum'")
