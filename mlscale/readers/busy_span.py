"""The busy span of a monitor's log of one GPU."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mlscale.arrays import Floats, Indices, quantile
from mlscale.data.checks import check
from mlscale.data.devices import find_device
from mlscale.errors import InputError, warn
from mlscale.readers.monitor import Samples
from mlscale.text import counted

_ACTIVITIES = ("gr_engine_active", "sm_active", "gpu_utilisation", "power_w")  # the first counts
_IDLE = 0.02  # activity at or below which a GPU is idle throughout
SAME_CAP = 1.01  # highest over lowest power limit, if they are one
_USUAL = 0.95  # share of the samples: those above may be spikes, if so many are at work
_MOST_W = 3000.0  # one GPU draws less
_POWER_RISE = 1.25  # highest over lowest power: with less, power does not show it


@dataclass(frozen=True)
class BusySpan:
    """Samples `first` to `last` of a log, both busy, and the rule that found them.

    samples: how many the log has; rule: in words; idle: how many inside are below it; working: the
    indices of those inside, but for the idle ones where an activity tells them (at little power a
    GPU may work); time_ms: from before the first to the last [ms], None without time stamps;
    period_s: the usual time between two samples [s]; head_s and tail_s: what is cut before and
    after [s]; gap_s: the longest time between two samples inside [s].
    """

    first: int
    last: int
    samples: int
    rule: str
    idle: int
    working: Indices = field(repr=False, compare=False)
    time_ms: float | None = None
    period_s: float = 0.0
    head_s: float = math.nan
    tail_s: float = math.nan
    gap_s: float = 0.0

    @property
    def inside(self) -> slice:
        """All its samples."""
        return slice(self.first, self.last + 1)

    @property
    def open_ends(self) -> tuple[str, ...]:
        """'first' and 'last', if the log begins or ends in the middle of the run."""
        return ("first",) * (self.head_s == 0) + ("last",) * (self.tail_s == 0)

    def __str__(self) -> str:
        if self.samples == 1:
            return "one sample, used as the mean of the whole run"
        first, last = self.first + 1, self.last + 1
        text = f"busy from sample {first} to {last} of {self.samples}: {self.rule}"
        if not self.period_s:
            return text
        return (
            f"{text}; {self.head_s:.4g} s before and {self.tail_s:.4g} s after are cut; "
            f"a sample every {self.period_s:.4g} s"
        )


def mean_of(values: Floats) -> float:
    """The mean of the known values; NaN without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def limit_w(log: Samples, span: BusySpan) -> float:
    """The lowest power limit in a span [W], NaN without any; warns if it changes.

    Raises InputError on one that no board can have.
    """
    known = log.columns.get("power_cap_w", np.full(len(log), math.nan))[span.inside]
    known = known[~np.isnan(known)]
    if not known.size:
        return math.nan
    lowest_w, highest_w = float(known.min()), float(known.max())
    if lowest_w <= 0:
        raise InputError(f"{log}: power_cap_w: {lowest_w:g} W is not a power limit; give it in W")
    check("value", f"{log}: power_cap_w", find_device(log.name), "power_cap_w", highest_w)
    if highest_w > SAME_CAP * lowest_w:
        changed = np.flatnonzero(np.abs(known / known[0] - 1) > SAME_CAP - 1)
        ends = f"from {known[0]:g} to {known[changed[0]]:g} W"
        told = f"the power limit changes during the run, {ends}: the lowest is used, {lowest_w:g} W"
        warn("P03", f"{log}: {told}; log a run under one limit")
    return lowest_w


def mean_power(log: Samples, span: BusySpan) -> float:
    """The mean power of a span [W]: from an energy counter, else from its samples; else NaN."""
    counted_j, seconds = log.columns.get("energy_j"), log.seconds
    begin = max(0, span.first - 1)  # a sample stands for the time since the one before
    if counted_j is not None and seconds is not None and span.last > begin:
        energy_j = float(counted_j[span.last] - counted_j[begin])
        if energy_j > 0:  # no counter runs backwards, but for a driver that starts anew
            power_w = energy_j / float(seconds[span.last] - seconds[begin])
            if power_w > _MOST_W:
                told = f"its energy counter gives {power_w:.0f} W: is it in mJ?"
                raise InputError(f"{log}: {told} End its title with [mJ]")
            return power_w
    return mean_of(log.columns["power_w"][span.inside]) if "power_w" in log.columns else math.nan


