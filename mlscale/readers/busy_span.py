"""The busy span of a monitor's log, and the row of a profile table that it becomes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.checks import check
from mlscale.data.devices import Device, facts_to_carry, find_device
from mlscale.data.grid import AXES
from mlscale.data.logs import PROFILE_KIND, RATED_UNITS, SHARES
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.readers.given import Given
from mlscale.readers.monitor import Samples
from mlscale.readers.run import set_up
from mlscale.text import counted

_ACTIVITIES = ("gr_engine_active", "sm_active", "gpu_utilisation", "power_w")  # the first counts
_IDLE = 0.02  # activity at or below which a GPU is idle throughout
_POWER_RISE = 1.25  # of the highest over the lowest power, without which power tells nothing
_SAME_CLOCK = 0.01  # by which the sampled clock may differ from the one that was set
_STEADY = 1.05  # of the highest over the lowest clock in four of five samples


@dataclass(frozen=True)
class BusySpan:
    """Samples `first` to `last` of a log, both busy, and by what rule.

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
        """'first' and 'last', as far as the log begins or ends amid the run."""
        return ("first",) * (self.head_s == 0) + ("last",) * (self.tail_s == 0)

    def __str__(self) -> str:
        if self.samples == 1:
            return "one sample, taken for the mean of the whole run"
        first, last = self.first + 1, self.last + 1
        text = f"busy from sample {first} to {last} of {self.samples}: {self.rule}"
        if not self.period_s:
            return text
        return (
            f"{text}; {self.head_s:.4g} s before and {self.tail_s:.4g} s after are cut; "
            f"a sample every {self.period_s:.4g} s"
        )


def mean_of(values: Floats) -> float:
    """The mean of those that are there; NaN of none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def limit_w(log: Samples, span: BusySpan) -> float:
    """The power limit in a span, its median [W]: it is a setting; NaN where none is there."""
    known = log.columns.get("power_cap_w", np.full(len(log), math.nan))[span.inside]
    known = known[~np.isnan(known)]
    return float(np.median(known)) if known.size else math.nan


def mean_power(log: Samples, span: BusySpan) -> float:
    """The mean power of a span [W]: by a counter of energy, else of its samples; NaN of neither."""
    counted_j, seconds = log.columns.get("energy_j"), log.seconds
    begin = max(0, span.first - 1)  # a sample stands for the time since the one before
    if counted_j is not None and seconds is not None and span.last > begin:
        energy_j = float(counted_j[span.last] - counted_j[begin])
        if energy_j > 0:  # no counter runs backwards, but for a driver that starts anew
            return energy_j / float(seconds[span.last] - seconds[begin])
    return mean_of(log.columns["power_w"][span.inside]) if "power_w" in log.columns else math.nan


def busy_span(log: Samples) -> BusySpan:
    """Cut the idle head and tail; idle moments between two busy ones stay.

    A sample is busy from a tenth of the highest activity on; where a log has no activity but
    power, from the middle between its lowest and its highest power on, so that a smoothed power
    has the true length. Each sample stands for the time since the one before. Raises InputError
    where the GPU is idle throughout.
    """
    name = next((name for name in _ACTIVITIES if name in log.columns), None)
    if name is None:
        raise InputError(
            f"{log}: has neither activity nor power, no reading of them at all; record the GPU's "
            "utilisation, with DCGM GRACT or SMACT"
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
    low, high = float(np.nanmin(log.columns[name])), float(np.nanmax(log.columns[name]))
    idle = f"{log}: has no busy span: {name} is at most {high:.3g}"
    if name != "power_w":
        if high <= _IDLE:
            raise InputError(f"{idle}, the GPU is idle")
        return high / 10, f"{name} is {high / 10:.3g} or more, a tenth of its highest"
    if high <= _POWER_RISE * low:
        raise InputError(
            f"{idle}, at least {low:.4g}: the run's start and end do not show; record the GPU's "
            "utilisation too"
        )
    middle = (low + high) / 2
    return middle, f"power is {middle:.4g} W or more, half way from lowest to highest"


def warn_of_pauses(log: Samples, span: BusySpan) -> None:
    """Warn where the span is without samples, or idle, for so long that its time may mislead."""
    samples = span.last + 1 - span.first
    check("busy span", str(log), samples, span.idle, span.gap_s, span.period_s, span.rule)


def one_gpu(logs: Sequence[Samples], gpu: str | None) -> Samples:
    """The samples of a GPU in a log, or of the only one there is. Raises InputError."""
    check("gpus", logs[0].source, {log.gpu: counted(len(log), "sample") for log in logs}, gpu)
    return next(log for log in logs if gpu in (None, log.gpu))


def samples_to_table(samples: Sequence[Samples], given: Given) -> Table:
    """A row for each GPU of each log that is not idle throughout, averaged over its busy span.

    given: what the user says of the runs, as far as the logs do not. GPUs of a log that ran side by
    side at nearly one engine clock are at their mean. Raises InputError; warns of idle GPUs, of
    clocks that differ from those that were set, and of pauses.
    """
    _refuse_copies(samples)
    busy = _busy_logs(samples, given)
    rows = [_row(log, span, given) for log, span in busy]
    side_by_side: dict[tuple[str, str], list[dict[str, float]]] = {}
    for (log, _), (device, numbers) in zip(busy, rows, strict=True):
        side_by_side.setdefault((log.source, device), []).append(numbers)
    for gpus in side_by_side.values():
        clocks = [numbers["engine_mhz"] for numbers in gpus]
        if min(clocks) < max(clocks) <= (1 + _SAME_CLOCK) * min(clocks):
            for numbers in gpus:
                numbers["engine_mhz"] = float(round(sum(clocks) / len(clocks)))
    gpus_in = Counter(log.source for log, _ in busy)
    applications = [given.application or Path(log.source).stem for log, _ in busy]
    kernels = [
        f"{name} [GPU {log.gpu}]" if gpus_in[log.source] > 1 else name
        for name, (log, _) in zip(applications, busy, strict=True)
    ]
    devices = [device for device, _ in rows]
    columns = {
        column: np.array([numbers.get(column, math.nan) for _, numbers in rows])
        for column in dict.fromkeys(column for _, numbers in rows for column in numbers)
    }
    text = {"device": devices, "application": applications, "kernel": kernels}
    metadata = facts_to_carry(devices[0]) | _metadata(busy, kernels, [*columns], given)
    return Table(busy[0][0].source, text, columns, metadata)


def _refuse_copies(samples: Sequence[Samples]) -> None:
    """Raise InputError where a GPU's samples of two files are the same: no runs of their own."""
    for n, log in enumerate(samples):
        for other in samples[:n]:
            ours, theirs = log.columns, other.columns
            if (log.gpu, ours.keys()) == (other.gpu, theirs.keys()) and all(
                np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours
            ):
                raise InputError(f"{log}: holds the same samples as {other}; leave one file away")


