"""How well two readings of an LLM server tell its latencies, power and best clock between them.

    MLSCALE_DATA=FOLDER python reproduction/servers.py [PART ...]

Parts: `simulated`, errors and intervals on 137 simulated servers by the aims; `limits`, clocks
under limits of latency; `saturated`, servers of which nothing is said;
`gaps`, percentiles of the gaps between tokens where all gaps are known; `real`, measured series,
whose clocks are means under power caps;
`caps`, the same by power alone; `sweeps`, vLLM over 166 clocks and DeepSeek-R1 on 8 GPUs,
each of which counts once; `loads`, numbers of clients of the latter;
`power`, watts by another law, and the clocks that both advise. Readings are at the highest
clock and two thirds of it.
docs/howto/servers.md shows what they print.
"""

import csv
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, groupby
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from common import REPOSITORY, Report, run
from run_tables import csv_rows

from mlscale import HardwareConfig, load
from mlscale.advice.server import Estimate, LoadCell, ServerAdvice, Slo, advise_server
from mlscale.advice.server_answer import interpolated
from mlscale.advice.server_caps import advise_server_caps
from mlscale.advice.server_readings import ServerReading, power_noise
from mlscale.arrays import Floats
from mlscale.data.logs import PROFILE_KIND
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.model.shipped import model_for
from mlscale.predictors.server_law import IDLE, Between
from mlscale.readers.busy_span import busy_span
from mlscale.readers.monitor import read_log
from mlscale.readers.serving import ServingResult, read_result

Row = dict[str, Any]
Truth = dict[str, Floats]
SLOW = 7  # place of the slow reading, two thirds of the highest clock
LATENCIES = [Slo(m, p) for m in ("itl", "tpot", "ttft") for p in ("p50", "p90", "p99")]
AIMS = {"itl p50": 1.5, "itl p90": 2.5, "itl p99": 5, "tpot p50": 1.5, "tpot p90": 1.5,
        "ttft p50": 2.5, "ttft p90": 3.5, "tok/s": 1, "W": 5}  # fmt: skip
TIMES = (1.1, 1.5)  # what latencies may be of those at the highest clock
SWEPT = [Slo(m, p) for m in ("itl", "tpot", "ttft") for p in ("mean", "p50", "p90", "p99")]
NAMES = (*(slo.name for slo in SWEPT), "tok/s", "W", "tok/J")
HEADER = ("", "mean |error| %", "mean error %", "90th", "90 % intervals hold %", "aim", "kept")
SESSIONS = {"itl": 0.015, "tpot": 0.015, "ttft": 0.03, "W": 0.015, "tok/J": 0.02}  # as sweeps show
GAP_SERVERS = 40
SERVED = 0.98  # a long run that serves less of the rate of requests is saturated
WAITS = 1.5  # or one whose TTFT p50 is so many times that of the reading


def reading(
    mhz: float, power_w: float, result: ServingResult, cap_w: float = np.nan
) -> ServerReading:
    """A reading of one GPU that draws what all draw; cap_w: all their limits [W]."""
    facts = {"profile_kind": PROFILE_KIND, "origin": "measured", "power_kind": "board"}
    log = Profiles(
        "some-gpu", HardwareConfig(100, mhz, 1000.0), ("run",), ("run",), np.ones(1),
        np.array([power_w]), (), np.empty((1, 0)), facts, power_cap_w=cap_w,
    )  # fmt: skip
    return ServerReading(result, log)


def latency_ms(row: Row, slo: Slo) -> float:
    """A latency of a simulated server, whose file has seconds."""
    return 1e3 * float(row[f"{slo.statistic}_{slo.metric}"])


def simulated_reading(server: Row, place: int) -> ServerReading:
    """What was measured at one of a simulated server's clocks."""
    row, count = server["measured"][place], server["requests"]
    result = ServingResult(
        "simulated", {slo.name: latency_ms(row, slo) for slo in LATENCIES}, count,
        count / row["rate"], row["tput"],
        rate_per_s=None if server["closed"] else server["rate"],
        clients=server["clients"] or None, growth=row["growth"],
    )  # fmt: skip
    return reading(server["fmax_mhz"] * server["clock"][place], row["power"], result)


