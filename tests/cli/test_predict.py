"""predict: figures in every form, checked against laws that are known.

Truth is that of tests/synthetic/kernels.py: time is a product of powers of CU count, engine and
memory clock, with powers by group; power is 100 W x (time / time at the first configuration) **
-0.5. Kernel 2 of each group is left out of training.
"""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Cli, at_base, note_texts
from synthetic import kernels as made
from synthetic import tidy

from mlscale import __version__, load
from mlscale.cli.main import main
from mlscale.data.datasets import path

Figures = dict[str, dict[str, float]]
Rows = list[dict[str, Any]]

BASE = (8, 800.0, 700.0)
CORNER = (4, 400.0, 400.0)  # where made power is 100 W
KEYS = {  # as docs/reference/files.md says
    *("kernel", "cu_count", "engine_mhz", "memory_mhz", "energy_mj", "flags"),
    *("time_ms", "time_factor", "time_ms_low", "time_ms_high"),
    *("power_w", "power_factor", "power_w_low", "power_w_high"),
}
BETWEEN = "cu=12,engine=900,memory=1000"
MADE = "the model was trained on made data, not on measurements"


def law(kernel: str, config: Sequence[float]) -> float:
    """The time of the kernel's group at a configuration, relative to CORNER, by hand."""
    powers = made.LAWS[kernel.rstrip("0123456789")]
    return math.prod((x / x0) ** p for x, x0, p in zip(config, CORNER, powers, strict=True))


def place(row: dict[str, Any]) -> tuple[float, float, float]:
    return float(row["cu_count"]), float(row["engine_mhz"]), float(row["memory_mhz"])


@pytest.fixture(scope="module")
def profiled() -> Figures:
    """Base time and power of the profiled kernels, by hand from made measurements.

    Their counters are those of a training kernel of their group: none is out of range.
    """
    at = made.measurements().profiles(made.GRID.config((1, 2, 1)))
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
def folder(tmp_path_factory: pytest.TempPathFactory, profiled: Figures) -> Path:
    """table.csv, profile.csv of kernel 2 of every group, model.mlscale trained without them."""
    folder = tmp_path_factory.mktemp("made")
    made.measurements().write(folder / "table.csv")
    axes = {"cu_count": 8, "engine_mhz": 800, "memory_mhz": 700}
    profile = [{"kernel": kernel, **axes, **figures} for kernel, figures in profiled.items()]
    tidy.write_csv(folder / "profile.csv", profile)
    arguments = ["train", f"{folder}/table.csv", "--base", "cu=8,engine=800,memory=700"]
    arguments += [f"--leave-out={made.application(kernel)}" for kernel in profiled]
    assert main([*arguments, "--clusters", "4", "-o", f"{folder}/model.mlscale"]) == 0
    return folder


def predict(cli: Cli, folder: Path, *options: object) -> str:
    given = ("predict", folder / "model.mlscale", folder / "profile.csv")
    return cli(*given, *options)


def predictions(cli: Cli, folder: Path, *options: object) -> Rows:
    rows: Rows = json.loads(predict(cli, folder, "--format", "json", *options))["predictions"]
    return rows


def test_training_left_out_applications(folder: Path) -> None:
    model = load(folder / "model.mlscale")
    kept = [f"{group}{k}" for group in made.LAWS for k in (0, 1)]
    assert model.card["kernels"] == kept
    assert model.card["applications"] == sorted(map(made.application, kept))


