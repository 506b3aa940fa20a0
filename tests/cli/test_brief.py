"""Short answers: of real files they fit a terminal, colours change no letter, and figures by hand.

Times by hand are those of tidy.rows() and of tests/synthetic/kernels.py: kernel k takes
10 k + 1, 2, 3, 4 ms.
"""

import re
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from command import Cli
from synthetic import frugal, tidy
from synthetic import kernels as made

from mlscale import ConfigGrid, load
from mlscale.cli.terminal import columns

pytestmark = pytest.mark.usefixtures("in_an_empty_folder", "one_process")

STEP = ("training-step-ncu.csv", "training-step-trace.json.gz")
POWER = ("--power", "training-step-power.csv")
SIMULATED = ("simulated-gcn3-profile.csv", "--model", "simulated-gcn3")
CHEAP = ("--predictor", "mean-surface", "--seeds", 1)
REAL = {
    "a run": ("predict", *STEP, *POWER),
    "kernels of a run": ("predict", *STEP, "--kernels"),
    "one kernel": ("predict", *SIMULATED, "--kernels"),
    "settings": ("predict", "h100-by-hand.csv", "--at", "engine=1201", "--at", "memory=1593"),
    "many settings": (
        *("predict", "h100-by-hand.csv"),
        *(word for mhz in range(1000, 1900, 15) for word in ("--at", f"engine={mhz}")),
    ),
    "errors": ("study", "errors", "simulated-gcn3.parquet", *CHEAP),
    "two quantities": ("study", "errors", "h200-suite.csv", "--base", "highest", *CHEAP),
    "training": ("train", "simulated-gcn3.parquet", "-o", "m", "--predictor", "mean-surface"),
    **{name: ("show", name) for name in ("kernels", "runs", "h100-sms", "simulated-gcn3")},
    "all GPUs": ("devices", "list"),
    "many GPUs": ("devices", "list", "rtx"),
    "long names": ("devices", "list", "rtx-pro"),
    "data sets": ("datasets", "list"),
}  # fmt: skip


