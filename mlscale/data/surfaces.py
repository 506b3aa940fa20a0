"""Surfaces: time or power of kernels over the grid, relative to the base.

Between the steps of the grid they are interpolated; beyond the grid that they were measured on they
are carried, with wider intervals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import (
    AXES,
    ENDS,
    ConfigGrid,
    HardwareConfig,
    Index,
    format_steps,
    step_weights,
)
from mlscale.errors import InputError, extra_named
from mlscale.notes import Note
from mlscale.parameters import parameter

if TYPE_CHECKING:
    import pandas as pd

Power = TypeVar("Power", Floats, Floats | None)

BOUNDED = Note(
    "R07",
    "measured at one clock only: time lies between unchanged and in proportion to the clock",
    "warning",
)
BOUNDED_BY_COUNT = Note(
    "R07",
    "measured at one CU count only: time lies between unchanged and in proportion to the CUs",
    "warning",
)
BOUNDS = frozenset({BOUNDED, BOUNDED_BY_COUNT})
WIDENING = 2.0  # an interval's half-width grows so, per unit of the log beyond the training
KNEE = 2.0  # how much faster power may rise with a clock from where its voltage begins to rise


@dataclass(frozen=True, eq=False, repr=False)
class Surfaces:
    """Predicted factors of K kernels: quantity / its value at the base.

    values (K, C, E, M), 1 at the base; low and high, of the same shape, if the predictor
    gives intervals. flags: for each kernel what a reader should know about its prediction, such
    as a feature outside the training range; () if there are none.
    """

    grid: ConfigGrid
    base: HardwareConfig
    values: Floats
    flags: tuple[tuple[Note, ...], ...] = ()
    low: Floats | None = None
    high: Floats | None = None

    def __post_init__(self) -> None:
        if not self.flags:
            object.__setattr__(self, "flags", ((),) * len(self.values))

    @classmethod
    def from_log_ratios(
        cls,
        grid: ConfigGrid,
        base: HardwareConfig,
        logs: Floats,
        flags: tuple[tuple[Note, ...], ...] = (),
        ends: Sequence[Floats] = (),
    ) -> Self:
        """Return surfaces from log ratios (K, N); ends: low and high log ratios, if any."""
        with np.errstate(over="ignore"):  # who predicts refuses what is not finite
            factors = [np.exp(values).reshape(-1, *grid.shape) for values in (logs, *ends)]
        return cls(grid, base, factors[0], flags, *factors[1:])

    def __repr__(self) -> str:
        intervals = "" if self.low is None else ", with intervals"
        return (
            f"<Surfaces of {len(self.values)} kernels on {self.grid.text}, relative to "
            f"{self.base}{intervals}>"
        )

    @property
    def is_bounded(self) -> bool:
        """Whether kernels were measured at only one clock or count: their ends are bounds."""
        return any(BOUNDS.intersection(flags) for flags in self.flags)

    def holds(self, measured: Floats) -> Mask | None:
        """Where the intervals contain measured factors (K, C, E, M); None without intervals."""
        if self.low is None or self.high is None:
            return None
        return np.asarray((self.low <= measured) & (measured <= self.high))

    @extra_named("'to_frame'")
    def to_frame(self, kernels: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return a DataFrame with a row for each kernel and configuration.

        Its columns are `kernel` (the name, or the position if no names are given), the three
        settings, `factor`, and, with intervals, `low` and `high`.
        """
        import pandas as pd

        count = len(self.values)
        names = range(count) if kernels is None else kernels
        columns = {"kernel": np.repeat(np.asarray(names), self.grid.size)}
        columns |= {axis: np.tile(steps, count) for axis, steps in self.grid.settings().items()}
        for name, factors in (("factor", self.values), ("low", self.low), ("high", self.high)):
            if factors is not None:
                columns[name] = factors.ravel()
        return pd.DataFrame(columns)

    def absolute(self, at_base: Floats, added: float = 0.0) -> Self:
        """Return them, with their ends, times each kernel's value at the base (K,), in its unit.

        added: is added to each of the values, in that unit.
        """
        with np.errstate(over="ignore"):
            values = absolute_values(self.values, at_base) + added
            low, high = (
                None if end is None else absolute_values(end, at_base) + added
                for end in (self.low, self.high)
            )
        return replace(self, values=values, low=low, high=high)

    def relative_to(self, base: HardwareConfig) -> Self:
        """Return them relative to another base; InputError if it is outside the grid's range."""
        if base == self.base and base not in self.grid:
            return self
        at_base, _ = self.at(base)
        low, high = (
            None if end is None else absolute_values(end, 1 / at_base)
            for end in (self.low, self.high)
        )
        values = absolute_values(self.values, 1 / at_base)
        return replace(self, base=base, values=values, low=low, high=high)

    def at_memory(self, memory_mhz: float) -> Self:
        """Return them at only one memory clock of their grid [MHz]."""
        place = self.grid.memory_mhz.index(memory_mhz)
        grid = replace(self.grid, memory_mhz=(memory_mhz,))
        return self._each(grid, lambda factors: factors[..., place : place + 1])

    def within(self, grid: ConfigGrid) -> Self:
        """Return them on a grid that contains theirs; NaN elsewhere."""
        places = positions(self.grid, grid)

        def filled(factors: Floats) -> Floats:
            wider = np.full((len(factors), grid.size), np.nan)
            wider[:, places] = factors.reshape(len(factors), -1)
            return wider.reshape(-1, *grid.shape)

        return self if grid == self.grid else self._each(grid, filled)

    def _each(self, grid: ConfigGrid, taken: Callable[[Floats], Floats]) -> Self:
        """Return values and ends as they are taken to another grid."""
        low, high = (None if end is None else taken(end) for end in (self.low, self.high))
        return replace(self, grid=grid, values=taken(self.values), low=low, high=high)

    def at(self, config: HardwareConfig) -> tuple[Floats, bool]:
        """Return the factors (K,) at one configuration, and whether they are interpolated.

        Between two steps of an axis the factors are interpolated geometrically: linearly in
        the logarithm of factor and clock (or CU count), so that a power law is met exactly.
        Raises InputError outside the grid's range.
        """
        return interpolate(self.values, self.grid, config)


