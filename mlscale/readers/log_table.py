"""The runs in monitors' logs, and the row of a profile table that each becomes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.checks import check, check_named_clocks
from mlscale.data.column_names import RATED
from mlscale.data.devices import Device, facts_to_carry, find_device
from mlscale.data.grid import AXES
from mlscale.data.logs import PROFILE_KIND, SAME_CLOCK, SHARES
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.parameters import parameter
from mlscale.readers.busy_span import (
    SAME_CAP,
    BusySpan,
    busy_span,
    limit_w,
    mean_of,
    mean_power,
    one_gpu,
    warn_of_pauses,
)
from mlscale.readers.given import Given
from mlscale.readers.monitor import Samples
from mlscale.readers.run import set_up

_ALIKE = 0.03  # by which clocks of GPUs side by side differ without a note
AT_ONCE = 0.5  # share of the shorter busy span: two GPUs of one run overlap by more
_STEADY = 1.05  # highest over lowest clock in four of five samples


@dataclass(frozen=True)
class LoggedRun:
    """GPUs of one kind that worked side by side in one log; its time is the wall clock of all.

    each: the samples of each, and the span of the run: from the first busy moment of any GPU to
    the last of any. alone: the busy span of each GPU by itself.
    """

    each: tuple[tuple[Samples, BusySpan], ...]
    alone: tuple[BusySpan, ...]

    @property
    def log(self) -> Samples:
        """The samples of its first GPU."""
        return self.each[0][0]

    @property
    def span(self) -> BusySpan:
        """The span of its first GPU."""
        return self.each[0][1]

    @property
    def gpus(self) -> list[str]:
        """Their indices, as in the log."""
        return [log.gpu for log, _ in self.each]

    @property
    def idle_share(self) -> float:
        """The share of its time in which its GPUs are idle."""
        shares = [span.idle / (span.last + 1 - span.first) for _, span in self.each]
        return float(np.mean(shares))

    @property
    def power_w(self) -> float:
        """The mean power of all its GPUs [W], NaN if that of one is unknown."""
        return sum(mean_power(log, span) for log, span in self.each)

    @cached_property
    def caps_w(self) -> Floats:
        """The power limit of each GPU [W], NaN if none is stated."""
        return np.array([limit_w(log, span) for log, span in self.each])

    @property
    def lowest_cap_w(self) -> float:
        """The lowest of its GPUs' power limits [W], NaN without any."""
        return float(np.fmin.reduce(self.caps_w))

    @property
    def limit_to_put_back_w(self) -> float | None:
        """The power limit that was set [W], if a lower one is enforced; else None.

        NVML: the management limit is what `nvidia-smi -pl` sets, the enforced one the lowest of it
        and of others, such as a baseboard controller's.
        """
        was_set = [self.log.facts.get("power_limit_w", math.nan)]
        for log, span in self.each:
            was_set += log.columns.get("power_limit_w", np.empty(0))[span.inside].tolist()
        lowest_w = float(np.fmin.reduce(was_set))
        return lowest_w if lowest_w > SAME_CAP * self.lowest_cap_w else None

    @property
    def hottest_gpu_ratio(self) -> float:
        """As of `MeasuredPoint`; each GPU draws what it does while it works."""
        watts = np.array(
            [mean_power(log, s) for (log, _), s in zip(self.each, self.alone, strict=True)]
        )
        to_lowest = np.nan_to_num(self.lowest_cap_w / self.caps_w, nan=1.0)
        return float((watts * to_lowest).max() / (self.power_w / len(watts)))

    @property
    def unlike_caps(self) -> str:
        """Which GPU has which power limit, if they differ; else ''."""
        if not np.fmax.reduce(self.caps_w) > SAME_CAP * self.lowest_cap_w:
            return ""
        by_cap: dict[str, list[str]] = {}
        for gpu, cap_w in zip(self.gpus, self.caps_w.tolist(), strict=True):
            by_cap.setdefault(f"{cap_w:g} W" if cap_w > 0 else "not stated", []).append(gpu)
        told = (f"{cap} (GPU {', '.join(gpus)})" for cap, gpus in by_cap.items())
        return f"its GPUs have different power limits, {' and '.join(told)}"

    def mean(self, column: str) -> float:
        """The mean of a column over samples and GPUs; NaN if none has it."""
        each = [log.columns[column][s.inside] for log, s in self.each if column in log.columns]
        return mean_of(np.array([mean_of(values) for values in each]))

    def __str__(self) -> str:
        side_by_side = f"GPUs {', '.join(self.gpus)} side by side, the first "
        return f"{side_by_side if len(self.each) > 1 else ''}{self.span}"


