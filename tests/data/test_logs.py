"""Tables of logs: what is wrong with their power and their clocks. Numbers by hand."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import kernels as made

from mlscale import Measurements
from mlscale.data.logs import clocks_not_reached, is_sampled, power_faults

LAWS = {"compute": (0.0, -1.0, 0.0), "half": (0.0, -0.5, 0.0)}


def measurements() -> Measurements:
    """Six kernels whose time falls with the engine clock, by hand: f^-1 or f^-0.5."""
    return made.measurements(laws=LAWS)


def test_is_sampled_by_its_metadata() -> None:
    assert is_sampled({"profile_kind": "sampled"})
    assert not is_sampled({})


@pytest.mark.parametrize(
    ("at_800", "fault"),
    [
        (1.0, ""),  # rises with the clock
        (0.5, "from 600 to 800 MHz"),
        (0.86, ""),  # noise: a fall of 14 %, below the limit of 15
    ],
)
def test_power_that_falls_at_a_higher_clock_is_named(at_800: float, fault: str) -> None:
    """One kernel at one CU count, at every memory clock, in shares of the power at 600 MHz."""
    data = measurements()
    assert data.power_samples is not None
    power = data.power_samples.copy()
    if at_800 < 1:
        power[0, 2, 1, 2] = at_800 * power[0, 2, 1, 1]
        power[0, 2, 1, 3] = power[0, 2, 1, 2]
    faults = power_faults(replace(data, power_samples=power))
    assert list(faults) == ([data.kernels[2]] if fault else [])
    assert fault in faults.get(data.kernels[2], "")
    assert power_faults(replace(data, power_samples=None)) == {}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({}, {}),
        # Half of the kernels follow the clock, so their time x clock doubles with the time.
        ({600: 2.0}, {600: 2.0}),
        # The highest was not kept either, so that no time is too long against that one.
        ({600: 1.5, 1000: 1.5}, {600: 1.5}),
    ],
)
def test_clocks_that_were_not_kept_are_named(
    times: dict[int, float], expected: dict[int, float]
) -> None:
    """The times at some engine clocks that many times as long."""
    data = measurements()
    time = data.time_samples.copy()
    for mhz, factor in times.items():
        time[:, :, :, data.grid.engine_mhz.index(mhz)] *= factor
    clocks = clocks_not_reached(replace(data, time_samples=time))
    assert {mhz: float(np.mean(shares)) for mhz, shares in clocks.items()} == pytest.approx(
        expected
    )
