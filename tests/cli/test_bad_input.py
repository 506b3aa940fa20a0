"""Bad input, for every command it concerns: one line, exit status 2, nothing left behind.

Tables are those of tidy.rows(): two kernels at 4 configurations, the second is at row 6 to 9.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from command import COMMANDS, DVFS, Capture, Rows, at_base, in_format_of, refuse, succeed, train
from synthetic import tidy

pytestmark = pytest.mark.usefixtures("one_process")
every_command = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def attempt(capsys: Capture, tmp_path: Path) -> Callable[..., str]:
    """Run a command that reads a file; it must be refused, and its complaint is given."""
    model = train(capsys, tmp_path, tidy.rows(), "--predictor", "mean-surface")

    def run(command: str, file: Path) -> str:
        arguments = {
            "train": ["train", file, "--base", "mid"],
            "predict": ["predict", model, file],
            "import": ["import", "dvfs", file, "--device", "gtx980"],
            "study": ["study", "errors", file, "--predictor", "mean-surface"],
        }[command]
        return refuse(capsys, tmp_path, *arguments, "-o", tmp_path / "output")

    return run


def name_of(column: str, command: str) -> str:
    return DVFS.get(column, column) if command == "import" else column


@every_command
class TestAnyTable:
    @pytest.mark.parametrize("column", ["kernel", "engine_mhz", "memory_mhz", "time_ms"])
    def test_missing_column(
        self, attempt: Callable[..., str], tmp_path: Path, command: str, column: str
    ) -> None:
        rows = [{k: v for k, v in row.items() if k != column} for row in tidy.rows()]
        file = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, rows))
        message = attempt(command, file)
        assert message.startswith(f"{file}: there is no column '{name_of(column, command)}'")

    @pytest.mark.parametrize("column", ["engine_mhz", "time_ms", "power_w", "loads"])
    def test_text_where_a_number_belongs(
        self, attempt: Callable[..., str], tmp_path: Path, command: str, column: str
    ) -> None:
        rows = tidy.rows()
        rows[5][column] = "1,5 k"
        file = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, rows))
        name = name_of(column, command)
        mend = "write it with a decimal point, and nothing between thousands"
        assert attempt(command, file) == (
            f"{file}: row 7, column '{name}': '1,5 k' is not a number; {mend}"
        )

    @pytest.mark.parametrize(
        ("time", "said"),
        [
            (0, "is 0"),
            (-2.5, "is -2.5"),
            ("nan", "is not given"),
            ("", "is not given"),
            ("inf", "is inf"),
        ],
    )
    def test_time_that_cannot_be(
        self, attempt: Callable[..., str], tmp_path: Path, command: str, time: object, said: str
    ) -> None:
        rows = tidy.rows()
        rows[6]["time_ms"] = time
        file = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, rows))
        mend = "; leave out the rows without it" if "not given" in said else ""
        assert attempt(command, file) == (
            f"{file}: row 8, column '{name_of('time_ms', command)}': the value {said}; "
            f"it must be positive and finite{mend}"
        )

    def test_infinite_counter(
        self, attempt: Callable[..., str], tmp_path: Path, command: str
    ) -> None:
        rows = tidy.rows()
        rows[2]["loads"] = "-inf"
        file = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, rows))
        assert attempt(command, file).startswith(f"{file}: row 4, column 'loads': the value is inf")

    def test_ragged_row(self, attempt: Callable[..., str], tmp_path: Path, command: str) -> None:
        file = tidy.write_csv(tmp_path / "table.csv", in_format_of(command, tidy.rows()))
        with file.open("a") as more:
            more.write("one,cell,more\n")
        assert attempt(command, file).startswith(f"{file}: row 10: has 3 fields, the header has")


class TestConfigurations:
    @pytest.mark.parametrize("command", ["train", "study"])
    @pytest.mark.parametrize(
        ("base", "problem"),
        [
            ("engine=600,memory=700", "engine_mhz 600 is not on the grid; it has 400, 800"),
            ("cu=8,engine=400,memory=700", "cu_count 8 is not on the grid; it has 4"),
            ("engine=400,memory=1e9", "memory_mhz 1e+09 is not on the grid; it has 500, 700"),
            ("engine=400", "'engine=400' gives no memory_mhz; one of 500, 700"),
        ],
    )
    def test_base_not_on_the_grid(
        self, capsys: Capture, tmp_path: Path, command: str, base: str, problem: str
    ) -> None:
        file = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
        given = {"train": ["train", file], "study": ["study", "errors", file]}[command]
        message = refuse(capsys, tmp_path, *given, "--base", base, "-o", tmp_path / "out")
        assert message == problem

    @pytest.mark.parametrize("command", ["train", "study errors"])
    def test_base_malformed(self, capsys: Capture, tmp_path: Path, command: str) -> None:
        file = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
        given = [*command.split(), file, "--base", "middle", "-o", tmp_path / "out"]
        assert refuse(capsys, tmp_path, *given) == (
            "argument --base: 'middle' is not a configuration; write it as "
            f"cu=16,engine=800,memory=700; see 'mlscale {command} --help'"
        )

    @pytest.mark.parametrize(
        ("target", "problem"),
        [
            ("engine=399,memory=700", "engine_mhz 399 is outside the grid (400, 800); the model "),
            ("engine=400,memory=701", "memory_mhz 701 is outside the grid (500, 700); the model "),
            ("cu=5,engine=400,memory=700", "cu_count 5 is outside the grid (4); the model does"),
            ("engine=0,memory=700", "'0' in 'engine=0,memory=700' must be positive and finite"),
            ("engine=nan,memory=700", "'nan' in 'engine=nan,memory=700' must be positive"),
            ("engine=-400,memory=700", "'-400' in 'engine=-400,memory=700' must be positive"),
            ("cu=4.5,engine=400,memory=700", "'4.5' in 'cu=4.5,engine=400,memory=700' must be a w"),
            ("engine=fast,memory=700", "'fast' in 'engine=fast,memory=700' is not a number"),
            ("engine=400,engine=800", "'engine=400,engine=800' is not a configuration; write it"),
            ("clock=400,memory=700", "'clock=400,memory=700' is not a configuration; write it as"),
            ("400,700", "'400,700' is not a configuration; write it as cu=16,engine=800,memory="),
        ],
    )
    def test_target_outside_the_grid_or_malformed(
        self, capsys: Capture, tmp_path: Path, target: str, problem: str
    ) -> None:
        model = train(capsys, tmp_path, tidy.rows(), "--predictor", "mean-surface")
        profile = tidy.write_csv(tmp_path / "profile.csv", at_base(tidy.rows()))
        given = ["predict", model, profile, "--at", "engine=400,memory=500", "--at", target]
        message = refuse(capsys, tmp_path, *given, "-o", tmp_path / "out")
        assert message.removeprefix("argument --at: ").startswith(problem)


class TestProfiles:
    """`wu` trained on tidy.rows() needs the counter 'loads'."""

    def refuse(self, capsys: Capture, folder: Path, profile: Rows) -> str:
        model = train(capsys, folder, tidy.rows(), "--predictor", "wu")
        file = tidy.write_csv(folder / "profile.csv", profile)
        return refuse(capsys, folder, "predict", model, file, "-o", folder / "out")

    def test_kernel_without_its_base_row(self, capsys: Capture, tmp_path: Path) -> None:
        elsewhere = [{**row, "engine_mhz": 400.0} for row in at_base(tidy.rows())[1:]]
        message = self.refuse(capsys, tmp_path, [*at_base(tidy.rows())[:1], *elsewhere])
        assert message == (
            f"{tmp_path}/profile.csv: kernel 'second' has no row at the base "
            "cu=4,engine=800,memory=700; profile it there, or train a model for the base you have"
        )

    def test_missing_counter(self, capsys: Capture, tmp_path: Path) -> None:
        names = {"loads": "stores"}
        profile = [{names.get(k, k): v for k, v in row.items()} for row in at_base(tidy.rows())]
        message = self.refuse(capsys, tmp_path, profile)
        assert message == "the model needs the feature 'loads': there is no column 'loads'"

    def test_counter_under_another_case(self, capsys: Capture, tmp_path: Path) -> None:
        names = {"loads": "Loads"}
        profile = [{names.get(k, k): v for k, v in row.items()} for row in at_base(tidy.rows())]
        message = self.refuse(capsys, tmp_path, profile)
        assert message == (
            "the model needs the feature 'loads': there is no column 'loads'; "
            "is 'Loads' meant? Names are matched to the letter"
        )

    @pytest.mark.parametrize("cell", ["", "nan", "NA"])
    def test_counter_without_any_value(self, capsys: Capture, tmp_path: Path, cell: str) -> None:
        profile = [{**row, "loads": cell, "stores": 1} for row in at_base(tidy.rows())]
        message = self.refuse(capsys, tmp_path, profile)
        assert message == (
            "kernel 'first' has no value for 'loads', which the model needs; "
            "profile it with their counters"
        )

    def test_another_device(self, capsys: Capture, tmp_path: Path) -> None:
        profile = [{**row, "device": "other-gpu"} for row in at_base(tidy.rows())]
        message = self.refuse(capsys, tmp_path, profile)
        assert message.startswith(f"{tmp_path}/profile.csv: is of device 'other-gpu', the model of")


class TestTraining:
    def refuse(self, capsys: Capture, folder: Path, rows: Rows, *options: object) -> str:
        file = tidy.write_csv(folder / "table.csv", rows)
        given = ["train", file, "--base", "mid", "-o", folder / "out"]
        return refuse(capsys, folder, *given, *options)

    def test_more_clusters_than_kernels(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows(), "--clusters", 3)
        assert (
            message
            == "3 clusters cannot be made of 2 training kernels; give 1 to 2 with --clusters"
        )

    def test_more_clusters_than_held_in(self, capsys: Capture, tmp_path: Path) -> None:
        """A study of 3 kernels trains on 2."""
        file = tidy.write_csv(tmp_path / "table.csv", tidy.rows(["a", "b", "c"]))
        given = ["study", "errors", file, "--clusters", 3, "-o", tmp_path / "out"]
        message = refuse(capsys, tmp_path, *given)
        assert (
            message
            == "3 clusters cannot be made of 2 training kernels; give 1 to 2 with --clusters"
        )

    def test_single_training_kernel(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows(["alone"]))
        assert message == "'wu' needs two training kernels at least that 'raw' features tell apart"

    def test_single_kernel_left(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows(), "--leave-out", "app-first")
        assert message == "'wu' needs two training kernels at least that 'raw' features tell apart"

    def test_single_kernel_studied(self, capsys: Capture, tmp_path: Path) -> None:
        file = tidy.write_csv(tmp_path / "table.csv", tidy.rows(["alone"]))
        message = refuse(capsys, tmp_path, "study", "errors", file, "-o", tmp_path / "out")
        assert message == "the protocol 'leave-one-application-out' needs 2 applications, not 1"

    def test_constant_counters(self, capsys: Capture, tmp_path: Path) -> None:
        rows = [{**row, "loads": 7} for row in tidy.rows()]
        message = self.refuse(capsys, tmp_path, rows)
        assert message == (
            "'wu' needs two training kernels at least that 'raw' features tell apart"
        )

    def test_no_counters(self, capsys: Capture, tmp_path: Path) -> None:
        rows = [{k: v for k, v in row.items() if k != "loads"} for row in tidy.rows()]
        message = self.refuse(capsys, tmp_path, rows, "--predictor", "wu")
        assert message == (
            "the counters give no 'raw' features; there are none: profile with counters, or choose "
            "a predictor without features, mean-surface"
        )

    def test_extra_trees_cannot_be_trained_to_a_file(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows(), "--predictor", "extra-trees")
        assert message == (
            "--predictor: 'extra-trees' exists for studies only and cannot be trained to a file: "
            "it has no methods state and restore; see 'mlscale train --help'"
        )

    def test_kernel_without_all_configurations(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows()[:-1])
        assert message == (
            f"{tmp_path}/table.csv: 1 of 2 kernels lack configurations: 'second' lacks "
            "cu=4,engine=800,memory=700; measure them or use --incomplete drop "
            "(in Python incomplete='drop')"
        )

    def test_unknown_application_to_leave_out(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows(), "--leave-out", "none")
        assert message == f"{tmp_path}/table.csv: there is no application 'none' to leave out"

    def test_kernel_to_leave_out(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows(), "--leave-out", "first")
        assert message == (
            f"{tmp_path}/table.csv: there is no application 'first' to leave out, but a kernel of "
            "the application 'app-first': --leave-out takes applications"
        )

    def test_several_tables(self, capsys: Capture, tmp_path: Path) -> None:
        files = [tidy.write_csv(tmp_path / f"{name}.csv", tidy.rows()) for name in "ab"]
        given = ["train", *files, "--base", "mid", "-o", tmp_path / "out"]
        message = refuse(capsys, tmp_path, *given)
        assert message == "'wu' learns from one TABLE at a time; see 'mlscale train --help'"


def test_what_is_good_is_taken(capsys: Capture, tmp_path: Path) -> None:
    """The tables above, left alone, are good for every command: each refusal has its one cause."""
    model = train(capsys, tmp_path, tidy.rows())
    table = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
    succeed(capsys, "predict", model, table, "-o", tmp_path / "predicted")
    succeed(capsys, "study", "errors", table, "--predictor", "mean-surface")
    file = tidy.write_csv(tmp_path / "dvfs.csv", in_format_of("import", tidy.rows()))
    succeed(capsys, "import", "dvfs", file, "--device", "gtx980", "-o", tmp_path / "imported")


@pytest.mark.parametrize("seed", ["-1", "4294967296", "1.5", "one"])
def test_a_seed_that_no_library_takes(capsys: Capture, tmp_path: Path, seed: str) -> None:
    command = ("train", "table.csv", "--base", "mid")
    message = refuse(capsys, tmp_path, *command, "--seed", seed, "-o", tmp_path / "out")
    assert f"'{seed}' is not a whole number from 0 to 4294967295" in message


def test_counters_that_never_differ(capsys: Capture, tmp_path: Path) -> None:
    """Their rates differ, by the time alone: that is no profile."""
    rows = [{**row, "inst_executed": 5.0} for row in tidy.rows()]
    rows = [{k: v for k, v in row.items() if k != "loads"} for row in rows]
    file = tidy.write_csv(tmp_path / "table.csv", rows)
    given = ["train", file, "--base", "mid", "--features", "rates", "-o", tmp_path / "out"]
    message = refuse(capsys, tmp_path, *given)
    assert message == "'wu' needs two training kernels at least that 'rates' features tell apart"


class TestOutputOverInput:
    """`-o` with a file that the command reads would destroy it."""

    def test_is_refused(self, capsys: Capture, tmp_path: Path) -> None:
        table = tidy.write_csv(tmp_path / "table.csv", tidy.rows())
        profile = tidy.write_csv(tmp_path / "profile.csv", at_base(tidy.rows()))
        model = train(capsys, tmp_path, tidy.rows(), "--predictor", "mean-surface")
        link = tmp_path / "link.csv"
        link.symlink_to(profile)
        for command, inputs, output in (
            ("train", [table], table),
            ("predict", [model, profile], profile),
            ("predict", [model, profile], link),
            ("advise", [profile, "--model", model], model),
            ("report", [model, profile], model),
        ):
            base = ["--base", "mid"] if command == "train" else []
            message = refuse(capsys, tmp_path, command, *inputs, *base, "-o", output)
            assert message.startswith(f"-o {output}: is read too, and would be replaced")
