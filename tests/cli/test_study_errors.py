"""study errors: the document, its figures by hand, files, text, protocols, trainings; Ctrl-C.

Kernels are those of tests/synthetic/kernels.py. Their laws are known, and so are the errors of what
needs no training.
"""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import Cli, study_files
from synthetic import bottleneck_kernels, sampled_kernels, tidy
from synthetic import kernels as made

from mlscale import ConfigGrid
from mlscale.cli.main import main
from mlscale.progress import PROGRESS

pytestmark = pytest.mark.usefixtures("one_process")

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
BASELINES = ("no-scaling", "engine-bound", "core-bound", "memory-bound", "mean-surface", "nearest")
FREE = ("--predictor", "mean-surface")  # nothing but baselines: quick


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """both.csv: 8 kernels of 4 applications, time and power; bare.csv: noisy ones, time alone."""
    folder = tmp_path_factory.mktemp("tables")
    both = made.measurements(per_group=2, grid=GRID)
    both = replace(both, applications=("a", "b", "a", "b", "c", "d", "c", "d"))
    both.write(folder / "both.csv")
    noise = np.random.default_rng(3).uniform(0.8, 1.25, both.time_samples.shape)
    bare = replace(both, time_samples=both.time_samples * noise, power_samples=None)
    bare.write(folder / "bare.csv")
    return folder


@pytest.fixture(scope="module")
def study(folder: Path) -> tuple[dict[str, Any], str]:
    """`study errors` of both tables, three clusters, two seeds: the document, and all of stdout."""
    arguments = ["study", "errors", f"{folder}/both.csv", f"{folder}/bare.csv", "--clusters", "3"]
    arguments += ["--seeds", "2", "--json", "-o", f"{folder}/out"]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setattr(os, "cpu_count", lambda: 1)
        assert main(arguments) == 0
    return json.loads(out.getvalue()), out.getvalue()


