"""Wu's predictor: what it recovers, on which grids, what is refused, and its further options."""

import importlib
import itertools
import random
import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from synthetic import kernels as made
from synthetic.tidy import refused, same_bits

from mlscale import ConfigGrid, HardwareConfig, Measurements, Wu, load, save, train
from mlscale.predictors import wu_clusters
from mlscale.predictors.wu_clusters import (
    CU_AXIS,
    ClassifierTask,
    cluster,
    region_values,
    scaling_values,
    train_networks,
)
from mlscale.studies.study import study

MID = made.GRID.mid
QUANTITIES = ("time", "power")
GROUPS = np.repeat(np.arange(len(made.LAWS)), 3)  # for made.measurements()


def truth(measurements: Measurements, quantity: str, base: HardwareConfig) -> np.ndarray:
    """The true surfaces relative to the base."""
    c, e, m = measurements.grid.index(base)
    values = measurements.quantity(quantity)
    return values / values[:, c : c + 1, e : e + 1, m : m + 1]


def steps(axis: tuple[float, ...], power: float) -> np.ndarray:
    """Closed form: the scaling values of a power law along one axis."""
    return (np.array(axis[1:]) / np.array(axis[:-1])) ** power


def law_values(law: tuple[float, float, float], quantity: str) -> dict[str, np.ndarray]:
    """Closed form: scaling values of a group on made.GRID, for a CU count and for the CU axis.

    Power goes with time ** -0.5.
    """
    cu, engine, memory = law if quantity == "time" else (-0.5 * power for power in law)
    by_memory = np.tile(steps(made.GRID.memory_mhz, memory), len(made.GRID.engine_mhz))
    by_engine = np.repeat(steps(made.GRID.engine_mhz, engine), len(made.GRID.memory_mhz))
    return {"clocks": np.concatenate([by_memory, by_engine]), "cu": steps(made.GRID.cu_count, cu)}


@pytest.fixture(scope="module")
def trained() -> dict[str, Wu]:
    """A model of time and one of power, four clusters, of twelve kernels of four groups."""
    models = {quantity: Wu(quantity, clusters=4) for quantity in QUANTITIES}
    measurements = made.measurements()
    Wu.fit_together([(model, measurements, MID) for model in models.values()])
    return models


@pytest.mark.parametrize("quantity", QUANTITIES)
class TestMadeGroupsAreRecovered:
    def test_labels_are_the_groups(self, quantity: str) -> None:
        measurements = made.measurements()
        values = scaling_values(measurements.quantity(quantity), made.GRID.index(MID))
        regions = region_values(values)
        assert regions.keys() == {0, 1, 2, CU_AXIS}
        for region, rows in regions.items():
            # On the CU axis 'bandwidth' (1) and 'latency' (2) have the same law.
            groups = np.where(GROUPS == 2, 1, GROUPS) if region == CU_AXIS else GROUPS
            labels, _ = cluster(rows, 4, seed=0)
            pairs = set(zip(groups.tolist(), labels.tolist(), strict=True))
            assert len(pairs) == len(set(groups.tolist())) == len(set(labels.tolist()))

    def test_centroids_are_the_laws(self, quantity: str, trained: dict[str, Wu]) -> None:
        for cluster_set in trained[quantity].cluster_sets_:
            kind = "cu" if cluster_set.region == CU_AXIS else "clocks"
            laws = [law_values(law, quantity)[kind] for law in made.LAWS.values()]
            expected = np.unique(np.round(laws, 12), axis=0)
            found = np.unique(np.round(cluster_set.centroids, 12), axis=0)
            np.testing.assert_allclose(found, expected, rtol=1e-11)

    def test_new_kernels_get_their_groups_surface(
        self, quantity: str, trained: dict[str, Wu]
    ) -> None:
        # The truth is the law; 20 kernels that training has not seen.
        new = made.measurements(per_group=5, seed=1)
        predicted = trained[quantity].predict(new.profiles(MID)).values
        np.testing.assert_allclose(predicted, truth(new, quantity, MID), rtol=1e-9)

    def test_more_clusters_than_groups_change_nothing(self, quantity: str) -> None:
        # The default is 12; kernels of one group coincide, so four distinct ones remain.
        model = Wu(quantity).fit(made.measurements(), MID)
        sizes = {s.region: len(s.centroids) for s in model.cluster_sets_}
        assert sizes == {0: 4, 1: 4, 2: 4, CU_AXIS: 3}
        new = made.measurements(per_group=5, seed=1)
        predicted = model.predict(new.profiles(MID)).values
        np.testing.assert_allclose(predicted, truth(new, quantity, MID), rtol=1e-9)


