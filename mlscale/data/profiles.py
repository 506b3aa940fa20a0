"""Profiles: measurements of new kernels at one configuration, the base."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.cells import Rows
from mlscale.data.checks import check, check_units
from mlscale.data.column_names import NO_COLUMNS, Columns
from mlscale.data.datasets import input_file
from mlscale.data.grid import AXES, HardwareConfig, config_of
from mlscale.data.table import (
    IDENTITY,
    OF_LAUNCH,
    Table,
    to_samples,
    with_base_clocks,
    with_times,
)
from mlscale.data.table_files import read_table, table_from_frame
from mlscale.errors import InputError, warn
from mlscale.guesses import Guided, written
from mlscale.parameters import parameter
from mlscale.text import counted, did_you_mean, shortened

if TYPE_CHECKING:
    import pandas as pd

QUANTITIES = {"time": "time_ms", "power": "power_w"}
# Columns that `mlscale collect` and `measure` write beside the measurements: how each was made.
CONDITIONS = (
    "cu_count_observed",
    "engine_mhz_requested",
    "engine_mhz_locked",
    "engine_mhz_observed",
    "memory_mhz_requested",
    "memory_mhz_locked",
    "memory_mhz_observed",
    "time_spread_percent",
    "log_time_sd",
    "power_window_s",
    "power_cap_w",
    "hottest_gpu_ratio",
    "temperature_c",
    "throttled",
    "throttle_reasons",
)
# How much of a run a kernel is: its launches, and their time as a trace sums it up [ms].
OF_RUN = ("launches", "total_time_ms")
NO_SETTINGS: Mapping[str, float] = MappingProxyType({})
_OF_CLOCK = re.compile(r"cycles|attribute|GRBM")  # counters that count whatever a kernel does
NOT_COUNTERS = (*IDENTITY, *AXES, *QUANTITIES.values(), *OF_RUN, *CONDITIONS, "gpu_count")


@dataclass(frozen=True, eq=False)
class MeasuredPoint:
    """Time and power of K kernels at a further configuration, NaN if not measured.

    time_ms (K,) [ms]; power_w (K,) [W], None without any; source: where it was read, for messages;
    log_time_sd (K,): standard deviation of log time between repeated runs; None without repeats.
    power_cap_w: the GPU's power limit, the lowest of several [W]; NaN if unknown.
    hottest_gpu_ratio: the power of the GPU nearest to its limit over the mean of all GPUs used;
    if limits differ, its power is scaled to the lowest.
    """

    config: HardwareConfig
    time_ms: Floats
    power_w: Floats | None
    source: str = "a further point"
    log_time_sd: Floats | None = None
    power_cap_w: float = math.nan
    hottest_gpu_ratio: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Profiles(Guided):
    """K kernels at one configuration of one device.

    time_ms (K,) [ms] and power_w (K,) [W] (None if not measured) at the base;
    counters (K, F), a column per name in counter_names, NaN if missing;
    metadata: of the table; points: measurements at further configurations; launches (K,): how
    often each kernel runs in the application, possibly a fraction; None if the table does not
    say; log_time_sd (K,), power_cap_w and hottest_gpu_ratio: as in `MeasuredPoint`; gpu_count:
    how many GPUs ran side by side, power being their sum; are_clocks_asked: whether a file shows
    only requested engine clocks; is_clock_doubted: whether the readings show that the highest
    was not reached.
    """

    device: str
    base: HardwareConfig
    kernels: tuple[str, ...]
    applications: tuple[str, ...]
    time_ms: Floats
    power_w: Floats | None
    counter_names: tuple[str, ...]
    counters: Floats
    metadata: dict[str, Any] = field(default_factory=dict)
    points: tuple[MeasuredPoint, ...] = ()
    launches: Floats | None = None
    log_time_sd: Floats | None = None
    power_cap_w: float = math.nan
    gpu_count: int = 1
    hottest_gpu_ratio: float = 1.0
    are_clocks_asked: bool = False
    is_clock_doubted: bool = False

    @property
    def weights(self) -> Floats:
        """How often each kernel counts in a sum over the run, (K,): its launches, or once."""
        return np.ones(len(self.kernels)) if self.launches is None else self.launches

    @property
    def run_times_ms(self) -> Floats:
        """How long all launches of each kernel take at the base, (K,) [ms]."""
        return self.weights * self.time_ms

    @property
    def counters_cover(self) -> float:
        """The share of the kernels' summed time that those with counters take, 0 to 1."""
        return float(self.run_times_ms[self.has_counters].sum() / self.run_times_ms.sum())

    @property
    def has_counters(self) -> Mask:
        """Which kernels were profiled, (K,): those with any counter; all if no kernel has one.

        The others are known only by their time, from a trace, perhaps with grid and block.
        """
        with_counters = self.with_counters
        return with_counters | (not with_counters.any())

    @property
    def are_times_alone(self) -> bool:
        """Whether no kernel was profiled."""
        return not self.with_counters.any()

    @cached_property
    def with_counters(self) -> Mask:
        """Which kernels have any counter, (K,)."""
        columns = [name not in OF_LAUNCH for name in self.counter_names]
        return np.asarray(np.isfinite(self.counters[:, columns]).any(axis=1))

    @property
    def counted_nothing_ms(self) -> Floats:
        """The times in the run, (K,) [ms], of kernels whose counters of work are all 0; else 0.

        That is the profiler's failure. With one counter, or a further reading, it does not matter.
        """
        tells_work = [
            name not in OF_LAUNCH and not _OF_CLOCK.search(name) for name in self.counter_names
        ]
        values = self.counters[:, tells_work]
        is_zero = (np.nan_to_num(values) == 0).all(axis=1) & (np.isfinite(values).sum(axis=1) > 1)
        return np.where(is_zero & ~self.has_further_time, self.run_times_ms, 0)

    @property
    def has_further_time(self) -> Mask:
        """Which kernels were timed at a further configuration too, (K,)."""
        further = [np.isfinite(point.time_ms) for point in self.points]
        return np.asarray(np.any([np.zeros(len(self.kernels), dtype=bool), *further], axis=0))

    @property
    def factor_sd(self) -> Floats:
        """The deviation of the log of time over the base's at each point (P, K), by repeated runs.

        0 of runs that were not repeated.
        """
        nothing = np.zeros(len(self.kernels))
        told = [self.log_time_sd, *(point.log_time_sd for point in self.points)]
        at_base, *each = (nothing if sd is None else np.nan_to_num(sd) for sd in told)
        return np.array([np.hypot(at_base, sd) for sd in each]).reshape(-1, len(nothing))

    @property
    def profiled(self) -> "Profiles":
        """The profiles of kernels with counters; these profiles themselves if all have some."""
        has_counters = self.has_counters
        return self if has_counters.all() else self.select(np.flatnonzero(has_counters).tolist())

    def __repr__(self) -> str:
        power = "without" if self.power_w is None else "with"
        return (
            f"<Profiles of '{self.device}' at {self.base}: {len(self.kernels)} kernels, "
            f"{len(self.counter_names)} counters, {power} power>"
        )

    def quantity(self, name: str) -> Floats:
        """Return time [ms] or power [W] at the base, (K,). Raises InputError without power."""
        require_quantity(name)
        if name == "time":
            return self.time_ms
        if self.power_w is None:
            raise InputError("the profile has no column 'power_w'; power needs it at the base")
        return self.power_w

    @property
    def base_power_w(self) -> Floats:
        """Power at the base [W], (K,). Raises InputError if a kernel has none."""
        power_w = self.quantity("power")
        if (missing := np.isnan(power_w)).any():
            name = self.kernels[int(missing.argmax())]
            raise InputError(f"kernel '{name}' has no 'power_w' at the base")
        return power_w

    def measured_factors(self, quantity: str) -> list[tuple[HardwareConfig, Floats]]:
        """'time' or 'power' over the base's at each further point (K,), NaN if not measured."""
        column = QUANTITIES[quantity]
        at_base = getattr(self, column)
        measured = [(point.config, getattr(point, column)) for point in self.points]
        if at_base is None:
            return []
        return [(config, values / at_base) for config, values in measured if values is not None]

    def select(self, kernels: Sequence[int] | Indices) -> "Profiles":
        """Return the profiles of some kernels, by position or by a mask (K,)."""
        positions = np.arange(len(self.kernels))[list(kernels)].tolist()

        def chosen(values: Floats | None) -> Floats | None:
            return None if values is None else values[positions]

        return replace(
            self,
            kernels=tuple(self.kernels[k] for k in positions),
            applications=tuple(self.applications[k] for k in positions),
            time_ms=self.time_ms[positions],
            power_w=chosen(self.power_w),
            counters=self.counters[positions],
            launches=chosen(self.launches),
            log_time_sd=chosen(self.log_time_sd),
            points=tuple(
                replace(
                    point,
                    time_ms=point.time_ms[positions],
                    power_w=chosen(point.power_w),
                    log_time_sd=chosen(point.log_time_sd),
                )
                for point in self.points
            ),
        )

    def has_counter(self, name: str) -> bool:
        """Whether there is a counter of that name."""
        return name in self.counter_names

    def counter(self, name: str) -> Floats:
        """Return one counter of every kernel, (K,), NaN if missing."""
        return np.asarray(self.counters[:, self.counter_names.index(name)])

    def optional_counter(self, name: str) -> Floats:
        """One counter of every kernel, (K,), NaN for all if there is no such column."""
        if self.has_counter(name):
            return self.counter(name)
        return np.full(len(self.kernels), np.nan)


