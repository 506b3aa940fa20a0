"""Scaling values and the walk: Wu et al., section III-B, Fig. 7 and 8, Eq. (1)."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from synthetic.networks import outputs

from mlscale import ConfigGrid, read
from mlscale.predictors import wu_clusters
from mlscale.predictors.wu_clusters import (
    CU_AXIS,
    ClusterSet,
    Network,
    ScalingValues,
    WalkTables,
    region_values,
    scaling_from_regions,
    scaling_values,
    walk,
)

positive_grids = arrays(
    np.float64,
    array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=4),
    elements=st.floats(1e-3, 1e6),
)


def every_index(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(length) for length in shape)))


class TestScalingValuesByHand:
    """Hand: rows of the first array are engine clocks, columns memory clocks (Fig. 7a)."""

    TIME = np.array([[[60.0, 30.0, 10.0], [20.0, 15.0, 12.0]], [[30.0, 6.0, 2.0], [9.0, 3.0, 1.0]]])

    def test_memory_values_stand_by_engine_clock(self) -> None:
        memory = scaling_values(self.TIME, (0, 0, 0)).memory
        expected = [[[1 / 2, 1 / 3], [3 / 4, 4 / 5]], [[1 / 5, 1 / 3], [1 / 3, 1 / 3]]]
        np.testing.assert_allclose(memory, expected, rtol=1e-15)

    def test_engine_values_stand_by_memory_clock(self) -> None:
        engine = scaling_values(self.TIME, (0, 0, 0)).engine
        expected = [[[1 / 3, 1 / 2, 6 / 5]], [[3 / 10, 1 / 2, 1 / 2]]]
        np.testing.assert_allclose(engine, expected, rtol=1e-15)

    @pytest.mark.parametrize(
        ("base", "expected"), [((0, 0, 0), 1 / 2), ((1, 0, 2), 1 / 5), ((0, 1, 1), 1 / 5)]
    )
    def test_cu_values_are_taken_at_the_bases_clocks(
        self, base: tuple[int, int, int], expected: float
    ) -> None:
        np.testing.assert_allclose(scaling_values(self.TIME, base).cu, [expected], rtol=1e-15)


class TestEquationOne:
    """The order of the walk. The values contradict each other, so only one order is right."""

    def test_engine_along_the_bases_memory_clock_memory_along_the_targets_engine_clock(
        self,
    ) -> None:
        # Hand, on 3 x 3 clocks: e[j, 0] = 1/2, 1/3 at the base's memory clock, m[2, i] = 1/5,
        # 1/7 at the target's engine clock: 1/2 x 1/3 x 1/5 x 1/7 = 1/210. Every other value is
        # a prime of its own. Read as printed (m[i, 2]) Eq. (1) would take other values.
        scaling = ScalingValues(
            memory=np.array([[[11.0, 13.0], [17.0, 19.0], [1 / 5, 1 / 7]]]),
            engine=np.array([[[1 / 2, 23.0, 29.0], [1 / 3, 31.0, 37.0]]]),
            cu=np.empty(0),
        )
        surface = walk(scaling, (0, 0, 0))
        assert surface[0, 2, 2] == pytest.approx(1 / 210, rel=1e-14)
        # Hand, the way there: engine only; then one memory step at engine step 1.
        assert surface[0, 1, 0] == pytest.approx(1 / 2, rel=1e-14)
        assert surface[0, 1, 1] == pytest.approx(17 / 2, rel=1e-14)

    def test_whole_surface_with_cu_step_and_steps_down(self) -> None:
        # 2 CU counts x 2 engine clocks x 2 memory clocks, base in the upper corner of the first
        # CU count: every clock step goes down and divides.
        scaling = ScalingValues(
            memory=np.array([[[2.0], [3.0]], [[5.0], [7.0]]]),
            engine=np.array([[[11.0, 13.0]], [[17.0, 19.0]]]),
            cu=np.array([0.5]),
        )
        # Hand. CU count 0: 1/13 down the engine at memory 1, then 1/2 or 1/3 down the memory.
        # CU count 1: first 0.5, then its own values: 1/19; 1/5 at engine 0, 1/7 at engine 1.
        expected = [
            [[1 / (13 * 2), 1 / 13], [1 / 3, 1.0]],
            [[0.5 / (19 * 5), 0.5 / 19], [0.5 / 7, 0.5]],
        ]
        np.testing.assert_allclose(walk(scaling, (0, 1, 1)), expected, rtol=1e-14)


class TestTheWalkReproducesAKernel:
    """Closed form: the truth is the kernel itself, from every base to every target."""

    @settings(max_examples=80)
    @given(positive_grids)
    def test_exactly(self, time: np.ndarray) -> None:
        for base in every_index(time.shape):
            surface = walk(scaling_values(time, base), base)
            np.testing.assert_allclose(surface, time / time[base], rtol=1e-12)

    def test_measured_kernels_of_the_simulated_set(self, data_folder: Path) -> None:
        # Truth: the 48 kernels themselves, not monotonic, times over three decades.
        time = read(data_folder / "mgpusim" / "gcn3-scaling.csv").time_ms
        assert time.shape == (48, 4, 4, 3)
        for base in every_index(time.shape[1:]):
            surface = walk(scaling_values(time, base), base)
            np.testing.assert_allclose(
                surface, time / time[:, *base][:, None, None, None], rtol=1e-12
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
