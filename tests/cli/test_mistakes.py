"""What people type by mistake, or as other tools have it: one line that mends it, or the answer.

Mistakes are those of people who met mlscale for the first time. Files are shipped ones, and the
export of two kernels on an H100, which was written by hand, with a fact changed.
"""

import csv
import json
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic import tidy
from synthetic.two_logs import log

from mlscale.cli import main as entry
from mlscale.data.datasets import path

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")

AT = "--base engine=1980,memory=2619"
H100, TIME = "NVIDIA H100 80GB HBM3", "gpu__time_duration.sum"
TRAFFIC = "dram__bytes.sum"

# What is typed, and what the one line says.
MISTAKES = {
    "advice ncu.csv": "there is no command 'advice'; did you mean 'advise'? See 'mlscale --help'",
    "trian t.csv": "there is no command 'trian'; did you mean 'train'?",
    "zzz": "there is no command 'zzz'; see 'mlscale --help'",
    "ncu.csv": "ncu.csv is not a command; for advice on it: mlscale advise ncu.csv",
    "study error t.csv": "no command 'error'; did you mean 'errors'? See 'mlscale study --help'",
    "devices lst": "did you mean 'list'? See 'mlscale devices --help'",
    "advise ncu.csv --max-slowdwn 5": "there is no option --max-slowdwn; did you mean '--max-slowd",
    "advise ncu.csv --max_slowdown=5": "did you mean '--max-slowdown'? See 'mlscale advise --help'",
    "advise ncu.csv --minimise energy": "there is no option --minimise; did you mean '--minimize'?",
    "predict ncu.csv --fast": "there is no option --fast; see 'mlscale predict --help'",
    "advise ncu.csv --minimize enrgy": "'enrgy' is none of energy, edp, ed2p, time, power, clock; ",
    "advise ncu.csv --max-slowdown 5W": "--max-slowdown: '5W' has the unit 'W'; give %",
    "advise ncu.csv --power 500V": "--power '500V' has the unit 'V'; give W or kW, or a log's name",
    f"advise ncu.csv --power 5000 {AT}": "board power of 5000 W cannot be: 'h100-sxm5' has a limit",
    "predict ncu.csv --at engine=1.2GHy": "has the unit 'GHy'; give MHz, GHz, kHz or Hz",
    "predict ncu.csv --at 1200": "argument --at: 1200 of what? Write engine=1200 or memory=1200",
    f"predict ncu.csv --at foo=1200 {AT}": "'foo' is no setting; cu, engine and memory are, such",
    f"predict ncu.csv --at engine=5000 {AT}": "5000 is above what h100-sxm5 reaches, 1980",
    "advise nuc.csv": "nuc.csv: cannot be read: No such file or directory; did you mean 'ncu.csv'",
    "advise unkown.csv": "No such file or directory; did you mean 'unknown.csv'?",
    "advise h100-by-hnd.csv": "did you mean 'h100-by-hand.csv'?",  # of those that ship
    "advise people.csv": "people.csv: is nothing that mlscale knows: its columns 'name', 'age'",
    f"advise no-times.csv {AT}": "has no times for 2 kernels ('triad(",
    f"advise no-traffic.csv --model kernels {AT}": "the model needs the DRAM traffic: ncu's --sect",
    f"advise unknown.csv --device foo-9000 {AT}": "the GPU 'foo-9000' is unknown; to describe it",
    f"advise b300.csv {AT}": "132 CUs are fewer than the 148 of 'b300'",
    "advise run.ncu-rep": "run.ncu-rep: is not text; export the profiler's report as CSV, of",
    "advise training-step-trace.json.gz": "does not say engine_mhz; give --base engine=…",
    "predict log.csv --model kernels": "name no model, or 'runs', which needs none: the log lacks",
    "train ncu.csv --base mid -o m": "ncu.csv: is a file of Nsight Compute, raw page, not a table",
    "advise folder": "folder is a folder. For batch prediction: -o DIR/; see 'mlscale advise",
    f"advise ncu.csv --model simulated-gcn3 {AT}": "say nothing of 'h100-sxm5'; take a model of m",
}
# What is typed, and in which other words the same is asked for.
MEANT = {
    "advise ncu.csv --max-slowdown 5%": "advise ncu.csv --max-slowdown 5",
    "advise ncu.csv --max-slowdown 5 %": "advise ncu.csv --max-slowdown 5",
    "advise ncu.csv --power 500W": "advise ncu.csv --power 500",
    "advise ncu.csv --power 0.5kW": "advise ncu.csv --power 500",
    "advise ncu.csv --max-time 1.5s --max-power 0.4kW --power 500": (
        "advise ncu.csv --max-time 1500 --max-power 400 --power 500"
    ),
    "predict ncu.csv --at engine=1.2GHz": "predict ncu.csv --at engine=1200",
    "predict ncu.csv --at sm_clock=1200MHz": "predict ncu.csv --at engine=1200",
    "predict ncu.csv --at core=1200 --base gpu=1.98GHz,mem=2619": (
        "predict ncu.csv --at engine=1200 --base engine=1980,memory=2619"
    ),
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The files that the mistakes name, in the current directory."""
    text = path("h100-by-hand.csv").read_text("utf-8")
    rows = [row for row in csv.reader(text.splitlines()) if row]
    for name, lacks, gpu in (
        ("ncu", "", H100),
        ("no-times", TIME, H100),
        ("no-traffic", TRAFFIC, H100),
        ("unknown", "", "NVIDIA Foo 9000"),
        ("b300", "", "NVIDIA B300"),
    ):
        kept = [place for place, column in enumerate(rows[0]) if column != lacks]
        lines = [[row[place].replace(H100, gpu) for place in kept] for row in rows]
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
    (tmp_path / "people.csv").write_text("name,age\nAda,36\n")
    (tmp_path / "run.ncu-rep").write_bytes(bytes(range(64)))
    log(tmp_path / "log.csv", 1755, 100, 480)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(("typed", "said"), MISTAKES.items(), ids=MISTAKES)
def test_one_line_says_what_to_do(capsys: Capture, files: Path, typed: str, said: str) -> None:
    assert said in refuse(capsys, files, *typed.split())


@pytest.mark.parametrize(("typed", "meant"), MEANT.items(), ids=MEANT)
def test_what_is_meant_is_done(capsys: Capture, files: Path, typed: str, meant: str) -> None:
    answers = [succeed(capsys, *words.split(), "--json")[0] for words in (typed, meant)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("given", "is_noted"),
    [("1.05", True), ("1.2", True), ("1", False), ("1.5", False), ("1.05%", False), ("5", False)],
)
def test_a_slowdown_that_looks_like_a_ratio_is_noted(
    capsys: Capture, files: Path, given: str, is_noted: bool
) -> None:
    _, err = succeed(capsys, "advise", "ncu.csv", "--max-slowdown", given)
    noted = f"--max-slowdown {given} is {given} %. If you meant "
    assert (noted in err) == is_noted
    assert given != "1.05" or f"{noted}5 %, give 5." in err


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_mlscale_alone_shows_the_commands(capsys: Capture, words: list[str]) -> None:
    out, err = succeed(capsys, *words)
    assert err == ""
    assert [command for command in entry.COMMANDS if command not in out] == []
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("advise", "--dask"),
        ("predict", "--peaks"),
        ("report", "--extrapolate"),
        ("import", "--each"),
        ("train", "--snap-clocks"),
        ("study errors", "--protocol"),
        ("study advice", "--protocol"),
    ],
)
def test_help_is_short_and_all_of_it_is_there_for_who_asks(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str, hidden: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    texts = []
    for words in (["--help"], ["--help", "all"]):
        with pytest.raises(SystemExit) as stopped:
            entry.main([*command.split(), *words])
        assert stopped.value.code == 0
        texts.append(capsys.readouterr().out)
    short, whole = texts
    assert short.count("\n") <= 40
    assert f"mlscale {command} --help all" in short
    assert (hidden in short, hidden in whole) == (False, True)


ROWS = ("device,engine_mhz,time_ms,power_w", "rtx4090,2700,100,330", "rtx4090,1800,128,190")


def test_a_row_is_the_whole_run_at_the_gpus_highest_memory_clock(
    capsys: Capture, tmp_path: Path
) -> None:
    """As if it named a kernel and the memory clock of the device table, 10501 MHz."""
    answers = []
    for more, values in (("", ""), (",kernel,memory_mhz", ",run,10501")):
        for name, row in zip(("fast", "slow"), ROWS[1:], strict=True):
            (tmp_path / f"{name}.csv").write_text(f"{ROWS[0]}{more}\n{row}{values}\n")
        out, err = succeed(capsys, "advise", "fast.csv", "--also", "slow.csv", "--notes", "--json")
        told = "fast.csv: does not give memory_mhz: taken as profiled at the base cu=128,engine=27"
        assert (told in out + err) == (not more)
        answers.append({**json.loads(out), "notes": None})
    assert answers[0] == answers[1]


def test_a_cap_is_no_power(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "cap.csv").write_text("device,time_ms,power_cap_w\nh100-sxm5,100,700\n")
    words = ("advise", "cap.csv", "--lever", "cap")
    asked = refuse(capsys, tmp_path, *words)
    assert asked.endswith("no column 'power_w'; add a column 'power_w', the mean power drawn, in "
                          "W, not a limit")  # fmt: skip
    for source in ("power_cap_w", "time_ms"):
        said = refuse(capsys, tmp_path, *words, "--map", f"power_w={source}")
        assert f"the mapping power_w={source}: '{source}' is " in said


def test_variants_of_a_program_are_not_parted_in_silence(capsys: Capture, tmp_path: Path) -> None:
    """Sobel3 and Sobel5, which a fold would part; under one name nothing is told."""
    rows = [{**row, "kernel": "Sobel5"} for row in tidy.rows(["Sobel3"])]
    rows += tidy.rows(["Sobel3", "other", "another"])
    words = ("train", "t.csv", "-o", "m.mlscale", "--predictor", "mean-surface", "--no-check")
    for application in ("kernel", "program"):
        named = [
            {**row, "application": row["kernel"].rstrip("35" if application == "program" else "")}
            for row in rows
        ]
        tidy.write_csv(tmp_path / "t.csv", named)
        _, err = succeed(capsys, *words)
        assert ("'Sobel5', 'Sobel3', and each is its own app" in err) == (application == "kernel")


def test_mappings_are_given_one_after_the_other(capsys: Capture, tmp_path: Path) -> None:
    """As the errors ask for them: the kernels' own column, and then each kernel's application."""
    rows = [{"name" if k == "kernel" else k: v for k, v in row.items() if k != "application"}
            for row in tidy.rows(["one", "other", "another"])]  # fmt: skip
    tidy.write_csv(tmp_path / "t.csv", rows)
    words = ("train", "t.csv", "-o", "m.mlscale", "--predictor", "mean-surface", "--no-check")
    kernels = ("--map", "kernel=name")
    hint = "--map application=kernel"
    assert hint in refuse(capsys, tmp_path, *words, *kernels)
    succeed(capsys, *words, *kernels, *hint.split())
