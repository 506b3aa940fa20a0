"""Kernels of a run that exchange data between GPUs: how much of its time they take.

What advice consists of: configurations, what they cost, and what is best among them.

The search for the best configurations: of one launch of each kernel, and of the whole run.
"""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mlscale.advice.objectives import WITHOUT_POWER, Limits, slowdown_percent
from mlscale.arrays import Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.supply import UNLIMITED, Supply
from mlscale.data.surfaces import Surfaces
from mlscale.errors import extra_named
from mlscale.model.unprofiled import exchanging
from mlscale.text import counted, share_in_percent, shortened

if TYPE_CHECKING:
    import pandas as pd

import math
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mlscale.advice.objectives import (
    SAME,
    best_index,
    feasible,
    least_indices,
    objective_values,
    pareto_front,
    saving_percent,
)
from mlscale.arrays import Floats, Indices
from mlscale.data.grid import ConfigGrid, Index
from mlscale.data.supply import with_held_ends
from mlscale.data.surfaces import run_in_sequence

LEAST_TOLD = 0.01  # of a run's time


@dataclass(frozen=True)
class Exchanges:
    """How long the kernels of a run exchange data between GPUs, at the base.

    run_ms: of all kernels; own_ms: of those [ms]. first: the name of one of them, None where
    there is none.
    """

    run_ms: float = 0.0
    own_ms: float = 0.0
    first: str | None = None

    def __add__(self, other: "Exchanges") -> "Exchanges":
        return Exchanges(
            self.run_ms + other.run_ms,
            self.own_ms + other.own_ms,
            self.first or other.first,
        )

    @property
    def warnings(self) -> list[str]:
        """That kernels of the run wait for other GPUs."""
        share = self.own_ms / self.run_ms
        if self.first is None or share < LEAST_TOLD:
            return []
        warning = (
            f"{share_in_percent(share)} % of the run's time is in kernels that exchange data "
            f"between GPUs ('{shortened(self.first)}'): they wait for links and for the other "
            "GPUs, which no counter tells; set all GPUs alike"
        )
        return [warning]


def exchanges_of(profiles: Profiles) -> Exchanges:
    """Those of all kernels of these profiles."""
    times_ms, own = profiles.run_times_ms, exchanging(profiles)
    first = profiles.kernels[int(own.argmax())] if own.any() else None
    own_ms = float(times_ms[own].sum())
    return Exchanges(float(times_ms.sum()), own_ms, first)


WHOLE_RUN = "whole run"
Row = dict[str, Any]


@dataclass(frozen=True)
class OperatingPoint:
    """A configuration and what it costs: [ms], [W], [mJ]; None where that is not known."""

    config: HardwareConfig
    time_ms: float
    power_w: float | None
    energy_mj: float | None

    def row(self) -> Row:
        """The fields, those of the configuration in front."""
        row = asdict(self)
        return {**row.pop("config"), **row}


@dataclass(frozen=True)
class RunShare:
    """What a kernel is of the whole run.

    launches: how often it runs. percent: of the kernels' time at the base [%]. at_best: one
    launch of it at the configuration that is best for the run.
    """

    launches: float
    percent: float
    at_best: OperatingPoint


