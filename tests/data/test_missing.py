"""Cells that nobody measured: filled in, and left out.

Known truths: a power law along every axis; the product of what the axes do, where a grid was
measured along its edges alone (Wu's walk). The greedy choice is followed by hand.
"""

import numpy as np
import pytest
from synthetic.tidy import refused

from mlscale.arrays import Floats
from mlscale.data.cells import complete_part, filled
from mlscale.data.grid import ConfigGrid

GRID = ConfigGrid((4, 8, 16, 20), (400.0, 500.0, 520.0, 800.0), (300.0, 700.0, 1000.0))


def power_law() -> Floats:
    settings = GRID.settings()
    logs = [p * np.log(settings[a]) for a, p in zip(settings, (-0.7, -0.3, 0.2), strict=True)]
    return np.exp(np.sum(logs, axis=0)).reshape(1, *GRID.shape)


@pytest.mark.parametrize("lost", [0.1, 0.4, 0.6])
def test_a_power_law_is_met_whatever_is_missing(lost: float) -> None:
    values = np.repeat(power_law(), 3, axis=0)
    missing = np.random.default_rng(1).random(values.shape) < lost
    found = filled(np.where(missing, np.nan, values), GRID)
    np.testing.assert_allclose(found, values, rtol=1e-5)
    np.testing.assert_array_equal(found[~missing], values[~missing])


def test_edges_alone_give_the_product_of_the_axes() -> None:
    cu, engine, memory = np.array([3, 1.9, 1.2, 1]), np.array([1.5, 1.3, 1.27, 1]), [1.4, 1.1, 1]
    values = (cu[:, None, None] * engine[:, None] * memory)[None]
    known = np.zeros(values.shape, bool)
    known[0, :, -1, -1] = known[0, -1, :, -1] = known[0, -1, -1, :] = True
    found = filled(np.where(known, values, np.nan), GRID)
    np.testing.assert_allclose(found, values, rtol=0.01)


def test_one_cell_says_that_nothing_changes() -> None:
    values = np.full((1, *GRID.shape), np.nan)
    values[0, 1, 1, 1] = 5.0
    np.testing.assert_allclose(filled(values, GRID), 5.0, rtol=1e-5)


def test_a_grid_too_large_is_refused() -> None:
    large = ConfigGrid((1,), tuple(range(1, 6002)), (1.0,))
    with refused("on at most 5000 configurations; leave out the rows at some settings$"):
        filled(np.full((1, *large.shape), np.nan), large)


def test_what_lacks_most_is_dropped_first() -> None:
    """The last kernel lacks three of five, the first one of five; a hole of all is no lack."""
    measured = np.ones((4, 1, 3, 2), bool)
    measured[3, 0, :, 0] = measured[0, 0, 1, 0] = False
    measured[:, 0, 2, 1] = False
    kernels, cu, engine, memory = complete_part(measured)
    assert [*map(list, (kernels, cu, engine, memory))] == [[1, 2], [0], [0, 1, 2], [0, 1]]