@pytest.mark.parametrize("what", REAL)
def test_a_real_answer_fits_a_terminal(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli(*REAL[what]).splitlines()
    assert 4 <= len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert all(line.startswith("  ") for line in lines if line)


@pytest.mark.parametrize("what", ["settings", "kernels of a run", "errors"])
def test_colours_change_no_letter(cli: Cli, what: str) -> None:
    plain = cli(*REAL[what])
    assert plain == cli(*REAL[what], "--color", "never")
    coloured = cli(*REAL[what], "--color", "always")
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    assert "\x1b[1m" in coloured


class TestPredict:
    @pytest.fixture
    def given(self) -> list[object]:
        """Kernels 2 of each group at (8, 800, 700), and a model of the others."""
        made.measurements().write(Path("t.csv"))
        names = [f"{group}2" for group in made.LAWS]
        left_out = [f"--leave-out={made.application(name)}" for name in names]
        train = ("--base", "mid", "--predictor", "nearest", "--no-check")
        out = ["train", "t.csv", *train, *left_out, "-o", "m.mlscale"]
        data = made.measurements()
        kept = [k for k, name in enumerate(data.kernels) if name in names]
        data.select(kept).write(Path("p.csv"))
        return [out, ["predict", "p.csv", "--model", "m.mlscale"]]

    def test_sums_of_all_kernels_by_the_law(self, cli: Cli, given: list[list[str]]) -> None:
        """Where time goes with a power of each clock; slowdown and energy against the sums."""
        cli(*given[0])
        document = cli.json(*given[1])
        out = cli(*given[1])
        heading, table, _ = out.split("\n\n")
        lines = table.splitlines()[1:]
        sums: dict[float, tuple[float, float]] = {}
        for row in document["predictions"]:
            if (row["cu_count"], row["memory_mhz"]) == (8, 700):
                ms, mj = sums.get(row["engine_mhz"], (0.0, 0.0))
                sums[row["engine_mhz"]] = ms + row["time_ms"], mj + row["energy_mj"]
        rows = [re.split("  +", line.strip()) for line in lines[: len(sums)]]
        base_ms, base_mj = sums[800]
        assert (
            "4 kernels, each counted once, on made-gpu, measured at 8 CUs, 800 / 700"
            in " ".join(heading.split())
        )
        assert [float(row[0]) for row in rows] == [800, *sorted(sums.keys() - {800}, reverse=True)]
        assert rows[0][2] == "base"
        for row in rows[1:]:
            ms, mj = sums[float(row[0])]
            assert row[2] == f"{100 * (ms / base_ms - 1):+.1f} %"
            assert row[4] == f"{100 * (mj / base_mj - 1):+.1f} %"
        count = len(document["predictions"]) // 4
        assert f"  {count} settings in all: --all, or -o all.csv." in out
        every = cli(*given[1], "--all").split("\n\n")[1]
        assert len(every.splitlines()) == 1 + count

    def test_notes_are_named_and_spelled_out_where_asked_for(self, cli: Cli) -> None:
        given = ("predict", "h100-by-hand.csv")
        out, few = cli.both(*given)
        assert "--notes for all." in out
        everything = cli.told(*given, "--notes").splitlines()
        assert few == ""
        document = cli.json(*given)
        assert len(document["notes"]) == len(everything)
        for note in document["notes"]:
            assert note["kernels"] == "all" or set(note["kernels"]) < {
                row["kernel"] for row in document["predictions"]
            }

    def test_a_row_above_the_power_limit_is_marked(self, cli: Cli, tmp_path: Path) -> None:
        model, profile = frugal.files(tmp_path, "h100-sxm5", power=8)
        at = ("--at", "cu=8,engine=1000,memory=700")
        out = cli("predict", model, profile, *at, "--color", "always")
        [row] = [line for line in out.splitlines() if line.startswith("  \x1b[33m")]
        assert "  !" in row
        assert "  ! above power limit\n" in out


class TestStudies:
    @pytest.fixture
    def table(self) -> Path:
        data = made.measurements(
            per_group=2, grid=ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
        )
        data.write(Path("made.csv"))
        return Path("made.csv")

    def test_best_first_with_the_figures_of_the_document(self, cli: Cli, table: Path) -> None:
        given = ("study", "errors", table, "--quantity", "time", "--predictor", "mean-surface")
        rows = cli.json(*given)["rows"]
        out = cli(*given)
        shown = out.partition("predictor")[2].splitlines()[1 : len(rows) + 1]
        rows.sort(key=lambda row: row["mape"])
        assert [line.split()[0] for line in shown] == [row["predictor"] for row in rows]
        for line, row in zip(shown, rows, strict=True):
            assert f" {row['mape']:.1f} % ±{row['standard_error']:.1f} " in line
            assert (" best " in line) == row["within_error_of_best"]
        assert "8 kernels of 8 applications on made-gpu" in " ".join(out.split())

    def test_at_most_eight_rows_and_always_the_trivial_one(self, cli: Cli, table: Path) -> None:
        """Of power: five baselines, nearest and wu with two kinds of features, and the oracle."""
        given = ("study", "errors", table, "--quantity", "power", "--predictor", "wu")
        kinds = ("--features", "raw", "--features", "raw+power", "--seeds", 1, "--clusters", 2)
        out = cli(*given, *kinds)
        shown = out.partition("predictor")[2].partition("\n\n")[0].splitlines()[1:]
        assert len(shown) == 8
        assert {"wu", "no-scaling"} < {line.split()[0] for line in shown}
        assert "wu raw+power" in out
        assert "wu-oracle" not in out

    def test_many_tables_stand_with_the_best_of_each(self, cli: Cli, table: Path) -> None:
        for number in range(4):
            Path(f"t{number}.csv").write_text(table.read_text())
        tables = [f"t{number}.csv" for number in range(4)]
        out = cli("study", "errors", *tables, *CHEAP)
        assert len(out.splitlines()) <= 25
        blocks = re.findall(r"^  (t\d, (?:time|power)) +[\w-]+ +[\d.]+ %", out, re.MULTILINE)
        assert blocks == [f"t{n}, {what}" for n in range(4) for what in ("time", "power")]


class TestTrain:
    @pytest.fixture
    def table(self) -> Path:
        return tidy.write_csv(Path("t.csv"), tidy.rows(["a", "b"]))

    def test_its_left_out_error_by_hand(self, cli: Cli, table: Path) -> None:
        """Of two applications each predicts the other: 4/4 and 14/14 at the base, the highest."""
        given = ("train", table, "-o", "m", "--predictor", "mean-surface")
        out = cli(*given)
        first, second = [1, 2, 3, 4], [11, 12, 13, 14]
        at = [
            [100 * abs((y / b) / (x / a) - 1) for x, y in zip(one, other, strict=True)][:3]
            for one, other, a, b in ((first, second, 4, 14), (second, first, 14, 4))
        ]
        kept = load("m").card["left_out_errors"]
        assert kept["folds"] == 2
        assert kept["time"]["mape"] == pytest.approx(mean([*at[0], *at[1]]), rel=1e-9)
        assert f"time {kept['time']['mape']:.0f} %" in out or f"{kept['time']['mape']:.1f} %" in out
        assert "the highest setting (another: --base)" in " ".join(out.split())
        assert load("m").base == load("m").grid.highest
        assert "on unseen applications (2 folds)" in " ".join(cli("show", "m").split())

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (("--leave-out", "app-b"), "not known: it needs at least two applications"),
            (("--no-check",), None),
        ],
    )
    def test_where_there_is_none(
        self, cli: Cli, table: Path, more: tuple[str, ...], said: str | None
    ) -> None:
        given = ("train", table, "-o", "m", "--predictor", "mean-surface", *more)
        out = cli(*given)
        assert (said or "") in out
        assert ("Held-out error" in out) == (said is not None)
        assert "left_out_errors" not in load("m").card

    def test_at_most_five_folds_of_all_tables(self, cli: Cli) -> None:
        """The other GPU's kernels of the applications left out are not learnt from either."""
        data = made.measurements(2, ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0)))
        data.write(Path("one.csv"))
        replace(data, device="gtx1080ti").write(Path("two.csv"))
        cli("train", "one.csv", "-o", "m", "--predictor", "nearest")
        assert load("m").card["left_out_errors"]["folds"] == 5


def test_numbers_in_groups_of_three_are_aligned_as_numbers() -> None:
    shown = columns(["mJ", "best"], [["102.8", ""], ["23 557", "best"], ["-", "2 of 3"]])
    assert shown.splitlines()[2:] == [" 102.8", "23 557  best", "     -  2 of 3"]
