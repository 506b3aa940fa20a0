"""mlscale study advice: text, JSON, files, resuming, and what is refused."""

import json
import re
from pathlib import Path

import pytest
from command import Cli, files_in
from synthetic import frugal, tidy

ONLY_NEAREST = ("--base", "mid", "--predictor", "nearest", "--features", "raw")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frugal.measurements().write(tmp_path / "made.csv")
    return tmp_path / "made.csv"


class TestOutput:
    def test_text(self, cli: Cli, table: Path) -> None:
        out = cli("study", "advice", table, *ONLY_NEAREST, "--max-slowdown", 0)
        lines = out.splitlines()
        assert out.startswith("made: regret of energy [%], under a slowdown of at most 0 %, 6 k")
        assert ["nearest", "raw", "0.00", "0.00", "0.00"] in [line.split()[:5] for line in lines]
        assert lines[-1].startswith("EDP, ED2P (or --minimize), medians")

    def test_the_columns_of_a_limit_and_intervals_fit(self, cli: Cli) -> None:
        table = Path(__file__).parents[2] / "datasets/headroom-rtx3060.csv"
        options = ("--incomplete", "drop", "--base", "highest", "--max-slowdown", 10)
        lines = cli("study", "advice", table, *options, "--seeds", 1).splitlines()
        assert {"limit by", "breaks %", "by >1 %"} <= {*re.split("  +", lines[3])}
        assert max(map(len, lines)) <= 100
        assert len(lines) <= 25

    def test_several_objectives_are_told_together(self, cli: Cli, table: Path) -> None:
        asked = ("--minimize", "energy", "--minimize", "ed2p")
        out = cli("study", "advice", table, *ONLY_NEAREST, *asked)
        heads = [line for line in out.splitlines() if line.startswith("made: regret of")]
        assert [head.split()[3] for head in heads] == ["energy", "ED2P"]
        assert "made energy  made ED2P" in out.partition("Mean regret [%] together")[2]

    def test_json_and_files_tell_the_same(self, cli: Cli, table: Path, tmp_path: Path) -> None:
        # 32.98 and 190.02 %: highest clocks of a compute and a bandwidth kernel of
        # tests/synthetic/frugal.py.
        document = cli.json(
            "study", "advice", table, *ONLY_NEAREST, "--minimize", "energy", "-o", tmp_path / "out"
        )
        rows = {row["advisor"]: row for row in document["rows"]}
        assert list(rows) == ["highest-clocks", "stay-at-base", "best-fixed", "nearest"]
        expected = 100 * ((100 / 75.2 + 100 / 34.48) / 2 - 1)
        assert rows["highest-clocks"]["regret_mean"] == pytest.approx(expected, rel=1e-9)
        assert json.loads((tmp_path / "out/study.json").read_text()) == document
        written = {row["advisor"]: row for row in tidy.read_csv(tmp_path / "out/advice.csv")}
        assert float(written["highest-clocks"]["regret_mean"]) == pytest.approx(expected)
        assert (written["nearest"]["cu_count"], written["nearest"]["n_kernels"]) == ("8", "6")
        choices = tidy.read_csv(tmp_path / "out/choices.csv")
        assert len(choices) == 4 * 6
        for kind in ("png", "svg"):
            assert (tmp_path / f"out/advice-made-energy.{kind}").stat().st_size > 5000
        assert {c["engine_mhz"] for c in choices if c["advisor"] == "highest-clocks"} == {"1000.0"}

    def test_board_is_said_to_learn_from_the_other_tables_gpus(self, cli: Cli) -> None:
        folder = Path(__file__).parents[2] / "datasets"
        tables = [folder / f"headroom-{gpu}.csv" for gpu in ("rtx5060ti", "rtx2060s")]
        options = ("--incomplete", "keep", "--base", "highest", "--predictor", "runs")
        out = cli("study", "advice", *tables, *options, "--minimize", "energy", "--seeds", 1)
        out = " ".join(out.split())
        told = "(runs: of other GPUs' tables, each run read at two clocks)"
        assert out.count(told) == 2

    def test_runs_are_advised_instead_of_kernels(
        self, cli: Cli, table: Path, tmp_path: Path
    ) -> None:
        out = cli(
            "study",
            "advice",
            table,
            *ONLY_NEAREST,
            "--minimize",
            "energy",
            "--runs",
            12,
            "-o",
            tmp_path / "out",
        )
        heading, header = out.splitlines()[:3:2]
        assert heading.startswith("made: regret of energy [%], 12 random runs, base cu=8")
        assert re.split("  +", header) == [
            *("advisor", "features", "mean", "±", "worst", "saves %", "time %"),
        ]
        choices = tidy.read_csv(tmp_path / "out/choices.csv")
        assert len(choices) == 4 * 12
        assert {choice["run"] for choice in choices} == {str(n) for n in range(1, 13)}
        highest = tidy.read_csv(tmp_path / "out/advice.csv")[0]
        number, names = highest["worst_run"], highest["worst_run_applications"]
        [chosen] = (c for c in choices if c["advisor"] == highest["advisor"] and c["run"] == number)
        assert (chosen["applications"], chosen["regret_percent"]) == (
            *(names, highest["worst_regret"]),
        )
        runs = tidy.read_csv(tmp_path / "out/runs.csv")
        launched = [row["application"] for row in runs if row["run"] == number]
        assert ", ".join(launched) == names

    @pytest.mark.usefixtures("one_process", "no_figures")
    def test_what_is_done_is_taken_up(self, cli: Cli, table: Path, tmp_path: Path) -> None:
        command = ("study", "advice", table, *ONLY_NEAREST, "-o")
        first = cli(*command, tmp_path / "whole")
        again = cli(*command, tmp_path / "whole", "--resume")
        assert again.strip() == first.partition("\n\nWritten")[0].strip()
        said = cli.refused(*command, tmp_path / "whole", "--max-power", 90)
        assert "holds the results of another study" in said
        cli.interrupted(*command, tmp_path / "stopped")
        cli(*command, tmp_path / "stopped", "--resume")
        assert files_in(tmp_path / "stopped") == files_in(tmp_path / "whole")
