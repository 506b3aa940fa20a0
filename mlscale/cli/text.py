"""Text for a terminal or a file: tables in aligned columns, flags, warnings each once."""

import csv
import io
import json
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import compress
from pathlib import Path
from typing import Any, TextIO

from mlscale.cli.terminal import SPELLED_OUT, columns_wide
from mlscale.data.grid import HardwareConfig
from mlscale.errors import DataWarning, InputError
from mlscale.files import write_text
from mlscale.keywords import in_shell
from mlscale.notes import Note, note_rows
from mlscale.text import (
    counted,
    printable,
    shortened,
    spreadsheet_cell,
    with_ranges,
    without_numbers,
)

_DIGITS = re.compile(r"[\d. ]*\d%? *|-")  # in groups of three, as `number` writes them, too
_GEOMETRY = re.compile(r" \[grid [^\]]*\]$")


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
    return in_shell(json.dumps(document, indent=1)) + "\n"


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV under the names of the first one, which has them all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([spreadsheet_cell(row.get(name)) for name in rows[0]] for row in rows)
    return text.getvalue()


def kernel_name(name: str) -> str:
    """The name of a kernel for a terminal, a long one without its middle.

    Grid and block behind it stay, as they may be all that tells two kernels apart.
    """
    geometry = _GEOMETRY.search(name)
    behind = geometry[0] if geometry else ""
    return shortened(name.removesuffix(behind)) + behind


def kernel_names(names: Iterable[str]) -> dict[str, str]:
    """Each name for a terminal; those that are shortened to the same are numbered, (1), (2), ..."""
    shown = {name: kernel_name(name) for name in names}
    by_text: dict[str, list[str]] = {}
    for name, text in shown.items():
        by_text.setdefault(text, []).append(name)
    for text, alike in by_text.items():
        if len(alike) > 1:
            shown |= {name: f"{text} ({place})" for place, name in enumerate(alike, start=1)}
    return shown


def axis_headings(config: HardwareConfig) -> list[str]:
    """What a configuration's settings are called."""
    return [config.cu_axis or "CUs", "engine MHz", "memory MHz"]


def setting_cells(config: HardwareConfig) -> list[str]:
    """What a configuration is set to, below `axis_headings`."""
    return [f"{setting:g}" for setting in config.as_dict().values()]


def or_dash(value: float | None, form: str = "g") -> str:
    """A number in a format of Python's, '-' for one that is not known."""
    return "-" if value is None else format(value, form)


def flag_lines(flags: Mapping[str, Sequence[Note]], most: int | None = None) -> list[str]:
    """Return a line for each flag of each kernel; what several kernels share stands once.

    So do flags that differ in numbers alone, with the range of these. most: of the kernels, from
    the first, whose remaining flags are told; the others' are counted.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for kernel, flags_of_kernel in flags.items():
        for flag in map(str, flags_of_kernel):
            alike.setdefault(without_numbers(flag), []).append((kernel, flag))
    single: list[tuple[str, str]] = []
    lines: list[str] = []
    for pairs in alike.values():
        kernels = {kernel for kernel, _ in pairs}
        if len(kernels) == 1:
            single += pairs
            continue
        count = "all" if len(kernels) == len(flags) else len(kernels)
        lines.append(f"flag: {count} kernels: {with_ranges([flag for _, flag in pairs])}\n")
    places = {kernel: place for place, kernel in enumerate(flags)}
    single.sort(key=lambda pair: places[pair[0]])
    told, shown = set(list(flags)[:most]), kernel_names(flags)
    lines += [f"flag: {shown[kernel]}: {flag}\n" for kernel, flag in single if kernel in told]
    if untold := sum(kernel not in told for kernel, _ in single):
        lines.append(f"flag: {untold} more of other kernels, with --format json or csv\n")
    return lines


def warning_lines(warnings: Iterable[Note]) -> list[str]:
    """Return a line for each warning, for below a table."""
    return [f"warning: {printable(str(warning))}\n" for warning in warnings]


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


def without_empty(
    headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Return a table without the columns that no row has anything in."""
    full = [any(cells) for cells in zip(*rows, strict=True)]
    return list(compress(headers, full)), [list(compress(row, full)) for row in rows]


class ShownWarnings:
    """Shows each warning about the data once, in one line, and any other as Python does."""

    def __init__(self) -> None:
        self._shown: set[Note] = set()

    def show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Show a warning: in place of `warnings.showwarning`."""
        if not issubclass(category, DataWarning):
            text = warnings.formatwarning(message, category, filename, lineno, line)
            print(text, file=file or sys.stderr)
        elif isinstance(message, DataWarning) and message.note not in self._shown:
            self._shown.add(message.note)
            print_warnings([message.note])


@contextmanager
def kept_warnings() -> Iterator[list[Note]]:
    """Keep what is warned of the data meanwhile too, each once, for a document or a page."""
    notes: list[Note] = []
    show = warnings.showwarning

    def keep(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        show(message, category, *more, **named)
        if isinstance(message, DataWarning) and message.note not in notes:
            notes.append(message.note)

    warnings.showwarning = keep
    try:
        yield notes
    finally:
        warnings.showwarning = show


@contextmanager
def held_warnings() -> Iterator[list[Note]]:
    """Keep what is warned of the data meanwhile, each once, for a document.

    On an error warnings are shown, which may tell why.
    """
    held: list[Note] = []
    show = warnings.showwarning

    def keep(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        if not isinstance(message, DataWarning):
            show(message, category, *more, **named)
        elif message.note not in held:
            held.append(message.note)

    warnings.showwarning = keep
    try:
        yield held
    except InputError:
        print_warnings(note for note in held if note.severity == "warning")
        raise
    finally:
        warnings.showwarning = show


def print_warnings(notes: Iterable[Note]) -> None:
    """Print what a result has no place for."""
    tell(note_rows(notes))


def tell(notes: Iterable[Mapping[str, Any]], tells_all: bool = True) -> None:
    """Print the rows of notes to standard error below the answer, warnings first; else a few.

    Each is in a line of its own, on a terminal in lines that fit.
    """
    print(end="", flush=True)
    in_order = sorted(notes, key=lambda note: note["severity"] == "note")
    if in_order and sys.stderr.isatty():
        print(file=sys.stderr)
    for note in in_order if tells_all else in_order[:SPELLED_OUT]:
        about = "" if note["kernels"] == "all" else f" ({counted(len(note['kernels']), 'kernel')})"
        print_note(f"{note['severity']} {note['code']}: {note['text']}{about}")


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
    return " ".join(printable(in_shell(text)).split())


def _print(text: str) -> None:
    with suppress(BrokenPipeError):  # nobody reads what is said
        print(text, file=sys.stderr)
