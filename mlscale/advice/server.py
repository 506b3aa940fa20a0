"""The clock for an LLM server under limits of its latencies, from readings at two clocks or more.

Between two readings latencies follow `server_law`, the rate of tokens the law of time, and power
the law of power. Below the slowest reading, and above 85 % of a capacity that was measured, nothing
is advised; near saturation not at all. Half-widths of intervals are from simulated servers
(docs/servers.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mlscale.advice.recommendation import Setting
from mlscale.advice.server_readings import ServerReading, is_open, why_saturated
from mlscale.advice.slo import Slo
from mlscale.arrays import Floats, Mask
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.shipped import model_for
from mlscale.notes import Note
from mlscale.predictors.board import Board
from mlscale.predictors.server_law import BUSY_FIRST, Between
from mlscale.readers.serving import ServingResult
from mlscale.subject import RATED_UNITS

MOST_OF_CAPACITY, SATURATED = 0.85, 0.95  # rate over that of all requests at once
HIGH_LOAD = 0.6
POOLS = {"prefill": ("ttft",), "decode": ("itl", "tpot")}  # the latencies that each tells
SHOWN = (Slo("itl", "p50"), Slo("tpot", "p90"), Slo("ttft", "p90"))  # where a file has them
LEAST_REQUESTS = {90.0: 200, 99.0: 1000}  # that a percentile from there on needs
# Half-widths of 90 % intervals [%], by metric: at the median, the 90th and the 99th percentile; and
# where gaps follow as one kind.
WIDTHS = {
    True: {"itl": (2.0, 4.0, 10.0), "tpot": (3.5, 3.5, 5.0), "ttft": (4.5, 6.5, 11.0)},
    False: {"itl": (1.5, 1.5, 3.0), "tpot": (1.5, 1.5, 2.0), "ttft": (2.0, 4.0, 5.0)},
}
ONE_KIND_WIDTH = 18.0
POWER_WIDTH, TOKENS_WIDTH = 8.5, 9.0
RATE_WIDTH = 1.5


@dataclass(frozen=True, eq=False)
class ServerAdvice:
    """The server over N clocks, highest first, and which of them to set; None where none.

    readings: those used, highest clock first. engine_mhz (N,). latencies_ms: by limit (N,), as is
    widths [%], of measured clocks 0; output_per_s, power_w of all GPUs, tokens_per_joule (N,).
    keeps: whether a clock is expected to keep all limits, (N,); surely: by the ends of intervals.
    capacity (N,): the most requests a second, where that was measured. withheld: why no clock is
    advised though the limits may be kept.
    """

    readings: tuple[ServerReading, ...]
    is_open: bool
    pool: str | None
    limits: tuple[tuple[Slo, float], ...]
    engine_mhz: Floats
    latencies_ms: dict[Slo, Floats]
    widths: dict[Slo, Floats]
    output_per_s: Floats
    power_w: Floats
    capacity: Floats | None
    withheld: str
    notes: tuple[Note, ...]

    @property
    def tokens_per_joule(self) -> Floats:
        """Output tokens per joule of all GPUs, (N,)."""
        return self.output_per_s / self.power_w

    @property
    def is_read(self) -> Mask:
        """Which clocks were run, (N,)."""
        return np.isin(self.engine_mhz, [reading.engine_mhz for reading in self.readings])

    @property
    def load(self) -> Floats | None:
        """Requests over capacity, (N,)."""
        rate = self.readings[0].result.request_per_s
        return None if self.capacity is None else rate / self.capacity

    def ends(self, slo: Slo, place: int) -> tuple[float, float] | None:
        """The 90 % interval of a latency at the place of a clock [ms]; None where it was run."""
        value, width = float(self.latencies_ms[slo][place]), self.widths[slo][place] / 100
        return (value * (1 - width), value * (1 + width)) if width else None

    def settings(self) -> list[Setting]:
        """Each clock with its time, power and energy of RATED_UNITS output tokens."""
        times, base, found = 1e3 * RATED_UNITS / self.output_per_s, self.readings[0].log.base, []
        for place, (mhz, time_ms) in enumerate(zip(self.engine_mhz, times, strict=True)):
            power_w = float(self.power_w[place])
            energy_mj, slower = power_w * float(time_ms), 100 * float(time_ms / times[0] - 1)
            ranges = [
                None if self.is_read[place] else (value * (1 - w / 100), value * (1 + w / 100))
                for value, w in ((power_w, POWER_WIDTH), (energy_mj, TOKENS_WIDTH))
            ]
            saving = 100 * (1 - energy_mj / (times[0] * self.power_w[0]))
            at = replace(base, engine_mhz=float(mhz))
            found.append(
                Setting(
                    at, float(time_ms), power_w, energy_mj, slower, float(saving),
                    power_range=ranges[0], energy_range=ranges[1],
                )
            )  # fmt: skip
        return found

    def broken(self, is_sure: bool = False) -> list[tuple[str, ...]]:
        """The limits that each clock breaks; is_sure: or may, by the upper end of an interval."""
        found: list[list[str]] = [[] for _ in self.engine_mhz]
        for slo, most_ms in self.limits:
            high = self.latencies_ms[slo] * (1 + is_sure * self.widths[slo] / 100)
            for place in np.flatnonzero(high > most_ms * (1 + 1e-9)):
                found[place].append(slo.name)
        for place in np.flatnonzero(self.load > MOST_OF_CAPACITY) if self.load is not None else ():
            found[place].append("capacity")
        return [tuple(names) for names in found]

    def best(self, is_sure: bool = False) -> int | None:
        """The place of the clock of most tokens per joule that keeps the limits, None for none."""
        keeps = np.array([not names for names in self.broken(is_sure)])
        if self.withheld or not keeps.any():
            return None
        return int(np.where(keeps, self.tokens_per_joule, 0).argmax())


def advise_server(
    model: Model,
    readings: Sequence[ServerReading],
    slos: Sequence[Slo] = (),
    pool: str | None = None,
    capacity: Sequence[ServingResult] = (),
) -> ServerAdvice:
    """The clock of most tokens per joule that keeps the limits, between the readings.

    model: the shipped one of whole runs. readings: two or more, highest clock first. pool: 'prefill'
    or 'decode', of a server that does that alone. capacity: results of all requests at once, at the
    highest and the lowest clock of the readings. Raises InputError.
    """
    for slo in slos:
        if pool and slo.metric not in POOLS[pool]:
            raise InputError(f"a pool of {pool} does not tell {slo.metric}; give its limit to the other")
    is_rate = is_open(readings)
    notes = _notes_on(readings, slos, is_rate and not pool, bool(capacity))
    used, dropped, withheld = _unsaturated(readings) if is_rate else (tuple(readings), [], "")
    shown = _shown(readings, slos, pool)
    grid = _grid(model, readings, used)
    clocks = np.array(grid.engine_mhz)
    logs = {slo: np.zeros(len(clocks)) for slo in shown}
    time, inverse, one_kind = np.zeros(len(clocks)), np.zeros(len(clocks)), set[Slo]()
    lead = model.lead
    assert isinstance(lead, Board)  # of the shipped model of runs
    for fast, slow in pairwise(used):
        inside = (clocks <= fast.engine_mhz) & (clocks >= slow.engine_mhz)
        log_clock = np.log(clocks[inside] / fast.engine_mhz)
        between = Between(lead.laws_["time"], log_clock, np.log(slow.engine_mhz / fast.engine_mhz))
        pair = fast.result, slow.result
        for slo in shown:
            values, is_mixed = _latency(between, pair, slo, is_rate, pool)
            logs[slo][inside] = values
            if is_rate and not pool and not is_mixed:
                one_kind.add(slo)
        rates = np.array([one.output_per_s for one in pair])
        ratios = np.log(rates[:1] / rates[1:])
        run = between.followed(ratios)[0]
        time[inside] = np.log(readings[0].result.output_per_s / rates[0]) + run
    if capacity:
        inverse = _capacity(lead, readings, capacity, clocks)
    order = np.argsort(-clocks)
    power_w = _powers(model, used, grid, 0 * time if is_rate else time)
    is_read = np.isin(clocks, [reading.engine_mhz for reading in used])
    advice = ServerAdvice(
        readings=used,
        is_open=is_rate,
        pool=pool,
        limits=tuple((slo, slo.most_ms(_value(readings[0].result, slo))) for slo in slos),
        engine_mhz=clocks[order],
        latencies_ms={slo: np.exp(logs[slo][order]) for slo in shown},
        widths={
            slo: np.where(is_read, 0, _width(slo, is_rate, slo in one_kind))[order] for slo in shown
        },
        output_per_s=readings[0].result.output_per_s * np.exp(-time[order]),
        power_w=power_w[order],
        capacity=np.exp(-inverse[order]) if capacity else None,
        withheld=withheld,
        notes=(*notes, *dropped, *_note_of_kinds(slos, one_kind)),
    )
    return _checked(advice)


def _checked(advice: ServerAdvice) -> ServerAdvice:
    """The advice. Raises InputError where a reading is above its capacity."""
    load = advice.load
    if load is not None and load[-1] > SATURATED:
        raise InputError(
            f"{advice.readings[-1].result.source}: is at {100 * load[-1]:.0f} % of the capacity at "
            f"{advice.engine_mhz[-1]:g} MHz; lower the rate, or take a higher slow clock"
        )
    if load is not None and advice.is_open and load[0] > HIGH_LOAD:
        text = (
            f"the load is {100 * load[0]:.0f} % of the capacity at {advice.engine_mhz[0]:g} MHz: a "
            "slow reading at 0.75 to 0.8 of the clock is surer"
        )
        return replace(advice, notes=(*advice.notes, Note("V01", text)))
    return advice


def _value(result: ServingResult, slo: Slo) -> float:
    return result.latency_ms(slo.metric, slo.statistic)


def _shown(readings: Sequence[ServerReading], slos: Sequence[Slo], pool: str | None) -> list[Slo]:
    """The limits, and the usual latencies that the files have. InputError on limits they lack."""
    shown = list(slos)
    for slo in slos:
        for reading in readings:
            _value(reading.result, slo)
    known = {slo.name for slo in slos}
    for slo in SHOWN:
        if slo.name in known or (pool and slo.metric not in POOLS[pool]):
            continue
        try:
            for reading in readings:
                _value(reading.result, slo)
        except InputError:
            continue
        shown.append(slo)
    return sorted(shown, key=lambda slo: [one.metric for one in SHOWN].index(slo.metric))


def _unsaturated(
    readings: Sequence[ServerReading],
) -> tuple[tuple[ServerReading, ...], list[Note], str]:
    """The readings without slow ones that seem saturated, notes on these, and why to say nothing."""
    used, notes, why = [readings[0]], list[Note](), ""
    for slow in readings[1:]:
        why = why_saturated(readings[0], slow)
        if why:
            text = f"{slow.result.source}: {why}: it seems saturated, and is not used"
            notes.append(Note("V01", text, "warning"))
        else:
            used.append(slow)
    return (tuple(used), notes, "") if len(used) > 1 else (tuple(readings), [], why)


def _grid(
    model: Model, readings: Sequence[ServerReading], used: Sequence[ServerReading]
) -> ConfigGrid:
    """The clocks that the GPU offers between the readings, and theirs. Raises InputError."""
    full = model_for(model, _profiles(readings, readings)).grid
    high, low = used[0].engine_mhz, used[-1].engine_mhz
    clocks = {mhz for mhz in full.engine_mhz if low <= mhz <= high}
    clocks |= {reading.engine_mhz for reading in used}
    base = used[0].log.base
    return ConfigGrid((base.cu_count,), tuple(sorted(clocks)), (base.memory_mhz,))


def _profiles(
    readings: Sequence[ServerReading], all_readings: Sequence[ServerReading]
) -> Profiles:
    """The GPUs at the highest clock, the other readings as points; times by the rate of tokens."""
    rate, first = all_readings[0].result.output_per_s, readings[0].log
    ones = np.ones(len(first.kernels))
    points = tuple(
        MeasuredPoint(
            replace(one.log.base, memory_mhz=first.base.memory_mhz),
            ones * max(rate / one.result.output_per_s, 1.0),
            one.log.power_w,
            one.result.source,
        )
        for one in readings[1:]
    )
    return replace(first, time_ms=ones, points=points)


def _latency(
    between: Between,
    pair: tuple[ServingResult, ServingResult],
    slo: Slo,
    is_rate: bool,
    pool: str | None,
) -> tuple[Floats, bool]:
    """ln of a latency in ms at the clocks (N,), and whether its kind is known."""
    values = np.log([_value(one, slo) for one in pair])
    ratio = values[1:] - values[:1]
    is_median = slo.statistic in ("mean", "p50")
    if not is_rate:
        return values[0] + between.followed(ratio)[0], True
    if slo.metric == "ttft":
        return values[0] + between.queued(ratio, BUSY_FIRST)[0], True
    if slo.metric == "itl" and not is_median and pool is None:
        gaps = [one.requests and one.requests.values_ms("itl") for one in pair]
        if gaps[0] is not None and gaps[1] is not None:
            mixed = between.mixed(gaps[0], gaps[1], float(slo.statistic[1:]) / 100)
            if mixed is not None:  # a straight line of what is left at the readings
                at_ends = between_ends(between).mixed(gaps[0], gaps[1], float(slo.statistic[1:]) / 100)
                assert at_ends is not None
                left, along = values - at_ends, between.log_clock / between.slow
                return mixed + left[0] + (left[1] - left[0]) * along, True
        return values[0] + between.followed(ratio)[0], False
    return values[0] + between.queued(ratio)[0], True


def between_ends(between: Between) -> Between:
    """The same law at the two readings alone."""
    return replace(between, log_clock=np.array([0.0, between.slow]))


def _width(slo: Slo, is_rate: bool, is_one_kind: bool) -> float:
    """The half-width of a latency's 90 % interval [%]."""
    if is_one_kind:
        return ONE_KIND_WIDTH
    at = 50.0 if slo.statistic == "mean" else max(50.0, float(slo.statistic[1:]))
    return float(np.interp(at, [50, 90, 99], WIDTHS[is_rate][slo.metric]))


