"""The busy span of a log: from the first to the last sample at which the GPU works."""

from dataclasses import dataclass, field

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.errors import InputError, warn
from mlscale.profilers.sampled.log import SampledLog

ACTIVITIES = ("gr_engine_active", "sm_active", "gpu_utilisation")  # the first that is there counts
BUSY_PART = 0.1  # of the highest activity, from which a sample is busy
IDLE = 0.02  # activity at or below which a GPU is idle throughout
FEW = 10  # samples, of which the middle four fifths tell something
LONG = 10  # periods, beyond which a gap inside the span is told, or all pauses together
PAUSES = 0.1  # of the span, which pauses that are told are too
POWER_RISE = 1.25  # of the highest over the lowest power, without which power tells nothing


@dataclass(frozen=True)
class BusySpan:
    """Samples `first` to `last` of a log, both busy, and by what rule.

    samples: how many the log has; rule: in words; working: the indices of those inside, without
    the idle ones; time_ms: from before the first to the last [ms], None without time stamps;
    period_s: the usual time between two samples [s]; head_s and tail_s: what is cut before and
    after [s]; longest_gap_s: between two samples inside [s].
    """

    first: int
    last: int
    samples: int
    rule: str
    working: Indices = field(repr=False, compare=False)
    time_ms: float | None = None
    period_s: float | None = None
    head_s: float | None = None
    tail_s: float | None = None
    longest_gap_s: float | None = None

    @property
    def open_ends(self) -> tuple[str, ...]:
        """'first' and 'last', as far as the log begins or ends amid the run."""
        ends = {"first": self.head_s, "last": self.tail_s}
        return tuple(end for end, cut_s in ends.items() if cut_s == 0)

    def mean(self, values: Floats) -> float:
        """The mean over the span of a column (S,), of the samples that have it; NaN if none has."""
        return _mean(_present(values[self.first : self.last + 1]))

    def working_mean(self, values: Floats) -> float:
        """The mean over the working samples alone, of those that have it; NaN if none has."""
        return _mean(_present(values[self.working]))

    def working_median(self, values: Floats) -> float:
        """As working_mean, but a value of the column: the lower of the two in the middle."""
        working = np.sort(_present(values[self.working]))
        return float(working[(working.size - 1) // 2]) if working.size else float("nan")

    def working_middle(self, values: Floats) -> tuple[float, float]:
        """The ends of the middle four fifths of a column's values over the working samples.

        At least the lowest and the highest are left out, as the run may begin or end amid them.
        Both are the mean where there are too few to tell.
        """
        working = np.sort(_present(values[self.working]))
        if working.size < FEW:
            return float(working.mean()), float(working.mean())
        out = max(1, round(0.1 * (working.size - 1)))
        return float(working[out]), float(working[-1 - out])

    def __str__(self) -> str:
        if self.samples == 1:
            return "one sample, taken for the mean of the whole run"
        text = (
            f"busy from sample {self.first + 1} to {self.last + 1} of {self.samples}: {self.rule}"
        )
        if self.head_s is None or self.tail_s is None or self.period_s is None:
            return text
        return (
            f"{text}; {self.head_s:.4g} s before and {self.tail_s:.4g} s after are cut; "
            f"a sample every {self.period_s:.4g} s"
        )


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else float("nan")


def busy_span(log: SampledLog) -> BusySpan:
    """Cut the idle head and tail; idle moments between two busy ones stay.

    A sample is busy from a tenth of the highest activity on; where a log has no activity but
    power, from the middle between its lowest and its highest power on, so that a smoothed power
    has the true length. Each sample stands for the time since the one before. Raises InputError
    where the GPU is idle throughout.
    """
    activity, threshold, rule = _busy_rule(log)
    busy = np.flatnonzero(activity >= threshold)
    begin, end = int(busy[0]), int(busy[-1])
    working = np.arange(begin, end + 1)
    if any(map(log.has, ACTIVITIES)):  # at little power a GPU may work
        working = working[~(activity[working] < threshold)]
    known = np.flatnonzero(~np.isnan(activity))
    if log.seconds is None or len(known) == 1:
        return BusySpan(begin, end, len(log), rule, working)
    seconds = log.seconds[known]
    busy = np.flatnonzero(activity[known] >= threshold)
    first, last = int(busy[0]), int(busy[-1])
    period_s = float(np.median(np.diff(seconds)))
    return BusySpan(
        first=begin,
        last=end,
        samples=len(log),
        rule=rule,
        working=working,
        time_ms=1e3 * (float(seconds[last] - seconds[first]) + period_s),
        period_s=period_s,
        head_s=float(seconds[first] - seconds[0]),
        tail_s=float(seconds[-1] - seconds[last]),
        longest_gap_s=float(np.diff(seconds[first : last + 1]).max(initial=0)),
    )


def warn_of_holes(log: SampledLog, span: BusySpan) -> None:
    """Warn where the span is without samples, or idle, for so long that its time may mislead."""
    if not (span.period_s and span.longest_gap_s):
        return
    idle = span.last + 1 - span.first - span.working.size
    if span.longest_gap_s > LONG * span.period_s:
        warn(
            f"{log}: has no sample for {span.longest_gap_s:.4g} s of the busy span; "
            "the time counts them"
        )
    elif idle > max(LONG, PAUSES * (span.last + 1 - span.first)):
        warn(
            f"{log}: is idle for {idle * span.period_s:.4g} s of the busy span; if these are two "
            "runs, give a log of each; if one that waits, for requests or the CPU, its time counts "
            "the pauses, and what runs between them slows by more than the whole: a log under a "
            "load that keeps the GPU busy tells by how much"
        )


def _busy_rule(log: SampledLog) -> tuple[Floats, float, str]:
    """The column that tells busy from idle, from what value on, and the rule in words."""
    for name in ACTIVITIES:
        if log.has(name):
            activity = log.columns[name]
            highest = float(np.nanmax(activity))
            if highest <= IDLE:
                percents = 100 * _present(activity)
                is_whole = name != "gpu_utilisation" or bool((percents % 1 < 1e-9).all())
                unless = "" if is_whole else ", unless shares of 1 stand where percent belong"
                raise InputError(
                    f"{log}: has no busy span: {name} is at most {highest:.3g}, the GPU is idle"
                    f"{unless}"
                )
            threshold = BUSY_PART * highest
            return activity, threshold, f"{name} is {threshold:.3g} or more, a tenth of its highest"
    if not log.has("power_w"):
        raise InputError(
            f"{log}: has neither activity nor power, no reading of them at all; record the GPU's "
            "utilisation, with DCGM GRACT or SMACT"
        )
    power = log.columns["power_w"]
    lowest, highest = float(np.nanmin(power)), float(np.nanmax(power))
    if highest < POWER_RISE * lowest:
        raise InputError(
            f"{log}: has no busy span: power is all that tells busy from idle, and it stays "
            f"between {lowest:.4g} and {highest:.4g} W; record the GPU's utilisation too"
        )
    threshold = (lowest + highest) / 2
    return power, threshold, f"power is {threshold:.4g} W or more, half way from lowest to highest"
