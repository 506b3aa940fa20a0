"""Hints are followed: what a message tells to type is taken from it, typed, and gives an answer.

hints.txt is the table: after '$' the command that gets a message, after 'says' words of it, {} for
a value, after 'then' what follows, joined by '&&', '$' for the command and {} for what the message
has from these words on, an option with its value; {FILE=x.csv} fills a placeholder, {REGEX} takes
something else. It must be answered, or, after 'gives', be refused for another reason. Inputs are
made, or ship.
"""

import ast
import csv
import itertools
import json
import math
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import Cli, Rows, options_of
from synthetic import llm_server, tidy
from synthetic.made_gpu import made_gpu, put_in
from synthetic.two_logs import HEADER, log, of_gpu_1, without

import mlscale
from mlscale import parameters
from mlscale.cli.main import COMMANDS, main
from mlscale.data.datasets import path as shipped
from mlscale.data.devices import load_device
from mlscale.parameters import in_options

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
        put_in(tmp_path_factory.mktemp("gpu"), patch)
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
    rows("held", f"{header}, power.limit [W]", *(f"{sample}, 392.00 W" for sample in samples))
    of_gpu_1(log(Path("half-known.csv"), 1170, 120, 300, gpus=2), NAME, GPU)
    of_gpu_1(log(Path("unlike.csv"), 1755, 120, 300, gpus=2), NAME, "NVIDIA H200")
    of_gpu_1(log(Path("two-clocks.csv"), 1755, 120, 300, gpus=2), "1755 MHz", "1200 MHz")
    for name, mhz, tenths in (("busy-fast", 1755, 100), ("busy-slow", 1170, 120)):
        path = log(Path(f"{name}.csv"), mhz, tenths, 480, gpus=2)
        of_gpu_1(path, " 0 %, 0 %", " 95 %, 30 %")
        of_gpu_1(path, " 70.00 W", " 480.00 W")
    for name, mhz, tenths, watts in (("fast", 1755, 100, 480), ("slow", 1170, 120, 300)):
        path = log(Path(f"limited-{name}.csv"), mhz, tenths, watts, gpus=2)
        top, *logged = path.read_text().splitlines()
        limits = itertools.cycle(("700.00 W", "500.00 W"))
        limited = [f"{row}, {limit}" for row, limit in zip(logged, limits, strict=False)]
        rows(path.stem, f"{top}, power.limit [W]", *limited)
        main(["import", f"{name}.csv", "-o", f"imported-{name}.csv"])
    for name in ("slow", "two-gpus", "unlike"):
        shutil.copy(f"{name}.csv", f"{name}-no-clock.csv")
        without(Path(f"{name}-no-clock.csv"), 4)
    without(log(Path("slow-powerless.csv"), 1170, 120, 300), 3)
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
    capped = ("h100-sxm5,100,500,500", "h100-sxm5,110,400,400")
    rows("caps", "device,time_ms,power_w,power_cap_w", *capped)
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
    write_models(table)
    tidy.write_csv(Path("many.csv"), tidy.rows([letter * 3 for letter in "abcdefghijklmnop"])[3::4])
    for number in range(17):
        tidy.write_csv(Path(f"{number}.csv"), table)
    other = [{**row, "device": "other-gpu"} for row in table]
    tidy.write_csv(Path("other.csv"), other)
    tidy.write_csv(Path("profile.csv"), table[3::4])
    tidy.write_csv(Path("gaps.csv"), table[:-1])
    tidy.write_csv(Path("power-gap.csv"), [*table[:-1], {**table[-1], "power_w": ""}])
    bare = [{k: v for k, v in row.items() if k != "power_w"} for row in table]
    tidy.write_csv(Path("no-power.csv"), bare)
    tidy.write_csv(Path("bare.csv"), bare[3::4])
    tidy.write_csv(Path("lower.csv"), table[1::4])
    rows("titles", "coreF,memF,time/ms,power", "2700,10501,100,330")
    rows("values", "2026/03/02 14:05:10.000, 0 %, 300.00 W, 1755 MHz")
    Path("summary.txt").write_text("============ Serving Benchmark Result ============\n")
    Path("box.txt").write_text("| NVIDIA-SMI 550.54.14    Driver Version: 550.54.14 |\n")
    rows("dvfs", "appName,coreF,memF,time/ms", "a,900,1000,2", "a,1800,1000,1")
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
    tidy.write_csv(Path("resulted.csv"), [{**r, "mean_edp": 9} for r in table])
    tidy.write_csv(Path("in-mw.csv"), [{**r, "avg power (mW)": 5e4} for r in bare])
    tidy.write_csv(
        Path("worded.csv"), [{**r, "size": 1 if n else "1MB"} for n, r in enumerate(table)]
    )
    names = {"kernel": "kernel-name", "time_ms": "run-time [s]", "engine_mhz": "core-freq"}
    others = [{names.get(k, k): v for k, v in row.items() if k != "device"} for row in unnamed]
    tidy.write_csv(Path("misnamed.csv"), others)
    fast = [{**row, "device": "h100-sxm5", "engine_mhz": 3 * row["engine_mhz"]} for row in table]
    tidy.write_csv(Path("too-fast.csv"), fast)