@cache
def servers() -> list[Row]:
    """The simulated servers. Raises FileNotFoundError without the data."""
    path = folder() / "servers" / "simulated-development.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def folder() -> Path:
    """The folder of the data. Raises FileNotFoundError where none is named."""
    if not (name := os.environ.get("MLSCALE_DATA")):
        raise FileNotFoundError("MLSCALE_DATA does not name the folder of the data")
    return Path(name)


def advised(readings: Sequence[ServerReading], slos: Sequence[Slo]) -> ServerAdvice:
    """The advice by the shipped model."""
    return advise_server(load("runs"), readings, slos)


def advice_on(server: Row, slos: Sequence[Slo] = LATENCIES) -> ServerAdvice:
    """The advice on a simulated server from its two readings."""
    return advised([simulated_reading(server, place) for place in (0, SLOW)], slos)


def curves(advice: ServerAdvice) -> dict[str, Floats]:
    """Clocks [MHz], and over them latencies [ms], tokens/s, watts and tokens per joule."""
    clocks = advice.clocks
    named = {name: [c.latency_ms[name].value for c in clocks] for name in clocks[0].latency_ms}
    named |= {"MHz": [c.engine_mhz for c in clocks], "W": [c.power_w.value for c in clocks]}
    named |= {"tok/s": [c.output_per_s.value for c in clocks]}
    named |= {"tok/J": [c.tokens_per_joule.value for c in clocks]}
    return {name: np.array(values)[::-1] for name, values in named.items()}


def at(values: Floats, clocks: Floats, mhz: Any) -> Floats:
    """Values at other clocks, the log of each straight in the log of the clock."""
    return np.asarray(np.exp(np.interp(np.log(mhz), np.log(clocks), np.log(values))))


def truth(server: Row) -> Truth:
    """The same of the truth, at its clocks down to the slow reading."""
    rows = server["truth_same_requests"][SLOW::-1]
    named = {slo.name: [latency_ms(row, slo) for row in rows] for slo in LATENCIES}
    named |= {"tok/s": [r["tput"] for r in rows], "W": [r["power"] for r in rows]}
    named |= {"tok/J": [r["tokJ"] for r in rows]}
    named["MHz"] = [server["fmax_mhz"] * share for share in server["clock"][SLOW::-1]]
    return {name: np.array(values) for name, values in named.items()}


def is_between(advice: ServerAdvice, true: Truth) -> Any:
    """Which clocks of the truth lie between the readings, (N,)."""
    return (true["MHz"] < advice.clocks[0].engine_mhz) & (
        true["MHz"] > advice.clocks[-1].engine_mhz
    )


def errors(advice: ServerAdvice, true: Truth) -> dict[str, Floats]:
    """Errors between the readings [%], of what both have."""
    found, inner = curves(advice), is_between(advice, true)
    return {
        name: 100 * np.log(at(found[name], found["MHz"], true["MHz"][inner]) / true[name][inner])
        for name in NAMES if name in found.keys() & true.keys()
    }  # fmt: skip


def held_by(advice: ServerAdvice, true: Truth, name: str, noise: float = 0.0) -> float:
    """The share of the truth between the readings that 90 % intervals hold.

    noise: standard deviation of the log to draw for each of three runs, which simulations lack.
    """
    draw = np.random.default_rng(int(1e6 * true["W"][0]))
    told = [clock for clock in advice.clocks if not clock.is_measured]
    clocks, inner = np.array([clock.engine_mhz for clock in told]), is_between(advice, true)
    held = []
    for mhz, value in zip(true["MHz"][inner], true[name][inner], strict=True):
        clock = told[int(np.abs(clocks - mhz).argmin())]
        others = {"W": clock.power_w, "tok/J": clock.tokens_per_joule, "tok/s": clock.output_per_s}
        _, low, high = {**clock.latency_ms, **others}[name]
        along = np.log(clocks[0] / mhz) / np.log(clocks[0] / clocks[-1])
        runs = np.sqrt(1 + along**2 + (1 - along) ** 2)
        drawn = value * np.exp(noise * runs * draw.standard_normal())
        held.append(low is not None and high is not None and low <= drawn <= high)
    return float(np.mean(held))


def simulated(report: Report) -> None:
    """Errors between the readings, of servers that are not withheld, beside the aims."""
    kinds: dict[str, list[tuple[ServerAdvice, Truth]]] = {"closed": [], "open": []}
    for server in servers():
        advice = advice_on(server)
        if not advice.withheld:
            kinds["closed" if server["closed"] else "open"].append((advice, truth(server)))
    for kind, found in kinds.items():
        report.rows(f"{kind} load, {len(found)} servers", HEADER, table(found, True))


