"""Hints are followed: what a message tells to type is taken from it, typed, and gives an answer.

hints.txt is the table: after '$' the command that gets a message, after 'says' words of it, after
'then' what follows, '$' for the command and {} for what the message has from these words on, an
option with its value; {FILE=x.csv} fills a placeholder, {REGEX} takes something else. It must be
answered, or, after 'gives', be refused for another reason. Inputs are made, or ship.
"""

import ast
import csv
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from command import Capture, options_of
from synthetic import llm_server, tidy
from synthetic.two_logs import HEADER, log, of_gpu_1, without

import mlscale
from mlscale.cli.main import COMMANDS, main
from mlscale.data.datasets import path as shipped

PACKAGE = Path(mlscale.__file__).parent
BLOCKS = [
    [line for line in block.splitlines() if not line.startswith("#")]
    for block in Path(__file__).with_name("hints.txt").read_text("utf-8").split("\n\n")
]
HINTS = [dict(line.split(" ", 1) for line in block) for block in BLOCKS if block]

OPTION = r"(?<![\w-])--[a-z][a-z-]*[a-z]"
SETTING = r"\w+=[^\s;),']+"
TYPED = rf"{OPTION}(?: (?:'[^']+'|{SETTING}(?:,{SETTING})*|[A-Z]+\b|\d[\w.:]*))?"
H100 = "--base engine=1980,memory=2619"
FILLS = {
    "FILE": "slow.csv",
    "LOG": "power.csv",
    "PROFILE": "profile.csv",
    "FILE …": "ncu.csv",
    "TABLE": "made.csv",
    "WATTS": "500",
    "NAME": "h100-sxm5",
    "GPU": "h100-sxm5",
    "KEY": "h100-sxm5",
    "MODEL": "kernels",
    "MS": "9000",
    "SECONDS": "0.1",
    "W": "400",
    "MHZ": "2619",
    "N": "132",
    "engine=…": "engine=1755",
    "memory=…": "memory=2619",
    "cu=…": "cu=132",
}
TIME, NAME, GPU = "gpu__time_duration.sum", "NVIDIA H100 80GB HBM3", "NVIDIA Foo 9000"
WITHOUT = {  # columns of a log that are left out, by the file that lacks them
    "unnamed": (2,),
    "no-time": (0,),
    "unmemoried": (5,),
    "unnamed-unmemoried": (5, 2),
    "no-clock": (4,),
    "powerless": (3,),
    "no-clock-no-time": (4, 0),
}


