"""The mean error of predictions [%], written out here: it is not mlscale's own."""

import numpy as np

from mlscale import Measurements, Profiles
from mlscale.predictors.base import Predictor


def percentage_error(predicted: np.ndarray, truth: np.ndarray) -> float:
    """The mean of |predicted / truth - 1| [%]."""
    return float(100 * np.abs(predicted / truth - 1).mean())


def mean_error(predictor: Predictor, profiles: Profiles, truth: Measurements) -> float:
    """Over the profiled kernels and all configurations of the truth, which has them [%]."""
    actual = truth.relative(predictor.quantity, profiles.base)
    return percentage_error(predictor.predict(profiles).values, actual)
