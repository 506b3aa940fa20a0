"""The engine clock by counted cycles, by hand."""

from collections import Counter

import pytest

from mlscale.data.device_table import load_device
from mlscale.profilers.cycle_clock import cycle_rates, engine_clocks
from mlscale.profilers.joining import KernelRecord


def record(time_s: float, counted_time_s: float | None, **counters: float) -> KernelRecord:
    return KernelRecord("f", 1.0, 64.0, 10.0, time_s, True, counted_time_s, counters, {})


def test_cycles_of_a_microsecond_weighted_by_the_time_in_the_run() -> None:
    """2.1e6 cycles in 1 ms are 2100 in a µs; ten launches of 2 ms in the trace are 20 000 µs."""
    rates = cycle_rates([record(2e-3, 1e-3, GRBM_GUI_ACTIVE=2.1e6)])
    assert [*rates.items()] == [(pytest.approx(2100.0), 20_000)]


@pytest.mark.parametrize(
    "other",
    [
        record(1e-3, 4.9e-4, GRBM_GUI_ACTIVE=1e6),  # its count has too much by more than 2 %
        record(1e-3, None, GRBM_GUI_ACTIVE=1e6),
        record(1e-3, 1e-3, SQ_WAVES=5.0),
        record(1e-3, 1e-3, GRBM_GUI_ACTIVE=0.0),
    ],
)
def test_what_tells_no_clock(other: KernelRecord) -> None:
    assert not cycle_rates([other])


def test_each_die_counts() -> None:
    """13 600 ÷ 8 dies; by 6 dies it is 8 % above the highest clock, by 5 dies 30 %."""
    mi300x = load_device("mi300x")
    rates = cycle_rates([record(1e-3, 1e-3, GRBM_GUI_ACTIVE=13.6e6)])
    assert dict(engine_clocks(rates, 8.0, mi300x)) == {1700.0: 10_000}
    assert dict(engine_clocks(rates, 6.0, mi300x)) == {2100.0: 10_000}
    assert dict(engine_clocks(rates, 5.0, mi300x)) == {2720.0: 10_000}
    assert not engine_clocks(rates, None, None)


def test_what_is_brief_tells_no_clock() -> None:
    """By hand, of one die: 40 of 1000 us at 600 MHz are left out, 60 are not."""
    mi210 = load_device("mi210")
    for brief_us, told in ((40, {1700.0: 960}), (60, {600.0: 60, 1700.0: 940})):
        rates = Counter({600.0: brief_us, 1700.0: 1000 - brief_us})
        assert dict(engine_clocks(rates, 1.0, mi210)) == told
