"""What the commands print: answers in lines and colours as wide as the terminal is, text, notes."""

import csv
import io
import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, Literal

from mlscale.errors import InputError, kept_notes
from mlscale.files import write_text
from mlscale.notes import Note, merged
from mlscale.parameters import parameter
from mlscale.text import counted, printable, spreadsheet_cell

INDENT = "  "  # before every line of an answer
SPELLED_OUT = 2  # warnings, where not all are asked for
NARROWEST = 40  # columns, of a narrower terminal too
WIDEST = 100  # columns, of a wider terminal too
COLOURS = ("auto", "always", "never")
LEAST_COLUMNS = 3  # that a table keeps, however wide they are
Emphasis = Literal["answer", "over", "bold", "dim"]
# What to set is green and bold, what is over a limit yellow, the scaffold dim.
_CODES: dict[Emphasis, str] = {"answer": "1;32", "over": "33", "bold": "1", "dim": "2"}
_PREFIXES = {-4: "p", -3: "n", -2: "u", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}
_NUMBER = re.compile(r"[-+]?\d")
_DIGITS = re.compile(r"[\d. ]*\d%? *|-")  # in groups of three, as `number` writes them, too
_LARGE_END = 9.95  # percent, from which on the ends of an interval are whole ones
_FEWEST_CELLS = 4  # a bar with less is left out


def columns_wide() -> int:
    """How many columns an answer may have; 80 where there is no terminal."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, NARROWEST), WIDEST)


def shows_colours(asked: str = "auto") -> bool:
    """Whether standard output is coloured: as asked, else on a terminal without NO_COLOR."""
    if asked != "auto":
        return asked == "always"
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


@dataclass(frozen=True)
class Line:
    """A line of an answer, without its indent, and what its colour means, if it has one."""

    text: str = ""
    meaning: Emphasis | None = None


def shown(lines: Iterable[Line], has_colours: bool = False) -> str:
    """Lines as they are printed, indented; all but the colours are the same without these."""
    told = []
    for line in lines:
        code = _CODES[line.meaning] if has_colours and line.meaning and line.text else ""
        body = f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text
        told.append(f"{INDENT}{body}\n" if body else "\n")
    return "".join(told)


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


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    shares: Sequence[float] = (),
    meanings: Sequence[Emphasis | None] = (),
    width: int | None = None,
    labels: int = 0,
) -> list[Line]:
    """Rows under their headings, without empty columns; those of numbers are aligned to the right.

    shares: of each row its bar, which stands last if there is room. meanings: of each row. width:
    columns for which from the right goes what has no room; None for a terminal's. labels: of so
    many columns, the first, which are of words.
    """
    room = (columns_wide() if width is None else width) - len(INDENT)
    full = [any(cells) for cells in zip(*rows, strict=True)]
    lines = [[printable(cell) for cell in compress(row, full)] for row in (headings, *rows)]
    while len((aligned := _aligned(lines, labels))[0]) > room and len(lines[0]) > LEAST_COLUMNS:
        lines = [line[:-1] for line in lines]
    cells = min(10, room - len(aligned[0]) - len(INDENT))
    if shares and cells >= _FEWEST_CELLS and _draws_bars():
        bars = ("", *(bar(share, cells) for share in shares))
        aligned = [f"{line}  {drawn}" for line, drawn in zip(aligned, bars, strict=True)]
    told = ("dim", *(meanings or [None] * len(rows)))
    return [Line(line.rstrip(), meaning) for line, meaning in zip(aligned, told, strict=True)]


def _aligned(lines: Sequence[Sequence[str]], labels: int) -> list[str]:
    """Cells in columns that end alike where most below the first are numbers, else begin alike."""
    padded = []
    for place, column in enumerate(zip(*lines, strict=True)):
        width, cells = max(map(len, column)), [cell for cell in column[1:] if cell]
        numbers = sum(bool(_NUMBER.match(cell)) for cell in cells)
        is_number = place >= labels and 2 * numbers >= len(cells)
        padded.append([cell.rjust(width) if is_number else cell.ljust(width) for cell in column])
    return ["  ".join(cells) for cells in zip(*padded, strict=True)]


def _draws_bars() -> bool:
    """Whether standard output has the letters of bars."""
    with suppress(UnicodeEncodeError):
        bar(1).encode(sys.stdout.encoding or "utf-8")
        return True
    return False


def sentences(
    text: str, meaning: Emphasis | None = None, after: str = "", width: int | None = None
) -> list[Line]:
    """Words as lines that fit. after: what the first line begins with; the others are below it."""
    lines = textwrap.wrap(
        printable(text),
        (columns_wide() if width is None else width) - len(INDENT),
        initial_indent=after,
        subsequent_indent=" " * len(after),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [Line(line, meaning) for line in lines]


def base_line(bases: Iterable[str], asked: object, is_highest: bool) -> list[Line]:
    """From where kernels are predicted; asked: what --base says of it, None for the default.

    is_highest: whether it is the highest setting, or a lower one, as that was hardly measured.
    """
    first, *others = dict.fromkeys(bases)
    what = "the highest setting" if is_highest else "the highest setting that most kernels have"
    default = "" if asked else f", {what} (another: {parameter('base')})"
    return sentences(f"Base: {first}{' and others' * bool(others)}{default}", "dim")


def facts(pairs: Iterable[tuple[str, str]]) -> list[Line]:
    """A line for each name and what it is; what is empty is left out."""
    told = [(name, text) for name, text in pairs if text]
    width = max(len(name) for name, _ in told)
    return [line for name, text in told for line in sentences(text, after=f"{name:<{width}}  ")]


def percent(value: float | None, sign: str = "+") -> str:
    """A percentage in three digits, '' for one that is not known. sign: '' for none of a plus."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:{sign}z.{int(abs(value) < 99.95)}f} %"


