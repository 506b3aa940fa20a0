"""Text for a terminal or a file: tables in aligned columns."""

import sys
from collections.abc import Sequence
from pathlib import Path

from mlscale.files import write_text
from mlscale.report.markup import number

__all__ = ["columns", "number", "print_or_write"]


def print_or_write(text: str, output: str | None) -> None:
    """Print the text, or write it to the file that was named. Raises InputError."""
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(Path(output), text)


def columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under their headers; a column of numbers is aligned to the right."""
    widths = [max(map(len, cells)) for cells in zip(headers, *rows, strict=True)]
    numeric = [
        all(cell.strip().rstrip("%").replace(".", "").isdigit() or cell == "-" for cell in cells)
        for cells in (zip(*rows, strict=True) if rows else [()] * len(headers))
    ]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(headers), line(["-" * width for width in widths]), *map(line, rows)])
