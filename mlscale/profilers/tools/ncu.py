"""Nsight Compute: its CSV pages in every header, details and raw; and its text.

In the text, which ncu prints without --csv, a launch begins with a line indented by two blanks:
kernel (grid)x(block), Context 1, …; its sections are tables whose borders are rows of dashes.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from mlscale.errors import InputError
from mlscale.profilers.exports.blocks import Block, block_of, blocks
from mlscale.profilers.exports.reader import (
    NCU_LAUNCH,
    NCU_PROGRAM,
    NCU_SECTION,
    Export,
    borders_of,
)
from mlscale.profilers.exports.unread import NCU_SUMMARY
from mlscale.profilers.launch_batch import LaunchBatch
from mlscale.profilers.launches import FileContent
from mlscale.profilers.tools.ncu_launches import NcuColumns, NcuLaunches
from mlscale.profilers.tools.ncu_metrics import NAME, metric_values

_GEOMETRY = re.compile(
    r" (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\)),.*?"
    r"( (?P<summed>Invocations \d{1,9}))?\s*$"
)
_OLD_END = re.compile(r", \d{4}-[A-Z][a-z]{2}-\d{2} \d\d:\d\d:\d\d, Context \d+, Stream \d+\s*$")
_DEVICE = re.compile(r", Device (?P<gpu>\d+), ")
_HEADER = (
    *("Process ID", "ID", "Kernel Name", "Grid Size", "Block Size", "Device"),
    *("Metric Name", "Metric Unit", "Metric Value"),
)
_MEASURED_AT = [6, 7, 8]
_NO_METRIC = ""
_AT_ONCE = 10_000
_MEASURED = 3  # columns: name, unit, value


def read_rows(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each ID of the details page, whose rows stand together. Raises InputError."""
    measured = export.columns("Metric Name", "Metric Unit", "Metric Value")
    columns = NcuColumns.of(export)
    rows = blocks(export, [*columns.all(), *measured], shortest=measured[-1] + 1)
    yield from NcuLaunches(content, columns, needed).of_rows(rows, measured)


def read_raw(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each row of the wide page, scaled by its units row. Raises InputError."""
    [number] = export.columns("ID")
    columns = NcuColumns.of(export)
    launches = NcuLaunches(content, columns, needed)
    metrics = {i: name for i, name in enumerate(export.header) if name in launches.metrics}
    device = export.find(NAME)
    units: list[str] | None = None
    for block in blocks(export, [*columns.all(), *metrics, device]):
        rows = block
        if units is None:
            identity = (block.cells[column].text(0) for column in (number, columns.kernel))
            if any(cell.strip() for cell in identity):
                raise InputError(
                    f"{block.where(0)}: the row of units is missing below the header; use the "
                    "file as ncu --page raw --csv writes it"
                )
            units = [block.cells[column].text(0) for column in metrics]
            rows = block.take(np.arange(1, len(block)))
        if not len(rows):
            continue
        values = {
            name: metric_values(rows, column, name, unit)
            for (column, name), unit in zip(metrics.items(), units, strict=True)
        }
        if device is not None:
            launches.note_device(rows, device)
        yield launches.batch(rows, values)


def _identity(line: str, where: str) -> tuple[str, str, str, str]:
    """Kernel, grid, block and GPU that a line names; old versions print no size. InputError."""
    match = _GEOMETRY.search(line)
    if match is None:
        return _OLD_END.sub("", line).strip(), "", "", ""
    if match["summed"]:
        raise InputError(f"{where}: {NCU_SUMMARY}")
    device = _DEVICE.search(line, match.start())
    kernel = line[: match.start()].strip()
    return kernel, match["grid"], match["block"], device["gpu"] if device else ""


def read_text(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each one that the text names. Raises InputError."""
    columns = NcuColumns(0, 2, 1, None, (3, 4), 5)
    rows = _blocks(export, content)
    yield from NcuLaunches(content, columns, needed).of_rows(rows, _MEASURED_AT)


def _blocks(export: Export, content: FileContent) -> Iterator[Block]:
    """Whole launches, as a table with a row for each metric."""
    as_table = replace(export, header=_HEADER)
    rows: list[tuple[int, list[str]]] = []
    for line, row in _rows(export, content):
        if row[_MEASURED_AT[0]] == _NO_METRIC and len(rows) > _AT_ONCE:
            yield block_of(as_table, range(len(_HEADER)), rows)
            rows = []
        rows.append((line, row))
    yield block_of(as_table, range(len(_HEADER)), rows)


def _rows(export: Export, content: FileContent) -> Iterator[tuple[int, list[str]]]:
    """For each launch a row without a metric, then one for each metric; with their lines.

    Rows of dashes stand around a section's table and below its header. What comes behind the table
    has no metric's name.
    """
    process, count = "", 0
    cells: tuple[slice, ...] = ()  # of the table that is being read
    heading: tuple[int, str] | None = None
    launch: list[str] = []
    for number, line in export.lines:
        if match := NCU_PROGRAM.match(line):
            process = match["process"]
            content.application = content.application or match["program"]
        elif NCU_LAUNCH.match(line):
            heading = (number, line)
        elif NCU_SECTION.match(line):
            cells = ()
            if heading is not None:
                launch = [process, str(count), *_identity(heading[1], export.where(number))]
                yield heading[0], [*launch, _NO_METRIC, "", ""]
                heading, count = None, count + 1
        elif borders := borders_of(line):
            cells = borders if len(borders) == _MEASURED else ()
        elif not line.strip():
            cells = ()
        elif launch and cells:
            name, unit, value = (line[cell].strip() for cell in cells)
            if name != _NO_METRIC:
                yield number, [*launch, name, unit, value]
