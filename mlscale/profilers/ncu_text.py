"""Nsight Compute's text: what it prints without --csv, launch by launch or as a summary.

A launch begins with a line indented by two blanks: kernel (grid)x(block), Context 1, …; its
sections are tables whose borders are rows of dashes.
"""

import re
from collections.abc import Collection, Iterator

from mlscale.profilers.launches import FileContent, LaunchRecord
from mlscale.profilers.ncu_launches import LaunchIdentity, NcuLaunch, NcuLaunches
from mlscale.profilers.reader import NCU_SECTION, Export

_LAUNCH = re.compile(r"  \S")
_DASHES = re.compile(r" *-+( +-+)+ *")
_GEOMETRY = re.compile(
    r" (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\)),.*?"
    r"( Invocations (?P<invocations>\d{1,9}))?\s*$"
)
_OLD_END = re.compile(r", \d{4}-[A-Z][a-z]{2}-\d{2} \d\d:\d\d:\d\d, Context \d+, Stream \d+\s*$")
_PROGRAM = re.compile(r"\[(?P<process>\d+)\] .+@\S+\s*$")
_MEASURED = (3, 5)  # columns: name, unit, value; or name, unit, minimum, maximum, average


class _Table:
    """A section's table: where its cells stand, and whether its rows are being read."""

    def __init__(self) -> None:
        self._cells: list[slice] = []
        self._has_rows = False

    def border(self, line: str) -> None:
        """A row of dashes: it opens a table, stands below its header, or ends it."""
        if self._has_rows:
            self._cells = []
            return
        spans = [match.span() for match in re.finditer("-+", line)]
        self._cells = [slice(*span) for span in spans] if len(spans) in _MEASURED else []

    def end(self) -> None:
        """Whatever comes is no row."""
        self._cells, self._has_rows = [], False

    def row(self, line: str) -> tuple[str, str, str] | None:
        """Name, unit, and value or average; None for a line that is no measured row."""
        if not line.strip():
            self.end()
        if not self._cells:
            return None
        cells = [line[cell].strip() for cell in self._cells]
        if cells[0] == "Metric Name":
            return None
        self._has_rows = True
        return cells[0], cells[1], cells[-1]


def _identity(line: str, process: str, number: int) -> LaunchIdentity:
    """The launch that a line names; old versions print the date in place of its size."""
    match = _GEOMETRY.search(line)
    if match is None:
        kernel = _OLD_END.sub("", line).strip()
        return LaunchIdentity(process, str(number), kernel, None, None)
    kernel, invocations = line[: match.start()].strip(), match["invocations"] or "1"
    return LaunchIdentity(process, str(number), kernel, match["grid"], match["block"], invocations)


def read_text(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each one that the text names, or a kernel's launches as one. InputError."""
    launches = NcuLaunches(export, content, needed)
    launch: NcuLaunch | None = None
    for number, item in _items(export):
        if isinstance(item, LaunchIdentity):
            if launch is not None:
                yield launches.finish(launch)
            launch = launches.begin(number, item, export.command or item.kernel)
        elif launch is not None:
            launches.take(launch, number, *item)
    if launch is not None:
        yield launches.finish(launch)


def _items(export: Export) -> Iterator[tuple[int, LaunchIdentity | tuple[str, str, str]]]:
    """Launches, and name, unit and value of their metrics, each with its line."""
    table, process, count = _Table(), "", 0
    heading: tuple[int, str] | None = None
    for number, line in export.lines:
        if match := _PROGRAM.match(line):
            process = match["process"]
        elif _LAUNCH.match(line):
            heading = (number, line)
        elif NCU_SECTION.match(line):
            table.end()
            if heading is not None:
                yield heading[0], _identity(heading[1], process, count)
                heading, count = None, count + 1
        elif _DASHES.fullmatch(line):
            table.border(line)
        elif (cells := table.row(line)) is not None:
            yield number, cells
