"""Text for a terminal or a file: tables in aligned columns, documents, warnings each once."""

import csv
import io
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mlscale.cli.terminal import SPELLED_OUT, columns_wide
from mlscale.errors import InputError, kept_notes
from mlscale.files import write_text
from mlscale.notes import Note, merged
from mlscale.text import counted, printable, spreadsheet_cell

_DIGITS = re.compile(r"[\d. ]*\d%? *|-")  # in groups of three, as `number` writes them, too


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
    """Keep what is warned of the data meanwhile, each once, for a document.

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
    """Print notes to standard error below the answer, or the first few.

    Each is in a line of its own, on a terminal in lines that fit.
    """
    print(end="", flush=True)
    if notes and sys.stderr.isatty():
        print(file=sys.stderr)
    for note in notes if tells_all else notes[:SPELLED_OUT]:
        about = f" ({counted(len(note.kernels), 'kernel')})" if note.kernels else ""
        print_note(f"{note.severity} {note.code}: {note.text}{about}")


def print_note(text: str) -> None:
    """Print a note to standard error, on a terminal in lines that fit."""
    line = _line(f"mlscale: {text}")
    if sys.stderr.isatty():
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
