"""The scores of intervals come from models that never saw what they are measured on.

The largest score of a training is compared with the largest error of predictors that are trained
here without the kernels in question, in half-widths of their own intervals at a score of 1.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made

from mlscale import Measurements
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.bottleneck.model import IntervalScores
from mlscale.predictors.intervals import LEVELS

MID = made.CLOCKS.mid
AT_MID = made.CLOCKS.position(MID)
KERNELS = 4  # each of an application of its own, which are held out one by one
TABLE = made.measurements(KERNELS)
OTHER = replace(made.measurements(KERNELS, seed=1), device="gtx1080ti")


def without(table: Measurements, kernel: int) -> Measurements:
    return table.select([k for k in range(KERNELS) if k != kernel])


def scores(predictor: Bottleneck, held_out: Measurements) -> np.ndarray:
    """|log error| over the half-width at every configuration but the base."""
    predictor.scores_ = IntervalScores(np.ones((1, LEVELS.size)))
    found = predictor.predict_interval(held_out.profiles(MID), 0.9, made.CLOCKS)
    assert found.high is not None
    error = np.abs(np.log(found.values / held_out.relative(predictor.quantity, MID)))
    error, half_width = error.ravel(), np.log(found.high / found.values).ravel()
    return np.delete(error, AT_MID) / np.delete(half_width, AT_MID)


@pytest.mark.slow
def test_power_of_an_application() -> None:
    each = [
        scores(
            Bottleneck("power", intervals=False).fit(without(TABLE, kernel), MID),
            TABLE.select([kernel]),
        )
        for kernel in range(KERNELS)
    ]
    trained = Bottleneck("power").fit(TABLE, MID)
    assert trained.scores_.trained[0, -1] == pytest.approx(np.max(each), rel=1e-3)


@pytest.mark.slow
def test_time_on_a_gpu_held_out_with_an_application() -> None:
    """Its peaks are those that its other kernels show."""
    each = []
    pair: Sequence[Measurements] = (TABLE, OTHER)
    for table, other in (pair, pair[::-1]):
        for kernel in range(KERNELS):
            alone = Bottleneck(intervals=False).fit(without(other, kernel), MID)
            alone.learn_peaks(without(table, kernel).profiles(MID), made.CLOCKS)
            each.append(scores(alone, table.select([kernel])))
    both = Bottleneck().fit(pair, [MID, MID])
    assert both.scores_.known_peaks[-1] == pytest.approx(np.max(each), rel=1e-3)