def rows(name: str, *lines: str) -> None:
    """Write a table: a header, and what follows it."""
    Path(f"{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that the hints are about, in the current directory."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("hints")
        patch.chdir(folder)
        write_logs()
        write_tables()
        write_exports()
        yield folder


def write_logs() -> None:
    """Logs of nvidia-smi."""
    for name, mhz, tenths, watts in (
        ("fast", 1755, 100, 480),
        ("slow", 1170, 120, 300),
        ("near", 1500, 106, 390),
        ("power", 1980, 100, 480),
    ):
        log(Path(f"{name}.csv"), mhz, tenths, watts)
        log(Path(f"mine-{name}.csv"), mhz, tenths, watts, name="Mine")
    for name, columns in WITHOUT.items():
        file = log(Path(f"{name}.csv"), 1755, 100, 480)
        for column in columns:
            without(file, column)
    log(Path("rtx4090.csv"), 2700, 100, 400, name="NVIDIA GeForce RTX 4090")
    without(Path("rtx4090.csv"), 5)
    log(Path("two-gpus.csv"), 1170, 120, 300, gpus=2)
    header, *samples = Path("near.csv").read_text().splitlines()
    limited = [f"{header}, power.limit [W]", *(f"{sample}, 392.00 W" for sample in samples)]
    Path("held.csv").write_text("\n".join(limited) + "\n")
    of_gpu_1(log(Path("unlike.csv"), 1755, 120, 300, gpus=2), NAME, "NVIDIA H200")
    of_gpu_1(log(Path("two-clocks.csv"), 1755, 120, 300, gpus=2), "1755 MHz", "1200 MHz")
    for name, column in (("slow-no-clock", 4), ("slow-powerless", 3)):
        without(log(Path(f"{name}.csv"), 1170, 120, 300), column)
    sample = f"2026/03/02 14:05:10.000, 0, {NAME}, 480.00 W, 1755 MHz, 2619 MHz, 95 %, 30 %"
    Path("one-sample.csv").write_text(f"{HEADER}\n{sample}\n")


def write_tables() -> None:
    """Tables of capped runs, of a run in a row, and to train on."""
    for name, time_ms, watts, cap in (
        ("a", 100, 690, 700),
        ("b", 120, 450, 450),
        ("c", 150, 320, 320),
    ):
        rows(
            f"cap-{name}",
            "device,time_ms,power_w,power_cap_w",
            f"h100-sxm5,{time_ms},{watts},{cap}",
        )
    rows("cap-unpowered", "device,time_ms,power_cap_w", "h100-sxm5,100,700")
    rows("cap-runs", "device,kernel,time_ms,power_w", "h100-sxm5,a,9,690", "h100-sxm5,b,7,450")
    header = "device,engine_mhz,time_ms,power_w"
    rows("row-fast", header, "rtx4090,2700,100,330")
    rows("row-slow", header, "rtx4090,1800,128,190")
    rows("row-mine", header + ",cu_count", "mine,1755,100,330,132")
    rows("all-cus", header + ",cu_count", "rtx4090,2700,100,330,128")
    rows("half-cus", header + ",cu_count", "rtx4090,2700,180,230,64")
    rows("people", "name,age", "Ada,36")
    rows("row-unnamed", "engine_mhz,memory_mhz,time_ms,power_w", "1755,2619,100,330")
    rows("powered", "device,kernel,engine_mhz,time_ms,power_w", "h100-sxm5,k,1755,100,330")
    table = tidy.rows([letter * 3 for letter in "abcdefg"])
    tidy.write_csv(Path("table.csv"), table)
    other = [{**row, "device": "other-gpu"} for row in table]
    tidy.write_csv(Path("other.csv"), other)
    tidy.write_csv(Path("profile.csv"), table[3::4])
    tidy.write_csv(Path("gaps.csv"), table[:-1])
    tidy.write_csv(Path("power-gap.csv"), [*table[:-1], {**table[-1], "power_w": ""}])
    bare = [{k: v for k, v in row.items() if k != "power_w"} for row in table]
    tidy.write_csv(Path("no-power.csv"), bare)
    tidy.write_csv(Path("bare.csv"), bare[3::4])
    tidy.write_csv(Path("lower.csv"), table[1::4])
    watts = ("--quantity", "power", "--predictor", "nearest", "--no-check")
    main(["train", "table.csv", "-o", "watts.mlscale", *watts])
    jitter = [{**r, "engine_mhz": r["engine_mhz"] + k % 3} for k, r in enumerate(table)]
    tidy.write_csv(Path("jitter.csv"), jitter)
    axis = [
        {**row, "l1_kb": kb, "time_ms": row["time_ms"] * (1 + kb / 99)}
        for row in table
        for kb in (16, 48)
    ]
    tidy.write_csv(Path("axis.csv"), axis)
    few = [{**row, "application": "one"} for row in table]
    tidy.write_csv(Path("few.csv"), few)
    unnamed = [{k: v for k, v in row.items() if k != "application"} for row in table]
    tidy.write_csv(Path("variants.csv"), unnamed)
    names = {"kernel": "kernel-name", "time_ms": "run-time [s]", "engine_mhz": "core-freq"}
    others = [{names.get(k, k): v for k, v in row.items() if k != "device"} for row in unnamed]
    tidy.write_csv(Path("misnamed.csv"), others)
    fast = [{**row, "device": "h100-sxm5", "engine_mhz": 3 * row["engine_mhz"]} for row in table]
    tidy.write_csv(Path("too-fast.csv"), fast)


def write_exports() -> None:
    """The export of two kernels on an H100, written by hand, with facts changed."""
    text = shipped("h100-by-hand.csv").read_text("utf-8")
    header, *lines = [row for row in csv.reader(text.splitlines()) if row]
    for name, gpu in (("ncu", NAME), ("unknown", GPU), ("some-untimed", NAME)):
        with Path(f"{name}.csv").open("w", newline="") as file:
            changed = [[cell.replace(NAME, gpu) for cell in row] for row in lines]
            if name == "some-untimed":
                changed[-1][header.index(TIME)] = ""
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *changed])
    unknown = ("--device", "foo-9000", "--base", "cu=132,engine=1980,memory=2619")
    server = llm_server.Server()
    for seed, mhz in enumerate((1980.0, 1320.0)):
        run = llm_server.serve(server, mhz, math.inf, 400, None, seed)
        llm_server.write(run, mhz, Path())[0].rename(f"inf-{mhz:g}.json")
        llm_server.write(llm_server.serve(server, mhz, 5.0, 400, None, seed), mhz, Path())
    Path("empty.json").write_text("{}")
    main(["import", "unknown.csv", *unknown, "-o", "further.csv"])
    slower = [
        {**row, "engine_mhz": 1320, "time_ms": 1.2 * float(row["time_ms"])}
        for row in tidy.read_csv(Path("further.csv"))
    ]
    tidy.write_csv(Path("further.csv"), slower)


