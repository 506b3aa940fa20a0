"""The tables that `wu` predicts from, against the walk along the centroids its networks choose.

And clusters as a reader sees them: made power laws, whose surfaces and members are known.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import kernels as made
from synthetic.networks import outputs

from mlscale import ConfigGrid
from mlscale.predictors.wu import clusters as wu_clusters
from mlscale.predictors.wu.clusters import (
    CROSS_ENTROPY,
    CU_AXIS,
    SQUARED,
    ClusterSet,
    Network,
    WalkTables,
    probabilities,
    region_sizes,
    scaling_from_regions,
)
from mlscale.predictors.wu.estimator import Wu
from mlscale.predictors.wu.scaling import walk

MID = made.GRID.mid

FEATURES = 3


def a_grid(shape: tuple[int, int, int]) -> ConfigGrid:
    cu, engine, memory = (tuple(range(1, length + 1)) for length in shape)
    return ConfigGrid(cu, tuple(map(float, engine)), tuple(map(float, memory)))


def random_sets(shape: tuple[int, int, int], numbers: np.random.Generator) -> list[ClusterSet]:
    """A set of 1 to 5 clusters for every region, in any order."""
    sets = []
    for region, size in region_sizes(shape).items():
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
        patch.setattr(wu_clusters, "MANY_PER_WALK", 0)  # so that more than 4 are many
        found = WalkTables.of(sets, FEATURES, grid, base).surfaces(points)
    chosen = {s.region: s.centroids[outputs(s.network, points).argmax(axis=1)] for s in sets}
    expected = walk(scaling_from_regions(chosen, shape, count), grid.index(base))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found[(slice(None), *grid.index(base))] == 1).all()


def test_the_larger_output_is_chosen_where_both_round_to_1() -> None:
    """Sigmoids of 40 and 50 are 1 in double precision; the second is larger (by hand)."""
    network = Network(np.zeros((1, 2)), np.zeros(2), np.zeros((2, 2)), np.array([40.0, 50.0]))
    sets = [ClusterSet(CU_AXIS, np.array([[2.0], [3.0]]), network)]
    grid = a_grid((2, 1, 1))
    tables = WalkTables.of(sets, 1, grid, grid.config((0, 0, 0)))
    np.testing.assert_allclose(tables.surfaces(np.ones((1, 1))).ravel(), [1, 3], rtol=1e-12)


@pytest.fixture(scope="module")
def model() -> Wu:
    """Four clusters of twelve kernels of four power laws, three each."""
    return Wu(clusters=4).fit(made.measurements(power=False), MID)


def test_a_centroid_is_the_law_of_its_kernels(model: Wu) -> None:
    """Closed form: of time = cu^a engine^b memory^c each part is a power of the steps' ratios."""
    regions = model.cluster_surfaces()
    # Two laws have the same power of the CU count, so there are three kinds of steps along it.
    assert [len(one.factors) for one in regions] == [4] * len(made.GRID.cu_count) + [3]
    for one in regions:
        assert one.kernels is not None
        given = [(k, kernel) for k, of_cluster in enumerate(one.kernels) for kernel in of_cluster]
        assert len(given) == 3 * len(made.LAWS)
        for k, kernel in given:
            cu, engine, memory = made.LAWS[kernel[:-1]]
            expected = [
                (config.cu_count / one.base.cu_count) ** cu
                * (config.engine_mhz / one.base.engine_mhz) ** engine
                * (config.memory_mhz / one.base.memory_mhz) ** memory
                for config in one.grid
            ]
            assert one.factors[k].ravel() == pytest.approx(expected, rel=1e-6)


def test_the_regions_are_the_parts_of_the_grid(model: Wu) -> None:
    *clocks, cu_axis = model.cluster_surfaces()
    assert [one.grid.cu_count for one in clocks] == [(count,) for count in made.GRID.cu_count]
    assert {one.grid.shape[1:] for one in clocks} == {made.GRID.shape[1:]}
    assert cu_axis.grid.shape == (len(made.GRID.cu_count), 1, 1)
    assert cu_axis.base == MID


def test_outputs_speak_for_the_chosen_cluster(model: Wu) -> None:
    profiles = made.measurements(power=False).in_order.profiles(MID)
    for choice in model.explain(profiles).choices:
        assert choice.outputs.shape == (len(profiles.kernels), choice.count)
        assert choice.outputs.sum(axis=1) == pytest.approx(1)
        assert (choice.outputs.argmax(axis=1) == choice.chosen).all()
        assert (choice.chosen == choice.training).all()


def test_outputs_by_hand() -> None:
    """e^0 : e^ln 3 is 1 : 3; the sigmoid of ln 3 is 3 / 4."""
    outputs = np.log([[1.0, 3.0]])
    assert probabilities(outputs, CROSS_ENTROPY) == pytest.approx(np.array([[0.25, 0.75]]))
    assert probabilities(outputs, SQUARED) == pytest.approx(np.array([[0.5, 0.75]]))