class TestPredictions:
    def test_follow_the_law_at_every_configuration(
        self, cli: Cli, folder: Path, profiled: Figures
    ) -> None:
        rows = predictions(cli, folder)
        every = [(kernel, config) for kernel in profiled for config in made.GRID]
        assert [(r["kernel"], place(r)) for r in rows] == [
            (k, (*c.as_dict().values(),)) for k, c in every
        ]
        for row in rows:
            kernel, config = row["kernel"], place(row)
            base_time = profiled[kernel]["time_ms"]
            factor = law(kernel, config) / law(kernel, BASE)
            power = 100 * law(kernel, config) ** -0.5
            found = [row[name] for name in ("time_factor", "time_ms", "power_w", "energy_mj")]
            expected = [factor, base_time * factor, power, base_time * factor * power]  # ms x W
            assert found == pytest.approx(expected, rel=1e-9)

    def test_come_in_the_order_asked_and_take_from_the_base_what_is_left_out(
        self, cli: Cli, folder: Path, profiled: Figures
    ) -> None:
        asked = ["cu=16,engine=400,memory=1000", "cu=4", "engine=1000"]
        rows = predictions(cli, folder, *(word for at in asked for word in ("--at", at)))
        targets = [(16, 400, 1000), (4, 800, 700), (8, 1000, 700)]
        expected = [(kernel, target) for kernel in profiled for target in targets]
        assert [(row["kernel"], place(row)) for row in rows] == expected
        assert all(row["flags"] == [] for row in rows)

    def test_between_steps_follow_the_law_and_say_so(self, cli: Cli, folder: Path) -> None:
        """A power law is a line in logarithms, so geometric interpolation meets it exactly."""
        for row in predictions(cli, folder, "--at", BETWEEN):
            assert row["flags"] == ["interpolated"]
            factor = law(row["kernel"], (12, 900, 1000)) / law(row["kernel"], BASE)
            assert row["time_factor"] == pytest.approx(factor, rel=1e-9)

    def test_name_a_counter_outside_the_training_range(
        self, cli: Cli, folder: Path, tmp_path: Path, profiled: Figures
    ) -> None:
        odd = {"kernel": "odd", "cu_count": 8, "engine_mhz": 800, "memory_mhz": 700}
        odd |= {**profiled["compute2"], "busy_compute": 7.0}
        given = ["predict", folder / "model.mlscale", tidy.write_csv(tmp_path / "odd.csv", [odd])]
        document = cli.json(*given, "--at", "mid")
        assert document["predictions"][0]["flags"] == []  # the flag is of the kernel, a note
        texts = note_texts(document)
        [flag] = [text for text in texts if text.startswith("busy_compute 7 is above ")]
        assert f": {flag}\n" in cli.told(*given, "--notes")

    def test_of_rows_at_several_configurations_use_the_base_alone(
        self, cli: Cli, folder: Path
    ) -> None:
        given = ["predict", folder / "model.mlscale", folder / "table.csv"]
        rows = cli.json(*given, "--at", BETWEEN)["predictions"]
        factors = {row["kernel"]: row["time_factor"] for row in rows}
        assert len(rows) == len(factors) == 12
        for row in predictions(cli, folder, "--at", BETWEEN):
            assert factors[row["kernel"]] == pytest.approx(row["time_factor"], rel=1e-9)


class TestFormats:
    def test_json_is_one_document(self, cli: Cli, folder: Path) -> None:
        document = json.loads(predict(cli, folder, "--format", "json", "--at", BETWEEN))
        assert [*document] == [
            *("schema", "mlscale", "model", "device", "gpu_count", "base", "predictions"),
            *("whole_run", "notes"),
        ]
        head = [document[key] for key in ("schema", "mlscale", "model", "device")]
        assert head == [1, __version__, "model", "made-gpu"]
        assert document["whole_run"] == []  # the profile does not say how often its kernels run
        assert document["base"] == {"cu_count": 8, "engine_mhz": 800, "memory_mhz": 700}
        [note] = document["notes"]
        assert (note["text"], note["kernels"]) == (MADE, "all")
        for row in document["predictions"]:
            assert row.keys() == KEYS
            assert (row["time_ms_low"], row["time_ms_high"]) == (None, None)  # `wu` has none

    def test_csv_reads_back_as_the_json(self, cli: Cli, folder: Path) -> None:
        at = ["--at", BETWEEN, "--at", "mid"]
        given = ["predict", folder / "model.mlscale", folder / "profile.csv", "--format", "csv"]
        text, err = cli.both(*given, *at)
        assert err == f"mlscale: warning P01: {MADE}\n"
        rows = list(csv.DictReader(text.splitlines()))
        for row, want in zip(rows, predictions(cli, folder, *at), strict=True):
            assert row.keys() == want.keys()
            assert (row.pop("kernel"), row.pop("flags")) == (
                want.pop("kernel"), "; ".join(want.pop("flags")),
            )  # fmt: skip
            assert {name: float(cell) if cell else None for name, cell in row.items()} == want

    @pytest.mark.parametrize("form", ["table", "csv", "json"])
    def test_output_goes_to_the_file_instead(
        self, cli: Cli, folder: Path, tmp_path: Path, form: str
    ) -> None:
        shown = predict(cli, folder, "--format", form)
        file = tmp_path / "out"
        file.write_text("old")
        assert predict(cli, folder, "--format", form, "-o", file) == ""
        assert file.read_text(encoding="utf-8") == shown
        assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("lacks", ["model", "profile"])
