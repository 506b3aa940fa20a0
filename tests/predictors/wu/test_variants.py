"""What `wu` can be told besides: another loss, logarithms, some counters alone.

Expected: known truths and means by hand, as each test says.
"""

import numpy as np
import pytest
from synthetic import kernels as made

from mlscale import ConfigGrid, Measurements, Wu, load, save, train
from mlscale.arrays import Floats

MID = made.GRID.mid


def scored(predictor: Wu, data: Measurements) -> float:
    """The mean error of the training kernels [%]."""
    return float(errors(predictor.fit(data, MID), data).mean())


def errors(predictor: Wu, data: Measurements) -> Floats:
    """The mean error of each kernel [%]."""
    found = predictor.predict(data.profiles(MID)).values
    return 100 * np.abs(found / data.relative("time", MID) - 1).mean(axis=(1, 2, 3))


def test_the_squared_loss_learns_the_groups_too() -> None:
    """Known truth: four laws, told apart by their counters, so that no error is left."""
    data = made.measurements()
    assert scored(Wu(clusters=4, loss="squared"), data) < 1e-6


def test_both_losses_in_one_batch_are_as_alone() -> None:
    data = made.measurements()
    models = [Wu(clusters=3, loss=loss) for loss in ("squared", "cross-entropy", "squared")]
    Wu.fit_together([(model, data, MID) for model in models])
    for model in models:
        alone = Wu(clusters=3, loss=model.loss).fit(data, MID)
        network, expected = model.cluster_sets_[0].network, alone.cluster_sets_[0].network
        np.testing.assert_allclose(network.hidden_bias, expected.hidden_bias, atol=1e-5)


def test_of_logarithms_a_centroid_is_the_geometric_mean() -> None:
    """By hand: steps of 1/4 and 1 have the geometric mean 1/2; the mean is 5/8."""
    grid = ConfigGrid((4,), (500.0, 1000.0), (700.0,))
    laws = {"fast": (0.0, -2.0, 0.0), "flat": (0.0, 0.0, 0.0)}
    data = made.measurements(per_group=1, grid=grid, laws=laws)
    for log_ratios, expected in ((True, 0.5), (False, 0.625)):
        fitted = Wu(clusters=1, log_ratios=log_ratios).fit(data, grid.mid)
        assert fitted.cluster_sets_[0].centroids == pytest.approx(np.array([[expected]]))


def test_some_counters_alone(tmp_path: object) -> None:
    """Known truth: two counters tell two laws, and not the other two from each other."""
    data = made.measurements()
    some = ("busy_bandwidth", "busy_compute")
    predictor = Wu(clusters=4, counters=some).fit(data, MID)
    assert predictor.feature_names() == some
    assert predictor.needs() == some
    by_kernel = errors(predictor, data)
    assert by_kernel[:6].max() < 1e-6
    assert by_kernel[6:].max() > 1
    model = train(data, MID, "wu", clusters=4, counters=list(some), loss="squared")
    save(model, f"{tmp_path}/m.mlscale")
    restored = load(f"{tmp_path}/m.mlscale").predictors["time"]
    assert isinstance(restored, Wu)
    assert (tuple(restored.counters), restored.loss) == (some, "squared")
