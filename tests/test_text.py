"""Names fit for a terminal, and numbers in words; expected texts are by hand."""

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.text import (
    listed,
    near_names,
    number,
    percent_in_words,
    printable,
    rounded,
    share_in_percent,
    shortened,
    with_ranges,
    without_controls,
    without_numbers,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07name", "name"),
        ("two\r\nlines\tand\x0bmore", "two lines and more"),
        ("a\x00b\x08c\x7fd\x85e", "abcd e"),
        ("k<int>(é, 漢, \u2026)", "k<int>(é, 漢, \u2026)"),
    ],
)
def test_escape_sequences_and_controls_are_taken_out(text: str, expected: str) -> None:
    assert without_controls(text) == printable(text) == expected


@given(text=st.text())
def test_no_control_is_left_and_twice_is_once(text: str) -> None:
    clean = printable(text)
    assert not any(unicodedata.category(character) == "Cc" for character in clean)
    assert printable(clean) == clean


@given(text=st.text(max_size=50), longest=st.integers(4, 30))
def test_shortened_is_never_longer_and_keeps_both_ends(text: str, longest: int) -> None:
    short = shortened(text, longest)
    assert len(short) <= longest
    if short != printable(text):
        head, _, tail = short.partition("…")
        assert printable(text).startswith(head)
        assert printable(text).endswith(tail)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1 kernel (a)"),
        (4, "4 kernels (a, b, c, 1 other)"),
        (5, "5 kernels (a, b, c, 2 others)"),
    ],
)
def test_the_first_three_are_listed(count: int, text: str) -> None:
    assert listed("abcdef"[:count]) == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gem", ["gemm_f16(int)", "void batched_gemm<float, 4>(float *)"]),
        ("GEMM_F16", ["gemm_f16(int)"]),
        ("gemm_f61(int)", ["gemm_f16(int)"]),
        ("zzz", []),
    ],
)
def test_near_names(name: str, expected: list[str]) -> None:
    """Parts, the earlier the nearer, then slips of the pen."""
    names = ["scan", "void batched_gemm<float, 4>(float *)", "gemm_f16(int)"]
    assert near_names(name, names) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, "0.0"), (1e-9, "<0.1"), (0.0005, "0.1"), (0.9994, "99.9"), (0.99999, ">99.9")],
)
def test_shares(share: float, expected: str) -> None:
    """To a tenth of a percent; little is not nothing, and nearly all is not all."""
    assert share_in_percent(share) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["GPU 0: 75.5 MHz of 80", "GPU 10: 9 MHz of 80"], "GPU 0 to 10: 9 to 75.5 MHz of 80"),
        (["1 980 MHz, cu=5,x", "990 MHz, cu=7,x"], "990 to 1 980 MHz, cu=5 to 7,x"),
    ],
)
def test_messages_as_one_with_ranges(texts: list[str], expected: str) -> None:
    assert with_ranges(texts) == expected
    assert len({without_numbers(text) for text in texts}) == 1


@pytest.mark.parametrize(
    ("value", "column", "sentence"),
    [
        (0.0, "0", "0"),
        (2.5, "2.500", "2.5"),
        (0.000012344, "0.00001234", "1.234e-05"),
        (9999.4, "9999", "9999"),
        (9999.6, "10 000", "10 000"),
        (-1234567.8, "-1 234 568", "-1 234 568"),
        (math.nan, "-", "-"),
        (math.inf, "-", "-"),
    ],
)
def test_four_digits(value: float, column: str, sentence: str) -> None:
    assert number(value) == column
    assert rounded(value) == sentence


@given(value=st.floats(1e-4, 1e12), digits=st.integers(2, 6))
def test_a_written_number_is_the_number(value: float, digits: int) -> None:
    for text in (number(value, digits), rounded(value, digits)):
        assert "e" not in text
        assert float(text.replace(" ", "")) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))


def test_percents() -> None:
    assert [percent_in_words(value) for value in (-9.94, 9.96, 123.4)] == ["9.9", "10", "123"]
