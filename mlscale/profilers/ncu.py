"""Nsight Compute's CSV: the long details page, the summary, the raw page, in every header."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from mlscale.errors import InputError
from mlscale.profilers.blocks import Block, blocks
from mlscale.profilers.launch_batch import LaunchBatch
from mlscale.profilers.launches import FileContent
from mlscale.profilers.ncu_launches import NcuColumns, NcuLaunches
from mlscale.profilers.ncu_metrics import NAME, metric_values
from mlscale.profilers.reader import Export


def read_details(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """A launch for each ID of the long page, whose rows stand together. Raises InputError."""
    measured = export.columns("Metric Name", "Metric Unit", "Metric Value")
    columns = NcuColumns.of(export)
    rows = blocks(export, [*columns.all(), *measured], shortest=measured[-1] + 1)
    yield from NcuLaunches(content, columns, needed).of_rows(rows, measured)


def read_summary(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchBatch]:
    """The launches of each kernel and geometry as one, with the averages. Raises InputError."""
    measured = export.columns("Metric Name", "Metric Unit", "Average")
    columns = replace(NcuColumns.of(export), number=None)
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
    used = [*columns.all(), *metrics, *([] if device is None else [device])]
    units: list[str] | None = None
    for block in blocks(export, used):
        above, rows = _parted(block, number, columns.kernel)
        is_first = units is None and len(above) > 0
        for row in range(len(above)):
            texts = [above.cells[column].text(row) for column in metrics]
            if units is not None and units != texts:
                raise InputError(f"{above.where(row)}: a second row of units, unlike the first")
            units = texts
        if len(rows) and (units is None or (is_first and rows.lines[0] < above.lines[0])):
            raise InputError(
                f"{rows.where(0)}: the row of units is missing below the header; use the "
                "file as ncu --page raw --csv writes it"
            )
        if not len(rows) or units is None:
            continue
        values = {
            name: metric_values(rows, column, name, unit)
            for (column, name), unit in zip(metrics.items(), units, strict=True)
        }
        if device is not None:
            launches.note_device(rows, device)
        yield launches.batch(rows, values)


def _parted(block: Block, number: int, kernel: int) -> tuple[Block, Block]:
    """Rows of units, which have neither number nor kernel, and rows of launches."""
    codes, texts = block.labels(kernel)
    nameless = np.flatnonzero(np.array([not text.strip() for text in texts], np.bool_)[codes])
    numbers = block.cells[number]
    units = [row for row in nameless.tolist() if not numbers.text(row).strip()]
    if not units:
        return block.head(0), block
    return block.take(np.array(units)), block.take(np.delete(np.arange(len(block)), units))
