"""The search for the best configurations: of one launch of each kernel, and of the whole run."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mlscale.advice.objectives import (
    SAME,
    Limits,
    best_index,
    interval_ends,
    objective_values,
    pareto_front,
    run_in_sequence,
    saving_percent,
    slowdown_percent,
)
from mlscale.advice.recommendation import OperatingPoint, Recommendation, RunShare
from mlscale.arrays import Floats, Mask
from mlscale.data.grid import ConfigGrid, Index
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError

Costs = tuple[Floats, Floats | None]  # time [ms] and power [W] everywhere on the grid
TOO_SLOW = "cannot keep its part of the limit of time: its quickest is shown"


@dataclass(frozen=True, eq=False)
class Search:
    """What the best configurations are sought on and by.

    surfaces: absolute, of time and perhaps power. launches (K,): of each kernel in the run.
    limits: of power, for every kernel; of time and slowdown, for the kernels' summed time.
    board_w [W]: the most that the board may be set to draw, None where that is not known; where a
    kernel draws more, and more than any was measured to draw at the base, nothing is advised.
    """

    surfaces: dict[str, Surfaces]
    launches: Floats
    objective: str
    limits: Limits
    has_energy: bool
    board_w: float | None = None

    def for_whole_run(self) -> Recommendation:
        """The best of the run. Raises InputError, saying what is nearest, where none is allowed.

        Its intervals add the kernels' own, as if all of them were off to the same side.
        """
        ends = (self._run("low"), self._run("high")) if self._has_intervals else None
        return self._recommendation(self._best_of_run, self._run("values"), ends, self._peak_w)

    def for_kernel(self, k: int, kernel: str, flags: tuple[str, ...]) -> Recommendation:
        """The best of one launch of a kernel, which keeps its part of the run's limits of time.

        Of a kernel that cannot, the quickest within the limit of power, and a flag says so.
        """
        time_ms, power_w = self._costs("values", k)
        sought_ms = np.where(self._sought & self._possible(power_w), time_ms, np.nan)
        base_ms = float(time_ms[self._base])
        of_power = replace(self.limits, max_time_ms=None, max_slowdown_percent=None)
        limits = of_power
        if self._allowed_part is not None:
            limits = replace(of_power, max_time_ms=self._allowed_part * base_ms)
        clocks = self._grid.engine_mhz
        try:
            best = best_index(self.objective, sought_ms, power_w, base_ms, limits, clocks)
        except InputError:
            best = best_index("time", sought_ms, power_w, base_ms, of_power)
            flags = (*flags, TOO_SLOW)
        costs = time_ms, power_w
        ends = (self._costs("low", k), self._costs("high", k)) if self._has_intervals else None
        share = RunShare(
            launches=float(self.launches[k]),
            percent=float(100 * self.launches[k] * base_ms / self._base_ms),
            at_best=self._point(self._best_of_run, costs),
        )
        recommendation = self._recommendation(best, costs, ends, power_w)
        return replace(recommendation, kernel=kernel, flags=flags, share=share)

    @cached_property
    def _best_of_run(self) -> Index:
        time_ms, power_w = self._run("values")
        return best_index(
            self.objective,
            np.where(self._sought & self._possible(self._peak_w), time_ms, np.nan),
            power_w,
            float(time_ms[self._base]),
            self.limits,
            self._grid.engine_mhz,
            peak_power_w=self._peak_w,
        )

    @property
    def impossible_w(self) -> Floats:
        """Power of the most demanding kernel wherever the board cannot supply it, (n,) [W]."""
        return np.zeros(0) if self._peak_w is None else self._peak_w[~self._possible(self._peak_w)]

    @cached_property
    def _peak_w(self) -> Floats | None:
        """Power of the most demanding kernel, (C, E, M) [W]; None where it is not predicted."""
        power_w = self._costs("values")[1]
        return None if power_w is None else np.asarray(power_w.max(axis=0))

    def _possible(self, power_w: Floats | None) -> Mask:
        """Where the board can supply that power, (C, E, M): its limit, or what the base drew."""
        if power_w is None or self._peak_w is None or self.board_w is None:
            return np.ones(self._grid.shape, dtype=bool)
        most = max(self.board_w, float(self._peak_w[self._base]))
        return np.asarray(power_w <= most * (1 + SAME))

    @cached_property
    def _base_ms(self) -> float:
        """The kernels' time at the base, all launches [ms]."""
        return float(self._run("values")[0][self._base])

    @cached_property
    def _allowed_part(self) -> float | None:
        """How long a kernel may take, relative to the base, if all are to keep the run's limits."""
        limits, allowed = self.limits, []
        if limits.max_time_ms is not None:
            allowed.append(limits.max_time_ms / self._base_ms)
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
        costs = {q: getattr(surface, side)[index] for q, surface in self.surfaces.items()}
        return costs["time"], costs.get("power")

    def _recommendation(
        self, best: Index, costs: Costs, ends: tuple[Costs, Costs] | None, peak_w: Floats | None
    ) -> Recommendation:
        """What a configuration costs and saves, and the front beside it.

        ends: the low and the high end of the costs, None without intervals. peak_w [W]: what the
        board must supply.
        """
        time_ms = costs[0]

        def saving(at_best: Costs) -> float:
            value = self._values(at_best)[best]
            return float(saving_percent(value, self._values(costs)[self._base]))

        def slowdown(at_best: Costs) -> float:
            return float(slowdown_percent(at_best[0][best], time_ms[self._base]))

        saving_range = slowdown_range = None
        if ends is not None:
            of_all = (ends[0], costs, ends[1])
            saving_range, slowdown_range = (
                interval_ends(of(one) for one in of_all) for of in (saving, slowdown)
            )
        front: list[OperatingPoint] = []
        if self.has_energy:
            energy_mj = objective_values("energy", *costs)
            possible_ms = np.where(self._possible(peak_w), time_ms, np.nan)
            for c, e, m in np.argwhere(pareto_front(possible_ms, energy_mj)).tolist():
                new = self._point((c, e, m), costs)
                if not any(math.isclose(new.time_ms, p.time_ms, rel_tol=SAME) for p in front):
                    front.append(new)
        return Recommendation(
            kernel=None,
            best=self._point(best, costs),
            base=self._point(self._base, costs),
            saving_percent=saving(costs),
            saving_range=saving_range,
            slowdown_percent=slowdown(costs),
            slowdown_range=slowdown_range,
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
