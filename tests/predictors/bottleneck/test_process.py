"""The process over two kernels of two GPUs, alike in all inputs, by hand."""

import numpy as np
import pytest

from mlscale.predictors.bottleneck.process import SHARED_BETWEEN_GPUS, Process

ONE, TWO = np.zeros(1), np.zeros((2, 1))


@pytest.mark.parametrize(
    ("gpu", "mean", "gained"),
    [
        # Four times the weights, 1 and 10, 0.7 of those of kernels on another GPU.
        (0, 4 * (1 + 7), (4**2 + 2.8**2) / 40),
        (1, 4 * (0.7 + 10), (2.8**2 + 4**2) / 40),
        (None, 4 * (0.7 + 7), (2.8**2 + 2.8**2) / 40),
    ],
)
def test_kernels_of_another_gpu_tell_seven_tenths(
    gpu: int | None, mean: float, gained: float
) -> None:
    assert SHARED_BETWEEN_GPUS == 0.7
    process = Process(
        names=("stall",),
        mean=ONE,
        spread=ONE + 1,
        low=ONE,
        high=ONE,
        points=TWO,
        gpu=np.arange(2),
        weights=np.array([[1.0, 10.0]]),
        inverse=np.eye(2) / 40,
        amplitude=2.0,
    )
    means, variances = process.latents(np.zeros((1, 1)), gpu)
    assert means.tolist() == [[pytest.approx(mean)]]
    assert variances.tolist() == [pytest.approx(4 - gained)]
