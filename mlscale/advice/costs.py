"""What is sought for a run, and what its kernels cost at every configuration."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mlscale.advice.objectives import Limits
from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.supply import UNLIMITED, Supply
from mlscale.data.surfaces import Surfaces, run_in_sequence
from mlscale.notes import Note


@dataclass(frozen=True)
class Terms:
    """What is sought for a run, and what is known of power; the same for all its kernels.

    has_menu: whether the limit of slowdown is mlscale's, and others are to be shown beside it.
    static_power_w [W]: as given; added_w: what is added to predicted power. no_power, no_energy:
    why these cannot be given, None where they can. keeps_memory: why only the base's memory clock
    is offered, None where all are. unmeasured: see `Model`; they are not offered. warnings: what a
    reader should know of all that.
    """

    objective: str
    limits: Limits
    has_menu: bool = False
    static_power_w: float | None = None
    added_w: float = 0.0
    no_power: str | None = None
    no_energy: str | None = None
    keeps_memory: str | None = None
    unmeasured: frozenset[HardwareConfig] = frozenset()
    warnings: tuple[Note, ...] = ()


class Points(NamedTuple):
    """n kernels or runs, each at a configuration: [MHz] (n,), [ms] (n, S), [W] (n, S) or None.

    S: as in Costs.
    """

    engine_mhz: Floats
    time_ms: Floats
    power_w: Floats | None


@dataclass(frozen=True, eq=False)
class Costs:
    """Time [ms] and power [W] of one launch of each of K kernels at every configuration.

    time_ms, power_w (K, S, C, E, M): S is the value alone or, with intervals, the value, the low
    end and the high end, those of power as they go with those of time in the objective; power_w is
    None where it is not predicted. power_ends_w (K, 2, C, E, M): the ends of power by itself, None
    where these are not known. peak_w (K, C, E, M): the most that the board must supply.
    launches (K,): in the run. is_bounded: whether times are bounds.
    """

    grid: ConfigGrid
    base: HardwareConfig
    launches: Floats
    time_ms: Floats
    power_w: Floats | None
    peak_w: Floats | None
    supply: Supply = UNLIMITED
    is_bounded: bool = False
    power_ends_w: Floats | None = None

    @classmethod
    def from_surfaces(
        cls, surfaces: dict[str, Surfaces], peak_w: Floats | None, launches: Floats, supply: Supply
    ) -> "Costs":
        """From absolute surfaces of time and perhaps power."""
        time = surfaces["time"]
        has_ends = all(surface.low is not None for surface in surfaces.values())
        sides = {
            quantity: np.stack([surface.values, surface.low, surface.high], axis=1)
            if has_ends and surface.low is not None and surface.high is not None
            else surface.values[:, None]
            for quantity, surface in surfaces.items()
        }
        return cls(
            grid=time.grid,
            base=time.base,
            launches=launches,
            time_ms=sides["time"],
            power_w=sides.get("power"),
            peak_w=peak_w,
            supply=supply,
            is_bounded=time.is_bounded,
        )

    def summed(self) -> "Costs":
        """The run of all launches, one after the other, as if it were one kernel."""
        run_ms, run_w = run_in_sequence(self.time_ms, self.power_w, self.launches)
        _, ends_w = run_in_sequence(self.time_ms[:, :1], self.power_ends_w, self.launches)
        return replace(
            self,
            launches=np.ones(1),
            time_ms=run_ms[None],
            power_w=None if run_w is None else run_w[None],
            power_ends_w=None if ends_w is None else ends_w[None],
            peak_w=None if self.peak_w is None else self.peak_w.max(axis=0)[None],
        )

    def place(self, config: HardwareConfig) -> int:
        """Where a configuration is, flat on the grid."""
        return int(np.ravel_multi_index(self.grid.index(config), self.grid.shape))

    @cached_property
    def base_place(self) -> int:
        """Where the base is, flat on the grid."""
        return self.place(self.base)

    @cached_property
    def base_ms(self) -> Floats:
        """Time at the base, (K,) [ms]."""
        return np.asarray(self.time_ms[:, 0].reshape(len(self.time_ms), -1)[:, self.base_place])

    def at(self, rows: Indices, places: Indices) -> Points:
        """Some kernels (n,), each at its own place, flat on the grid (n,)."""

        def at_places(costs: Floats) -> Floats:
            return costs.reshape(*costs.shape[:2], -1)[rows, :, places]

        power_w = None if self.power_w is None else at_places(self.power_w)
        engine_mhz = self.grid.settings()["engine_mhz"][places]
        return Points(engine_mhz, at_places(self.time_ms), power_w)

    def offered(self, terms: Terms) -> Mask:
        """What the GPU may be set to, whatever it draws there, (C, E, M)."""
        offered = np.full(self.grid.shape, terms.keeps_memory is None)
        offered[:, :, self.grid.index(self.base)[2]] = True
        for config in terms.unmeasured:
            offered[self.grid.index(config)] = False
        return offered

    def possible_ms(self, terms: Terms) -> Floats:
        """Time where the GPU may be set to and its board supplies enough, else NaN (K, C, E, M)."""
        possible = self.offered(terms)[None]
        if self.peak_w is not None:
            possible = possible & self.supply.suffices(self.peak_w)
        return np.where(possible, self.time_ms[:, 0], np.nan)

    @property
    def longest_ms(self) -> Floats:
        """The high ends of time; without intervals the times (K, C, E, M)."""
        return self.time_ms[:, -1]

    def sought_ms(self, terms: Terms) -> Floats:
        """As `possible_ms`, and a lowest clock at the base's other settings alone."""
        times = self.possible_ms(terms)
        if terms.objective != "clock":
            return times
        c, _, m = self.grid.index(self.base)
        sought = np.full(times.shape, np.nan)
        sought[:, c, :, m] = times[:, c, :, m]
        return sought