def _powers(
    model: Model, used: Sequence[ServerReading], grid: ConfigGrid, log_time: Floats
) -> Floats:
    """The power of all GPUs over the grid's clocks (N,) [W], by the law of power."""
    profiles, power = _profiles(used, used), model.predictors["power"]
    assert isinstance(power, Board)
    logs = np.tile(log_time, (len(profiles.kernels), 1))
    times = Surfaces.from_log_ratios(grid, profiles.base, logs)
    factors = power.with_times(times).predict(profiles, grid).values[:, 0, :, 0]
    return np.asarray((factors * profiles.base_power_w[:, None]).sum(axis=0))


def _capacity(
    lead: Board,
    readings: Sequence[ServerReading],
    capacity: Sequence[ServingResult],
    clocks: Floats,
) -> Floats:
    """ln of the time of a request at capacity [s], (N,). Raises InputError."""
    if len(capacity) != 2:
        raise InputError("--capacity takes two results, of the highest and the lowest clock run")
    fast, slow = capacity
    for result in capacity:
        if result.rate_per_s != np.inf:
            raise InputError(f"{result.source}: is no run of all requests at once: --request-rate inf")
    logs = -np.log([fast.request_per_s, slow.request_per_s])
    high, low = readings[0].engine_mhz, readings[-1].engine_mhz
    between = Between(lead.laws_["time"], np.log(clocks / high), np.log(low / high))
    return np.asarray(logs[0] + between.followed(logs[1:] - logs[:1])[0])


