"""Regret of advice on public measurements, leave-one-application-out, base mid-grid."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from mlscale import DataWarning
from mlscale.data.public.nv_dvfs import read_nv_dvfs
from mlscale.studies.regret import STRATEGIES, RegretStudy

FILES = {
    "gtx980-low": "dvfs/gtx980-low-dvfs-real-small-workload-Performance-Power.csv",
    "gtx980-high": "dvfs/gtx980-high-dvfs-real-small-workload-Performance-Power.csv",
    "gtx1080ti": "dvfs/gtx1080ti-dvfs-real-Performance-Power.csv",
    "p100": "dvfs/p100-dvfs-real-Performance-Power.csv",
}

Rows = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def rows(data_folder: Path) -> Rows:
    """The figures for energy of `nearest` and of the strategies, by table and advisor."""
    tables = {}
    for name, file in FILES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            tables[name] = read_nv_dvfs(data_folder / file, None)
    planned = RegretStudy(
        name="advice",
        tables=tables,
        predictors=["nearest"],
        features=["utilisation"],
        objectives=["energy"],
        seeds=1,
    )
    rows = planned.rows(planned.results())
    return {(row["table"], row["advisor"]): row for row in rows}


class TestEnergy:
    @pytest.mark.parametrize("table", FILES)
    def test_the_mean_regret_of_nearest_is_below_4_percent(self, rows: Rows, table: str) -> None:
        # The bound is ours: half of what the best strategy without a model may cost.
        assert rows[table, "nearest"]["regret_mean"] < 4.0

    @pytest.mark.parametrize("table", FILES)
    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_it_costs_less_than_every_strategy(self, rows: Rows, table: str, strategy: str) -> None:
        assert rows[table, "nearest"]["regret_mean"] < rows[table, strategy]["regret_mean"]
