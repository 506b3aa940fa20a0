"""Short answers: a table and sentences that fit a terminal, and the notes below them."""

import math
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mlscale.cli.terminal import Meaning, bar, columns_wide, painted
from mlscale.notes import Note
from mlscale.text import printable

INDENT = "  "
MOST_LINES = 25  # of an answer
SPELLED_OUT = 2  # notes, where not all are asked for
_CELLS = 10  # of a bar
_FEWEST_CELLS = 4

Cells = Sequence[str]


def table(
    headings: Cells,
    rows: Sequence[Cells],
    left: Collection[str],
    shares: Sequence[float] = (),
    meanings: Sequence[Meaning | None] = (),
    has_colours: bool = False,
) -> list[str]:
    """Lines of aligned cells; columns that are empty in all rows are left out.

    left: the headings of columns of words. shares: of each row its bar, which stands last if there
    is room. meanings: of each row, by which it is coloured.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    full = [place for place, _ in enumerate(headings) if any(row[place] for row in rows)]
    shown = [[row[place] for place in full] for row in (headings, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
    is_left = [headings[place] in left for place in full]
    lines = [
        INDENT
        + "  ".join(
            cell.ljust(width) if words else cell.rjust(width)
            for cell, width, words in zip(cells, widths, is_left, strict=True)
        )
        for cells in shown
    ]
    cells = min(_CELLS, columns_wide() - len(lines[0]) - len(INDENT))
    if shares and cells >= _FEWEST_CELLS and _draws_bars():
        bars = ("", *(bar(share, cells) for share in shares))
        lines = [f"{line}{INDENT}{drawn}" for line, drawn in zip(lines, bars, strict=True)]
    told: list[Meaning | None] = ["dim", *(meanings or [None] * len(rows))]
    return [
        painted(line.rstrip(), meaning, has_colours)
        for line, meaning in zip(lines, told, strict=True)
    ]


def _draws_bars() -> bool:
    """Whether standard output has the letters of bars."""
    with suppress(UnicodeEncodeError):
        bar(1).encode(sys.stdout.encoding or "utf-8")
        return True
    return False


def sentences(text: str, after: str = "", indent: int | None = None) -> list[str]:
    """Words as lines that fit. after: what the first line begins with; the others are below it.

    indent: of the other lines instead.
    """
    return textwrap.wrap(
        printable(text),
        columns_wide(),
        initial_indent=INDENT + after,
        subsequent_indent=INDENT + " " * (len(after) if indent is None else indent),
        break_long_words=False,
        break_on_hyphens=False,
    )


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each name and what it is; what is empty is left out."""
    told = [(name, text) for name, text in pairs if text]
    width = max(len(name) for name, _ in told)
    return [line for name, text in told for line in sentences(text, f"{name:<{width}}  ")]


def percent(value: float, sign: str = "+") -> str:
    """A percentage in three digits; nothing for NaN. sign: '' for one without, if positive."""
    return "" if math.isnan(value) else f"{value:{sign}z.{int(abs(value) < 99.95)}f} %"


def errors_in_words(found: Mapping[str, Any]) -> str:
    """The errors on applications left out that a model's card keeps, in words."""
    told = []
    for quantity in ("time", "power"):
        if one := found.get(quantity):
            error = "" if one["standard_error"] is None else f" ±{one['standard_error']:.1f}"
            told.append(f"{quantity} {percent(one['mape'], '')}{error}")
    return ", ".join(told)


def notes_line(notes: Sequence[Note]) -> list[str]:
    """The codes of notes, and how to read them; nothing where there are none."""
    codes = sorted({note.code for note in notes})
    if not codes:
        return []
    return sentences(f"Notes {', '.join(codes)}: mlscale explain {codes[0]}, or --notes for all.")
