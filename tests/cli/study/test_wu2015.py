"""The studies of Wu et al. on the command line: document, files, text, refusals."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import kernels as made
from synthetic import tidy

from mlscale import ConfigGrid
from mlscale.cli.main import main
from mlscale.studies.candidates import BASELINES
from mlscale.studies.wu2015 import STUDIES

pytestmark = pytest.mark.usefixtures("one_process")

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
KEYS = {  # docs/file-formats.md
    *("table", "quantity", "predictor", "features", "clusters", "seed"),
    *("cu_count", "engine_mhz", "memory_mhz", "n_kernels"),
}
FIGURES = {"mape", "median_kernel", "p90", "worst_kernel", "worst_kernel_mape"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 kernels of 8 applications, each a little off its group's law."""
    data = made.measurements(per_group=2, grid=GRID)
    noise = np.random.default_rng(3).uniform(0.9, 1.1, data.time_samples.shape)
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    replace(data, time_samples=data.time_samples * noise).write(path)
    return path


@pytest.fixture(scope="module")
def oracle(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study of the time."""
    folder = tmp_path_factory.mktemp("oracle")
    given = ["study", "oracle", str(table), "--seeds", "1", "--quantity", "time"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        patch.setattr("mlscale.report.wu2015_figures.draw_study", lambda *_: [])
        assert main([*given, "-o", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("study", STUDIES)
class TestStudies:
    def test_document_and_files(
        self, capsys: Capture, table: Path, tmp_path: Path, study: str
    ) -> None:
        clusters = ["--clusters", 3] if study == "base-configuration" else []
        quantity = "power" if study == "cluster-count" else "time"
        given = ["study", study, table, *clusters, "--seeds", 2, "--quantity", quantity]
        out, _ = succeed(capsys, *given, "--json", "-o", tmp_path)
        document = json.loads(out)
        assert (document["study"], document["tables"]) == (study, ["t"])
        assert (document["protocol"], document["predictor"]) == ("holdout", "wu")
        rows = document["rows"]
        figures = {"bin_low", "count"} if study == "error-distribution" else FIGURES
        assert all(row.keys() == KEYS | figures for row in rows)
        assert {row["quantity"] for row in rows} == {quantity}
        assert {row["seed"] for row in rows} == {0, 1}
        oracle = {"wu-oracle"} if study == "oracle" else set()
        assert {row["predictor"] for row in rows} == {"wu", *BASELINES, *oracle}
        bases = {(row["cu_count"], row["engine_mhz"], row["memory_mhz"]) for row in rows}
        assert len(bases) == (8 if study == "base-configuration" else 4)  # mid-grid is the highest
        assert (tmp_path / "study.json").read_text() == out
        found = tidy.read_csv(tmp_path / f"{study}.csv")
        assert len(found) == len(rows)
        for have, want in zip(found, rows, strict=True):
            for key, value in want.items():
                if isinstance(value, int | float):
                    assert float(have[key]) == value
                else:
                    assert have[key] == (value or "")
        suffixes = ("-heat-maps", "-boxes") if study == "base-configuration" else ("",)
        assert {path.name for path in tmp_path.iterdir()} == {
            f"{study}.csv", "study.json",
            *(f"{study}-t-{quantity}{s}.{kind}" for s in suffixes for kind in ("png", "svg")),
        }  # fmt: skip

    def test_text_shows_the_baselines(self, capsys: Capture, table: Path, study: str) -> None:
        clusters = ["--clusters", 3] if study == "base-configuration" else []
        given = ["study", study, table, *clusters, "--seeds", 1, "--quantity", "time"]
        out, err = succeed(capsys, *given)
        assert err == ""
        assert out.startswith(f"t: {study}, error of time [%], wu with raw features, ")
        assert "holdout" in out
        for name in BASELINES:
            assert name in out


@pytest.mark.usefixtures("no_figures")
class TestOptions:
    def test_parquet(self, capsys: Capture, table: Path, tmp_path: Path) -> None:
        import pyarrow.parquet as pq

        given = ["study", "oracle", table, "--seeds", 1, "--quantity", "time", "-o", tmp_path]
        succeed(capsys, *given, "--format", "parquet")
        found = pq.read_table(tmp_path / "oracle.parquet").to_pylist()
        assert found == json.loads((tmp_path / "study.json").read_text())["rows"]

    def test_errors_in_parquet(self, capsys: Capture, table: Path, tmp_path: Path) -> None:
        given = ["study", "errors", table, "--predictor", "mean-surface", "-o", tmp_path]
        succeed(capsys, *given, "--format", "parquet")
        tables = {path.name for path in tmp_path.iterdir() if path.suffix not in (".png", ".svg")}
        assert tables == {"errors.parquet", "kernels.parquet", "study.json"}

    def test_bases_of_one_s_own(self, capsys: Capture, table: Path) -> None:
        given = ["study", "cluster-count", table, "--seeds", 1, "--quantity", "time", "--json"]
        base = "cu=4,engine=1000,memory=400"
        out, _ = succeed(capsys, *given, "--base", base, "--base", "mid")
        found = {(r["cu_count"], r["engine_mhz"], r["memory_mhz"]) for r in json.loads(out)["rows"]}
        assert found == {(4, 1000, 400), (8, 1000, 800)}

    def test_vary_moves_the_base_along_an_axis(self, capsys: Capture, table: Path) -> None:
        given = ["study", "base-configuration", table, "--clusters", 2, "--seeds", 1, "--json"]
        out, _ = succeed(
            capsys, *given, "--vary", "cu_count", "--base", "cu=4,engine=500,memory=800"
        )
        found = {(r["cu_count"], r["engine_mhz"], r["memory_mhz"]) for r in json.loads(out)["rows"]}
        assert found == {(4, 500, 800), (8, 500, 800)}

    @pytest.mark.usefixtures("no_figures")
    def test_a_number_of_clusters_that_each_fold_chooses(
        self, capsys: Capture, table: Path, tmp_path: Path
    ) -> None:
        given = ["study", "base-configuration", table, "--seeds", 1, "--quantity", "time"]
        out, _ = succeed(capsys, *given, "--clusters", "auto", "--vary", "cu_count", "-o", tmp_path)
        assert "wu auto: mean" in out
        rows = tidy.read_csv(tmp_path / "base-configuration.csv")
        found = {(row["predictor"], row["clusters"]) for row in rows}
        assert found == {("wu", "auto"), *((name, "") for name in BASELINES)}

    def test_a_finished_study_is_shown_again(
        self, capsys: Capture, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """--resume with nothing left to do gives what is there, and does nothing again."""
        given = ["study", "oracle", table, "--seeds", 1, "-o", tmp_path, "--json", "--resume"]
        first, _ = succeed(capsys, *given)
        monkeypatch.setattr("mlscale.studies.wu2015.part_rows", None)
        assert succeed(capsys, *given)[0] == first


@pytest.mark.usefixtures("no_figures")
class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (["--vary", "cu_count"], "a study over cu_count needs several; the table has one, 4"),
            (["--clusters", "9"], "9 clusters, but a fold trains on "),
            (
                ["--predictor", "wu", "--predictor", "nearest"],
                "argument --predictor: may be given once",
            ),
            (["--protocol", "k-fold"], "the protocol 'k-fold' needs 5 applications, not 4"),
            (["--dask", "nowhere"], "'nowhere' is not the address of a scheduler"),
        ],
    )
    def test_base_configuration(
        self, capsys: Capture, tmp_path: Path, options: list[str], problem: str
    ) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows(["a", "b", "c", "d"]))
        output = ["-o", tmp_path / "out"]
        message = refuse(capsys, tmp_path, "study", "base-configuration", table, *options, *output)
        assert problem in message
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("study", "options", "problem"),
        [
            (
                "cluster-count",
                ["--vary", "engine_mhz"],
                "unrecognized arguments: --vary engine_mhz; see 'mlscale study",
            ),
            (
                "cluster-count",
                ["--clusters", "4"],
                "unrecognized arguments: --clusters 4; see 'mlscale study clus",
            ),
            ("cluster-count", ["--predictor", "wu"], "unrecognized arguments: --predictor wu; see"),
            ("oracle", ["--predictor", "wu"], "unrecognized arguments: --predictor wu; see"),
            (
                "errors",
                ["--base", "mid", "--base", "mid"],
                "argument --base: may be given once; see 'mlscale study errors",
            ),
            ("oracle", ["--quantity", "power"], "no table has a column 'power_w'"),
            ("oracle", ["--base", "cu=4,engine=1,memory=500"], "engine_mhz 1 is not on the grid"),
        ],
    )
    def test_others(
        self, capsys: Capture, tmp_path: Path, study: str, options: list[str], problem: str
    ) -> None:
        rows = [{k: v for k, v in row.items() if k != "power_w"} for row in tidy.rows(["a", "b"])]
        table = tidy.write_csv(tmp_path / "t.csv", rows)
        assert problem in refuse(capsys, tmp_path, "study", study, table, *options)

    def test_unknown_names_are_told_the_known_ones(self, capsys: Capture, table: Path) -> None:
        message = refuse(capsys, table.parent, "study", "clusters", table)
        for study in (*STUDIES, "errors", "compare"):
            assert f"'{study}'" in message
        given = ["study", "base-configuration", table, "--predictor", "woo"]
        message = refuse(capsys, table.parent, *given)
        assert message.startswith("argument --predictor: there is no predictor 'woo'; one of ")
        assert message.endswith("; see 'mlscale study base-configuration --help'")
        for predictor in ("wu", *BASELINES):
            assert f"{predictor}," in message

    def test_nobody_at_the_address(self, capsys: Capture, table: Path, tmp_path: Path) -> None:
        """Port 9 of this machine: refused at once."""
        pytest.importorskip("distributed")
        given = ["study", "oracle", table, "--dask", "tcp://127.0.0.1:9", "-o", tmp_path / "out"]
        message = refuse(capsys, tmp_path, *given)
        assert message.startswith("no Dask scheduler answers at tcp://127.0.0.1:9 (Connection ")

    @pytest.mark.parametrize(
        "other",
        [
            ["study", "error-distribution"],
            ["study", "oracle", "--quantity", "power"],
            ["study", "oracle", "--repetitions", "min"],
            ["study", "errors"],
        ],
    )
    def test_a_folder_with_another_study(
        self, capsys: Capture, table: Path, oracle: Path, other: list[str]
    ) -> None:
        given = [table, "--seeds", 1, "-o", oracle, "--quantity", "time"]
        message = refuse(capsys, oracle, *other, *given, *other[2:])
        expected = f"{oracle}: holds the results of another study (oracle of t), or of the same "
        assert message == f"{expected}with other data or settings; name another folder"

    def test_the_same_again_is_written_over(
        self, capsys: Capture, table: Path, oracle: Path
    ) -> None:
        given = ["study", "oracle", table, "--seeds", 1, "-o", oracle, "--quantity", "time"]
        succeed(capsys, *given)

    def test_what_cannot_be_studied_keeps_nothing(
        self, capsys: Capture, table: Path, tmp_path: Path
    ) -> None:
        given = ["study", "oracle", table, "--features", "utilisation", "-o", tmp_path / "out"]
        message = refuse(capsys, tmp_path, *given)
        assert message.startswith("utilisation features need the peaks of 'made-gpu'")
        assert not (tmp_path / "out").exists()
