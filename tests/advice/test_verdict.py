"""The document of an answer and its sentences, of advice whose numbers are set by hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlscale import HardwareConfig, __version__
from mlscale.advice.caps import CapAdvice, CapPoint, CapRuns
from mlscale.advice.commands import Commands
from mlscale.advice.document import NextStep, document
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Offer, Recommendation, Setting, Workload
from mlscale.advice.verdict import answer_lines
from mlscale.data.supply import Supply
from mlscale.data.surfaces import BOUNDED
from mlscale.notes import Note

BASE = HardwareConfig(8, 800.0, 700.0)
LOWER = HardwareConfig(8, 600.0, 700.0)
AT_BASE = Setting(BASE, 2.0, 60.0, 120.0, 0.0, 0.0)
# 10 % more time, 20 % less power, and 12 % less energy.
AT_LOWER = Setting(
    *(LOWER, 2.2, 48.0, 105.6, 10.0, 12.0, (5.0, 15.0), (6.0, 18.0)),
    time_range=(2.1, 2.3),
    power_range=(45.0, 54.0),
    energy_range=(98.4, 112.8),
)
LIMITED = Limits(max_slowdown_percent=12)
SET = "Set the engine clock to 600 MHz (now 800): "
ONE_LAUNCH = Workload(1, launches=None, counters_cover_percent=100.0)


def advice(
    objective: str = "energy",
    best: Setting = AT_LOWER,
    limits: Limits = LIMITED,
    expected: Setting | None = None,
    **known: Any,
) -> Advice:
    """Advice for one run, by default of 10 % more time and 12 % less energy."""
    run = Recommendation(None, best, AT_BASE, (AT_BASE, AT_LOWER), expected=expected)
    told = Advice("made-gpu", objective, limits, None, ONE_LAUNCH, run)
    return replace(told, sure_why=("S05", "S03"), **known)


def lines(told: Advice, caps: CapAdvice | None = None) -> tuple[str, ...]:
    return answer_lines(document(told, "made", caps, "cap" if caps else "clock"))


def test_the_document() -> None:
    """Each number by hand: 2.1 / 2 is 5 % slower, 98.4 / 120 is 18 % less energy, and so on."""
    at = {"cu_count": 8, "engine_mhz": 600.0, "memory_mhz": 700.0}
    choice = {
        "set": {"engine_mhz": 600.0},
        "at": at,
        "slowdown_percent": pytest.approx([10, 5, 15]),
        "energy_percent": pytest.approx([-12, -18, -6]),
        "power_percent": pytest.approx([-20, -25, -10]),
        "time_ms": [2.2, 2.1, 2.3],
        "power_w": [48.0, 45.0, 54.0],
        "energy_mj": [105.6, 98.4, 112.8],
    }
    zero = [0.0, None, None]
    stay = {
        "set": {},
        "at": at | {"engine_mhz": 800.0},
        "slowdown_percent": zero,
        "energy_percent": zero,
        "power_percent": zero,
        "time_ms": [2.0, None, None],
        "power_w": [60.0, None, None],
        "energy_mj": [120.0, None, None],
    }
    flags = (Note("P02", "use 0.05 below trained 0.1"), BOUNDED)
    kernels = tuple(
        Recommendation(name, AT_LOWER, AT_BASE, (), flags, launches, share, in_run=AT_LOWER)
        for name, launches, share in (("small", 3.0, 40.0), ("large", 2.0, 60.0))
    )
    told = advice(kernels=kernels, menu=(Offer(None, AT_LOWER),), warnings=(Note("P04", "w"),) * 2)
    notes = [Note("G01", "of the files"), Note("T02", "doubtful", "warning", ("large",))]
    commands, step = (
        Commands(("set it",), ("reset it",), ("as root",)),
        NextStep("measure", 900, ("x",)),
    )
    found = document(told, "made", notes=notes, commands=commands, next_step=step)
    kernel = {"at_answer": {k: v for k, v in choice.items() if k not in ("set", "at")}}
    kernel["best"] = choice
    names = ("large", 2.0, 60.0), ("small", 3.0, 40.0)
    assert found == {
        "schema": 1,
        "mlscale": __version__,
        "model": "made",
        "device": "made-gpu",
        "base": {"cu_count": 8, "engine_mhz": 800.0, "memory_mhz": 700.0},
        "objective": "energy",
        "limits": {"max_power_w": None, "max_time_ms": None, "max_slowdown_percent": 12},
        "coverage": 0.9,
        "run": {
            "kernels": 1,
            "launches": None,
            "gpu_count": 1,
            "time_ms": 2.0,
            "power_w": 60.0,
            "energy_mj": 120.0,
            "counters_cover_percent": 100.0,
            "is_bounded": False,
        },
        "answer": choice,
        "expected": None,
        "menu": [{"max_slowdown_percent": None, **choice}],
        "sure": "low",
        "sure_why": ["S05", "S03"],
        "notes": [
            {"code": "T02", "severity": "warning", "kernels": ["large"], "text": "doubtful"},
            {"code": "G01", "severity": "note", "kernels": "all", "text": "of the files"},
            {"code": "P04", "severity": "note", "kernels": "all", "text": "w"},
            {"code": "P02", "severity": "note", "kernels": "all", "text": flags[0].text},
        ],
        "next": "measure",
        "next_commands": ["x"],
        "commands": {"set": ["set it"], "reset": ["reset it"], "notes": ["as root"]},
        "kernels": [
            {
                "number": number,
                "kernel": name,
                "short": name,
                "share_percent": share,
                "launches": launches,
                **kernel,
            }
            for number, (name, launches, share) in enumerate(names, start=1)
        ],
        "front": [stay, choice],
        "measured": [],
        "caps": None,
    }
    assert [*found][:5] == ["schema", "mlscale", "model", "device", "base"]


def test_a_lower_clock_says_by_how_much() -> None:
    """By hand: 600 of 800 MHz."""
    found = document(advice("clock"), "made")
    assert found["answer"]["clock_reduction_percent"] == pytest.approx(25)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (advice(), f"{SET}10 % slower, 12 % less energy."),
        (advice("power"), f"{SET}10 % slower, 20 % less power."),
        (advice("time", replace(AT_LOWER, slowdown_percent=-3.84)), f"{SET}3.8 % faster."),
        (
            advice("clock", replace(AT_LOWER, power_w=None, energy_mj=None)),
            f"{SET}10 % slower.",
        ),
        (
            advice(best=replace(AT_LOWER, config=HardwareConfig(16, 800.0, 900.0))),
            (
                "Set the CU count to 16 (now 8) and the memory clock to 900 MHz (now 700): 10 % "
                "slower, 12 % less energy."
            ),
        ),
        (
            advice(best=AT_BASE),
            (
                "Stay at the base, 8 CUs, 800 MHz, memory 700 MHz: nothing that needs less energy "
                "keeps a slowdown of at most 12 %."
            ),
        ),
        (
            advice("time", AT_BASE, Limits()),
            "Stay at the base, 8 CUs, 800 MHz, memory 700 MHz: nothing is faster.",
        ),
        (
            advice("clock", AT_BASE, expected=AT_LOWER),
            (
                "Stay at the base, 8 CUs, 800 MHz, memory 700 MHz: no lower clock surely keeps a "
                "slowdown of at most 12 %."
            ),
        ),
    ],
)
def test_what_to_set(told: Advice, sentence: str) -> None:
    assert lines(told)[0] == sentence


@pytest.mark.parametrize(
    ("percent", "often"),
    [(12, "about one time in 4"), (10.2, "about every second time"), (15, "about one time in 20")],
)
def test_how_often_the_expected_passes_the_limit(percent: float, often: str) -> None:
    """By the normal law: its 90 % ends are 1.645 deviations away, so 3.04 % is one here."""
    told = advice("clock", AT_BASE, Limits(max_slowdown_percent=percent), AT_LOWER)
    said = f"600 MHz would be 10 % slower, 12 % less energy, and above {percent:g} % {often}."
    assert lines(told)[1] == said


def test_it_may_pass_the_limit_where_the_upper_end_is_not_known() -> None:
    open_end = replace(AT_LOWER, slowdown_range=(0.0, math.nan))
    told = advice("clock", AT_BASE, Limits(max_slowdown_percent=12), open_end)
    said = "600 MHz would be 10 % slower, 12 % less energy, and may be above 12 %."
    assert lines(told)[1] == said


def test_bounds() -> None:
    bounded = replace(AT_LOWER, slowdown_range=(0.0, 10.0))
    assert lines(advice(best=bounded, is_bounded=True)) == (
        f"{SET}at most 10 % slower, 12 % less energy.",
        (
            "One clock does not show how time follows it: these are bounds, so 12 % is kept in "
            "any case."
        ),
    )


def capped(run: Setting | None = AT_LOWER, cap_w: float = 400.0, **known: object) -> CapAdvice:
    """A best cap of 300 W, of a run under cap_w."""
    best = CapPoint(300.0, run, 0, ("below the clocks tried",))
    nothing = np.empty(0)
    runs = CapRuns(
        *("made-gpu", nothing, (), (nothing, nothing), AT_BASE, 350.0), supply=Supply(cap_w=cap_w)
    )
    caps = CapAdvice(
        runs=runs, objective="energy", limits=LIMITED, points=(best,), best=best, helps=True
    )
    return replace(caps, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("caps", "sentence"),
    [
        (capped(), "Set the power cap to 300 W (now 400): 10 % slower, 12 % less energy."),
        (capped(cap_w=math.nan), "Set the power cap to 300 W: 10 % slower, 12 % less energy."),
        (
            capped(helps=False),
            (
                "Leave the power cap as it is: nothing that needs less energy keeps a slowdown of "
                "at most 12 %."
            ),
        ),
        (capped(best=None), "None of these power caps can be set and keeps 12 %."),
        (capped(None), "None of these power caps can be judged: below the clocks tried."),
    ],
)
def test_of_a_cap(caps: CapAdvice, sentence: str) -> None:
    assert lines(advice(), caps)[0] == sentence


def test_an_end_that_is_not_known_is_none() -> None:
    found = document(advice(), "made", capped(replace(AT_LOWER, slowdown_range=(5, math.inf))))
    assert found["caps"][0]["slowdown_percent"] == [10, 5, None]


def test_a_steep_cap_is_better_a_clock() -> None:
    """1 % of power is 0.8 % of time, above the 0.7 from which a lock is better."""
    best = CapPoint(300.0, AT_LOWER, 0, (), time_per_power=0.8)
    found = document(advice(), "made", capped(best=best, lock_mhz=600.0), "cap")
    said = "better lock the engine clock at 600 MHz in its place: there 1 % of power is 0.8"
    assert found["notes"][0]["text"].startswith(said)
