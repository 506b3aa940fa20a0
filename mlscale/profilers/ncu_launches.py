"""Launches of Nsight Compute, whatever page they stand on: metrics taken one by one."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from mlscale.errors import InputError
from mlscale.profilers.launches import FileContent, LaunchRecord, NumberSet
from mlscale.profilers.ncu_metrics import (
    ALWAYS,
    CYCLES,
    ENGINES,
    MEMORY,
    MEMORY_LIMIT,
    NAME,
    SHOWN,
    SM_COUNT,
    TIME,
    metric_value,
    parse_unit,
)
from mlscale.profilers.reader import Export
from mlscale.profilers.values import is_whole, parse_triple

_SHOWN_NAMES = {name for name, _ in SHOWN}


class LaunchIdentity(NamedTuple):
    """What a page says of a launch beside its metrics; grid and block as '(98, 1, 1)'."""

    process: str
    number: str
    kernel: str
    grid: str | None
    block: str | None
    invocations: str = "1"


@dataclass
class NcuLaunch:
    """A launch as far as it is read: metrics by raw name, and by a name that sections show."""

    identity: LaunchIdentity
    line: int
    raw: dict[str, float] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)


class NcuLaunches:
    """The launches of a file: which came before, and what the file says of the GPU."""

    def __init__(self, export: Export, content: FileContent, needed: Collection[str]) -> None:
        self.export, self.content = export, content
        self.metrics = {*needed, *ALWAYS}
        self._seen: dict[str, NumberSet] = {}

    def begin(self, line: int, identity: LaunchIdentity, program: str) -> NcuLaunch:
        """A launch that has not come before. Raises InputError."""
        if not is_whole(identity.number):
            where = self.export.where(line, "ID")
            raise InputError(f"{where}: '{identity.number[:40]}' is not a launch's number")
        if not self._seen.setdefault(identity.process, NumberSet()).add(int(identity.number)):
            raise InputError(
                f"{self.export.where(line)}: launch {identity.number} of process "
                f"{identity.process} comes again; has the file been joined from several?"
            )
        self.content.application = self.content.application or program
        return NcuLaunch(identity, line)

    def take(self, launch: NcuLaunch, line: int, metric: str, unit: str, text: str) -> None:
        """Take a metric by its raw name, or the one that sections show.

        Raises InputError where a raw name has two values.
        """
        if metric in self.metrics:
            value = metric_value(self.export.where(line), metric, unit, text)
            before = launch.raw.setdefault(metric, value)
            if before != value and not (math.isnan(before) and math.isnan(value)):
                raise InputError(
                    f"{self.export.where(line)}: metric '{metric}' of launch "
                    f"{launch.identity.number} has two values"
                )
        elif metric in _SHOWN_NAMES:
            dimension, _ = parse_unit(unit) or ("", 1.0)
            if (raw_name := SHOWN.get((metric, dimension))) is not None:
                value = metric_value(self.export.where(line), raw_name, unit, text)
                launch.shown.setdefault(raw_name, value)
        elif metric == NAME and text:
            self.content.facts["device_name"][text] += 1

    def finish(self, launch: NcuLaunch) -> LaunchRecord:
        """What is read of a launch; its time is NaN where every metric is. Raises InputError."""
        identity, metrics = launch.identity, {**launch.shown, **launch.raw}
        has_failed = bool(metrics) and all(math.isnan(value) for value in metrics.values())
        workgroups = workgroup_size = None
        if identity.grid is not None and identity.block is not None and not has_failed:
            where = self.export.where
            grid = parse_triple(identity.grid, where(launch.line, "Grid Size"))
            block = parse_triple(identity.block, where(launch.line, "Block Size"))
            workgroups, workgroup_size = float(math.prod(grid)), float(math.prod(block))
        self._note_configuration(metrics)
        time_s = metrics.pop(TIME, math.nan)
        return LaunchRecord(
            line=launch.line,
            kernel=identity.kernel,
            launch=f"{identity.process}:{identity.number}",
            workgroups=workgroups or metrics.get("launch__grid_size"),
            workgroup_size=workgroup_size or metrics.get("launch__block_size"),
            time_s=None if math.isnan(time_s) and not has_failed else time_s,
            counters=metrics,
            weight=int(identity.invocations),
        )

    def _note_configuration(self, metrics: dict[str, float]) -> None:
        """Clocks, by frequency or by cycles in the launch's time, and the number of SMs."""
        cycles = next((metrics[name] for name in CYCLES if metrics.get(name, 0) > 0), math.nan)
        by_cycles = cycles / (metrics.get(TIME) or math.nan)
        clocks = {
            "engine_mhz": next((metrics[name] for name in ENGINES if name in metrics), by_cycles),
            "memory_mhz": metrics.get(MEMORY, math.nan),
        }
        for fact, hertz in clocks.items():
            if hertz > 0:
                self.content.facts[fact][round(hertz / 1e6, 3)] += 1
        limits = [metrics[name] / 1e3 for name in MEMORY_LIMIT if metrics.get(name, 0) > 0]
        if limits:
            self.content.facts["memory_limit_mhz"][limits[0]] += 1
        counts = [metrics[metric] for metric in SM_COUNT if metrics.get(metric, 0) > 0]
        if counts:
            self.content.facts["cu_count"][counts[0]] += 1
