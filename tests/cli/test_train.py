"""train: which predictor it takes, what it learns from, and what the model keeps.

Truth is of the laws in tests/synthetic/, and of tidy.rows(), whose times are by hand.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Cli, at_base
from synthetic import bottleneck_kernels, sampled_kernels, tidy

from mlscale import DataWarning, load, read, train

MID = bottleneck_kernels.CLOCKS.mid
MODEL = "m.mlscale"
GIVEN = ("--base", "mid", "-o", MODEL)
pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


@pytest.fixture
def table() -> Path:
    """Two kernels, 'first' and 'second', at four configurations."""
    return tidy.write_csv(Path("t.csv"), tidy.rows())


def test_says_what_it_made(cli: Cli, table: Path) -> None:
    out, err = cli.both("train", table, *GIVEN)
    said = " ".join(out.split())
    assert said.startswith(
        f"Base: cu=4,engine=800,memory=700 {MODEL}: time and power by 'wu', from 2 kernels of 2 "
        "applications at 4 settings of made-gpu Profile new kernels at the base, with 1 counter: "
    )
    assert " Why not 'bottleneck', which gives intervals: the GPU 'made-gpu' is unknown" in said
    assert said.endswith(f" Next mlscale predict PROFILE --model {MODEL}")
    assert err == ""


class TestPredictor:
    @pytest.mark.parametrize(
        "name",
        ["no-scaling", "engine-bound", "core-bound", "memory-bound", "mean-surface", "nearest"],
    )
    def test_that_can_be_saved_gives_back_the_base(self, cli: Cli, table: Path, name: str) -> None:
        """4 and 14 ms in tidy.rows()."""
        cli("train", table, *GIVEN, "--predictor", name)
        at = ("--at", "engine=800,memory=700", "--format", "json")
        out = cli("predict", MODEL, table, *at)
        assert [row["time_ms"] for row in json.loads(out)["predictions"]] == [4.0, 14.0]
        assert {p.name for p in load(MODEL).predictors.values()} == {name}

    def test_default_is_the_one_that_suits(self, cli: Cli, table: Path) -> None:
        """Said or left away, on the command line and in Python; at the highest clocks."""
        given = ("--base", "highest", "--predictor", "default", "-o", MODEL)
        assert ": time and power by 'wu', " in cli("train", table, *given)
        trained = train(read(table), "highest", "default")
        assert {p.name for p in trained.predictors.values()} == {"wu"}
        assert trained.base == load(MODEL).base == trained.grid.highest

    def test_default_looks_at_the_counters_of_the_base(self, cli: Cli) -> None:
        """One kernel was counted at the middle of the clocks alone, so not at the highest."""
        made = bottleneck_kernels.measurements(kernels=4)
        made.counter_samples[:, 0, -1, -1, -1] = np.nan
        made.write("t.csv")
        out = cli("train", "t.csv", "--base", "mid", "-o", MODEL)
        assert ": time and power by 'bottleneck'" in out
        for predictor in ("default", "bottleneck", "wu", "nearest"):
            given = ("--base", "highest", "--predictor", predictor, "-o", MODEL)
            said = cli.refused("train", "t.csv", *given)
            assert ": 1 kernel (k0) of 4 without 'dram_read_transactions' at the base cu=" in said

    def test_averages_of_runs_get_board(self, cli: Cli) -> None:
        """Their shares are not looked at, so that a table without them is as good."""
        made = sampled_kernels.measurements(4)
        for one in (made, made.without_counters(made.counter_names)):
            one.write("t.parquet")
            assert ": time and power by 'runs', " in cli("train", "t.parquet", *GIVEN)


class TestTable:
    @pytest.mark.parametrize("predictor", ["bottleneck", "wu", "nearest", "mean-surface"])
    def test_power_of_some_rows(self, cli: Cli, predictor: str) -> None:
        made = bottleneck_kernels.measurements(kernels=4)
        assert made.power_samples is not None
        made.power_samples[:, 0, 0, 0, 0] = np.nan
        made.write("t.csv")
        given = ("train", "t.csv", "--base", "mid", "--predictor", predictor, "-o", MODEL)
        assert ", --quantity time" in cli.refused(*given)
        assert f": time by '{predictor}', from 4 kernels" in cli(*given, "--quantity", "time")

    def test_incomplete_kernels_are_dropped_with_a_warning(self, cli: Cli) -> None:
        table = tidy.write_csv(Path("t.csv"), tidy.rows(["a", "b", "c"])[:-1])
        out, err = cli.both("train", table, *GIVEN, "--incomplete", "drop")
        assert ", from 2 kernels of 2 applications " in out
        assert "1 of 3 kernels lack configurations: 'c' lacks cu=4,engine=800,memory=700" in err
        assert load(MODEL).card["kernels"] == ["a", "b"]

    @pytest.mark.parametrize(
        ("how", "factor"), [(None, 1.0), ("median", 1.0), ("mean", 1.5), ("min", 0.25)]
    )
    def test_repetitions(self, cli: Cli, how: str | None, factor: float) -> None:
        """By hand: at 400/500 MHz the kernel took 1, 4 and 13 ms, at the base 4 ms."""
        rows = tidy.rows(["alone"])
        repeated = [{**rows[0], "time_ms": time} for time in (4.0, 13.0)]
        table = tidy.write_csv(Path("t.csv"), [*rows, *repeated])
        asked = ("--repetitions", how) if how else ()
        cli("train", table, *GIVEN, "--predictor", "mean-surface", *asked)
        profile = tidy.write_csv(Path("p.csv"), at_base(rows))
        at = ("--at", "engine=400,memory=500", "--format", "json")
        out = cli("predict", MODEL, profile, *at)
        assert json.loads(out)["predictions"][0]["time_factor"] == pytest.approx(factor, rel=1e-12)


def test_words_and_rows_without_a_clock_are_left_out_and_results_named(cli: Cli) -> None:
    """By CSV and Parquet; 'auto' stands where no clock was set."""
    results = {"mean-edp": 2.0, "run-time [s]": 3.0, "num-iters": 7}
    rows = [{**row, "problem": "1MB", **results} for row in tidy.rows()]
    auto = {**rows[0], "engine_mhz": "auto", "time_ms": 9}
    files = [
        tidy.write_csv(Path("t.csv"), [auto, *rows]),
        tidy.write_parquet(Path("t.parquet"), rows),
    ]
    told = [cli.both("train", file, *GIVEN, "--no-check") for file in files]
    assert told[0][0] == told[1][0]
    assert "from 2 kernels of 2 applications at 4 settings" in " ".join(told[0][0].split())
    for file, (_, err) in zip(files, told, strict=True):
        assert f"T09: {file}: left out, as they contain text: 'problem'\n" in err
        named = "T05: {}: 'mean-edp', 'run-time [s]', 'num-iters': treated as a counter"
        assert named.format(file) in err
    assert "T09: t.csv: 1 row without a clock left out, the first is row 2\n" in told[0][1]


def test_a_column_to_leave_out_is_in_one_of_the_tables(cli: Cli, table: Path) -> None:
    other = tidy.write_csv(Path("u.csv"), [{**row, "stores": 1.0} for row in tidy.rows()])
    cli("train", table, *GIVEN, "--predictor", "nearest")
    predict = ("predict", MODEL, table)
    for given in (predict, ("train", table, *GIVEN), ("study", "errors", table)):
        said = cli.refused(*given, "--map", "store=")
        assert said.endswith("t.csv: the mapping store=: there is no column 'store'")
    for name, why in (("store", "did you mean 'stores'?"), ("stores", "cannot use further")):
        assert why in cli.refused(*predict, "--also", other, "--map", f"{name}=")


@pytest.mark.usefixtures("forget_own_devices")
def test_a_device_file_is_given_as_the_message_says(cli: Cli) -> None:
    """The model carries its facts, and is by 'bottleneck', which needs the peaks."""
    bottleneck_kernels.measurements(4).write("t.csv")
    facts = json.loads(cli("devices", "show", "gtx980", "--json"))
    Path("FILE.json").write_text(json.dumps({**facts, "key": "mine"}))
    train_as = ("train", "t.csv", *GIVEN, "--no-check", "--map")
    told = " ".join(cli(*train_as, "device=other").split())
    assert "the GPU 'other' is unknown; describe it in a device file" in told
    assert "of a table with --map device=FILE" in told
    assert "by 'bottleneck'" in cli(*train_as, "device=FILE.json")
    assert load(MODEL).card["metadata"]["device_facts"]["key"] == load(MODEL).device == "mine"


def test_power_under_another_name_is_told(cli: Cli) -> None:
    rows = [{**row, "avg power (mW)": 5e4} for row in tidy.rows()]
    for row in rows:
        row.pop("power_w", None)
    _, err = cli.both("train", tidy.write_csv(Path("t.csv"), rows), *GIVEN, "--no-check")
    [given] = re.findall("power is not learnt; --map '(.*?)' learns it", err)
    out = cli("train", "t.csv", *GIVEN, "--no-check", "--map", given)
    assert "time and power by" in out


def test_the_file_is_the_same_whatever_its_name(cli: Cli, table: Path) -> None:
    """It keeps the command, without folders and its own name."""
    for name in ("one", "two"):
        given = ("--base", "mid", "--clusters", 2, "--seed", 5, "-o", name)
        cli("train", table.resolve(), *given)
    assert Path("one").read_bytes() == Path("two").read_bytes()
    kept = "mlscale train t.csv --base mid --clusters 2 --seed 5 -o MODEL"
    assert load("one").card["made_by"]["command"] == kept


class TestSeveralGpus:
    @pytest.fixture
    def tables(self) -> tuple[Path, Path]:
        """Four kernels of the GPU in question, six of another."""
        bottleneck_kernels.measurements(4).write("first.csv")
        other = bottleneck_kernels.measurements(6, seed=3)
        replace(other, device="gtx1080ti").write("second.csv")
        return Path("first.csv"), Path("second.csv")

    @pytest.mark.slow
    def test_time_is_learnt_from_all_and_serves_power(
        self, cli: Cli, tables: tuple[Path, Path]
    ) -> None:
        """Better time, and so power, than from the first alone: all are of one law."""
        given = ("--base", "mid", "--predictor", "bottleneck")
        cli("train", tables[0], *given, "-o", "alone")
        out = cli("train", *tables, *given, "-o", "pooled")
        assert "  Also learns time from   gtx1080ti\n" in out
        alone, pooled = load("alone"), load("pooled")
        assert (pooled.device, pooled.base) == ("gtx980", MID)
        assert pooled.card["kernels"] == ["k0", "k1", "k2", "k3"]
        assert pooled.card["time_learnt_from"] == ["gtx980", "gtx1080ti"]
        new = bottleneck_kernels.measurements(9, seed=1)
        one, both = (model.predict(new.profiles(MID)) for model in (alone, pooled))
        for name in ("time", "power"):
            actual = new.quantity(name) / new.quantity(name)[:, :1, 2:3, 2:3]
            errors = [np.abs(found[name].values / actual - 1).mean() for found in (one, both)]
            assert errors[1] < errors[0]


MODULE = """
from pathlib import Path
from mlscale import MeanSurface, Nearest

