"""Board power at other memory clocks: the law by hand, its limits, and real GPUs' power by it."""

from pathlib import Path

import numpy as np
import public_tables
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.data.devices import load_device
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.predictors.board_memory import on_grid, with_memory_clock

LIMIT_W = 200.0


def at(
    power_w: float, slowdown: float, memory: float, rated: float = 1.0, limit_w: float = LIMIT_W
) -> float:
    values = np.array([[power_w]]), np.array([[[slowdown]]]), np.array([memory])
    return float(with_memory_clock(*values, rated, limit_w)[0, 0, 0])


@pytest.mark.parametrize(
    ("given", "watts"),
    [
        # Of 200 W, 80 are drawn while waiting, and 24 by the memory at its rated clock.
        ((180, 2, 0.5), 80 + 100 / 2 - 24 / 2),
        ((60, 2, 0.5), 60 - 12),
        ((20, 1, 0.5), 20 - 10 / 2),  # it hardly works: the memory draws half at the most
        ((100, 0.5, 2.0, 2.0), 80 + 20 / 0.5 + 12),  # from half the rated clock to the rated one
        ((100, 2, 0.5, 1.0, np.nan), 50 + 50 / 2),  # the limit is not known: half waits
    ],
)
def test_by_hand(given: tuple[float, ...], watts: float) -> None:
    assert at(*given) == pytest.approx(watts)


@given(st.floats(20, 400), st.floats(1, 5), st.floats(0.1, 1))
def test_a_slower_memory_takes_no_more_power(
    power_w: float, slowdown: float, memory: float
) -> None:
    assert 0 < at(power_w, slowdown, memory) <= power_w
    assert at(power_w, 1.0, 1.0) == pytest.approx(power_w)


@pytest.mark.parametrize(("device", "more_w"), [("gtx980", 9.9), ("mine", 0.0)])
def test_the_memory_draws_by_the_rated_clock_and_limit_of_its_sheet(
    device: str, more_w: float
) -> None:
    """By hand: a GTX 980, of 165 W at 3505 MHz rated, is profiled at 1752.5 MHz, half of that.

    Of 120 W its memory draws 9.9 W at the base, and at twice the clock 9.9 W more. Of a GPU that
    the device table lacks, no limit is known, and nothing goes with the memory clock by itself.
    """
    base, one = HardwareConfig(16, 1000.0, 1752.5), np.ones(1)
    profiles = Profiles(device, base, ("k",), ("k",), one, 120 * one, (), np.empty((1, 0)))
    times = Surfaces(ConfigGrid((16,), (1000.0,), (1752.5, 3505.0)), base, np.ones((1, 1, 1, 2)))
    _, to_grid = on_grid(profiles, times)
    assert np.exp(to_grid(np.zeros((1, 1))))[0] == pytest.approx([1, (120 + more_w) / 120])


@pytest.mark.parametrize(
    ("name", "flat", "bound"),
    # Mean errors [%] with the measured times, just above what was seen: regression only.
    [("gtx980-high", 6, 2.6), ("gtx1080ti", 6, 1.9)],
)
def test_real_gpus(data_folder: Path, name: str, flat: float, bound: float) -> None:
    """Both constants are from these two GPUs; without the law power is `flat` off at least."""
    table = public_tables.measured(data_folder, name)
    device, memory = load_device(table.device), np.array(table.grid.memory_mhz)
    assert device.datasheet is not None
    power_w, times = table.quantity("power")[:, 0], table.time_ms[:, 0]
    law = with_memory_clock(
        power_w[..., -1],
        times / times[..., -1:],
        memory / memory[-1],
        device.datasheet.memory_mhz / memory[-1],
        device.tdp_w or np.nan,
    )
    errors = 100 * np.abs(law / power_w - 1)[..., :-1]
    without = 100 * np.abs(power_w[..., -1:] / power_w - 1)[..., :-1]
    assert np.nanmean(without) > flat
    assert np.nanmean(errors) < bound