def table(
    found: Sequence[tuple[ServerAdvice, Truth]], is_made: bool = False
) -> list[tuple[Any, ...]]:
    """Rows of errors and of the intervals, of advice beside the truth.

    is_made: of simulations, to whose truth the noise of sessions is added for the intervals.
    """
    all_errors, rows = [errors(*one) for one in found], []
    for name in (name for name in NAMES if name in all_errors[0]):
        off = np.concatenate([one[name] for one in all_errors])
        noise = SESSIONS.get(name.split()[0], 0.0) if is_made else 0.0
        held, size = np.abs(off), np.mean([held_by(*one, name, noise) for one in found])
        aim = AIMS.get(name)
        kept = "" if aim is None else "yes" if held.mean() <= aim else "no"
        cells = (f"{held.mean():.1f}", f"{off.mean():.1f}", f"{np.percentile(held, 90):.1f}")
        rows.append((name, *cells, f"{100 * size:.0f}", aim or "", kept))
    return rows


def limits(report: Report) -> None:
    """Clocks under limits of TPOT p90 and TTFT p90, by expectation and by the ends of intervals."""
    rows = []
    for times in TIMES:
        slos = [Slo(metric, "p90", times=times) for metric in ("tpot", "ttft")]
        for is_sure in (False, True):
            over, regret, saved, possible = [], [], [], []
            for server in servers():
                advice, true = advice_on(server, slos), truth(server)
                if advice.withheld:
                    continue
                fine = np.arange(true["MHz"][0], true["MHz"][-1] + 1, 5.0)
                costs = {name: at(true[name], true["MHz"], fine) for name in true}
                most = {slo.name: ms for slo, ms in advice.limits}
                ratios = np.max([costs[name] / most[name] for name in most], axis=0)
                best = advice.best(is_sure) or advice.clocks[0]
                here = int(np.abs(fine - best.engine_mhz).argmin())
                over.append(100 * (ratios[here] - 1))
                allowed = costs["tok/J"][ratios <= max(1.0, ratios[-1])].max()
                top = costs["tok/J"][-1]
                regret.append(max(0.0, 100 * (1 - costs["tok/J"][here] / allowed)))
                saved.append(100 * (1 - top / costs["tok/J"][here]))
                possible.append(100 * (1 - top / allowed))
            beyond = np.array(over)[np.array(over) > 0.5]
            rows.append(
                (
                    f"{times:g}", "upper ends" if is_sure else "expected",
                    f"{100 * len(beyond) / len(over):.0f}",
                    f"{beyond.mean() if len(beyond) else 0:.1f}",
                    f"{np.mean(regret):.1f}", f"{np.mean(saved):.1f} of {np.mean(possible):.1f}",
                )
            )  # fmt: skip
    header = (
        "limits, times",
        "kept by",
        "violated by over 0.5 % in %",
        "by %",
        "regret %",
        "saves %",
    )
    report.rows(
        "limits of TPOT p90 and TTFT p90; aims: <= 5 %, by <= 5 %, regret <= 1.5 %", header, rows
    )


