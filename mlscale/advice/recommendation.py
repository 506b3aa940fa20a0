"""What advice consists of: configurations, what they cost, and what is best among them."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mlscale.advice.objectives import WITHOUT_POWER, Limits, slowdown_percent
from mlscale.arrays import Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.supply import UNLIMITED, Supply
from mlscale.data.surfaces import Surfaces
from mlscale.errors import extra_named
from mlscale.text import counted

if TYPE_CHECKING:
    import pandas as pd

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
