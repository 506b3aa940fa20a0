"""The tables that `wu` predicts from, against the walk along the centroids its networks choose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic.networks import outputs

from mlscale import ConfigGrid
from mlscale.predictors import wu_clusters
from mlscale.predictors.wu_clusters import (
    CU_AXIS,
    ClusterSet,
    Network,
    WalkTables,
    region_values,
    scaling_from_regions,
    scaling_values,
    walk,
)

FEATURES = 3


def a_grid(shape: tuple[int, int, int]) -> ConfigGrid:
    cu, engine, memory = (tuple(range(1, length + 1)) for length in shape)
    return ConfigGrid(cu, tuple(map(float, engine)), tuple(map(float, memory)))


def random_sets(shape: tuple[int, int, int], numbers: np.random.Generator) -> list[ClusterSet]:
    """A set of 1 to 5 clusters for every region, in any order."""
    sets = []
    ones = scaling_values(np.ones((1, *shape)), (0, 0, 0))
    for region, values in region_values(ones).items():
        size = values.shape[1]
        k = int(numbers.integers(1, 6))
        weights = [numbers.normal(size=s) for s in ((FEATURES, k), k, (k, k), k)]
        sets.append(ClusterSet(region, numbers.uniform(0.3, 3, (k, size)), Network(*weights)))
    return [sets[i] for i in numbers.permutation(len(sets))]


@settings(max_examples=60)
@given(
    st.tuples(*3 * [st.integers(1, 4)]), st.integers(0, 10), st.data(), st.integers(0, 2**32 - 1)
)
def test_surfaces_are_the_walks_along_the_chosen_centroids(
    shape: tuple[int, int, int], count: int, data: st.DataObject, seed: int
) -> None:
    """Expected: by the definition (Wu et al., Fig. 8 and 9), one network at a time."""
    numbers = np.random.default_rng(seed)
    grid, sets = a_grid(shape), random_sets(shape, numbers)
    base = grid.config(tuple(data.draw(st.integers(0, length - 1)) for length in shape))
    points = numbers.random((count, FEATURES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wu_clusters, "KERNELS_AT_ONCE", 4)
        found = WalkTables.from_sets(sets, FEATURES, grid, base).surfaces(points)
    chosen = {s.region: s.centroids[outputs(s.network, points).argmax(axis=1)] for s in sets}
    expected = walk(scaling_from_regions(chosen, shape, count), grid.index(base))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found[(slice(None), *grid.index(base))] == 1).all()


def test_the_larger_output_is_chosen_where_both_round_to_1() -> None:
    """Sigmoids of 40 and 50 are 1 in double precision; the second is larger (by hand)."""
    network = Network(np.zeros((1, 2)), np.zeros(2), np.zeros((2, 2)), np.array([40.0, 50.0]))
    sets = [ClusterSet(CU_AXIS, np.array([[2.0], [3.0]]), network)]
    grid = a_grid((2, 1, 1))
    tables = WalkTables.from_sets(sets, 1, grid, grid.config((0, 0, 0)))
    np.testing.assert_allclose(tables.surfaces(np.ones((1, 1))).ravel(), [1, 3], rtol=1e-12)
