"""The whole run: what launches may and may not change, by property."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import frugal
from synthetic import kernels as made
from synthetic.frugal import new_kernels

from mlscale import Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.objectives import Limits
from mlscale.advice.search import Advice

MID = made.GRID.mid
MODEL = train(frugal.measurements(), MID, "nearest")
OBJECTIVES = st.sampled_from(["energy", "edp", "ed2p", "time", "power", "clock"])
COUNTS = st.lists(st.floats(0.01, 1e4), min_size=2, max_size=2).map(np.array)
LIMITS = st.sampled_from(
    [
        Limits(),
        Limits(max_slowdown_percent=10),
        Limits(max_power_w=95),
        Limits(max_power_w=95, max_slowdown_percent=40),
    ]
)


def split(whole: Profiles, first: float) -> Profiles:
    """The same run with its first kernel in two rows, `first` of its launches in the one."""
    rows = whole.select([0, 0, 1])
    assert whole.launches is not None
    parts = [first * whole.launches[0], (1 - first) * whole.launches[0], whole.launches[1]]
    return replace(rows, kernels=("part0", "part1", "other"), launches=np.array(parts))


def same_run(first: Advice, second: Advice, factor: float = 1.0) -> None:
    """Check that both advise the same and that the second's times and energies are so much."""
    one, other = first.whole_run, second.whole_run
    assert one.best.config == other.best.config
    assert one.slowdown_percent == pytest.approx(other.slowdown_percent, abs=1e-9)
    assert one.saving_percent == pytest.approx(other.saving_percent, abs=1e-9)
    assert [point.config for point in one.front] == [point.config for point in other.front]
    for ours, theirs in ((one.best, other.best), (one.base, other.base)):
        assert theirs.time_ms == pytest.approx(factor * ours.time_ms)
        assert theirs.energy_mj == pytest.approx(factor * (ours.energy_mj or np.nan))
        assert theirs.power_w == pytest.approx(ours.power_w)


@settings(max_examples=40)
@given(OBJECTIVES, LIMITS, COUNTS, st.floats(0.1, 50))
def test_more_launches_of_all_change_time_and_energy_alone(
    objective: str, limits: Limits, counts: np.ndarray, factor: float
) -> None:
    first = advise(MODEL, new_kernels(counts), objective, limits)
    second = advise(MODEL, new_kernels(factor * counts), objective, limits)
    same_run(first, second, factor)
    for one, other in zip(first.kernels, second.kernels, strict=True):
        assert one.best == other.best
        assert one.share is not None
        assert other.share is not None
        assert one.share.percent == pytest.approx(other.share.percent)


@settings(max_examples=40)
@given(OBJECTIVES, LIMITS, COUNTS, st.floats(0.05, 0.95))
def test_a_kernel_in_two_rows_gives_the_same_answer(
    objective: str, limits: Limits, counts: np.ndarray, part: float
) -> None:
    whole = new_kernels(counts)
    same_run(
        advise(MODEL, whole, objective, limits),
        advise(MODEL, split(whole, part), objective, limits),
    )


@settings(max_examples=40)
@given(COUNTS, st.floats(0, 40))
def test_a_limit_holds_for_the_kernels(counts: np.ndarray, most: float) -> None:
    advice = advise(MODEL, new_kernels(counts), "power", Limits(max_slowdown_percent=most))
    assert advice.whole_run.slowdown_percent <= most + 1e-6
    by_hand = sum(
        kernel.share.launches * kernel.share.at_best.time_ms
        for kernel in advice.kernels
        if kernel.share
    )
    assert advice.whole_run.best.time_ms == pytest.approx(by_hand)


@settings(max_examples=20)
@given(OBJECTIVES, LIMITS)
def test_one_launch_each_is_what_no_launches_mean(objective: str, limits: Limits) -> None:
    once = new_kernels((1.0, 1.0))
    same_run(
        advise(MODEL, replace(once, launches=None), objective, limits),
        advise(MODEL, once, objective, limits),
    )