def end(value: float) -> str:
    """An end of an interval of percentages in two digits, and all of whole percents."""
    return "" if math.isnan(value) else f"{value:+z.{int(abs(value) < _LARGE_END)}f}"


def notes_line(codes: Iterable[str], width: int | None = None) -> list[Line]:
    """The codes of notes, each once, and how to read them; nothing where there are none."""
    told = list(dict.fromkeys(codes))
    if not told:
        return []
    text = f"Notes {', '.join(told)}: mlscale explain {told[0]}, or {parameter('notes')} for all."
    return sentences(text, width=width)


# Text, and what is told beside it.


def print_or_write(text: str, output: str | None) -> None:
    """Print the text, line by line fit for a terminal, or write it as it is to the file.

    Raises InputError where the file cannot be written.
    """
    if output is None:
        sys.stdout.write("\n".join(map(printable, text.split("\n"))))
    else:
        write_text(Path(output), text)


def json_text(document: Any) -> str:
    """A document as the commands print and write it."""
    return json.dumps(document, indent=1) + "\n"


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV under the names of the first one, which has them all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([spreadsheet_cell(row.get(name)) for name in rows[0]] for row in rows)
    return text.getvalue()


def or_dash(value: float | None, form: str = "g") -> str:
    """A number in a format of Python's, '-' for one that is not known."""
    return "-" if value is None else format(value, form)


def columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under their headers; a column of numbers is aligned to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(headers, *rows, strict=True)]
    numeric = [
        all(_DIGITS.fullmatch(cell) for cell in cells)
        for cells in (zip(*rows, strict=True) if rows else [()] * len(headers))
    ]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(headers), line(["-" * width for width in widths]), *map(line, rows)])


@contextmanager
def held_warnings(before: Iterable[Note] = ()) -> Iterator[list[Note]]:
    """Collect warnings about the data, each once, for a document.

    before: what was held already. On an error warnings are shown, which may tell why.
    """
    try:
        with kept_notes(before) as held:
            yield held
    except InputError:
        print_warnings(note for note in held if note.severity == "warning")
        raise


def print_warnings(notes: Iterable[Note]) -> None:
    """Print what a result has no place for."""
    tell(merged(notes))


def tell(notes: Sequence[Note], tells_all: bool = True) -> None:
    """Print notes to standard error below the answer: all, or only the first warnings.

    Each is in a separate line, on a terminal in lines that fit.
    """
    print(end="", flush=True)
    if not tells_all:  # the answer has the codes of all
        notes = [note for note in notes if note.severity == "warning"][:SPELLED_OUT]
    if notes and sys.stderr.isatty():
        print(file=sys.stderr)
    for note in notes:
        about = f" ({counted(len(note.kernels), 'kernel')})" if note.kernels else ""
        print_note(f"{note.severity} {note.code}: {note.text}{about}")


def print_note(text: str) -> None:
    """Print a note to standard error, where the columns are known in lines that fit."""
    line = _line(f"mlscale: {text}")
    if sys.stderr.isatty() or "COLUMNS" in os.environ:
        line = textwrap.fill(
            line, columns_wide(), subsequent_indent="    ", break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
    _print(line)


def print_line(text: str) -> None:
    """Print to standard error in one line, whatever the text holds."""
    _print(_line(text))


def _line(text: str) -> str:
    return " ".join(printable(text).split())


def _print(text: str) -> None:
    with suppress(OSError):  # nobody reads what is said
        print(text, file=sys.stderr)