def logged_run(path: Path, samples: Sequence[Samples], given: Given) -> LoggedRun:
    """The only run in a log. Raises InputError."""
    run, *others = logged_runs(samples, given)
    if others:
        kinds = " and ".join(one.log.name or "a GPU without a name" for one in (run, *others))
        told = f"has several kinds of GPU, {kinds}; name one with {parameter('gpu')}"
        raise InputError(f"{path}: {told}")
    return run


def logged_runs(samples: Sequence[Samples], given: Given) -> list[LoggedRun]:
    """The runs in some logs: of each log the GPUs of one kind that are not idle throughout.

    Logs of one GPU each, with different indices, busy at the same time are of one run.

    given: what the user states about the runs because the logs do not. Raises InputError; warns of
    idle GPUs.
    """
    runs: list[list[tuple[Samples, BusySpan]]] = []
    for one in _busy_logs(samples, given):
        same = next((run for run in runs if all(_is_of_one_run(one, other) for other in run)), None)
        if same is None:
            runs.append([one])
        else:
            same.append(one)
    return [LoggedRun(tuple(_together(run)), tuple(span for _, span in run)) for run in runs]


def _is_of_one_run(one: tuple[Samples, BusySpan], other: tuple[Samples, BusySpan]) -> bool:
    """Whether two GPUs of one kind worked side by side: in one log, or in two at the same time."""
    (log, span), (beside, span_beside) = one, other
    kinds = [device.key if (device := find_device(n)) else n for n in (log.name, beside.name)]
    if kinds[0] != kinds[1] or log.gpu == beside.gpu:
        return False
    if log.source == beside.source:
        return True
    if log.seconds is None or beside.seconds is None:
        return False
    first, second = log.seconds[span.inside], beside.seconds[span_beside.inside]
    shorter_s = min(first[-1] - first[0], second[-1] - second[0])
    at_once_s = min(first[-1], second[-1]) - max(first[0], second[0])
    return bool(at_once_s > AT_ONCE * shorter_s)


def _together(each: Sequence[tuple[Samples, BusySpan]]) -> list[tuple[Samples, BusySpan]]:
    """GPUs side by side, each with the span from the first busy moment of any to the last."""
    if len(each) == 1:
        return list(each)
    clocks = [np.arange(len(log)) if log.seconds is None else log.seconds for log, _ in each]
    begin = min(s[span.first] for s, (_, span) in zip(clocks, each, strict=True))
    end = max(s[span.last] for s, (_, span) in zip(clocks, each, strict=True))
    period_s = max(span.period_s for _, span in each)
    is_timed = all(span.time_ms for _, span in each)
    spans = []
    for seconds, (log, span) in zip(clocks, each, strict=True):
        first = int(np.searchsorted(seconds, begin))
        last = int(np.searchsorted(seconds, end, side="right")) - 1
        whole = replace(
            span,
            first=first,
            last=last,
            idle=span.idle + (span.first - first) + (last - span.last),
            time_ms=1e3 * float(end - begin + period_s) if is_timed else None,
            head_s=float(seconds[first] - seconds[0]),
            tail_s=float(seconds[-1] - seconds[last]),
            gap_s=float(np.diff(seconds[first : last + 1]).max(initial=0)) if is_timed else 0.0,
        )
        spans.append((log, whole))
    return spans


def samples_to_table(samples: Sequence[Samples], given: Given) -> Table:
    """A row for each run of `logged_runs`, averaged over its span.

    given: what the user says of the runs, as far as the logs do not. Raises InputError; warns of
    idle GPUs, of clocks that differ from those that were set or from GPU to GPU, and of pauses.
    """
    _refuse_copies(samples)
    runs = logged_runs(samples, given)
    rows = [_row(run, given) for run in runs]
    runs_in = Counter(run.log.source for run in runs)
    applications = [given.application or Path(run.log.source).stem for run in runs]
    kernels = [
        f"{name} [GPU {run.log.gpu}]" if runs_in[run.log.source] > 1 else name
        for name, run in zip(applications, runs, strict=True)
    ]
    devices = [device for device, _ in rows]
    columns = {
        column: np.array([numbers.get(column, math.nan) for _, numbers in rows])
        for column in dict.fromkeys(column for _, numbers in rows for column in numbers)
    }
    text = {"device": devices, "application": applications, "kernel": kernels}
    metadata = facts_to_carry(devices[0]) | _metadata(runs, kernels, [*columns], given)
    return Table(runs[0].log.source, text, columns, metadata)