def relative_values(values: Floats, base: Index, over: Floats | None = None) -> Floats:
    """Return values (..., C, E, M), such as the ends of an interval, divided by `over` at the base.

    over: an array of the same shape; by default the values themselves.
    """
    at_base = (values if over is None else over)[(..., *base)]
    return np.asarray(values / at_base[..., None, None, None])


def absolute_values(factors: Floats, at_base: Floats) -> Floats:
    """Return factors (K, ...) times each kernel's value at the base (K,), in its unit."""
    return np.asarray(factors * at_base.reshape(-1, *[1] * (factors.ndim - 1)))


def absolute_percentage_error(predicted: Floats, actual: Floats) -> Floats:
    """Return 100 |predicted / actual - 1| [%], elementwise; actual must not be 0."""
    return np.asarray(100.0 * np.abs(predicted / actual - 1.0))


def mean_of_kernels(errors: Floats) -> float:
    """The mean over kernels of their means over targets (K, targets), NaN where not measured.

    So a kernel with few measurements has the same weight as any other.
    """
    return float(np.nanmean(errors, axis=1).mean())


def without_base(errors: Floats, base: Index) -> Floats:
    """Return errors (K, C, E, M) as (K, targets): every configuration but the base."""
    shape = errors.shape[1:]
    keep = np.ones(int(np.prod(shape)), dtype=bool)
    keep[np.ravel_multi_index(base, shape)] = False
    return np.asarray(errors.reshape(len(errors), -1)[:, keep])


def interpolate(values: Floats, grid: ConfigGrid, config: HardwareConfig) -> tuple[Floats, bool]:
    """Take positive values (K, C, E, M) at one configuration: (K,), and whether between steps.

    NaN where a step beside it is.
    """
    if config in grid:
        return values[(slice(None), *grid.index(config))], False
    weights = configuration_weights(grid, config)
    logs, used = np.log(values).reshape(len(values), -1), np.flatnonzero(weights)
    return np.exp(logs[:, used] @ weights[used]), True


def configuration_weights(grid: ConfigGrid, config: HardwareConfig) -> Floats:
    """Return the weight (N,) of each of a grid's configurations in the logarithm at `config`.

    Raises InputError outside the grid's range.
    """
    weights = np.ones(1)
    for axis in AXES:
        steps, setting = getattr(grid, axis), getattr(config, axis)
        if not steps[0] <= setting <= steps[-1]:
            raise InputError(
                f"{axis} {setting:g} is outside the grid ({format_steps(steps)}); "
                f"the model does not extrapolate unless asked to ({parameter('extrapolate')})"
            )
        weights = np.outer(weights, step_weights(steps, [setting])).ravel()
    return weights


def scaling_bounds(grid: ConfigGrid, base: HardwareConfig) -> tuple[Floats, Floats]:
    """Return the least and the most time factor that a kernel may have, (C, E, M) each.

    Its time is a sum of parts, and a part is constant, or follows the memory clock, or the core:
    engine clock times CUs.
    """
    settings = grid.settings()
    core = base.cu_count * base.engine_mhz / (settings["cu_count"] * settings["engine_mhz"])
    memory = base.memory_mhz / settings["memory_mhz"]
    parts = np.array([np.ones_like(core), core, memory]).reshape(3, *grid.shape)
    return parts.min(axis=0), parts.max(axis=0)


