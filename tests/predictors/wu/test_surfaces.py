"""Clusters as a reader sees them: made power laws, whose surfaces and members are known."""

import numpy as np
import pytest
from synthetic import kernels as made

from mlscale.predictors.wu.clusters import CROSS_ENTROPY, SQUARED, probabilities
from mlscale.predictors.wu.estimator import Wu

MID = made.GRID.mid


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


def test_a_model_without_its_training_kernels_names_none(model: Wu) -> None:
    state = model.state()
    del state["training"]
    assert all(one.kernels is None for one in Wu().restore(state).cluster_surfaces())


def test_outputs_speak_for_the_chosen_cluster(model: Wu) -> None:
    profiles = made.measurements(power=False).profiles(MID)
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
