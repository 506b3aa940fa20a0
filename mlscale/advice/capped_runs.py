"""The power cap for a run that was read under caps alone, whose engine clock nobody knows.

Between two neighbouring readings of watts W1 > W2, with u = (W1 - W) / (W1 - W2), the rate of work

    1 / T = r1 - (r1 - r2) ((1 - B) u + B u^2),    B = 0.8: how much it bends

is a concave quadratic: near W1 the clock falls little, near W2 more. B, and the ends of its
interval, are from runs of eight GPUs under caps (docs/howto/set-clocks.md). Below the lowest
reading no one form holds: nothing is said there. Of a cap a run draws the share that it drew of the
next lower one that was read, as training runs draw less in mean than a cap that slows them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from mlscale.advice.answer import PlainAnswer, RunGoal, answer_by_caps
from mlscale.advice.caps import (
    STEP_W,
    CapAdvice,
    CapCurve,
    CapRuns,
    cap_steps,
    choose_cap,
    refuse_pauses,
    refuse_unlike_limits,
    refused_caps,
    require_cap_objective,
    with_steepness,
)
from mlscale.advice.commands import commands_for_cap
from mlscale.advice.objectives import SAME, Limits
from mlscale.advice.search import choice_of_base
from mlscale.arrays import Floats
from mlscale.data.checks import check
from mlscale.data.devices import find_device, known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.points import warn_of_base
from mlscale.data.profiles import gpu_count_of, hottest_gpu_ratio_of
from mlscale.data.supply import NOT_KEPT, Supply, is_at_limit, limiter_notes
from mlscale.data.table import CAP_COLUMNS, Table, with_time
from mlscale.errors import InputError, UsageError
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.readers.busy_span import warn_of_pauses
from mlscale.readers.log_table import logged_run
from mlscale.readers.source import Source
from mlscale.subject import Asked, rated_times_ms, readings_of
from mlscale.text import counted

BEND, BEND_RANGE = 0.8, (0.0, 1.6)
NOISE = 0.02  # times scatter so much, beyond what the bend leaves open
SAME_W = 0.02  # readings whose watts are nearer than this are one plateau
SECOND = 0.65  # a second reading at so much of the first's watts tells most
NO_CLOCK = HardwareConfig(0, math.nan, math.nan)
_NO_USE = ("power", "time_ms", "static_power", "weights")
MOST_SLOWER, MOST_WATTS = 10.0, 10.0  # times the next reading's: more is other work


@dataclass(frozen=True)
class CappedReading:
    """A run under a power cap: its time [ms], its mean power [W], and the cap [W]; NaN: not known.

    source: where it stands, for messages. gpu_count: power is of so many GPUs, the cap of each.
    hottest_gpu_ratio: as of `MeasuredPoint`, of GPUs with one limit.
    Raises InputError on a time or power that is none.
    """

    time_ms: float
    power_w: float
    cap_w: float = math.nan
    source: str = "a capped run"
    gpu_count: int = 1
    hottest_gpu_ratio: float = 1.0

    def __post_init__(self) -> None:
        for what, value in (("a time", self.time_ms), ("a power", self.power_w)):
            if not 0 < value < math.inf:
                raise InputError(f"{self.source}: {value:g} is not {what}")

    @property
    def under_w(self) -> float:
        """Its cap, or what it drew where that is not known [W]."""
        return self.power_w if math.isnan(self.cap_w) else self.cap_w


def times_under(watts: Floats, readings: Sequence[CappedReading]) -> Floats:
    """Time at so many watts (P,): as expected, shortest and longest (P, 3) [ms]; NaN outside.

    readings: two or more, by descending watts, no two alike. What was read has no interval;
    between two readings it goes no more than NOISE beyond theirs.

    Example:
        >>> fast, slow = CappedReading(10.0, 300.0), CappedReading(12.5, 200.0)
        >>> times = times_under(np.array([300.0, 250.0, 200.0, 150.0]), [fast, slow])
        >>> times[:, 0].round(2).tolist()
        [10.0, 10.64, 12.5, nan]
    """
    power_w = np.array([reading.power_w for reading in readings])
    rates = 1 / np.array([reading.time_ms for reading in readings])
    upper = np.clip(np.searchsorted(-power_w, -watts, side="right") - 1, 0, len(readings) - 2)
    u = (power_w[upper] - watts) / (power_w[upper] - power_w[upper + 1])
    fall = rates[upper] - rates[upper + 1]
    bends = np.array([BEND, *sorted(BEND_RANGE, reverse=True)])
    rate = rates[upper, None] - fall[:, None] * (u[:, None] - bends * (u - u**2)[:, None])
    rate = np.minimum(rate, np.maximum(rates[upper], rates[upper + 1])[:, None])
    times = np.column_stack([1 / rate[:, 0], 1 / rate.max(axis=1), 1 / rate.min(axis=1)])
    is_read = np.isclose(watts[:, None], power_w, rtol=SAME, atol=0).any(axis=1)
    times *= np.where(is_read[:, None], 1.0, [1.0, 1 - NOISE, 1 + NOISE])
    times[(watts < power_w[-1]) | (watts > power_w[0])] = np.nan
    return times


def drawn_under(cap_w: Floats, readings: Sequence[CappedReading]) -> Floats:
    """What the run draws under caps (P,) [W], of which readings of any order tell.

    Of a cap it draws the share that the reading of the next lower cap drew, or the whole where that
    drew more; but no less than this one and no more than the next. A reading whose cap is not known
    is taken to draw it. NaN above the highest cap, if that held the run.
    """
    caps, drew = np.array(sorted((one.under_w, one.power_w) for one in readings)).T
    place = np.searchsorted(caps, cap_w, side="right") - 1
    lower, upper = np.maximum(place, 0), np.minimum(place + 1, len(caps) - 1)
    watts = cap_w * np.minimum(drew / caps, 1)[lower]
    watts = np.where(place < 0, watts, np.maximum(watts, drew[lower]))
    is_above = (cap_w > caps[-1] * (1 + SAME_W)) & is_at_limit(drew[-1], caps[-1])
    return np.where(is_above, math.nan, np.minimum(watts, drew[upper]))


def advise_capped(
    readings: Sequence[CappedReading],
    device: str,
    cap_w: Sequence[float] = (),
    objective: str | None = None,
    limits: Limits | None = None,
) -> CapAdvice:
    """The run under each power cap between readings, and the cap that serves it best.

    The base is the reading of most watts; of several that draw alike the highest cap is its own.
    device: a key of the device table, or any name. cap_w [W]: by default in steps from the lowest
    cap, or watts, that were read to the highest. objective, limits: as for `advise_caps`. Raises
    InputError on readings of about one power, of powers that the GPU cannot draw, and of different
    work.
    """
    objective, limits = objective or "energy", limits or Limits()
    require_cap_objective(objective)
    if not readings:
        raise InputError("a power cap needs readings at two powers, and there are none")
    gpus = readings[0].gpu_count
    for reading in readings:
        if reading.gpu_count != gpus:
            ran = f"{reading.source}: ran on {counted(reading.gpu_count, 'GPU')}"
            ran += f", {readings[0].source} on {gpus}; name one with {parameter('gpu')}"
            raise InputError(ran)
    ratio = max(readings, key=lambda one: one.power_w).hottest_gpu_ratio
    boards = Supply(gpu_count=gpus, hottest_gpu_ratio=ratio).boards
    readings = [replace(one, power_w=one.power_w / boards) for one in readings]
    for reading in readings:
        gpu = known_device(device)
        check("value", reading.source, gpu, "power_w", reading.power_w)
        check("value", f"{reading.source}: power_cap_w", gpu, "power_cap_w", reading.cap_w)
    plateaus = _plateaus(readings)
    distinct = [_merged(plateau) for plateau in plateaus]
    _require_same_work(distinct)
    first, last = distinct[0], distinct[-1]
    if len(distinct) < 2:
        raise InputError(
            f"{first.source}: a power cap needs readings at two powers, and there is one, of "
            f"about {first.power_w:.0f} W; run it under a cap of about "
            f"{SECOND * first.power_w:.0f} W too: {parameter('also', 'FILE')}"
        )
    by_plateau = zip(distinct, plateaus, strict=True)
    alike = [replace(mean, cap_w=one.cap_w) for mean, plateau in by_plateau for one in plateau]
    set_w = [reading.cap_w for reading in readings if not math.isnan(reading.cap_w)]
    was_set_w = (min(set_w, default=math.nan), max(set_w, default=math.nan))
    caps = np.unique(np.array(cap_w, dtype=np.float64))
    if not len(caps):
        lowest_w = min(one.under_w for one in alike)
        if lowest_w not in set_w:
            lowest_w = min(math.ceil(lowest_w / STEP_W) * STEP_W, first.power_w)
        caps = cap_steps(lowest_w, max(one.under_w for one in alike))
    curves, steep = with_steepness(lambda nudged: _curves(nudged, alike, distinct), caps)
    run_curves = tuple(curve.times_gpus(boards) for curve in curves)
    base_w = first.power_w * boards
    base = choice_of_base(NO_CLOCK, first.time_ms, base_w)
    now_w = float(np.fmax.reduce([reading.cap_w for reading in plateaus[0]]))
    runs = CapRuns(
        device=device,
        cap_w=caps,
        curves=run_curves,
        steepness=steep,
        base=base,
        base_peak_w=base_w,
        was_set_w=was_set_w,
        supply=Supply(cap_w=now_w, gpu_count=gpus, hottest_gpu_ratio=ratio),
    )
    advice = choose_cap(runs, objective, limits)
    warnings = [*plateau_notes(readings), *refused_caps(runs, advice.points)]
    told = [point for point in advice.points if point.run]
    if curves[0].too_low[0] or advice.best in told[:1]:
        text = (
            f"below {last.power_w:.0f} W, the lowest reading, nothing is predicted; add a "
            f"reading there: {parameter('also')}"
        )
        warnings.append(Note("P03", text))
    top = max(alike, key=lambda one: one.under_w)
    is_asked = caps[-1] > top.under_w or advice.best in told[-1:]
    if is_asked and is_at_limit(top.power_w, top.under_w):
        text = (
            f"the run drew {top.power_w:.0f} of {top.under_w:g} W: nothing above that is "
            f"predicted; add a reading under a higher cap: {parameter('also')}"
        )
        warnings.append(Note("P03", text))
    return replace(advice, warnings=tuple(warnings))


def _require_same_work(readings: Sequence[CappedReading]) -> None:
    """Raise InputError where readings, by descending watts, cannot be of one work."""
    for upper, lower in pairwise(readings):
        slower, ratio = lower.time_ms / upper.time_ms, upper.power_w / lower.power_w
        if slower < 1 - NOISE or slower > MOST_SLOWER or ratio > MOST_WATTS:
            raise InputError(
                f"{lower.source}: takes {lower.time_ms:g} ms at {lower.power_w:g} W, and "
                f"{upper.source} {upper.time_ms:g} ms at {upper.power_w:g} W: the same work takes "
                f"longer on less power, at most {MOST_SLOWER:g} times; give times in ms and powers "
                "in W of runs that do the same work"
            )


def _curves(
    cap_w: Floats, readings: Sequence[CappedReading], distinct: Sequence[CappedReading]
) -> tuple[CapCurve, ...]:
    """The run under caps (P,): as expected, and at the shortest and the longest times."""
    watts = drawn_under(cap_w, readings)
    times = times_under(watts, distinct)
    power_w = np.where(np.isnan(times[:, 0]), math.nan, watts)
    unknown_mhz, too_low = np.full(len(watts), math.nan), (watts < distinct[-1].power_w).astype(int)
    return tuple(
        CapCurve(
            power_w=power_w[None],
            run_time_ms=time_ms,
            run_power_w=power_w,
            run_energy_mj=time_ms * power_w,
            run_engine_mhz=unknown_mhz,
            highest_mhz=unknown_mhz,
            too_low=too_low,
        )
        for time_ms in times.T
    )


def _plateaus(readings: Sequence[CappedReading]) -> list[list[CappedReading]]:
    """The readings by descending watts, those of nearly the same watts together."""
    plateaus: list[list[CappedReading]] = []
    for reading in sorted(readings, key=lambda reading: -reading.power_w):
        if plateaus and reading.power_w > plateaus[-1][0].power_w * (1 - SAME_W):
            plateaus[-1].append(reading)
        else:
            plateaus.append([reading])
    return plateaus


def _merged(plateau: Sequence[CappedReading]) -> CappedReading:
    """The mean of the readings of a plateau, of no one cap."""
    time_ms = fmean(reading.time_ms for reading in plateau)
    power_w = fmean(reading.power_w for reading in plateau)
    return CappedReading(time_ms, power_w, source=plateau[0].source)


def plateau_notes(readings: Sequence[CappedReading]) -> list[Note]:
    """What to know of caps that draw alike, and of those that were not kept."""
    warnings = []
    for plateau in _plateaus(readings):
        merged = _merged(plateau)
        caps = sorted({reading.cap_w for reading in plateau if not math.isnan(reading.cap_w)})
        if len(caps) > 1:
            told = f"caps of {caps[0]:g} to {caps[-1]:g} W draw the same, {merged.power_w:.0f} W"
            warnings.append(Note("P03", told))
        if caps and merged.power_w > NOT_KEPT * caps[0]:
            told = (
                f"{merged.source}: a cap of {caps[0]:g} W was not kept, the run drew "
                f"{merged.power_w:.0f} W: a lower cap saves no more, and a cap above it may "
                "not be kept either; measure a run under the cap that you choose"
            )
            warnings.append(Note("P03", told, "warning"))
    return warnings


# From files and tables to the answer.


@dataclass(frozen=True)
class CappedRun:
    """Readings of one run under caps, with the GPU's names and what a log says of its GPUs."""

    readings: tuple[CappedReading, ...]
    devices: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """The GPU, '' where no file says it and no option."""
        return "".join(self.devices)


