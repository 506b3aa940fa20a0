"""The idealised simulation against closed forms: what it is used to judge must judge it first."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlscale.errors import InputError
from mlscale.papers.volkov import GTX_980, ComputeUnit, latency_bound, simulate, throughput_bound


@pytest.mark.parametrize("intensity", [1, 3, 8, 33, 128, 256, 512])
def test_one_warp_issues_exactly_what_its_chain_allows(intensity: int) -> None:
    # Closed form: instruction k of a loop of alpha A + L cycles issues at cycle k A of it.
    loop = intensity * 6 + 368
    counted = max(24_000, 12 * loop)

    def issued_before(cycle: int) -> int:
        loops, rest = divmod(cycle, loop)
        return loops * (intensity + 1) + min(-(-rest // 6), intensity + 1)

    start = 2 * counted // 3
    expected = issued_before(start + counted) - issued_before(start)
    assert simulate(1, intensity) == expected / counted


@pytest.mark.parametrize(
    ("cu", "intensity", "limit"),
    # Closed forms with 64 warps, each limited by one unit alone.
    [
        (GTX_980, 1, 0.08 * 2),
        (GTX_980, 128, 4.0),
        (dataclasses.replace(GTX_980, memory_per_cycle=4), 1, 64 * 2 / 374),
        (ComputeUnit(6, 20, 4, 2, 4), 8, 2 * 9 / 8),
        (ComputeUnit(6, 20, 3, 3, 4), 1, 3.0),
    ],
    ids=["memory", "issue", "latency", "arithmetic", "issue of both kinds"],
)
def test_many_warps_reach_the_one_unit_that_limits(
    cu: ComputeUnit, intensity: int, limit: float
) -> None:
    assert simulate(64, intensity, cu) == pytest.approx(limit, rel=0.005)


@settings(max_examples=25)
@given(
    st.integers(1, 24),
    st.integers(1, 24),
    st.builds(
        ComputeUnit,
        arithmetic_latency_cycles=st.integers(1, 20),
        memory_latency_cycles=st.integers(50, 600),
        issue_per_cycle=st.integers(1, 4),
        arithmetic_per_cycle=st.integers(1, 4),
        memory_per_cycle=st.floats(0.02, 0.5),
    ),
)
def test_no_schedule_beats_the_bounds(warps: int, intensity: int, cu: ComputeUnit) -> None:
    throughput = simulate(warps, intensity, cu)
    # The window may hold one loop more of each warp than its length says (1/12), and as many
    # requests more than memory serves as there are warps to wait.
    waiting = warps / (cu.memory_per_cycle * 24_000)
    assert throughput <= latency_bound(warps, intensity, cu) * (1 + 1 / 12)
    assert throughput <= throughput_bound(intensity, cu) * (1.01 + waiting)


@pytest.mark.parametrize(
    ("warps", "intensity", "issue_per_cycle", "message"),
    [
        (1.5, 8, 4, "warps must be a whole number of at least 1 to simulate: 1.5"),
        (8, 0, 4, "intensity must be a whole number of at least 1 to simulate: 0"),
        (8, 1025, 4, "1025 arithmetic instructions .* at most 1024"),
        (1, 1, 2.5, r"whole instructions in a cycle, not 2\.5"),
    ],
)
def test_what_cannot_be_simulated(
    warps: int, intensity: int, issue_per_cycle: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        simulate(warps, intensity, dataclasses.replace(GTX_980, issue_per_cycle=issue_per_cycle))
