"""What `wu` reaches on public measurements, against the bounds that the project set itself.

The bounds are of the time MAPE of `wu`, leave-one-application-out, base mid-grid, 8
clusters, mean of 3 seeds. A trial with scikit-learn's parts gave 5.4 / 4.5 / 2.7 / 4.7 % on the
four GPUs (utilisation features) and 16.6 % on the simulated set (table2).
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_tables import FILE_49, FILES, GTX980_49, measured, of_all_gpus
from synthetic import tidy

import mlscale
from mlscale import Measurements
from mlscale.data.datasets import path
from mlscale.studies.errors import ErrorStudy

BOUNDS = {"gtx980-low": 6.0, "gtx980-high": 5.1, "gtx1080ti": 3.3, "p100": 5.3}
SIMULATED, SIMULATED_BOUND = "simulated-gcn3", 18.5
SEEDS = 3

Rows = dict[tuple[str, str], dict[str, Any]]


def study(tables: dict[str, Measurements], features: str, seeds: int = SEEDS) -> Rows:
    """The rows of `wu` and of the mean surface, by table and predictor."""
    planned = ErrorStudy(
        tables=tables,
        predictors=["wu"],
        features=[features],
        quantity="time",
        clusters=8,
        seeds=seeds,
    )
    rows = planned.rows(planned.results())
    return {(row["table"], row["predictor"]): row for row in rows}


@pytest.fixture(scope="module")
def of_gpus(data_folder: Path) -> Rows:
    return study(of_all_gpus(data_folder), "utilisation")


@pytest.fixture(scope="module")
def simulated() -> Rows:
    return study({SIMULATED: mlscale.read(path("simulated-gcn3.parquet"))}, "table2")


@pytest.fixture(scope="module")
def data(data_folder: Path) -> Measurements:
    return measured(data_folder, GTX980_49)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
class TestMeasuredGpus:
    def test_wu_is_within_its_bound(self, of_gpus: Rows, name: str) -> None:
        row = of_gpus[name, "wu"]
        assert row["mape"] <= BOUNDS[name]
        assert (row["n_kernels"], len(row["mape_by_seed"])) == (30, SEEDS)

    def test_wu_is_better_than_the_mean_surface(self, of_gpus: Rows, name: str) -> None:
        """By mean and by median, or the profile would be worth nothing."""
        for figure in ("mape", "median_kernel"):
            assert of_gpus[name, "wu"][figure] < of_gpus[name, "mean-surface"][figure]


@pytest.mark.slow
class TestSimulatedSet:
    def test_wu_is_within_its_bound(self, simulated: Rows) -> None:
        row = simulated[SIMULATED, "wu"]
        assert row["base"] == {"cu_count": 16, "engine_mhz": 800, "memory_mhz": 700}
        assert row["mape"] <= SIMULATED_BOUND
        assert row["n_kernels"] == 48

    def test_wu_is_better_than_the_mean_surface(self, simulated: Rows) -> None:
        assert simulated[SIMULATED, "wu"]["mape"] < simulated[SIMULATED, "mean-surface"]["mape"]

    def test_mean_surface_is_what_the_trial_found(self, simulated: Rows) -> None:
        """28.1 % there, with one kernel fewer, and another mean perhaps: to 2 points."""
        assert simulated[SIMULATED, "mean-surface"]["mape"] == pytest.approx(28.1, abs=2)


class TestFileOf49Settings:
    """Wang and Chu's own experiment; the numbers are those of the data's README."""

    def test_holds_what_its_card_says(self, data: Measurements) -> None:
        clocks = (400, 500, 600, 700, 800, 900, 1000)
        assert (data.device, data.grid.shape) == ("gtx980", (1, 7, 7))
        assert data.grid.engine_mhz == data.grid.memory_mhz == clocks
        assert len(data.kernels) == len(set(data.kernels)) == 20
        assert len(set(data.applications)) == 19
        assert data.power_w is None
        assert data.metadata["power_kind"] is None

    def test_every_time_is_at_its_clocks(self, data: Measurements, data_folder: Path) -> None:
        rows = tidy.read_csv(data_folder / FILE_49)
        assert len(rows) == 980
        for row in rows:
            engine = data.grid.engine_mhz.index(float(row["coreF"]))
            memory = data.grid.memory_mhz.index(float(row["memF"]))
            time = data.time_ms[data.kernels.index(row["appName"]), 0, engine, memory]
            assert time == float(row["time/ms"])

    def test_features_can_be_made_of_its_ten_counters(self, data: Measurements) -> None:
        found = study({"few": data}, "utilisation", seeds=1)
        assert np.isfinite(found["few", "wu"]["mape"])
        assert found["few", "wu"]["mape"] < found["few", "mean-surface"]["mape"]
