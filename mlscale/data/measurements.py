"""Measurements: kernels x grid -> time, power and counters, of one device."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.cells import Aggregate, Rows, complete_part, filled
from mlscale.data.checks import check, check_units
from mlscale.data.column_names import NO_COLUMNS, Columns
from mlscale.data.datasets import input_file
from mlscale.data.devices import register_facts
from mlscale.data.grid import AXES, Base, ConfigGrid, HardwareConfig
from mlscale.data.predicates import lacking_configurations
from mlscale.data.profiles import (
    NOT_COUNTERS,
    QUANTITIES,
    Profiles,
    in_application,
    launches_of_rows,
    require_quantity,
    warn_of_parts,
)
from mlscale.data.surfaces import relative_values
from mlscale.data.table import (
    IDENTITY,
    NO_TIMES,
    OF_LAUNCH,
    Table,
    to_samples,
    with_cu_counts,
    with_snapped_clocks,
    with_times,
)
from mlscale.data.table_files import read_table, table_from_frame, write_table
from mlscale.errors import InputError, extra_named, warn
from mlscale.guesses import Guided
from mlscale.parameters import parameter
from mlscale.text import counted, listed

if TYPE_CHECKING:
    import pandas as pd

Incomplete = Literal["error", "drop", "drop-settings", "keep"]

AGGREGATES: tuple[str, ...] = get_args(Aggregate)
INCOMPLETE: tuple[str, ...] = get_args(Incomplete)
REQUIRED = (*IDENTITY, *AXES, "time_ms")
_VARIANT = re.compile(r"(.*?[^\W\d_]{2}.*?)[\W_]*\d+")  # a name that ends in a number
_NO_LETTERS, _NO_NAMES = re.compile(r"[\W\d_]+"), {"kernel"}  # the latter are of any program


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(Guided):
    """K kernels of one device, measured at the configurations of a grid, or at some of them.

    The samples keep the repetitions: time_samples (R, K, C, E, M) [ms], power_samples likewise
    [W] or None, counter_samples (R, K, C, E, M, F); where a cell was measured fewer than R
    times the rest is NaN, and all of it where it was not, see `measured`. `aggregate` names how
    repetitions become one number: 'median', 'mean' or 'min', the quickest's time and power;
    counters take the mean with 'mean', else the median.
    launch_samples (R, K, C, E, M): how often the kernel runs in the application, None where the
    table does not say; advice on a whole run counts by them, and rows of unlike launches are parts
    of a run, see `Rows`.
    """

    device: str
    grid: ConfigGrid
    kernels: tuple[str, ...]
    applications: tuple[str, ...]
    time_samples: Floats
    power_samples: Floats | None
    counter_names: tuple[str, ...]
    counter_samples: Floats
    metadata: dict[str, Any] = field(default_factory=dict)
    aggregate: Aggregate = "median"
    launch_samples: Floats | None = None

    def __repr__(self) -> str:
        power = "without" if self.power_samples is None else "with"
        return (
            f"<Measurements of '{self.device}': {len(self.kernels)} kernels of "
            f"{len(set(self.applications))} applications, {self.grid.text}, "
            f"{len(self.counter_names)} counters, {power} power>"
        )

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        device: str | None = None,
        incomplete: Incomplete = "error",
        aggregate: Aggregate = "median",
        metadata: dict[str, Any] | None = None,
        columns: Columns = NO_COLUMNS,
        snap_clocks: float = 0.0,
    ) -> "Measurements":
        """Convert a pandas DataFrame with the columns of the tidy table.

        device: if the frame has no such column, or an unknown GPU's name in it.
        incomplete, aggregate, columns, snap_clocks: as for `read`. metadata: what a .meta.json file
        would contain, such as the metadata of the measurements that a frame was made from. Raises
        InputError, naming row and column.

        Example:
            data = mlscale.Measurements.from_frame(frame, device="gtx980")
        """
        register_facts(metadata or {}, "metadata")
        table = table_from_frame(frame, REQUIRED, device, columns)
        table.metadata.update(metadata or {})
        return from_table(table, incomplete, aggregate, snap_clocks)

    @cached_property
    def rows(self) -> Rows:
        """The repetitions, and parts of a run, of each kernel at each configuration."""
        return Rows(self.time_samples, self.launch_samples, self.aggregate)

    @cached_property
    def measured(self) -> Mask:
        """Which kernel was measured at which configuration, (K, C, E, M)."""
        return np.asarray(~np.isnan(self.time_samples).all(axis=0))

    @cached_property
    def time_ms(self) -> Floats:
        """Kernel time (K, C, E, M) [ms]; cells not measured are filled in, see `filled`."""
        return self._complete(self.rows.time_ms)

    @cached_property
    def power_w(self) -> Floats | None:
        """Power [W] likewise; None if no row has it, InputError if only some do."""
        if self.power_samples is None:
            return None
        power_w = self.rows.power_w(self.power_samples)
        if (lacking := np.argwhere(self.measured & np.isnan(power_w))).size:
            k, *at = lacking[0].tolist()
            raise InputError(
                f"the table of '{self.device}' has no 'power_w' of kernel '{self.kernels[k]}' at "
                f"{self.grid.config(at)} ({counted(len(lacking), 'case')} in all): leave out the "
                f"rows without it, or train on time only, {parameter('quantity', 'time')}"
            )
        return self._complete(power_w)

    def _complete(self, values: Floats) -> Floats:
        return values if self.measured.all() else filled(values, self.grid)

    @cached_property
    def counters(self) -> Floats:
        """Counters (K, C, E, M, F), NaN where missing."""
        return self.rows.counters(self.counter_samples)

    def quantity(self, name: str) -> Floats:
        """Return 'time' [ms] or 'power' [W], (K, C, E, M). Raises InputError without it."""
        require_quantity(name)
        if name not in self.quantities:
            column = QUANTITIES[name]
            raise InputError(f"the measurements of '{self.device}' have no column '{column}'")
        power_w = self.power_w if name == "power" else None
        return self.time_ms if power_w is None else power_w

    @property
    def quantities(self) -> tuple[str, ...]:
        """What was measured: 'time', 'power' or both."""
        has_power = self.power_samples is not None
        measured = {"time": not self.metadata.get(NO_TIMES), "power": has_power}
        return tuple(name for name, is_measured in measured.items() if is_measured)

    def relative(self, name: str, base: Base) -> Floats:
        """Return each kernel's surface: 'time' or 'power' divided by its value at the base.

        base: a configuration of the grid, its index (c, e, m), or a text such as 'mid'. The shape
        is (K, C, E, M), the value at the base is 1. Raises InputError if power is missing or the
        base is not on the grid.
        """
        return relative_values(self.quantity(name), self.grid.index(base))

    def measured_relative(self, name: str, base: Base) -> Floats:
        """Return `relative`, NaN where a kernel was not measured: the truth for predictions."""
        return np.where(self.measured, self.relative(name, base), np.nan)

    def log_ratios(self, name: str, base: Base) -> Floats:
        """Return the logarithms of `relative`, (K, N), in the order of the grid."""
        return np.log(self.relative(name, base)).reshape(len(self.kernels), -1)

    def profiles(self, base: Base) -> Profiles:
        """Return what profiling every kernel once at the base would give.

        Raises InputError, also if a kernel was not measured there, see `with_base`.
        """
        c, e, m = self.grid.index(base)
        if not self.measured[:, c, e, m].all():
            at = self.grid.config(base)
            raise InputError(f"not all kernels were measured at the base {at}; see with_base")
        power_w, launches = None, self.rows.launches
        with suppress(InputError):  # where some kernel was measured without power, none has any
            power_w = self.power_w
        return Profiles(
            device=self.device,
            base=self.grid.config(base),
            kernels=self.kernels,
            applications=self.applications,
            time_ms=self.time_ms[:, c, e, m],
            power_w=None if power_w is None else power_w[:, c, e, m],
            counter_names=self.counter_names,
            counters=self.counters[:, c, e, m],
            metadata={NO_TIMES: True} if self.metadata.get(NO_TIMES) else {},
            launches=None if launches is None else launches[:, c, e, m],
        )

    @property
    def usual(self) -> HardwareConfig:
        """The base if none is given: the highest setting.

        If that is missing from the table, the nearest to it at which at least half as many kernels
        were measured as at any other.
        """
        counts = np.asarray(self.measured.sum(axis=0)).ravel()
        settings, top = self.grid.settings(), self.grid.highest.as_dict()
        away = sum(np.log(top[axis] / settings[axis]) for axis in AXES)
        best = np.where(2 * counts >= counts.max(), away, np.inf)
        return list(self.grid)[int(best.argmin())]

    def base(self, asked: Base | None) -> HardwareConfig:
        """The base requested, see `ConfigGrid.config`; None for the `usual` one."""
        return self.usual if asked is None else self.grid.config(asked)

    @property
    def unmeasured(self) -> list[HardwareConfig]:
        """The configurations that no kernel was measured at."""
        is_measured = np.asarray(self.measured.any(axis=0))
        return [config for config in self.grid if not is_measured[self.grid.index(config)]]

    def with_base(self, base: Base) -> "Measurements":
        """The kernels that were measured at the base and elsewhere; a warning names the others.

        Raises InputError if there is none, or the base is not on the grid.
        """
        at_base = self.measured[:, *self.grid.index(base)]
        is_known = at_base & (self.measured.sum(axis=(1, 2, 3)) >= min(2, self.grid.size))
        if is_known.all():
            return self
        at = self.grid.config(base)
        if not is_known.any():
            raise InputError(
                f"no kernel of '{self.device}' was measured at the base {at} and elsewhere; choose "
                f"another, such as {self.usual}"
            )
        others = listed([f"'{self.kernels[k]}'" for k in np.flatnonzero(~is_known)])
        warn("T01", f"left out, as not measured at the base {at}, or only there: {others}")
        return self.select(is_known)

    def select(self, kernels: Sequence[int] | Indices) -> "Measurements":
        """Return the measurements of some kernels, by position or by a mask (K,)."""
        positions = np.arange(len(self.kernels))[list(kernels)].tolist()
        return replace(
            self._cut((slice(None), positions)),
            kernels=tuple(self.kernels[k] for k in positions),
            applications=tuple(self.applications[k] for k in positions),
        )

    @cached_property
    def in_order(self) -> "Measurements":
        """The same, kernels sorted by application and name, counters by name, not as in a file.

        So a trained model does not depend on the order of rows and columns.
        """
        names = list(zip(self.applications, self.kernels, strict=True))
        kernels = sorted(range(len(names)), key=names.__getitem__)
        counters = sorted(range(len(self.counter_names)), key=self.counter_names.__getitem__)
        if kernels == sorted(kernels) and counters == sorted(counters):
            return self
        return replace(
            self.select(kernels),
            counter_names=tuple(self.counter_names[f] for f in counters),
            counter_samples=self.counter_samples[:, kernels][..., counters],
        )

    def at_steps(self, axis: str, kept: slice) -> "Measurements":
        """Return the measurements at some steps of an axis, `engine_mhz` for example."""
        cut = (slice(None),) * (2 + AXES.index(axis)) + (kept,)
        grid = replace(self.grid, **{axis: getattr(self.grid, axis)[kept]})
        return replace(self._cut(cut), grid=grid)

    def _cut(self, cut: tuple[Any, ...]) -> "Measurements":
        """The same with a part of all samples alone, which the other fields do not follow yet."""
        samples = ("time_samples", "power_samples", "counter_samples", "launch_samples")
        given = {name: values for name in samples if (values := getattr(self, name)) is not None}
        return replace(self, **{name: values[cut] for name, values in given.items()})

    def without_counters(self, names: Collection[str]) -> "Measurements":
        """Return the measurements without the named counters."""
        others = [f for f, name in enumerate(self.counter_names) if name not in names]
        return replace(
            self,
            counter_names=tuple(self.counter_names[f] for f in others),
            counter_samples=self.counter_samples[..., others],
        )

    def to_table(self) -> Table:
        """Make the tidy table: a row for each kernel, configuration and repetition."""
        by_row = np.moveaxis(~np.isnan(self.time_samples), 0, -1)
        kernel, c, e, m, _ = np.nonzero(by_row)
        numbers = {
            "cu_count": np.array(self.grid.cu_count, dtype=np.float64)[c],
            "engine_mhz": np.array(self.grid.engine_mhz)[e],
            "memory_mhz": np.array(self.grid.memory_mhz)[m],
            "time_ms": np.moveaxis(self.time_samples, 0, -1)[by_row],
        }
        if self.power_samples is not None:
            numbers["power_w"] = np.moveaxis(self.power_samples, 0, -1)[by_row]
        if self.launch_samples is not None:
            numbers["launches"] = np.moveaxis(self.launch_samples, 0, -1)[by_row]
        counters = np.moveaxis(self.counter_samples, 0, -2)[by_row]
        numbers |= dict(zip(self.counter_names, counters.T, strict=True))
        text = {
            "device": [self.device] * len(kernel),
            "application": [self.applications[k] for k in kernel],
            "kernel": [self.kernels[k] for k in kernel],
        }
        return Table(self.device, text, numbers, self.metadata)

    @extra_named("'to_frame'")
    def to_frame(self) -> "pd.DataFrame":
        """Return the tidy table as a pandas DataFrame, without the metadata."""
        import pandas as pd

        table = self.to_table()
        return pd.DataFrame({**table.text, **table.numbers})

    def write(self, path: Path | str) -> None:
        """Write the tidy table, CSV or (by its suffix) Parquet. Raises InputError."""
        write_table(self.to_table(), path)


def read(
    path: "Path | str | pd.DataFrame | Measurements",
    incomplete: Incomplete = "error",
    aggregate: Aggregate = "median",
    columns: Columns = NO_COLUMNS,
    snap_clocks: float = 0.0,
) -> Measurements:
    """Read a tidy table from CSV, Parquet or a pandas DataFrame; measurements stay as they are.

    incomplete: what to do if a kernel lacks configurations that others have: 'error', 'drop'
    such kernels, 'drop-settings' until the rest is complete, or 'keep' what was measured; the
    last three warn. aggregate: how repetitions become one number, 'median', 'mean' or 'min'.
    columns: by our names the name of a column in the file, with its unit if that differs, or a
    number for all rows. snap_clocks [MHz]: clocks this near to each other become one. A table
    without CU counts has all of its GPU's; one with only power has no times. Raises InputError,
    naming file, row, column and fix.

    Example:
        data = mlscale.read("table.parquet", columns={"time_ms": "duration_ns:ns", "cu_count": 28})
    """
    if isinstance(path, Measurements):
        return path
    if isinstance(path, str | Path):
        table = read_table(input_file(str(path)), REQUIRED, columns)
        return from_table(table, incomplete, aggregate, snap_clocks)
    return Measurements.from_frame(
        path, None, incomplete, aggregate, columns=columns, snap_clocks=snap_clocks
    )


def from_table(
    table: Table,
    incomplete: Incomplete = "error",
    aggregate: Aggregate = "median",
    snap_clocks: float = 0.0,
) -> Measurements:
    """Return the measurements in a tidy table. Raises InputError and warns like `read`."""
    for choice, choices in ((incomplete, INCOMPLETE), (aggregate, AGGREGATES)):
        if choice not in choices:
            raise InputError(f"'{choice}' is not a choice; use one of {', '.join(choices)}")
    table = with_times(with_cu_counts(table))
    table.require(REQUIRED)
    table = _with_clocks(table)
    device = _only_device(table)
    check_units(table, device)
    applications = _application_of_kernels(table)
    table = with_snapped_clocks(table, snap_clocks)
    grid, cells = _cells(table)
    kernels, kernel_of_row = table.numbered("kernel")
    where, shape = (kernel_of_row, *cells), (len(kernels), *grid.shape)
    counts = np.zeros(shape, dtype=np.intp)
    np.add.at(counts, where, 1)
    if (kept := _kept_rows(table, incomplete, kernels, grid, counts, where)) is not None:
        return from_table(table.select(kept.tolist()), "keep", aggregate)
    powers = table.positive("power_w", optional=True) if table.has_values("power_w") else None
    launches = launches_of_rows(table)
    time_samples = to_samples(table.positive("time_ms"), where, shape)
    counter_names = tuple(name for name in table.numbers if name not in NOT_COUNTERS)
    counters = np.empty((len(table), len(counter_names)))
    for position, name in enumerate(counter_names):
        counters[:, position] = table.counter(name)
    measurements = Measurements(
        device=device,
        grid=grid,
        kernels=kernels,
        applications=applications,
        time_samples=time_samples,
        power_samples=None if powers is None else to_samples(powers, where, shape),
        counter_names=counter_names,
        counter_samples=to_samples(counters, where, shape),
        metadata=dict(table.metadata),
        aggregate=aggregate,
        launch_samples=None if launches is None else to_samples(launches, where, shape),
    )
    rows = measurements.rows
    check("repetitions", table.source, table, kernels, where, rows)
    check("launches", table.source, table, kernels, where)
    warn_of_parts(table.source, kernels, rows)
    counters_alone = [name for name in counter_names if name not in OF_LAUNCH]
    measured_ms = np.where(measurements.measured, measurements.time_ms, np.nan)
    check("times", table.source, kernels, grid, measured_ms)
    check("shared times", table.source, kernels, applications, measured_ms)
    _warn_of_variants(table.source, kernels, applications)
    check("columns", table.source, counters_alone, table, where)
    check("counters", table.source, table, counters_alone, kernels)
    return measurements


def _kept_rows(
    table: Table,
    incomplete: Incomplete,
    kernels: tuple[str, ...],
    grid: ConfigGrid,
    counts: Indices,
    where: tuple[Indices, ...],
) -> Indices | None:
    """Which rows are left where kernels lack what others have; None for all.

    counts: rows of each cell (K, C, E, M). where: the cell of each row. Raises InputError where
    that is refused; warns of what is left out, and of what will be filled in.
    """
    measured = counts > 0
    somewhere = measured.any(axis=0)
    whole = np.flatnonzero((measured | ~somewhere).all(axis=(1, 2, 3)))
    if incomplete == "error" or (incomplete == "drop" and not whole.size):
        check("grid", table.source, table, kernels, grid, counts)
    lacking, told = lacking_configurations(table, kernels, grid, counts), ""
    if lacking:
        told = "{count} of {total} kernels lack configurations: {lacking}; ".format(**lacking)
    if lacking is None or incomplete == "keep":
        if told:
            told += "these are filled in along the axes, and errors count only what was measured"
            warn("T01", f"{table.source}: {told}")
        if not somewhere.all():
            has = f"{int(somewhere.sum())} of the {grid.size} configurations of its grid"
            warn("T01", f"{table.source}: has {has}, which are what models learn and predict")
        return None
    kept = [whole, *map(np.arange, grid.shape)]
    told += "dropped"
    if incomplete == "drop":
        told += f"; left are {counted(whole.size, 'kernel')}"
    else:
        kept = complete_part(measured)
        names = (kernels, *([f"{a} {step:g}" for step in steps] for a, steps in grid.steps.items()))
        gone = (np.delete(name, left) for name, left in zip(names, kept, strict=True))
        told += f" {', '.join(np.concatenate([*gone]))}; left are {lacking['settings']}"
    warn("T01", f"{table.source}: {told}")
    pairs = zip(where, kept, strict=True)
    return np.flatnonzero(np.all([np.isin(places, left) for places, left in pairs], axis=0))


def _with_clocks(table: Table) -> Table:
    """The rows that say both clocks, or all if none does; warns of others, such as at 'auto'."""
    lacking = np.isnan(table.numbers["engine_mhz"]) | np.isnan(table.numbers["memory_mhz"])
    if not lacking.any() or lacking.all():
        return table
    first = table.row(int(lacking.argmax()))
    told = f"{counted(int(lacking.sum()), 'row')} without a clock left out, the first is {first}"
    warn("T09", f"{table.source}: {told}")
    return table.select(np.flatnonzero(~lacking).tolist())


def _only_device(table: Table) -> str:
    """The device of all rows. Raises InputError where they are of several."""
    devices = sorted(set(table.text["device"]))
    if len(devices) > 1:
        raise InputError(
            f"{table.source}: holds the devices {', '.join(devices)}; make one table for each"
        )
    return devices[0]


def _application_of_kernels(table: Table) -> tuple[str, ...]:
    """Each kernel's application, kernels in order of appearance. Raises InputError."""
    applications: dict[str, str] = {}
    pairs = zip(table.text["kernel"], table.text["application"], strict=True)
    for row, (kernel, application) in enumerate(pairs):
        if applications.setdefault(kernel, application) != application:
            raise InputError(
                f"{table.cell(row, 'application')}: kernel '{kernel}' is of "
                f"'{applications[kernel]}' above and of '{application}' here; give each its own "
                f"name, such as '{in_application(application, kernel)}'"
            )
    return tuple(applications.values())


