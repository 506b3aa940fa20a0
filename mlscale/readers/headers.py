"""Where a table of samples begins whose titles are words, and why a file is no log."""

import csv
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path

from mlscale.data.column_names import source_meant
from mlscale.data.titles import Title, read_title

_LINES = 20  # in which a header is looked for
_SHOWN = 8  # titles
_ABOVE = re.compile(r"\s*(sep=|=|0[01],)|[^,;\t]*$")  # what stands above a header
_VALUE = re.compile(r"[\d.,:/TZ+\-\s]*\d[\d.,:/TZ+\-\s]*(\s?(W|%|MHz|MiB))?|N/A|\[.*\]|")
_HELP = "'mlscale import --help' has commands that write a profile, or a monitor's log"


@dataclass(frozen=True)
class Header:
    """The titles of a table's columns, as they stand and with units from elsewhere.

    line: its number; mark: the first cell of each row, where the tool marks its lines.
    """

    line: int
    cells: tuple[str, ...]
    names: tuple[str, ...]
    delimiter: str
    mark: str = ""

    @property
    def has_names(self) -> bool:
        """Whether it is of titles, and not of values."""
        return 2 * sum(not _VALUE.fullmatch(cell) for cell in self.cells) > len(self.cells)

    @property
    def has_moments(self) -> bool:
        """Whether one surely says when."""
        return any(title.what == "moment" for title in self.meant)

    @property
    def is_tidy(self) -> bool:
        """Whether they are ours, of a table of runs."""
        return len({"kernel", "engine_mhz", "time_ms"} & {*self.names}) > 1

    @property
    def meant(self) -> list[Title]:
        """What those titles say that say something."""
        return [title for name in self.names if (title := read_title(name))]

    @property
    def is_log(self) -> bool:
        """Whether they are a log's: of power, or of a clock and use, and of something beside."""
        told = {title.what for title in self.meant}
        is_sum = "time_ms" in told and not told & {"moment", "time"}
        is_sum |= self.is_tidy
        is_told = told & {"power_w", "watts"} or {"engine_mhz", "gpu_utilisation"} <= told
        return bool(self.has_names and is_told and len(self.meant) > 1 and not is_sum)

    def row(self, text: str) -> list[str] | None:
        """The cells of a line, with decimal points; None of one that is no row."""
        point = re.sub(r"(\d),(\d)", r"\1.\2", text) if self.delimiter == ";" else text
        cells = split(point, self.delimiter)
        return cells if not self.mark or cells[:1] in ([self.mark], [self.cells[0]]) else None


def split(text: str, delimiter: str = ",") -> list[str]:
    """The cells of a line of CSV, stripped; none of what is none."""
    try:
        [cells] = csv.reader([text], skipinitialspace=True, delimiter=delimiter)
    except (csv.Error, ValueError):
        return []
    return [cell.strip() for cell in cells]


def find_header(lines: Iterable[tuple[int, str]]) -> Header | None:
    """The first line of several cells near the beginning; Afterburner marks its as 02.

    Its lines 03 have the units of columns, by their number from the third on.
    """
    rows = iter(lines)
    begins = ((n, row) for n, row in islice(rows, _LINES) if not _ABOVE.match(row))
    number, text = next(begins, (0, ""))
    if not number:
        return None
    delimiter = max(",;\t", key=text.count)
    cells = split(text, delimiter)
    names, mark = [*cells], "80" if cells[0] == "02" else ""
    for _, row in takewhile(lambda at: at[1].startswith("03"), rows) if mark else ():
        _, _, place, unit, *_ = [*split(row), "", "", "", ""]
        if place.isdigit() and int(place) + 2 < len(names):
            names[int(place) + 2] += f" [{unit}]"
    return Header(number, tuple(cells), tuple(names), delimiter, mark)


def why_no_log(path: Path) -> str:
    """Why a file is no log, in words that follow its name: what its columns tell, what lacks."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    header = find_header(enumerate(start.decode(encoding, "replace").splitlines(), 1))
    if header is None or start.lstrip().startswith((b"{", b"[")):
        return f"is nothing that mlscale knows: it has no columns with titles; {_HELP}"
    if not header.has_names:
        return "begins with values, not with titles of columns; log with a header (no 'noheader')"
    told = {title.what: title.text for title in reversed(header.meant)}
    if header.is_tidy:
        return "is a table of runs, no profile or log; 'mlscale advise' and 'mlscale train' take it"
    if "time_ms" in told and told.keys() & {"engine_mhz", "engine_mhz_requested", "power_cap_w"}:
        return is_table_of_runs(header.names)
    shown = ", ".join(f"'{name}'" for name in header.names[:_SHOWN] if name)
    shown += " …" if len(header.names) > _SHOWN else ""
    tell = ", ".join(f"{what} ('{text}')" for what, text in told.items()) or "nothing of a GPU"
    lacks = "a log needs power, or a clock with utilisation"
    return f"is nothing that mlscale knows: its columns {shown} tell {tell}; {lacks}; {_HELP}"


def is_table_of_runs(names: Collection[str]) -> str:
    """What to say of a table whose rows are runs, each with its time, under other titles."""
    ours = ("engine_mhz", "memory_mhz", "power_cap_w", "time_ms", "power_w")
    told = [f"{name}={source}" for name in ours if (source := source_meant(name, names))]
    return f"is a table of runs under other titles; say which is which: --map '{','.join(told)}'"