def require_quantity(name: str) -> None:
    """Raise InputError if there is no quantity of that name."""
    if name not in QUANTITIES:
        raise InputError(f"there is no quantity '{name}'; one of {', '.join(QUANTITIES)}")


@written("mlscale.read_profiles(path, model.base, model.device)")
def read_profiles(
    path: "Path | str | pd.DataFrame",
    base: Any,
    device: str,
    columns: Columns = NO_COLUMNS,
    snap_clocks: float = 0.0,
) -> Profiles:
    """Read the kernels of a CSV or Parquet profile, or of a data frame, at the base configuration.

    base: a HardwareConfig, or as {'cu': 16, 'engine': 800, 'memory': 700}.
    Rows at other configurations are left out. Several rows of a kernel are repetitions of one
    launch and become their median; how often it runs in the application is in `launches`, and rows
    of different launches are parts of the run, see `Rows`. A table without a device column is
    assumed to be from `device`, one without a setting at the base's. columns: as for `read`.
    snap_clocks [MHz]: clocks this near to the base's become the base's. Raises InputError.

    Example:
        profiles = mlscale.read_profiles("profile.csv", model.base, model.device)
    """
    base = config_of(base)
    if isinstance(path, Mapping):
        raise InputError(
            "a dict is not a profile; make a data frame of it, with kernel and time_ms next to "
            "the counters: pandas.DataFrame([…])"
        )
    if isinstance(path, Path | str):
        table = read_table(input_file(str(path)), ("kernel",), columns)
    else:
        table = table_from_frame(path, ("kernel",), columns=columns)
    return profiles_at(with_base_clocks(table, base.as_dict(), snap_clocks), base, device)


