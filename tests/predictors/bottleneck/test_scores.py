"""Which scores a GPU's intervals are made of; by hand."""

import numpy as np

from mlscale.arrays import Floats
from mlscale.predictors.bottleneck.model import IntervalScores
from mlscale.predictors.intervals import LEVELS


def at_90(known_peaks: Floats, number: int | None, knows_peaks: bool = True) -> float:
    """The score at 90 % after training on GPUs of scores 1 and 2 times the level, mean peaks 5."""
    trained = np.array([LEVELS, 2 * LEVELS])
    mean_peaks = 5 * LEVELS if known_peaks.size else known_peaks
    return IntervalScores(trained, known_peaks, mean_peaks).at(0.9, number, knows_peaks) / 0.9


def test_a_trained_gpu_has_its_own() -> None:
    assert [at_90(3 * LEVELS, number) for number in (0, 1)] == [1, 2]


def test_another_gpu_has_those_of_gpus_held_out() -> None:
    assert at_90(3 * LEVELS, None) == 3
    assert at_90(3 * LEVELS, None, knows_peaks=False) == 5


def test_another_gpu_is_no_easier_than_a_trained_one() -> None:
    """Also where no GPU was held out."""
    assert at_90(0.5 * LEVELS, None) == 2
    assert at_90(np.empty(0), None) == 2