class Mine(MeanSurface):
    name = "mine"

class Other(Nearest):
    name = "other"

Path("imported.txt").write_text("imported")
"""


class TestPredictorOfOnesOwn:
    """Its class is named on the command line; a model file imports nothing."""

    @pytest.fixture
    def model(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A model of mine:Mine in the current directory, where nothing of mine.py is imported."""
        monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
        Path("mine.py").write_text(MODULE)
        rows = tidy.rows(["a", "b", "c"])
        tidy.write_csv(Path("t.csv"), rows)
        tidy.write_csv(Path("p.csv"), at_base(rows))
        out = cli("train", "t.csv", *GIVEN, "--predictor", "mine:Mine")
        assert f"\n  {MODEL}: time and power by 'mine:Mine', from 3 kernels" in out
        del sys.modules["mine"]
        Path("imported.txt").unlink()
        yield Path(MODEL)
        sys.modules.pop("mine", None)

    @pytest.mark.parametrize("command", ["predict", "advise", "report"])
    def test_with_its_class_and_without(self, cli: Cli, model: Path, command: str) -> None:
        """The class does what mean-surface does, so it says the same."""
        message = cli.refused(command, model, "p.csv", "-o", "out.txt")
        assert message.startswith(
            f"{model}: was made by the predictor 'mine:Mine', which is not part of mlscale; give "
            "its class, if you trust it, by --predictor package.module:Class"
        )
        assert "mine" not in sys.modules
        assert not Path("imported.txt").exists()
        answers = []
        cli("train", "t.csv", "--base", "mid", "--predictor", "mean-surface", "-o", "p")
        for given in ([model, "p.csv", "--predictor", "mine:Mine"], ["p.csv", "--model", "p"]):
            cli(command, *given, "-o", "out.txt")
            answers.append(Path("out.txt").read_text())
        assert command == "report" or answers[0] == answers[1]
        other = (command, model, "p.csv", "-o", "out.txt", "--predictor", "mine:Other")
        assert "was made by the predictor 'mine:Mine'" in cli.refused(*other)


