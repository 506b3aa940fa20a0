"""What advice consists of: settings, what each kernel and the whole run should have, and all."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mlscale.advice.costs import Costs
from mlscale.advice.objectives import WITHOUT_POWER, Limits
from mlscale.arrays import Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.supply import UNLIMITED, Supply
from mlscale.data.surfaces import Surfaces
from mlscale.notes import Note
from mlscale.text import counted

WHOLE_RUN = "whole run"
Row = dict[str, Any]
Interval = tuple[float, float] | None
_config = lru_cache(HardwareConfig)


@dataclass(frozen=True)
class Setting:
    """What can be set, and what is expected of a kernel or a run there.

    time_ms [ms], power_w [W], energy_mj [mJ]: None where that is not known. Against the base:
    slowdown_percent of time, saving_percent of the objective (NaN where it is not known), each
    with its interval where the predictors give intervals, as time_range [ms], power_range [W] and
    energy_range [mJ] are. Under a power cap config's engine clock is the mean over the time.
    """

    config: HardwareConfig
    time_ms: float
    power_w: float | None
    energy_mj: float | None
    slowdown_percent: float
    saving_percent: float
    slowdown_range: Interval = None
    saving_range: Interval = None
    time_range: Interval = None
    power_range: Interval = None
    energy_range: Interval = None

    @classmethod
    def from_row(cls, row: Mapping[str, float], cu_axis: str) -> "Setting":
        """From numbers by name, NaN if not known; cu_axis: a grid's.

        Ends are named such as time_low_ms and slowdown_low_percent.
        """

        def interval(name: str, unit: str = "percent") -> Interval:
            low = row.get(f"{name}_low_{unit}", math.nan)
            return None if math.isnan(low) else (low, row[f"{name}_high_{unit}"])

        power_w, energy_mj = row["power_w"], row["energy_mj"]
        return cls(
            config=_config(
                int(row["cu_count"]), row["engine_mhz"], row["memory_mhz"], cu_axis=cu_axis
            ),
            time_ms=row["time_ms"],
            power_w=None if math.isnan(power_w) else power_w,
            energy_mj=None if math.isnan(energy_mj) else energy_mj,
            slowdown_percent=row["slowdown_percent"],
            saving_percent=row["saving_percent"],
            slowdown_range=interval("slowdown"),
            saving_range=interval("saving"),
            time_range=interval("time", "ms"),
            power_range=interval("power", "w"),
            energy_range=interval("energy", "mj"),
        )


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
    best: Setting
    base: Setting
    front: tuple[Setting, ...]
    flags: tuple[Note, ...] = ()
    launches: float | None = None
    share_percent: float | None = None
    in_run: Setting | None = None
    expected: Setting | None = None


@dataclass(frozen=True)
class Workload:
    """What was run.

    kernels: how many. launches: of all kernels; None where the profile does not say, and each
    runs once. counters_cover_percent: the share of the kernels' time at the base that kernels with
    counters have [%]. readings, power_readings: at how many configurations time and power were
    read. gpu_count: on how many GPUs, side by side; power and energy are of all of them.
    """

    kernels: int
    launches: float | None
    counters_cover_percent: float
    readings: int = 1
    power_readings: int = 1
    gpu_count: int = 1


@dataclass(frozen=True)
class Offer:
    """What is best of what may take so many percent more time, None for any time."""

    max_slowdown_percent: float | None
    best: Setting


@dataclass(frozen=True, repr=False)
class Advice:
    """What to set for the whole run, and what each kernel would like best.

    kernels: in the order of the profile. whole_run: the one configuration for the run, which is
    each kernel as often as its launches say. measured: the run at the further points at which all
    its kernels were measured. is_bounded: whether kernels were measured at one clock alone, so that
    times are bounds, and costs at the longest. no_energy: why energy is not known, None where it
    is. keeps_memory: why only the base's memory clock is offered. menu: for least energy without a
    limit of time, what is best under a few; the whole run's best is that under
    USUAL_SLOWDOWN_PERCENT. sure_why: the codes of `sureness` that say how sure the answer is;
    sure_why_cap: the same of a power cap.

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
    measured: tuple[Setting, ...] = ()
    warnings: tuple[Note, ...] = ()
    is_bounded: bool = False
    no_energy: str | None = None
    keeps_memory: str | None = None
    menu: tuple[Offer, ...] = ()
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
