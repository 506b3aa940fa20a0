"""The study of advice on a GPU left out, from two readings of each run, within a limit of time.

Numbers: the tables of Headroom that the project ships; bounds are loose.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from regret_study import spoilt

from mlscale import Limits, Measurements, read
from mlscale.studies.crossval import second_reading
from mlscale.studies.regret import RegretStudy

DATASETS = Path(__file__).parents[2] / "datasets"
GPUS = ("rtx3060", "rtx3070ti", "rtx5060ti")


@pytest.fixture(scope="module")
def tables() -> dict[str, Measurements]:
    with pytest.warns(UserWarning, match="dropped"):
        return {gpu: read(DATASETS / f"headroom-{gpu}.csv", incomplete="drop") for gpu in GPUS}


def study_of(tables: dict[str, Measurements]) -> RegretStudy:
    return RegretStudy(
        tables=tables,
        predictors=["runs"],
        objectives=["energy"],
        base="highest",
        limits=Limits(max_slowdown_percent=5),
        seeds=1,
    )


def choices_on(study: RegretStudy, table: str) -> Any:
    """What `runs` chooses on one of the tables."""
    function, calls = study.calls()
    [call] = [c for c in calls if (c[0].table, c[0].candidate.name) == (table, "runs")]
    return function(*call)["energy"]


@pytest.mark.slow
def test_the_cautious_pass_the_limit_no_oftener_and_save_no_more(
    tables: dict[str, Measurements],
) -> None:
    study = study_of(tables)
    rows = [row for row in study.rows(study.results()) if row["advisor"] == "runs"]
    assert [row["rule"] for row in rows] == ["cautious", "expected"] * len(GPUS)
    for cautious, expected in zip(rows[::2], rows[1::2], strict=True):
        assert cautious["passes_limit_percent"] <= min(6, expected["passes_limit_percent"])
        assert cautious["saving_mean"] <= expected["saving_mean"] <= cautious["best_saving_mean"]
        assert cautious["slowdown_mean"] < expected["slowdown_mean"]
        assert (cautious["interval_holds_percent"] or 100) > 80  # None: all stay at the base


def test_nothing_but_two_readings_of_a_run_is_seen(tables: dict[str, Measurements]) -> None:
    table = study_of(tables).tables["rtx3060"]
    base = table.grid.highest
    other = spoilt(table, base, 0)
    read_at = (0, 0, *second_reading(table, base))
    for samples, true in (
        (other.time_samples, table.time_samples),
        (other.power_samples, table.power_samples),
    ):
        assert samples is not None
        assert true is not None
        samples[read_at] = true[read_at]
    assert not np.array_equal(other.time_samples, table.time_samples)
    honest, spoiled = (
        choices_on(study_of(tables | {"rtx3060": one}), "rtx3060") for one in (table, other)
    )
    assert honest == spoiled
