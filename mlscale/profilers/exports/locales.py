"""Numbers of a tool that follows the locale: Nsight Compute, of which Windows' is not English.

It writes two decimals where a number has any, in quotes in a page of CSV and at the end of a line
in text: '1,234.50' in English, '1.234,50' in Spanish or German.
"""

import re

_IN_QUOTES, _IN_TEXT = rb',"%s"', rb"\n {4,}\S[^\n]* %s *\r?\n"
_WITH_POINTS = rb"(?:[\d,]{1,40}\.\d\d|\d{1,3}(?:,\d{3}){2,9})"
_WITH_COMMAS = rb"(?:[\d.]{1,40},\d\d|\d{1,3}(?:\.\d{3}){2,9})"
_POINTS, _COMMAS = (
    [re.compile(place % number) for place in (_IN_QUOTES, _IN_TEXT)]
    for number in (_WITH_POINTS, _WITH_COMMAS)
)
_WITH_COMMA = re.compile(r"(\d{1,3}(\.\d{3}){1,5}|\d{1,18})(,\d\d?)?", re.ASCII)
# Three digits behind one separator: none of the tool's own decimals, nor surely thousands.
AMBIGUOUS = {".": re.compile(r"[1-9]\d{0,2}\.\d{3}"), ",": re.compile(r"\d{1,18},\d{3}")}


def has_decimal_commas(table: bytes) -> bool:
    """Whether the rows of a table have numbers with decimal commas, and none with points."""
    has_commas = any(form.search(table) for form in _COMMAS)
    return has_commas and not any(form.search(table) for form in _POINTS)


def with_point(cell: str) -> str:
    """A number with a decimal comma as one with a point; any other text as it is."""
    is_number = _WITH_COMMA.fullmatch(cell.strip())
    return cell.replace(".", "").replace(",", ".") if is_number else cell