@dataclass(frozen=True)
class Recommendation:
    """The best configuration of one launch of a kernel, or of the whole run (kernel None).

    saving_percent: of the objective, against the base; slowdown_percent: of time, against the
    base; saving_range and slowdown_range: their intervals where the predictors give intervals.
    front: the Pareto front of time and energy from the quickest to the most frugal, of equal
    points the first in the order of the grid; empty where energy is unknown. flags:
    what a reader should know of the prediction, or of the run at its best. share: of a kernel.
    """

    kernel: str | None
    best: OperatingPoint
    base: OperatingPoint
    saving_percent: float
    saving_range: tuple[float, float] | None
    slowdown_percent: float
    slowdown_range: tuple[float, float] | None
    front: tuple[OperatingPoint, ...]
    flags: tuple[str, ...]
    share: RunShare | None = None

    @property
    def slowdown_in_run_percent(self) -> float:
        """Of a kernel: its slowdown at the configuration that is best for the run [%]."""
        at_best = self.best if self.share is None else self.share.at_best
        return float(slowdown_percent(at_best.time_ms, self.base.time_ms))

    def effects(self) -> dict[str, float | None]:
        """What the best saves, and how much slower it is, with the ends of intervals [%]."""
        low, high = self.saving_range or (None, None)
        quicker, slower = self.slowdown_range or (None, None)
        return {
            "saving_percent": self.saving_percent,
            "saving_low_percent": low,
            "saving_high_percent": high,
            "slowdown_percent": self.slowdown_percent,
            "slowdown_low_percent": quicker,
            "slowdown_high_percent": slower,
        }

    def part_of_run(self) -> dict[str, float | None]:
        """How often a kernel runs, and its share of the run's time [%]; None of the whole run."""
        launches, percent = (self.share.launches, self.share.percent) if self.share else (None,) * 2
        return {"launches": launches, "share_percent": percent}


@dataclass(frozen=True)
class Run:
    """How the whole run is made up of its kernels.

    kernels: how many. launches: of all kernels; None where the profile does not say, and each
    runs once. counters_cover_percent: the share of the kernels' time at the base that kernels with
    counters have [%]. is_sampled: whether each kernel is a run of its own, as a monitor sees it,
    perhaps beside the others on another GPU; then the whole run's time is GPU time.
    """

    kernels: int
    launches: float | None
    counters_cover_percent: float
    is_sampled: bool = False

    @property
    def is_one_launch(self) -> bool:
        """Whether it is a single launch of a single kernel."""
        return self.kernels == 1 and self.launches in (None, 1)


@dataclass(frozen=True, repr=False)
class Advice:
    """What to set for the whole run, and what each kernel would like best.

    kernels: of one launch each, in the order of the profile. whole_run: the one configuration for
    the run, which is each kernel as often as its launches say. tried_mhz: the engine clocks that
    were tried, ascending. surfaces: what all this rests on, by quantity every kernel's absolute
    values [ms], [W], with intervals that hold at once; held: they, their high ends as the board's
    limit leaves them. supply: what the board supplies, unlimited where that is not known or power
    not predicted; where a kernel draws more, nothing is advised. offered (C, E, M): where advice
    was sought, None for everywhere; keeps_memory: why only at the base's memory clock. measured:
    the run at the further points at which all its kernels were measured. is_bounded: whether
    kernels were measured at one clock alone, so that times are bounds, and costs at the longest.
    """

    objective: str
    limits: Limits
    static_power_w: float | None
    kernels: tuple[Recommendation, ...]
    whole_run: Recommendation
    run: Run
    tried_mhz: tuple[float, ...]
    warnings: tuple[str, ...]
    surfaces: dict[str, Surfaces] = field(default_factory=dict, compare=False)
    held: dict[str, Surfaces] = field(default_factory=dict, compare=False)
    supply: Supply = UNLIMITED
    offered: Mask | None = field(default=None, compare=False)
    keeps_memory: str | None = None
    measured: tuple[OperatingPoint, ...] = ()
    is_bounded: bool = False

    def __repr__(self) -> str:
        run, is_saved = self.whole_run, self.objective not in WITHOUT_POWER
        saved = f", {self.objective} {-run.saving_percent:+.1f} %" if is_saved else ""
        return (
            f"<Advice on {self.objective} for {counted(self.run.kernels, 'kernel')}: "
            f"{run.best.config}, time {run.slowdown_percent:+.1f} %{saved} against the base "
            f"{run.base.config}>"
        )

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """That of each kernel, then that of the whole run, where it is more than one launch."""
        return self.kernels if self.run.is_one_launch else (*self.kernels, self.whole_run)

    def rows(self) -> list[Row]:
        """The table of `mlscale advise --format csv`: the best, then the front, of each of these.

        What a row does not have is None: what the best saves is in its own row alone, as are its
        flags, joined by '; '.
        """
        rows = []
        for one in self.recommendations:
            for point in dict.fromkeys([one.best, *one.front]):
                is_best = point == one.best
                row = {"kernel": one.kernel or WHOLE_RUN, **point.row(), **one.part_of_run()}
                row |= {"best": int(is_best), "on_front": int(point in one.front)}
                row |= one.effects() if is_best else dict.fromkeys(one.effects())
                rows.append(row | {"flags": "; ".join(one.flags if is_best else ())})
        return rows

    @extra_named("'to_frame'")
    def to_frame(self) -> "pd.DataFrame":
        """Return `rows` as a pandas DataFrame, NaN for a number that is None."""
        import pandas as pd

        frame = pd.DataFrame(self.rows())
        return frame.astype(dict.fromkeys(frame.columns[frame.isna().any()], float))


