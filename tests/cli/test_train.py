"""train: which predictor it takes, what it learns from, and what the model keeps.

Truth is of the laws in tests/synthetic/, and of tidy.rows(), whose times are by hand.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, at_base, refuse, succeed
from synthetic import bottleneck_kernels, sampled_kernels, tidy

from mlscale import load, read, train

MID = bottleneck_kernels.CLOCKS.mid
MODEL = "m.mlscale"
GIVEN = ("--base", "mid", "-o", MODEL)
pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


@pytest.fixture
def table() -> Path:
    """Two kernels, 'first' and 'second', at four configurations."""
    return tidy.write_csv(Path("t.csv"), tidy.rows())


def test_says_what_it_made(capsys: Capture, table: Path) -> None:
    out, err = succeed(capsys, "train", table, *GIVEN)
    said = " ".join(out.split())
    assert said.startswith(
        f"{MODEL}: time and power by 'wu', from 2 kernels of 2 applications at 4 settings of "
        "made-gpu Profile new kernels at cu=4,engine=800,memory=700, with 1 counter: loads "
    )
    assert " Why not 'bottleneck', which gives intervals: the GPU 'made-gpu' is unknown" in said
    assert said.endswith(f" Next mlscale predict PROFILE --model {MODEL}")
    assert err == ""


class TestPredictor:
    @pytest.mark.parametrize(
        "name",
        ["no-scaling", "engine-bound", "core-bound", "memory-bound", "mean-surface", "nearest"],
    )
    def test_that_can_be_saved_gives_back_the_base(
        self, capsys: Capture, table: Path, name: str
    ) -> None:
        """4 and 14 ms in tidy.rows()."""
        succeed(capsys, "train", table, *GIVEN, "--predictor", name)
        at = ("--at", "engine=800,memory=700", "--format", "json")
        out, _ = succeed(capsys, "predict", MODEL, table, *at)
        assert [row["time_ms"] for row in json.loads(out)["predictions"]] == [4.0, 14.0]
        assert {p.name for p in load(MODEL).predictors.values()} == {name}

    def test_default_is_the_one_that_suits(self, capsys: Capture, table: Path) -> None:
        """Said or left away, on the command line and in Python; at the highest clocks."""
        given = ("--base", "highest", "--predictor", "default", "-o", MODEL)
        out, _ = succeed(capsys, "train", table, *given)
        assert ": time and power by 'wu', " in out
        trained = train(read(table), "highest", "default")
        assert {p.name for p in trained.predictors.values()} == {"wu"}
        assert trained.base == load(MODEL).base == trained.grid.highest

    def test_default_looks_at_the_counters_of_the_base(self, capsys: Capture) -> None:
        """One kernel was counted at the middle of the clocks alone, so not at the highest."""
        made = bottleneck_kernels.measurements(kernels=4)
        made.counter_samples[:, 0, -1, -1, -1] = np.nan
        made.write("t.csv")
        out, _ = succeed(capsys, "train", "t.csv", "--base", "mid", "-o", MODEL)
        assert ": time and power by 'bottleneck'" in out
        for predictor in ("default", "bottleneck", "wu", "nearest"):
            given = ("--base", "highest", "--predictor", predictor, "-o", MODEL)
            said = refuse(capsys, Path(), "train", "t.csv", *given)
            assert ": 1 kernel (k0) of 4 without 'dram_read_transactions' at the base cu=" in said

    def test_averages_of_runs_get_board(self, capsys: Capture) -> None:
        """Their shares are not looked at, so that a table without them is as good."""
        made = sampled_kernels.measurements(4)
        for one in (made, made.without_counters(made.counter_names)):
            one.write("t.parquet")
            out, _ = succeed(capsys, "train", "t.parquet", *GIVEN)
            assert ": time and power by 'board', " in out


class TestTable:
    @pytest.mark.parametrize("predictor", ["bottleneck", "wu", "nearest", "mean-surface"])
    def test_power_of_some_rows(self, capsys: Capture, predictor: str) -> None:
        made = bottleneck_kernels.measurements(kernels=4)
        assert made.power_samples is not None
        made.power_samples[:, 0, 0, 0, 0] = np.nan
        made.write("t.csv")
        given = ("train", "t.csv", "--base", "mid", "--predictor", predictor, "-o", MODEL)
        assert ", --quantity time" in refuse(capsys, Path(), *given)
        out, _ = succeed(capsys, *given, "--quantity", "time")
        assert f": time by '{predictor}', from 4 kernels" in out

    def test_incomplete_kernels_are_dropped_with_a_warning(self, capsys: Capture) -> None:
        table = tidy.write_csv(Path("t.csv"), tidy.rows(["a", "b", "c"])[:-1])
        out, err = succeed(capsys, "train", table, *GIVEN, "--incomplete", "drop")
        assert ", from 2 kernels of 2 applications " in out
        assert "1 of 3 kernels lack configurations: 'c' lacks cu=4,engine=800,memory=700" in err
        assert load(MODEL).card["kernels"] == ["a", "b"]

    @pytest.mark.parametrize(
        ("how", "factor"), [(None, 1.0), ("median", 1.0), ("mean", 1.5), ("min", 0.25)]
    )
    def test_repetitions(self, capsys: Capture, how: str | None, factor: float) -> None:
        """By hand: at 400/500 MHz the kernel took 1, 4 and 13 ms, at the base 4 ms."""
        rows = tidy.rows(["alone"])
        repeated = [{**rows[0], "time_ms": time} for time in (4.0, 13.0)]
        table = tidy.write_csv(Path("t.csv"), [*rows, *repeated])
        asked = ("--repetitions", how) if how else ()
        succeed(capsys, "train", table, *GIVEN, "--predictor", "mean-surface", *asked)
        profile = tidy.write_csv(Path("p.csv"), at_base(rows))
        at = ("--at", "engine=400,memory=500", "--format", "json")
        out, _ = succeed(capsys, "predict", MODEL, profile, *at)
        assert json.loads(out)["predictions"][0]["time_factor"] == pytest.approx(factor, rel=1e-12)

    def test_an_export_is_no_table(self, capsys: Capture, tmp_path: Path) -> None:
        message = refuse(capsys, tmp_path, "train", "h100-by-hand.csv", *GIVEN)
        assert "h100-by-hand.csv: is a file of " in message
        assert "mlscale import FILE … --append -o TABLE" in message


def test_the_file_is_the_same_whatever_its_name(capsys: Capture, table: Path) -> None:
    """It keeps the command, without folders and its own name."""
    for name in ("one", "two"):
        given = ("--base", "mid", "--clusters", 2, "--seed", 5, "-o", name)
        succeed(capsys, "train", table.resolve(), *given)
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

    def test_time_is_learnt_from_all_and_serves_power(
        self, capsys: Capture, tables: tuple[Path, Path]
    ) -> None:
        """Better time, and so power, than from the first alone: all are of one law."""
        given = ("--base", "mid", "--predictor", "bottleneck")
        succeed(capsys, "train", tables[0], *given, "-o", "alone")
        out, _ = succeed(capsys, "train", *tables, *given, "-o", "pooled")
        assert "  Learns time from too    gtx1080ti\n" in out
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

    def test_what_is_refused(
        self, capsys: Capture, tmp_path: Path, tables: tuple[Path, Path]
    ) -> None:
        for more, said in (
            (("--predictor", "wu"), "'wu' learns from one TABLE at a time"),
            (("--leave-out", "none"), "there is no application 'none' to leave out"),
        ):
            assert said in refuse(capsys, tmp_path, "train", *tables, *GIVEN, *more)


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
    def model(self, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A model of mine:Mine in the current directory, where nothing of mine.py is imported."""
        monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
        Path("mine.py").write_text(MODULE)
        rows = tidy.rows(["a", "b", "c"])
        tidy.write_csv(Path("t.csv"), rows)
        tidy.write_csv(Path("p.csv"), at_base(rows))
        out, _ = succeed(capsys, "train", "t.csv", *GIVEN, "--predictor", "mine:Mine")
        assert out.startswith(f"  {MODEL}: time and power by 'mine:Mine', from 3 kernels")
        del sys.modules["mine"]
        Path("imported.txt").unlink()
        yield Path(MODEL)
        sys.modules.pop("mine", None)

    @pytest.mark.parametrize("command", ["predict", "advise", "report"])
    def test_with_its_class_and_without(self, capsys: Capture, model: Path, command: str) -> None:
        """The class does what mean-surface does, so it says the same."""
        message = refuse(capsys, Path.cwd(), command, model, "p.csv", "-o", "out.txt")
        assert message.startswith(
            f"{model}: was made by the predictor 'mine:Mine', which is not part of mlscale; give "
            "its class, if you trust it, by --predictor package.module:Class"
        )
        assert "mine" not in sys.modules
        assert not Path("imported.txt").exists()
        answers = []
        succeed(capsys, "train", "t.csv", "--base", "mid", "--predictor", "mean-surface", "-o", "p")
        for given in ([model, "p.csv", "--predictor", "mine:Mine"], ["p.csv", "--model", "p"]):
            succeed(capsys, command, *given, "-o", "out.txt")
            answers.append(Path("out.txt").read_text())
        assert command == "report" or answers[0] == answers[1]
        other = (command, model, "p.csv", "-o", "out.txt", "--predictor", "mine:Other")
        message = refuse(capsys, Path.cwd(), *other)
        assert "was made by the predictor 'mine:Mine'" in message
