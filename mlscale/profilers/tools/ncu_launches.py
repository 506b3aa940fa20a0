"""Launches of Nsight Compute, whatever page they stand on, and what they tell of the GPU."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.errors import InputError
from mlscale.profilers.exports.blocks import Block, by_run, runs_of, whole_runs
from mlscale.profilers.exports.cells import Wholes
from mlscale.profilers.exports.reader import Export
from mlscale.profilers.exports.values import parse_product
from mlscale.profilers.launch_batch import LaunchBatch
from mlscale.profilers.launches import FileContent, NumberSet
from mlscale.profilers.tools.ncu_metrics import (
    ALWAYS,
    CYCLES,
    ENGINES,
    MEMORY,
    MEMORY_LIMIT,
    NAME,
    SHOWN,
    SM_COUNT,
    TIME,
    metric_values,
    parse_unit,
)

_Metrics = dict[str, Floats]


@dataclass(frozen=True)
class NcuColumns:
    """Where a page's columns stand that say which launch a row is of.

    sizes: grid and block, where the page says them; gpu: None where it does not say on which it
    ran.
    """

    process: int
    kernel: int
    number: int
    program: int | None
    sizes: tuple[int, ...]
    gpu: int | None = None

    @classmethod
    def of(cls, export: Export) -> "NcuColumns":
        """The columns of a table. Raises InputError."""
        process, kernel, number = export.columns("Process ID", "Kernel Name", "ID")
        has_sizes = export.find("Grid Size") is not None
        return cls(
            process,
            kernel,
            number,
            export.find("Process Name"),
            tuple(export.columns("Grid Size", "Block Size")) if has_sizes else (),
            export.find("Device"),
        )

    def identity(self) -> list[int]:
        """Those that are alike in all rows of a launch."""
        return [self.process, self.number, self.kernel, *self.sizes]

    def all(self) -> list[int | None]:
        """Those that there are, and None."""
        return [*self.identity(), self.program, self.gpu]


class NcuLaunches:
    """The launches of a file: which came before, and what the file says of the GPU."""

    def __init__(self, content: FileContent, columns: NcuColumns, needed: Collection[str]) -> None:
        self.content, self.columns = content, columns
        self.metrics = {*needed, *ALWAYS}
        self._seen: dict[str, NumberSet] = {}

    def of_rows(self, rows: Iterable[Block], measured: list[int]) -> Iterator[LaunchBatch]:
        """Launches of which each has a row for every metric, one below the other.

        measured: the columns of a metric's name, unit and value. Raises InputError.
        """
        for block in rows:
            alike = [block.labels(column).codes for column in self.columns.identity()]
            first, runs = whole_runs(block, runs_of(*alike))
            if len(first):
                metrics, has_rows = self._by_name(
                    block.head(len(runs)), runs, len(first), *measured
                )
                yield self.batch(block.take(first), metrics, has_rows)

    def _by_name(
        self, block: Block, runs: Indices, count: int, metric: int, unit: int, value: int
    ) -> tuple[_Metrics, Mask]:
        """Metrics of launches by raw name, and which launches have any. Raises InputError.

        A metric's value is that of its raw name, else of the first name that sections show.
        """
        names, units = block.labels(metric), block.labels(unit)
        pairs = names.codes * len(units.texts) + units.codes
        parts: dict[tuple[bool, str], list[tuple[Indices, Floats]]] = {}
        cells = Block(block.export, block.lines, {value: block.cells[value]})
        has_rows = np.zeros(count, np.bool_)
        for pair in np.unique(pairs).tolist():
            at_name, at_unit = divmod(pair, len(units.texts))
            name, of_unit = names.texts[at_name], units.texts[at_unit]
            is_raw = name in self.metrics
            raw_name = name if is_raw else _raw_name(name, of_unit)
            if raw_name is None and name != NAME:
                continue
            rows = np.flatnonzero(pairs == pair)
            if raw_name is None:
                self.note_device(cells.take(rows), value)
                continue
            has_rows[runs[rows]] = True
            values = metric_values(cells.take(rows), value, raw_name, of_unit)
            parts.setdefault((is_raw, raw_name), []).append((rows, values))
        metrics: _Metrics = {}
        for is_raw, name in sorted(parts):  # raw names come last
            rows, values = map(np.concatenate, zip(*parts[is_raw, name], strict=True))
            order = np.argsort(rows)
            of_launch, other = by_run(runs[rows[order]], count, values[order])
            if other is not None and is_raw:
                where = block.where(int(rows[order][other]))
                raise InputError(f"{where}: metric '{name}' of its launch has two values")
            before = metrics.get(name, of_launch)
            metrics[name] = np.where(np.isnan(of_launch), before, of_launch)
        return metrics, has_rows

    def batch(
        self, launches: Block, metrics: _Metrics, has_rows: Mask | None = None
    ) -> LaunchBatch:
        """Launches, a row each, with their metrics. Raises InputError where one comes again.

        has_rows: which of them have metrics at all; None says that all have. Where every metric is
        missing the launch has failed, and is dropped.
        """
        numbers = self._numbers(launches)
        has_failed = np.full(len(launches), bool(metrics)) if has_rows is None else has_rows.copy()
        for values in metrics.values():
            has_failed &= np.isnan(values)
        if not self.content.application:
            program = self.columns.program
            named = launches.cells[self.columns.kernel if program is None else program]
            self.content.application = named.text(0)
        workgroups, workgroup_size = self._sizes(launches, metrics, ~has_failed)
        self._note_configuration(metrics)
        time_s = metrics.pop(TIME, np.full(len(launches), np.nan))
        return LaunchBatch(
            launches.lines,
            launches.labels(self.columns.kernel),
            workgroups,
            workgroup_size,
            np.where(has_failed, -np.inf, time_s),
            metrics,
            numbers,
            processes=launches.labels(self.columns.process),
            gpus=None if self.columns.gpu is None else launches.labels(self.columns.gpu),
        )

    def note_device(self, block: Block, column: int) -> None:
        """Count the GPU's name, which stands in a column."""
        codes, texts = block.labels(column)
        for text, count in zip(texts, np.bincount(codes).tolist(), strict=True):
            if text:
                self.content.facts["device_name"][text] += count

    def _numbers(self, launches: Block) -> Wholes:
        """The launches' numbers, of which none came before. Raises InputError."""
        numbers = launches.wholes(self.columns.number, "a launch's number")
        processes = launches.labels(self.columns.process)
        for code, process in enumerate(processes.texts):
            rows = np.flatnonzero(processes.codes == code)
            again = self._seen.setdefault(process, NumberSet()).add_all(numbers[rows])
            if again is not None:
                row = int(rows[again])
                kernel = launches.cells[self.columns.kernel].text(row)
                raise InputError(
                    f"{launches.where(row)}: launch {numbers[row]} of process {process} comes "
                    f"again, here of '{kernel[:60]}'; has the file been joined from several, or "
                    "a row of a launch been damaged?"
                )
        return numbers

    def _sizes(self, launches: Block, metrics: _Metrics, runs: Mask) -> list[Floats]:
        """Workgroups and their size, from columns else metrics; of launches that ran alone."""
        names = ("launch__grid_size", "launch__block_size")
        unknown = np.full(len(launches), np.nan)
        sizes = [metrics.get(name, unknown) for name in names]
        ran = launches if runs.all() else launches.take(np.flatnonzero(runs))
        for i, column in enumerate(self.columns.sizes):
            of_column = np.full(len(launches), np.nan)
            of_column[runs] = ran.by_label(column, parse_product)
            sizes[i] = np.where(np.isnan(of_column), sizes[i], of_column)
        return sizes

    def _note_configuration(self, metrics: _Metrics) -> None:
        """Clocks, by frequency or by cycles in the launch's time, and the number of SMs."""
        unknown = np.full(1, np.nan)
        by_cycles = _first(metrics, *CYCLES) / metrics.get(TIME, unknown)
        engine_hz = _first({**metrics, "": by_cycles}, *ENGINES, "")
        limits_mhz = _first(metrics, *MEMORY_LIMIT) / 1e3
        for fact, values in (
            ("engine_mhz", np.round(engine_hz / 1e6, 3)),
            ("memory_mhz", np.round(_first(metrics, MEMORY) / 1e6, 3)),
            ("memory_limit_mhz", limits_mhz),
            ("cu_count", _first(metrics, *SM_COUNT)),
        ):
            distinct, counts = np.unique(values[values > 0], return_counts=True)
            for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
                self.content.facts[fact][value] += count


def _first(metrics: _Metrics, *names: str) -> Floats:
    """The first of some metrics that a launch has and that is positive; NaN without any."""
    first = np.full(1, np.nan)
    for name in reversed(names):
        if name in metrics:
            first = np.where(metrics[name] > 0, metrics[name], first)
    return first


def _raw_name(name: str, unit: str) -> str | None:
    """The raw name of a metric as sections show it."""
    dimension, _ = parse_unit(unit) or ("", 1.0)
    return SHOWN.get((name, dimension))