class TestGrids:
    @pytest.mark.parametrize("lengths", list(itertools.product((1, 3), repeat=3))[1:])
    def test_axes_of_length_one(self, lengths: tuple[int, int, int]) -> None:
        # The truth is the law.
        c, e, m = lengths
        grid = ConfigGrid((4, 8, 16)[:c], (400.0, 700.0, 1000.0)[:e], (500.0, 700.0, 900.0)[:m])
        model = Wu(clusters=4).fit(made.measurements(grid=grid), grid.mid)
        assert {s.region for s in model.cluster_sets_} == {
            *(range(c) if e * m > 1 else ()),
            *((CU_AXIS,) if c > 1 else ()),
        }
        new = made.measurements(per_group=2, grid=grid, seed=1)
        surfaces = model.predict(new.profiles(grid.mid))
        assert surfaces.grid == grid
        np.testing.assert_allclose(surfaces.values, truth(new, "time", grid.mid), rtol=1e-9)


class TestKMeans:
    def test_by_hand(self) -> None:
        labels, centroids = cluster(np.array([[1.0], [3.0], [1.2], [3.4]]), 2, seed=0)
        assert labels[0] == labels[2] != labels[1] == labels[3]
        assert centroids[labels[0]] == pytest.approx([1.1], rel=1e-12)
        assert centroids[labels[1]] == pytest.approx([3.2], rel=1e-12)

    @pytest.mark.parametrize("value", [1 / 3, 0.5000000005, 1.0009765625, 0.5 + 2.0**-25])
    @pytest.mark.parametrize("other", [2.0, 30.0])
    def test_rows_that_differ_by_rounding_leave_no_empty_cluster(
        self, value: float, other: float
    ) -> None:
        # The later values lie where rounding (to nine places, to single precision) goes up or
        # down, so that two rows can look distinct where K-means finds them the same.
        rows = np.array([[value - 3e-16], [value + 3e-16], [other]])
        labels, centroids = cluster(rows, 3, seed=0)
        np.testing.assert_allclose(centroids[labels][:, 0], [value, value, other], rtol=1e-12)
        assert np.isfinite(centroids).all()
        assert set(labels.tolist()) == set(range(len(centroids)))


class TestTraining:
    def test_reaches_the_least_loss(self) -> None:
        # The loss is decision 0003's: cross-entropy of the softmax over the outputs' inputs, and
        # weight decay 0.1 / kernels, features in [-1, 1]. BFGS, from where training ended, finds
        # no loss that is lower by more than a thousandth; without training it is log 3.
        n, f, k = 12, 4, 3
        numbers = np.random.default_rng(0)
        features, labels = numbers.random((n, f)), np.arange(n) % k
        beside = ClassifierTask(numbers.random((20, 6)), np.arange(20) % 5, (1,))
        network, _ = train_networks([ClassifierTask(features, labels, (0,)), beside])

        def loss(parameters: np.ndarray) -> float:
            w1, b1, w2, b2 = np.split(parameters, np.cumsum([f * k, k, k * k]))
            hidden = 1 / (1 + np.exp(-((2 * features - 1) @ w1.reshape(f, k) + b1)))
            outputs = hidden @ w2.reshape(k, k) + b2
            log_share = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
            decay = 0.1 / n * (w1 @ w1 + w2 @ w2) / 2
            return float(decay - log_share[np.arange(n), labels].mean())

        w1 = network.hidden_weights / 2
        b1 = network.hidden_bias + w1.sum(axis=0)
        ended = np.concatenate(
            [a.ravel() for a in (w1, b1, network.output_weights, network.output_bias)]
        )
        least = minimize(loss, ended).fun
        assert least == pytest.approx(loss(ended), abs=1e-3)
        assert least < 0.8 * np.log(3)


