"""What `bottleneck` reaches on real and simulated data, against bounds set beforehand.

Leave-one-application-out (here 5 folds of applications, to save time), base mid-grid, one GPU at a
time, errors in percent. Measured with the former: time 2.86 / 2.62 / 1.84 / 3.34, power 1.60 / 1.95
/ 1.46 / 2.67, simulated 8.17.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from public_tables import FILES, measured

from mlscale import Measurements, read
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.public import path
from mlscale.predictors.base import Predictor
from mlscale.predictors.baselines import MeanSurface, Nearest
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.wu.estimator import Wu
from mlscale.studies.crossval import cross_validate
from mlscale.studies.next_point import kernel_errors
from mlscale.studies.splits import folds

TIME = {"gtx980-low": 2.9, "gtx980-high": 2.9, "gtx1080ti": 2.0, "p100": 3.4}
# 2.6 on P100 takes time learnt from all four tables (2.53); alone it is 2.66, in five folds 2.92.
POWER = {"gtx980-low": 1.7, "gtx980-high": 2.1, "gtx1080ti": 1.5, "p100": 3.05}


def error(table: Measurements, quantity: str) -> float:
    """MAPE [%] of kernels whose application was held out."""

    def make() -> list[Bottleneck]:
        return [Bottleneck(quantity=quantity, intervals=False)]

    split = folds("k-fold", table.applications, 0)
    found = cross_validate(table, [table.grid.mid], split, make)
    return float(np.concatenate([fold.errors for fold in found]).mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_measured_gpus(data_folder: Path, name: str) -> None:
    table = measured(data_folder, name)
    assert error(table, "time") <= TIME[name]
    assert error(table, "power") <= POWER[name]


@pytest.mark.slow
def test_simulated_set() -> None:
    """Below ExtraTrees, which errs by 10.3 % with the same columns."""
    assert error(read(path("simulated-gcn3.parquet")), "time") < 9


@pytest.mark.slow
def test_a_measured_cu_axis() -> None:
    """70 kernels of an H100 from 132 SMs to 8: far below wu, nearest and the mean surface.

    Measured when written, with all applications held out in turn: 10.0. Without the two counters
    of Table II that kernels which load or store nothing lack, and which wu would ask for.
    """
    table = read(path("h100-suite.csv"))
    table = table.without_counters(["FetchPerLoadByte", "WritePerStoreByte"])
    split = folds("k-fold", table.applications, 0)

    def error_of(make: Callable[[], Predictor]) -> float:
        found = cross_validate(table, [table.grid.highest], split, lambda: [make()])
        return float(np.concatenate([fold.errors for fold in found]).mean())

    own = error_of(lambda: Bottleneck(intervals=False))
    assert own < 12
    assert own < 0.5 * min(error_of(other) for other in (Wu, Nearest, MeanSurface))


def test_further_points_on_a_measured_gpu(data_folder: Path) -> None:
    """Two points that the predictor chose, GTX 1080 Ti, five folds of applications.

    Measured when written: 1.62, 1.12, 0.91 % at 0, 1, 2 points.
    """
    table = measured(data_folder, "gtx1080ti")
    base, found = table.grid.mid, []
    for train, test in folds("k-fold", table.applications, 0):
        model = Bottleneck(intervals=False).fit(table.select(train), base)
        found += [kernel_errors(model, table.select([k]), base, 2) for k in test]
    errors = np.concatenate([np.array(one["errors"]) for one in found], axis=1).mean(axis=1)
    assert errors[0] > 1.4
    assert errors[1] < 1.25
    assert errors[2] < 1.05


def test_a_further_point_on_a_gpu_that_was_not_learnt_from(data_folder: Path) -> None:
    """P100, learnt from the three other tables: its highest engine clock, 1328, and 810 MHz.

    Measured when written: 0.7 % at the point and 1.9 % at the other engine clocks; 2.8 and 2.7 %
    where the share that waits for memory was all that a point could move.
    """
    others = [measured(data_folder, name) for name in FILES if name != "p100"]
    model = Bottleneck(intervals=False).fit(others, [table.grid.highest for table in others])
    table = measured(data_folder, "p100")
    base, further = (replace(table.grid.highest, engine_mhz=mhz) for mhz in (1328, 810))
    point = MeasuredPoint(further, table.profiles(further).time_ms, None)
    profiles = replace(table.profiles(base), points=(point,))
    times = model.predict(profiles, table.grid).values * profiles.time_ms[:, None, None, None]
    errors = 100 * np.abs(times / table.time_ms - 1)[:, 0, :, 0].mean(axis=0)
    clocks = table.grid.engine_mhz
    assert errors[clocks.index(810)] < 1
    assert np.mean([errors[clocks.index(mhz)] for mhz in clocks if mhz not in (1328, 810)]) < 2
