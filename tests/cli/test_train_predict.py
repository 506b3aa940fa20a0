"""train | predict: from a table to figures, in every form, checked against laws that are known.

Truth is that of tests/synthetic/kernels.py: time is a product of powers of CU count, engine and
memory clock, with powers by group; power is 100 W x (time / time at the first configuration) **
-0.5. Kernel 2 of each group is left out of training.
"""

import contextlib
import csv
import io
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Capture, at_base, refuse, succeed
from synthetic import kernels as made
from synthetic import tidy

from mlscale import load
from mlscale.cli.main import main
from mlscale.data.datasets import path

Figures = dict[str, dict[str, float]]

BASE = (8, 800.0, 700.0)
CORNER = (4, 400.0, 400.0)  # where made power is 100 W
KEYS = {  # of the architecture page, "Command line"
    *("kernel", "cu_count", "engine_mhz", "memory_mhz", "time_ms", "time_factor"),
    *("power_w", "energy_mj", "time_ms_low", "time_ms_high", "flags"),
}
BETWEEN = "cu=12,engine=900,memory=1000"


def law(kernel: str, config: Sequence[float]) -> float:
    """The time of the kernel's group at a configuration, relative to CORNER, by hand."""
    powers = made.LAWS[kernel.rstrip("0123456789")]
    return math.prod((x / x0) ** p for x, x0, p in zip(config, CORNER, powers, strict=True))


def place(row: dict[str, Any]) -> tuple[float, float, float]:
    return float(row["cu_count"]), float(row["engine_mhz"]), float(row["memory_mhz"])


@pytest.fixture(scope="module")
def own() -> Figures:
    """Base time and power of the profiled kernels, by hand from made measurements.

    Their counters are those of a training kernel of their group: none is out of range.
    """
    measured = made.measurements()
    at = measured.profiles(made.GRID.config((1, 2, 1)))
    assert at.power_w is not None
    return {
        name: {
            "time_ms": float(at.time_ms[k]),
            "power_w": float(at.power_w[k]),
            **dict(zip(at.counter_names, at.counters[k - 2].tolist(), strict=True)),
        }
        for k, name in enumerate(at.kernels)
        if name.endswith("2")
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, own: Figures) -> Path:
    """table.csv, profile.csv of kernel 2 of every group, model.mlscale trained without them."""
    folder = tmp_path_factory.mktemp("made")
    made.measurements().write(folder / "table.csv")
    axes = {"cu_count": 8, "engine_mhz": 800, "memory_mhz": 700}
    profile = [{"kernel": kernel, **axes, **figures} for kernel, figures in own.items()]
    tidy.write_csv(folder / "profile.csv", profile)
    arguments = ["train", f"{folder}/table.csv", "--base", "cu=8,engine=800,memory=700"]
    arguments += [f"--leave-out=app-{kernel}" for kernel in own]
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*arguments, "--clusters", "4", "-o", f"{folder}/model.mlscale"]) == 0
    return folder


def predict(capsys: Capture, folder: Path, *options: object) -> str:
    out, err = succeed(
        capsys, "predict", folder / "model.mlscale", folder / "profile.csv", *options
    )
    assert all(line.startswith("mlscale: warning: ") for line in err.splitlines())
    return out


def predictions(capsys: Capture, folder: Path, *options: object) -> list[dict[str, Any]]:
    return json.loads(predict(capsys, folder, "--format", "json", *options))["predictions"]