def gaps(report: Report) -> None:
    """Errors of the gaps' percentiles on servers of tests/synthetic, whose gaps are all known."""
    sys.path.append(str(REPOSITORY / "tests"))
    from synthetic import llm_server as made

    names = ("itl p50", "itl p90", "itl p99")
    with_gaps, without = ({name: list[float]() for name in names} for _ in range(2))
    for seed in range(GAP_SERVERS):
        draw = np.random.default_rng(seed)
        server = made.Server(
            token_s=20e-6 * 5 ** draw.random(), weights_s=4e-3 * 5 ** draw.random(),
            bend=1.2 + draw.random(), budget=int(draw.choice([2048, 8192])),
        )  # fmt: skip
        full = made.serve(server, 1980.0, np.inf, 400, 256)
        rate = draw.uniform(0.2, 0.75) * 400 / full.duration_s
        readings, bare = [], []
        for at_seed, mhz in enumerate((1980.0, 1320.0)):
            one = made.serve(server, mhz, rate, 400, None, 1 + at_seed)
            with tempfile.TemporaryDirectory() as name:
                result = read_result(made.write(one, mhz, Path(name))[0])
            bare.append(reading(mhz, one.power_w, replace(result, gaps_ms=None)))
            readings.append(reading(mhz, one.power_w, result))
        slos = [Slo(*name.split()) for name in names]
        if advised(readings, []).withheld:
            continue
        found = [curves(advised(one, slos)) for one in (readings, bare)]
        for mhz in 1980 * np.array([0.95, 0.9, 0.85, 0.8, 0.75, 0.7]):
            true = made.result(made.serve(server, mhz, rate, 400, None, 9))
            for name in names:
                value = float(true["_".join([*name.split()[::-1], "ms"])])  # type: ignore[arg-type]
                for errors_in, curve in zip((with_gaps, without), found, strict=True):
                    off = np.log(at(curve[name], curve["MHz"], mhz) / value)
                    errors_in[name].append(100 * abs(float(off)))
    rows = [
        (name, *(f"{np.mean(one[name]):.1f} ({np.percentile(one[name], 90):.1f})"
                 for one in (with_gaps, without)), AIMS[name])
        for name in names
    ]  # fmt: skip
    header = ("", "with all gaps: mean |error| % (90th)", "without", "aim")
    report.rows(f"open load, {len(with_gaps[names[0]]) // 6} other servers", header, rows)


def saturated(report: Report) -> None:
    """Servers whose slow reading cannot serve the rate, and of how many nothing is said."""
    withheld: dict[str, list[bool]] = {}
    for server in servers():
        if not server["closed"]:
            told, short = server["truth_long"][SLOW], server["measured"][SLOW]
            serves = told["rate"] < SERVED * server["rate"]
            waits = told["p50_ttft"] > WAITS * short["p50_ttft"]
            for name, is_it in (("serves less", serves), ("waits longer", waits)):
                place = name if is_it else f"not: {name}"
                withheld.setdefault(place, []).append(bool(advice_on(server, []).withheld))
    rows = [
        (name, len(each), f"{100 * np.mean(each):.0f}") for name, each in sorted(withheld.items())
    ]
    header = ("slow reading, in a long run", "servers", "withheld %")
    report.rows("open load; aim: >= 80 % of the saturated are withheld", header, rows)


def series_of_vllm(name: str) -> list[tuple[float, float, ServingResult]]:
    """A measured series of vLLM: clock [MHz], power [W], and the time of a request as TPOT."""
    found = []
    place = folder() / "servers" / "mmbt" / name
    for path in sorted(place.glob("load_*.csv")):
        _, begin, end, tokens = np.loadtxt(path, delimiter=",").T
        log = np.loadtxt(path.with_name(path.name.replace("load", "power")), delimiter=",")
        busy = log[log[:, 5] > 50]
        each_ms = 1e3 * (end - begin) / tokens
        told = {f"tpot {p}": float(np.percentile(each_ms, int(p[1:]))) for p in ("p50", "p90")}
        told["tpot mean"] = float(each_ms.mean())
        seconds = end.max() - begin.min()
        result = ServingResult(
            path.name, told, len(tokens), seconds, tokens.sum() / seconds, None, None, np.inf, 32.0
        )
        found.append((float(busy[:, 4].mean()), float(busy[:, 2].mean()), result))
    return found


def series_of_club(load: str) -> list[tuple[float, float, ServingResult]]:
    """A series of an RTX 3090: clock, power, and the time of a token as TPOT."""
    rows = [
        row for row in csv_rows("caps", "club-3090-power-caps.csv")
        if row["gpu"] == "RTX 3090" and row["load"] == load and row["sm_clock_mhz"]
    ]  # fmt: skip
    found = []
    for row in rows:
        rate = float(row["tps"])
        told = {"tpot mean": 1e3 / rate}
        result = ServingResult("club", told, 1, 1 / rate, rate, None, None, np.inf, 1.0)
        found.append((float(row["sm_clock_mhz"]), float(row["actual_w"]), result))
    return found


def measured_series() -> dict[str, list[tuple[float, float, ServingResult]]]:
    """Those of both sources, by the GPU and what it served."""
    vllm = ("phase1-dense-27b-n32", "phase1b-dense-27b-n1")
    series = {f"RTX PRO 6000, vLLM, {name}": series_of_vllm(name) for name in vllm}
    club = ("decode 1 stream", "prefill")
    return series | {f"RTX 3090, {name}": series_of_club(name) for name in club}