def busy_span(log: Samples) -> BusySpan:
    """Cut the idle head and tail; idle moments between two busy ones stay.

    A sample is busy from a tenth of the highest activity on; where a log has no activity but
    power, from the middle between its lowest and its highest power on, so that a smoothed power
    has the true length; spikes, the highest twentieth or fewer than half of the samples
    between, are no measure. Each sample stands for the time since the one before. Raises
    InputError where the GPU is idle throughout.
    """
    name = next((name for name in _ACTIVITIES if name in log.columns), None)
    if name is None:
        raise InputError(
            f"{log}: has no reading of activity or power; record the GPU's utilisation, with "
            "DCGM GRACT or SMACT"
        )
    activity = log.columns[name]
    threshold, rule = _threshold(log, name)
    busy = np.flatnonzero(activity >= threshold)
    inside = np.arange(busy[0], busy[-1] + 1)
    not_idle = inside[~(activity[inside] < threshold)]
    span = BusySpan(
        int(busy[0]), int(busy[-1]), len(log), rule, len(inside) - len(not_idle),
        inside if name == "power_w" else not_idle,
    )  # fmt: skip
    known = ~np.isnan(activity)
    if log.seconds is None or known.sum() == 1:
        return span
    seconds, busy_seconds = log.seconds[known], log.seconds[inside][known[inside]]
    period_s = float(np.median(np.diff(seconds)))
    if not period_s and seconds[-1] > seconds[0]:  # stamps coarser than the time between samples
        stamps, counts = np.unique(seconds, return_counts=True)
        period_s = float(np.median(np.diff(stamps) / counts[1:]))
    return replace(
        span,
        time_ms=1e3 * (float(busy_seconds[-1] - busy_seconds[0]) + period_s),
        period_s=period_s,
        head_s=float(busy_seconds[0] - seconds[0]),
        tail_s=float(seconds[-1] - busy_seconds[-1]),
        gap_s=float(np.diff(busy_seconds).max(initial=0)),
    )


def _threshold(log: Samples, name: str) -> tuple[float, str]:
    """From which value of that column on a GPU is busy, and in words. InputError if it is idle."""
    known = log.columns[name][~np.isnan(log.columns[name])]
    low, high = float(known.min()), float(known.max())
    usual = quantile(known, _USUAL)
    idle = f"{log}: has no busy span: {name} is at most {high:.3g}"
    if name != "power_w":
        if high <= _IDLE:
            raise InputError(f"{idle}, so the GPU was idle")
        return high / 10, f"{name} is {high / 10:.3g} or more, a tenth of its highest"
    if high <= _POWER_RISE * low:
        raise InputError(
            f"{idle}, at least {low:.4g}: the run's start and end do not show; record the GPU's "
            "utilisation too"
        )
    highest = usual if usual > _POWER_RISE * low else high  # else the run is in few of the samples
    middle, upper = (low + highest) / 2, "highest"
    busy, half = np.flatnonzero(known >= middle), highest / 2
    if np.median(known[busy[0] : busy[-1] + 1]) < middle and half > _POWER_RISE * low:
        centre = (low + float(np.median(known[known >= half]))) / 2
        middle, upper = min((middle, upper), (centre, "the usual high"))
    return middle, f"power is {middle:.4g} W or more, halfway from lowest to {upper}"


def warn_of_pauses(log: Samples, span: BusySpan) -> None:
    """Warn if the span lacks samples, or is idle, for so long that its time may mislead."""
    samples = span.last + 1 - span.first
    check("busy span", str(log), samples, span.idle, span.gap_s, span.period_s, span.rule)


def one_gpu(logs: Sequence[Samples], gpu: str | None) -> Samples:
    """The samples of a GPU in a log, or of its only one. Raises InputError."""
    check("gpus", logs[0].source, {log.gpu: counted(len(log), "sample") for log in logs}, gpu)
    return next(log for log in logs if gpu in (None, log.gpu))
