"""What `wu` can be told besides: another loss, K chosen, logarithms, some counters alone."""

import numpy as np
import pytest
from synthetic import kernels as made

from mlscale import ConfigGrid, Measurements, Wu, load, save, train
from mlscale.predictors.wu_clusters import CU_AXIS
from mlscale.studies.study import study

MID = made.GRID.mid


def scored(predictor: Wu, data: Measurements) -> float:
    """The mean error of the training kernels [%]."""
    return -predictor.fit(data, MID).score(data, MID)


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


@pytest.mark.slow
def test_auto_finds_as_many_clusters_as_there_are_laws() -> None:
    """Known truth: fewer than four clusters mix laws, and more than four cannot err less.

    Along the CU axis two of the four laws are the same.
    """
    data = made.measurements(per_group=5)
    predictor = Wu(clusters="auto").fit(data, MID)
    sizes = {one.region: len(one.centroids) for one in predictor.cluster_sets_}
    assert sizes == {0: 4, 1: 4, 2: 4, CU_AXIS: 3}
    rows = study("errors", data, "wu", clusters="auto", quantity="time", protocol="k-fold", seeds=1)
    assert rows.set_index("predictor").loc["wu", "mape"] < 1


def test_auto_with_few_applications_takes_the_default() -> None:
    data = made.measurements(per_group=1).select([0, 1])
    assert len(Wu(clusters="auto").fit(data, MID).cluster_sets_[0].centroids) == 2


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
    by_kernel = -np.array([predictor.score(data.select([k]), MID) for k in range(12)])
    assert by_kernel[:6].max() < 1e-6
    assert by_kernel[6:].max() > 1
    model = train(data, MID, "wu", clusters=4, counters=list(some), loss="squared")
    save(model, f"{tmp_path}/m.mlscale")
    restored = load(f"{tmp_path}/m.mlscale").predictors["time"]
    assert isinstance(restored, Wu)
    assert (tuple(restored.counters), restored.loss) == (some, "squared")
