"""Volkov's survey: numbers by hand and from equations.md, and the models' invariants."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.papers import volkov as survey
from mlscale.papers.volkov import GTX_980, MODELS, ComputeUnit

intensities = st.floats(0.1, 1000)
occupancies = st.floats(1, 200)
# A >= t, as on every GPU: an instruction is not over before the next can start.
units = st.builds(
    ComputeUnit,
    arithmetic_latency_cycles=st.floats(2, 50),
    memory_latency_cycles=st.floats(50, 2000),
    issue_per_cycle=st.floats(0.5, 8),
    arithmetic_per_cycle=st.floats(0.5, 8),
    memory_per_cycle=st.floats(0.005, 1),
)
modest = settings(max_examples=60)
SLACK = 1 + 1e-9

# A = 2, L = 10, I = 3, T = 2, B = 0.5 at n = 4, alpha = 3, worked by hand from the poster's lines:
# lambda = 4/16; Tb = min(3, 2 * 4/3, 0.5 * 4); CWP = min(4, 1 + 20/4), MWP = min(4, 5): case 1,
# 16/(2 + 10); tau = max(2/4, 1/2), mu = max(10/4, 2): 16/max(6, 10); alu = 1.5: 4/(1.5 + 10 - 4.5)
# and 16/(1.5 + 10).
SMALL = ComputeUnit(2, 10, 3, 2, 0.5)
BY_HAND = {
    "classical bounds": 1.0,
    "Hong & Kim": 16 / 12,
    "Chen & Aamodt 1": 0.25,
    "Chen & Aamodt 2": 1.0,
    "Chen & Aamodt 3": 1 - 0.75**4,
    "Huang": 1.0,
    "Zhang & Owens, Sim": 1.6,
    "same, mu = 1/B": 2.0,
    "Baghsorkhi*": 4 / 7,
    "Baghsorkhi*, shared": 16 / 11.5,
}


@pytest.mark.parametrize("name", MODELS)
def test_model_by_hand(name: str) -> None:
    assert MODELS[name](4, 3, SMALL) == pytest.approx(BY_HAND[name], rel=1e-12)


def test_throughput_bound_takes_each_of_its_three_terms() -> None:
    # By hand: B (1 + 1) = 1; T (1 + 1/8) = 2.25; I = 3 where T would allow 2 (1 + 1) = 4.
    assert survey.throughput_bound([1, 8], SMALL) == pytest.approx([1.0, 2.25])
    fast_memory = dataclasses.replace(SMALL, memory_per_cycle=9)
    assert survey.throughput_bound(1, fast_memory) == 3


@pytest.mark.parametrize(
    ("model", "warps", "intensity", "expected"),
    # By hand, six digits (equations.md, 2.4); the others there are the functions' examples.
    [
        (survey.latency_bound, 8, 128, 0.908451),
        (survey.hong_kim, 8, 128, 2.578389),
        (survey.chen_aamodt_3, 8, 128, 0.618751),
        (survey.zhang_owens, 8, 128, 1.34375),
        # Above the issue limit of 4: B (alpha + 1) = 0.08 * 51; T (1 + 1/128).
        (survey.hong_kim, 30, 50, 4.08),
        (survey.zhang_owens, 64, 128, 4.03125),
        (survey.baghsorkhi, 64, 128, 4.03125),
    ],
)
def test_worked_numbers(
    model: survey.ThroughputModel, warps: int, intensity: int, expected: float
) -> None:
    assert model(warps, intensity, GTX_980) == pytest.approx(expected, abs=5e-7)


def test_warps_for_full_throughput() -> None:
    # docs/papers/equations.md, 2.4: claim (ii) and the knee of the bounds.
    alpha = [1, 8, 32, 128]
    assert survey.vendor_warps(alpha) == pytest.approx([1472, 184, 46, 11.5])
    assert survey.saavedra_barrera_warps(alpha) == pytest.approx([1473, 185, 47, 12.5])
    assert survey.bounds_warps(alpha) == pytest.approx([29.92, 33.28, 44.80, 35.22], abs=5e-3)
    assert survey.throughput_bound(32) == pytest.approx(2.64)


def test_hong_kim_cases_and_the_tie_that_the_poster_leaves_open() -> None:
    # By hand, at alpha = 32 and 128.
    assert survey.hong_kim_case([16, 32], 32).tolist() == [1, 2]
    assert survey.hong_kim_case([8, 16], 128).tolist() == [1, 3]
    # By hand: 1 + L T / (alpha + 1) = 1 + 9 = 10 = L B, below n = 20: B (alpha + 1) = 2 > T = 1.
    tie = ComputeUnit(1, 18, 4, 1, 10 / 18)
    assert survey.hong_kim_case(20, 1, tie) == 3
    assert survey.hong_kim(20, 1, tie) == 1
    # The same with B (alpha + 1) = 0.875 < T = 1: 1 + 48/8 = 7 = L B, n = 8.
    tie = ComputeUnit(1, 48, 4, 1, 7 / 48)
    assert survey.hong_kim(8, 7, tie) == pytest.approx(min(1, 7 / 48 * 8))


def test_hong_kim_reaches_case_3_without_a_jump_and_case_2_with_one() -> None:
    # Closed form: T at n = 1 + L T / (alpha + 1); factor 1 + (alpha + 1) t / L.
    edge = 1 + 368 * 4 / 129
    assert survey.hong_kim([edge, edge + 1e-9], 128) == pytest.approx([4, 4])
    before, after = survey.hong_kim([368 * 0.08, 368 * 0.08 + 1e-9], 32)
    assert after / before == pytest.approx(1 + 33 / 4 / 368)


def test_gtx_980_follows_from_the_device_table() -> None:
    # equations.md, 2.1: 224 GB/s, 82 % of it reached, 16 SMs, 128 bytes a warp, 1.126 GHz.
    device = load_device("gtx980")
    assert device.schedulers_per_cu == GTX_980.issue_per_cycle
    assert device.lanes_per_cu / device.wave_size == GTX_980.arithmetic_per_cycle
    bytes_per_cycle = 0.82 * device.peak_bandwidth_gb_per_s(3505) / 1.126 / device.cu_count
    assert bytes_per_cycle / 128 == pytest.approx(GTX_980.memory_per_cycle, rel=0.01)


def test_a_grid_equals_its_points() -> None:
    warps, alpha = np.arange(1, 65), np.array([[0.5], [8.0], [300.0]])
    for model in MODELS.values():
        surface = model(warps, alpha, GTX_980)
        assert surface.shape == (3, 64)
        assert surface[1, 15] == model(16, 8, GTX_980)


def test_warps_needed_is_none_where_no_occupancy_is_enough() -> None:
    # lambda1 never grows; lambda3 ends at 1 IPC, below 0.99 * 2.64.
    assert survey.warps_needed(survey.chen_aamodt_1, 32, most=64) is None
    assert survey.warps_needed(survey.chen_aamodt_3, 32, most=10_000) is None
    # ceil(0.99 * 44.8) by hand; the limit itself is enough.
    assert survey.warps_needed(survey.classical_bounds, 32, most=45) == 45
    assert survey.warps_needed(survey.classical_bounds, 32, most=44) is None


@modest
@given(occupancies, occupancies, intensities, units)
def test_more_warps_never_give_less(n: float, m: float, alpha: float, cu: ComputeUnit) -> None:
    few, many = sorted((n, m))
    for model in MODELS.values():
        assert model(few, alpha, cu) <= model(many, alpha, cu) * SLACK


@modest
@given(occupancies, intensities, units)
def test_order_of_the_models(n: float, alpha: float, cu: ComputeUnit) -> None:
    arithmetic = cu.arithmetic_per_cycle * (1 + 1 / alpha)
    memory = cu.memory_per_cycle * (1 + alpha)
    bounds = survey.classical_bounds(n, alpha, cu)
    assert bounds <= survey.throughput_bound(alpha, cu)
    assert survey.hong_kim(n, alpha, cu) <= max(cu.arithmetic_per_cycle, memory) * SLACK
    for reading in (survey.zhang_owens, survey.zhang_owens_peak):
        assert reading(n, alpha, cu) <= min(arithmetic, memory) * SLACK
        assert reading(n, alpha, cu) * SLACK >= bounds
    assert survey.zhang_owens(n, alpha, cu) <= survey.zhang_owens_peak(n, alpha, cu) * SLACK
    assert survey.huang(n, alpha, cu) >= bounds
    first, second = survey.chen_aamodt_1(n, alpha, cu), survey.chen_aamodt_2(n, alpha, cu)
    assert first <= survey.chen_aamodt_3(n, alpha, cu) * SLACK
    assert survey.chen_aamodt_3(n, alpha, cu) <= min(1, second) * SLACK
    assert survey.baghsorkhi(n, alpha, cu) <= survey.baghsorkhi_shared(n, alpha, cu) * SLACK


@modest
@given(occupancies, intensities)
def test_hong_kim_breaks_the_issue_limit_in_one_narrow_band(n: float, alpha: float) -> None:
    # By hand: case 2 holds up to alpha + 1 = L T / (L B - 1) = 51.76, but B (alpha + 1) passes
    # I = 4 at 50 already. At most I at the 11 intensities of the claim, not between.
    band = 49 < alpha <= 1472 / 28.44 - 1
    highest = 0.08 * 1472 / 28.44 if band else GTX_980.issue_per_cycle
    assert survey.hong_kim(n, alpha) <= highest * SLACK


@modest
@given(intensities, units)
def test_one_warp(alpha: float, cu: ComputeUnit) -> None:
    alone = (alpha + 1) / (alpha * cu.arithmetic_latency_cycles + cu.memory_latency_cycles)
    same = {"Chen & Aamodt 1", "Chen & Aamodt 2", "Chen & Aamodt 3", "Huang"}
    same |= {"Baghsorkhi*", "Baghsorkhi*, shared"}
    if alone <= survey.throughput_bound(alpha, cu):
        same.add("classical bounds")
    for name in same:
        assert MODELS[name](1, alpha, cu) == pytest.approx(alone, rel=1e-9)


def test_numbers_give_numbers() -> None:
    for model in MODELS.values():
        assert isinstance(model(16, 32, GTX_980), float)
    # By hand: 1 + 368 / 2, and 1 + 368 / (2 + 2).
    found = survey.saavedra_barrera_warps(np.array([8.0, 8.0]), switch_cycles=[0, 2])
    assert found.tolist() == [185, 93]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda m=m: m([1, 2, 0.5], 8, GTX_980), "warps .* at least 1, not 0.5")
          for m in MODELS.values()),
        (lambda: survey.vendor_warps([8, math.nan]), "intensity must be .* above 0, not nan"),
        (lambda: survey.saavedra_barrera_warps(8, switch_cycles=-1), "switch_cycles .* not -1"),
        (
            lambda: survey.warps_needed(survey.classical_bounds, 8, most=0),
            "most must be a finite number of at least 1",
        ),
        (
            lambda: dataclasses.replace(GTX_980, memory_per_cycle=0),
            "^memory_per_cycle must be a finite number above 0, not ",
        ),
        (
            lambda: dataclasses.replace(GTX_980, arithmetic_latency_cycles=0.5),
            "^arithmetic_latency_cycles must be .* of at least 1",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