def real(report: Report) -> None:
    """Errors on measured series, between the highest clock and the one nearest two thirds."""
    rows = []
    for name, points in measured_series().items():
        points.sort(key=lambda point: -point[0])
        slow = min(points, key=lambda point: abs(point[0] / points[0][0] - 2 / 3))
        used = [p for p in points if p[0] > 1.01 * slow[0] and p[0] < 0.99 * points[0][0]]
        names = sorted(slow[2].latencies_ms)
        slos = [Slo(*name.split()) for name in names]
        found = curves(advised([reading(*points[0]), reading(*slow)], slos))
        mhz = np.array([point[0] for point in used])
        true = {slo.name: np.array([p[2].latency_ms(slo.name) for p in used]) for slo in slos}
        true |= {"tok/s": np.array([p[2].output_per_s for p in used])}
        true |= {"W": np.array([point[1] for point in used])}
        for what, values in true.items():
            off = 100 * np.abs(np.log(at(found[what], found["MHz"], mhz) / values))
            rows.append((name, what, len(mhz), f"{off.mean():.1f}", f"{off.max():.1f}"))
    header = ("", "", "clocks", "mean |error| %", "largest")
    report.rows("measured series, fixed clients; aim: <= 4 %", header, rows)


def caps(report: Report) -> None:
    """Errors of the same series by what they drew, as if no clock were known, between two thirds.

    The caps that were set are taken for what was drawn.
    """
    rows = []
    for name, points in measured_series().items():
        points.sort(key=lambda point: -point[1])
        slow = min(points, key=lambda point: abs(point[1] / points[0][1] - 2 / 3))
        ends = [reading(nan, watts, result, watts) for _, watts, result in (points[0], slow)]
        slos = [Slo(*one.split()) for one in sorted(slow[2].latencies_ms)]
        found = advise_server_caps(ends, slos).clocks[::-1]
        watts = np.array([clock.power_w.value for clock in found])
        used = [p for p in points if 1.01 * slow[1] < p[1] < 0.99 * points[0][1]]
        for slo in slos:
            true = np.array([point[2].latency_ms(slo.name) for point in used])
            at_w = [point[1] for point in used]
            sides = [
                np.array([getattr(clock.latency_ms[slo.name], side) or nan for clock in found])
                for side in ("value", "low", "high")
            ]
            value, low, high = (np.interp(at_w, watts, np.nan_to_num(s, nan=s[1])) for s in sides)
            off, held = 100 * np.log(value / true), (low <= true) & (true <= high)
            told = (f"{np.abs(off).mean():.1f}", f"{off.mean():.1f}", f"{100 * held.mean():.0f}")
            rows.append((name, slo.name, len(used), *told))
    header = ("", "", "caps", "mean |error| %", "mean error %", "90 % intervals hold %")
    report.rows("measured series under caps, by watts alone, fixed clients", header, rows)


VLLM, DEEPSEEK = "vLLM, one GPU", "DeepSeek-R1, 8 GPUs"
SWEEP_PAIRS = ((1380, 930), (1380, 1020), (1290, 840), (1290, 930), (1200, 750), (1110, 750))
FAR_PAIRS = ((1380, 480), (1380, 510), (1380, 540), (1290, 450))  # the slow one at 0.35 to 0.39
SETTINGS = ("input", "output", "concurrency")
MODES = ("MI325X_1000W", "MI325X_750W_Auto", "MI325X_750W_Manual")  # the second is judged


@cache
def vllm_clocks() -> list[Row]:
    """What was measured of vLLM over its clocks, the highest first."""
    with (folder() / "servers-real" / "climatik" / "measured.csv").open(encoding="utf-8") as file:
        rows = [dict(row) for row in csv.DictReader(file)]
    return sorted(rows, key=lambda row: -float(row["mhz"]))


def summary_of_vllm(row: Row) -> ServerReading:
    """A row of vLLM's table, of 50 clients."""
    result = ServingResult(
        f"vllm-{row['series']}-{row['mhz']}",
        {slo.name: float(row[f"{slo.metric}_{slo.statistic}_ms"]) for slo in SWEPT},
        float(row["completed"]), float(row["duration_s"]), float(row["output_tokens_per_s"]),
        clients=50.0,
    )  # fmt: skip
    return reading(float(row["mhz"]), float(row["W"]), result)


