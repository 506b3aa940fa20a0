"""Tables of logs: what is wrong with their power and their clocks. Numbers by hand."""

from dataclasses import replace

import numpy as np
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


class TestPower:
    def test_that_rises_with_the_clock_is_sound(self) -> None:
        assert power_faults(measurements()) == {}

    def test_that_halves_at_a_higher_clock_is_named(self) -> None:
        data = measurements()
        assert data.power_samples is not None
        power = data.power_samples.copy()
        power[0, 2, 1, 2] *= 0.5  # one CU count, 800 MHz, every memory clock
        faults = power_faults(replace(data, power_samples=power))
        assert list(faults) == [data.kernels[2]]
        assert "from 600 to 800 MHz" in faults[data.kernels[2]]

    def test_of_noise_is_sound(self) -> None:
        data = measurements()
        assert data.power_samples is not None
        power = data.power_samples.copy()
        power[0, 2, :, 2] = 0.86 * power[0, 2, :, 1]  # a fall of 14 %, below the limit of 15
        power[0, 2, :, 3] = power[0, 2, :, 2]
        assert power_faults(replace(data, power_samples=power)) == {}

    def test_that_is_not_there_has_no_fault(self) -> None:
        assert power_faults(replace(measurements(), power_samples=None)) == {}


class TestClocks:
    def test_that_are_kept_are_not_named(self) -> None:
        assert clocks_not_reached(measurements()) == {}

    def test_at_which_times_double_are_named(self) -> None:
        # Half of the kernels follow the clock, so their time x clock doubles with the time.
        data = measurements()
        time = data.time_samples.copy()
        time[:, :, :, 1] *= 2
        clocks = clocks_not_reached(replace(data, time_samples=time))
        assert list(clocks) == [600.0]
        np.testing.assert_allclose(clocks[600.0], 2.0)

    def test_are_compared_with_every_higher_one(self) -> None:
        """The highest was not kept either, so that no time is too long against that one."""
        data = measurements()
        time = data.time_samples.copy()
        time[:, :, :, 1] *= 1.5
        time[:, :, :, -1] *= 1.5
        clocks = clocks_not_reached(replace(data, time_samples=time))
        np.testing.assert_allclose(clocks[600.0], 1.5)
