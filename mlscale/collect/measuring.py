"""One sample: a kernel kept running while time, clocks, power and throttling are observed."""

import math
from collections import deque
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mlscale.collect.device import THROTTLING, Batch, Launch, Reading, Sensors

_BATCH_MS = 20.0
_MOST = 20_000
_QUEUED = 3
_LEAST_BATCHES = 5
_POLL_S = 0.01
_COOL_S = 5.0
_CLOCK_TOLERANCE = 0.02


@dataclass(frozen=True)
class Mode:
    """What a power sensor needs before its mean over a window is reported.

    settle_s: until it has forgotten the time before [s]; least_s: of the window [s];
    least_values: readings, or changes of the energy counter.
    """

    settle_s: float
    least_s: float
    least_values: int


# The energy counter and the instant sensor update about ten times a second or faster; the average
# and, since Ampere, the usage are means over the last second.
MODES = {
    "energy": Mode(0.5, 1.0, 5),
    "instant": Mode(0.5, 1.0, 5),
    "average": Mode(1.5, 1.0, 5),
    "usage": Mode(1.5, 1.0, 5),
    "none": Mode(0.3, 0.0, 0),
}


@dataclass(frozen=True)
class KernelSample:
    """What was measured of one kernel at one configuration.

    Attributes:
        time_ms: median over batches of launches, per launch [ms].
        time_spread_percent: interquartile range of the batches, of the median [%].
        launches: timed.
        engine_mhz: median observed [MHz], None where the board does not say.
        memory_mhz: likewise.
        reasons: clocks-event bits seen during the window.
        throttled: whether a clock was held down, after all attempts.
        attempts: how often it was measured for that.
        power_w: mean board power of the window [W]; None where it was too short or not sensed.
        power_s: length of the window [s].
        temperature_c: at the end [degrees Celsius].
    """

    time_ms: float
    time_spread_percent: float
    launches: int
    engine_mhz: float | None
    memory_mhz: float | None
    reasons: int
    throttled: bool
    attempts: int
    power_w: float | None
    power_s: float
    temperature_c: float | None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON value."""
        return asdict(self)


def measure(
    launch: Launch,
    sensors: Sensors,
    window_s: float,
    locked: tuple[int | None, int | None] = (None, None),
    attempts: int = 3,
) -> KernelSample:
    """Measure, and again (after a rest) as long as the clocks are held down.

    window_s: seconds over which power is averaged, after the sensor's settling time; 0 measures
    time alone. locked: engine and memory clock that the board should hold [MHz]. Raises GpuError.
    """
    for attempt in range(1, attempts + 1):
        sample = _measure_once(launch, sensors, window_s, locked, attempt)
        if not sample.throttled:
            break
        if attempt < attempts:
            sensors.pause(_COOL_S * attempt)
    return sample


def throttling(reasons: int) -> str:
    """The reasons that hold a clock down, in words."""
    return ", ".join(word for bit, word in THROTTLING.items() if reasons & bit)


class _Queue:
    """A kernel kept on the GPU's queue: a few batches of launches, each of about _BATCH_MS."""

    def __init__(self, launch: Launch) -> None:
        self._launch, self._count = launch, 1
        while self._fit(launch.submit(self._count).elapsed_ms(), self._count):
            continue
        self._batches = deque(self._submit() for _ in range(_QUEUED))

    def _submit(self) -> tuple[Batch, int]:
        return self._launch.submit(self._count), self._count

    def _fit(self, elapsed_ms: float, count: int) -> bool:
        """Make batches longer where one was short: clocks rise while a kernel runs."""
        fitting = math.ceil(min(count * _BATCH_MS / max(elapsed_ms, 1e-6), 8 * count, _MOST))
        longer = elapsed_ms < _BATCH_MS / 2 and fitting > self._count
        if longer:
            self._count = fitting
        return longer

    def finished(self, adapt: bool) -> list[tuple[float, int]]:
        """Batches that are through, as time per launch [ms] and launches; others take their place.

        adapt: whether the batches to come may become longer.
        """
        through = []
        for _ in range(sum(batch.done() for batch, _ in self._batches)):
            batch, count = self._batches.popleft()
            elapsed = batch.elapsed_ms()
            through.append((elapsed / count, count))
            if adapt:
                self._fit(elapsed, count)
            self._batches.append(self._submit())
        return through

    def wait(self) -> None:
        """Wait for all that is queued."""
        for batch, _ in self._batches:
            batch.elapsed_ms()


def _measure_once(
    launch: Launch,
    sensors: Sensors,
    window_s: float,
    locked: tuple[int | None, int | None],
    attempt: int,
) -> KernelSample:
    mode = MODES[sensors.mode] if window_s else MODES["none"]
    queue = _Queue(launch)
    times: list[float] = []
    launches = 0
    readings: list[Reading] = []
    settled = sensors.read().time_s + mode.settle_s
    while True:
        now = sensors.read()
        settling = now.time_s < settled
        for time_ms, count in queue.finished(adapt=settling):
            if not settling:
                times.append(time_ms)
                launches += count
        if not settling:
            readings.append(now)
        over = now.time_s >= settled + window_s
        if over and len(times) >= _LEAST_BATCHES and len(readings) > 1:
            break
        sensors.pause(_POLL_S)
    queue.wait()
    low, median, high = np.percentile(times, [25, 50, 75])
    reasons = 0
    for reading in readings:
        reasons |= reading.reasons
    engine, memory = (
        _median([getattr(reading, name) for reading in readings])
        for name in ("engine_mhz", "memory_mhz")
    )
    missed = any(
        asked is not None and seen is not None and abs(seen / asked - 1) > _CLOCK_TOLERANCE
        for asked, seen in zip(locked, (engine, memory), strict=True)
    )
    return KernelSample(
        time_ms=float(f"{median:.7g}"),
        time_spread_percent=round(float(100 * (high - low) / median), 4),
        launches=launches,
        engine_mhz=engine,
        memory_mhz=memory,
        reasons=reasons,
        throttled=missed or bool(throttling(reasons)),
        attempts=attempt,
        power_w=mean_power_w(readings, mode) if window_s else None,
        power_s=round(readings[-1].time_s - readings[0].time_s, 2) if window_s else 0.0,
        temperature_c=readings[-1].temperature_c,
    )


def mean_power_w(readings: list[Reading], mode: Mode) -> float | None:
    """Mean power [W] over the readings; None where they are too short or too few for the sensor.

    The energy counter is taken from its first to its last change, so that its step does not count.
    """
    if readings[-1].time_s - readings[0].time_s < mode.least_s - _POLL_S:
        return None
    energy = [(r.time_s, r.energy_j) for r in readings if r.energy_j is not None]
    if energy:
        changes = [after for before, after in pairwise(energy) if after[1] != before[1]]
        if len(changes) < max(mode.least_values, 2):
            return None
        (first, low), (last, high) = changes[0], changes[-1]
        return round((high - low) / (last - first), 3)
    power = [r.power_w for r in readings if r.power_w is not None]
    if len(power) < max(mode.least_values, 1):
        return None
    return round(float(np.mean(power)), 3)


def _median(values: list[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return float(np.median(given)) if given else None