def detailed_of_vllm(row: Row) -> ServerReading:
    """The same by its file, which lists every request."""
    place = folder() / "servers-real" / "climatik" / f"vllm-{row['mhz']}mhz.json.gz"
    with tempfile.TemporaryDirectory() as name, gzip.open(place) as packed:
        file = Path(name) / "result.json"
        file.write_bytes(packed.read())
        result = read_result(file)
    return reading(float(row["mhz"]), float(row["W"]), result)


def judged_of_vllm(
    is_detailed: bool, pairs: Sequence[tuple[int, int]] = SWEEP_PAIRS, power: str = "median"
) -> Iterator[tuple[ServerAdvice, Truth]]:
    """Advice by pairs of clocks, and what was measured between them, in both sessions.

    power: 'median' or 'mean', of about 25 samples of a log; `advise` takes the mean.
    """
    rows = [row | {"W": row[f"power_{power}_w"]} for row in vllm_clocks()]
    by_clock = {int(row["mhz"]): row for row in rows if row["series"] == "freqsAll"}
    for fast, slow in pairs:
        make = detailed_of_vllm if is_detailed else summary_of_vllm
        used = [row for row in rows if slow < int(row["mhz"]) < fast]
        true = {slo.name: column(used, f"{slo.metric}_{slo.statistic}_ms") for slo in SWEPT}
        true |= {"MHz": column(used, "mhz"), "W": column(used, "W")}
        true["tok/s"] = column(used, "output_tokens_per_s")
        true["tok/J"] = true["tok/s"] / true["W"]
        ends = [make(by_clock[fast]), make(by_clock[slow])]
        if power == "mean":
            ends = [replace(one, power_noise=noise_of_log(one.engine_mhz)) for one in ends]
        yield advised(ends, SWEPT), true


def noise_of_log(mhz: float) -> float:
    """How far the mean power of vLLM's log may be off, by its samples."""
    [log] = read_log(folder() / "servers-real" / "climatik" / f"power-{mhz:.0f}mhz.csv")
    return power_noise(log, busy_span(log))


def column(rows: Sequence[Row], name: str) -> Floats:
    """A column of a table."""
    return np.array([float(row[name]) for row in rows])


def judged_of_deepseek() -> Iterator[tuple[ServerAdvice, Truth]]:
    """Advice by two modes of the MI325X on the third, whose clock lies between, by requests."""
    place = folder() / "servers-real" / "deepseek-r1-sglang-8gpu.csv"
    with place.open(encoding="utf-8") as file:
        rows = {
            (row["mode"], *(row[name] for name in SETTINGS)): row for row in csv.DictReader(file)
        }
    names = {"itl mean": "itl_mean", "itl p50": "itl_median", "itl p99": "itl_p99",
             "ttft mean": "ttft_mean", "ttft p99": "ttft_p99"}  # fmt: skip
    for asked in sorted({key[1:] for key in rows}):
        fast, truth, slow = (rows[mode, *asked] for mode in MODES)
        fast_mhz, mhz, slow_mhz = (float(row["engine_min"]) for row in (fast, truth, slow))
        if not 1.01 * slow_mhz < mhz < fast_mhz / 1.01 or fast_mhz < 1.05 * slow_mhz:
            continue
        readings = []
        for row in (fast, slow):
            latencies = {name: float(row[value]) for name, value in names.items()}
            seconds, tokens = float(row["duration_s"]), float(row["out_tok_s"])
            count = tokens * seconds / float(row["output"])
            result = ServingResult(
                row["mode"], latencies, count, seconds, tokens, clients=float(row["concurrency"])
            )
            cap_w = 8 * float(row["mode"].split("_")[1].removesuffix("W"))
            watts = float(row["power_w_8gpu"])
            readings.append(reading(float(row["engine_min"]), watts, result, cap_w))
        true = {name: np.array([float(truth[value])]) for name, value in names.items()}
        true |= {"MHz": np.array([mhz]), "W": np.array([float(truth["power_w_8gpu"])])}
        true["tok/s"] = np.array([float(truth["out_tok_s"])])
        true["tok/J"] = true["tok/s"] / true["W"]
        yield advised(readings, [Slo(*name.split()) for name in names]), true


