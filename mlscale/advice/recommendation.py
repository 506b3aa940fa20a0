"""What is asked for of a run, what its kernels cost, and what is advised: settings and choices."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mlscale.advice.objectives import WITHOUT_POWER, Limits
from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.supply import UNLIMITED, Supply
from mlscale.data.surfaces import Surfaces, run_in_sequence
from mlscale.notes import Note
from mlscale.text import counted

WHOLE_RUN = "whole run"
Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Terms:
    """What is asked for of a run, and what is known of power; the same for all its kernels.

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

    @classmethod
    def single(cls, engine_mhz: float, time_ms: float, power_w: float | None) -> "Points":
        """One run, without intervals."""
        watts = None if power_w is None else np.array([[power_w]])
        return cls(np.array([engine_mhz]), np.array([[time_ms]]), watts)


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
    def has_intervals(self) -> bool:
        """Whether times have ends."""
        return bool(self.time_ms.shape[1] > 1)

    @property
    def longest_ms(self) -> Floats:
        """The high ends of time; without intervals the times (K, C, E, M)."""
        return self.time_ms[:, -1]

    def sought_ms(self, terms: Terms) -> Floats:
        """As `possible_ms`, where what is asked for is known.

        A lowest clock is looked for at the base's other settings alone.
        """
        times = self.possible_ms(terms)
        if terms.objective not in WITHOUT_POWER and self.power_w is not None:
            times = np.where(np.isfinite(self.power_w[:, 0]), times, np.nan)
        if terms.objective != "clock":
            return times
        c, _, m = self.grid.index(self.base)
        sought = np.full(times.shape, np.nan)
        sought[:, c, :, m] = times[:, c, :, m]
        return sought


@dataclass(frozen=True)
class Choice:
    """A setting, and what is expected of a kernel or a run there; None for what is not known.

    config: all that it runs at; under a power cap the engine clock is the mean over the time.
    time_ms [ms], power_w [W], energy_mj [mJ]. Changes [%] are against the base: slowdown_percent of
    time, saving_percent of the objective (NaN where it is not known), energy_percent and
    power_percent, negative for less. Each range is a 90 % interval where the predictors give
    intervals; an end that is not known is not finite. set: by name what differs from the base,
    empty to stay there; with a power cap an engine_mhz of None is to be unlocked.
    """

    config: HardwareConfig
    time_ms: float
    power_w: float | None
    energy_mj: float | None
    slowdown_percent: float = 0.0
    saving_percent: float = 0.0
    slowdown_range: Interval = None
    saving_range: Interval = None
    energy_percent: float | None = None
    energy_percent_range: Interval = None
    power_percent: float | None = None
    power_percent_range: Interval = None
    time_range_ms: Interval = None
    power_range_w: Interval = None
    energy_range_mj: Interval = None
    set: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def cu_count(self) -> int:
        """Compute units."""
        return self.config.cu_count

    @property
    def engine_mhz(self) -> float:
        """The engine clock [MHz]."""
        return self.config.engine_mhz

    @property
    def memory_mhz(self) -> float:
        """The memory clock [MHz]."""
        return self.config.memory_mhz


@dataclass(frozen=True)
class Recommendation:
    """What is best for one launch of a kernel, or for the whole run (kernel None).

    best: where there is a limit of time, what keeps it by the upper end of its interval. expected:
    the best of what is expected to keep it, where that is another.

    front: the Pareto front of time and energy from the quickest to the most frugal, of equal
    points the first in the order of the grid; empty where energy is not known. flags: what a
    reader should know of the prediction, or of the run at its best. Of a kernel alone:
    launches in the run, its share of the kernels' time at the base [%], and in_run, one launch
    at what is best for the run.
    """

    kernel: str | None
    best: Choice
    base: Choice
    front: tuple[Choice, ...]
    flags: tuple[Note, ...] = ()
    launches: float | None = None
    share_percent: float | None = None
    in_run: Choice | None = None
    expected: Choice | None = None

    @property
    def name(self) -> str:
        """The kernel, '' of the whole run."""
        return self.kernel or ""


@dataclass(frozen=True)
class Workload:
    """What was run.

    kernels: how many. launches: of all kernels; None where the profile does not say, and each
    runs once. counters_cover_percent: the share of the kernels' time at the base that kernels with
    counters have [%]. power_readings: at how many configurations power was read. gpu_count: on how
    many GPUs, side by side; power and energy are of all of them.
    """

    kernels: int
    launches: float | None
    counters_cover_percent: float
    power_readings: int = 1
    gpu_count: int = 1


@dataclass(frozen=True, repr=False)
class Advice:
    """What to set for the whole run, and what each kernel would like best.

    kernels: in the order of the profile. whole_run: the one configuration for the run, which is
    each kernel as often as its launches say. measured: the run at the further points at which all
    its kernels were measured. is_bounded: whether kernels were measured at one clock alone, so that
    times are bounds, and costs at the longest. no_energy: why energy is not known, None where it
    is. keeps_memory: why only the base's memory clock is offered. menu: for least energy without a
    limit of time, what is best under each of a few limits of slowdown [%], None for any time; the
    whole run's best is that under USUAL_SLOWDOWN_PERCENT. sure_why: the codes of `sureness` that
    say how sure the answer is; sure_why_cap: the same of a power cap.

    What it rests on: surfaces, by quantity every kernel's absolute values [ms], [W], with intervals
    of COVERAGE each; held: they, their high ends as the board's limit leaves them. costs: every
    kernel's, as the best was sought among them. supply: what the board supplies, unlimited where
    that is not known or power not predicted; where a kernel draws more, nothing is advised.
    offered (C, E, M): what the GPU may be set to.
    """

    device: str
    objective: str
    limits: Limits
    static_power_w: float | None
    workload: Workload
    whole_run: Recommendation
    kernels: tuple[Recommendation, ...] = ()
    measured: tuple[Choice, ...] = ()
    warnings: tuple[Note, ...] = ()
    is_bounded: bool = False
    no_energy: str | None = None
    keeps_memory: str | None = None
    menu: Mapping[float | None, Choice] = field(default_factory=dict)
    sure_why: tuple[str, ...] = ()
    sure_why_cap: tuple[str, ...] = ()
    surfaces: dict[str, Surfaces] = field(default_factory=dict, compare=False)
    held: dict[str, Surfaces] = field(default_factory=dict, compare=False)
    costs: Costs | None = field(default=None, compare=False)
    supply: Supply = UNLIMITED
    offered: Mask | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        best, base = self.whole_run.best, self.whole_run.base.config
        is_saved = self.objective not in WITHOUT_POWER
        saved = f", {self.objective} {-best.saving_percent:+.1f} %" if is_saved else ""
        return (
            f"<Advice on {self.objective} for {counted(self.workload.kernels, 'kernel')}: "
            f"{best.config}, time {best.slowdown_percent:+.1f} %{saved} against the base {base}>"
        )