class TestSeed:
    def weights(self, seed: int) -> np.ndarray:
        model = Wu(clusters=4, seed=seed).fit(made.measurements(), MID)
        return np.concatenate(
            [
                array.ravel()
                for s in model.cluster_sets_
                for array in (s.centroids, *vars(s.network).values())
            ]
        )

    def test_the_same_gives_the_same_to_the_last_bit(self) -> None:
        import torch

        first = self.weights(seed=7)
        np.random.seed(1)  # noqa: NPY002 - nobody else's random state may matter
        torch.manual_seed(1)
        random.seed(1)
        assert same_bits(self.weights(seed=7), first)


def jobs_of_several_shapes() -> list[tuple[Wu, Measurements, HardwareConfig]]:
    """Such that every one is padded somewhere."""
    small = made.measurements(
        per_group=2,
        grid=ConfigGrid((1, 2), (300.0, 400.0), (500.0,)),
        laws={"core": (-1.0, -1.0, 0.0), "fixed": (0.0, 0.0, 0.0)},
    )
    return [
        (Wu(quantity, clusters=clusters, seed=seed), measurements, measurements.grid.mid)
        for measurements in (made.measurements(), small)
        for quantity in QUANTITIES
        for clusters, seed in ((2, 0), (3, 1), (None, 2))
    ]


@pytest.fixture(scope="module")
def trained_alone() -> list[Wu]:
    return [job.fit(measurements, base) for job, measurements, base in jobs_of_several_shapes()]


class TestTogether:
    @pytest.mark.slow
    @pytest.mark.parametrize("numbers_per_chunk", [1, 2000, 10**9])
    def test_makes_the_same_choices_as_alone(
        self, numbers_per_chunk: int, trained_alone: list[Wu], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A chunk holds one network, a few, or all of them.
        monkeypatch.setattr(wu_clusters, "NUMBERS_PER_CHUNK", numbers_per_chunk)
        jobs = jobs_of_several_shapes()
        Wu.fit_together(jobs)
        for (together, measurements, base), own in zip(jobs, trained_alone, strict=True):
            for one, other in zip(own.cluster_sets_, together.cluster_sets_, strict=True):
                assert same_bits(one.centroids, other.centroids)
            profiles = measurements.profiles(base)
            values = own.predict(profiles).values
            assert same_bits(values, together.predict(profiles).values)


TWELVE = made.measurements()
CONSTANT = made.measurements()
CONSTANT.counter_samples[:] = 5.0


@pytest.mark.parametrize(
    ("predictor", "table", "message"),
    [
        (Wu(clusters=13), TWELVE, "13 clusters cannot be made of 12 training kernels; give 1 to 1"),
        (Wu(clusters=0), TWELVE, "0 clusters cannot be made of 12 training kernels; give 1 to 12"),
        (Wu(), TWELVE.select([0]), "'wu' needs at least two training kernels"),
        (Wu(), TWELVE.select([]), "'wu' needs kernels at two settings"),
        (Wu(), CONSTANT, "'wu' needs at least two training kernels whose 'raw' features differ"),
        (Wu("power"), made.measurements(power=False), "no column 'power_w'"),
        (Wu(loss="hinge"), TWELVE, "there is no loss 'hinge'; one of cross-entropy, squared"),
        (Wu(counters=["busy_idle"]), TWELVE, "no 'raw' feature 'busy_idle'; there are busy_band"),
    ],
)
def test_training_that_is_refused(predictor: Wu, table: Measurements, message: str) -> None:
    with refused(message):
        predictor.fit(table, MID)


def test_a_profile_at_another_base_and_another_grid_are_refused(trained: dict[str, Wu]) -> None:
    elsewhere = TWELVE.profiles(HardwareConfig(4, 400.0, 400.0))
    with refused("base is cu=8,engine=800,memory=700, .* taken at cu=4,engine=400,memory=400"):
        trained["time"].predict(elsewhere)
    with refused("'wu' predicts on its training grid only; interpolate its surfaces"):
        trained["time"].predict(TWELVE.profiles(MID), ConfigGrid((4, 8), (800.0,), (700.0,)))


def test_training_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "mlscale.predictors.wu_clusters")
    importlib.import_module("mlscale.predictors.wu_clusters")  # raises nothing yet
    needed = r"training 'wu' needs torch; install it with: pip install .*torch"
    with pytest.raises(ImportError, match=needed):
        Wu().fit(made.measurements(), MID)
    with refused(needed):
        Wu().fit(made.measurements(), MID)


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