def loads(report: Report) -> None:
    """Errors between two numbers of clients of DeepSeek-R1, by how many times the one the other is.

    Of each mode and request; at a clock that was run.
    """
    place = folder() / "servers-real" / "deepseek-r1-sglang-8gpu.csv"
    with place.open(encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=_series)
    off: dict[int, list[tuple[float, float, bool]]] = {}
    for _, group in groupby(rows, _series):
        run = {int(row["concurrency"]): _load_cell(row) for row in group}
        for fewer, between, more in combinations(sorted(run), 3):
            told, true = interpolated(run[fewer], run[more], between), run[between]
            _, low, high = told.tokens_per_joule
            value, rate = true.tokens_per_joule.value, true.output_per_s.value
            errors = [np.log(told.tokens_per_joule.value / value)]
            errors.append(np.log(told.output_per_s.value / rate))
            is_held = low is not None and high is not None and low <= value <= high
            off.setdefault(more // fewer, []).append((*np.abs(errors), is_held))
    table_rows = [
        (f"{times}", len(found), *(f"{100 * part:.1f}" for part in np.mean(found, axis=0)[:2]),
         f"{100 * np.mean(found, axis=0)[2]:.0f}")
        for times, found in sorted(off.items())
    ]  # fmt: skip
    header = ("times the clients", "cases", "tokens/J, mean |error| %", "tokens/s", "held %")
    report.rows(f"{DEEPSEEK}, between two numbers of clients", header, table_rows)


def _series(row: Row) -> tuple[str, str, str]:
    """What but the number of clients a row is of."""
    return row["mode"], row["input"], row["output"]


def _load_cell(row: Row) -> LoadCell:
    """A row as a cell that was measured."""
    rate, watts = float(row["out_tok_s"]), float(row["power_w_8gpu"])
    told = (Estimate(rate), Estimate(watts), Estimate(rate / watts))
    return LoadCell(float(row["concurrency"]), float(row["engine_mhz"]), True, *told)


SHARES = (0.7, 0.8, 0.85, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96)


def watts(advice: ServerAdvice, clocks: Floats, share: float) -> Floats:
    """Watts (N,) at clocks by the law of runs, or by energy per token with an idle share of them.

    share: of what the slow reading draws, 0 for the law of runs.
    """
    (fast, slow), found = advice.readings, curves(advice)
    if share:
        law = load("runs").lead.laws_["time"]
        between = Between.at(law, clocks, fast.engine_mhz, slow.engine_mhz)
        ends = np.array([(one.power_w, one.result.output_per_s) for one in (fast, slow)]).T
        rates = at(found["tok/s"], found["MHz"], clocks)
        return between.watts(*ends, rates, share)
    times = [np.array([1e3 / one.result.output_per_s]) for one in (fast, slow)]
    point = MeasuredPoint(slow.log.base, max(times), slow.log.power_w)
    profiles = replace(fast.log, time_ms=times[0], points=(point,))
    told = model_for(load("runs"), profiles).predict(profiles)["power"]
    powers = profiles.base_power_w[0] * told.values[0, 0, :, 0]
    return at(powers, np.array(told.grid.engine_mhz), clocks)


def regret(advice: ServerAdvice, true: Truth, share: float) -> float:
    """How far the advised clock's tokens per joule are below the best ones between readings [%].

    share: as of `watts`. Of more than 10 clocks that were run the truth is a cubic through them.
    """
    found, inner = curves(advice), is_between(advice, true)
    ends = [(r.engine_mhz, r.result.output_per_s, r.power_w) for r in advice.readings[::-1]]
    drawn = watts(advice, found["MHz"], share)
    drawn[[0, -1]] = [end[2] for end in ends]
    best = found["MHz"][(found["tok/s"] / drawn).argmax()]
    told = [*zip(true["MHz"][inner], (true["tok/s"] / true["W"])[inner], strict=True)]
    clocks, costs = np.array(sorted([*told, *((mhz, made / w) for mhz, made, w in ends)])).T
    if len(clocks) > 10:
        costs = np.exp(np.polyval(np.polyfit(np.log(clocks), np.log(costs), 3), np.log(clocks)))
    return float(100 * (1 - at(costs, clocks, best) / costs.max()))


def power(report: Report) -> None:
    """Errors of watts by the law of runs, and of energies per token that have an idle share.

    Of a share that was taken, and of that which is best for all kinds of servers but the judged.
    """
    made = [(advice_on(server, []), truth(server)) for server in servers()]
    kinds = {"simulated": [one for one in made if not one[0].withheld]}
    kinds |= {VLLM: [*judged_of_vllm(False)], DEEPSEEK: [*judged_of_deepseek()]}
    names = {"RTX PRO 6000": ("phase1-dense-27b-n32", "phase1b-dense-27b-n1"),
             "RTX 3090": ("decode 1 stream", "prefill")}  # fmt: skip
    for gpu, each in names.items():
        kinds[gpu] = []
        for name in each:
            points = (series_of_club if gpu == "RTX 3090" else series_of_vllm)(name)
            points.sort(key=lambda point: -point[0])
            slow = min(points, key=lambda point: abs(point[0] / points[0][0] - 2 / 3))
            true = {"MHz": np.array([point[0] for point in points])}
            true["W"] = np.array([point[1] for point in points])
            true["tok/s"] = np.array([point[2].output_per_s for point in points])
            kinds[gpu].append((advised([reading(*points[0]), reading(*slow)], []), true))
    off: dict[float, dict[str, float]] = {share: {} for share in (0.0, *SHARES)}
    for kind, found in kinds.items():
        for share, by_kind in off.items():
            each_off = []
            for advice, true in found:
                inner = is_between(advice, true)
                told = watts(advice, true["MHz"][inner], share)
                each_off.append(100 * np.abs(np.log(told / true["W"][inner])))
            by_kind[kind] = float(np.concatenate(each_off).mean())
    rows = [
        (f"idle share {share:g}" if share else "law of runs", *(f"{one[k]:.1f}" for k in kinds))
        for share, one in off.items()
    ]
    for name, of_all in (("least mean", np.mean), ("least of the worst", np.max)):
        ratios = {s: {k: off[s][k] / off[0.0][k] for k in kinds} for s in SHARES}
        chosen = {
            kind: min(SHARES, key=lambda s: of_all([ratios[s][k] for k in kinds if k != kind]))
            for kind in kinds
        }
        told = (f"{off[chosen[kind]][kind]:.1f} ({chosen[kind]:g})" for kind in kinds)
        rows.append((f"share of the others, {name}", *told))
    report.rows("watts, mean |error| %", ("", *kinds), rows, "server-power")
    rows = []
    for share in (0.0, IDLE):
        each = [np.mean([regret(*one, share) for one in found]) for found in kinds.values()]
        rows.append(
            (f"idle share {share:g}" if share else "law of runs", *(f"{e:.1f}" for e in each))
        )
    report.rows("regret of the clock of most tokens/J, mean %", ("", *kinds), rows)


def sweeps(report: Report) -> None:
    """Errors and intervals on both sweeps of real servers."""
    judged = {
        f"{VLLM}, every request": judged_of_vllm(is_detailed=True),
        f"{VLLM}, summaries": judged_of_vllm(is_detailed=False),
        f"{VLLM}, summaries, slow reading at 0.35 to 0.39": judged_of_vllm(False, FAR_PAIRS),
        f"{VLLM}, summaries, mean power of a log": judged_of_vllm(False, power="mean"),
        f"{DEEPSEEK}, summaries": judged_of_deepseek(),
    }
    for name, found in judged.items():
        report.rows(f"{name}, closed load", HEADER, table(list(found)))
    once = {row["mhz"]: row for row in vllm_clocks() if row["series"] == "freqsAll"}
    again = [row for row in vllm_clocks() if row["series"] != "freqsAll" and row["mhz"] in once]
    rows = []
    for name in (n for n in again[0] if n.endswith(("_ms", "_w", "_per_s"))):
        ends = (column(each, name) for each in (again, [once[row["mhz"]] for row in again]))
        rows.append((name, f"{100 * np.abs(np.subtract(*map(np.log, ends))).mean():.1f}"))
    header = ("", "mean |difference| %")
    report.rows(f"{VLLM}, two runs at each of {len(again)} clocks", header, rows)


if __name__ == "__main__":
    run(
        "How well two readings of an LLM server tell what lies between them.",
        {
            "simulated": simulated,
            "limits": limits,
            "saturated": saturated,
            "gaps": gaps,
            "real": real,
            "caps": caps,
            "sweeps": sweeps,
            "loads": loads,
            "power": power,
        },
    )