def carried(
    values: Floats, grid: ConfigGrid, to: ConfigGrid, going_on: Sequence[str] = ()
) -> Floats:
    """Return values (..., N) on one grid as (..., N') on another, linear in the axes' logarithms.

    Beyond the first and the last step of an axis they stay as they are there, but at the ends in
    `going_on` (of ENDS), where they go on as between the two outermost steps: so logs of a power
    law are met exactly. NaN where a step beside it is.
    """
    outer = values.shape[:-1]
    weights = [step_weights(getattr(grid, axis), getattr(to, axis), going_on) for axis in AXES]
    stacked = values.reshape(-1, *grid.shape)
    is_known = np.isfinite(stacked)
    moved = _moved(np.where(is_known, stacked, 0), weights)
    if not is_known.all():
        moved[_moved(~is_known + 0.0, [np.abs(one) for one in weights]) > 0] = np.nan
    return np.asarray(moved.reshape(*outer, to.size))


def _moved(stacked: Floats, weights: Sequence[Floats]) -> Floats:
    """Return arrays (K, C, E, M) by the weights of their steps at others', (K, C', E', M')."""
    return np.asarray(np.einsum("kcem,xc,ye,zm->kxyz", stacked, *weights, optimize=True))


def positions(grid: ConfigGrid, within: ConfigGrid) -> Indices | None:
    """Return where a grid's configurations stand in a raveled other one; None where some do not."""
    if any(not set(getattr(grid, axis)) <= set(getattr(within, axis)) for axis in AXES):
        return None
    indices = [[getattr(within, a).index(step) for step in getattr(grid, a)] for a in AXES]
    return np.ravel_multi_index(np.ix_(*indices), within.shape).ravel()


def distance_beyond(trained: ConfigGrid, grid: ConfigGrid) -> Floats:
    """Return how far each configuration of a grid is outside the trained range, (C, E, M).

    The logarithms beyond the nearest trained step, summed over the axes; 0 inside.
    """
    distances = []
    for axis in AXES:
        known, steps = (np.log(np.array(getattr(one, axis), float)) for one in (trained, grid))
        distances.append(np.maximum(known[0] - steps, 0) + np.maximum(steps - known[-1], 0))
    cu, engine, memory = np.ix_(*distances)
    return np.asarray(cu + engine + memory)


def widened_beyond(surfaces: Surfaces, trained: ConfigGrid, quantity: str) -> Surfaces:
    """Return surfaces whose intervals are wider beyond the trained range, in log ratios.

    By 1 + WIDENING times the distance beyond it: by 1.4 where a clock is 0.8 of the lowest trained.
    The upper end of power is higher still above the highest trained engine clock, by the power
    KNEE of the ratio of the clocks: what follows V^2 f may have been at the lowest voltage till
    there, and rise with the clock's third power from there on; no power below tells it.
    """
    low, high = surfaces.low, surfaces.high
    if low is None or high is None:
        return surfaces
    times = 1 + WIDENING * distance_beyond(trained, surfaces.grid)
    center = surfaces.values  # noqa: PD011
    low, high = (np.asarray(center * (end / center) ** times) for end in (low, high))
    if quantity == "power":
        above = np.array(surfaces.grid.engine_mhz) / trained.engine_mhz[-1]
        high = high * np.maximum(above, 1.0)[:, None] ** KNEE
    return replace(surfaces, low=low, high=high)


def by_power_laws(surfaces: Surfaces, grid: ConfigGrid) -> Surfaces:
    """Return surfaces on a wider grid: along each axis as between the two outermost steps.

    For predictors that know no law of their own. Intervals are as wide as at the nearest step.
    """
    count = len(surfaces.values)
    logs = np.log(surfaces.values).reshape(count, -1)
    wider = carried(logs, surfaces.grid, grid, ENDS)
    ends = [
        wider + carried(np.log(end).reshape(count, -1) - logs, surfaces.grid, grid)
        for end in (surfaces.low, surfaces.high)
        if end is not None
    ]
    return Surfaces.from_log_ratios(grid, surfaces.base, wider, surfaces.flags, ends)


def run_in_sequence(time_ms: Floats, power_w: Power, launches: Floats) -> tuple[Floats, Power]:
    """Kernels run one after the other: summed time [ms], and mean power over that time [W].

    time_ms, power_w (K, ...) of one launch each, such as (K, C, E, M); launches (K,): how often
    each kernel runs. Time x power of the answer, (...), is the sum of all launches' energies.

    An end of an interval needs its own times where energy is meant, the predicted ones where
    power is: mean power falls as a kernel of little power takes longer, so with the times' ends
    the high end may be the lower, or miss the prediction.

    Example:
        >>> power_w, times_ms = np.array([100.0, 300.0]), [[0.5, 1.0], [1.0, 1.0], [2.0, 1.0]]
        >>> for time_ms in times_ms:  # the low end, the prediction, the high end; power is exact
        ...     run_ms, run_w = run_in_sequence(np.array(time_ms), power_w, np.ones(2))
        ...     print(run_ms.round(1), run_w.round(1), (run_ms * run_w).round(1))
        1.5 233.3 350.0
        2.0 200.0 400.0
        3.0 166.7 500.0
    """
    each_ms = absolute_values(time_ms, launches)
    total_ms = np.asarray(each_ms.sum(axis=0))
    return total_ms, power_w if power_w is None else (each_ms * power_w).sum(axis=0) / total_ms
