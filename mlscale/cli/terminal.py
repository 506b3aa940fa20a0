"""A terminal: how wide it is, whether it shows colours, and quantities in three digits."""

import math
import os
import shutil
import sys
from typing import Literal

WIDEST = 100  # columns, of a wider terminal too
COLOURS = ("auto", "always", "never")
Meaning = Literal["answer", "over", "bold", "dim"]
# What to set is green and bold, what is over a limit yellow, the scaffold dim.
_CODES: dict[Meaning, str] = {"answer": "1;32", "over": "33", "bold": "1", "dim": "2"}
_PREFIXES = {-4: "p", -3: "n", -2: "u", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}


def columns_wide() -> int:
    """How many columns an answer may have; 80 where there is no terminal."""
    return min(shutil.get_terminal_size((80, 24)).columns, WIDEST)


def shows_colours(asked: str = "auto") -> bool:
    """Whether standard output is coloured: as asked, else on a terminal without NO_COLOR."""
    if asked != "auto":
        return asked == "always"
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def painted(text: str, meaning: Meaning | None, has_colours: bool) -> str:
    """The text in the colour of a meaning; the same text where there are none."""
    return f"\x1b[{_CODES[meaning]}m{text}\x1b[0m" if has_colours and meaning and text else text


def si(value: float | None, unit: str) -> str:
    """A quantity in three digits with its SI prefix; '-' for one that is not known.

    Example:
        >>> [si(0.00272, "s"), si(32.969, "s"), si(13188.4, "J"), si(471.4, "W"), si(0, "J")]
        ['2.72 ms', '33.0 s', '13.2 kJ', '471 W', '0 J']
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0:
        return f"0 {unit}"
    rounded = float(f"{value:.3g}")
    step = min(max(math.floor(math.log10(abs(rounded)) / 3), min(_PREFIXES)), max(_PREFIXES))
    scaled = rounded / 1000.0**step
    digits = max(0, 2 - math.floor(math.log10(abs(scaled)) + 1e-9))
    return f"{scaled:.{digits}f} {_PREFIXES[step]}{unit}"


def bar(share: float, cells: int = 10) -> str:
    """A bar of so many cells at most, in eighths of one.

    Example:
        >>> bar(0.5, 4), bar(0.03, 4)
        ('██', '▏')
    """
    eighths = round(8 * cells * min(max(share, 0.0), 1.0)) or 1
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
