"""How well two readings of an LLM server tell its latencies, power and best clock between them.

    MLSCALE_DATA=FOLDER python reproduction/servers.py [PART ...]

Parts: `simulated`, errors and intervals on 137 simulated servers by the aims; `limits`, clocks
under limits of latency; `saturated`, servers of which nothing is said;
`gaps`, percentiles of the gaps between tokens where all gaps are known; `real`, measured series,
whose clocks are means under power caps. Readings are at the highest clock and two thirds of it.
docs/howto/servers.md shows what they print.
"""

import gzip
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from common import REPOSITORY, Report, run
from run_tables import csv_rows

from mlscale import HardwareConfig, load
from mlscale.advice.server import ServerAdvice, Slo, advise_server
from mlscale.advice.server_readings import ServerReading
from mlscale.arrays import Floats
from mlscale.data.logs import PROFILE_KIND
from mlscale.data.profiles import Profiles
from mlscale.readers.serving import ServingResult, read_result

Row = dict[str, Any]
SLOW = 7  # place of the slow reading, two thirds of the highest clock
LATENCIES = [Slo(m, p) for m in ("itl", "tpot", "ttft") for p in ("p50", "p90", "p99")]
AIMS = {"itl p50": 1.5, "itl p90": 2.5, "itl p99": 5, "tpot p50": 1.5, "tpot p90": 1.5,
        "ttft p50": 2.5, "ttft p90": 3.5, "tok/s": 1, "W": 5}  # fmt: skip
TIMES = (1.1, 1.5)  # what latencies may be of those at the highest clock
GAP_SERVERS = 40
SERVED = 0.98  # a long run that serves less of the rate of requests is saturated


def reading(mhz: float, power_w: float, result: ServingResult) -> ServerReading:
    """A reading of one GPU that draws what all draw."""
    facts = {"profile_kind": PROFILE_KIND, "origin": "measured", "power_kind": "board"}
    log = Profiles(
        "some-gpu", HardwareConfig(100, mhz, 1000.0), ("run",), ("run",), np.ones(1),
        np.array([power_w]), (), np.empty((1, 0)), facts,
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
    named |= {"tok/s": [c.output_per_s for c in clocks]}
    named |= {"tok/J": [c.tokens_per_joule.value for c in clocks]}
    return {name: np.array(values)[::-1] for name, values in named.items()}


def at(values: Floats, clocks: Floats, mhz: Any) -> Floats:
    """Values at other clocks, the log of each straight in the log of the clock."""
    return np.asarray(np.exp(np.interp(np.log(mhz), np.log(clocks), np.log(values))))


def truth(server: Row) -> dict[str, Floats]:
    """The same of the truth, at its clocks down to the slow reading."""
    rows = server["truth_same_requests"][SLOW::-1]
    named = {slo.name: [latency_ms(row, slo) for row in rows] for slo in LATENCIES}
    named |= {"tok/s": [r["tput"] for r in rows], "W": [r["power"] for r in rows]}
    named |= {"tok/J": [r["tokJ"] for r in rows]}
    named["MHz"] = [server["fmax_mhz"] * share for share in server["clock"][SLOW::-1]]
    return {name: np.array(values) for name, values in named.items()}


def errors(advice: ServerAdvice, true: dict[str, Floats]) -> dict[str, Floats]:
    """Errors between the readings [%], of what both have."""
    found, mhz = curves(advice), true["MHz"][1:-1]
    return {
        name: 100 * np.log(at(found[name], found["MHz"], mhz) / true[name][1:-1])
        for name in found.keys() & true.keys() - {"MHz"}
    }


def held_by(advice: ServerAdvice, true: dict[str, Floats], name: str) -> float:
    """The share of the truth between the readings that 90 % intervals hold."""
    clocks = np.array([clock.engine_mhz for clock in advice.clocks])
    held = []
    for mhz, value in zip(true["MHz"][1:-1], true[name][1:-1], strict=True):
        clock = advice.clocks[int(np.abs(clocks - mhz).argmin())]
        others = {"W": clock.power_w, "tok/J": clock.tokens_per_joule}
        _, low, high = {**clock.latency_ms, **others}[name]
        held.append(low is not None and high is not None and low <= value <= high)
    return float(np.mean(held))


def simulated(report: Report) -> None:
    """Errors between the readings, of servers that are not withheld, beside the aims."""
    kinds: dict[str, list[tuple[ServerAdvice, dict[str, Floats]]]] = {"closed": [], "open": []}
    for server in servers():
        advice = advice_on(server)
        if not advice.withheld:
            kinds["closed" if server["closed"] else "open"].append((advice, truth(server)))
    for kind, found in kinds.items():
        all_errors = [errors(*one) for one in found]
        rows = []
        for name in [*(slo.name for slo in LATENCIES), "tok/s", "W", "tok/J"]:
            off = np.abs(np.concatenate([one[name] for one in all_errors]))
            aim = AIMS.get(name)
            held = ""
            if name != "tok/s":
                held = f"{100 * np.mean([held_by(*one, name) for one in found]):.0f}"
            kept = "" if aim is None else "yes" if off.mean() <= aim else "no"
            rows.append(
                (name, f"{off.mean():.1f}", f"{np.percentile(off, 90):.1f}", held, aim or "", kept)
            )
        header = ("", "mean |error| %", "90th", "90 % intervals hold %", "aim", "kept")
        report.rows(f"{kind} load, {len(found)} servers", header, rows)


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
    withheld: dict[bool, list[bool]] = {True: [], False: []}
    for server in servers():
        if not server["closed"]:
            long = server["truth_long"][SLOW]["rate"] < SERVED * server["rate"]
            withheld[long].append(bool(advice_on(server, []).withheld))
    rows = [
        ("saturated" if is_it else "not", len(told), f"{100 * np.mean(told):.0f}")
        for is_it, told in withheld.items()
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


def real(report: Report) -> None:
    """Errors on measured series, between the highest clock and the one nearest two thirds."""
    series = {f"RTX PRO 6000, vLLM, {n}": series_of_vllm(n) for n in
              ("phase1-dense-27b-n32", "phase1b-dense-27b-n1")}  # fmt: skip
    series |= {f"RTX 3090, {n}": series_of_club(n) for n in ("decode 1 stream", "prefill")}
    rows = []
    for name, points in series.items():
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


if __name__ == "__main__":
    run(
        "How well two readings of an LLM server tell what lies between them.",
        {
            "simulated": simulated,
            "limits": limits,
            "saturated": saturated,
            "gaps": gaps,
            "real": real,
        },
    )
