"""Markup of the report: any text is inert, and comes back the same when parsed."""

import pytest
from html_page import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from mlscale.report.markup import Markup, element, joined, percent, times, visible

HOSTILE = (
    '<script>alert(1)</script>"onload=',
    "' onmouseover='alert(1)",
    "</title></svg></style><img src=x onerror=alert(1)>",
    "<!-- --><![CDATA[<b>]]>&lt;&#60;&amp",
    "]]><?php ?><!DOCTYPE x>",
    "javascript:alert(1)",
)


class TestElements:
    def test_by_hand(self) -> None:
        made = element(
            "p", "a < b", None, element("b", 1.5), class_="x y", aria_label='"q"', id=None
        )
        assert made == '<p class="x y" aria-label="&quot;q&quot;">a &lt; b<b>1.5</b></p>'

    def test_numbers_have_six_digits(self) -> None:
        assert element("a", 1234567.0, x=1 / 3) == '<a x="0.333333">1.23457e+06</a>'

    def test_void_elements_are_not_closed(self) -> None:
        assert element("meta", charset="utf-8") == '<meta charset="utf-8">'

    def test_joining_escapes_what_is_between_too(self) -> None:
        assert joined("a", element("b"), "<", between="&") == "a&amp;<b></b>&amp;&lt;"

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_texts_stay_texts(self, text: str) -> None:
        found = parse(element("p", element("title", text), text, title=text)).one("p")
        assert found.attributes == {"title": text}
        assert found.texts("title") == [text]
        assert found.content[1] == text

    @settings(max_examples=300)
    @given(st.text(st.characters(), max_size=40))
    def test_any_text_comes_back_the_same(self, text: str) -> None:
        """As child and as attribute; what cannot be printed by its code."""
        found = parse(element("p", text, title=text)).one("p")
        assert found.text == visible(text)
        assert found.attributes == {"title": visible(text)}
        assert len(list(found.nodes())) == 1
        visible(text).encode("utf-8")


class TestWhatCannotBePrinted:
    # By hand: Python's own escapes of these characters.
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a b", "a b"),
            ("éß漢", "éß漢"),
            ("\x00\x1b[31m", "\\x00\\x1b[31m"),
            ("a\r\nb", "a\\r\\nb"),
            ("gpj.\u202eexe", "gpj.\\u202eexe"),
            ("\ud800", "\\ud800"),
            ("\ufffe", "\\ufffe"),
        ],
    )
    def test_is_shown_by_its_code(self, text: str, shown: str) -> None:
        assert visible(text) == shown


class TestNumbers:
    def test_by_hand(self) -> None:
        assert times(1.23456) == "\N{MULTIPLICATION SIGN}1.23"
        assert [percent(v) for v in (-0.1234, 0.04, 0.0, -0.0001)] == [
            "-12.3 %",
            "+4.0 %",
            "0.0 %",
            "0.0 %",
        ]


def test_markup_is_not_escaped_twice() -> None:
    assert element("p", Markup("<b></b>")) == "<p><b></b></p>"