def told(capsys: Capture, words: str) -> tuple[int, str]:
    """The exit status of a command, and all that it says, in one line."""
    try:
        status = main(shlex.split(words.replace("H100", H100).removeprefix("mlscale ")))
    except SystemExit as stopped:  # of --help
        status = int(str(stopped.code))
    return status, " ".join("".join(capsys.readouterr()).split())


def followed(hint: Mapping[str, str], said: str) -> str:
    """The command that follows what is said."""
    at = said[said.index(hint["says"]) :]

    def taken(place: re.Match[str]) -> str:
        name, _, value = place[1].partition("=") if re.match(r"\w+=", place[1]) else ("", "", "")
        if name.islower():
            name, value = f"{name}=…", place[1]
        found = re.search(TYPED if name or not place[1] else place[1], at)
        assert found, f"{place[0]} is not in: {at}"
        words = found[0]
        fills = {**FILLS, name: value} if name else FILLS
        for placeholder in sorted(fills, key=len, reverse=True):
            words = re.sub(rf"(?<!\w){placeholder}(?!\w)", fills[placeholder], words)
        return words

    return re.sub(r"\{(.*?)\}(?!\})", taken, hint["then"]).replace("$ ", f"{hint['$']} ", 1)


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: f"{hint['$']}: {hint['says']}")
def test_a_hint_is_followed(capsys: Capture, inputs: Path, hint: dict[str, str]) -> None:
    _, said = told(capsys, hint["$"])
    assert hint["says"] in said
    command = followed(hint, said)
    status, answer = told(capsys, command)
    if better := hint.get("gives"):
        assert better in answer
        assert hint["says"] not in answer
    else:
        assert status == 0, f"{command}: {answer}"


# Which messages there are, by the source.