class TestTrain:
    def test_says_what_it_made(self, capsys: Capture, tmp_path: Path) -> None:
        tidy.write_csv(tmp_path / "t.csv", tidy.rows())
        model = tmp_path / "m.mlscale"
        out, err = succeed(capsys, "train", tmp_path / "t.csv", "--base", "mid", "-o", model)
        made, why, needs = out.splitlines()
        assert made == (
            f"{model}: 'wu' for time and power, 2 kernels of 2 applications, 4 configurations of "
            "made-gpu, base cu=4,engine=800,memory=700"
        )
        assert why.startswith(
            "not 'bottleneck', which gives intervals: the peaks of 'made-gpu' are not in the device"
        )
        assert needs == "features that a profile needs (1): loads"
        assert err == ""

    def test_leaves_out_applications(self, folder: Path) -> None:
        model = load(folder / "model.mlscale")
        kept = [f"{group}{k}" for group in made.LAWS for k in (0, 1)]
        assert model.card["kernels"] == kept
        assert model.card["applications"] == sorted(f"app-{kernel}" for kernel in kept)

    @pytest.mark.parametrize(
        "predictor",
        ["no-scaling", "engine-bound", "core-bound", "memory-bound", "mean-surface", "nearest"],
    )
    def test_takes_every_predictor_that_can_be_saved(
        self, capsys: Capture, tmp_path: Path, predictor: str
    ) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows())
        model = tmp_path / "m.mlscale"
        given = ["--base", "mid", "--predictor", predictor, "-o", model]
        succeed(capsys, "train", table, *given)
        at = ["--at", "engine=800,memory=700", "--format", "json"]
        out, _ = succeed(capsys, "predict", model, table, *at)
        # At the base every predictor gives back the profile: 4 and 14 ms in tidy.rows().
        assert [row["time_ms"] for row in json.loads(out)["predictions"]] == [4.0, 14.0]
        assert {p.name for p in load(model).predictors.values()} == {predictor}

    def test_takes_a_predictor_of_ones_own(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The file names its class and is not read by the command line: that would run code."""
        (tmp_path / "trained_here.py").write_text(
            "import mlscale\n\n\nclass Mean(mlscale.MeanSurface):\n    name = 'mean-of-mine'\n"
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [*sys.path])
        table, model = tidy.write_csv(tmp_path / "t.csv", tidy.rows()), tmp_path / "m.mlscale"
        given = ["train", table, "--base", "mid", "--predictor", "trained_here:Mean", "-o", model]
        out, _ = succeed(capsys, *given)
        assert out.startswith(f"{model}: 'trained_here:Mean' for time and power, 2 kernels")
        message = refuse(capsys, tmp_path, "predict", model, table)
        assert "trained_here:Mean" in message

    def test_incomplete_kernels_are_dropped_with_a_warning(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows(["a", "b", "c"])[:-1])
        model = tmp_path / "m.mlscale"
        given = ["train", table, "--base", "mid", "-o", model]
        out, err = succeed(capsys, *given, "--incomplete", "drop")
        assert ", 2 kernels of 2 applications, " in out
        assert err == (
            f"mlscale: warning: {table}: 1 of 3 kernels lack configurations: "
            "'c' lacks cu=4,engine=800,memory=700; dropped\n"
        )
        assert load(model).card["kernels"] == ["a", "b"]

    # At 400/500 MHz the kernel took 1, 4 and 13 ms, at the base 4 ms: by hand.
    @pytest.mark.parametrize(
        ("how", "factor"), [(None, 1.0), ("median", 1.0), ("mean", 1.5), ("min", 0.25)]
    )
    def test_repetitions(
        self, capsys: Capture, tmp_path: Path, how: str | None, factor: float
    ) -> None:
        rows = tidy.rows(["alone"])
        repeated = [{**rows[0], "time_ms": time} for time in (4.0, 13.0)]
        table = tidy.write_csv(tmp_path / "t.csv", [*rows, *repeated])
        model = tmp_path / "m.mlscale"
        given = ["train", table, "--base", "mid", "--predictor", "mean-surface", "-o", model]
        succeed(capsys, *given, *(["--repetitions", how] if how else []))
        profile = tidy.write_csv(tmp_path / "p.csv", at_base(rows))
        at = ["--at", "engine=400,memory=500", "--format", "json"]
        out, _ = succeed(capsys, "predict", model, profile, *at)
        assert json.loads(out)["predictions"][0]["time_factor"] == pytest.approx(factor, rel=1e-12)

    def test_the_same_seed_gives_the_same_file(self, capsys: Capture, folder: Path) -> None:
        table = folder / "table.csv"
        for name in ("one", "two"):
            given = ["train", table, "--base", "mid", "--clusters", 3, "--seed", 5]
            succeed(capsys, *given, "-o", folder / f"{name}.mlscale")
        assert (folder / "one.mlscale").read_bytes() == (folder / "two.mlscale").read_bytes()


class TestPredictions:
    def test_follow_the_law_at_every_configuration(
        self, capsys: Capture, folder: Path, own: Figures
    ) -> None:
        rows = predictions(capsys, folder)
        assert len(rows) == 4 * 36
        for row in rows:
            kernel, config = row["kernel"], place(row)
            base_time = own[kernel]["time_ms"]
            factor = law(kernel, config) / law(kernel, BASE)
            assert row["time_factor"] == pytest.approx(factor, rel=1e-9)
            assert row["time_ms"] == pytest.approx(base_time * factor, rel=1e-9)
            power = 100 * law(kernel, config) ** -0.5
            assert row["power_w"] == pytest.approx(power, rel=1e-9)
            energy = base_time * factor * power  # ms x W = mJ
            assert row["energy_mj"] == pytest.approx(energy, rel=1e-9)

    def test_are_the_base_times_the_factor(
        self, capsys: Capture, folder: Path, own: Figures
    ) -> None:
        for row in predictions(capsys, folder, "--at", BETWEEN, "--at", "mid"):
            base_time = own[row["kernel"]]["time_ms"]
            assert row["time_ms"] == pytest.approx(base_time * row["time_factor"], rel=1e-14)

    def test_come_once_for_each_kernel_and_target_in_the_order_asked(
        self, capsys: Capture, folder: Path, own: Figures
    ) -> None:
        at = ["--at", "cu=16,engine=400,memory=1000", "--at", "cu=4,engine=1000,memory=400"]
        rows = predictions(capsys, folder, *at)
        targets = [(16, 400, 1000), (4, 1000, 400)]
        expected = [(kernel, target) for kernel in own for target in targets]
        assert [(row["kernel"], place(row)) for row in rows] == expected
        assert all(row["flags"] == [] for row in rows)

    def test_what_a_target_leaves_out_is_as_at_the_base(
        self, capsys: Capture, folder: Path
    ) -> None:
        rows = predictions(capsys, folder, "--at", "cu=4", "--at", "engine=1000")
        cu_count, engine_mhz, memory_mhz = BASE
        expected = [(4, engine_mhz, memory_mhz), (cu_count, 1000, memory_mhz)]
        assert [place(row) for row in rows[:2]] == expected

    def test_cover_the_grid_once(self, capsys: Capture, folder: Path) -> None:
        found = [place(row) for row in predictions(capsys, folder) if row["kernel"] == "latency2"]
        grid = made.GRID
        expected = [(c, e, m) for c in grid.cu_count for e in grid.engine_mhz
                    for m in grid.memory_mhz]  # fmt: skip
        assert sorted(found) == expected

    def test_between_steps_follow_the_law_and_say_so(self, capsys: Capture, folder: Path) -> None:
        """A power law is a line in logarithms, so geometric interpolation meets it exactly."""
        for row in predictions(capsys, folder, "--at", BETWEEN):
            assert place(row) == (12, 900, 1000)
            assert row["flags"] == ["interpolated"]
            factor = law(row["kernel"], (12, 900, 1000)) / law(row["kernel"], BASE)
            assert row["time_factor"] == pytest.approx(factor, rel=1e-9)

    def test_name_a_counter_outside_the_training_range(
        self, capsys: Capture, folder: Path, own: Figures
    ) -> None:
        odd = {"kernel": "odd", "cu_count": 8, "engine_mhz": 800, "memory_mhz": 700}
        odd |= own["compute2"]
        file = tidy.write_csv(folder / "odd.csv", [{**odd, "busy_compute": 7.0}])
        given = ["predict", folder / "model.mlscale", file]
        out, _ = succeed(capsys, *given, "--format", "json", "--at", "mid")
        [flag] = json.loads(out)["predictions"][0]["flags"]
        assert flag.startswith("busy_compute 7 above trained ")
        assert f"flag: odd: {flag}\n" in succeed(capsys, *given)[0]

    def test_of_several_rows_at_other_configurations_use_the_base_alone(
        self, capsys: Capture, folder: Path
    ) -> None:
        """The whole table serves as a profile too (documented in README)."""
        given = ["predict", folder / "model.mlscale", folder / "table.csv", "--format", "json"]
        rows = json.loads(succeed(capsys, *given, "--at", BETWEEN)[0])["predictions"]
        factors = {row["kernel"]: row["time_factor"] for row in rows}
        assert len(rows) == len(factors) == 12
        for row in predictions(capsys, folder, "--at", BETWEEN):
            assert factors[row["kernel"]] == pytest.approx(row["time_factor"], rel=1e-9)


class TestFormats:
    def test_json_is_one_document_of_the_architecture_page(
        self, capsys: Capture, folder: Path
    ) -> None:
        document = json.loads(predict(capsys, folder, "--format", "json", "--at", BETWEEN))
        assert document.keys() == {"base", "predictions", "whole_run", "warnings"}
        assert document["whole_run"] == []  # the profile does not say how often its kernels run
        assert document["base"] == {"cu_count": 8, "engine_mhz": 800, "memory_mhz": 700}
        assert document["warnings"] == [
            "the model was trained on made data, not on measurements",
        ]
        for row in document["predictions"]:
            assert row.keys() == KEYS | {"power_factor", "power_w_low", "power_w_high"}
            assert (row["time_ms_low"], row["time_ms_high"]) == (None, None)  # `wu` has none

    def test_csv_reads_back_as_the_json(self, capsys: Capture, folder: Path) -> None:
        at = ["--at", BETWEEN, "--at", "mid"]
        text = predict(capsys, folder, "--format", "csv", *at)
        expected = predictions(capsys, folder, *at)
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == len(expected)
        for row, want in zip(rows, expected, strict=True):
            assert row.keys() == want.keys()
            assert (row["kernel"], row["flags"]) == (want["kernel"], "; ".join(want["flags"]))
            numbers = {k: float(v) if v else None for k, v in row.items()
                       if k not in ("kernel", "flags")}  # fmt: skip
            assert numbers == {k: v for k, v in want.items() if k not in ("kernel", "flags")}

    def test_csv_says_its_warnings_on_stderr(self, capsys: Capture, folder: Path) -> None:
        given = ["predict", folder / "model.mlscale", folder / "profile.csv", "--format", "csv"]
        _, err = succeed(capsys, *given)
        assert err == "mlscale: warning: the model was trained on made data, not on measurements\n"

    def test_table_shows_the_figures_with_their_units(
        self, capsys: Capture, folder: Path, own: Figures
    ) -> None:
        text = predict(capsys, folder, "--at", BETWEEN)
        header, _, *lines = text.splitlines()
        units = ["engine MHz", "memory MHz", "time ms", "power W", "energy mJ", "x base"]
        assert [unit for unit in units if unit not in header] == []
        for line, (kernel, base) in zip(lines, own.items(), strict=False):
            name, *cells, flag = line.split()
            assert (name, flag) == (kernel, "interpolated")
            factor = law(kernel, (12, 900, 1000)) / law(kernel, BASE)
            time, power = base["time_ms"] * factor, 100 * law(kernel, (12, 900, 1000)) ** -0.5
            expected = [12, 900, 1000, time, factor, power, power / base["power_w"], time * power]
            # Four significant digits, factors three: half a unit of the last at most.
            assert [float(cell) for cell in cells] == pytest.approx(expected, rel=5e-3)
            assert float(cells[3]) == pytest.approx(time, rel=5e-4)
        assert "base cu=8,engine=800,memory=700 on made-gpu" in text
        assert "warning: the model was trained on made data, not on measurements" in text

    @pytest.mark.parametrize("form", ["table", "csv", "json"])
    def test_output_goes_to_the_file_instead(
        self,
        capsys: Capture,
        folder: Path,
        tmp_path: Path,
        form: str,
    ) -> None:
        shown = predict(capsys, folder, "--format", form)
        file = tmp_path / "out"
        file.write_text("old")
        assert predict(capsys, folder, "--format", form, "-o", file) == ""
        assert file.read_text(encoding="utf-8") == shown
        assert list(tmp_path.iterdir()) == [file]


class TestWithoutPower:
    @pytest.mark.parametrize("lacks", ["model", "profile"])
    def test_what_cannot_be_given_is_null(
        self, capsys: Capture, tmp_path: Path, lacks: str
    ) -> None:
        rows = tidy.rows()
        bare = [{k: v for k, v in row.items() if k != "power_w"} for row in rows]
        table = tidy.write_csv(tmp_path / "t.csv", bare if lacks == "model" else rows)
        profile = tidy.write_csv(tmp_path / "p.csv", at_base(rows if lacks == "model" else bare))
        model = tmp_path / "m.mlscale"
        succeed(capsys, "train", table, "--base", "mid", "-o", model)
        out, _ = succeed(capsys, "predict", model, profile, "--format", "json")
        document = json.loads(out)
        assert len(document["predictions"]) == 8
        for row in document["predictions"]:
            assert (row["power_w"], row["energy_mj"]) == (None, None)
            assert row["time_ms"] > 0
        who = "the model was trained without power" if lacks == "model" else "the profile has no po"
        assert document["warnings"][0].startswith(who)
        text, _ = succeed(capsys, "predict", model, profile)
        assert "power W" not in text.splitlines()[0]
        form = ["--format", "csv", "--at", "mid"]
        text, _ = succeed(capsys, "predict", model, profile, *form)
        first = next(csv.DictReader(io.StringIO(text)))
        assert (first["power_w"], first["energy_mj"]) == ("", "")


def test_the_shipped_model_predicts_the_shipped_profile(capsys: Capture) -> None:
    """At the base the prediction is the profile's own time, 48 configurations in all."""
    given = ["predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv", "--format", "json"]
    document = json.loads(succeed(capsys, *given)[0])
    assert document["base"] == {"cu_count": 16, "engine_mhz": 800, "memory_mhz": 700}
    rows = document["predictions"]
    assert len(rows) == 48
    [own] = [row for row in rows if place(row) == (16, 800, 700)]
    with path("simulated-gcn3-profile.csv").open(encoding="utf-8") as file:
        [measured] = csv.DictReader(file)
    assert own["time_ms"] == float(measured["time_ms"])
    assert own["time_factor"] == 1.0
    assert document["warnings"][0] == (
        "the model was trained on simulated data, not on measurements"
    )
