"""--also of predict, advise and report: tables of the same kernels at further configurations.

Truth is of the law in tests/synthetic/bottleneck_kernels.py; the A100's rows are by hand; two
cases are readings of real GPUs.
"""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli, flat, note_texts
from report_pages import runs_of
from synthetic import bottleneck_kernels as made

from mlscale import save, train

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


class TestPoints:
    def errors(self, cli: Cli, folder: Path, *more: object) -> list[float]:
        """Mean error of time and of power [%] against truth.csv."""
        given = ["predict", folder / "m.mlscale", folder / "profile.csv", *more]
        rows = cli.json(*given)["predictions"]
        with (folder / "truth.csv").open(encoding="utf-8") as file:
            truth = {
                (row["kernel"], float(row["engine_mhz"]), float(row["memory_mhz"])): row
                for row in csv.DictReader(file)
            }
        errors = []
        for name in ("time_ms", "power_w"):
            off = [
                row[name] / float(truth[row["kernel"], row["engine_mhz"], row["memory_mhz"]][name])
                - 1
                for row in rows
            ]
            errors.append(float(100 * np.abs(off).mean()))
        return errors

    def test_condition_time_and_power(self, cli: Cli, folder: Path) -> None:
        plain = self.errors(cli, folder)
        one = self.errors(cli, folder, "--also", f"{folder}/truth.csv@{CONFIG}")
        for before, after, least in zip(plain, one, (8, 4), strict=True):
            assert before > least
            assert after < before / 2
        every = self.errors(cli, folder, "--also", folder / "truth.csv")
        assert every[0] < 1

    def test_move_advice_and_the_page(self, cli: Cli, folder: Path, tmp_path: Path) -> None:
        files, also = (folder / "m.mlscale", folder / "profile.csv"), folder / "truth.csv"
        asked = ("advise", *files, "--commands", "--minimize", "time")
        documents = [cli.json(*asked, *more) for more in ((), ("--also", also))]
        best = [one["kernels"][0]["best"]["time_ms"] for one in documents]
        assert best[0] != best[1]
        given = ("report", *files, "--minimize", "time", "-o", tmp_path / "page.html")
        cli(*given, "--also", also)
        [run] = runs_of((tmp_path / "page.html").read_text(encoding="utf-8"))
        assert run["document"] == documents[1]
        assert len(run["document"]["measured"]) > 0

    @pytest.mark.parametrize(
        ("model", "also", "message"),
        [
            ("m", "truth.csv@cu=16,engine=600,memory=1000", "has no row at cu=16,engine=600"),
            ("m", f"truth.csv@{MID}", "is the base, which the profile has"),
            ("m", "truth.csv@cu=16,engine=fast", "'cu=16,engine=fast': 'fast' is not a number"),
            ("m", "none.csv", "none.csv"),
            ("mean", "truth.csv", "'mean-surface' cannot use further measured points"),
            ("mean", "truth.csv", "with --predictor bottleneck"),
        ],
    )
    def test_what_is_refused(
        self, cli: Cli, folder: Path, model: str, also: str, message: str
    ) -> None:
        given = ["predict", folder / f"{model}.mlscale", folder / "profile.csv"]
        assert message in cli.refused(*given, "--also", f"{folder}/{also}", folder=folder)


