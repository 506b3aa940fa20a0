"""In whatever order a table has its rows and columns, what is learnt from it is the same.

No number is expected here but that of the same table in another order, to the last digit.
"""

import csv
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli
from public_tables import FILES, measured
from synthetic import bottleneck_kernels as made

from mlscale import Measurements
from mlscale.studies.study import plan

TIMINGS = ("train_seconds", "predict_microseconds")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One table as it was written, and twice with rows and columns shuffled; two are of one app."""
    folder = tmp_path_factory.mktemp("order")
    exact = made.measurements(14)
    noise = np.exp(np.random.default_rng(0).normal(0, 0.05, exact.time_samples.shape))
    replace(exact, time_samples=exact.time_samples * noise).write(folder / "0.csv")
    lines = list(csv.reader((folder / "0.csv").read_text(encoding="utf-8").splitlines()))
    application, kernel = lines[0].index("application"), lines[0].index("kernel")
    for line in lines[1:]:
        line[application] = "both" if line[kernel] in ("k2", "k6") else line[kernel]
    for seed in range(3):
        rows, columns, dice = lines[1:], list(range(len(lines[0]))), random.Random(seed)
        if seed:
            dice.shuffle(rows)
            dice.shuffle(columns)
        with (folder / f"{seed}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([line[c] for c in columns] for line in [lines[0], *rows])
    return [folder / f"{seed}.csv" for seed in range(3)]


def predictions(cli: Cli, model: Path, profile: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cli.json("predict", model, profile)["predictions"]
    return rows


@pytest.mark.parametrize("predictor", ["bottleneck", "wu", "nearest", "mean-surface"])
def test_a_model_is_the_same(cli: Cli, tables: list[Path], tmp_path: Path, predictor: str) -> None:
    made.measurements(3, seed=1).write(tmp_path / "profile.csv")
    found = []
    for table in tables:
        model = tmp_path / f"{table.stem}.mlscale"
        cli("train", table, "--base", "mid", "--predictor", predictor, "-o", model)
        found.append(predictions(cli, model, tmp_path / "profile.csv"))
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "predictors"),
    [
        ("leave-one-application-out", ("nearest", "mean-surface")),
        ("k-fold", ("wu", "nearest")),
        ("holdout", ("bottleneck", "extra-trees")),
        ("random-kernels", ("wu", "nearest")),
    ],
)
def test_a_study_is_the_same(
    cli: Cli, tables: list[Path], tmp_path: Path, protocol: str, predictors: tuple[str, str]
) -> None:
    found = []
    for table in tables[:2]:
        same_name = tmp_path / "table.csv"
        same_name.write_bytes(table.read_bytes())
        given = [word for name in predictors for word in ("--predictor", name)]
        given += ["--protocol", protocol, "--seeds", "1", "--json"]
        rows = json.loads(cli("study", "errors", same_name, *given))["rows"]
        found.append([{k: v for k, v in row.items() if k not in TIMINGS} for row in rows])
    assert found[1] == found[0]


def left_out(data: Measurements, predictor: str, quantities: list[str]) -> dict[str, list[float]]:
    """By quantity and kernel its errors, each application left out in turn."""
    study = plan("errors", {"t": data}, predictors=[predictor], quantity=quantities, seeds=1)
    return {
        f"{part.quantity} of {kernel}": errors
        for part, result in zip(study.parts, study.results(), strict=True)
        if part.candidate.name == predictor
        for kernel, errors in zip(result["kernels"], result["errors"], strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "predictor", "orders", "quantities"),
    [*((name, "bottleneck", 10, ["time", "power"]) for name in FILES), ("p100", "wu", 3, ["time"])],
)
def test_leave_one_out_on_real_measurements_is_the_same(
    data_folder: Path, table: str, predictor: str, orders: int, quantities: list[str]
) -> None:
    data = measured(data_folder, table)
    first = left_out(data, predictor, quantities)
    assert len(first) == len(quantities) * len(data.kernels)
    for seed in range(1, orders):
        kernels = np.random.default_rng(seed).permutation(len(data.kernels))
        assert left_out(data.select(kernels), predictor, quantities) == first
