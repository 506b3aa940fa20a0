"""Warnings about the data as a terminal shows them: each once, and those alike with a count."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from mlscale.errors import DataWarning
from mlscale.text import printable, with_ranges, without_numbers


class ShownWarnings:
    """Shows the first of the warnings that differ in numbers alone, and counts the others.

    Such are those of one log for each of its GPUs, or of one check for each of its rows.
    """

    def __init__(self) -> None:
        self._shown: dict[str, dict[str, None]] = {}  # by the form the texts that have it

    def show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Show a warning about the data in one line, any other as Python does."""
        if not issubclass(category, DataWarning):
            text = warnings.formatwarning(message, category, filename, lineno, line)
            print(text, file=file or sys.stderr)
            return
        alike = self._shown.setdefault(without_numbers(str(message)), {})
        if not alike:
            print_warnings([str(message)])
        alike[str(message)] = None

    def tell_repeated(self) -> None:
        """Say how many warnings each stood for, with the ranges of their numbers; count anew."""
        for alike in self._shown.values():
            if len(alike) > 1:
                print_warnings([f"{len(alike)} like that: {with_ranges([*alike])}"])
        self._shown.clear()


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Keep what is warned of the data meanwhile too, for a document or a page, from the end on.

    Of those that differ in numbers alone it has the first, and how many more there are.
    """
    texts: list[str] = []
    kept: dict[str, dict[str, None]] = {}
    show = warnings.showwarning

    def keep(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        show(message, category, *more, **named)
        if issubclass(category, DataWarning):
            kept.setdefault(without_numbers(str(message)), {})[str(message)] = None

    warnings.showwarning = keep
    try:
        yield texts
    finally:
        warnings.showwarning = show
    for first, *others in kept.values():
        texts.append(f"{first} ({len(others)} more like that)" if others else first)


def print_warnings(texts: Iterable[str]) -> None:
    """Print what a result has no place for, each in a line."""
    for text in texts:
        print_line(f"mlscale: warning: {text}")


def print_line(text: str) -> None:
    """Print to standard error in one line, whatever the text holds."""
    with suppress(BrokenPipeError):  # nobody reads what is said
        print(" ".join(printable(text).split()), file=sys.stderr)
