"""Scores for intervals of what brings a new group along, on drawn groups with a known spread."""

import numpy as np
import pytest

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.predictors.intervals import (
    calibrated_scores,
    distance_from_base,
    equal_weights,
    least_scale,
    score_at,
)

VALUES = 8  # in each group
DRAWS = 100


def group_scores(count: int, random: np.random.Generator) -> Floats:
    """|Gaussian| scores (count, VALUES), whose size each group shares: e^(0.8 x Gaussian)."""
    sizes = np.exp(0.8 * random.normal(size=(count, 1)))
    return np.abs(random.normal(size=(count, VALUES))) * sizes


def names(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


def held(score: Floats, width: float = 1.0) -> float:
    """Percent of 20 000 new groups' values that are within those scores, mean over the draws."""
    new = group_scores(20_000, np.random.default_rng(1)).ravel()
    new.sort()
    return float(100 * np.mean(np.searchsorted(new, width * score) / new.size))


def drawn_scores(groups: int) -> tuple[Floats, Floats]:
    """The scores at 90 % of many draws of so many groups, and the plain quantiles."""
    random = np.random.default_rng(0)
    draws = [group_scores(groups, random) for _ in range(DRAWS)]
    scores = [score_at(calibrated_scores(list(own), names(groups)), 0.9) for own in draws]
    return np.array(scores), np.array([np.quantile(own, 0.9) for own in draws])


@pytest.mark.parametrize("groups", [8, 15, 40])
def test_new_groups_are_held(groups: int) -> None:
    """90 % by definition, on average over the draws; a standard error is below 0.6."""
    scores, _ = drawn_scores(groups)
    assert 88.5 < held(scores) < 91.5


def test_one_value_a_group_by_hand() -> None:
    """Each of 1, 2, 3, 4 but the largest is below the largest of the others: 75 % at level 1.

    So 75 % needs the largest of all four, and more cannot be had.
    """
    scores = calibrated_scores([np.array([x]) for x in (3.0, 1.0, 4.0, 2.0)], names(4))
    assert score_at(scores, 0.75) == pytest.approx(4.0, abs=0.01)
    assert score_at(scores, 0.9) == 4.0
    assert score_at(scores, 1e-9) == pytest.approx(1.0)


def test_kernels_weigh_alike_whatever_their_values() -> None:
    """Kernels that repeat each value tell no more than others: here those that err most."""
    random = np.random.default_rng(3)
    one = list(group_scores(12, random))
    repeated = [np.repeat(own, 20) if own.max() > 2 else own for own in one]
    assert 2 < sum(own.size > VALUES for own in repeated) < 10
    at = [score_at(calibrated_scores(scores, names(12)), 0.8) for scores in (one, repeated)]
    assert at[1] == pytest.approx(at[0], rel=0.1)


def test_groups_weigh_alike_whatever_their_kernels() -> None:
    """A group that has its kernel 50 times counts as with it once; else it drowns the others."""
    own = list(group_scores(12, np.random.default_rng(4)))
    worst = int(np.argmax([scores.max() for scores in own]))
    repeated = [*own, *[own[worst]] * 49]
    groups = [*names(12), *[f"g{worst}"] * 49]
    once, alike, drowned = (
        score_at(calibrated_scores(*given), 0.8)
        for given in ((own, names(12), True), (repeated, groups, True), (repeated, groups))
    )
    assert alike == pytest.approx(once, rel=2e-3)  # what lies between its values twice
    assert drowned > 1.2 * once


def test_equal_weights_by_hand() -> None:
    """A third for each of three groups, split among its members."""
    weights = equal_weights(["b", "a", "b", "c", "b", "b"])
    assert weights == pytest.approx(np.array([1, 4, 1, 4, 1, 1]) / 12)


def test_one_group_tells_nothing_of_another() -> None:
    assert calibrated_scores([np.ones(3), np.ones(3)], ["a", "a"]).size == 0
    assert calibrated_scores([np.empty(0), np.empty(0)], ["a", "b"]).size == 0


def test_distance_from_the_base_by_hand() -> None:
    """ln 2 an axis that is halved or doubled, in the order of the grid's configurations."""
    grid = ConfigGrid((8, 16), (500.0, 1000.0), (700.0,))
    distance = distance_from_base(grid, HardwareConfig(16, 500, 700))
    np.testing.assert_allclose(distance, np.log(2) * np.array([1, 2, 0, 1]))


def held_near_and_far(scale: Floats, distance: Floats) -> tuple[float, float]:
    """Percent of new kernels held at the nearest and the farthest distance, by scores of others.

    Each kernel's exponent is off by a Gaussian of deviation 0.05, each ratio by one of 0.01.
    """
    random = np.random.default_rng(0)

    def errors(count: int) -> Floats:
        noise = 0.01 * random.normal(size=(count, distance.size))
        return np.abs(0.05 * random.normal(size=(count, 1)) * distance + noise)

    score = score_at(calibrated_scores(list(errors(500) / scale), names(500)), 0.9)
    held = 100 * (errors(5000) <= score * scale).mean(axis=0)
    return float(held[0]), float(held[-1])


def test_near_and_far_are_held_alike() -> None:
    """Noise and an exponent, as the scale says; with one width for all, the far are held less."""
    distance = np.linspace(0.1, 1.0, 8)
    for held in held_near_and_far(least_scale(distance), distance):
        assert 84 < held < 96
    near, far = held_near_and_far(np.ones_like(distance), distance)
    assert near > 99
    assert far < 80