def profiles_at(table: Table, base: HardwareConfig, device: str) -> Profiles:
    """Return the profiles in a tidy table at one configuration. Raises InputError.

    A kernel of two applications is two kernels, called `in_application(application, kernel)`.
    """
    table = with_times(table)
    is_at_base = _is_at_base(table, base, device)
    check_units(table, device)
    names = table.text["kernel"]
    names_at_base = {name for name, here in zip(names, is_at_base, strict=True) if here}
    for name in names:
        if name not in names_at_base:
            raise InputError(
                f"{table.source}: kernel '{name}' has no row at the base {base}; "
                "profile it there, or train a model for the base you have"
            )
    rows = np.flatnonzero(is_at_base)
    in_applications = table.text.get("application", names)
    pairs = [(in_applications[row], names[row]) for row in rows]
    positions = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    times_named = Counter(kernel for _, kernel in positions)
    kernels = [
        kernel if times_named[kernel] == 1 else in_application(application, kernel)
        for application, kernel in positions
    ]
    applications = [application for application, _ in positions]
    kernel_of_row = np.array([positions[pair] for pair in pairs], dtype=np.intp)
    return _profiles(table, base, device, kernels, applications, rows, kernel_of_row)


def profiles_by_row(table: Table, base: HardwareConfig, device: str) -> Profiles:
    """Treat each row of a tidy table as a separate kernel, whatever its name.

    Raises InputError, also on a row that is not at the base.
    """
    if gpu_count_of(table) > 1:
        raise InputError(
            f"{table.source}: has runs on several GPUs; a fleet's rows are of one each"
        )
    elsewhere = np.flatnonzero(~_is_at_base(table, base, device))
    if elsewhere.size:
        raise InputError(
            f"{table.source}: {table.row(int(elsewhere[0]))}: is not at the base {base}; a fleet "
            "has a row for each kernel, all at the base"
        )
    kernels = table.text["kernel"]
    applications = table.text.get("application", kernels)
    each = np.arange(len(table))
    return _profiles(table, base, device, kernels, applications, each, each)


