"""The function study: a frame of the rows that the command prints, for tables in any shape."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, succeed
from synthetic import bottleneck_kernels, frugal
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid
from mlscale.predictors.wu import Wu
from mlscale.studies.study import STUDIES, plan, study

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
DATA = made.measurements(per_group=2, grid=GRID)
CHEAP: dict[str, Any] = {"predictors": "nearest", "features": "raw", "seeds": 1, "jobs": 1}


def test_rows_are_those_of_the_command(capsys: Capture, tmp_path: Path) -> None:
    DATA.write(tmp_path / "t.csv")
    frame = study("errors", tmp_path / "t.csv", quantity="time", **CHEAP)
    given = ("--predictor", "nearest", "--features", "raw", "--seeds", 1, "--quantity", "time")
    out, _ = succeed(capsys, "study", "errors", tmp_path / "t.csv", *given, "--json")
    rows = json.loads(out)["rows"]
    assert frame["mape"].tolist() == [row["mape"] for row in rows]
    assert frame["predictor"].tolist() == [row["predictor"] for row in rows]
    assert {"cu_count", "engine_mhz", "memory_mhz"} <= set(frame)
    assert set(frame["table"]) == {"t"}


@pytest.mark.parametrize(
    ("tables", "names"),
    [(DATA, ["made-gpu"]), ([DATA], ["made-gpu"]), ({"a": DATA, "b": DATA}, ["a", "b"])],
)
def test_tables_in_any_shape(tables: Any, names: list[str]) -> None:
    frame = study("errors", tables, quantity="time", **CHEAP)
    assert list(dict.fromkeys(frame["table"])) == names


@pytest.mark.parametrize("base", ["mid", GRID.mid, [np.int64(1), 1, 1]])
def test_bases_in_any_shape(base: Any) -> None:
    frame = study("errors", DATA, quantity="time", base=base, **CHEAP)
    assert set(frame["cu_count"]) == {8}


def test_tables_of_other_grids_take_their_own_highest_and_mid() -> None:
    """Two grids, so four configurations, by hand: index length // 2, and the top of each axis."""
    small = made.measurements(grid=ConfigGrid((4,), (500.0, 700.0, 900.0), (400.0,)))
    tables = {"a": DATA, "b": small}
    for base, engines in (("mid", [1000, 700]), ("highest", [1000, 900])):
        for name in STUDIES:
            frame = study(name, tables, base=base, **CHEAP)
            assert frame.groupby("table")["engine_mhz"].unique().explode().tolist() == engines


def test_default_is_the_predictor_that_suits_each_table() -> None:
    """`bottleneck` where it knows the GPU's peaks and counters, else `wu`: decision 0008."""
    tables = {"known": bottleneck_kernels.measurements(4), "made": DATA}
    for name in STUDIES:
        parts = [
            (p.table, p.candidate.name) for p in plan(name, tables, predictors="default").parts
        ]
        assert ("known", "bottleneck") in parts
        assert ("made", "wu") in parts
        assert ("known", "wu") not in parts


def test_what_suits_another_table_alone_is_left_out() -> None:
    """nvprof's counters of a known GPU give features and models that made counters do not."""
    tables = {"known": bottleneck_kernels.measurements(4), "made": DATA}
    asked = {"predictors": ["wu", "bottleneck"], "features": ["utilisation", "raw"], "seeds": 1}
    planned = plan("errors", tables, quantity="time", **asked)
    learnt = {(p.table, p.candidate.name, p.candidate.features) for p in planned.parts}
    assert {part for part in learnt if part[1] in ("wu", "bottleneck")} == {
        ("known", "wu", "utilisation"),
        ("known", "wu", "raw"),
        ("known", "bottleneck", None),
        ("made", "wu", "raw"),
    }


def test_regret() -> None:
    """`nearest` finds every optimum of kernels of two laws: synthetic/frugal.py."""
    frame = study("advice", frugal.measurements(), objectives="energy", **CHEAP)
    regrets = dict(zip(frame["advisor"], frame["regret_mean"], strict=True))
    assert regrets["nearest"] == pytest.approx(0, abs=1e-9)
    assert regrets["highest-clocks"] > 0


# One kernel has another count than all others, or no power at a configuration.
ONE_TELLS_APART = replace(
    DATA,
    applications=("odd", *DATA.applications[1:]),
    counter_samples=np.ones_like(DATA.counter_samples),
)
ONE_TELLS_APART.counter_samples[:, 0] = 2.0
ONE_LACKS_POWER = replace(DATA, power_samples=np.copy(DATA.power_samples))
ONE_LACKS_POWER.power_samples[:, 0, 0, 0, 0] = np.nan
ONE_CONFIGURATION = made.measurements(grid=ConfigGrid((4,), (500.0,), (400.0,)))


@pytest.mark.parametrize(
    ("name", "tables", "options", "problem"),
    [
        ("clusters", DATA, {}, "there is no study 'clusters'; one of errors, advice$"),
        ("errors", DATA, {"points": 3}, "the study 'errors' has no option 'points'; it has pred"),
        ("advice", DATA, {"train_on": [DATA]}, "the study 'advice' has no option 'train_on'; it"),
        ("errors", DATA, {"split": "k-fold"}, "the study 'errors' has no option 'split'; it has"),
        ("errors", DATA, {"folds": 1}, "folds are only for the protocol 'k-fold', and at least 2"),
        (
            "errors",
            DATA,
            {"folds": 9, "protocol": "holdout"},
            "folds are only for the protocol 'k-fold'",
        ),
        (
            "errors",
            DATA,
            {"folds": 5, "protocol": "holdout"},
            "folds are only for the protocol 'k-fold'",
        ),
        (
            "errors",
            {"t": ONE_TELLS_APART},
            {"predictors": "wu"},
            "'t', application odd held out: 'wu' needs .* features differ; give .* that do$",
        ),
        (
            "errors",
            {"t": ONE_LACKS_POWER},
            {},
            "the table of 'made-gpu' has no 'power_w' of .* .1 case in all.: leave out the rows",
        ),
        ("errors", DATA, {"protocol": "half"}, "there is no protocol 'half'; one of leave-one-app"),
        ("errors", DATA, {"quantity": "energy"}, "there is no quantity 'energy'; one of time, p"),
        ("errors", DATA, {"predictors": "woo"}, "there is no predictor 'woo'; one of no-scaling"),
        ("advice", DATA, {"objectives": "joy"}, "there is no objective 'joy'; one of energy, edp"),
        ("errors", [], {}, "a study needs a table$"),
        ("errors", [DATA, DATA], {}, "two tables are named 'made-gpu'; give a dict of tables by"),
        (
            "errors",
            {"t": ONE_CONFIGURATION},
            {},
            "'t' has one configuration; a study needs at least two",
        ),
        (
            "advice",
            {"t": ONE_CONFIGURATION},
            {},
            "'t' has one configuration; a study needs at least two",
        ),
    ],
)
def test_what_is_wrong_is_told(
    name: str, tables: Any, options: dict[str, Any], problem: str
) -> None:
    with refused(f"^{problem}"):
        study(name, tables, **options)


def test_time_where_power_is_lacking() -> None:
    """The kernels' times are whole, so the errors are those of the whole table."""
    found, whole = (
        study("errors", table, quantity="time", **CHEAP)["mape"]
        for table in (ONE_LACKS_POWER, DATA)
    )
    assert found.tolist() == whole.tolist()


def test_what_one_fold_lacks_is_told_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wu, "fit_together", None)
    with refused("application odd held out"):
        study("errors", ONE_TELLS_APART, "wu", jobs=1)
