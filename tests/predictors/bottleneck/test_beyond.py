"""`bottleneck` beyond its training grid: the made kernels' own law, and nothing moves at home."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import positions
from mlscale.predictors.bottleneck.estimator import Bottleneck

WIDER = ConfigGrid(
    (16,), (350.0, *made.CLOCKS.engine_mhz, 1400.0), (600.0, *made.CLOCKS.memory_mhz, 5000.0)
)
MID = made.CLOCKS.mid
HOME = positions(made.CLOCKS, WIDER)


def wider(kernels: int, seed: int) -> Measurements:
    """Made kernels on the wider grid, with the base, and so the law, of the training grid."""
    table = made.measurements(kernels, seed=seed, grid=WIDER)
    assert WIDER.mid == MID
    return table


@pytest.fixture(scope="module", params=["time", "power"])
def trained(request: pytest.FixtureRequest) -> Bottleneck:
    return Bottleneck(quantity=request.param).fit(made.measurements(24), MID)


class TestMadeKernels:
    def test_beyond_the_grid_the_law_goes_on(self, trained: Bottleneck) -> None:
        """Truth: the made law. Clocks of 0.6 of the lowest trained to 1.3 of the highest."""
        table = wider(9, 1)
        surfaces = trained.predict(table.profiles(MID), WIDER)
        errors = 100 * np.abs(surfaces.values / table.relative(trained.quantity, MID) - 1)
        beyond = np.delete(errors.reshape(9, -1), HOME, axis=1)
        assert beyond.mean() < {"time": 2, "power": 8}[trained.quantity]

    def test_at_home_nothing_moves(self, trained: Bottleneck) -> None:
        profiles = made.measurements(5, seed=2).profiles(MID)
        home = trained.predict_interval(profiles)
        there = trained.predict_interval(profiles, grid=WIDER)
        for ends in ((home.values, there.values), (home.low, there.low)):
            one, other = (np.asarray(values).reshape(5, -1) for values in ends)
            assert other[:, HOME] == pytest.approx(one, rel=1e-9)


def test_a_settings_answer_does_not_depend_on_what_else_is_asked_for() -> None:
    """A model of several CU counts, at the base's CU count alone and beside half of it.

    Of kernels whose waves wait for DRAM, by their occupancy.
    """
    table = made.with_occupancy(made.with_cu_axis(8), np.full(8, 0.1))
    base = table.grid.mid
    model = Bottleneck(intervals=False, amplitude=1.0).fit(table, base)
    profiles = table.select(range(4)).profiles(base)
    grids = [replace(table.grid, cu_count=cus) for cus in ((base.cu_count,), table.grid.cu_count)]
    alone, beside = (model.predict(profiles, grid) for grid in grids)
    at_base = table.grid.cu_count.index(base.cu_count)
    assert beside.values[:, at_base] == pytest.approx(alone.values[:, 0], rel=1e-12)
