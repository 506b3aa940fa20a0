"""A cell as a number: thousands commas, and what stands for 'missing'."""

import math
import re
from fractions import Fraction

from mlscale.data.table import LARGEST_COUNTER
from mlscale.errors import InputError

TIME_UNITS_NS = {"ns": 1, "us": 10**3, "\u03bcs": 10**3, "\u00b5s": 10**3, "ms": 10**6, "s": 10**9}
MEND = (
    "export with LC_ALL=C, on Windows with an English number format, so that numbers are written "
    "with a decimal point"
)
_MISSING = {
    *("", "n/a", "na", "nan", "-nan", "nan(ind)", "-nan(ind)", "inf", "-inf", "infinity"),
    *("null", "none", "<overflow>", "overflow", "-"),
}
# At most 400 digits: without a bound the first pattern backtracks over all of a long cell.
_PLAIN = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,9})?", re.ASCII)
MOST_DIGITS = 18
QUICK_NUMBER = re.compile(r"(\d{1,18}|[1-9]\d{0,2}(,\d{3}){1,5})(\.\d{1,18})?", re.ASCII)
_SIZE = re.compile(r"[0-9]{1,18}(\.0+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_DOTS = re.compile(r"[+-]?\d{1,3}(\.\d{3}){2,}(,\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)


def quick_number(text: str) -> float | None:
    """A number that is not negative, perhaps with thousands commas; None for anything else.

    It reads the most frequent cells at a fraction of the cost of parse_number.
    """
    if is_whole(text):
        return float(text)
    return float(text.replace(",", "")) if QUICK_NUMBER.fullmatch(text) else None


def parse_number(text: str, where: str) -> float:
    """A number; NaN where the cell says that there is none, and for what is not finite.

    Raises InputError, beginning with `where`, on anything ambiguous or not a number.
    """
    cell = text.strip().strip("'")
    if _PLAIN.fullmatch(cell):
        value = float(cell)
        return value if math.isfinite(value) else math.nan
    if cell.casefold() in _MISSING:
        return math.nan
    if _DOTS.fullmatch(cell):
        raise InputError(f"{where}: '{text}' is ambiguous: {MEND}")
    if _THOUSANDS.fullmatch(cell):
        return float(cell.replace(",", ""))
    if _DECIMAL_COMMA.fullmatch(cell):
        raise InputError(f"{where}: '{text}' has a decimal comma: {MEND}")
    why = "not a number"
    if cell and where.endswith(f"column '{cell}'"):
        why = "the header again; keep one export in the file"
    raise InputError(f"{where}: '{text[:40]}' is {why}")


def parse_counter(text: str, where: str) -> float:
    """As parse_number, but neither negative nor from LARGEST_COUNTER on. Raises InputError."""
    value = parse_number(text, where)
    if value < 0:
        raise InputError(f"{where}: '{text}' is negative; a counter cannot be")
    if value >= LARGEST_COUNTER:
        raise InputError(f"{where}: '{text[:40]}' is more than any counter counts: it ran below 0")
    return value


def is_whole(text: str) -> bool:
    """Whether a cell is a whole number of at most 18 ASCII digits."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def parse_whole(text: str, where: str, what: str, least: int = 0) -> int:
    """A whole number, `what` it is in the message otherwise. Raises InputError."""
    if not is_whole(text) or int(text) < least:
        raise InputError(f"{where}: '{text[:40]}' is not {what}")
    return int(text)


def parse_size(text: str, where: str) -> float:
    """A number of work-items or workgroups: positive and whole. Raises InputError."""
    cell = text.strip()
    if not _SIZE.fullmatch(cell) or float(cell) < 1:
        raise InputError(f"{where}: '{cell[:40]}' is not a size")
    return float(cell)


def parse_timestamp(text: str, where: str) -> Fraction | None:
    """Nanoseconds; None where not given. Raises InputError on what a spreadsheet rounded.

    Those of several passes are given as their mean, with decimals.
    """
    cell = text.strip()
    if not cell or cell.casefold() in _MISSING:
        return None
    if re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,20})?", cell):
        return Fraction(cell)
    if "e" in cell.casefold() and _PLAIN.fullmatch(cell):
        raise InputError(
            f"{where}: the timestamp '{cell}' was rounded, by a spreadsheet; use the file as the "
            "profiler wrote it"
        )
    raise InputError(f"{where}: '{cell[:40]}' is not a timestamp in nanoseconds")


def parse_triple(text: str, where: str) -> tuple[int, int, int]:
    """Three sizes of '(98, 1, 1)'; what is not given is 1. Raises InputError."""
    match = re.fullmatch(r"\s*\(\s*([0-9]{1,10}(?:[\s,;]+[0-9]{1,10}){0,2})\s*\)\s*", text)
    if match is None:
        raise InputError(f"{where}: '{text[:40]}' is not a size such as (98, 1, 1)")
    sizes = [int(size) for size in re.split(r"[\s,;]+", match[1].strip())]
    if min(sizes) < 1:
        raise InputError(f"{where}: '{text[:40]}' has a size of 0")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def parse_product(text: str, where: str) -> float:
    """Grid or block, as '(98, 1, 1)'; NaN where the text says none. Raises InputError."""
    return float(math.prod(parse_triple(text, where))) if text else math.nan
