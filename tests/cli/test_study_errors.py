"""study errors: the document, its figures by hand, files, text, protocols.

Kernels are those of tests/synthetic/kernels.py. Their laws are known, and so are the errors of what
needs no training.
"""

import contextlib
import io
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import kernels as made
from synthetic import sampled_kernels, tidy

from mlscale import ConfigGrid
from mlscale.cli.main import main

pytestmark = pytest.mark.usefixtures("one_process")

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
BASELINES = ("no-scaling", "engine-bound", "core-bound", "memory-bound", "mean-surface", "nearest")
FREE = ("--predictor", "mean-surface")  # nothing but baselines: quick
ROW_KEYS = {  # of the architecture page, "Command line"
    *("table", "base", "predictor", "features", "quantity", "n_kernels", "n_seeds"),
    *("mape", "mape_by_seed", "median_kernel", "p90", "worst_kernel", "worst_kernel_mape"),
    *("standard_error", "standard_error_over", "behind_best", "within_error_of_best"),
    *("behind_best_standard_error", "coverage"),
}


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


def rows_of(document: dict[str, Any], **wanted: str) -> list[dict[str, Any]]:
    return [r for r in document["rows"] if all(r[k] == v for k, v in wanted.items())]


class TestDocument:
    def test_has_the_structure_of_the_architecture_page(self, study: Any) -> None:
        document, _ = study
        assert document.keys() >= {"study", "tables", "protocol", "rows"}
        assert document["study"] == "errors"
        assert document["tables"] == ["both", "bare"]
        assert document["protocol"] == "leave-one-application-out"
        for row in document["rows"]:
            assert row.keys() >= ROW_KEYS
            assert row["base"] == {"cu_count": 8, "engine_mhz": 1000, "memory_mhz": 800}
            assert (row["n_kernels"], row["n_seeds"], row["coverage"]) == (8, 2, None)
            assert len(row["mape_by_seed"]) == 2
            figures = ["mape", "median_kernel", "p90", "worst_kernel_mape", *range(2)]
            values = [row["mape_by_seed"][f] if isinstance(f, int) else row[f] for f in figures]
            assert all(isinstance(value, float) and value >= 0 for value in values)

    def test_has_a_row_for_each_predictor_and_power_only_where_it_was_measured(
        self, study: Any
    ) -> None:
        document, _ = study
        found = [(r["table"], r["quantity"], r["predictor"], r["features"])
                 for r in document["rows"]]  # fmt: skip
        kinds = {"nearest": "raw", "wu": "raw"}
        expected = {
            (table, quantity, predictor, kinds.get(predictor))
            for table, quantity in (("both", "time"), ("both", "power"), ("bare", "time"))
            for predictor in (*BASELINES, "wu", "wu-oracle")
        }
        assert len(found) == len(expected)
        assert set(found) == expected

    def test_figures_are_the_means_of_the_kernels(self, study: Any, folder: Path) -> None:
        document, _ = study
        kernels = tidy.read_csv(folder / "out" / "kernels.csv")
        for row in document["rows"]:
            own = [k for k in kernels if all(k[key] == (row[key] or "") for key in
                   ("table", "quantity", "predictor", "features"))]  # fmt: skip
            assert sorted({k["kernel"] for k in own}) == sorted(
                f"{group}{n}" for group in made.LAWS for n in (0, 1)
            )
            by_seed = [mean(float(k["mape"]) for k in own if k["seed"] == seed) for seed in
                       sorted({k["seed"] for k in own})]  # fmt: skip
            assert len(by_seed) in (1, 2)  # what no random number enters is done once
            assert row["mape_by_seed"] == pytest.approx(by_seed * (2 // len(by_seed)), rel=1e-12)
            assert row["mape"] == pytest.approx(mean(by_seed), rel=1e-12)
            of_kernel = {
                name: mean(float(k["mape"]) for k in own if k["kernel"] == name)
                for name in {k["kernel"] for k in own}
            }
            assert row["median_kernel"] == pytest.approx(median(of_kernel.values()), rel=1e-12)
            worst = max(of_kernel.values())
            assert row["worst_kernel_mape"] == pytest.approx(worst, rel=1e-12)
            assert of_kernel[row["worst_kernel"]] == pytest.approx(worst, rel=1e-12)

    def test_only_what_a_random_number_enters_is_repeated(self, study: Any, folder: Path) -> None:
        assert study
        seeds: dict[str, set[str]] = {}
        for kernel in tidy.read_csv(folder / "out" / "kernels.csv"):
            seeds.setdefault(kernel["predictor"], set()).add(kernel["seed"])
        random = {"wu", "wu-oracle"}
        assert seeds == {p: {"0", "1"} if p in random else {"0"} for p in (*BASELINES, *random)}

    @pytest.mark.parametrize(
        ("predictor", "group", "mape"),
        [
            # Base 8 CUs, 1000/800 MHz; the other axes at half or full, 7 targets. A kernel of the
            # group 'compute' (time ~ 1/CU/engine) takes 2, 2, 4 times as long at half the CUs, half
            # the engine, both, twice each for the memory clock, and as long at half the memory:
            # no-scaling errs by (0 + 4 * 50 + 2 * 75) / 7, by hand.
            ("no-scaling", "compute", 350 / 7),
            ("core-bound", "compute", 0.0),
            # engine-bound says 1, 2, 1, 2 for the CU steps' 2, 4, 2, 4: four of 7 are half.
            ("engine-bound", "compute", 4 * 50 / 7),
            # 'bandwidth' (time ~ 1/memory): no-scaling is half at the four of half memory clock.
            ("memory-bound", "bandwidth", 0.0),
            ("no-scaling", "bandwidth", 4 * 50 / 7),
            # engine-bound says 2 for 1 (100 %) twice, 2 for 2 twice, 1 for 2 (50 %) twice.
            ("engine-bound", "bandwidth", (2 * 100 + 2 * 50) / 7),
        ],
    )
    def test_errors_of_what_needs_no_training_by_hand(
        self, study: Any, folder: Path, predictor: str, group: str, mape: float
    ) -> None:
        assert study
        own = [float(k["mape"]) for k in tidy.read_csv(folder / "out" / "kernels.csv")
               if (k["table"], k["quantity"], k["predictor"]) == ("both", "time", predictor)
               and k["kernel"].startswith(group)]  # fmt: skip
        assert own == pytest.approx([mape, mape], rel=1e-9, abs=1e-9)

    def test_90th_percentile_is_over_kernels_and_targets(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """Two kernels x 5 targets with errors 10, 20, …, 100 %: p90 is 91 % (closed form).

        The k-th of n sorted values stands at the percentile 100 (k - 1) / (n - 1).
        """
        rows = []
        for kernel, errors in (("a", (90, 10, 50, 70, 30)), ("b", (100, 60, 20, 80, 40))):
            times = [1 / (1 + error / 100) for error in errors]  # no-scaling says 1
            times.insert(3, 1.0)  # the base, index 6 // 2
            for engine, time in enumerate(times, start=1):
                row = {"device": "d", "application": kernel, "kernel": kernel, "cu_count": 1}
                settings = {"engine_mhz": 100 * engine, "memory_mhz": 100}
                rows.append({**row, **settings, "time_ms": time, "n": 1})
        table = tidy.write_csv(tmp_path / "t.csv", rows)
        given = ["study", "errors", table, "--json", "--seeds", 1, *FREE, "--features", "raw"]
        out, _ = succeed(capsys, *given)
        [row] = rows_of(json.loads(out), predictor="no-scaling")
        assert row["p90"] == pytest.approx(91, rel=1e-9)
        assert row["mape"] == pytest.approx(55, rel=1e-9)
        assert row["median_kernel"] == pytest.approx((50 + 60) / 2, rel=1e-9)
        assert (row["worst_kernel"], row["worst_kernel_mape"]) == ("b", pytest.approx(60))


class TestFiles:
    def test_folder_holds_tables_and_a_figure_of_each_quantity(
        self, study: Any, folder: Path
    ) -> None:
        assert study
        names = {path.name for path in (folder / "out").iterdir()}
        of = ("bare-time", "both-time", "both-power")
        figures = {f"errors-{one}.{kind}" for one in of for kind in ("png", "svg")}
        assert names == {"errors.csv", "kernels.csv", "study.json"} | figures

    def test_study_json_is_what_was_printed(self, study: Any, folder: Path) -> None:
        document, printed = study
        text = (folder / "out" / "study.json").read_text(encoding="utf-8")
        assert json.loads(text) == document
        assert text == printed

    def test_errors_csv_holds_the_rows(self, study: Any, folder: Path) -> None:
        document, _ = study
        rows = tidy.read_csv(folder / "out" / "errors.csv")
        assert len(rows) == len(document["rows"])
        for row, want in zip(rows, document["rows"], strict=True):
            for key in ("table", "predictor", "quantity", "worst_kernel"):
                assert row[key] == want[key]
            assert row["features"] == (want["features"] or "")
            for key in ("mape", "median_kernel", "p90", "worst_kernel_mape"):
                assert float(row[key]) == want[key]
            assert {axis: float(row[axis]) for axis in want["base"]} == want["base"]
            assert [float(m) for m in row["mape_by_seed"].split()] == pytest.approx(
                want["mape_by_seed"], rel=1e-5
            )

    def test_a_folder_that_is_there_is_written_over(
        self, capsys: Capture, folder: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "study.json").write_text("old")
        (tmp_path / "notes.txt").write_text("mine")
        out, _ = succeed(capsys, "study", "errors", folder / "both.csv", *FREE, "-o", tmp_path)
        assert json.loads((tmp_path / "study.json").read_text())["tables"] == ["both"]
        assert (tmp_path / "notes.txt").read_text() == "mine"
        assert "mean-surface" in out


class TestText:
    def test_every_baseline_is_in_every_block(self, capsys: Capture, folder: Path) -> None:
        given = ["study", "errors", folder / "both.csv", folder / "bare.csv", *FREE]
        out, err = succeed(capsys, *given)
        assert err == ""
        *blocks, legend, _ = out.split("\n\n")
        assert legend.startswith("std. error: over applications. behind best: ")
        for block, title in zip(
            blocks, ("both: error of time", "both: error of power", "bare: error of time"),
            strict=True,
        ):  # fmt: skip
            assert block.startswith(f"{title} [%], 8 kernels, base cu=8,engine=1000,memory=800, ")
            named = [line.split()[0] for line in block.splitlines()[3:]]
            assert named == list(BASELINES)
        assert "leave-one-application-out, 3 seeds, at most 8 clusters" in out

    def test_figures_are_those_of_the_document(self, capsys: Capture, folder: Path) -> None:
        given = ["study", "errors", folder / "bare.csv", *FREE]
        document = json.loads(succeed(capsys, *given, "--json")[0])
        text, _ = succeed(capsys, *given)
        for row in document["rows"]:
            [line] = [t for t in text.splitlines() if t.startswith(row["predictor"])]
            figures = [float(cell) for cell in re.findall(r"\b\d+\.\d\d\b", line)]
            behind = ["behind_best", "behind_best_standard_error"] if row["behind_best"] else []
            keys = ["mape", "standard_error", *behind, "median_kernel", "p90", "worst_kernel_mape"]
            expected = [row[key] for key in keys]
            assert (" = " in line) == bool(row["behind_best"] and row["within_error_of_best"])
            assert figures == pytest.approx(expected, abs=0.005)
            assert line.endswith(row["worst_kernel"])

    def test_why_a_better_predictor_does_not_stand(self, capsys: Capture, folder: Path) -> None:
        """Hand: no table of devices has the GPU 'made-gpu'; who names predictors knows."""
        given = ["study", "errors", folder / "bare.csv", "--seeds", 1, "--clusters", 3]
        note = "\nbare: not 'bottleneck', which gives intervals: the peaks of 'made-gpu' are not in"
        assert note in succeed(capsys, *given)[0]
        assert note not in succeed(capsys, *given, "--predictor", "wu")[0]

    def test_averages_have_a_predictor_with_intervals(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        sampled_kernels.measurements(12).write(tmp_path / "runs.csv")
        given = ["study", "errors", tmp_path / "runs.csv", "--seeds", 1, "--clusters", 3]
        out, _ = succeed(capsys, *given, "--quantity", "time")
        assert "board-time" in out
        assert "not 'bottleneck'" not in out


class TestProtocols:
    # 8 applications: each held out once, or 20 % of them (2, rounded up) once.
    @pytest.mark.parametrize(
        ("protocol", "kernels"),
        [
            ("leave-one-application-out", 8),
            ("k-fold", 8),
            ("holdout", 2),
            ("random-kernels", 2),
        ],
    )
    def test_who_is_held_out(
        self, capsys: Capture, tmp_path: Path, protocol: str, kernels: int
    ) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows(list("abcdefgh")))
        given = ["study", "errors", table, *FREE, "--seeds", 1]
        document = json.loads(succeed(capsys, *given, "--protocol", protocol, "--json")[0])
        assert document["protocol"] == protocol
        assert {row["n_kernels"] for row in document["rows"]} == {kernels}

    def test_one_application_is_held_out_whole(self, capsys: Capture, tmp_path: Path) -> None:
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
        given = ["study", "errors", table, *FREE, "--quantity", "time", "--json"]
        document = json.loads(succeed(capsys, *given)[0])
        [mean_surface] = rows_of(document, predictor="mean-surface")
        # Base 4 ms of a, 24 of b. From b: 21/24, 22/24, 23/24 for a's 1/4, 2/4, 3/4, and back.
        of_a = [100 * ((20 + n) / 24 * 4 / n - 1) for n in (1, 2, 3)]
        of_b = [100 * (1 - n / 4 * 24 / (20 + n)) for n in (1, 2, 3)]
        assert mean_surface["mape"] == pytest.approx(mean([*of_a, *of_b]), rel=1e-9)

    def test_base_is_as_asked(self, capsys: Capture, folder: Path) -> None:
        given = ["study", "errors", folder / "both.csv", *FREE, "--json"]
        out, _ = succeed(capsys, *given, "--base", "cu=4,engine=500,memory=400")
        [row] = rows_of(json.loads(out), predictor="no-scaling", quantity="time")
        assert row["base"] == {"cu_count": 4, "engine_mhz": 500, "memory_mhz": 400}


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (["--quantity", "power"], "no table has a column 'power_w'"),
            (["--features", "utilisation"], "utilisation features need the peaks of 'made-gpu'"),
            (["--features", "table2"], "the counters give no 'table2' features; there are busy_"),
            (["--incomplete", "drop", "--base", "cu=6,engine=500,memory=400"], "cu_count 6 is not"),
        ],
    )
    def test_what_cannot_be_studied(
        self, capsys: Capture, folder: Path, tmp_path: Path, options: Sequence[str], problem: str
    ) -> None:
        given = ["study", "errors", folder / "bare.csv", *options, "-o", tmp_path / "out"]
        assert refuse(capsys, tmp_path, *given).startswith(problem)

    def test_two_tables_of_one_name(self, capsys: Capture, folder: Path) -> None:
        given = ["study", "errors", folder / "bare.csv", folder / "bare.csv"]
        assert refuse(capsys, folder, *given) == "two tables are named 'bare'; rename one"

    def test_too_few_applications(self, capsys: Capture, tmp_path: Path) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows(["a", "b", "c", "d"]))
        given = ["study", "errors", table, "--protocol", "k-fold"]
        message = refuse(capsys, tmp_path, *given)
        assert message == "the protocol 'k-fold' needs 5 applications, not 4"


def test_several_tables_end_in_their_means_together(capsys: Capture, folder: Path) -> None:
    """The last block repeats each block's MAPE in a column of its own; '-' where there is none."""
    tables = [folder / "both.csv", folder / "bare.csv"]
    text, _ = succeed(capsys, "study", "errors", *tables, *FREE)
    *blocks, together = text.split("\n\n")
    title, header, _, *lines = together.splitlines()
    assert title == "Mean errors [%] together:"
    assert header.split() == ["predictor", "features", "both", "time", "both", "power",
                              "bare", "time"]  # fmt: skip
    means = {line.split()[0]: line.split()[-3:] for line in lines}
    for position, block in enumerate(blocks):
        for line in block.splitlines()[3:]:
            predictor = line.split()[0]
            shown = re.findall(r"\b\d+\.\d\d\b", line)[0]
            assert float(means[predictor][position]) == pytest.approx(float(shown), abs=0.051)
