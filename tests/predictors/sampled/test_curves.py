"""The two curves: closed forms by hand, derivatives by differences, and what always holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.predictors.sampled.curves import Curve, PowerCurve, TimeCurve

LOG_CLOCK = np.log(np.array([600.0, 900.0, 1200.0]) / 900)
LATENTS = st.lists(st.floats(-8, 8), min_size=4, max_size=4)


def power(log_time: np.ndarray | None = None) -> PowerCurve:
    """At 600, 900 (the base) and 1200 MHz; without times, all alike."""
    return PowerCurve(LOG_CLOCK, 1200 / 900, np.zeros((2, 3)) if log_time is None else log_time)


def differences(curve: Curve, latents: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
    """Central differences by the latents and by the numbers."""

    def by(at: np.ndarray, l_step: np.ndarray, n_step: np.ndarray) -> np.ndarray:
        high = curve.log_ratios(at + l_step, numbers + n_step)
        return (high - curve.log_ratios(at - l_step, numbers - n_step)) / 2e-5

    still = np.zeros_like(numbers), np.zeros_like(latents)
    own = [by(latents, 1e-5 * one[:, None], still[0]) for one in np.eye(len(latents))]
    shared = [by(latents, still[1], 1e-5 * one) for one in np.eye(len(numbers))]
    return np.array(own), np.array(shared)


class TestTime:
    def test_is_the_p_norm_of_two_parts(self) -> None:
        # c = 1/2, p = 2, by hand: sqrt(1/2 + (900/600)^2 / 2) and sqrt(1/2 + (900/1200)^2 / 2).
        logs = TimeCurve(LOG_CLOCK).log_ratios(np.zeros((1, 1)), np.log([2.0]))
        np.testing.assert_allclose(np.exp(logs[0]), [np.sqrt(1.625), 1, np.sqrt(0.78125)])

    def test_derivatives(self) -> None:
        curve, numbers = TimeCurve(LOG_CLOCK), np.array([0.9])
        latents = np.array([[-2.0, 0.3, 4.0]])
        for one, other in zip(
            curve.slopes(latents, numbers), differences(curve, latents, numbers), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-8)

    @given(latents=LATENTS, log_p=st.floats(-0.5, 2.5))
    def test_is_1_at_the_base_and_never_slower_at_a_higher_clock(
        self, latents: list[float], log_p: float
    ) -> None:
        logs = TimeCurve(LOG_CLOCK).log_ratios(np.array([latents]), np.array([log_p]))
        np.testing.assert_allclose(logs[:, 1], 0, atol=1e-12)
        assert (np.diff(logs, axis=1) <= 1e-12).all()
        # nor does it fall faster than the clock rises
        assert (np.diff(logs + LOG_CLOCK, axis=1) >= -1e-12).all()


class TestPower:
    def test_is_the_sum_of_three_parts(self) -> None:
        # Equal weights, T as 1 / clock, voltages flat: (1 + f + f) / 3 with f = 2/3, 1, 4/3.
        flat = np.full(5, -50.0)
        logs = power(-np.tile(LOG_CLOCK, (1, 1))).log_ratios(np.zeros((2, 1)), flat)
        np.testing.assert_allclose(np.exp(logs[0]), [7 / 9, 1, 11 / 9])

    def test_voltage_is_relative_to_the_base_and_linear_between_nodes(self) -> None:
        # Nodes of the highest clock: 600 is 0.5, 900 is 0.75. With steps of 1 each the log
        # passes (0.58 - 0.5)/0.14 + 1 + (0.75 - 0.72)/0.14 from 600 to 900, by hand 1.7857.
        one = np.full(5, np.log(np.expm1(1.0)))
        np.testing.assert_allclose(
            power().log_voltage(one), [-(0.08 / 0.14 + 1 + 0.03 / 0.14), 0, 0.11 / 0.14 + 1]
        )

    def test_derivatives(self) -> None:
        log_time = np.array([[0.3, 0.0, -0.1], [0.4, 0.0, -0.2]])
        curve, numbers = power(log_time), PowerCurve.prior.number_means + np.linspace(-1, 1, 5)
        latents = np.array([[0.4, -1.0], [-1.2, 0.5]])
        for one, other in zip(
            curve.slopes(latents, numbers), differences(curve, latents, numbers), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-8)

    @given(latents=LATENTS)
    def test_is_1_at_the_base_and_never_less_at_a_higher_clock(self, latents: list[float]) -> None:
        log_time = -np.array([[1.0], [0.3]]) * LOG_CLOCK
        logs = power(log_time).log_ratios(
            np.array(latents).reshape(2, 2), PowerCurve.prior.number_means
        )
        np.testing.assert_allclose(logs[:, 1], 0, atol=1e-12)
        assert (np.diff(logs, axis=1) >= -1e-12).all()


@pytest.mark.parametrize("curve", [TimeCurve(LOG_CLOCK), power(np.zeros((1, 3)))])
def test_priors_have_a_number_for_each(curve: Curve) -> None:
    assert curve.prior.number_means.shape == curve.prior.number_sds.shape
    latents = np.repeat(curve.prior.latent_means[:, None], 1, axis=1)
    assert curve.log_ratios(latents, curve.prior.number_means).shape == (1, 3)


def test_voltage_goes_on_above_the_highest_clock() -> None:
    """By hand: at 1.14 of the highest, as far above it as the last node is below, it rises again
    by the last step."""
    curve = PowerCurve(np.log([0.86, 1.0, 1.14]), 1.0, np.zeros((1, 3)))
    numbers = PowerCurve.prior.number_means
    last = np.log1p(np.exp(numbers[-1]))
    assert curve.log_voltage(numbers) == pytest.approx([-last, 0, last])
