"""Warnings about the data as a terminal shows them: each once."""

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from mlscale.errors import DataWarning
from mlscale.text import printable


class ShownWarnings:
    """Shows each warning once, and counts how often it came."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

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
        self._counts[str(message)] += 1
        if self._counts[str(message)] == 1:
            print_warnings([str(message)])

    def tell_counts(self) -> None:
        """Say which warnings came more than once."""
        repeated = {text: count for text, count in self._counts.items() if count > 1}
        print_warnings(f"{count} times: {text}" for text, count in repeated.items())


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Keep what is warned of the data meanwhile too, each once, for a document or a page."""
    texts: list[str] = []
    show = warnings.showwarning

    def keep(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        show(message, category, *more, **named)
        if issubclass(category, DataWarning) and str(message) not in texts:
            texts.append(str(message))

    warnings.showwarning = keep
    try:
        yield texts
    finally:
        warnings.showwarning = show


def print_warnings(texts: Iterable[str]) -> None:
    """Print what a result has no place for, each in a line."""
    for text in texts:
        print_line(f"mlscale: warning: {text}")


def print_line(text: str) -> None:
    """Print to standard error in one line, whatever the text holds."""
    with suppress(BrokenPipeError):  # nobody reads what is said
        print(" ".join(printable(text).split()), file=sys.stderr)