def _is_at_base(table: Table, base: HardwareConfig, device: str) -> Mask:
    """Which rows of a table are at the base, as those are that do not say where they are.

    Raises InputError, also on another device.
    """
    table.require(("kernel", "time_ms"))
    for other in sorted(set(table.text.get("device", [device])) - {device}):
        raise InputError(
            f"{table.source}: is of device '{other}', the model of '{device}'; "
            "train a model for that device"
        )
    is_at_base = np.ones(len(table), dtype=bool)
    for axis in AXES:
        if axis in table.numbers:
            is_at_base &= table.positive(axis) == getattr(base, axis)
    if lacking := [axis for axis in AXES if axis not in table.numbers]:
        told = f"does not give {', '.join(lacking)}: assumed to be profiled at the base {base}"
        warn("L04", f"{table.source}: {told}", "note")
    return is_at_base


def _profiles(
    table: Table,
    base: HardwareConfig,
    device: str,
    kernels: Sequence[str],
    applications: Sequence[str],
    rows: Indices,
    kernel_of_row: Indices,
) -> Profiles:
    """Profiles of kernels and their applications, of some rows of a table. Raises InputError."""

    def samples(values: Floats) -> Floats:
        return to_samples(values[rows], (kernel_of_row,), (len(kernels),))

    launches = launches_of_rows(table)
    made = Rows(samples(table.positive("time_ms")), None if launches is None else samples(launches))
    counter_names = tuple(name for name in table.numbers if name not in NOT_COUNTERS)
    counters = [table.counter(name) for name in counter_names]
    check("columns", table.source, counter_names)
    if launches is None:
        check(
            "repetitions",
            table.source,
            table.select(rows.tolist()),
            kernels,
            (kernel_of_row,),
            made,
        )
    warn_of_parts(table.source, kernels, made)
    power_w = None
    if table.has_values("power_w"):
        power_w = made.power_w(samples(table.positive("power_w")))
    return Profiles(
        device=device,
        base=base,
        kernels=tuple(kernels),
        applications=tuple(applications),
        time_ms=made.time_ms,
        power_w=power_w,
        counter_names=counter_names,
        counters=made.counters(samples(np.column_stack([np.empty((len(table), 0)), *counters]))),
        metadata=dict(table.metadata),
        launches=made.launches,
        log_time_sd=log_time_sd(table, samples),
        power_cap_w=lowest_limit_w(table.source, lowest_caps_w(table, samples)),
        gpu_count=gpu_count_of(table),
        hottest_gpu_ratio=hottest_gpu_ratio_of(table.select(rows.tolist())),
    )