def write_models(table: Rows) -> None:
    """Models of this table, and of others that are made of it or alike."""
    for name, part in (("dynamic-table", table), ("dynamic", table[3::4])):
        tidy.write_csv(Path(f"{name}.csv"), part)
        Path(f"{name}.meta.json").write_text('{"power_kind": "dynamic"}')
    two = [{**row, "stores": 2 * k + 100} for k, row in enumerate(table)]
    tidy.write_csv(Path("two-counters.csv"), two)
    Path("hinted.py").write_text(
        "from mlscale.predictors.baselines import MeanSurface\n"
        "class Mine(MeanSurface):\n    name = 'mine'\n"
    )
    for name, model, *options in (
        ("table", "mine", "--predictor", "hinted:Mine"),
        ("table", "watts", "--quantity", "power", "--predictor", "nearest"),
        ("dynamic-table", "dynamic", "--predictor", "mean-surface"),
        ("two-counters", "two-counters", "--quantity", "time", "--clusters", "2"),
    ):
        main(["train", f"{name}.csv", "-o", f"{model}.mlscale", "--no-check", *options])
    alike = [{**row, "loads": 5} if row["kernel"] in ("aaa", "ccc") else row for row in table[:16]]
    tidy.write_csv(Path("alike.csv"), alike)
    header = "device,application,kernel,engine_mhz,memory_mhz,cu_count,time_ms"
    every = [f"{10 * e},{10 * m},4,{1e4 / e / m}" for e in range(1, 73) for m in range(1, 73)]
    rows("large", header, *(f"made,{k},{k},{at}" for k in "ab" for at in every[k == "b" :]))


