"""--also of predict and advise, and study next-profile."""

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from html_page import Node, parse
from synthetic import bottleneck_kernels as made

from mlscale import save, train
from mlscale.cli.main import main
from mlscale.data.datasets import path

MID = made.CLOCKS.mid
CONFIG = "cu=16,engine=1100,memory=1000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, profile.csv with counters that show half the traffic, and truth.csv everywhere."""
    folder = tmp_path_factory.mktemp("also")
    save(train(made.measurements(6), MID, "bottleneck"), folder / "m.mlscale")
    truth = made.measurements(4, seed=1)
    truth.write(folder / "truth.csv")
    replace(truth, counter_samples=0.5 * truth.counter_samples).write(folder / "profile.csv")
    save(train(made.measurements(4), MID, "mean-surface"), folder / "mean.mlscale")
    return folder


def predictions(capsys: Capture, folder: Path, *options: object) -> list[dict[str, Any]]:
    given = ["predict", folder / "m.mlscale", folder / "profile.csv", "--format", "json", *options]
    rows: list[dict[str, Any]] = json.loads(succeed(capsys, *given)[0])["predictions"]
    return rows


def errors(rows: list[dict[str, Any]], folder: Path, column: str) -> float:
    """Mean error [%] against truth.csv."""
    with (folder / "truth.csv").open(encoding="utf-8") as file:
        truth = {
            (r["kernel"], float(r["engine_mhz"]), float(r["memory_mhz"])): float(r[column])
            for r in csv.DictReader(file)
        }
    found = [r[column] / truth[r["kernel"], r["engine_mhz"], r["memory_mhz"]] - 1 for r in rows]
    return float(100 * np.abs(found).mean())


def every_time(root: Node) -> dict[tuple[str, ...], float]:
    """Times [ms] of the kernel k0 in a report, by configuration as it is written."""
    section = next(of for of in root.all("section", "kernel") if "k0" in of.one("h2").text)
    folded = section.all("details")
    table = next(of for of in folded if "configurations" in of.one("summary").text).one("table")
    return {tuple(row[:3]): float(row[3]) for row in table.rows()}


def a100(path: Path, *rows: str) -> Path:
    """Rows of kernel, engine clock [MHz], time [ms] and power [W] on an A100, as text."""
    header = "device,cu_count,memory_mhz,kernel,engine_mhz,time_ms,power_w\n"
    path.write_text(header + "".join(f"a100-sxm4-80gb,108,1593,{row}\n" for row in rows))
    return path