def test_without_power_what_cannot_be_given_is_null(cli: Cli, tmp_path: Path, lacks: str) -> None:
    rows = tidy.rows()
    bare = [{k: v for k, v in row.items() if k != "power_w"} for row in rows]
    table = tidy.write_csv(tmp_path / "t.csv", bare if lacks == "model" else rows)
    profile = tidy.write_csv(tmp_path / "p.csv", at_base(rows if lacks == "model" else bare))
    model = tmp_path / "m.mlscale"
    cli("train", table, "--base", "mid", "-o", model)
    document = cli.json("predict", model, profile)
    assert len(document["predictions"]) == 8
    for row in document["predictions"]:
        assert (row["power_w"], row["energy_mj"]) == (None, None)
        assert row["time_ms"] > 0
    who = "the model was trained without power" if lacks == "model" else "the profile has no power"
    assert note_texts(document)[0].startswith(who)
    assert "  power" not in cli("predict", model, profile).split("\n\n")[1]
    text = cli("predict", model, profile, "--format", "csv", "--at", "mid")
    first = next(csv.DictReader(text.splitlines()))
    assert (first["power_w"], first["energy_mj"]) == ("", "")


def test_the_shipped_model_predicts_the_shipped_profile(cli: Cli) -> None:
    """At the base the prediction is the profile's own time, 48 configurations in all."""
    given = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")
    document = cli.json("predict", *given)
    rows = document["predictions"]
    assert len(rows) == 48
    [at_the_base] = [row for row in rows if place(row) == (16, 800, 700)]
    with path("simulated-gcn3-profile.csv").open(encoding="utf-8") as file:
        [measured] = csv.DictReader(file)
    assert at_the_base["time_ms"] == float(measured["time_ms"])
    assert at_the_base["time_factor"] == 1.0
    assert note_texts(document)[0].startswith("the model was trained on simulated data")


class TestTableOfReadings:
    """Times and powers of an RTX 3090 at two clocks, which the device table gives 82 SMs."""

    NAMES = "device,application,kernel,engine_mhz,memory_mhz,time_ms,power_w\n"
    FAST = "rtx3090,a,decode,1560,9501,28852,334\n"
    SLOW = "rtx3090,a,decode,975,9501,39730,249.8\n"

    def test_its_other_rows_are_further_readings(self, tmp_path: Path, cli: Cli) -> None:
        """The same answer as of two tables; its only memory clock and all CUs are meant."""
        both, alone, more = (tmp_path / name for name in ("both.csv", "alone.csv", "more.csv"))
        both.write_text(self.NAMES + self.FAST + self.SLOW)
        alone.write_text(self.NAMES + self.FAST)
        more.write_text(self.NAMES + self.SLOW)
        at = ("--at", "engine=1200")
        out = cli("predict", both, "--base", "engine=1560", *at)
        assert out == cli("predict", alone, "--also", more, *at)
        assert "decode on rtx3090, measured at 1560 / 9501 MHz: " in out
