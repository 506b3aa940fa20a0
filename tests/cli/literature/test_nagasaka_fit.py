"""mlscale literature nagasaka-fit and -estimate on made kernels of known energies."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import powered, tidy

from mlscale.papers.nagasaka_model import FittedPowerModel

FIT, ESTIMATE = ("literature", "nagasaka-fit"), ("literature", "nagasaka-estimate")
TRAINED = 20


def table(folder: Path, name: str, **replaced: Any) -> Path:
    """24 made kernels."""
    return tidy.write_csv(folder / name, powered.rows(powered.profiles(24, **replaced)))


@pytest.fixture
def model(tmp_path: Path, capsys: Capture) -> Path:
    """A model of the first 20 kernels."""
    rows = powered.rows(powered.profiles(24))[:TRAINED]
    trained = tidy.write_csv(tmp_path / "trained.csv", rows)
    path = tmp_path / "power.json"
    out, _ = succeed(capsys, *FIT, trained, "-o", path)
    assert "Mem/Inst on made-gpu at cu=2,engine=1000,memory=1000, of 20 kernels" in out
    assert "intercept 30.0 W" in out
    return path


def test_kernels_that_were_not_measured(tmp_path: Path, capsys: Capture, model: Path) -> None:
    """The made law is 30 W, 1 nJ a memory access and 0.3 nJ an instruction."""
    rows = [
        {name: value for name, value in row.items() if name != "power_w"}
        for row in powered.rows(powered.profiles(24))
    ]
    unmeasured = tidy.write_csv(tmp_path / "new.csv", rows)
    written = tmp_path / "estimates.csv"
    out, _ = succeed(capsys, *ESTIMATE, model, unmeasured, "--json", "-o", written)
    document = json.loads(out)
    truth = powered.profiles(24)
    estimated = [row["estimated_w"] for row in document["estimates"]]
    assert estimated == pytest.approx(truth.power_w, rel=1e-3)
    energy = [row["energy_mj"] for row in document["estimates"]]
    assert energy == pytest.approx(np.array(estimated) * truth.time_ms)
    assert {row["actual_w"] for row in document["estimates"]} == {document["mape"]} == {None}
    with written.open(newline="") as file:
        assert [float(row["estimated_w"]) for row in csv.DictReader(file)] == estimated
    known = FittedPowerModel.load(model)
    assert known.intercept_w == pytest.approx(powered.INTERCEPT_W, rel=1e-3)
    energies = (powered.MEMORY_J, powered.INSTRUCTION_J)
    assert known.model.energy_j.tolist() == pytest.approx(energies, rel=1e-3)
    assert known.mape < 0.1


def test_flags_and_the_error_of_measured_kernels(
    tmp_path: Path, capsys: Capture, model: Path
) -> None:
    instructions = powered.columns(24)["inst_executed"]
    instructions[3] *= 100
    texture, blocks = np.full(24, 1e6), np.full(24, 64.0)
    texture[4], blocks[5] = 5e7, 7
    path = table(
        tmp_path,
        "flagged.csv",
        inst_executed=instructions,
        tex_cache_transactions=texture,
        workgroups=blocks,
    )
    out, _ = succeed(capsys, *ESTIMATE, model, path)
    for line in (
        "flag: k3: instructions: outside the training kernels'",
        "flag: k4: it reads textures",
        "flag: k5: it has fewer than 4 blocks per CU",
        "mean error of the measured: ",
    ):
        assert line in out
    document = json.loads(succeed(capsys, *ESTIMATE, model, path, "--json")[0])
    rows = document["estimates"]
    errors = [100 * abs(row["estimated_w"] / row["actual_w"] - 1) for row in rows]
    assert document["mape"] == pytest.approx(np.mean(errors))
    assert document["mape"] > 10  # by k3, whose instructions were never that many


def test_what_was_never_there_in_training(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "power.json"
    succeed(capsys, *FIT, table(tmp_path, "made.csv"), "-o", path, "--counters", "Full")
    loads = np.zeros(24)
    loads[5] = 1e6
    other = table(tmp_path, "other.csv", local_load_transactions=loads)
    out, _ = succeed(capsys, *ESTIMATE, path, other)
    assert "flag: k5: local_load: it was zero in all of the training kernels" in out


def test_as_in_the_paper(tmp_path: Path, capsys: Capture) -> None:
    texture = np.where(np.arange(24) == 3, 5e7, 1e6)
    path = table(tmp_path, "made.csv", tex_cache_transactions=texture)
    options = ("-o", tmp_path / "power.json", "--as-in-paper", "--json")
    assert json.loads(succeed(capsys, *FIT, path, *options)[0])["n_kernels"] == 23


class TestBadInput:
    def test_another_gpu_or_configuration(
        self, tmp_path: Path, capsys: Capture, model: Path
    ) -> None:
        rows = powered.rows(powered.profiles(24))
        path = tidy.write_csv(tmp_path / "new.csv", [{**r, "device": "other"} for r in rows])
        assert "is of device 'other'" in refuse(capsys, tmp_path, *ESTIMATE, model, path)
        path = tidy.write_csv(tmp_path / "new.csv", [{**r, "engine_mhz": 900} for r in rows])
        assert "has no row at the base" in refuse(capsys, tmp_path, *ESTIMATE, model, path)

    def test_missing_counters_are_all_named(
        self, tmp_path: Path, capsys: Capture, model: Path
    ) -> None:
        path = table(tmp_path, "new.csv", inst_executed=None, l2_write_transactions=None)
        message = refuse(capsys, tmp_path, *ESTIMATE, model, path)
        assert "'inst_executed'" in message
        assert "'l2_write_transactions'" in message

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"format": "other"}, "is not a model of 'mlscale literature nagasaka-fit'"),
            ({"variables": [{"name": "rm -rf"}]}, "there is no variable 'rm -rf'"),
            ({"intercept_w": "much"}, "is damaged"),
            ({"base": {}}, "is damaged"),
        ],
    )
    def test_another_file(
        self,
        tmp_path: Path,
        capsys: Capture,
        model: Path,
        changed: dict[str, Any],
        message: str,
    ) -> None:
        model.write_text(json.dumps(json.loads(model.read_text()) | changed))
        path = table(tmp_path, "new.csv")
        assert message in refuse(capsys, tmp_path, *ESTIMATE, model, path)
