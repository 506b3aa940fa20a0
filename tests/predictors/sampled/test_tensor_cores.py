"""Kernels that use tensor cores more than any in training; shares and full scaling by hand."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import sampled_kernels as made

from mlscale import Measurements, Profiles
from mlscale.data.profiles import MeasuredPoint
from mlscale.predictors.sampled import tensor_cores
from mlscale.predictors.sampled.estimator import Sampled


def with_tensor(table: Measurements, share: float) -> Measurements:
    """The table with one share of tensor cores for all kernels at all clocks."""
    samples = np.full((*table.counter_samples.shape[:-1], 1), share)
    return replace(
        table,
        counter_names=(*table.counter_names, "tensor_active"),
        counter_samples=np.concatenate([table.counter_samples, samples], axis=-1),
    )


@pytest.fixture(scope="module")
def trained() -> dict[str, Sampled]:
    """Of each quantity, on 12 kernels whose tensor cores are active 10 % of the time."""
    table = with_tensor(made.measurements(12), 0.1)
    return {q: Sampled(quantity=q, bases=1).fit(table, made.TOP) for q in ("time", "power")}


def profiles(share: float | None) -> Profiles:
    new = made.measurements(6, seed=7)
    return (new if share is None else with_tensor(new, share)).profiles(made.TOP)


def full_scaling() -> np.ndarray:
    """By hand: all cycles are needed, however short."""
    return made.TOP.engine_mhz / np.array(made.GRID.engine_mhz)


def test_the_interval_reaches_full_scaling(trained: dict[str, Sampled]) -> None:
    known = trained["time"].predict_interval(profiles(0.15))
    found = trained["time"].predict_interval(profiles(0.16))
    assert found.high is not None
    assert known.high is not None
    np.testing.assert_array_equal(found.values, known.values)
    np.testing.assert_array_equal(found.low, known.low)
    np.testing.assert_allclose(
        found.high[:, 0, :, 0], np.maximum(known.high[:, 0, :, 0], full_scaling())
    )
    assert (found.high > known.high).any()
    told = "tensor cores are active 16% of the time, those of training kernels at most 10%: "
    assert all(sum(flag.startswith(told) for flag in flags) == 1 for flags in found.flags)
    assert not any("tensor" in flag for flags in known.flags for flag in flags)


def test_at_higher_clocks_too(trained: dict[str, Sampled]) -> None:
    """From a base below the highest clock, full scaling is the quickest that can be."""
    table = with_tensor(made.measurements(12), 0.1)
    fitted = Sampled(bases=1).fit(table, made.MIDDLE)
    new = with_tensor(made.measurements(6, seed=7), 0.5).profiles(made.MIDDLE)
    found = fitted.predict_interval(new)
    assert found.low is not None
    top = made.MIDDLE.engine_mhz / made.TOP.engine_mhz
    assert (found.low[:, 0, -1, 0] <= top * (1 + 1e-12)).all()


def test_like_training_changes_nothing(trained: dict[str, Sampled]) -> None:
    found, plain = (trained["time"].predict_interval(profiles(share)) for share in (0.1, 0.0))
    np.testing.assert_array_equal(found.high, plain.high)
    assert found.flags == plain.flags


@pytest.mark.parametrize("share", [None, np.nan])
def test_what_is_not_known_may_be_more(trained: dict[str, Sampled], share: float | None) -> None:
    """The interval is that of a kernel that does use them, and a flag says what would tell."""
    found, more = (trained["time"].predict_interval(profiles(own)) for own in (share, 0.9))
    np.testing.assert_array_equal(found.high, more.high)
    told = "how long tensor cores are active is not known, those of training kernels are at most 10"
    assert all(sum(flag.startswith(told) for flag in flags) == 1 for flags in found.flags)


def test_training_that_does_not_know_says_nothing() -> None:
    fitted = Sampled(bases=1).fit(made.measurements(12), made.TOP)
    found = fitted.predict_interval(profiles(None))
    assert not any("tensor" in flag for flags in found.flags for flag in flags)


def test_a_further_time_tells(trained: dict[str, Sampled]) -> None:
    new = profiles(0.9)
    other = replace(made.TOP, engine_mhz=made.GRID.engine_mhz[2])
    point = MeasuredPoint(other, 1.2 * new.time_ms, None)
    found = trained["time"].predict_interval(replace(new, points=(point,)))
    assert not any("tensor" in flag for flags in found.flags for flag in flags)
    assert found.high is not None
    assert (found.high[:, 0, 0, 0] < full_scaling()[0]).any()


def test_power_stays_as_it_is(trained: dict[str, Sampled]) -> None:
    found, plain = (trained["power"].predict_interval(profiles(share)) for share in (0.9, 0.0))
    np.testing.assert_array_equal(found.high, plain.high)


def test_a_file_from_before_it_was_kept_flags_nothing(trained: dict[str, Sampled]) -> None:
    state = trained["time"].state()
    assert state.pop("most_tensor") == 0.1
    found = Sampled().restore(state).predict_interval(profiles(0.9))
    assert not any("tensor" in flag for flags in found.flags for flag in flags)


@pytest.mark.parametrize("most", ["0.1", -0.1, 2.0, True, float("nan")])
def test_what_is_no_share_is_refused(most: object) -> None:
    with pytest.raises(ValueError, match="is no share of the time"):
        tensor_cores.restored(most)
