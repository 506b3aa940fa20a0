"""Regret of advice on public measurements, leave-one-application-out, base mid-grid."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from mlscale import DataWarning
from mlscale.advice.objectives import Limits
from mlscale.data.public.nv_dvfs import read_nv_dvfs
from mlscale.studies import advice, regret

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
    tables: advice.Tables = {}
    advisors = {}
    for name, file in FILES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            data = read_nv_dvfs(data_folder / file, None)
        tables[name] = data, advice.ask(name, data, data.grid.mid, ("energy",), Limits(), None)
        advisors[name] = advice.advisors(("nearest",), ("utilisation",), data)
    units = advice.plan(tables, advisors, 8, "leave-one-application-out", 1)
    found = regret.rows(regret.choices(advice.run(units, tables), tables), tables, 1)
    return {(row["table"], row["advisor"]): row for row in found}


class TestEnergy:
    @pytest.mark.parametrize("table", FILES)
    def test_the_mean_regret_of_nearest_is_below_4_percent(self, rows: Rows, table: str) -> None:
        # The bound is ours: half of what the best strategy without a model may cost.
        assert rows[table, "nearest"]["regret_mean"] < 4.0

    @pytest.mark.parametrize("table", FILES)
    @pytest.mark.parametrize("strategy", advice.STRATEGIES)
    def test_it_costs_less_than_every_strategy(self, rows: Rows, table: str, strategy: str) -> None:
        assert rows[table, "nearest"]["regret_mean"] < rows[table, strategy]["regret_mean"]
