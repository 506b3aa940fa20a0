"""The curve of power over the clock, and what a known floor of the voltage tells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.data.devices import load_device
from mlscale.predictors.board_population import BoardCurve, given_floor, known_floor

LOG_CLOCK = np.log([0.4, 0.5, 0.8, 1.0])


def curve(highest: float = 1.0) -> BoardCurve:
    """Two runs: one whose time stays, one whose time follows the clock."""
    return BoardCurve(LOG_CLOCK, highest, np.array([0 * LOG_CLOCK, -LOG_CLOCK]))


class TestCurve:
    def test_by_hand(self) -> None:
        """At 0.8 of the highest clock; floor 0.6, odds 1 and 2: ln v is 3 x 0.2, at the top 1.2.

        The bend of 0.05 adds 0.05 ln(1 + e^-4) and 0.05 ln(1 + e^-8) at the two clocks.
        """
        low = np.exp(3 * (0.2 + 0.05 * np.log1p(np.exp(-4))))
        top = np.exp(3 * (0.4 + 0.05 * np.log1p(np.exp(-8))))
        latents = np.array([[0.0, 0.0], np.log([2.0, 2.0]), [0.6, 0.6]])
        expected = [
            (1 + 0.8 * low + 2 * low**0.5 * rate) / (1 + top + 2 * top**0.5) for rate in (1.0, 0.8)
        ]
        assert np.exp(curve().log_ratios(latents))[:, 2] == pytest.approx(expected, rel=1e-12)

    def test_far_below_the_floor_power_is_a_straight_line(self) -> None:
        """No voltage changes there; the second run's moving watts follow the clock."""
        own = np.exp(curve(2.0).log_ratios(np.array([[0.3, 0.3], [0.1, 0.1], [0.9, 0.9]])))[1]
        slopes = np.diff(own) / np.diff(np.exp(LOG_CLOCK))
        assert slopes == pytest.approx(slopes[0], rel=2e-3)
        assert own[-1] == pytest.approx(1)

    @given(
        st.lists(st.floats(-3, 3), min_size=4, max_size=4),
        st.lists(st.floats(0.2, 1.1), min_size=2, max_size=2),
        st.floats(0.9, 2.0),
    )
    def test_slopes_are_the_differences(
        self, odds: list[float], floors: list[float], highest: float
    ) -> None:
        """Central differences of the curve itself."""
        own, latents = curve(highest), np.array([odds[:2], odds[2:], floors])
        for which in range(3):
            step = np.zeros((3, 1))
            step[which] = 1e-5
            measured = (own.log_ratios(latents + step) - own.log_ratios(latents - step)) / 2e-5
            assert own.slopes(latents)[which] == pytest.approx(measured, abs=1e-6)


class TestFloor:
    def test_of_the_device_table(self) -> None:
        """By hand: 1125 of 1980 MHz."""
        assert known_floor("h100-sxm5", 1980.0) == pytest.approx(1125 / 1980)
        assert known_floor("h100-sxm5", 2250.0) == pytest.approx(0.5)
        assert load_device("h100-sxm5").voltage_floor_mhz == 1125
        assert known_floor("rtx4090", 2520.0) is None
        assert known_floor("a GPU that the table lacks", 1000.0) is None

    def test_a_known_one_moves_the_rest_by_the_rule_for_a_gaussian(self) -> None:
        """By hand: a variance of 0.04^2, known to 0.04, moves half way and halves."""
        means = np.array([[0.0, 1.0], [0.0, 1.0], [0.7, 0.8]])
        variance = 0.04**2
        covariance = np.array([[1.0, 0, 0.02], [0, 1, 0], [0.02, 0, variance]])
        moved, left = given_floor(means, covariance, 0.6)
        assert moved[2] == pytest.approx([0.65, 0.7])
        assert moved[0] == pytest.approx(
            [-0.1 * 0.02 / variance / 2, 1 - 0.2 * 0.02 / variance / 2]
        )
        assert moved[1] == pytest.approx(means[1])
        assert left[2, 2] == pytest.approx(variance / 2)
        assert left[0, 0] == pytest.approx(1 - 0.02**2 / variance / 2)

    def test_an_unknown_one_moves_nothing(self) -> None:
        means, covariance = np.zeros((3, 2)), np.eye(3)
        assert given_floor(means, covariance, None) == (means, covariance)