def lowest_caps_w(table: Table, samples: Callable[[Floats], Floats]) -> Floats:
    """The lowest power limit that the rows of each cell state [W], NaN where none does.

    samples: as for `log_time_sd`. Raises InputError.
    """
    name = "power_cap_w"
    is_there = name in table.numbers
    values = table.positive(name, optional=True) if is_there else np.full(len(table), np.nan)
    return np.asarray(np.fmin.reduce(samples(values)))


def lowest_limit_w(source: str, caps_w: Floats) -> float:
    """The lowest of all kernels' or GPUs' power limits (K,) [W]; warns where they differ."""
    lowest_w, highest_w = float(np.fmin.reduce(caps_w)), float(np.fmax.reduce(caps_w))
    if lowest_w < highest_w:
        told = f"ran under power limits of {lowest_w:g} to {highest_w:g} W: the lowest is used"
        warn("P03", f"{source}: {told}", "note")
    return lowest_w


def hottest_gpu_ratio_of(table: Table) -> float:
    """The highest `hottest_gpu_ratio` of its runs, 1 where it does not say. Raises InputError."""
    if not table.has_values("hottest_gpu_ratio"):
        return 1.0
    return float(np.nanmax(table.positive("hottest_gpu_ratio", optional=True)))


def gpu_count_of(table: Table) -> int:
    """How many GPUs its runs worked on side by side: 1 where it does not say. InputError."""
    if not table.has_values("gpu_count"):
        return 1
    counts = np.nan_to_num(table.positive("gpu_count", optional=True), nan=1.0)
    if (counts != counts[0]).any() or counts[0] % 1:
        told = f"{table.source}: column 'gpu_count' has {counts.min():g} and {counts.max():g}"
        raise InputError(f"{told}; a table has runs on one whole number of GPUs")
    return int(counts[0])


def log_time_sd(table: Table, samples: Callable[[Floats], Floats]) -> Floats:
    """The largest deviation that the rows of each cell tell of, NaN where none does.

    samples: makes of a column's rows samples (R, ...). Raises InputError on a negative one.
    """
    name, none = "log_time_sd", np.full(len(table), np.nan)
    is_there = name in table.numbers
    values = table.positive(name, optional=True, or_zero=True) if is_there else none
    return np.asarray(np.fmax.reduce(samples(values)))


def warn_of_parts(source: str, kernels: Sequence[str], rows: Rows) -> None:
    """Warn where rows of one kernel are added up as parts of a run; rows: of cells (K, ...)."""
    cells = np.argwhere(rows.has_parts)
    if rows.launches is not None and len(cells):
        first = tuple(cells[0])
        warn(
            "T02",
            f"{source}: rows of one kernel are added up as parts of one run, in "
            f"{counted(len(cells), 'case')}: '{kernels[first[0]]}' to {rows.launches[first]:g} "
            f"launches of {rows.time_ms[first]:.4g} ms on average; if each is a full run, keep one",
        )


def in_application(application: str, kernel: str) -> str:
    """The name of a kernel if another application has one of the same name."""
    return f"{application}: {kernel}"


def launches_of_rows(table: Table) -> Floats | None:
    """Launches of each row: said, or total_time_ms / time_ms, or once where neither is there.

    None where the table has neither column. Raises InputError on one that is not positive.
    """
    if not any(table.has_values(name) for name in OF_RUN):
        return None
    launches = np.ones(len(table))
    if table.has_values("total_time_ms"):
        ratio = table.positive("total_time_ms", optional=True) / table.positive("time_ms")
        launches = np.where(np.isfinite(ratio), ratio, launches)
    if table.has_values("launches"):
        said = table.positive("launches", optional=True)
        launches = np.where(np.isfinite(said), said, launches)
    return launches


