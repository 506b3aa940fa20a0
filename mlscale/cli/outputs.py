"""Where the results of a command go: its formats, files and folders."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.parser import Parser
from mlscale.cli.terminal import COLOURS
from mlscale.errors import InputError, UsageError
from mlscale.files import only_writer, parse_json_object

if TYPE_CHECKING:
    from mlscale.progress import Progress

_NOT_WRITTEN = (".xlsx", ".xls", ".ods", ".pdf", ".docx", ".gz", ".bz2", ".xz")
_ENDINGS = {"csv": (".csv",), "json": (".json",), "parquet": (".parquet", ".pq")}


def output_file(text: str) -> Path:
    """Return a file to write; its folder must exist. Raises InputError, before the work."""
    path = Path(text)
    if path.suffix.lower() in _NOT_WRITTEN:
        raise InputError(
            f"{path}: mlscale does not write {path.suffix}; a spreadsheet opens a table in *.csv, "
            "and a browser prints the *.html of a report"
        )
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the name of a file to write")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    return path


def add_json(parser: Parser) -> None:
    """Add the option of every command that prints rows."""
    parser.add("--json", action="store_true", help="print one JSON document")


def add_notes(parser: Parser) -> None:
    """Add the option to read all notes."""
    parser.add("--notes", action="store_true", help="print all notes in full")


def add_colours(parser: Parser) -> None:
    """Add the option of every command that colours what it prints."""
    what = "colours in a terminal (default: %(default)s, off with NO_COLOR)"
    parser.add_more("--color", choices=COLOURS, default="auto", help=what)


def add_format(parser: Parser, formats: Sequence[str], default: str | None = "table") -> None:
    """Add the format of what a command prints; --json is the same as --format json.

    default: None takes it from the name of the output file, see `add_output_of_format`.
    """
    endings = ", ".join(f"*{endings[0]}" for form, endings in _ENDINGS.items() if form in formats)
    group = parser.add_mutually_exclusive_group()
    what = f"output format (default: {default or f'by the name of FILE: {endings}; else table'})"
    add = parser.add if default else parser.add_more
    add("--format", choices=formats, default=default, help=what, group=group)
    what = "print one JSON document, as --format json does"
    parser.add("--json", action="store_const", const="json", dest="format", help=what, group=group)


def add_output_of_format(parser: Parser, formats: Sequence[str]) -> None:
    """Add a file to write, whose name says the format where --format does not."""
    endings = ", ".join(f"*{_ENDINGS[form][0]}" for form in formats if form in _ENDINGS)
    what = f"file to write instead of printing: {endings}, *.txt"
    parser.add("-o", "--output", metavar="FILE", help=what)
    add_format(parser, formats, default=None)


def format_of_output(arguments: argparse.Namespace, formats: Sequence[str]) -> str:
    """The format that --format or the name of -o asks for; a table without either.

    Raises InputError on a format that is not among `formats` or not for a terminal, and on a file
    that cannot be written, before the work.
    """
    ending = Path(arguments.output or "").suffix.lower()
    if ending in (".html", ".htm"):
        raise UsageError(f"{arguments.output}: 'mlscale report' writes a page of these files")
    by_name = next((form for form, endings in _ENDINGS.items() if ending in endings), "table")
    form: str = arguments.format or by_name
    if not arguments.format and by_name == "table" and ending not in ("", ".txt"):
        known = ", ".join(f"*{_ENDINGS[one][0]}" for one in formats if one in _ENDINGS)
        told = f"mlscale does not write {ending}; name a file {known} or *.txt"
        raise UsageError(f"{arguments.output}: {told}")
    if form not in formats:
        raise UsageError("advice on one run is not written as Parquet; name a file *.csv or *.json")
    if form == "parquet" and arguments.output is None:
        raise UsageError("--format parquet is not for a terminal; name a file with -o FILE")
    if arguments.output:
        output_file(arguments.output)
    return form


@contextmanager
def output_folder(text: str) -> Iterator[Path]:
    """Make a folder that this process alone writes to; a new one goes if nothing came of it.

    Raises InputError.
    """
    folder = Path(text)
    try:
        is_new = not folder.is_dir()
        if is_new and folder.exists():
            raise InputError(f"{folder}: is a file; give the name of a folder to write to")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be created: {error.strerror}") from error
    with only_writer(folder):
        try:
            yield folder
        finally:
            if is_new and not any(folder.iterdir()):
                folder.rmdir()


def finished_document(path: Path, fingerprint: str, what: str = "study") -> dict[str, Any] | None:
    """Return the document of this study, if the file holds one.

    what: it is called in messages. Raises InputError when the file holds one of another.
    """
    try:
        document = parse_json_object(path.read_bytes(), str(path))
    except (OSError, InputError):
        return None
    if document.get("fingerprint") != fingerprint:
        raise InputError(
            f"{path.parent}: holds the results of another {what}, or of the same with other data "
            "or settings; name another folder"
        )
    return document


def in_order(
    running: Iterator[tuple[int, Any]],
    sizes: Sequence[int],
    progress: "Progress | None",
    folder: str | None,
    unit: str = "part",
) -> list[Any]:
    """Return the results of all parts in order; an interrupt says what is kept.

    On a terminal a bar on stderr shows the time left. sizes: the work of each, in that unit.
    """
    from tqdm import tqdm

    total, done = len(sizes), set(progress.done) if progress else set()
    results: dict[int, Any] = {}
    begun = sum(sizes[number] for number in done)
    bar = tqdm(total=sum(sizes), initial=begun, unit=unit, disable=None, leave=False)
    try:
        with bar:
            for number, result in running:
                results[number] = result
                bar.update(0 if number in done else sizes[number])
    except KeyboardInterrupt:
        if not progress:
            raise
        raise KeyboardInterrupt(
            f"interrupted; {len(progress.done)} of {total} parts are kept in {folder}; "
            "continue with --resume"
        ) from None
    return [results[number] for number in range(total)]