def _refuse_copies(samples: Sequence[Samples]) -> None:
    """Raise InputError where a GPU's samples of two files are the same: no runs of their own."""
    for n, log in enumerate(samples):
        for other in samples[:n]:
            ours, theirs = log.columns, other.columns
            if (log.gpu, ours.keys()) == (other.gpu, theirs.keys()) and all(
                np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours
            ):
                raise InputError(f"{log}: has the same samples as {other}; omit one of them")


def _busy_logs(samples: Sequence[Samples], given: Given) -> list[tuple[Samples, BusySpan]]:
    """The logs of GPUs that work; the others are told. Raises InputError where none does."""
    if given.gpu is not None:
        sources = dict.fromkeys(log.source for log in samples)
        samples = [
            one_gpu([log for log in samples if log.source == source], given.gpu)
            for source in sources
        ]
    busy: list[tuple[Samples, BusySpan]] = []
    idle: list[tuple[Samples, InputError]] = []
    for log in samples:
        timed = log
        if given.interval_s is not None and log.seconds is None:
            timed = replace(log, seconds=given.interval_s * np.arange(len(log), dtype=np.float64))
        try:
            busy.append((timed, busy_span(timed)))
        except InputError as error:
            idle.append((log, error))
    if not busy:
        raise idle[0][1]
    for source in dict.fromkeys(log.source for log, _ in idle):
        gpus = [log.gpu for log, _ in idle if log.source == source]
        told = next(f"{reason}; it gets" for log, reason in idle if log.source == source)
        if len(gpus) > 1:
            told = f"{source}: GPUs {', '.join(gpus)} have no busy span, so they get"
        warn("T09", f"{told} no row")
    return busy


def _row(run: LoggedRun, given: Given) -> tuple[str, dict[str, float]]:
    """The device of a row, and its numbers. Raises InputError on what neither log nor user says."""
    log, count = run.log, len(run.each)
    device = find_device(log.name) or find_device(given.device or "")
    check_named_clocks(device, given.base)
    alone = zip(run.each, run.alone, strict=True)
    clocks = [mean_clocks(one, span, given.base, device) for (one, _), span in alone]
    axes = dict.fromkeys(axis for each in clocks for axis in each)  # some say no clock
    settings = {axis: min(each[axis] for each in clocks if axis in each) for axis in axes}
    if (highest := max(each.get("engine_mhz", 0.0) for each in clocks)) > 0:
        slowest = settings["engine_mhz"]
        if highest > (1 + _ALIKE) * slowest:
            told = f"{log.source}: its GPUs ran at {slowest:.0f} to {highest:.0f} MHz; the slowest"
            mend = f"set all to one clock, or name {parameter('gpu')}"
            warn("L04", f"{told} is used, as the others wait for it; {mend}")
    seen = {"device_name": Counter[str | float]([log.name])} if log.name else {}
    setup = set_up(log.source, seen, Given(given.device, {**given.base, **settings}))
    if (time_ms := given.time_ms or log.time_ms or run.span.time_ms) is None:
        one = f"{parameter('time_ms', 'MS')} (of the whole run: this log is one sample)"
        between = f"{parameter('interval_s', 'SECONDS')} (between two samples)"
        flag = one if len(log) == 1 else between
        raise InputError(f"{log.source}: does not say how long the run took; give {flag}")
    if log.time_ms and given.time_ms is None:
        rated = f"{log}: time and energy are for {RATED}"
        warn("M02", f"{rated}, at {log.facts['work_per_s']:g} a second", "note")
    known_device = find_device(setup.device)
    for (gpu, span), cap_w in zip(run.each, run.caps_w.tolist(), strict=True):
        warn_of_pauses(gpu, span)
        if not math.isnan(power_w := mean_power(gpu, span)):
            check("board power", str(gpu), known_device, power_w, cap_w)
            check("value", str(gpu), known_device, "power_w", power_w)
    means = {"power_w": run.power_w, "power_cap_w": run.lowest_cap_w}
    means |= {name: run.mean(name) for name in SHARES}
    if not log.time_ms:
        means["log_time_sd"] = log.facts.get("log_time_sd", math.nan)
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    gpus = {"gpu_count": float(count)} if count > 1 else {}
    if count > 1 and not math.isnan(ratio := run.hottest_gpu_ratio):
        means["hottest_gpu_ratio"] = ratio
    return setup.device, {**setup.config.as_dict(), **gpus, "time_ms": time_ms, **means}