def _notes_on(
    readings: Sequence[ServerReading], slos: Sequence[Slo], needs_capacity: bool, has_capacity: bool
) -> list[Note]:
    """What to know of the readings."""
    notes, first = [], readings[0].result
    if needs_capacity and not has_capacity:
        text = (
            "how near the server is to its capacity is not known; run both clocks with "
            "--request-rate inf too, and give the results: --capacity"
        )
        notes.append(Note("V01", text, "warning"))
    for least, count in LEAST_REQUESTS.items():
        names = [s.name for s in slos if s.statistic != "mean" and float(s.statistic[1:]) >= least]
        if names and first.completed < count:
            text = f"{first.completed:g} requests are few for {', '.join(names)}; send {count}"
            notes.append(Note("V02", text))
    accepted = [reading.result.acceptance for reading in readings]
    if len({None if one is None else round(one, 1) for one in accepted}) > 1:
        text = f"the length that speculation accepts differs, {accepted}: latencies differ by it too"
        notes.append(Note("V03", text, "warning"))
    for reading in readings:
        requests = reading.result.requests
        if requests is not None and requests.ttfts_s[0] > 3 * np.percentile(requests.ttfts_s, 90):
            text = (
                f"{reading.result.source}: the first request waited {requests.ttfts_s[0]:.2g} s for "
                "its first token: warm the server up before the run"
            )
            notes.append(Note("V03", text))
    return notes


def _note_of_kinds(slos: Sequence[Slo], one_kind: set[Slo]) -> list[Note]:
    """That a percentile of gaps is taken to follow the clock as one, which it does not."""
    names = [slo.name for slo in slos if slo in one_kind]
    if not names:
        return []
    text = (
        f"no file has the single gaps, so {', '.join(names)} is within {ONE_KIND_WIDTH:g} % only; "
        "run vLLM with --save-detailed, or limit tpot in its place"
    )
    return [Note("V02", text, "warning")]