def write_exports() -> None:
    """The export of two kernels on an H100, written by hand, with facts changed."""
    other = {**load_device("gtx980").as_dict(), "key": "other"}
    Path("other.json").write_text(json.dumps(other))
    text = shipped("h100-by-hand.csv").read_text("utf-8")
    header, *lines = [row for row in csv.reader(text.splitlines()) if row]
    for name, gpu in (
        ("ncu", NAME),
        ("unknown", GPU),
        ("ambiguous", "H100"),
        ("some-untimed", NAME),
        ("clocks-apart", NAME),
        ("half-gpu", NAME),
    ):
        with Path(f"{name}.csv").open("w", newline="") as file:
            changed = [[cell.replace(NAME, gpu) for cell in row] for row in lines]
            if name == "some-untimed":
                changed[-1][header.index(TIME)] = ""
            if name == "clocks-apart":
                changed[-1][header.index("sm__cycles_elapsed.avg.per_second")] = "1.50"
            if name == "half-gpu":
                changed = [[cell.replace("132", "66") for cell in row] for row in changed]
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *changed])
    text = Path("ncu.csv").read_text()
    again = text.splitlines()[2:]
    Path("relaunched.csv").write_text(text + "\n".join(f'"9{row[1:]}' for row in again))
    step = [*csv.reader(shipped("training-step-ncu.csv").read_text("utf-8").splitlines())]
    start = next(n for n, row in enumerate(step) if row[:1] == ["ID"])
    for row in step[start + 2 :]:
        row[step[start].index(TIME)] = f"{0.7 * float(row[step[start].index(TIME)]):.2f}"
    with Path("step-at-another-clock.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(step[start:])
    main(["import", "ncu.csv", *H100.split(), "-o", "counted.csv"])
    counted = tidy.read_csv(Path("counted.csv"))
    tidy.write_csv(Path("counted-ambiguous.csv"), [{**row, "device": "h100"} for row in counted])
    uses = {"dram_utilisation": 0.1, "core_utilisation": 0.1}
    waiting = [{**row, **uses} for row in counted]
    tidy.write_csv(Path("waiting.csv"), waiting)
    tidy.write_csv(Path("counted-slow.csv"), slowed(counted))
    tidy.write_csv(Path("two-clocks-counted.csv"), [*counted, *slowed(counted)])
    tidy.write_csv(Path("waiting-slow.csv"), slowed(waiting))
    known = dict.fromkeys(counted[0], "") | dict(list(counted[0].items())[:7])
    uncounted = {**known, "kernel": "uncounted", "time_ms": 100}
    tidy.write_csv(Path("counted-in-part.csv"), [*counted, uncounted])
    unknown = ("--device", "foo-9000", "--base", "cu=132,engine=1980,memory=2619")
    server = llm_server.Server()
    for name, rate, answer in (("other-rate", 4.0, 200), ("longer", 5.0, 300)):
        run = llm_server.serve(server, 1320, rate, 400, None, 1, answer)
        for file in llm_server.write(run, 1320, Path()):
            file.rename(f"{name}{file.suffix}")
    for seed, mhz in enumerate((1980.0, 1320.0)):
        run = llm_server.serve(server, mhz, math.inf, 400, None, seed)
        llm_server.write(run, mhz, Path())[0].rename(f"inf-{mhz:g}.json")
        closed = llm_server.serve(server, mhz, math.inf, 200, 8, seed)
        result, log = llm_server.write(closed, mhz, Path())
        result.rename(f"closed-{mhz:g}.json")
        llm_server.without_clocks(log, closed.power_w)
        llm_server.write(llm_server.serve(server, mhz, 5.0, 400, None, seed), mhz, Path())
    Path("far").mkdir()
    for mhz in (1980.0, 1335.0, 900.0):
        llm_server.write(llm_server.serve(server, mhz, 2.0, 100), mhz, Path("far"))
    Path("empty.json").write_text("{}")
    main(["import", "unknown.csv", *unknown, "-o", "further.csv"])
    tidy.write_csv(Path("further.csv"), slowed(tidy.read_csv(Path("further.csv"))))


def slowed(table: Rows) -> Rows:
    """The rows of an H100's kernels at two thirds of its clock."""
    return [{**row, "engine_mhz": 1320, "time_ms": 1.2 * float(row["time_ms"])} for row in table]


def told(cli: Cli, words: str) -> tuple[int, str]:
    """The exit status of a command, and all that it says, in one line."""
    made_gpu().special(gpus=2, serves="--for" in words)
    try:
        status = main(shlex.split(words.replace("H100", H100).removeprefix("mlscale ")))
    except SystemExit as stopped:  # --help exits
        status = int(str(stopped.code))
    return status, " ".join("".join(cli.capsys.readouterr()).split())


def of_hint(hint: Mapping[str, str], said: str) -> str:
    """What a command says from the words of the hint on; empty without them."""
    words = re.sub(r"\\{\w*\\}", ".*?", re.escape(hint["says"]))
    return found[0] if (found := re.search(f"{words}.*", said)) else ""


def followed(hint: Mapping[str, str], at: str) -> str:
    """The command that follows what is said."""

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
@pytest.mark.usefixtures("forget_own_devices")
def test_a_hint_is_followed(cli: Cli, inputs: Path, hint: dict[str, str]) -> None:
    _, said = told(cli, hint["$"])
    assert of_hint(hint, said), f"{hint['says']} is not in: {said}"
    for command in followed(hint, of_hint(hint, said)).split(" && "):
        status, answer = told(cli, command)
        if better := hint.get("gives"):
            assert better in answer
            assert not of_hint(hint, answer)
        else:
            assert status == 0, f"{command}: {answer}"


# Which messages there are, by the source.

OWN = set().union(*map(options_of, COMMANDS))
FOREIGN = (  # options of vLLM, profilers, monitors and others
    *("request-rate", "save-detailed", "save-result", "max-concurrency", "ignore-eos"),
    *(
        "metric-percentiles",
        "section",
        "clock-control",
        "cache-control",
        "log-file",
        "import",
        "page",
        "csv",
    ),
    *("print-units", "type", "report", "cuda-graph-trace", "kernel-trace", "output-format"),
    *("timestamp", "query-gpu", "perf-level", "watch", "setsclk", "gpu-freq"),
    *("steps", "next-profile"),
)
NOT_FOLLOWED = {  # words of messages that name an option, by why no row follows them
    "the help, or other tools' commands": [
        "examples",
        "mlscale: choose a GPU's clock",
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
        "is not a gpu.json of",
    ],
    "what the demo has run itself": ["1. Which clock?", "2. One profile", "3. Your sweep, a model"],
    "needs a GPU, or root": [
        "has no engine clock; give it: --at MHZ",
        "--resume when it is; by hand",
        "only root sets clocks",
        "something still runs in the background, wait for it, or use --for",
        "leave out --cu-counts",
        "--cu-counts {}: {} has {} CUs",
        "so 'bottleneck' does not apply",
        "measure an undivided GPU",
        "no log can be written there",
    ],
    "told elsewhere: to a call from Python, while a terminal waits": [
        "give each result its log, in pairs",
        "profile new kernels there, or give --base",
        "checking it on held-out applications",
    ],
    "needs what was interrupted or damaged, a fleet or a cluster; their own tests resume": [
        "continue with --resume",
        "the results of a fleet are Parquet files",
        "whose size does not matter",
        "leave such kernels out with --profiled-only",
        "train it again: mlscale train TABLE",
        "install them with: pip install distributed",
    ],
    "its own test follows it": ["that reading is not used: {}; leave engine out"],
    "of other runs of a tool, or tells and asks for nothing": [
        "a power cap is advised without any clock",
        "as --device says",
        "lists different GPUs",
        "of --base, which is used; if a power",
        "according to the files the GPU goes up to",
    ],
}


def spelled(node: ast.AST, names: Mapping[str, str]) -> Any:
    """A part of a message as the command writes it, @@ for what only a run knows.

    names: variables that hold a parameter.
    """
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {spelled(key, names): spelled(value, names) for key, value in pairs if key}
    if isinstance(node, ast.JoinedStr):
        return "".join(spelled(part, names) for part in node.values)
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return spelled(node.value, names)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("parameter", "command"):
        words = [spelled(word, names) for word in node.args]
        values = {str(one.arg): spelled(one.value, names) for one in node.keywords}
        with in_options():
            return getattr(parameters, ast.unparse(node.func))(*words, **values)
    return names.get(node.id, "@@") if isinstance(node, ast.Name) else "@@"


def parameters_of(tree: ast.AST) -> dict[str, str]:
    """The variables of a module that hold a parameter alone, as the command writes it."""
    texts = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=False) if both else [(target, value)]
            for name, given in pairs:
                if isinstance(given, ast.Call) and ast.unparse(given.func) == "parameter":
                    texts[ast.unparse(name)] = spelled(given, {})
    return texts


