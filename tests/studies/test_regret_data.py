"""Regret of advice on public measurements, leave-one-application-out, base mid-grid."""

from pathlib import Path
from typing import Any

import pytest
from public_tables import FILES, of_all_gpus

from mlscale.studies.base import Tables
from mlscale.studies.regret import STRATEGIES, RegretStudy

Rows = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def tables(data_folder: Path) -> Tables:
    """The measurements of four GPUs."""
    return of_all_gpus(data_folder)


def figures(tables: Tables, runs: int) -> Rows:
    """The figures for energy of `nearest` and of the strategies, by table and advisor."""
    planned = RegretStudy(
        tables=tables,
        base="mid",
        predictors=["nearest"],
        features=["utilisation"],
        objectives=["energy"],
        seeds=1,
        runs=runs,
    )
    rows = planned.rows(planned.results())
    return {(row["table"], row["advisor"]): row for row in rows}


@pytest.fixture(scope="module")
def rows(tables: Tables) -> Rows:
    """Of each kernel by itself."""
    return figures(tables, 0)


@pytest.fixture(scope="module")
def rows_of_runs(tables: Tables) -> Rows:
    """Of 200 random runs."""
    return figures(tables, 200)


@pytest.mark.parametrize("table", FILES)
def test_the_mean_regret_of_nearest(rows: Rows, rows_of_runs: Rows, table: str) -> None:
    """The bounds are ours: half of what the best strategy without a model may cost, and half of
    that for runs, as errors of kernels even out."""
    regret = rows[table, "nearest"]["regret_mean"]
    assert regret < 4.0
    assert rows_of_runs[table, "nearest"]["regret_mean"] < 2.0
    assert all(regret < rows[table, strategy]["regret_mean"] for strategy in STRATEGIES)
