"""A report names for each kernel what advice on the same profiles names, with the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from html_page import Node
from report_pages import SOURCE, report, section, text_of
from synthetic import frugal
from synthetic import kernels as made

from mlscale import Limits, Model, Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.answer import RunGoal
from mlscale.advice.recommendation import Advice
from mlscale.data.datasets import path
from mlscale.model.shipped import model_for, shipped_model
from mlscale.readers.reading import import_profile
from mlscale.report.kernel_report import KernelReport, kernel_reports

MID = made.GRID.mid  # cu=8, engine=800, memory=700
MODEL = train(frugal.measurements(), MID, "nearest")
LEFT = "The memory clock is left as it is: 33.3 % of the run's time is in kernels without counters"


def counted_and_not() -> Profiles:
    """Ten of 15 ms in counted kernels, of which the second is best at 1000 MHz of the memory."""
    two = frugal.new_kernels()
    return replace(
        two,
        kernels=(*two.kernels, "unknown"),
        applications=(*two.applications, "unknown"),
        time_ms=np.array([2.0, 4.0, 1.0]),
        power_w=np.array([60.0, 40.0, np.nan]),
        counters=np.vstack([two.counters, np.full(two.counters.shape[1], np.nan)]),
        launches=np.array([3.0, 1.0, 5.0]),
    )


def reports(model: Model, profiles: Profiles, advice: Advice) -> list[KernelReport]:
    return kernel_reports(model, profiles, advice, range(len(profiles.kernels)))


@pytest.mark.parametrize("objective", ["time", "energy", "edp", "ed2p", "power"])
@pytest.mark.parametrize("has_uncounted", [False, True])
def test_best_and_front_are_those_of_the_advice(objective: str, has_uncounted: bool) -> None:
    """By hand: with all kernels counted the bandwidth kernel is best at another memory clock."""
    profiles = counted_and_not() if has_uncounted else frugal.new_kernels()
    advice = advise(MODEL, profiles, objective)
    for one, of_advice in zip(reports(MODEL, profiles, advice), advice.kernels, strict=True):
        assert one.grid.config(one.best(objective)) == of_advice.best.config
        times = one.quantities["time"][one.front]
        assert sorted(set(times.round(9))) == pytest.approx([p.time_ms for p in of_advice.front])
        assert (one.memory_note is not None) == has_uncounted
    assert ({kernel.best.config.memory_mhz for kernel in advice.kernels} == {700}) == has_uncounted


@pytest.mark.parametrize("objective", ["energy", "clock"])
def test_the_page_says_why_the_memory_clock_is_kept(objective: str) -> None:
    def shown(profiles: Profiles) -> Node:
        return report(MODEL, profiles, [1], replace(SOURCE, goal=RunGoal(objective)))

    kept, changed = shown(counted_and_not()), shown(frugal.new_kernels())
    for heading in ("Surfaces", "Time against energy", "Best configurations"):
        assert LEFT in text_of(section(kept, heading))
        assert LEFT not in text_of(section(changed, heading))
    assert "/ 1000 MHz" not in text_of(section(kept, "Best configurations"))
    assert "/ 1000 MHz" in text_of(section(changed, "Best configurations"))


def test_intervals_are_held_to_what_the_board_supplies() -> None:
    """An H100 supplies 700 W: of two kernels at 680 W intervals of power reach beyond that."""
    clocks = {"engine_mhz": 1980, "memory_mhz": 2619}
    plain = import_profile(path("h100-by-hand.csv"), device="h100-sxm5", base=clocks)
    profiles = replace(plain, power_w=np.array([680.0, 680.0]))
    model = model_for(shipped_model(profiles)[1], profiles)
    advice = advise(model, profiles, "time", Limits(max_power_w=550))
    assert not (advice.surfaces["power"].high <= 700).all()
    for one, of_advice in zip(reports(model, profiles, advice), advice.kernels, strict=True):
        assert (one.intervals["power"][1] <= 700).all()
        index = one.grid.index(of_advice.best.config)
        at_base = one.quantities["time"][one.base]
        ends = [100 * (end[index] / at_base - 1) for end in one.intervals["time"]]
        assert ends == pytest.approx(of_advice.best.slowdown_range)


def test_each_kernel_has_its_own_place_and_counters() -> None:
    """Of triad and gemm, as their counters say, behind a kernel without any; in another order."""
    clocks = {"engine_mhz": 1980, "memory_mhz": 2619}
    both = import_profile(path("h100-by-hand.csv"), device="h100-sxm5", base=clocks)
    three = replace(
        both,
        kernels=("unknown", *both.kernels),
        applications=("unknown", *both.applications),
        time_ms=np.array([0.1, *both.time_ms]),
        counters=np.vstack([np.full(both.counters.shape[1], np.nan), both.counters]),
        launches=np.ones(3),
    )
    model = model_for(shipped_model(three)[1], three)
    gemm, unknown, triad = kernel_reports(model, three, advise(model, three, "clock"), [2, 0, 1])
    assert [one.name.partition("(")[0] for one in (gemm, triad)] == ["gemm_f16", "triad"]
    bounds = [one.place.bound for one in (gemm, unknown, triad)]
    assert bounds == ["core-bound", None, "memory-bound"]
    assert unknown.counters == {}
    for k, one in enumerate((triad, gemm)):
        assert list(one.counters.values()) == [n for n in both.counters[k] if not np.isnan(n)]