def configurations(table: Table, otherwise: HardwareConfig | None = None) -> list[HardwareConfig]:
    """The configuration of each row of a tidy table. Raises InputError.

    otherwise: whose settings stand for columns that are not there; None requires them all.
    """
    if otherwise is None:
        table.require(AXES)
    columns = [
        table.setting(axis).tolist()
        if axis in table.numbers
        else [getattr(otherwise, axis)] * len(table)
        for axis in AXES
    ]
    rows = list(zip(*columns, strict=True))
    cu_axis = str(table.metadata.get("cu_axis", ""))
    distinct = {row: HardwareConfig(int(row[0]), *row[1:], cu_axis=cu_axis) for row in set(rows)}
    return [distinct[row] for row in rows]


def only_config(table: Table) -> HardwareConfig:
    """The configuration of all rows. Raises InputError where there are several."""
    configs = set(configurations(table))
    if len(configs) != 1:
        raise InputError(
            f"{table.source}: has rows at {len(configs)} configurations; say with "
            f"{parameter('base')} which is the base"
        )
    return configs.pop()


def highest_config(
    table: Table,
    said: Mapping[str, float],
    kernels: Collection[str] = (),
    otherwise: HardwareConfig | None = None,
) -> HardwareConfig | None:
    """The highest configuration at which a table has all its kernels, or the nearest to `said`.

    said: some or all of AXES. kernels: names that it must have there too. otherwise: as for
    `configurations`. None where it has none. Raises InputError.
    """
    table.require(("kernel",))
    there: dict[HardwareConfig, set[str]] = {}
    for name, config in zip(table.text["kernel"], configurations(table, otherwise), strict=True):
        there.setdefault(config, set()).add(name)
    wanted = {*kernels, *table.text["kernel"]}
    having = [config for config, found in there.items() if found >= wanted]
    return max(having, key=lambda config: height(config, said), default=None)


def height(config: HardwareConfig, said: Mapping[str, float] = NO_SETTINGS) -> tuple[float, ...]:
    """What is larger of the reading that is the base: the nearest to `said`, then the highest."""
    off = sum(abs(math.log(getattr(config, axis) / value)) for axis, value in said.items())
    return -off, config.engine_mhz, config.memory_mhz, config.cu_count


def with_weights(profiles: Profiles, path: Path | str) -> Profiles:
    """The profiles with the launches of a table, columns `kernel` and `launches`.

    Kernels that the table does not name keep theirs; a kernel of 0 launches does not run in the
    application, and is left out. Raises InputError on a kernel that the profile does not have,
    or that has two rows, on launches that are not given or negative, and where no kernel is left.
    """
    table = read_table(path)
    table.require(("kernel", "launches"))
    new = table.positive("launches", or_zero=True)
    launches, seen = profiles.weights.copy(), set()
    positions = {kernel: k for k, kernel in enumerate(profiles.kernels)}
    for row, name in enumerate(table.text["kernel"]):
        where = f"{path}: {table.row(row)}, column 'kernel'"
        if name in seen:
            raise InputError(f"{where}: a second row for '{shortened(name)}'; give each kernel one")
        if name not in positions:
            hint = did_you_mean(name, profiles.kernels)
            raise InputError(f"{where}: the profile has no kernel '{shortened(name)}'{hint}")
        seen.add(name)
        launches[positions[name]] = new[row]
    running = np.flatnonzero(launches)
    if not running.size:
        raise InputError(f"{path}: every kernel has 0 launches; at least one must run")
    weighted = replace(profiles, launches=launches)
    return weighted if running.size == len(launches) else weighted.select(running)


# Names that NCCL, RCCL, MSCCL++, NVSHMEM, vLLM, TensorRT-LLM and torch give, in lower case.
_EXCHANGES = re.compile(
    r"(nccl|rccl|msccl)[a-z]*kernel|nvshmem|cross_device_reduce|multimem_all_reduce"
    r"|(one|two)_?shot_?all_?reduce|all_?reduce_?(one|two)_?shot|allreduce_(fusion|prototype)"
)


def is_exchange(kernel: str) -> bool:
    """Whether a kernel exchanges data between GPUs, by its name: it waits for links and others."""
    name = kernel.lower()
    may_match = "ccl" in name or "nvshmem" in name or "reduce" in name  # much quicker to tell
    return may_match and bool(_EXCHANGES.search(name))
