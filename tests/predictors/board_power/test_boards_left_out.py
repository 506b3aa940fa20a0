"""Each of the four boards whose tables ship, predicted from the other three.

Bounds [%] are just above what was measured when this was written: regression only.
"""

import pytest
from train_shipped import HEADROOM, left_out, tables_of

from mlscale.predictors.board import BoardTime
from mlscale.predictors.board_power import BoardPower

BOUNDS = {  # time from two readings, power from two, power from one
    "headroom-rtx5060ti": (2.1, 7.8, 17.5),
    "headroom-rtx3070ti": (1.2, 4.6, 10.7),
    "headroom-rtx3060": (2.1, 2.8, 6.1),
    "headroom-rtx2060s": (1.2, 5.6, 9.0),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_on_a_board_left_out(name: str) -> None:
    tables = [table for other in HEADROOM if other != name for table in tables_of(other)]
    bases = ["highest"] * len(tables)
    time, power = BoardTime().fit(tables, bases), BoardPower().fit(tables, bases)
    errors, _ = left_out(time, power, tables_of(name))
    means = [of_quantity["mean_error_percent"] for of_quantity in errors.values()]
    assert all(mean < bound for mean, bound in zip(means, BOUNDS[name], strict=True)), means
