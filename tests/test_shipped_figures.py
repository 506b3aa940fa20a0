"""The shipped models' figures, so that a drift is seen: on data that ship, and on made data.

FIGURES are regression only: what the models gave when they were written down, to 5 %. They are no
claim of accuracy: the made kernels' laws are not those of real GPUs, the simulated model is
asked for kernels that it was trained on, but for `fastwalshtransform`, and so is runs.
"""

import csv
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from run_predictions import by_predictors, outcome
from run_tables import headroom
from synthetic import bottleneck_kernels as made

from mlscale import ConfigGrid, HardwareConfig, Measurements, read
from mlscale.data.datasets import path
from mlscale.model.model import load
from mlscale.model.shipped import model_for

TOLERANCE = 0.05
TABLES = Path(__file__).parents[1] / "docs" / "tables"
UNSEEN = "fastwalshtransform"
GTX980 = ConfigGrid((16,), (600.0, 900.0, 1126.0), (2000.0, 3000.0, 3150.0))
FIGURES = {
    "simulated-gcn3": {"time": 7.722, "half_width": 15.45},
    "simulated-gcn3, unseen": {"time": 11.49, "half_width": 27.63},
    "kernels": {"time": 0.879, "half_width": 10.64, "power": 23.23},
}


@cache
def figures(case: str) -> dict[str, float]:
    """Mean errors [%] of time and power, and mean half-width of the times' intervals [%].

    Over all kernels and configurations without the base, by the shipped model; power where given.
    """
    data, base = data_of(case)
    profiles = data.profiles(base)
    targets = [config for config in data.grid if config != base]
    model = model_for(load(path(f"{case.partition(',')[0]}.mlscale")), profiles, targets)
    columns = model.predict(profiles, 0.9).columns(targets)
    low, high = columns["time_ms_low"], columns["time_ms_high"]
    errors = {"half_width": 50 * float(((high - low) / columns["time_ms"]).mean())}
    for quantity, column in (("time", "time_ms"), ("power", "power_w")):
        if quantity == "power" and np.isnan(columns[column]).all():
            continue
        at = [data.grid.index(config) for config in targets]
        measured = np.array([data.quantity(quantity)[(slice(None), *index)] for index in at])
        errors[quantity] = 100 * float(np.nanmean(np.abs(columns[column] / measured.T.ravel() - 1)))
    return errors


def data_of(case: str) -> tuple[Measurements, HardwareConfig]:
    """What a model is asked for, and from which base."""
    name, _, unseen = case.partition(",")
    if name == "kernels":
        return made.measurements(24, seed=1, grid=GTX980), GTX980.mid
    data = read(path("simulated-gcn3.parquet"))
    chosen = [(application == UNSEEN) == bool(unseen) for application in data.applications]
    return data.select(np.array(chosen)), data.grid.config("cu=16,engine=800,memory=700")


@pytest.mark.parametrize(("case", "figure"), [(c, f) for c in FIGURES for f in FIGURES[c]])
def test_figures_have_not_drifted(case: str, figure: str) -> None:
    """Regression only."""
    assert figures(case)[figure] == pytest.approx(FIGURES[case][figure], rel=TOLERANCE)


FROM_READINGS = {"time": 1.994, "power": 2.602, "energy": 3.193}


@pytest.mark.parametrize("quantity", FROM_READINGS)
def test_figures_from_two_readings_have_not_drifted(quantity: str) -> None:
    """Regression only: mean errors [%] on an RTX 3060, which the model learnt from."""
    predictors = load(path("runs.mlscale")).predictors
    by_model = partial(by_predictors, predictors["time"], predictors["power"])
    error = outcome(headroom("headroom-rtx3060"), by_model, (2 / 3,)).errors[quantity].mean()
    assert error == pytest.approx(FROM_READINGS[quantity], rel=TOLERANCE)


def test_the_card_of_any_gpu_has_the_figures_of_its_table() -> None:
    """docs/tables/new-gpus.csv, which the command of the card wrote."""
    held_out = load(path("kernels.mlscale")).card["time_on_gpus_left_out"]
    with (TABLES / "new-gpus.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["table"]: row for row in csv.DictReader(file)}
    assert set(held_out) == set(rows)
    for table, row in rows.items():
        mean = held_out[table]["mean_error_percent"]
        assert float(row["mape"]) == pytest.approx(mean, abs=0.051)