def without_stores(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows with bytes per store; 'c' stores nothing, but for what it has at 400 and 500 MHz."""
    return [
        {**row, "WritePerStoreByte": "" if row["kernel"] == "c" and step % 4 else 32.0 + step // 4}
        for step, row in enumerate(rows)
    ]


@pytest.mark.parametrize("predictor", ["nearest", "wu"])
def test_a_feature_that_a_kernel_lacks_at_the_base_is_the_median(cli: Cli, predictor: str) -> None:
    """By hand: of 32, 33, none and 35 bytes per store the median is 33."""
    rows = without_stores(tidy.rows(["a", "b", "c", "d"]))
    tidy.write_csv(Path("t.csv"), rows)
    given = ("--predictor", predictor, "--features", "raw")
    out, err = cli.both("train", "t.csv", *given, "-o", MODEL)
    assert "Some kernels lack       WritePerStoreByte" in out
    lacking = "1 kernel (c) of 4 without 'WritePerStoreByte' at the base cu=4,engine=800,memory=700"
    assert lacking in err
    scaling = load(MODEL).lead.scaling_
    assert dict(zip(scaling.names, scaling.median, strict=True))["WritePerStoreByte"] == 33
    cli("study", "errors", "t.csv", *given, "--seeds", 1)
    tidy.write_csv(Path("p.csv"), [row for row in at_base(rows) if row["kernel"] == "c"])
    out = cli("predict", "p.csv", "--model", MODEL, "--format", "json")
    assert "missing: WritePerStoreByte" in out


def test_the_base_is_the_same_in_train_and_studies_and_printed_first(cli: Cli) -> None:
    """At three clocks, so that the middle is another; times as 1 / clock."""
    fast = [row for row in tidy.rows(["a", "b", "c"]) if row["engine_mhz"] == 800]
    clocks = (400.0, 800.0, 1600.0)
    rows = [{**row, "engine_mhz": mhz, "time_ms": 800 / mhz} for row in fast for mhz in clocks]
    tidy.write_csv(Path("t.csv"), rows)
    predictor = ("--predictor", "mean-surface")
    told = "Base: cu=4,engine=1600,memory=700, the highest setting (another: --base)"
    for command in (("train", "t.csv", "-o", MODEL), ("study", "errors", "t.csv")):
        assert cli(*command, *predictor).splitlines()[0] == f"  {told}"
    out = cli("study", "advice", "t.csv", *predictor)
    assert "base cu=4,engine=1600,memory=700, " in out.splitlines()[0]
    with pytest.warns(DataWarning, match="the base is the highest setting, cu=4,engine=1600,mem"):
        assert load(MODEL).base == train(read("t.csv"), predictor="mean-surface").base