class TestWhatWasMeasured:
    """At a further configuration stands what was measured there, and no estimate."""

    def a100(self, path: Path, *rows: str) -> Path:
        """Rows of kernel, engine clock [MHz], time [ms] and power [W] on an A100."""
        header = "device,cu_count,memory_mhz,kernel,engine_mhz,time_ms,power_w\n"
        path.write_text(header + "".join(f"a100-sxm4-80gb,108,1593,{row}\n" for row in rows))
        return path

    @pytest.mark.parametrize(("mhz", "more"), [(1005, 0), (1000, 1)])  # the GPU has steps of 15
    def test_is_a_row_of_its_own(self, cli: Cli, tmp_path: Path, mhz: int, more: int) -> None:
        base = self.a100(tmp_path / "base.csv", "k,1410,1,300")
        also = "--also", self.a100(tmp_path / "also.csv", f"k,{mhz},1.2,200")
        rows = cli.json("predict", base, *also)["predictions"]
        [row] = [row for row in rows if row["engine_mhz"] == mhz]
        for name, value in (("time_ms", 1.2), ("power_w", 200)):
            measured = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
            assert measured == pytest.approx([value] * 3, rel=1e-12)
        assert row["energy_mj"] == pytest.approx(240)
        assert row["flags"] == ["measured"]
        assert len({row["engine_mhz"] for row in rows}) == 61 + more
        assert "  = measured\n" in cli("predict", base, *also, "--at", f"engine={mhz}")
        run = flat(*cli.json("advise", base, *also)["measured"])
        assert (run["engine_mhz"], run["time_ms"], run["power_w"]) == (mhz, 1.2, 200)
        lines = cli("advise", base, *also, "--all").splitlines()
        at = next(at for at, line in enumerate(lines) if line.startswith("  measured "))
        assert lines[at + 1].split() == f"{mhz} MHz +20.0 % 200 W -20.0 %".split()

    def test_is_the_best_as_it_was_measured(self, cli: Cli, tmp_path: Path) -> None:
        """100 W: no clock near it is predicted to need less than 120 mJ."""
        base = self.a100(tmp_path / "base.csv", "k,1410,1,300")
        also = "--also", self.a100(tmp_path / "also.csv", "k,1005,1.2,100")
        asked = ("--minimize", "energy", "--max-slowdown", 20.000001)
        best = flat(cli.json("advise", base, *also, *asked)["answer"])
        assert (best["engine_mhz"], best["energy_mj"]) == (1005, pytest.approx(120))
        assert best["slowdown_percent"] == pytest.approx(20)
        assert best["energy_percent"] == pytest.approx(-60)

    def test_may_be_of_some_kernels_and_of_time_alone(self, cli: Cli, tmp_path: Path) -> None:
        """The run is then no measured one."""
        base = self.a100(tmp_path / "base.csv", "a,1410,1,300", "b,1410,1,300")
        also = "--also", self.a100(tmp_path / "also.csv", "a,1000,1.2,")
        rows = cli.json("predict", base, *also)["predictions"]
        a, b = (row for row in rows if row["engine_mhz"] == 1000)
        assert a["time_ms"] == a["time_ms_high"] == 1.2
        assert a["power_w"] < a["power_w_high"]
        assert [row["flags"][0] for row in (a, b)] == ["time measured", "interpolated"]
        assert b["time_ms"] < b["time_ms_high"]
        assert cli.json("advise", base, *also)["measured"] == []


class TestRealReadings:
    def advice(self, cli: Cli, folder: Path, base: str, also: str) -> Any:
        files = [folder / "cases" / name for name in (base, also)]
        out, err = cli.both("advise", files[0], "--also", files[1], "--json")
        assert "no clock seems to matter" not in err
        return json.loads(out)

    def test_below_the_clocks_listed_are_used_and_noted(self, cli: Cli, data_folder: Path) -> None:
        """An RTX 4000 Ada at 920 MHz, of which 1125 MHz is the lowest that is predicted else."""
        files = ("2-base-1683.csv", "2-also-920-refused.csv")
        document = self.advice(cli, data_folder, *files)
        measured = flat(*document["measured"])
        assert (measured["engine_mhz"], round(measured["time_ms"])) == (920, 81170)
        assert any("engine_mhz 920 is below" in text for text in note_texts(document))

    def test_a_percent_of_clock_away_are_not_said_to_matter_nothing(
        self, cli: Cli, data_folder: Path
    ) -> None:
        """1545 MHz beside 1560 MHz cannot change time by more than 1 %."""
        files = ("5-base-1560.csv", "5-also-1545-and-975.csv")
        assert len(self.advice(cli, data_folder, *files)["measured"]) == 2
