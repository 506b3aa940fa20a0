"""Text for a terminal or a file: tables in aligned columns."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlscale.files import write_text
from mlscale.report.markup import number

__all__ = ["columns", "flag_lines", "number", "print_or_write", "shortened"]


def print_or_write(text: str, output: str | None) -> None:
    """Print the text, or write it to the file that was named. Raises InputError."""
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(Path(output), text)


def shortened(name: str, width: int = 60) -> str:
    """Return the name of a kernel for a terminal: a long one without its middle."""
    return name if len(name) <= width else f"{name[: width - 20]}…{name[-19:]}"


def flag_lines(flags: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each flag of each kernel; what all kernels share stands once."""
    first, *others = flags.values()
    shared = [flag for flag in first if others and all(flag in own for own in others)]
    lines = [f"flag: all kernels: {flag}\n" for flag in shared]
    for kernel, own in flags.items():
        lines += [f"flag: {shortened(kernel)}: {flag}\n" for flag in own if flag not in shared]
    return lines


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