def answer_on_caps(
    asked: Asked, goal: RunGoal, rates: Sequence[float], has_commands: bool
) -> tuple[PlainAnswer, list[Note]]:
    """The best cap, and notes on it; rates: work per second of each run. Raises InputError."""
    no_use = (asked.given.power, asked.given.time_ms, goal.static_power_w, asked.weights)
    for name, given in zip(_NO_USE, no_use, strict=True):
        if given is not None:
            told = "does not work with runs under caps at unknown clocks"
            raise UsageError(f"{parameter(name)} {told}")
    run = _read(asked, rates)
    caps = advise_capped(run.readings, run.device, goal.caps_w or (), goal.objective, goal.limits)
    commands = commands_for_cap(caps, run.metadata) if has_commands else None
    files = tuple(one for one in readings_of(asked) if isinstance(one, Source))
    found = replace(answer_by_caps(caps), commands=commands, files=files)
    return found, limiter_notes(run.metadata, caps.runs.supply.cap_w)


def _read(asked: Asked, rates: Sequence[float]) -> CappedRun:
    """What was read, each row of a table and each log one. Raises InputError."""
    devices, given = {*filter(None, [asked.given.device])}, readings_of(asked)
    times_ms = rated_times_ms(rates, len(given)) if rates else [None] * len(given)
    found: dict[str, CappedRun] = {}
    for one, time_ms in zip(given, times_ms, strict=True):
        name = one.source if isinstance(one, Table) else str(one.path)
        if name in found:
            raise InputError(f"{name}: is given twice; each reading needs its own file")
        if isinstance(one, Table):
            run = _read_rows(one, time_ms)
        elif one.is_table_of_caps(asked.columns):
            run = _read_rows(one.table(asked.columns), time_ms)
        else:
            run = _read_log(one, asked, time_ms)
        found[name] = run
        devices |= run.devices
    keys = {known.key if (known := find_device(name)) else name for name in devices}
    first = next(iter(found))
    if len(keys) > 1:
        raise InputError(f"{first}: the readings mix {' and '.join(sorted(keys))}")
    most_w = {name: max(one.power_w for one in run.readings) for name, run in found.items()}
    base = max(found, key=lambda name: most_w[name])
    if most_w[first] < (1 - SAME_W) * most_w[base]:
        warn_of_base(f"{base}, which draws the most", first)
    readings = tuple(one for run in found.values() for one in run.readings)
    return CappedRun(readings, frozenset(keys), found[base].metadata)


