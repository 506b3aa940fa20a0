"""The search for the best configurations: of one launch of each kernel, and of the whole run."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mlscale.advice.objectives import (
    SAME,
    Limits,
    best_index,
    feasible,
    least_indices,
    objective_values,
    pareto_front,
    saving_percent,
    slowdown_percent,
)
from mlscale.advice.recommendation import OperatingPoint, Recommendation, RunShare
from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.data.sequence import run_in_sequence
from mlscale.data.supply import UNLIMITED, Supply, with_held_ends
from mlscale.data.surfaces import Surfaces

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