class TestDocument:
    def test_has_a_row_for_each_predictor_and_power_only_where_it_was_measured(
        self, study: Any
    ) -> None:
        document, _ = study
        assert (document["study"], document["tables"]) == ("errors", ["both", "bare"])
        assert document["protocol"] == "leave-one-application-out"
        kinds = {"nearest": "raw", "wu": "raw"}
        assert [(r["table"], r["quantity"], r["predictor"], r["features"])
                for r in document["rows"]] == [
            (table, quantity, predictor, kinds.get(predictor))
            for table, quantity in (("both", "time"), ("both", "power"), ("bare", "time"))
            for predictor in (*BASELINES, "wu", "wu-oracle")
        ]  # fmt: skip
        for row in document["rows"]:
            assert row["base"] == {"cu_count": 8, "engine_mhz": 1000, "memory_mhz": 800}
            assert (row["n_kernels"], row["n_seeds"], row["coverage"]) == (8, 2, None)
            assert len(row["mape_by_seed"]) == 2

    def test_figures_are_the_means_of_the_kernels(self, study: Any, folder: Path) -> None:
        """What no random number enters is done once."""
        document, _ = study
        kernels = tidy.read_csv(folder / "out" / "kernels.csv")
        keys = ("table", "quantity", "predictor", "features")
        for row in document["rows"]:
            mine = [k for k in kernels if all(k[key] == (row[key] or "") for key in keys)]
            seeds = sorted({k["seed"] for k in mine})
            assert seeds == (["0", "1"] if row["predictor"].startswith("wu") else ["0"])
            by_seed = [mean(float(k["mape"]) for k in mine if k["seed"] == s) for s in seeds]
            assert row["mape_by_seed"] == pytest.approx(by_seed * (2 // len(seeds)), rel=1e-12)
            assert row["mape"] == pytest.approx(mean(by_seed), rel=1e-12)


class TestFiles:
    def test_folder_holds_the_document_tables_and_a_figure_of_each_quantity(
        self, study: Any, folder: Path
    ) -> None:
        document, printed = study
        names = {path.name for path in (folder / "out").iterdir()}
        blocks = ("bare-time", "both-time", "both-power")
        figures = {f"errors-{block}.{kind}" for block in blocks for kind in ("png", "svg")}
        figures |= {f"predictions-{block}.{kind}" for block in blocks for kind in ("png", "svg")}
        tables = {"errors.csv", "kernels.csv", "predictions.csv"}
        assert names == {*tables, "study.json"} | figures
        assert (folder / "out" / "study.json").read_text(encoding="utf-8") == printed
        rows = tidy.read_csv(folder / "out" / "errors.csv")
        for row, expected in zip(rows, document["rows"], strict=True):
            for key in ("table", "predictor", "quantity", "worst_kernel"):
                assert row[key] == expected[key]
            for key in ("mape", "median_kernel", "p90", "worst_kernel_mape"):
                assert float(row[key]) == expected[key]
            assert {axis: float(row[axis]) for axis in expected["base"]} == expected["base"]

    def test_predictions_give_the_errors_of_the_document(self, study: Any, folder: Path) -> None:
        """Also what was measured, at 7 of 8 configurations: without the base."""
        document, _ = study
        found = pd.read_csv(folder / "out" / "predictions.csv").fillna({"features": ""})
        found["error"] = 100 * abs(found.predicted / found.measured - 1)
        keys = ["table", "quantity", "predictor", "features"]
        for row in document["rows"]:
            mine = found[(found[keys] == [row[key] or "" for key in keys]).all(axis=1)]
            assert len(mine) == 8 * 7 * mine.seed.nunique()
            assert mine.error.mean() == pytest.approx(row["mape"], rel=1e-9)
            assert mine.low.isna().all()
            assert mine.high.isna().all()
        truth = pd.read_csv(folder / "both.csv")
        place = ["kernel", "application", "cu_count", "engine_mhz", "memory_mhz"]
        joined = found[(found.table == "both") & (found.quantity == "power")].merge(truth, on=place)
        np.testing.assert_allclose(joined.measured, joined.power_w, rtol=1e-12)
        assert sorted(found.fold.unique()) == [0, 1, 2, 3]  # the applications
        assert not (
            (found.cu_count == 8) & (found.engine_mhz == 1000) & (found.memory_mhz == 800)
        ).any()

    def test_a_folder_that_is_there_is_written_over(
        self, cli: Cli, folder: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "study.json").write_text("old")
        (tmp_path / "notes.txt").write_text("mine")
        given = ["study", "errors", folder / "both.csv", *FREE, "-o", tmp_path]
        assert "mean-surface" in cli(*given, "--format", "parquet")
        assert json.loads((tmp_path / "study.json").read_text())["tables"] == ["both"]
        assert (tmp_path / "notes.txt").read_text() == "mine"
        assert (tmp_path / "errors.parquet").read_bytes()[:4] == b"PAR1"
        assert len(pd.read_parquet(tmp_path / "predictions.parquet")) == 2 * 6 * 8 * 7


class TestText:
    def test_every_baseline_is_in_every_block_and_their_means_together(
        self, cli: Cli, folder: Path
    ) -> None:
        given = ["study", "errors", folder / "both.csv", folder / "bare.csv", *FREE, "--all"]
        out, err = cli.both(*given)
        assert err == ""
        *blocks, legend, together = out.split("\n\n")
        assert legend.startswith("std. error: over applications. behind best: ")
        title, header, _, *lines = together.splitlines()
        assert title == "Mean errors [%] together:"
        assert header.split()[2:] == ["both", "time", "both", "power", "bare", "time"]
        means = {line.split()[0]: line.split()[-3:] for line in lines}
        for position, block in enumerate(blocks):
            name = ("both: error of time", "both: error of power", "bare: error of time")[position]
            assert block.startswith(f"{name} [%], 8 kernels, base cu=8,engine=1000,memory=800, ")
            rows = block.splitlines()[3:]
            assert [line.split()[0] for line in rows] == list(BASELINES)
            for line in rows:
                shown = re.findall(r"\b\d+\.\d\d\b", line)[0]
                assert float(means[line.split()[0]][position]) == pytest.approx(
                    float(shown), abs=0.051
                )
        assert "leave-one-application-out, 5 seeds, at most 8 clusters" in out

    def test_figures_are_those_of_the_document(self, cli: Cli, folder: Path) -> None:
        given = ["study", "errors", folder / "bare.csv", *FREE]
        document = cli.json(*given)
        text = cli(*given, "--all")
        for row in document["rows"]:
            [line] = [t for t in text.splitlines() if t.startswith(row["predictor"])]
            figures = [float(cell) for cell in re.findall(r"\b\d+\.\d\d\b", line)]
            behind = ["behind_best", "behind_best_standard_error"] if row["behind_best"] else []
            keys = ["mape", "standard_error", *behind, "median_kernel", "p90", "worst_kernel_mape"]
            assert (" = " in line) == bool(row["behind_best"] and row["within_error_of_best"])
            assert figures == pytest.approx([row[key] for key in keys], abs=0.005)
            assert line.endswith(row["worst_kernel"])

    def test_why_a_better_predictor_does_not_stand(
        self, cli: Cli, folder: Path, tmp_path: Path
    ) -> None:
        """By hand: no table of devices has the GPU 'made-gpu'; who names predictors knows."""
        options = ["--seeds", 1, "--clusters", 3, "--quantity", "time"]
        given = ["study", "errors", folder / "bare.csv", *options]
        note = "bare: not 'bottleneck', which gives intervals: the GPU 'made-gpu' is unknown"
        assert note in cli.told(*given)
        assert note not in cli.told(*given, "--predictor", "wu")
        sampled_kernels.measurements(12).write(tmp_path / "runs.csv")
        out, err = cli.both("study", "errors", tmp_path / "runs.csv", *options)
        assert "runs" in out  # the averages of runs have one with intervals
        assert err == ""


class TestProtocols:
    # 8 applications: each held out once, or 20 % of them (2, rounded up) once.
    @pytest.mark.parametrize(
        ("protocol", "kernels"),
        [("leave-one-application-out", 8), ("k-fold", 8), ("holdout", 2), ("random-kernels", 2)],
    )
    def test_who_is_held_out(self, cli: Cli, tmp_path: Path, protocol: str, kernels: int) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows(list("abcdefgh")))
        given = ["study", "errors", table, *FREE, "--seeds", 1]
        document = cli.json(*given, "--protocol", protocol)
        assert document["protocol"] == protocol
        assert {row["n_kernels"] for row in document["rows"]} == {kernels}

    def test_what_all_kernels_were_told_of_is_not_told_of_each_fold(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        """Two kernels store nothing at the base, the last of the four settings of each."""
        table = [{**row, "bytes_per_store": 8.0 + row["loads"]} for row in tidy.rows("abcdefgh")]
        table[3]["bytes_per_store"] = table[11]["bytes_per_store"] = ""
        file = tidy.write_csv(tmp_path / "t.csv", table)
        err = cli.told("study", "errors", file, "--predictor", "nearest", "--seeds", 1)
        [told] = [line for line in err.splitlines() if "note T10" in line]
        assert "2 kernels (a, c) of 8 without 'bytes_per_store' at the base" in told

    def test_folds_by_number(self, cli: Cli, tmp_path: Path) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows(list("abcdefgh")))
        given = [
            "study",
            "errors",
            table,
            *FREE,
            "--seeds",
            1,
            "--folds",
            4,
            "-o",
            tmp_path / "out",
        ]
        assert ", k-fold of 4 folds, 1 seed" in cli(*given, "--all")
        document = json.loads((tmp_path / "out" / "study.json").read_text())
        assert (document["protocol"], document["folds"]) == ("k-fold", 4)
        found = pd.read_csv(tmp_path / "out" / "predictions.csv")
        assert found.groupby("fold").kernel.nunique().to_dict() == {0: 2, 1: 2, 2: 2, 3: 2}

    def test_one_application_and_the_ways_out(self, cli: Cli, data_folder: Path) -> None:
        """Pairs are kernels then: the best is told from what is far behind."""
        table = data_folder / "cases" / "training" / "15-one-application.csv"
        said = cli.refused("study", "errors", table, *FREE)
        assert said == (
            "the protocol 'leave-one-application-out' needs 2 applications, not 1; if the kernels "
            "are independent, name each as its own application (--map application=kernel), or use "
            "the protocol 'random-kernels'"
        )
        given = ("--all", "--protocol", "random-kernels")
        out = cli("study", "errors", table, *FREE, *given)
        assert (
            "std. error: over splits. behind best: mean difference to the best, paired by k" in out
        )
        assert ", 12 seeds, " in out

    def test_baselines_that_say_the_same_stand_once(self, cli: Cli, tmp_path: Path) -> None:
        """With one CU count and one memory clock; who names one gets it."""
        grid = ConfigGrid((4,), (500.0, 1000.0), (800.0,))
        made.measurements(grid=grid).write(tmp_path / "t.csv")
        given = ["study", "errors", tmp_path / "t.csv", "--quantity", "time"]
        found = {}
        for name in ("mean-surface", "core-bound"):
            document = cli.json(*given, "--predictor", name)
            found[name] = [row["predictor"] for row in document["rows"]]
        assert found["mean-surface"] == ["no-scaling", "engine-bound", "mean-surface", "nearest"]
        assert found["core-bound"] == [*found["mean-surface"], "core-bound"]

    def test_one_application_is_held_out_whole(self, cli: Cli, tmp_path: Path) -> None:
        """Two pairs of twins: with its twin held out too, a kernel is predicted from the others.

        tidy.rows() gives kernel k the times 10 k + 1, 2, 3, 4; here 0 and 1 are one application
        and have one time, 2 and 3 another. With the twin in training the nearest would be exact.
        """
        rows = tidy.rows(["a0", "a1", "b0", "b1"])
        for row, twin in ((4, 0), (12, 8)):
            for step in range(4):
                rows[row + step] |= {
                    key: rows[twin + step][key] for key in ("application", "time_ms", "loads")
                }
        table = tidy.write_csv(tmp_path / "t.csv", rows)
        given = ["study", "errors", table, *FREE, "--quantity", "time"]
        found = cli.json(*given)["rows"]
        [mean_surface] = [row for row in found if row["predictor"] == "mean-surface"]
        # Base 4 ms of a, 24 of b. From b: 21/24, 22/24, 23/24 for a's 1/4, 2/4, 3/4, and back.
        errors_a = [100 * ((20 + n) / 24 * 4 / n - 1) for n in (1, 2, 3)]
        errors_b = [100 * (1 - n / 4 * 24 / (20 + n)) for n in (1, 2, 3)]
        assert mean_surface["mape"] == pytest.approx(mean([*errors_a, *errors_b]), rel=1e-9)

    def test_base_is_as_asked(self, cli: Cli, folder: Path) -> None:
        given = ["study", "errors", folder / "both.csv", *FREE, "--json"]
        out = cli(*given, "--base", "cu=4,engine=500,memory=400")
        bases = [row["base"] for row in json.loads(out)["rows"]]
        assert bases[0] == {"cu_count": 4, "engine_mhz": 500, "memory_mhz": 400}


STUDY = ("study", "errors", "--predictor", "nearest", "--quantity", "time", "--protocol", "k-fold")

# mlscale that sends a signal to itself and its workers, as a terminal does, when so many parts
# are kept.
STOPPED = """
import os, signal, sys
from mlscale.cli.main import main
from mlscale.progress import Progress

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
add = Progress.add

def add_and_stop(self, number, result):
    add(self, number, result)
    if len(self.done) == int(sys.argv[1]):
        os.killpg(0, int(sys.argv[2]))

Progress.add = add_and_stop
if __name__ == "__main__":
    sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    made.measurements(per_group=2, grid=GRID).write(path)
    return path


def stopped(parts: int, how: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run mlscale in processes of its own, on two of them, until that many parts are kept."""
    code = STOPPED.replace("import os,", "import os\nos.cpu_count = lambda: 2\nimport")
    return subprocess.run(
        [sys.executable, "-c", code, str(parts), str(int(how)), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=300,
    )


def kept(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of the record of what is done."""
    lines = (folder / PROGRESS).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_processes_that_are_stopped(
    cli: Cli, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after 3 of 18 parts, SIGKILL after 6, then to the end: as if nothing had been."""
    alone = (*STUDY, "--seeds", "3", table)
    study = (*alone, "-o", tmp_path / "stopped")

    ended = stopped(3, signal.SIGINT, *study)
    assert ended.returncode == 130
    assert ended.stdout == ""
    assert ended.stderr == (
        f"mlscale: interrupted; 3 of 18 parts are kept in {tmp_path / 'stopped'}; continue "
        "with --resume\n"
    )
    assert [path.name for path in (tmp_path / "stopped").iterdir()] == [PROGRESS]
    assert len(kept(tmp_path / "stopped")) == 1 + 3

    killed = stopped(6, signal.SIGKILL, *study, "--resume")
    assert killed.returncode == -signal.SIGKILL
    assert len(kept(tmp_path / "stopped")) == 1 + 6

    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    cli(*study, "--resume")
    cli(*alone, "-o", tmp_path / "whole")
    assert study_files(tmp_path / "stopped") == study_files(tmp_path / "whole")


@pytest.mark.usefixtures("one_process", "no_figures")
class TestInOneProcess:
    def test_goes_on_where_it_stopped(self, cli: Cli, table: Path, tmp_path: Path) -> None:
        study = (*STUDY, "--seeds", "1", table)
        said = cli.interrupted(*study, "-o", tmp_path / "stopped")
        assert "2 of 6 parts are kept" in said
        cli(*study, "-o", tmp_path / "stopped", "--resume")
        cli(*study, "-o", tmp_path / "whole")
        assert study_files(tmp_path / "stopped") == study_files(tmp_path / "whole")

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ([], "holds an unfinished study; continue with --resume, or name another folder"),
            (["--resume", "--seeds", "2"], "was made of other data, with other settings"),
            (["--resume", "--protocol", "holdout"], "was made of other data, with other settings"),
            (["--resume", "data"], "was made of other data, with other settings"),
        ],
    )
    def test_an_unfinished_study_is_not_mixed_with_another(
        self, cli: Cli, table: Path, tmp_path: Path, options: list[str], problem: str
    ) -> None:
        copy = tmp_path / table.name
        copy.write_text(table.read_text())
        study = (*STUDY, copy, "-o", tmp_path)
        cli.interrupted(*study)
        if "data" in options:
            options = ["--resume"]
            data = made.measurements(per_group=2, grid=GRID)
            replace(data, time_samples=1.5 * data.time_samples).write(copy)
        assert problem in cli.refused(*study, *options)

    def test_without_a_folder_nothing_is_kept(
        self, cli: Cli, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("mlscale.studies.errors.part_errors", stop)
        assert cli.ended(130, *STUDY, table)[1] == "mlscale: interrupted\n"


def test_tells_what_the_faulty_kernels_cost(cli: Cli, tmp_path: Path) -> None:
    """Table and document agree; without the faulty kernel is the mean of the others."""
    data = made.measurements(per_group=2, grid=GRID)
    replace(data, metadata={"faults": {"compute0": "is odd"}}).write(tmp_path / "marked.csv")
    given = ["study", "errors", tmp_path / "marked.csv", "--quantity", "power"]
    given += ["--predictor", "wu", "--features", "raw", "--features", "raw+power"]
    given += ["--clusters", 2, "--seeds", 1, "--all", "-o", tmp_path / "out"]
    text = cli(*given)
    document = json.loads((tmp_path / "out" / "study.json").read_text())
    kernels = tidy.read_csv(tmp_path / "out" / "kernels.csv")
    lines = text.splitlines()
    for row, line in zip(document["rows"], lines[3:], strict=False):
        name = (row["predictor"], row["features"] or "")
        others = [
            float(k["mape"])
            for k in kernels
            if k["kernel"] != "compute0" and (k["predictor"], k["features"]) == name
        ]
        assert row["faulty_kernels"] == ["compute0"]
        assert row["without_faulty"]["mape"] == pytest.approx(mean(others), rel=1e-12)
        assert f"{row['without_faulty']['mape']:.2f}" in line.split()
    assert "Named faulty: compute0 (not scored there)." in lines
    written = tidy.read_csv(tmp_path / "out" / "errors.csv")
    assert [float(r["mape_without_faulty"]) for r in written] == [
        row["without_faulty"]["mape"] for row in document["rows"]
    ]


@pytest.fixture
def gpus(tmp_path: Path) -> list[Path]:
    """Made kernels of the bottleneck curve, as of two devices."""
    one = bottleneck_kernels.measurements(4)
    one.write(tmp_path / "one.csv")
    replace(one, device="gtx1080ti").write(tmp_path / "two.csv")
    return [tmp_path / "one.csv", tmp_path / "two.csv"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "said", "quantities"),
    [
        ("--pooled", "trained on all tables at once", ("time", "power")),
        ("--unseen-gpu", "trained only on other GPUs", ("time",)),
    ],
)
def test_several_gpus(
    cli: Cli, gpus: list[Path], tmp_path: Path, option: str, said: str, quantities: tuple[str, ...]
) -> None:
    given = ["study", "errors", *gpus, option, "--seeds", 1, "-o", tmp_path / "out"]
    document = cli.json(*given)
    assert document["training"] == option.removeprefix("--")
    assert [(r["table"], r["predictor"], r["quantity"]) for r in document["rows"]] == [
        (table, "bottleneck", quantity) for table in ("one", "two") for quantity in quantities
    ]
    assert all(0 <= row["coverage"] <= 100 for row in document["rows"])
    assert said in cli(*given, "--resume", "--all").splitlines()[0]


@pytest.fixture
def real_and_micro(tmp_path: Path) -> list[Path]:
    """Made kernels, and others of the same laws, one of them of a tested application."""
    made.measurements(2, GRID).write(tmp_path / "real.csv")
    micro = made.measurements(4, GRID, seed=1)  # three of each law are left to `nearest`
    names = tuple(f"micro-{name}" for name in micro.kernels)
    applications = ("app-latency-b", *names[1:])
    replace(micro, kernels=names, applications=applications).write(tmp_path / "micro.csv")
    return [tmp_path / "real.csv", tmp_path / "micro.csv"]


def test_train_on_names_the_protocol_and_what_was_left_out(
    cli: Cli, real_and_micro: list[Path], tmp_path: Path
) -> None:
    real, micro = real_and_micro
    given = ["study", "errors", real, "--train-on", micro, "--predictor", "nearest"]
    given += ["--features", "raw", "--seeds", 1, "--base", "highest"]
    text = cli(*given, "--all", "-o", tmp_path / "out")
    head = (
        "real: error of time [%], 8 kernels, base cu=8,engine=1000,memory=800, "
        "train-on micro (15 kernels), 1 seed, 8 clusters"
    )
    assert text.splitlines()[0] == head
    assert "Left out of the training, as they are tested: app-latency-b." in text.splitlines()
    document = json.loads((tmp_path / "out" / "study.json").read_text())
    assert (document["protocol"], document["train_on"]) == ("train-on", ["micro"])
    for row in document["rows"]:
        assert row["protocol"] == "train-on"
        assert row["left_out_of_training"] == ["app-latency-b"]
    for written in tidy.read_csv(tmp_path / "out" / "errors.csv"):
        assert (written["protocol"], written["train_on"]) == ("train-on", "micro")
        assert written["left_out_of_training"] == "app-latency-b"
        assert written["n_training_kernels"] == "15"
    nearest = [row["mape"] for row in document["rows"] if row["predictor"] == "nearest"]
    assert nearest == pytest.approx([0, 0], abs=1e-9)  # the same laws, told by the counters
