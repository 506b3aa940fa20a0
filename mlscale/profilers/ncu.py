"""Nsight Compute's CSV: the long details page, the summary, the raw page, in every header."""

from collections.abc import Collection, Iterator

from mlscale.errors import InputError
from mlscale.profilers.launches import FileContent, LaunchRecord
from mlscale.profilers.ncu_launches import LaunchIdentity, NcuLaunch, NcuLaunches
from mlscale.profilers.ncu_metrics import NAME, metric_value
from mlscale.profilers.reader import Export


class _Columns:
    """Where a page's columns say which launch a row is of."""

    def __init__(self, export: Export) -> None:
        self.process, self.kernel = export.columns("Process ID", "Kernel Name")
        self.program = export.find("Process Name")
        self.sizes = (export.find("Grid Size"), export.find("Block Size"))

    def identity(self, row: list[str], number: str) -> LaunchIdentity:
        """Which launch a row is of."""
        grid, block = self.sizes
        if grid is None or block is None:
            return LaunchIdentity(row[self.process], number, row[self.kernel], None, None)
        return LaunchIdentity(row[self.process], number, row[self.kernel], row[grid], row[block])

    def program_of(self, row: list[str]) -> str:
        """The profiled program, or the kernel where the page does not say it."""
        return row[self.kernel if self.program is None else self.program]


def read_details(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each ID of the long page, whose rows stand together. Raises InputError."""
    launches, columns = NcuLaunches(export, content, needed), _Columns(export)
    number, metric, unit, value = export.columns("ID", "Metric Name", "Metric Unit", "Metric Value")
    launch: NcuLaunch | None = None
    for line, row in export.rows(shortest=value + 1):
        identity = columns.identity(row, row[number])
        if launch is None or identity != launch.identity:
            if launch is not None:
                if identity[:2] == launch.identity[:2]:
                    raise InputError(
                        f"{export.where(line)}: launch {identity.number} is of "
                        f"'{identity.kernel[:60]}' here and of "
                        f"'{launch.identity.kernel[:60]}' above"
                    )
                yield launches.finish(launch)
            launch = launches.begin(line, identity, columns.program_of(row))
        launches.take(launch, line, row[metric], row[unit], row[value])
    if launch is not None:
        yield launches.finish(launch)


def read_summary(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """The launches of each kernel and geometry as one, with the averages. Raises InputError."""
    launches, columns = NcuLaunches(export, content, needed), _Columns(export)
    invocations, metric, unit, value = export.columns(
        "Invocations", "Metric Name", "Metric Unit", "Average"
    )
    launch: NcuLaunch | None = None
    count = 0
    for line, row in export.rows(shortest=value + 1):
        number = str(count)
        identity = columns.identity(row, number)._replace(invocations=row[invocations])
        if launch is None or identity._replace(number="") != launch.identity._replace(number=""):
            if launch is not None:
                yield launches.finish(launch)
            export.whole(line, row, invocations, "a number of launches", least=1)
            launch = launches.begin(line, identity, columns.program_of(row))
            count += 1
        launches.take(launch, line, row[metric], row[unit], row[value])
    if launch is not None:
        yield launches.finish(launch)


def read_raw(
    export: Export, content: FileContent, needed: Collection[str]
) -> Iterator[LaunchRecord]:
    """A launch for each row of the wide page, scaled by its units row. Raises InputError."""
    launches, columns = NcuLaunches(export, content, needed), _Columns(export)
    number, kernel = export.columns("ID", "Kernel Name")
    metrics = [(i, name) for i, name in enumerate(export.header) if name in launches.metrics]
    device = export.find(NAME)
    units: list[str] | None = None
    for line, row in export.rows():
        if not row[number].strip() and not row[kernel].strip():
            if units is not None and units != row:
                raise InputError(f"{export.where(line)}: a second row of units, unlike the first")
            units = row
            continue
        if units is None:
            raise InputError(
                f"{export.where(line)}: the row of units is missing below the header; use the "
                "file as ncu --page raw --csv writes it"
            )
        launch = launches.begin(line, columns.identity(row, row[number]), columns.program_of(row))
        where = export.where(line)
        launch.raw = {name: metric_value(where, name, units[i], row[i]) for i, name in metrics}
        if device is not None and row[device]:
            content.facts["device_name"][row[device]] += 1
        yield launches.finish(launch)
