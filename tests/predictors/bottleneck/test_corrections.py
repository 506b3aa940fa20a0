"""With a CU axis: trees beside the curve where they help, the mean of several curves, files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from prediction_errors import mean_error
from synthetic import bottleneck_kernels as made
from synthetic.tidy import same_bits

from mlscale import Measurements, load, save, train
from mlscale.predictors.bottleneck.corrections import TimeTrees, weight_of_trees
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.bottleneck.kernels import KernelTraits


def overflowing(kernels: int, seed: int) -> Measurements:
    """Every second kernel slows down by (CUs / base CUs)^0.8 more; its resident waves tell which.

    No CU curve of the model rises, and the occupancy of the two kinds is drawn from two ranges.
    """
    random = np.random.default_rng(seed)
    overflows = random.permutation(kernels) % 2 == 0
    occupancy = np.where(overflows, 0.6, 0.1) + random.uniform(0, 0.3, kernels)
    table = made.with_occupancy(made.with_cu_axis(kernels, seed), occupancy)
    cus = np.array(table.grid.cu_count)[:, None, None] / table.grid.mid.cu_count
    slower = np.where(overflows[:, None, None, None], cus**0.8, 1.0)
    return replace(table, time_samples=table.time_samples * slower)


@pytest.fixture(scope="module")
def trained() -> Bottleneck:
    table = overflowing(32, seed=0)
    return Bottleneck().fit(table, table.grid.mid)


def test_what_only_trees_see_is_learnt(trained: Bottleneck) -> None:
    """A law that the curve lacks: its error at least halves, on kernels never seen."""
    [trees] = trained.time_.trees
    assert trees is not None
    assert trees.weight > 0.5
    new = overflowing(12, seed=1)
    curve = Bottleneck(intervals=False)
    curve.time_, curve.power_, curve.others_ = trained.time_.alone, None, ()
    curve.sources_ = trained.sources_
    profiles = new.profiles(new.grid.mid)
    assert mean_error(trained, profiles, new) < mean_error(curve, profiles, new) / 2


def test_intervals_hold_what_the_trees_predict(trained: Bottleneck) -> None:
    """90 % of 12 new kernels of the same kind, give or take what 12 kernels tell."""
    new = overflowing(12, seed=1)
    actual = new.relative("time", new.grid.mid)
    surfaces = trained.predict_interval(new.profiles(new.grid.mid))
    assert surfaces.low is not None
    assert surfaces.high is not None
    inside = (surfaces.low <= actual) & (actual <= surfaces.high)
    assert 0.75 < np.delete(inside.reshape(12, -1), new.grid.size // 2, axis=1).mean() <= 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_where_trees_are_noise_the_curve_stands(seed: int) -> None:
    """Kernels of the curve itself, which trees on 24 kernels know worse: a twentieth at most."""
    table = made.with_cu_axis(24, seed)
    [trees] = Bottleneck(intervals=False).fit(table, table.grid.mid).time_.trees
    assert trees is None or trees.weight <= 0.05


def test_without_a_cu_axis_there_are_none() -> None:
    model = Bottleneck(intervals=False).fit(made.measurements(12), made.CLOCKS.mid).time_
    assert (model.trees, model.parts) == ((None,), ())


def test_the_curve_is_the_mean_of_those_without_a_group() -> None:
    table = made.with_cu_axis(12)
    model = Bottleneck(intervals=False, amplitude=1.0).fit(table, table.grid.mid).time_
    assert len(model.parts) == 4
    model = replace(model, corrections=(None,), trees=(None,))
    kernels = KernelTraits.of(table.profiles(table.grid.mid), table.grid, with_rule=False)
    own = [part.prior(kernels, part.gpus[0], 0).predicted() for part in model.parts]
    whole = model.prior(kernels, model.gpus[0], 0).predicted()
    np.testing.assert_allclose(whole, np.mean(own, axis=0), atol=1e-12)


@pytest.mark.parametrize(("offset", "weight"), [(0.0, 0.0), (1.0, 1.0), (0.25, 0.25)])
def test_the_weight_is_that_of_the_least_error(offset: float, weight: float) -> None:
    """By hand: trees at 1, the curve at 0, and the truth between them or at one of them."""
    curve, trees = np.zeros((3, 4)), np.ones((3, 4))
    assert weight_of_trees(curve, trees, curve + offset, ["a", "b", "c"]) == pytest.approx(weight)


def test_equal_opinions_leave_the_curve_alone() -> None:
    same = np.zeros((3, 4))
    assert weight_of_trees(same, same, same + 0.1, ["a", "b", "c"]) == 0


def test_no_application_alone_makes_trees_count() -> None:
    """By hand: they err by 0.1 more on two kernels, and gain 0.9 on two of one application.

    On average they gain; without that application they do not. Of two applications one counts.
    """
    actual = np.array([[0.0], [0.0], [1.0], [1.0]])
    curve, trees = np.zeros((4, 1)), np.array([[0.1], [0.1], [0.9], [0.9]])
    assert weight_of_trees(curve, trees, actual, ["a", "b", "c", "c"]) == 0
    assert weight_of_trees(curve, trees, actual, ["a", "b", "c", "d"]) == 1


def test_a_missing_input_is_taken_at_the_mean() -> None:
    """A counter that a profile lacks: as if it were the training kernels' mean, 3."""
    named = {"a": np.arange(8.0), "b": np.tile([2.0, 4.0], 4)}
    trees = TimeTrees.fit(named, np.arange(16.0).reshape(8, 2))
    lacking = trees.predict({"a": np.array([5.0])})
    assert (lacking == trees.predict({"a": np.array([5.0]), "b": np.array([3.0])})).all()


def test_a_file_gives_the_same_bits(tmp_path: Path) -> None:
    table = overflowing(16, seed=0)
    profiles = overflowing(5, seed=1).profiles(table.grid.mid)
    model = train(table, table.grid.mid, "bottleneck", amplitude=1.0)
    save(model, tmp_path / "m.mlscale")
    again = load(tmp_path / "m.mlscale").predict(profiles)["time"].values
    predictor = model.predictors["time"]
    assert isinstance(predictor, Bottleneck)
    assert predictor.time_.trees != (None,)
    assert same_bits(again, model.predict(profiles)["time"].values)


def test_1_at_the_base_to_the_bit(trained: Bottleneck) -> None:
    new = overflowing(5, seed=2)
    values = trained.predict(new.profiles(new.grid.mid)).values
    assert (values[(slice(None), *new.grid.index(new.grid.mid))] == 1).all()