def _read_rows(table: Table, time_ms: float | None) -> CappedRun:
    """A reading for each row of a table, and the GPUs that it names. Raises InputError."""
    path, table = table.source, with_time(table, time_ms)
    table.require(["time_ms", "power_w"])
    for name in ("application", "kernel"):
        if len(runs := set(table.text.get(name, ()))) > 1:
            raise InputError(
                f"{path}: has several runs in column '{name}' ({', '.join(sorted(runs)[:3])}), and "
                "no engine_mhz; give the rows of one run, or its clock with "
                f"{parameter('base', 'engine=…')}"
            )
    times, watts = table.positive("time_ms"), table.positive("power_w")
    caps = np.full(len(table), math.nan)
    for name in CAP_COLUMNS:
        if name in table.numbers:
            caps = table.positive(name, optional=True)
            break
    rows = zip(times.tolist(), watts.tolist(), caps.tolist(), strict=True)
    gpus, ratio = gpu_count_of(table), hottest_gpu_ratio_of(table)
    readings = (
        CappedReading(*row, f"{path}: {table.row(place)}", gpus, ratio)
        for place, row in enumerate(rows)
    )
    return CappedRun(tuple(readings), frozenset(table.text.get("device", ())))


def _read_log(file: Source, asked: Asked, time_ms: float | None) -> CappedRun:
    """The mean of a log while its GPUs work. Raises InputError."""
    path = file.path
    run = logged_run(path, file.samples, asked.given)
    time_ms, power_w = time_ms or run.span.time_ms, run.power_w
    if time_ms is None or math.isnan(power_w):
        interval = parameter("interval_s", "SECONDS")
        lacking = "power" if time_ms else f"how long it took; give {interval}"
        raise InputError(f"{run.log}: does not say {lacking}")
    refuse_pauses(run.idle_share)
    for log, span in run.each:
        warn_of_pauses(log, span)
    names = frozenset({run.log.name} - {""})
    refuse_unlike_limits(run.log.source, run.unlike_caps)
    count, ratio = len(run.each), run.hottest_gpu_ratio
    reading = CappedReading(time_ms, power_w, run.lowest_cap_w, str(path), count, ratio)
    metadata = {"gpus": run.gpus, "power_limit_w": run.limit_to_put_back_w}
    return CappedRun((reading,), names, metadata)
