"""A file that a user names, and what it is: opened, known and read once, whoever asks."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mlscale.data.column_names import NO_COLUMNS, Columns
from mlscale.data.datasets import input_file
from mlscale.data.table import Table, divided
from mlscale.data.table_files import csv_header, is_parquet, is_tidy, parquet_file, read_table
from mlscale.errors import InputError
from mlscale.files import ByteProgress, HeldFile, hold, no_progress
from mlscale.parameters import command, parameter
from mlscale.text import did_you_mean

if TYPE_CHECKING:
    from mlscale.readers.files import Sheet
    from mlscale.readers.launches import SummedFile
    from mlscale.readers.monitor import Samples

PMC_PERF, SYSINFO = "pmc_perf.csv", "sysinfo.csv"  # rocprof-compute's counters, and their GPU


@dataclass(frozen=True)
class Source:
    """A file by the name given; everything else is found when first needed, and kept.

    Attributes:
        name: of the file, or of one that ships.
        settings: of its run, such as 'engine=1335'; '' if none were given.
    """

    name: str
    settings: str = ""
    _summed: "dict[tuple[bool, str | None], SummedFile]" = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __fspath__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    @cached_property
    def path(self) -> Path:
        """Its path; of rocprof-compute's folder that of its counters. Raises InputError."""
        if not self.name:
            raise InputError(f"@{self.settings}: names no file before '@'")
        counters = os.path.join(self.name, PMC_PERF)  # noqa: PTH118, which raises on some names
        return input_file(counters if os.path.isfile(counters) else self.name)  # noqa: PTH113

    @cached_property
    def is_file(self) -> bool:
        """Whether it exists and is not a folder."""
        return os.path.isfile(self.path)  # noqa: PTH113, which raises on some names

    @cached_property
    def file(self) -> HeldFile:
        """Its beginning. Raises InputError if it cannot be read."""
        return hold(self.path)

    def is_table(self, columns: Columns = NO_COLUMNS) -> bool:
        """Whether it is a tidy table; columns: what it calls ours."""
        return is_parquet(self.path) or not self.is_file or is_tidy(self.file, columns)

    def is_table_of_caps(self, columns: Columns) -> bool:
        """Whether it is one, or lacks but the time or the power of a table of capped runs."""
        return self.is_table({"device": "device", "power_cap_w": "power_cap_w", **columns})

    def table(self, columns: Columns = NO_COLUMNS, needs: Collection[str] = ()) -> Table:
        """Its tidy table, see `read_table`. Raises InputError."""
        return read_table(self.path if is_parquet(self.path) else self.file, needs, columns)

    def table_columns(self, columns: Columns = NO_COLUMNS) -> set[str]:
        """The columns of its tidy table, in our names too. Raises InputError."""
        if is_parquet(self.path):
            with parquet_file(self.path) as parquet:
                return {*parquet.schema_arrow.names, *columns}
        return {*csv_header(self.file), *columns}

    @cached_property
    def sheet(self) -> "Sheet | None":
        """What it is, of what no tidy table is; None where nothing like it is known. InputError."""
        from mlscale.readers.files import open_file

        return open_file(self.file if self.is_file else self.path)

    @cached_property
    def is_log(self) -> bool:
        """Whether it is a monitor's log. Raises InputError if it cannot be read."""
        return self.sheet is not None and self.sheet.kind.is_log

    @cached_property
    def is_benchmark(self) -> bool:
        """Whether it is a file with the result of a server benchmark."""
        from mlscale.readers.files import is_benchmark

        return self.is_file and is_benchmark(self.file)

    @cached_property
    def samples(self) -> "list[Samples]":
        """The samples of each GPU in a log. Raises InputError."""
        from mlscale.readers.monitor import read

        return read(self.file, self.sheet)

    @property
    def tells_engine_clock(self) -> bool:
        """Whether a log shows the engine clock at which the GPU ran. Raises InputError."""
        return any("engine_mhz" in log.columns for log in self.samples)

    def launches(
        self, each: bool = False, gpu: str | None = None, progress: ByteProgress = no_progress
    ) -> "SummedFile":
        """The launches of a profiler's file, summed up; each, gpu: see `Given`. InputError."""
        if (each, gpu) not in self._summed:
            from mlscale.readers.launches import Facts, summed
            from mlscale.readers.mapping import needed_counters

            sheet, facts = replace(self.sheet_of_launches(), progress=progress), Facts()
            read, needed = sheet.kind.reader(), needed_counters(sheet.kind.tool)
            launches = read(sheet, facts, needed)
            self._summed[each, gpu] = summed(launches, str(self.path), sheet.kind, facts, each, gpu)
        return self._summed[each, gpu]

    def sheet_of_launches(self) -> "Sheet":
        """What it is, if a profiler's export. Raises InputError."""
        if self.sheet is None:
            from mlscale.readers.files import why_no_log

            raise InputError(f"{self.path}: {why_no_log(self.file)}")
        kind = self.sheet.kind
        if kind.is_benchmark:
            raise InputError(
                f"{self.path}: is a result of {kind.title}; give it with the log of power and "
                "clocks of its run, and both of a run at a second clock: "
                f"{command('advise RESULT LOG', also='RESULT LOG')}"
            )
        if kind.is_log:
            raise InputError(
                f"{self.path}: is a log of {kind.title}, not a profiler's export; give it by "
                f"itself, or use it as the power of an export ({parameter('power')})"
            )
        return self.sheet


def further(text: str) -> Source:
    """The source that FILE or FILE@CONFIG names."""
    name, separator, settings = text.rpartition("@")
    is_divided = separator and "=" in settings and not os.path.exists(text)  # noqa: PTH110
    return Source(name, settings) if is_divided else Source(text)


def with_sysinfo(sources: Sequence[Source]) -> list[Source]:
    """Files of a run, and what rocprof-compute says of the GPU beside its counters."""
    beside = [one.path.with_name(SYSINFO) for one in sources if one.path.name == PMC_PERF]
    given = {one.path for one in sources}
    return [
        *sources,
        *(Source(str(path)) for path in beside if path.is_file() and path not in given),
    ]


def check_left_out(sources: Sequence[Source], columns: Columns) -> None:
    """Raise InputError on a column to leave out that no table has."""
    left_out, _ = divided(columns)
    tables = [one for one in sources if one.is_file and one.is_table(columns)] if left_out else []
    present = {name for table in tables for name in table.table_columns()}
    for name in sorted(left_out - present) if tables else ():
        hint = did_you_mean(name, present)
        raise InputError(f"{tables[0]}: the mapping {name}=: there is no column '{name}'{hint}")


def source_of(file: "Path | str | Source") -> Source:
    """A file as a source; one that is a source already stays as it is."""
    return file if isinstance(file, Source) else Source(str(file))