def messages(node: ast.AST, names: Mapping[str, str]) -> Iterator[str]:
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
            yield spelled(child, names).replace("@@", "{}")
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        else:
            yield from messages(child, names)


MESSAGES = [
    (file.relative_to(PACKAGE).as_posix(), text)
    for file in sorted(PACKAGE.rglob("*.py"))
    for tree in [ast.parse(file.read_text("utf-8"))]
    for text in messages(tree, parameters_of(tree))
]


def test_every_option_and_command_in_a_message_exists() -> None:
    known = OWN | {f"--{name}" for name in FOREIGN} | {"--help", "--version"}
    lacking = [
        (file, name)
        for file, text in MESSAGES
        if not file.startswith(("advice/commands", "collect/recording", "sensors/"))  # others
        for name in (*re.findall(OPTION, text), *re.findall(r"'mlscale ([a-z]+)\b", text))
        if name not in known and name not in COMMANDS
    ]
    assert lacking == []


def test_every_message_with_an_option_is_followed_or_says_why_not() -> None:
    """A row is of one message alone, or of what several say together, as a line of the answer."""
    followed, reasons = [hint["says"] for hint in HINTS], [*itertools.chain(*NOT_FOLLOWED.values())]
    texts = [" ".join(text.split()) for _, text in MESSAGES if OWN & {*re.findall(OPTION, text)}]
    said = {text for text in texts if not re.fullmatch(OPTION, text)}
    found = {
        words: said & {words} or {text for text in said if words in text}
        for words in (*followed, *reasons)
    }
    assert said - set().union(*found.values()) == set()
    assert [words for words in followed if len(found[words]) > 1] == []
    assert [words for words in reasons if not found[words]] == []
