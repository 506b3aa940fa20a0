"""What advice consists of: settings, what each kernel and the whole run should have, and all."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mlscale.advice.objectives import OBJECTIVES, WITHOUT_POWER, Limits
from mlscale.arrays import Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.supply import UNLIMITED, Supply
from mlscale.data.surfaces import Surfaces
from mlscale.errors import extra_named
from mlscale.model.predictions import COVERAGE
from mlscale.notes import Note
from mlscale.text import counted

if TYPE_CHECKING:
    import pandas as pd

WHOLE_RUN = "whole run"
Row = dict[str, Any]
Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Setting:
    """What can be set, and what is expected of a kernel or a run there.

    time_ms [ms], power_w [W], energy_mj [mJ]: None where that is not known. Against the base:
    slowdown_percent of time, saving_percent of the objective (NaN where it is not known), each
    with its interval where the predictors give intervals. Under a power cap config's engine clock
    is the mean over the time.
    """

    config: HardwareConfig
    time_ms: float
    power_w: float | None
    energy_mj: float | None
    slowdown_percent: float
    saving_percent: float
    slowdown_range: Interval = None
    saving_range: Interval = None

    @classmethod
    def from_row(cls, row: Mapping[str, float], cu_axis: str) -> "Setting":
        """From numbers by the names of `row` and `effects`, NaN if not known; cu_axis: a grid's."""

        def interval(name: str) -> Interval:
            low, high = row[f"{name}_low_percent"], row[f"{name}_high_percent"]
            return None if math.isnan(low) else (low, high)

        power_w, energy_mj = row["power_w"], row["energy_mj"]
        return cls(
            config=HardwareConfig(
                int(row["cu_count"]), row["engine_mhz"], row["memory_mhz"], cu_axis=cu_axis
            ),
            time_ms=row["time_ms"],
            power_w=None if math.isnan(power_w) else power_w,
            energy_mj=None if math.isnan(energy_mj) else energy_mj,
            slowdown_percent=row["slowdown_percent"],
            saving_percent=row["saving_percent"],
            slowdown_range=interval("slowdown"),
            saving_range=interval("saving"),
        )

    def row(self) -> Row:
        """The settings and what they cost."""
        costs = {"time_ms": self.time_ms, "power_w": self.power_w, "energy_mj": self.energy_mj}
        return {**self.config.as_dict(), **costs}

    def effects(self) -> dict[str, float | None]:
        """What it saves, and how much slower it is, with the ends of intervals [%]."""
        least, most = self.saving_range or (None, None)
        quickest, slowest = self.slowdown_range or (None, None)
        return {
            "saving_percent": self.saving_percent,
            "saving_low_percent": least,
            "saving_high_percent": most,
            "slowdown_percent": self.slowdown_percent,
            "slowdown_low_percent": quickest,
            "slowdown_high_percent": slowest,
        }


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

    def row(self) -> Row:
        """All as JSON values, but for the part of a kernel in the run."""
        expected = self.expected
        return {
            "best": self.best.row(),
            "expected": {**expected.row(), **expected.effects()} if expected else None,
            "at_base": self.base.row(),
            **self.best.effects(),
            "front": [setting.row() for setting in self.front],
            "flags": [str(note) for note in self.flags],
        }

    def part_of_run(self) -> Row:
        """How often a kernel runs, and its share of the time; None of the whole run."""
        return {"launches": self.launches, "share_percent": self.share_percent}

    def kernel_row(self) -> Row:
        """A kernel's as JSON values, with what becomes of it in the whole run."""
        row: Row = {"kernel": self.kernel, **self.part_of_run(), **self.row()}
        if self.in_run is not None:
            slowdown = {"slowdown_percent": self.in_run.slowdown_percent}
            row["at_whole_run_best"] = {**self.in_run.row(), **slowdown}
        return row


@dataclass(frozen=True)
class Workload:
    """What was run.

    kernels: how many. launches: of all kernels; None where the profile does not say, and each
    runs once. counters_cover_percent: the share of the kernels' time at the base that kernels with
    counters have [%]. is_sampled: whether each kernel is a run of its own, as a monitor's log sees
    it, perhaps beside the others on another GPU; then the whole run's time is GPU time.
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

    kernels: in the order of the profile. whole_run: the one configuration for the run, which is
    each kernel as often as its launches say. measured: the run at the further points at which all
    its kernels were measured. tried_mhz: the engine clocks that were tried, ascending. is_bounded:
    whether kernels were measured at one clock alone, so that times are bounds, and costs at the
    longest. no_energy: why energy is not known, None where it is. keeps_memory: why only the
    base's memory clock is offered.

    What it rests on: surfaces, by quantity every kernel's absolute values [ms], [W], with intervals
    of COVERAGE each; held: they, their high ends as the board's limit leaves them. supply: what
    the board supplies, unlimited where that is not known or power not predicted; where a kernel
    draws more, nothing is advised. offered (C, E, M): what the GPU may be set to.
    """

    device: str
    objective: str
    limits: Limits
    static_power_w: float | None
    workload: Workload
    whole_run: Recommendation
    kernels: tuple[Recommendation, ...] = ()
    measured: tuple[Setting, ...] = ()
    tried_mhz: tuple[float, ...] = ()
    warnings: tuple[Note, ...] = ()
    is_bounded: bool = False
    no_energy: str | None = None
    keeps_memory: str | None = None
    surfaces: dict[str, Surfaces] = field(default_factory=dict, compare=False)
    held: dict[str, Surfaces] = field(default_factory=dict, compare=False)
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

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """That of each kernel, then that of the whole run, where it is more than one launch."""
        return self.kernels if self.workload.is_one_launch else (*self.kernels, self.whole_run)

    def rows(self) -> list[Row]:
        """The table of `mlscale advise --format csv`: the best, then the front, of each of these.

        What a row does not have is None: what the best saves is in its own row alone, as are its
        flags, joined by '; '.
        """
        rows = []
        for one in self.recommendations:
            for setting in dict.fromkeys([one.best, *one.front]):
                is_best = setting == one.best
                row = {"kernel": one.kernel or WHOLE_RUN, **setting.row(), **one.part_of_run()}
                row |= {"best": int(is_best), "on_front": int(setting in one.front)}
                row |= setting.effects() if is_best else dict.fromkeys(setting.effects())
                rows.append(row | {"flags": "; ".join(map(str, one.flags if is_best else ()))})
        return rows

    @extra_named("'to_frame'")
    def to_frame(self) -> "pd.DataFrame":
        """Return `rows` as a pandas DataFrame, NaN for a number that is None."""
        import pandas as pd

        frame = pd.DataFrame(self.rows())
        return frame.astype(dict.fromkeys(frame.columns[frame.isna().any()], float))

    def document(self) -> Row:
        """The advice for the whole run as JSON values, as docs/file-formats.md describes them."""
        return {
            "objective": self.objective,
            "unit": OBJECTIVES[self.objective],
            "limits": asdict(self.limits),
            "static_power_w": self.static_power_w,
            "coverage": COVERAGE,
            "whole_run": {
                **asdict(self.workload),
                **self.whole_run.row(),
                "measured": [setting.row() for setting in self.measured],
            },
            "warnings": [str(note) for note in self.warnings],
        }