def mean_clocks(
    log: Samples, span: BusySpan, base: Mapping[str, float], device: Device | None
) -> dict[str, float]:
    """The mean clocks [MHz] while the GPU worked, or those that were set if both agree.

    Of the memory clock it is the median: a memory has few clocks, and none between two of them.
    """
    clocks = {}
    for axis in AXES[1:]:
        values = np.sort(log.columns[axis][span.working]) if axis in log.columns else np.empty(0)
        values = values[~np.isnan(values)]
        if not values.size:
            continue
        middle = float(values[(values.size - 1) // 2])
        mean = _listed_mhz(log, middle, device) if axis == AXES[2] else float(values.mean())
        check("value", f"{log}: {axis}", device, axis, mean)
        was_set = base.get(axis, log.facts.get(axis))
        if was_set is None and f"{axis}_requested" in log.columns:
            was_set = mean_of(log.columns[f"{axis}_requested"][span.working])
        # The middle four fifths, but for the ends, amid which a run may begin; of few none.
        out = max(1, round(0.1 * (values.size - 1)))
        low, high = (values[out], values[-1 - out]) if values.size >= 10 else (mean, mean)
        clocks[axis] = float(round(mean))
        if was_set is not None and abs(mean / was_set - 1) > SAME_CLOCK:
            named = "was set to" if axis == "engine_mhz" else "at the base is"
            ran = f"but ran at {mean:.0f}"
            if values[0] < values[-1]:
                ran += f" on average ({values[0]:g} to {values[-1]:g})"
            warn("L04", f"{log}: {axis} {named} {was_set:g}, {ran}; the row is at {mean:.0f}")
            continue
        if high > _STEADY * low:
            warn(
                "L04",
                f"{log}: {axis} varies, from {low:g} to {high:g} in four of five samples; the row "
                f"is at {mean:.0f}; lock the clock, and log each clock separately",
            )
        clocks[axis] = base.get(axis, log.facts.get(axis, clocks[axis]))
    return clocks


def _listed_mhz(log: Samples, memory_mhz: float, device: Device | None) -> float:
    """A memory clock as the vendor's tool lists it, of which GPU-Z shows a half to an eighth."""
    highest = device.highest_mhz("memory_mhz") if device else None
    if device is None or highest is None:
        return memory_mhz
    is_part = any(abs(n * memory_mhz / highest - 1) < SAME_CLOCK for n in (2, 4, 8))
    listed = device.memory_clocks_mhz()
    if not is_part or any(abs(memory_mhz / mhz - 1) < SAME_CLOCK for mhz in listed):
        return memory_mhz
    told = f"memory_mhz {memory_mhz:.0f}, as GPU-Z counts, is {highest:g} in the vendor's tool"
    warn("L04", f"{log}: {told}, which counts", "note")
    return highest


def _metadata(
    runs: Sequence[LoggedRun], kernels: Sequence[str], columns: Sequence[str], given: Given
) -> dict[str, Any]:
    titles = ", ".join(dict.fromkeys(run.log.kind.title for run in runs))
    names = [Path(run.log.source).name for run in runs]
    named = list(zip(kernels, runs, strict=True))
    timed = [(k, run) for k, run in named if given.time_ms is None and not run.log.time_ms]
    ends = {
        f"{kernel} [GPU {log.gpu}]" if len(run.each) > 1 else kernel: [
            end for end in span.open_ends if end != "first" or "skip_s" not in log.facts
        ]
        for kernel, run in timed
        for (log, _), span in zip(run.each, run.alone, strict=True)
    }

    def mean_ms(run: LoggedRun, counts: Sequence[int]) -> float:
        return round(1e3 * run.span.period_s * float(np.mean(counts)), 3)

    idle = {k: mean_ms(run, [span.idle for _, span in run.each]) for k, run in timed}
    return {
        "origin": "measured",
        "profile_kind": PROFILE_KIND,
        "counter_tool": runs[0].log.kind.tool,
        "power_kind": "board" if "power_w" in columns else None,
        "gpus": [gpu for run in runs for gpu in run.gpus],
        "source": ", ".join(dict.fromkeys(names)),
        "asked_clocks": [kernel for kernel, run in named if not run.mean("engine_mhz") > 0],
        "utilisation_sources": {name: f"mean of {titles}" for name in SHARES if name in columns},
        "busy_spans": {k: f"{n}: {run}" for n, (k, run) in zip(names, named, strict=True)},
        "unlike_power_limits": {k: run.unlike_caps for k, run in named if run.unlike_caps},
        "power_limit_w": next(filter(None, (run.limit_to_put_back_w for run in runs)), None),
        "sample_ms": {k: round(1e3 * run.span.period_s, 3) for k, run in timed},
        "idle_ms": {k: idle_ms for k, idle_ms in idle.items() if idle_ms},
        "working_ms": {k: mean_ms(run, [len(s.working) for s in run.alone]) for k, run in timed},
        "open_ends": {k: open_ends for k, open_ends in ends.items() if open_ends},
        "feature_status": {},
        "launches": {},
    }
