"""The entry point: what is meant, help, what it ends with, `python -m mlscale`.

Commands and complaints are by hand; figures of tidy.rows() are closed forms.
"""

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from command import Cli
from synthetic import tidy

import mlscale
from mlscale.cli import main as entry
from mlscale.predictors import PREDICTORS

TRAIN = "train t.csv --base mid -o m --predictor mean-surface --no-check"
NCU = "h100-by-hand.csv"
# What is typed, and in which other words the same is asked for.
MEANT = {
    f"advise {NCU} --max-slowdown 5%": f"advise {NCU} --max-slowdown 5",
    f"advise {NCU} --max-slowdown 5 %": f"advise {NCU} --max-slowdown 5",
    f"advise {NCU} --power 500W": f"advise {NCU} --power 500",
    f"advise {NCU} --power 0.5kW": f"advise {NCU} --power 500",
    f"advise {NCU} --max-time 1.5s --max-power 0.4kW --power 500": (
        f"advise {NCU} --max-time 1500 --max-power 400 --power 500"
    ),
    f"predict {NCU} --at engine=1.2GHz": f"predict {NCU} --at engine=1200",
    f"predict {NCU} --at sm_clock=1200MHz": f"predict {NCU} --at engine=1200",
    f"predict {NCU} --at core=1200 --base gpu=1.98GHz,mem=2619": (
        f"predict {NCU} --at engine=1200 --base engine=1980,memory=2619"
    ),
}
HIDDEN = {  # an option of each command that its short help leaves out
    "advise": "--dask",
    "predict": "--peaks",
    "report": "--extrapolate",
    "import": "--each",
    "train": "--snap-clocks",
    "study errors": "--protocol",
    "study advice": "--protocol",
}
SHOWN = {
    "train --help": ("--base", "--predictor", "--leave-out"),
    "predict --help": ("--at", "--format", "--json"),
    "import --help": ("dvfs", "kernel-tuner", "--device", "--base", "--append"),
    "completion --help": ("bash", "zsh", "tcsh"),
    **dict.fromkeys(("--version", "version"), (mlscale.__version__,)),
    "help train": ("usage: mlscale train", "--base"),
    "study": ("usage: mlscale study", "errors", "advice"),
    "devices": ("Hopper", "mlscale devices show KEY"),
    "datasets": ("h100-suite", "mlscale datasets show NAME"),
    **dict.fromkeys(("", "--help", "-h", "help"), tuple(entry.COMMANDS)),
}
pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


@pytest.mark.parametrize(("typed", "meant"), MEANT.items(), ids=MEANT)
def test_what_is_meant_is_done(cli: Cli, typed: str, meant: str) -> None:
    assert cli.json(*typed.split()) == cli.json(*meant.split())


@pytest.mark.parametrize(
    ("given", "is_noted"),
    [("1.05", True), ("1.2", True), ("1", False), ("1.5", False), ("1.05%", False), ("5", False)],
)
def test_a_slowdown_that_looks_like_a_ratio_is_noted(cli: Cli, given: str, is_noted: bool) -> None:
    err = cli.told("advise", NCU, "--max-slowdown", given)
    noted = f"--max-slowdown {given} is {given} %. If you meant "
    assert (noted in err) == is_noted
    assert given != "1.05" or f"{noted}5 %, give 5." in err


@pytest.mark.parametrize(("typed", "words"), SHOWN.items(), ids=SHOWN)
def test_help_and_version_go_to_stdout(cli: Cli, typed: str, words: tuple[str, ...]) -> None:
    out, err = cli.ended(0, *typed.split())
    assert (err, [word for word in words if word not in out]) == ("", [])
    assert "advise" not in words or max(map(len, out.splitlines())) <= 80


def test_help_names_every_predictor(cli: Cli) -> None:
    told = "".join(cli.ended(0, "train", "--help")[0].split())
    listed = told.partition("--predictorPREDICTOR")[2].partition("package.module")[0]
    assert set(PREDICTORS) <= set(re.sub(r"\(.*?\)", "", listed).split(","))


