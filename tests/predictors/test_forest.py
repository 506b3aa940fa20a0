"""Trees as arrays: they say what scikit-learn's say, and a damaged state is refused."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from mlscale.predictors.forest import Forest

RANDOM = np.random.default_rng(0)
POINTS, OUTPUTS = RANDOM.normal(size=(40, 3)), RANDOM.normal(size=(40, 4))


def forest() -> Forest:
    return Forest.grow(POINTS, OUTPUTS, trees=7, least_leaf=2, seed=3)


def test_predicts_as_scikit_learn_does() -> None:
    regressor = ExtraTreesRegressor(7, min_samples_leaf=2, random_state=3).fit(POINTS, OUTPUTS)
    new = RANDOM.normal(size=(200, 3))
    mean, deviation = forest().predict(new)
    each = np.array([tree.predict(new.astype(np.float32)) for tree in regressor.estimators_])
    np.testing.assert_allclose(mean, regressor.predict(new), rtol=1e-12)
    np.testing.assert_allclose(deviation, each.std(axis=0), rtol=1e-9)


def test_of_one_kernel_is_that_kernel() -> None:
    mean, deviation = Forest.grow(POINTS[:1], OUTPUTS[:1], 3, 2, 0).predict(POINTS)
    np.testing.assert_allclose(mean, np.tile(OUTPUTS[0], (40, 1)))
    np.testing.assert_allclose(deviation, 0, atol=1e-12)


def test_restored_is_the_same() -> None:
    grown = forest()
    again = Forest.restore(grown.state(), 3, 4)
    assert np.array_equal(again.predict(POINTS)[0], grown.predict(POINTS)[0])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("feature", 3, "feature points nowhere"),
        ("left", 10_000, "left points nowhere"),
        ("left", 0, "leads back"),
        ("value", -1, "value points nowhere"),
        ("roots", -1, "roots points nowhere"),
    ],
)
def test_damaged_trees_are_refused(name: str, value: int, message: str) -> None:
    state = forest().state()
    damaged = state[name].copy()
    damaged[0] = value
    with pytest.raises(ValueError, match=message):
        Forest.restore({**state, name: damaged}, 3, 4)
