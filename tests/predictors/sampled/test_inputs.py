"""The inputs, by hand: shares of the peaks that the training kernels show."""

import numpy as np
from synthetic import sampled_kernels as made

from mlscale import Profiles
from mlscale.predictors.sampled.inputs import SampledInputs


def profiles(
    dram: list[float], power: list[float], active: float = 0.8, utilisation: float | None = None
) -> Profiles:
    """Kernels with these DRAM shares and powers [W]."""
    count = len(dram)
    columns = [np.full(count, active), np.array(dram)]
    names = ["sm_active", "dram_active"]
    if utilisation is not None:
        columns.append(np.full(count, utilisation))
        names.append("gpu_utilisation")
    kernels = tuple(f"kernel{k}" for k in range(count))
    return Profiles(
        device="made-gpu",
        base=made.TOP,
        kernels=kernels,
        applications=kernels,
        time_ms=np.ones(count),
        power_w=np.array(power, dtype=np.float64),
        counter_names=tuple(names),
        counters=np.column_stack(columns),
    )


TRAINING = profiles([0.1, 0.7, 0.8, 0.9], [100, 190, 200, 210])  # the top three: 0.8, 200 W


def raw(inputs: SampledInputs, points: np.ndarray) -> np.ndarray:
    return points * inputs.spread + inputs.mean


def test_are_shares_of_the_peaks() -> None:
    inputs = SampledInputs.of(TRAINING, with_utilisation=True)
    # The first kernel: 0.1 / 0.8 of DRAM's peak, 100 / 200 of the power's.
    by_hand = [0.8, np.sqrt(0.125), np.log(0.5), 2, 0.25]
    np.testing.assert_allclose(raw(inputs, inputs.points)[0], by_hand, atol=1e-8)
    again = inputs.points_of(profiles([0.1], [100]))
    np.testing.assert_allclose(again, inputs.points[:1], atol=1e-8)


def test_a_kernel_beyond_the_training_is_measured_as_they_are() -> None:
    inputs = SampledInputs.of(TRAINING, with_utilisation=True)
    # Of the training's 0.8 and 200 W, whatever the kernel itself shows.
    points = inputs.points_of(profiles([1.0, 0.1], [250, 100]))
    dram, power = 1.25, 1.25
    by_hand = [0.8, np.sqrt(dram), np.log(power), 1 / power, dram / power]
    np.testing.assert_allclose(raw(inputs, points)[0], by_hand, atol=1e-8)
    np.testing.assert_allclose(points[1], inputs.points[0], atol=1e-8)


def test_hardly_any_power_is_a_thousandth_of_the_peak() -> None:
    inputs = SampledInputs.of(TRAINING, with_utilisation=True)
    # 0.1 W of 200 are less than that; 0.4 of 0.8 of DRAM's peak.
    by_hand = [0.8, np.sqrt(0.5), np.log(1e-3), 1e3, 0.5e3]
    points = inputs.points_of(profiles([0.4], [0.1]))
    np.testing.assert_allclose(raw(inputs, points)[0], by_hand, atol=1e-8)


def test_a_training_kernel_is_the_same_point_when_it_is_new() -> None:
    # By definition: the latents of the training kernels were learnt at their own points.
    inputs = SampledInputs.of(TRAINING, with_utilisation=True)
    np.testing.assert_allclose(inputs.points_of(TRAINING), inputs.points, atol=1e-12)


def test_a_gpu_that_no_kernel_loads_has_a_least_peak() -> None:
    inputs = SampledInputs.of(profiles([0.03, 0.06], [100, 100]), with_utilisation=True)
    # 0.03 of 0.3, not of the 0.045 that the kernels show.
    np.testing.assert_allclose(raw(inputs, inputs.points)[0, 1], np.sqrt(0.1), atol=1e-8)


def test_utilisation_is_an_input_where_asked_for_and_recorded() -> None:
    busy = profiles([0.1, 0.9], [100, 200], utilisation=0.5)
    assert SampledInputs.of(busy, with_utilisation=True).measured[-1] == "gpu_utilisation"
    assert len(SampledInputs.of(busy, with_utilisation=True).mean) == 6
    assert len(SampledInputs.of(busy, with_utilisation=False).mean) == 5
    assert len(SampledInputs.of(TRAINING, with_utilisation=True).mean) == 5


def test_restored_are_the_same() -> None:
    inputs = SampledInputs.of(TRAINING, with_utilisation=True)
    again = SampledInputs.restore(inputs.state())
    assert np.array_equal(again.points_of(TRAINING), inputs.points_of(TRAINING))