def _busy_logs(samples: Sequence[Samples], given: Given) -> list[tuple[Samples, BusySpan]]:
    """The logs of GPUs that work; the others are told. Raises InputError where none does."""
    if given.gpu is not None:
        sources = dict.fromkeys(log.source for log in samples)
        samples = [
            one_gpu([log for log in samples if log.source == source], given.gpu)
            for source in sources
        ]
    busy: list[tuple[Samples, BusySpan]] = []
    idle: list[InputError] = []
    for log in samples:
        timed = log
        if given.interval_s is not None and log.seconds is None:
            timed = replace(log, seconds=given.interval_s * np.arange(len(log), dtype=np.float64))
        try:
            busy.append((timed, busy_span(timed)))
        except InputError as error:
            idle.append(error)
    if not busy:
        raise idle[0]
    for reason in idle:
        warn("T09", f"{reason}; it gets no row")
    return busy


def _row(log: Samples, span: BusySpan, given: Given) -> tuple[str, dict[str, float]]:
    """The device of a row, and its numbers. Raises InputError on what neither log nor user says."""
    device = find_device(log.name) or find_device(given.device or "")
    settings = {**given.base, **mean_clocks(log, span, given.base, device)}
    seen = {"device_name": Counter[str | float]([log.name])} if log.name else {}
    setup = set_up(log.source, seen, Given(given.device, settings))
    if (time_ms := given.time_ms or log.time_ms or span.time_ms) is None:
        one = "--time MS (of the whole run: this log is one sample)"
        flag = one if len(log) == 1 else "--interval SECONDS (between two samples)"
        raise InputError(f"{log.source}: does not say how long the run took; give {flag}")
    if log.time_ms and given.time_ms is None:
        rated = f"{log}: time and energy are of {RATED_UNITS:,.0f} units of work"
        warn("M02", f"{rated}, of which it does {log.facts['work_per_s']:g} a second", "note")
    warn_of_pauses(log, span)
    known = [name for name in SHARES if name in log.columns]
    means = {"power_w": mean_power(log, span), "power_cap_w": limit_w(log, span)}
    means |= {name: mean_of(log.columns[name][span.inside]) for name in known}
    if not log.time_ms:
        means["log_time_sd"] = log.facts.get("log_time_sd", math.nan)
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if "power_w" in means:
        known_device = find_device(setup.device)
        check("board power", str(log), known_device, means["power_w"])
        check("value", str(log), known_device, "power_w", means["power_w"])
    return setup.device, {**setup.config.as_dict(), "time_ms": time_ms, **means}


