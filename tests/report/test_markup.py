"""Markup of the report: any text is inert, and comes back the same when parsed. By hand."""

import pytest
from html_page import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from mlscale.report.markup import element, percent, times, visible


def test_elements_and_numbers() -> None:
    """A number has six digits, a change of less than 0.05 % is none."""
    made = element("p", "a < b", None, element("b", 1.5), class_="x y", aria_label='"q"', id=None)
    assert made == '<p class="x y" aria-label="&quot;q&quot;">a &lt; b<b>1.5</b></p>'
    assert element("a", 1234567.0, x=1 / 3) == '<a x="0.333333">1.23457e+06</a>'
    assert times(1.23456) == "\N{MULTIPLICATION SIGN}1.23"
    shown = [percent(value) for value in (-0.1234, 0.04, 0.0, -0.0001)]
    assert shown == ["-12.3 %", "+4.0 %", "0.0 %", "0.0 %"]


@settings(max_examples=300)
@given(st.text(st.characters(), max_size=40))
def test_any_text_comes_back_the_same(text: str) -> None:
    """As child and as attribute; what cannot be printed by its code."""
    found = parse(element("p", text, title=text)).one("p")
    assert found.text == visible(text)
    assert found.attributes == {"title": visible(text)}
    assert len(list(found.nodes())) == 1
    visible(text).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("éß漢", "éß漢"),
        ("\x00\x1b[31m", "\\x00\\x1b[31m"),
        ("a\r\nb", "a\\r\\nb"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_cannot_be_printed_is_shown_by_its_code(text: str, shown: str) -> None:
    """Python's own escapes of these characters."""
    assert visible(text) == shown
