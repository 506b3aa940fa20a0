"""`board-power` on real GPUs that it has no training data of."""

from functools import cache
from pathlib import Path

import numpy as np
import public_tables
import pytest

from mlscale import Surfaces
from mlscale.data.logs import without_power_faults
from mlscale.data.measurements import Measurements
from mlscale.predictors.board_power import BoardPower

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")


@cache
def table(folder: Path, gpu: str) -> Measurements:
    return without_power_faults(public_tables.measured(folder, gpu))


def off_and_held(power: BoardPower, test: Measurements, base: str, measured: bool) -> np.ndarray:
    """Mean error [%], and share of the 90 % intervals that hold the truth; measured: true times."""
    at = test.grid.config(base)
    if measured:
        power = power.with_times(Surfaces(test.grid, at, test.relative("time", at)))
    surfaces = power.predict_interval(test.profiles(at), 0.9, test.grid)
    truth = test.relative("power", at)
    away = np.array(test.grid.engine_mhz) != at.engine_mhz
    error = 100 * np.abs(surfaces.values / truth - 1)[:, 0, away, 0].mean()
    if surfaces.low is None or surfaces.high is None:
        return np.array([error, np.nan])
    inside = (surfaces.low <= truth) & (truth <= surfaces.high)
    return np.array([error, 100 * inside[:, 0, away, 0].mean()])


# Bounds [%] just above what was measured when this was written: regression only. Proportion to the
# clock is 13 and 11 % off on the A100, 12 and 9 % on the RTX 8000.
@pytest.mark.parametrize(
    ("source", "target", "base", "measured", "bound"),
    [
        ("rtx8000", "a100", "highest", True, 5.3),
        ("rtx8000", "a100", "highest", False, 6.7),
        ("rtx8000", "a100", "mid", False, 7.5),
        ("a100", "rtx8000", "highest", True, 5.8),
        ("a100", "rtx8000", "highest", False, 8.9),
        ("a100", "rtx8000", "mid", False, 5.6),
    ],
)
def test_errors_on_a_gpu_held_out(
    data_folder: Path, source: str, target: str, base: str, measured: bool, bound: float
) -> None:
    power = BoardPower().fit(table(data_folder, source), base)
    error, _ = off_and_held(power, table(data_folder, target), base, measured)
    assert error < bound


def test_intervals_hold_on_the_average_gpu(data_folder: Path) -> None:
    """Each GPU predicted from the two others. Regression only."""
    held = []
    for target in public_tables.SAMPLED:
        others = [name for name in public_tables.SAMPLED if name != target]
        tables = [table(data_folder, name) for name in others for _ in range(2)]
        power = BoardPower().fit(tables, ["highest", "mid"] * 2)
        held.append(off_and_held(power, table(data_folder, target), "highest", True)[1])
    assert held[0] > 90  # A100
    assert held[1] > 90  # RTX 8000
    assert held[2] > 85  # V100