@pytest.mark.parametrize(("command", "hidden"), HIDDEN.items(), ids=HIDDEN)
def test_help_is_short_and_all_of_it_is_there_for_who_asks(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str, hidden: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, whole = (
        cli.ended(0, *command.split(), *words)[0] for words in (["--help"], ["--help", "all"])
    )
    assert short.count("\n") <= 40
    assert f"mlscale {command} --help all" in short
    assert (hidden in short, hidden in whole) == (False, True)


@pytest.mark.parametrize("words", ["datasets list", "datasets show p100", "devices list",
                                   "devices show p100", "show kernels"])  # fmt: skip
def test_json_is_one_document(cli: Cli, words: str) -> None:
    assert cli.json(*words.split())


def test_an_interruption_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mlscale.readers.source.hold", interrupt)
    assert cli.ended(130, *TRAIN.split()) == ("", "mlscale: interrupted\n")  # 128 + SIGINT


def test_warnings_of_the_data_are_a_line_once_and_others_as_python_shows_them(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(*_: object) -> None:
        warnings.simplefilter("always")
        warnings.warn("old", UserWarning, stacklevel=1)
        for _number in range(2):
            mlscale.errors.warn("T05", "odd\ndata")
        raise mlscale.InputError("enough")

    monkeypatch.setattr("mlscale.readers.source.hold", warn)
    with pytest.warns(UserWarning, match="^old$"):
        data, error = cli.ended(2, *TRAIN.split())[1].splitlines()
    assert (data, error) == ("mlscale: warning T05: odd data", "mlscale: error: enough")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m mlscale` in a process of its own."""
    command = [sys.executable, "-m", "mlscale", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_as_a_module(cli: Cli) -> None:
    """mean-surface of one kernel is that kernel: tidy.rows gives it 1, 2, 3, 4 ms."""
    tidy.write_csv(Path("t.csv"), tidy.rows(["first"]))
    cli(*TRAIN.split())
    done = run("predict", "t.csv", "--model", "m", "--json")
    assert done.returncode == 0
    times = [row["time_ms"] for row in json.loads(done.stdout)["predictions"]]
    assert times == pytest.approx([1, 2, 3, 4], rel=1e-12)
    done = run("predict", "nothing.csv")
    assert (done.returncode, done.stdout) == (2, "")
    said = "mlscale: error: nothing.csv: cannot be read: No such file or directory\n"
    assert done.stderr == said


def test_a_terminal_without_all_letters_gets_escapes(cli: Cli) -> None:
    tidy.write_csv(Path("t.csv"), tidy.rows(("grö\u00dfer", "x", "y")))
    cli(*TRAIN.split())
    done = run("predict", "t.csv", "--model", "m", "--kernels", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfer" in done.stdout
    assert "\\u2" not in run("predict", "t.csv", "--model", "m", PYTHONIOENCODING="ascii").stdout


def test_a_row_is_the_whole_run_at_the_gpus_highest_memory_clock(cli: Cli) -> None:
    """As if it named a kernel and the memory clock of the device table, 10501 MHz."""
    answers = []
    for more, values in (("", ""), (",kernel,memory_mhz", ",run,10501")):
        for name, row in (("fast", "2700,100,330"), ("slow", "1800,128,190")):
            header = f"device,engine_mhz,time_ms,power_w{more}"
            Path(f"{name}.csv").write_text(f"{header}\nrtx4090,{row}{values}\n")
        answer = cli.json("advise", "fast.csv", "--also", "slow.csv")
        told = "fast.csv: does not give memory_mhz: assumed to be profiled at the base cu=128"
        assert (told in json.dumps(answer)) == (not more)
        answers.append({**answer, "notes": None})
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("kernels", "applications", "is_told"),
    [
        (("Sobel5", "Sobel3"), ("Sobel5", "Sobel3"), True),
        (("Sobel5", "Sobel3"), ("s0", "s1"), True),
        (("Sobel5", "Sobel3"), ("Sobel", "Sobel"), False),  # as the message asks
        (("Sobel5", "Sobel3"), ("edges", "blur"), False),
        (("kernel1", "kernel2"), ("bfs", "lud"), False),
        (("kernel1", "kernel2"), ("app1", "app2"), False),
    ],
)
def test_variants_of_a_program_are_not_parted_in_silence(
    cli: Cli, kernels: tuple[str, ...], applications: tuple[str, ...], is_told: bool
) -> None:
    """Sobel3 and Sobel5, which a fold would part; under one name nothing is told."""
    names = dict(zip(kernels, applications, strict=True))
    rows = [{**row, "kernel": kernels[0]} for row in tidy.rows([kernels[1]])]
    rows += tidy.rows([kernels[1], "other", "another"])
    named = [{**row, "application": names.get(row["kernel"], row["kernel"])} for row in rows]
    tidy.write_csv(Path("t.csv"), named)
    told = cli.told(*TRAIN.split())
    assert ("'Sobel5', 'Sobel3', and each is of its own application" in told) == is_told
    assert ("in the column 'application', such as 'Sobel'" in told) == is_told
    assert ("may be variants" in told) == is_told


def test_mappings_are_given_one_after_the_other(cli: Cli) -> None:
    """As the errors ask for them: the kernels' own column, and then each kernel's application."""
    rows = [{"name" if k == "kernel" else k: v for k, v in row.items() if k != "application"}
            for row in tidy.rows(["one", "other", "another"])]  # fmt: skip
    tidy.write_csv(Path("t.csv"), rows)
    words, hint = (*TRAIN.split(), "--map", "kernel=name"), "--map application=kernel"
    assert hint in cli.refused(*words)
    cli(*words, *hint.split())


def test_a_file_may_be_called_as_a_command_that_went(cli: Cli) -> None:
    Path("ncu").write_text("nothing that is known")
    assert "ncu: unrecognised file;" in cli.refused("import", "ncu", "-o", "t.csv")