OWN = set().union(*map(options_of, COMMANDS))
FOREIGN = (  # of vLLM, of profilers, of monitors, and of others
    *("request-rate", "save-detailed", "save-result", "max-concurrency", "ignore-eos"),
    *("metric-percentiles", "section", "clock-control", "log-file", "import", "page", "csv"),
    *("print-units", "type", "report", "cuda-graph-trace", "kernel-trace", "output-format"),
    *("timestamp", "query-gpu", "perf-level", "watch", "setsclk", "gpu-freq"),
    *("steps", "next-profile"),
)
NOT_FOLLOWED = {  # words of messages that name an option, by why no row follows them
    "the help, or other tools' commands": [
        "examples",
        "mlscale: the GPU clock",
        "profiles and logs are written by",
        "[options] -- CMD",
        "more options: {} --help all",
        "'{} --help'",
        "with --runs also runs",
        "nsys stats --report",
        "amd-smi set -g",
        "amd-smi reset -g",
        "later releases of ROCm 7",
        "mlscale collect --micro",
    ],
    "mends by code, which messages with rows make exact": [
        "or describe the GPU: mlscale devices show --help",
        "Name the GPU by its index",
        "or choose how to treat the gaps",
        "Rename the column, drop it",
        "Measure at about 0.6",
        "Measure the capacity",
        "Use a model of measurements, or predict anyway",
        "Measure it at a second clock",
        "Give the board's power, --power WATTS or a log",
        "Measure a second clock to narrow",
        "Name another with --model",
    ],
    "needs a GPU, or root": [
        "if another GPU worked",
        "give a program behind",
        "measure one clock at a time: --at",
        "--max-slowdown needs --two-clocks",
        "--repeat needs a program",
        "with the LOG of the clock as it was",
        "with a benchmark's RESULTs",
        "For an answer, once more",
        "measure it again with --rate",
        "measures one GPU; name it with --gpu",
        "has no engine clock; give it: --at MHZ",
        "--resume when it is; by hand",
        "only root sets clocks",
        "leave out --cu-counts",
        "--cu-counts {}: {} has {} CUs",
        "so 'bottleneck' does not apply",
        "measure an undivided GPU",
    ],
    "needs what was interrupted, a fleet or a cluster; their own tests resume": [
        "continue with --resume",
        "the results of a fleet are Parquet files",
        "leave such kernels out with --profiled-only",
        "install them with: pip install 'mlscale[dask]'",
    ],
    "of other runs of a tool, or tells and asks for nothing": [
        "with one --seed, at both clocks",
        "give both runs the same requests",
        "{} of --also",
        "as --device says",
        "module '{}' of --predictor cannot be imported",
        "exists for studies only",
        "which is not part of mlscale; give its class",
        "lists unlike GPUs",
    ],
    "not followed yet": [
        "power_w is dynamic power",
        "--device and a name from 'mlscale devices list', or a file",
        "name one in the table's column 'device'",
        "or drop settings (--incomplete)",
        "is no known public file",
        "under one name, with --application",
        "name yours with --gpu",
        "train --counters {} makes",
        "or leave out those without counters (--profiled-only)",
        "so no counter shows which clock matters",
        "leave out --each",
        "hold out fewer at once (--folds)",
    ],
}


def messages(node: ast.AST) -> Iterator[str]:
    """The strings of a module but docstrings and the declarations of options; {} for values."""
    for child in ast.iter_child_nodes(node):
        is_declared = isinstance(child, ast.Call) and getattr(
            child.func, "attr", getattr(child.func, "id", "")
        ) in ("add", "add_more", "more", "add_argument", "add_facts")
        is_help = isinstance(child, ast.Assign) and getattr(child.targets[0], "id", "") == "what"
        is_doc = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if is_declared or is_help or is_doc:
            continue
        if isinstance(child, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in child.values
            )
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        else:
            yield from messages(child)


MESSAGES = [
    (file.relative_to(PACKAGE).as_posix(), text)
    for file in sorted(PACKAGE.rglob("*.py"))
    for text in messages(ast.parse(file.read_text("utf-8")))
]


def test_every_option_and_command_in_a_message_exists() -> None:
    known = OWN | {f"--{name}" for name in FOREIGN} | {"--help", "--version"}
    lacking = [
        (file, name)
        for file, text in MESSAGES
        if not file.startswith(("advice/commands", "collect/counters", "sensors/"))  # of others
        for name in (*re.findall(OPTION, text), *re.findall(r"'mlscale ([a-z]+)\b", text))
        if name not in known and name not in COMMANDS
    ]
    assert lacking == []


def test_every_message_with_an_option_is_followed_or_says_why_not() -> None:
    reasons = [words for group in NOT_FOLLOWED.values() for words in group]
    known = [*(hint["says"] for hint in HINTS), *reasons]
    texts = [text for _, text in MESSAGES if OWN & set(re.findall(OPTION, text))]
    said = [text for text in texts if not re.fullmatch(OPTION, text)]
    assert [text for text in said if not any(words in text for words in known)] == []
    assert [words for words in reasons if not any(words in text for text in said)] == []