def mean_clocks(
    log: Samples, span: BusySpan, base: Mapping[str, float], device: Device | None
) -> dict[str, float]:
    """The mean clocks [MHz] while the GPU worked, or those that were set where both are one.

    Of the memory clock it is the median: a memory has few clocks, and none between two of them.
    """
    clocks = {}
    for axis in AXES[1:]:
        values = np.sort(log.columns[axis][span.working]) if axis in log.columns else np.empty(0)
        values = values[~np.isnan(values)]
        if not values.size:
            continue
        middle = float(values[(values.size - 1) // 2])
        mean = middle if axis == "memory_mhz" else float(values.mean())
        check("value", f"{log}: {axis}", device, axis, mean)
        was_set = base.get(axis, log.facts.get(axis))
        if was_set is None and f"{axis}_requested" in log.columns:
            was_set = mean_of(log.columns[f"{axis}_requested"][span.working])
        # The middle four fifths, but for the ends, amid which a run may begin; of few none.
        out = max(1, round(0.1 * (values.size - 1)))
        low, high = (values[out], values[-1 - out]) if values.size >= 10 else (mean, mean)
        clocks[axis] = float(round(mean))
        if was_set is not None and abs(mean / was_set - 1) > _SAME_CLOCK:
            warn(
                "L04",
                f"{log}: {axis} was set to {was_set:g}, but ran at {mean:.0f} on average "
                f"({values[0]:g} to {values[-1]:g}); the row is at {mean:.0f}",
            )
            continue
        if high > _STEADY * low:
            warn(
                "L04",
                f"{log}: {axis} wanders, from {low:g} to {high:g} in four of five samples; the row "
                f"is at {mean:.0f}; lock the clock, and log each clock by itself",
            )
        clocks[axis] = base.get(axis, log.facts.get(axis, clocks[axis]))
    return clocks


def _metadata(
    busy: Sequence[tuple[Samples, BusySpan]], kernels: Sequence[str], columns: Sequence[str],
    given: Given,
) -> dict[str, Any]:  # fmt: skip
    titles = ", ".join(dict.fromkeys(log.kind.title for log, _ in busy))
    names = [Path(log.source).name for log, _ in busy]
    spans = [(kernel, span) for kernel, (_, span) in zip(kernels, busy, strict=True)]
    rated = {kernel for kernel, (log, _) in zip(kernels, busy, strict=True) if log.time_ms}
    ends = {
        kernel: [end for end in span.open_ends if end != "first" or "skip_s" not in log.facts]
        for kernel, (log, span) in zip(kernels, busy, strict=True)
    }
    timed = [(k, span) for k, span in spans if given.time_ms is None and k not in rated]
    return {
        "origin": "measured",
        "profile_kind": PROFILE_KIND,
        "counter_tool": busy[0][0].kind.tool,
        "power_kind": "board" if "power_w" in columns else None,
        "gpus": [log.gpu for log, _ in busy],
        "source": ", ".join(dict.fromkeys(names)),
        "utilisation_sources": {name: f"mean of {titles}" for name in SHARES if name in columns},
        "busy_spans": {k: f"{n}: {span}" for n, (k, span) in zip(names, spans, strict=True)},
        "sample_ms": {k: round(1e3 * span.period_s, 3) for k, span in timed},
        "idle_ms": {k: round(1e3 * span.period_s * span.idle, 3) for k, span in timed if span.idle},
        "working_ms": {k: round(1e3 * span.period_s * len(span.working), 3) for k, span in timed},
        "open_ends": {k: ends[k] for k, _ in timed if ends[k]},
        "feature_status": {},
        "launches": {},
    }