class TestWhatWasMeasured:
    """At a further configuration stands what was measured there, by hand, and no estimate."""

    @pytest.mark.parametrize(("mhz", "more"), [(1005, 0), (1000, 1)])  # the GPU has steps of 15
    def test_is_a_row_of_its_own(
        self, capsys: Capture, tmp_path: Path, mhz: int, more: int
    ) -> None:
        base = a100(tmp_path / "base.csv", "k,1410,1,300")
        also = "--also", a100(tmp_path / "also.csv", f"k,{mhz},1.2,200")
        rows = json.loads(succeed(capsys, "predict", base, *also, "--format", "json")[0])
        [row] = [row for row in rows["predictions"] if row["engine_mhz"] == mhz]
        for name, value in (("time_ms", 1.2), ("power_w", 200)):
            measured = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
            assert measured == pytest.approx([value] * 3, rel=1e-12)
        assert row["energy_mj"] == pytest.approx(240)
        assert row["flags"] == ["measured"]
        assert len({row["engine_mhz"] for row in rows["predictions"]}) == 61 + more
        table, _ = succeed(capsys, "predict", base, *also, "--at", f"engine={mhz}")
        assert table.splitlines()[2].split()[-1] == "measured"
        document = json.loads(succeed(capsys, "advise", base, *also, "--format", "json")[0])
        [run] = document["whole_run"]["measured"]
        assert (run["engine_mhz"], run["time_ms"], run["power_w"]) == (mhz, 1.2, 200)
        lines = succeed(capsys, "advise", base, *also)[0].splitlines()
        at = lines.index("Measured at further configurations:")
        assert lines[at + 3].split() == f"108 {mhz} 1593 1.200 200.0 240.0 +20.0".split()

    def test_is_the_best_as_it_was_measured(self, capsys: Capture, tmp_path: Path) -> None:
        """100 W: no clock near it is predicted to need less than 120 mJ."""
        base = a100(tmp_path / "base.csv", "k,1410,1,300")
        also = "--also", a100(tmp_path / "also.csv", "k,1005,1.2,100")
        asked = "--minimize", "energy", "--max-slowdown", 20.000001
        document = json.loads(succeed(capsys, "advise", base, *also, *asked, "--format", "json")[0])
        best = document["whole_run"]["best"]
        assert (best["engine_mhz"], best["energy_mj"]) == (1005, pytest.approx(120))
        assert "20 % slower, 60 % less energy" in document["verdict"]

    def test_may_be_of_some_kernels_and_of_time_alone(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """The run is then no measured one."""
        base = a100(tmp_path / "base.csv", "a,1410,1,300", "b,1410,1,300")
        also = "--also", a100(tmp_path / "also.csv", "a,1000,1.2,")
        rows = json.loads(succeed(capsys, "predict", base, *also, "--format", "json")[0])
        a, b = (row for row in rows["predictions"] if row["engine_mhz"] == 1000)
        assert a["time_ms"] == a["time_ms_high"] == 1.2
        assert a["power_w"] < a["power_w_high"]
        assert [row["flags"][0] for row in (a, b)] == ["time measured", "interpolated"]
        assert b["time_ms"] < b["time_ms_high"]
        document = json.loads(succeed(capsys, "advise", base, *also, "--format", "json")[0])
        assert document["whole_run"]["measured"] == []


class TestAlso:
    def test_conditions_time_and_power(self, capsys: Capture, folder: Path) -> None:
        plain = predictions(capsys, folder)
        rows = predictions(capsys, folder, "--also", f"{folder}/truth.csv@{CONFIG}")
        for column, before in (("time_ms", 8), ("power_w", 4)):
            assert errors(plain, folder, column) > before
            assert errors(rows, folder, column) < errors(plain, folder, column) / 2

    def test_all_rows_of_a_table(self, capsys: Capture, folder: Path) -> None:
        rows = predictions(capsys, folder, "--also", folder / "truth.csv")
        assert errors(rows, folder, "time_ms") < 1

    def test_advise_takes_it_too(self, capsys: Capture, folder: Path) -> None:
        given = ["advise", folder / "m.mlscale", folder / "profile.csv", "--format", "json"]
        given += ["--minimize", "time"]
        plain = json.loads(succeed(capsys, *given)[0])["kernels"]
        out, _ = succeed(capsys, *given, "--also", folder / "truth.csv")
        assert json.loads(out)["kernels"][0]["best"]["time_ms"] != plain[0]["best"]["time_ms"]

    def test_report_takes_it_too(self, capsys: Capture, folder: Path, tmp_path: Path) -> None:
        given = ["report", folder / "m.mlscale", folder / "profile.csv", "-o", tmp_path / "r.html"]
        pages = []
        for more in ([], ["--also", f"{folder}/truth.csv@{CONFIG}"]):
            succeed(capsys, *given, *more)
            pages.append(parse((tmp_path / "r.html").read_text(encoding="utf-8")))
        plain, page = pages
        head = page.one("header").text
        assert "Measured too at" in head
        assert "16 compute units, 1100 / 1000 MHz" in head
        assert "Measured too at" not in plain.one("header").text
        assert f"-o r.html --also truth.csv@{CONFIG}" in page.texts("pre")[-1]
        assert str(folder) not in page.text
        truth = (folder / "truth.csv").read_text(encoding="utf-8").splitlines()
        measured = next(csv.DictReader([truth[0], *(r for r in truth if ",k0,16,1100,1000," in r)]))
        shown = [every_time(root)["16", "1100", "1000"] for root in pages]
        errors = [abs(value / float(measured["time_ms"]) - 1) for value in shown]
        assert errors[1] < errors[0] / 2

    @pytest.mark.parametrize(
        ("model", "also", "message"),
        [
            ("m", "truth.csv@cu=16,engine=600,memory=1000", "has no row at cu=16,engine=600"),
            ("m", f"truth.csv@{MID}", "is the base, which the profile has"),
            ("m", "truth.csv@cu=16,engine=fast", "'fast' in 'cu=16,engine=fast' is not a number"),
            ("m", "none.csv", "none.csv"),
            ("mean", "truth.csv", "'mean-surface' makes nothing of further measured points"),
        ],
    )
    def test_bad_input(
        self, capsys: Capture, folder: Path, model: str, also: str, message: str
    ) -> None:
        given = ["predict", folder / f"{model}.mlscale", folder / "profile.csv"]
        assert message in refuse(capsys, folder, *given, "--also", f"{folder}/{also}")

    def test_a_model_that_cannot_use_it_names_the_predictors_that_can(
        self, capsys: Capture, folder: Path
    ) -> None:
        given = ["predict", folder / "mean.mlscale", folder / "profile.csv"]
        message = refuse(capsys, folder, *given, "--also", folder / "truth.csv")
        assert message.endswith("with --predictor bottleneck, board-time")


class TestTrace:
    """A further trace of the application whose counters and trace ship, 10 % longer by hand."""

    EXPORTS = (path("training-step-ncu.csv"), path("training-step-trace.json.gz"))
    GIVEN = ("--base", "engine=1410,memory=1593")

    @pytest.fixture
    def slower(self, tmp_path: Path) -> Path:
        with gzip.open(self.EXPORTS[1], "rt", encoding="utf-8") as file:
            trace = json.load(file)
        for event in trace["traceEvents"]:
            if event.get("cat") == "kernel":
                event["dur"] *= 1.1
        written = tmp_path / "at-1200.json"
        written.write_text(json.dumps(trace), encoding="utf-8")
        return written

    def factors(self, capsys: Capture, *also: object) -> list[float]:
        """Times of the kernels with counters at 1200 MHz, relative to the base."""
        asked = ("--profiled-only", "--at", "engine=1200", "--format", "json", *also)
        out, _ = succeed(capsys, "predict", *self.EXPORTS, *self.GIVEN, *asked)
        return [row["time_factor"] for row in json.loads(out)["predictions"]]

    def test_its_times_are_of_the_kernels_of_the_counters(
        self, capsys: Capture, slower: Path
    ) -> None:
        plain = self.factors(capsys)
        moved = self.factors(capsys, "--also", f"{slower}@engine=1200")
        assert len(moved) == len(plain) == 18
        before, after = (np.mean(np.abs(np.array(f) - 1.1)) for f in (plain, moved))
        assert before > 0.03
        assert after < 0.6 * before  # regression only; the kernels are no exact laws

    def test_one_line_says_how(self, capsys: Capture, tmp_path: Path, slower: Path) -> None:
        given = ["predict", *self.EXPORTS, *self.GIVEN, "--also", slower]
        assert main([str(word) for word in given]) == 2
        said = capsys.readouterr().err.splitlines()[-1]  # behind a warning of the first trace
        assert "of a trace say where it ran: at-1200.json@engine=…, and memory=…" in said
        assert main([str(word) for word in [*given[:-1], f"{slower}@engine=1500"]]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert (
            f"{slower}: row 1: cu=108,engine=1500,memory=1593 is outside the model's grid" in said
        )
        table = ["predict", "simulated-gcn3-profile.csv", "--model", "simulated-gcn3"]
        said = refuse(capsys, tmp_path, *table, "--also", f"{slower}@cu=16,engine=1000,memory=700")
        assert "simulated-gcn3-profile.csv, does not tell its counters' launches" in said


def test_a_reading_below_the_clocks_listed_is_used_and_noted(
    capsys: Capture, data_folder: Path
) -> None:
    """An RTX 4000 Ada at 920 MHz, of which 1125 MHz is the lowest that is predicted else."""
    base, also = (
        data_folder / "cases" / f"2-{name}.csv" for name in ("base-1683", "also-920-refused")
    )
    out, _ = succeed(capsys, "advise", base, "--also", also, "--format", "json")
    document = json.loads(out)
    [measured] = document["whole_run"]["measured"]
    assert (measured["engine_mhz"], round(measured["time_ms"])) == (920, 81170)
    assert any("engine_mhz 920 is below" in warning for warning in document["warnings"])


def test_a_clock_a_percent_away_is_not_said_to_matter_nothing(
    capsys: Capture, data_folder: Path
) -> None:
    """Times at 1545 MHz beside 1560 MHz: 1 % of clock cannot change time by more than 1 %."""
    names = ("5-base-1560.csv", "5-also-1545-and-975.csv")
    base, also = (data_folder / "cases" / name for name in names)
    out, err = succeed(capsys, "advise", base, "--also", also)
    assert "no clock seems to matter" not in out + err
