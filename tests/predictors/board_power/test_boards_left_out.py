"""Each of the four boards whose tables ship, predicted from the other three.

Bounds [%] are just above what was measured when this was written: regression only.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from train_shipped import HEADROOM, in_parts

from mlscale import Measurements, Surfaces
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.public.registry import dataset, path
from mlscale.data.sampled import SECOND_CLOCK
from mlscale.data.tables import read_table
from mlscale.predictors.base import Predictor
from mlscale.predictors.board_power.estimator import BoardPower
from mlscale.predictors.board_time import BoardTime

BOUNDS = {  # time from two readings, power from two, power from one
    "headroom-rtx5060ti": (2.1, 7.8, 17.5),
    "headroom-rtx3070ti": (1.2, 4.6, 10.7),
    "headroom-rtx3060": (2.1, 2.8, 6.1),
    "headroom-rtx2060s": (1.2, 5.6, 9.0),
}


@cache
def parts(name: str) -> list[Measurements]:
    return in_parts(read_table(path(dataset(name).file)))


def learnt(predictor: Predictor, left_out: str) -> Predictor:
    tables = [table for name in HEADROOM if name != left_out for table in parts(name)]
    return predictor.fit(tables, ["highest"] * len(tables))


def off(surfaces: Surfaces, table: Measurements, quantity: str, known: set[float]) -> np.ndarray:
    """Errors [%] at the clocks that are not known."""
    new = [clock not in known for clock in table.grid.engine_mhz]
    truth = table.relative(quantity, table.grid.highest)
    return 100 * np.abs(surfaces.values / truth - 1)[:, 0, new, 0].ravel()


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_on_a_board_left_out(name: str) -> None:
    power, time = learnt(BoardPower(), name), learnt(BoardTime(), name)
    assert isinstance(power, BoardPower)
    errors: list[list[np.ndarray]] = []
    for table in parts(name):
        top, clocks = table.grid.highest, np.array(table.grid.engine_mhz)
        second_mhz = float(clocks[clocks <= SECOND_CLOCK * top.engine_mhz].max())
        at = table.profiles(replace(top, engine_mhz=second_mhz))
        one = table.profiles(top)
        both = replace(one, points=(MeasuredPoint(at.base, at.time_ms, at.power_w),))
        times = time.predict(both, table.grid)
        measured = Surfaces(table.grid, top, table.relative("time", top))
        known = {top.engine_mhz, second_mhz}
        of_both = power.with_times(times).predict(both, table.grid)
        of_one = power.with_times(measured).predict(one, table.grid)
        errors.append(
            [
                off(times, table, "time", known),
                off(of_both, table, "power", known),
                off(of_one, table, "power", known),
            ]
        )
    means = [np.concatenate(own).mean() for own in zip(*errors, strict=True)]
    assert (np.array(means) < BOUNDS[name]).all(), means
