"""Names fit for a terminal; expected texts are by hand, from ECMA-48 and Unicode's UAX 9."""

import math
import unicodedata

import numpy as np
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
    time_in_words,
    with_ranges,
    without_controls,
    without_numbers,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]0;a title\x07name\x1b]8;;http://x\x1b\\link", "namelink"),
        ("\x1bPq#0\x1b\\name\x1bc", "name"),
        ("two\r\nlines\tand\x0bmore", "two lines and more"),
        ("a\x00b\x08c\x7fd\x85e", "abcd e"),
        ("k<int>(é, 漢, \u2026)", "k<int>(é, 漢, \u2026)"),
    ],
)
def test_escape_sequences_and_controls_are_taken_out(text: str, expected: str) -> None:
    assert without_controls(text) == printable(text) == expected


def test_marks_of_direction_are_not_for_a_terminal() -> None:
    assert without_controls("a\u202eb\u2066c") == "a\u202eb\u2066c"
    assert printable("a\u202eb\u2066c\u200fd") == "abcd"


@given(text=st.text())
def test_no_control_is_left_and_twice_is_once(text: str) -> None:
    clean = printable(text)
    assert not any(unicodedata.category(character) == "Cc" for character in clean)
    assert printable(clean) == clean


def test_shortened_by_hand() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcdef…ijk"


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
        (3, "3 kernels (a, b, c)"),
        (4, "4 kernels (a, b, c, 1 other)"),
        (6, "6 kernels (a, b, c, 3 others)"),
    ],
)
def test_the_first_three_are_listed(count: int, text: str) -> None:
    assert listed("abcdef"[:count]) == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gem", ["gemm_f16(int)", "void batched_gemm<float, 4>(float *, float *, int)"]),
        ("batched_gem<float>", ["void batched_gemm<float, 4>(float *, float *, int)"]),
        ("GEMM_F16", ["gemm_f16(int)"]),
        ("gemm_f61", ["gemm_f16(int)"]),
        ("zzz", []),
        ("", []),
    ],
)
def test_near_names_by_hand(name: str, expected: list[str]) -> None:
    """Beginnings, then parts, then slips of the pen, whatever templates and arguments follow."""
    names = ["scan", "void batched_gemm<float, 4>(float *, float *, int)", "gemm_f16(int)"]
    assert near_names(name, names) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0, "0.0"),
        (1e-9, "<0.1"),
        (0.0005, "0.1"),
        (0.2923, "29.2"),
        (0.9994, "99.9"),
        (0.99999, ">99.9"),
        (sum([0.1] * 10), "100.0"),
    ],
)
def test_shares_by_hand(share: float, expected: str) -> None:
    """To a tenth of a percent; little is not nothing, and nearly all is not all."""
    assert share_in_percent(share) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["GPU 0: 75.5 MHz of 80", "GPU 10: 9 MHz of 80"], "GPU 0 to 10: 9 to 75.5 MHz of 80"),
        (["-1.5 to 2 %", "1e-05 to 2 %"], "-1.5 to 1e-05 to 2 %"),
        (["1 980 MHz, cu=5,x", "990 MHz, cu=7,x"], "990 to 1 980 MHz, cu=5 to 7,x"),
        (["k2_1 v1.2.3 fp64: 1."], "k2_1 v1.2.3 fp64: 1."),
    ],
)
def test_messages_as_one_with_ranges_by_hand(texts: list[str], expected: str) -> None:
    assert with_ranges(texts) == expected
    assert len({without_numbers(text) for text in texts}) == 1


@pytest.mark.parametrize(
    ("value", "column", "sentence"),
    [
        (0.0, "0", "0"),
        (2.5, "2.500", "2.5"),
        (-0.00012344, "-0.0001234", "-0.0001234"),
        (0.000012344, "0.00001234", "1.234e-05"),
        (1234.4, "1234", "1234"),
        (9999.4, "9999", "9999"),
        (9999.6, "10 000", "10 000"),
        (-1234567.8, "-1 234 568", "-1 234 568"),
    ],
)
def test_four_digits_by_hand(value: float, column: str, sentence: str) -> None:
    assert number(value) == column
    assert rounded(value) == sentence


def test_three_digits_by_hand() -> None:
    assert [number(value, 3) for value in (0.5, 99.94, 2345.6)] == ["0.500", "99.9", "2346"]
    assert [rounded(value, 3) for value in (0.5, 99.94, 2345.6)] == ["0.5", "99.9", "2346"]
    assert rounded(-0.0) == "0"
    assert number(None) == "-"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_what_is_no_finite_number_is_a_dash(value: float) -> None:
    """As other tables write what is not known."""
    assert number(value) == "-"
    assert rounded(value) == "-"


@given(value=st.floats(1e-4, 1e12), digits=st.integers(2, 6))
def test_a_written_number_is_the_number(value: float, digits: int) -> None:
    for text in (number(value, digits), rounded(value, digits)):
        assert "e" not in text
        assert float(text.replace(" ", "")) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))


def test_times_and_percents_by_hand() -> None:
    times_ms = (0.01234, 999.4, 999.6, 1234.5, 1234567.8, 12345678.9)
    words = ["0.0123 ms", "999 ms", "1 s", "1.23 s", "1235 s", "12 346 s"]
    assert [time_in_words(time_ms) for time_ms in times_ms] == words
    assert [percent_in_words(value) for value in (-0.04, -9.94, 9.96, 123.4)] == [
        *("0.0", "9.9", "10", "123")
    ]