Costs = tuple[Floats, Floats | None]  # time [ms] and power [W] everywhere on the grid
TOO_SLOW = "cannot keep its part of the limit of time: its quickest is shown"


@dataclass(frozen=True, eq=False)
class PowerAtEnds:
    """Power of K kernels whose times are bounds, at the ends of these, (K, C, E, M) [W].

    Power follows the rate of work, so that it is the higher the shorter the time. most: as
    predicted at the shortest time. low_at_shortest, high_at_longest: the ends of its intervals that
    give the ends of energy, which the longest time makes most; None without intervals.
    """

    most: Floats
    low_at_shortest: Floats | None
    high_at_longest: Floats | None


class RunBase(NamedTuple):
    """What the whole run takes at the base, all launches [ms], and draws at most [W]."""

    time_ms: float
    peak_w: float | None


class Effects(NamedTuple):
    """What the best of each of K kernels saves, and how much slower it is, (K,) [%].

    The ends of intervals are NaN without intervals.
    """

    saving_percent: Floats
    saving_low_percent: Floats
    saving_high_percent: Floats
    slowdown_percent: Floats
    slowdown_low_percent: Floats
    slowdown_high_percent: Floats


@dataclass(frozen=True, eq=False)
class Search:
    """What the best configurations are sought on and by.

    surfaces: absolute, of time and perhaps power, before the board's limit. launches (K,): of each
    kernel in the run.
    limits: of power, for every kernel; of time and slowdown, for the kernels' summed time.
    supply: what the board supplies; where a kernel draws more, nothing is advised.
    run_base: of the whole run, where these are only some of its kernels. peak_w (C, E, M) [W]:
    power of the most demanding kernel, where the surfaces are sums over kernels. at_ends: of
    kernels whose times are bounds, where power is predicted; the surfaces are at the longest times.
    keeps_memory: only the base's memory clock is offered.
    """

    surfaces: dict[str, Surfaces]
    launches: Floats
    objective: str
    limits: Limits
    has_energy: bool
    supply: Supply = UNLIMITED
    run_base: RunBase | None = None
    peak_w: Floats | None = None
    at_ends: PowerAtEnds | None = None
    keeps_memory: bool = False

    def for_whole_run(self) -> Recommendation:
        """The best of the run. Raises InputError, saying what is nearest, where none is allowed.

        Its intervals add the kernels' own, as if all of them were off to the same side.
        """
        ends = (self._run("low"), self._run("high")) if self._has_intervals else None
        return self._recommendation(
            self._best_of_run, self._run("values"), ends, self.most_demanding_w
        )

    def for_kernel(self, k: int, kernel: str, flags: tuple[str, ...]) -> Recommendation:
        """The best of one launch of a kernel, see `best_of_kernels`, with flags of it."""
        best, _ = self.best_of_kernels
        costs = self._costs("values", k)
        ends = (self._costs("low", k), self._costs("high", k)) if self._has_intervals else None
        share = RunShare(
            launches=float(self.launches[k]),
            percent=float(self._shares_percent[k]),
            at_best=self._point(self._best_of_run, costs),
        )
        c, e, m = np.unravel_index(best[k], self._grid.shape)
        most_w = None if self._most_w is None else self._most_w[k]
        recommendation = self._recommendation((int(c), int(e), int(m)), costs, ends, most_w)
        return replace(recommendation, kernel=kernel, flags=flags, share=share)

    def kernel_columns(self) -> dict[str, Floats]:
        """The best of one launch of each kernel, what it costs and saves, NaN for unknown: (K,).

        By the names of `mlscale advise --format csv`.
        """
        best, _ = self.best_of_kernels
        costs = self._costs("values")
        ends = (self._costs("low"), self._costs("high")) if self._has_intervals else None
        unknown = np.full(len(best), np.nan)
        time_ms = _at(costs[0], best)
        power_w = unknown if costs[1] is None else _at(costs[1], best)
        return {
            **{axis: steps[best] for axis, steps in self._grid.settings().items()},
            "time_ms": time_ms,
            "power_w": power_w,
            "energy_mj": time_ms * power_w if self.has_energy else unknown,
            "launches": self.launches,
            "share_percent": self._shares_percent,
            **self._effects(best, costs, ends)._asdict(),
        }

    @cached_property
    def best_of_kernels(self) -> tuple[Indices, Mask]:
        """Where the best of each kernel is, flat on the grid, and which are too slow: (K,) each.

        Each keeps its part of the run's limits of time. Of a kernel that cannot, and is too slow,
        it is the quickest within the limit of power, where the best is sought. Raises InputError
        where there is none.
        """
        time_ms, power_w = costs = self._costs("values")
        base_ms = time_ms[:, *self._base][:, None, None, None]
        most_w = self._most_w
        sought_ms = np.where(self._sought & self._possible(most_w), time_ms, np.nan)
        of_power = replace(self.limits, max_time_ms=None, max_slowdown_percent=None)
        allowed = feasible(of_power, sought_ms, most_w, base_ms)
        if self._allowed_part is not None:
            allowed &= time_ms <= self._allowed_part * base_ms * (1 + SAME)
        best = least_indices([self._values(costs), time_ms, power_w], allowed)
        too_slow = best < 0
        for k in np.flatnonzero(too_slow).tolist():
            own_w, own_most_w = (None if of is None else of[k] for of in (power_w, most_w))
            at_base_ms = float(time_ms[k, *self._base])
            quickest = best_index(
                "time", sought_ms[k], own_w, at_base_ms, of_power, peak_power_w=own_most_w
            )
            best[k] = np.ravel_multi_index(quickest, self._grid.shape)
        return best, too_slow

    @cached_property
    def _shares_percent(self) -> Floats:
        """Of the run's time at the base that each kernel takes, (K,) [%]."""
        base_ms = self._costs("values")[0][:, *self._base]
        return np.asarray(100 * self.launches * base_ms / self._run_base_ms)

    @cached_property
    def _best_of_run(self) -> Index:
        time_ms, power_w = self._run("values")
        return best_index(
            self.objective,
            np.where(self._sought & self._possible(self.most_demanding_w), time_ms, np.nan),
            power_w,
            float(time_ms[self._base]),
            self.limits,
            self._grid.engine_mhz,
            peak_power_w=self.most_demanding_w,
        )

    @cached_property
    def held(self) -> dict[str, Surfaces]:
        """The surfaces, their high ends as the board's limit leaves them."""
        if self.at_ends is None:
            return with_held_ends(self.surfaces, self.supply)
        power, of_work = self.surfaces["power"], self._of_work
        if power.high is None:
            return self.surfaces
        most_w = np.maximum(self.supply.most_w, power.values)
        return of_work | {"power": replace(power, high=np.minimum(power.high, most_w))}

    @cached_property
    def of_objective(self) -> dict[str, Surfaces]:
        """As `held`, power's ends as they go together with those of time in the objective."""
        return self.held if self.objective == "power" else self._of_work

    @cached_property
    def _of_work(self) -> dict[str, Surfaces]:
        """As `held`, but with power's ends at those of time: their products are energy's."""
        surfaces, ends = self.surfaces, self.at_ends
        if ends is not None:
            power = surfaces["power"]
            power = replace(power, low=ends.low_at_shortest, high=ends.high_at_longest)
            surfaces = surfaces | {"power": power}
        return with_held_ends(surfaces, self.supply)

    @property
    def impossible_w(self) -> Floats:
        """Power of the most demanding kernel wherever the board cannot supply it, (n,) [W]."""
        return (
            np.zeros(0)
            if self.most_demanding_w is None
            else self.most_demanding_w[~self._supplied(self.most_demanding_w)]
        )

    def peak_at(self, config: HardwareConfig) -> float | None:
        """Power of the most demanding kernel at one configuration [W]; None: not predicted."""
        return (
            None
            if self.most_demanding_w is None
            else float(self.most_demanding_w[self._grid.index(config)])
        )

    @cached_property
    def most_demanding_w(self) -> Floats | None:
        """Power of the most demanding kernel, (C, E, M) [W]; None where it is not predicted."""
        if self._most_w is None or self.peak_w is not None:
            return self.peak_w
        return np.asarray(self._most_w.max(axis=0))

    @property
    def _most_w(self) -> Floats | None:
        """The most that each kernel is predicted to draw, (K, C, E, M) [W]; None: not predicted."""
        return self._costs("values")[1] if self.at_ends is None else self.at_ends.most

    def _possible(self, power_w: Floats | None) -> Mask:
        """Where a kernel or the run that draws that power may be set to, (..., C, E, M)."""
        return self.offered & self._supplied(power_w)

    @property
    def offered(self) -> Mask:
        """What the GPU may be set to, whatever it draws there, (C, E, M)."""
        offered = np.full(self._grid.shape, not self.keeps_memory)
        offered[:, :, self._base[2]] = True
        return offered

    def _supplied(self, power_w: Floats | None) -> Mask:
        """Where the board can supply that power (..., C, E, M)."""
        if power_w is None:
            return np.ones(self._grid.shape, dtype=bool)
        return self.supply.suffices(power_w)

    @cached_property
    def _run_base_ms(self) -> float:
        """What the run takes at the base [ms]."""
        own = self.run_base
        return float(self._run("values")[0][self._base]) if own is None else own.time_ms

    @cached_property
    def _allowed_part(self) -> float | None:
        """How long a kernel may take, relative to the base, if all are to keep the run's limits."""
        limits, allowed = self.limits, []
        if limits.max_time_ms is not None:
            allowed.append(limits.max_time_ms / self._run_base_ms)
        if limits.max_slowdown_percent is not None:
            allowed.append(1 + limits.max_slowdown_percent / 100)
        return min(allowed, default=None)

    @property
    def _sought(self) -> Mask:
        """Where the best is sought, (C, E, M); a lowest clock at the base's other settings."""
        sought = np.ones(self._grid.shape, dtype=bool)
        if self.objective == "clock":
            c, _, m = self._base
            sought[:] = False
            sought[c, :, m] = True
        return sought

    @property
    def _has_intervals(self) -> bool:
        return all(surface.low is not None for surface in self.surfaces.values())

    @property
    def _grid(self) -> ConfigGrid:
        return self.surfaces["time"].grid

    @property
    def _base(self) -> Index:
        return self._grid.index(self.surfaces["time"].base)

    def _run(self, side: str) -> Costs:
        """Time [ms] and power [W] of the whole run (C, E, M); side: 'values', 'low', 'high'."""
        return run_in_sequence(*self._costs(side), self.launches)

    def _costs(self, side: str, k: int | None = None) -> Costs:
        """Time [ms] and power [W] of a launch of one kernel (C, E, M) or of each."""
        index = slice(None) if k is None else k
        costs = {q: getattr(surface, side)[index] for q, surface in self.of_objective.items()}
        return costs["time"], costs.get("power")

    def _effects(self, best: Indices, costs: Costs, ends: tuple[Costs, Costs] | None) -> Effects:
        """Effects of the best of each of K kernels, flat on the grid. costs, ends (K, C, E, M)."""
        sides = [costs] if ends is None else [ends[0], costs, ends[1]]
        at_base = self._values(costs)[:, *self._base]
        savings = [saving_percent(_at(self._values(side), best), at_base) for side in sides]
        base_ms = costs[0][:, *self._base]
        slowdowns = [slowdown_percent(_at(side[0], best), base_ms) for side in sides]

        def with_ends(values: list[Floats]) -> list[Floats]:
            if ends is None:
                return [values[0], *[np.full(len(best), np.nan)] * 2]
            return [values[1], np.min(values, axis=0), np.max(values, axis=0)]

        return Effects(*with_ends(savings), *with_ends(slowdowns))

    def _recommendation(
        self, best: Index, costs: Costs, ends: tuple[Costs, Costs] | None, peak_w: Floats | None
    ) -> Recommendation:
        """What a configuration costs and saves, and the front beside it.

        ends: the low and the high end of the costs, None without intervals. peak_w [W]: what the
        board must supply.
        """
        of_one, *ends_of_one = (_of_one(one) for one in (costs, *(ends or ())))
        flat = np.array([np.ravel_multi_index(best, self._grid.shape)])
        low_and_high = (ends_of_one[0], ends_of_one[1]) if ends_of_one else None
        effects = [float(of[0]) for of in self._effects(flat, of_one, low_and_high)]
        front: list[OperatingPoint] = []
        if self.has_energy:
            energy_mj = objective_values("energy", *costs)
            possible_ms = np.where(self._possible(peak_w), costs[0], np.nan)
            for c, e, m in np.argwhere(pareto_front(possible_ms, energy_mj)).tolist():
                new = self._point((c, e, m), costs)
                if not any(math.isclose(new.time_ms, p.time_ms, rel_tol=SAME) for p in front):
                    front.append(new)
        return Recommendation(
            kernel=None,
            best=self._point(best, costs),
            base=self._point(self._base, costs),
            saving_percent=effects[0],
            saving_range=(effects[1], effects[2]) if ends else None,
            slowdown_percent=effects[3],
            slowdown_range=(effects[4], effects[5]) if ends else None,
            front=tuple(sorted(front, key=lambda point: point.time_ms)),
            flags=(),
        )

    def _point(self, index: Index, costs: Costs) -> OperatingPoint:
        time_ms, power_w = costs[0][index], None if costs[1] is None else costs[1][index]
        energy_mj = objective_values("energy", time_ms, power_w) if self.has_energy else None
        values = [None if cost is None else float(cost) for cost in (power_w, energy_mj)]
        return OperatingPoint(self._grid.config(index), float(time_ms), *values)

    def _values(self, costs: Costs) -> Floats:
        return objective_values(self.objective, *costs, self._grid.engine_mhz)


def _at(values: Floats, places: Indices) -> Floats:
    """Values (K, C, E, M) of each kernel at its own place, flat on the grid: (K,)."""
    return np.asarray(values.reshape(len(values), -1)[np.arange(len(values)), places])


def _of_one(costs: Costs) -> Costs:
    """Costs of one kernel or run, (C, E, M), as those of several: (1, C, E, M)."""
    return costs[0][None], None if costs[1] is None else costs[1][None]
