"""Wang and Chu's equations: worked numbers (docs/papers/equations.md, 1.5) and invariants."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic.warps import GTX_980, dram

from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.papers import wang_chu as model
from mlscale.papers.wang_chu import max_overlap_factor
from mlscale.papers.wang_chu_inputs import WarpInputs, specification_gpu

cycles = st.floats(0.01, 1e4)
clocks = st.floats(100, 6000)


def warp_inputs(
    transactions: float = 20.0,
    miss_rate: float = 0.5,
    shared: float = 0.0,
    compute: float = 100.0,
    resident_warps: float = 48.0,
    warps: float = 1e5,
    memory_instructions: float | None = None,
) -> WarpInputs:
    """One kernel; by default 4 transactions to a memory instruction (equations.md, 1.5)."""
    values = (
        *(warps, resident_warps, transactions, 1 - miss_rate),
        *(memory_instructions or transactions / 4, shared, compute, 0.0),
    )
    return WarpInputs(*(np.array([value]) for value in values), flags=((),))


@pytest.mark.parametrize(
    ("engine", "memory", "latency", "delay", "half", "mostly"),
    # equations.md, 1.5: (4), Table III's fit, and (5a), (5b) at hit rates of 0.5 and 0.975.
    [
        (400, 400, 500.1, 10.188775, (361.05, 5.594387), (228.9525, 1.229719)),
        (700, 700, 500.1, 9.326243, (361.05, 5.163121), (228.9525, 1.208156)),
        (1000, 1000, 500.1, 8.981230, (361.05, 4.990615), (228.9525, 1.199531)),
        (1000, 400, 834.27, 25.471937, (528.135, 13.235969), (237.3068, 1.611798)),
        (400, 1000, 366.432, 3.592492, (294.216, 2.296246), (225.6108, 1.064812)),
    ],
)
def test_memory_of_the_gtx_980(
    engine: float,
    memory: float,
    latency: float,
    delay: float,
    half: tuple[float, float],
    mostly: tuple[float, float],
) -> None:
    found = dram(GTX_980, engine, memory)
    assert found == pytest.approx((latency, delay), abs=5e-7)
    for rate, expected in ((0.5, half), (0.975, mostly)):
        average = (
            float(model.average_access_cycles(GTX_980.l2_latency, found[0], rate)),
            float(model.average_access_cycles(GTX_980.l2_delay, found[1], rate)),
        )
        assert average == pytest.approx(expected, abs=1e-4)
        assert average[1] == pytest.approx(expected[1], abs=1e-6)


@pytest.mark.parametrize(
    ("compute", "service", "warps", "expected", "case"),
    # docs/papers/equations.md, 1.5, by hand: L = 500 and o = 10.
    [(20, 10, 48, 10100, 9), (20, 10, 16, 5500, 15), (4, 10, 64, 6904, 11), (4, 10, 32, 5360, 13)],
)
def test_golden_rounds(
    compute: float, service: float, warps: float, expected: float, case: int
) -> None:
    found = model.round_time(compute, service, 500, warps, 10)
    assert found.cycles == expected
    assert found.case == case


@pytest.mark.parametrize(
    ("interval", "service", "expected"),
    [
        # (2) by hand: 12 x 64 + 500 x 8.
        (12, 10, 12 * 64 + 500 * 8),
        # (2) at its limit, interArr = dm_del: 10 x 64 + 500 x 8.
        (10, 10, 10 * 64 + 500 * 8),
        # (3) by hand: 500 + 10 x 8 x 64, as 10 x 64 >= 500.
        (4, 10, 500 + 10 * 8 * 64),
        # Our reading of the case left open: 5 x 64 < 500; 5 x 64 + 500 x 8.
        (4, 5, 5 * 64 + 500 * 8),
    ],
)
def test_memory_queue(interval: float, service: float, expected: float) -> None:
    assert model.memory_queue_cycles(interval, service, 500, 8, 64) == expected


@given(latency=cycles, trans=st.floats(1, 1e4), warps=st.integers(1, 10_000))
@settings(max_examples=50)
def test_memory_queue_has_no_jump_where_it_fills(latency: float, trans: float, warps: int) -> None:
    """Closed form: at dm_del W = dm_lat the open case meets (3)."""
    service = latency / warps
    below, above = (
        model.memory_queue_cycles(0, service * factor, latency, trans, warps)
        for factor in (1 - 1e-9, 1 + 1e-9)
    )
    assert below == pytest.approx(above, rel=1e-6)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    # docs/papers/equations.md, 1.5: inputs at 700/700; predicted ms at 700/700, 1000/400, 400/1000.
    [
        ((20.00191, 0.9982, 0, 157.99952, 57.76416, 131072), (2.28240, 4.28580, 1.60234)),
        ((12.14255, 0.97202, 0, 17.96436, 61.47725, 32768), (0.34654, 0.64368, 0.24914)),
        ((5124.0061, 0.02671, 0, 16418.99847, 62.46682, 32768), (18.33652, 17.36173, 28.07047)),
        ((260.00671, 0.52646, 1600, 1324.99832, 63.68435, 32768), (5.66721, 7.41137, 9.91196)),
        ((8.00048, 1, 9, 21.99988, 61.47725, 2097152), (15.51649, 28.50501, 11.40982)),
    ],
    ids=["BlackScholes", "vectorAdd", "matrixMul(Global)", "matrixMul", "transpose"],
)
def test_golden_kernels(inputs: tuple[float, ...], expected: tuple[float, ...]) -> None:
    engine, memory = np.array([700, 1000, 400]), np.array([700, 400, 1000])
    found = model.predict_time_ms(warp_inputs(*inputs), GTX_980, engine, memory)
    assert found.shape == (1, 3)
    np.testing.assert_allclose(found[0], expected, rtol=1e-3)


def test_fp64_and_shared_memory_occupy_the_cu() -> None:
    """By hand: 0.25 x 100 + 1 x 10 + 8 x 5 = 75 cycles in 5 periods of 48 warps, + 222 of (9)."""
    inputs = replace(
        warp_inputs(miss_rate=0, shared=10.0, compute=100.0), fp64_instructions=np.array([5.0])
    )
    found = model.kernel_round(inputs, GTX_980, 700, 700)
    assert found.case == 9
    assert found.cycles == pytest.approx(75 * 48 + 222)


def test_a_period_and_its_case() -> None:
    """By hand: 100 instructions and 10 shared transactions in 5 periods, 20 global transactions.

    Half of them miss. The clocks are 700 / 1000 MHz, r = 0.7: (4) is 433.266 cycles, 500.1 at equal
    clocks and 366.432 at 400 MHz; Table III's fit is 8.98123. 14.6 x 48 is above 7 + 327.6.
    """
    inputs = warp_inputs(shared=10.0)
    one = model.period_cycles(inputs, GTX_980, 700, 1000)
    found = [float(x[0]) for x in (one.compute, one.delay, one.service, one.latency, one.count)]
    delay = (1 + 0.7 * 8.98123) / 2
    assert found == pytest.approx([7, delay, 20 * delay / 5, (222 + 433.266) / 2, 5])
    assert model.kernel_round(inputs, GTX_980, 700, 1000).case == [11]


def test_the_equation_whose_conditions_hold() -> None:
    """20 000 random cases, and single warps; conditions (8), (10), (12), (14) alone."""
    random = np.random.default_rng(0)
    low, high = np.log([0.1, 0.1, 1, 1, 1]), np.log([1e3, 1e3, 2e3, 64, 1e3])
    comp, del_, lat, warps, o_itrs = np.exp(random.uniform(low, high, (20_000, 5))).T
    warps[:1000] = 1
    is_compute = comp >= del_
    conditions_and_cycles = {
        9: (is_compute & (comp * (warps - 1) >= lat), comp * warps * o_itrs + lat),
        11: (~is_compute & (del_ * warps >= comp + lat), lat + comp + del_ * warps * o_itrs),
        13: (~is_compute & (del_ * warps < comp + lat), del_ * warps + (comp + lat) * o_itrs),
        15: (is_compute & (comp * (warps - 1) < lat), comp * (warps - 1) + (comp + lat) * o_itrs),
    }
    found = model.round_time(comp, del_, lat, warps, o_itrs)
    for case, (holds, expected) in conditions_and_cycles.items():
        assert holds.any()
        np.testing.assert_array_equal(found.case == case, holds)
        np.testing.assert_allclose(found.cycles[holds], expected[holds], rtol=1e-12)


@given(
    values=st.tuples(cycles, cycles, cycles, st.floats(1, 64), st.floats(1, 1e4)),
    which=st.sampled_from([1, 2, 3, 4]),
    factor=st.floats(1, 3),
)
@settings(max_examples=200)
def test_more_of_anything_takes_no_less(
    values: tuple[float, ...], which: int, factor: float
) -> None:
    """In warps, service, latency and periods; compute falls by one period where it crosses."""
    more = list(values)
    more[which] *= factor
    low, high = model.round_time(*values), model.round_time(*more)
    assert high.cycles >= low.cycles * (1 - 1e-12)


class TestInvariantsOfTheKernel:
    @given(memory=clocks, other=clocks, engine=clocks)
    @settings(max_examples=30)
    def test_all_hits_do_not_see_the_memory_clock(
        self, memory: float, other: float, engine: float
    ) -> None:
        inputs = warp_inputs(miss_rate=0)
        one, two = (
            model.predict_time_ms(inputs, GTX_980, engine, clock) for clock in (memory, other)
        )
        assert one == two

    @given(
        engine=clocks,
        memory=clocks,
        factor=st.floats(0.5, 2),
        compute=st.floats(0, 1e4),
        miss_rate=st.floats(0, 1),
        base_time=st.floats(1e-3, 1e3),
    )
    @settings(max_examples=50)
    def test_both_clocks_together(
        self,
        engine: float,
        memory: float,
        factor: float,
        compute: float,
        miss_rate: float,
        base_time: float,
    ) -> None:
        """With a DRAM delay that follows the ratio alone, time falls as both clocks rise."""
        gpu = specification_gpu(load_device("gtx980"))
        inputs = warp_inputs(compute=compute, miss_rate=miss_rate)
        slow, fast = (
            model.predict_time_ms(inputs, gpu, engine * f, memory * f) for f in (1, factor)
        )
        assert fast == pytest.approx(slow / factor, rel=1e-9)
        clocks = (engine, memory)
        target = (engine * factor, memory * factor)
        found = max_overlap_factor(inputs, gpu, clocks, [base_time], *target)
        assert found == pytest.approx(1 / factor, rel=1e-9)
        assert model.predict_time_factor(inputs, gpu, clocks, *target) == pytest.approx(1 / factor)


def test_numbers_give_numbers() -> None:
    """One kernel made of numbers, at one pair of clocks, is one number; the same as an array."""
    one = WarpInputs.from_numbers(
        warps=1e5,
        resident_warps=48.0,
        global_transactions=20.0,
        l2_hit_rate=0.5,
        memory_instructions=5.0,
        compute_instructions=100.0,
    )
    found = model.predict_time_ms(one, GTX_980, 700, 700)
    assert isinstance(found, float)
    assert found == model.predict_time_ms(warp_inputs(), GTX_980, 700, 700)[0]
    assert model.predict_time_factor(one, GTX_980, (700, 700), 700, 700) == 1
    engine, memory = np.meshgrid([400.0, 700.0], [400.0, 700.0, 1000.0], indexing="ij")
    assert model.predict_time_ms(one, GTX_980, engine, memory).shape == (2, 3)
    assert model.predict_time_ms(warp_inputs(), GTX_980, engine, memory).shape == (1, 2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: model.round_time(1, 1, 1, 3, 0.5), "periods must be .* at least 1, not 0.5"),
        (lambda: model.average_access_cycles(1, 2, 1.5), "l2_hit_rate must be .* not 1.5"),
        (lambda: model.dram_latency_cycles(0, 400, 1, 1), "engine_mhz must be .* not 0"),
        (lambda: model.average_compute_cycles(0.25, np.nan, 1), "compute_instructions .* not nan"),
        (lambda: model.memory_queue_cycles(1, 1, 1, 1, [2, -1]), "warps must be .* not -1"),
    ],
)
def test_what_cannot_be_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