def _warn_of_variants(source: str, kernels: Sequence[str], applications: Sequence[str]) -> None:
    """Warn where kernels differ in the number at their end alone, and applications in numbers."""
    by_names: dict[tuple[str, str], dict[str, str]] = {}
    for name, application in zip(kernels, applications, strict=True):
        if (variant := _VARIANT.fullmatch(name)) and variant[1].casefold() not in _NO_NAMES:
            names = variant[1].casefold(), _NO_LETTERS.sub("", application).casefold()
            by_names.setdefault(names, {}).setdefault(application, name)
    alike = [[*names.values()] for names in by_names.values() if len(names) > 1]
    if alike:
        told = "; ".join(", ".join(f"'{name}'" for name in names[:3]) for names in alike[:3])
        stem = _VARIANT.sub(r"\1", alike[0][0])
        warn(
            "T08",
            f"{source}: {counted(sum(map(len, alike)), 'kernel')} may be variants of few "
            f"programs, such as {told}, and each is of its own application: a fold may train on "
            "one and test another; give variants one name in the column 'application', such as "
            f"'{stem}'",
        )


def _cells(table: Table) -> tuple[ConfigGrid, tuple[Indices, ...]]:
    """The grid that the rows span, and each row's index along the three axes."""
    steps, cells = [], []
    for axis in AXES:
        distinct, index = np.unique(table.setting(axis), return_inverse=True)
        steps.append(tuple(distinct.tolist()))
        cells.append(index)
    cu_count = tuple(int(step) for step in steps[0])
    cu_axis = str(table.metadata.get("cu_axis", ""))
    return ConfigGrid(cu_count, steps[1], steps[2], cu_axis=cu_axis), tuple(cells)
