"""Fleets: more profiles than fit in memory, in the row groups of Parquet files."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlscale.data.column_names import NO_COLUMNS, Columns
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import NOT_COUNTERS, Profiles, profiles_by_row
from mlscale.data.table import OF_LAUNCH, Table, with_base_clocks
from mlscale.data.table_files import is_parquet, parquet_file, read_row_group
from mlscale.errors import InputError, warn
from mlscale.parameters import parameter


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file, counted from 0."""

    path: Path
    number: int
    called: Columns = field(default_factory=dict)  # what the file calls our columns

    def __str__(self) -> str:
        return f"{self.path}: row group {self.number}"

    def tables(self, most: int, names: list[str] | None = None) -> Iterator[Table]:
        """Its rows, at most so many at a time, in columns of these names, or all. InputError."""
        names = None if self.called else names  # the file has other names then
        return read_row_group(self.path, self.number, most, names, self.called)


@dataclass(frozen=True)
class Fleet:
    """Kernels of one GPU at one configuration, each row of each row group one of them.

    columns: of every file. profiled_only: leave out kernels without counters. has_power: whether
    every row has power_w. snap_clocks [MHz]: clocks this near to the base's become the base's.
    """

    groups: tuple[RowGroup, ...]
    columns: tuple[str, ...]
    device: str
    base: HardwareConfig
    profiled_only: bool
    has_power: bool
    snap_clocks: float = 0.0

    def profiles(
        self, group: RowGroup, most: int, with_counters: bool = True
    ) -> Iterator[Profiles]:
        """The kernels of a row group, at most so many at a time. Raises InputError.

        with_counters: without, counters are read only if needed to decide which kernels are kept.
        """
        is_whole = with_counters or self.profiled_only
        names = None if is_whole else [name for name in self.columns if name in NOT_COUNTERS]
        for rows in group.tables(most, names):
            table = with_base_clocks(rows, self.base.as_dict(), self.snap_clocks)
            profiles = profiles_by_row(table, self.base, self.device)
            counted = profiles.with_counters
            if not counted.all() and set(profiles.counter_names) - {*OF_LAUNCH}:
                if not self.profiled_only:
                    raise InputError(
                        f"{group}: {table.row(int(counted.argmin()))}: has no counters, and in a "
                        "fleet the mean of the others does not replace them; leave such kernels "
                        f"out with {parameter('profiled_only')}"
                    )
                profiles = profiles.select(np.flatnonzero(counted).tolist())
            if profiles.kernels and (profiles.power_w is not None) != self.has_power:
                raise InputError(f"{group}: power_w must be in all rows of the fleet, or in none")
            if profiles.kernels:
                yield profiles

    def most_drawn_w(self, most: int) -> float:
        """The highest measured power of any kernel [W], that many read at a time; 0: none.

        Raises InputError.
        """
        if not self.has_power:
            return 0.0
        largest = 0.0
        for group in self.groups:
            for table in group.tables(most, None if self.profiled_only else ["power_w"]):
                kept = _counted(table) if self.profiled_only else table
                largest = float(np.fmax.reduce(kept.numbers["power_w"], initial=largest))
        return largest


def row_groups(
    path: Path, called: Columns = NO_COLUMNS
) -> tuple[tuple[RowGroup, ...], tuple[str, ...]]:
    """The row groups of a Parquet file, or of those in a folder by name, and their columns.

    Raises InputError, also where the files do not have the same columns.
    """
    files = _files(path) if path.is_dir() else [path]
    if not is_parquet(files[0]):
        raise InputError(
            f"{path}: a fleet is a Parquet file, or a folder of them; to predict another file name "
            "a file to write, without a / at its end"
        )
    groups: list[RowGroup] = []
    columns: list[str] = []
    for file in map(Path.resolve, files):
        with parquet_file(file) as content:
            names = content.schema_arrow.names
            rows = [content.metadata.row_group(g).num_rows for g in range(content.num_row_groups)]
        columns = columns or names
        if other := sorted(set(names) ^ set(columns)):
            raise InputError(f"{file}: column '{other[0]}' is not in all files of the fleet")
        groups += [RowGroup(file, number, called) for number, count in enumerate(rows) if count]
    if not groups:
        raise InputError(f"{path}: has no rows")
    return tuple(groups), tuple(columns)


def _files(folder: Path) -> list[Path]:
    """The Parquet files of a folder; of what else is in it a warning tells. Raises InputError.

    Names with . or _ before them are those of what programs keep for themselves.
    """
    entries = sorted(path for path in folder.iterdir() if path.name[0] not in "._")
    files = [path for path in entries if is_parquet(path)]
    if not files:
        raise InputError(f"{folder}: holds no Parquet file (*.parquet)")
    if others := [path.name for path in entries if path not in files]:
        warn(
            "T09",
            f"{folder}: only Parquet files belong to a fleet; ignored: {', '.join(others[:3])}",
        )
    return files


def first_rows(groups: Sequence[RowGroup], most: int, profiled_only: bool) -> Table:
    """The first rows of a fleet, at most so many.

    profiled_only: of kernels with counters, in whichever row group they begin; all of them where
    there is none. Raises InputError.
    """
    first = next(groups[0].tables(most))
    if not profiled_only:
        return first
    counted = (_counted(table) for group in groups for table in group.tables(most))
    return next((table for table in counted if len(table)), first)


def _counted(table: Table) -> Table:
    """The rows of a table that have any counter."""
    is_counted = np.zeros(len(table), np.bool_)
    for name, values in table.numbers.items():
        if name not in {*NOT_COUNTERS, *OF_LAUNCH}:
            is_counted |= np.isfinite(values)
    return table.select(np.flatnonzero(is_counted).tolist())


def digest(groups: Sequence[RowGroup]) -> str:
    """Return a digest of the whole content of the files of row groups, in their order."""
    content = hashlib.sha256()
    for path in dict.fromkeys(group.path for group in groups):
        with path.open("rb") as file:
            content.update(hashlib.file_digest(file, "sha256").digest())
    return content.hexdigest()
