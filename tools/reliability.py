"""Give mlscale damaged files, kill it at random moments, and count what it does not bear.

    python tools/reliability.py [--mutations N] [--kills N] [--seed S] [--only WORD]

Prints a line for each attack, with trials and faults, then what the faults are; docs/trust.md has
the number of damaged files. A fault is a traceback, another exit status than expected, a file that
is left half written, a number that changed, a result that is not the undisturbed one's, or too much
time or memory.
"""

import argparse
import gzip
import io
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from model_files import members_of, npy, zipped
from mutations import FAULTS, Trial
from readers import MODELS, Reader, profile_table, readers
from synthetic import bottleneck_kernels as made

from mlscale import ConfigGrid
from mlscale.data.datasets import path as shipped
from mlscale.data.table_files import write_table

GRID = ConfigGrid((16,), (500.0, 1000.0), (3000.0, 4000.0))
PROCESSOR_S = 10
TOO_LONG = 124  # exit status, as that of timeout
SPARE_MEMORY_BYTES = 1 << 30
WALL_S = 300.0  # the machine may be busy
SECONDS_TO_END = 30.0  # for processes that a killed one had begun
MLSCALE = (sys.executable, "-m", "mlscale")
DOCUMENT = "model.json"
TRAIN = ("train", "--base", "mid", "--predictor", "nearest")
STUDY = ("study", "advice", "--predictor", "nearest", "--seeds", "2")

Faults = list[str]
Attack = tuple[str, Sequence[Callable[[], Faults]]]


def main() -> int:
    """Run the attacks; the exit status is 1 where anything was not borne."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=100, help="of each kind of file")
    parser.add_argument("--kills", type=int, default=20, help="of each command, by each signal")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="attacks in whose name this word stands")
    options = parser.parse_args()
    found = []
    print(f"{'attack':<52}{'trials':>8}{'faults':>8}")
    with TemporaryDirectory() as folder:
        files = made_files(Path(folder))
        for name, trials in (
            *damaged_files(files.folder, options.mutations, options.seed),
            *bad_inputs(files),
            *kills(files, options.kills, options.seed),
        ):
            if trials and options.only in name:
                faults = [fault for trial in trials for fault in trial()]
                found += [f"{name}: {fault}" for fault in faults]
                print(f"{name:<52}{len(trials):>8}{len(faults):>8}", flush=True)
    print("\n".join(found))
    return int(bool(found))


class Files(NamedTuple):
    """Six kernels at four configurations, and at the base; sixty at the base; a model."""

    folder: Path
    table: Path
    profile: Path
    fleet: Path  # a Parquet file, in row groups of one kernel
    model: Path

    def new(self, name: str, content: bytes) -> Path:
        """A further file, of that content."""
        path = self.folder / name
        path.write_bytes(content)
        return path


def made_files(folder: Path) -> Files:
    """Make them in the folder."""
    names = ("t.csv", "p.csv", "fleet.parquet", "m.mlscale")
    files = Files(folder, *(folder / name for name in names))
    kernels, many = (made.measurements(count, grid=GRID) for count in (6, 60))
    kernels.write(files.table)
    write_table(profile_table(kernels.profiles(GRID.mid)), files.profile)
    write_table(profile_table(many.profiles(GRID.mid)), files.fleet)
    pq.write_table(pq.read_table(files.fleet), files.fleet, row_group_size=1)
    if faults := tried((*TRAIN, files.table, "-o", files.model), expected=0):
        raise RuntimeError(str(faults))
    return files


# Files that are damaged at random.


def damaged_files(folder: Path, count: int, seed: int) -> Iterator[Attack]:
    """Of each kind of file that mlscale reads, so many with one fault, in this process."""
    trials = [Trial(reader, folder) for reader in (readers(folder, MODELS) if count else ())]
    drawn: dict[str, list[Callable[[], Faults]]] = {name: [] for name in FAULTS}
    for trial in trials:
        for number in range(count):
            random = Random(f"{seed} {trial.reader.name} {number}")  # noqa: S311
            fault = random.choice(trial.faults)
            drawn[fault].append(partial(_damaged, trial, fault, random))
    for fault, tries in drawn.items():
        yield f"files of {len(trials)} kinds: {fault}", tries
    yield f"files of {len(trials)} kinds: by a pipe", [partial(_piped, trial) for trial in trials]


def _piped(trial: Trial) -> Faults:
    problem = trial.problem_of_pipe()
    return [f"{trial.reader.name}: {problem}"] if problem else []


def _damaged(trial: Trial, fault: str, random: Random) -> Faults:
    with _limits():
        problem = trial.problem(random, fault)
    return [f"{trial.reader.name}: {problem}"] if problem else []


@contextmanager
def _limits() -> Iterator[None]:
    """In the block, too much time ends the command with the status TOO_LONG; memory has a limit."""

    def too_long(_number: int, _frame: object) -> None:
        sys.exit(TOO_LONG)

    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    size = pages * os.sysconf("SC_PAGE_SIZE") + SPARE_MEMORY_BYTES
    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_S)
    resource.setrlimit(resource.RLIMIT_AS, (size, before[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)


# Inputs that were made to do harm, or that users make by mistake.


def bad_inputs(files: Files) -> Iterator[Attack]:
    """Each is refused in one line."""
    read = ("predict", str(files.profile), "--model", "{}")
    trial = Trial(Reader("", ".mlscale", files.model.read_bytes(), read), files.folder)
    yield (
        "a model file that would exhaust, mislead or run",
        [partial(_model_file, trial, *named) for named in MODEL_FILES.items()],
    )
    bad, out = files.folder / "bad.csv", files.folder / "of-bad.mlscale"
    reading = {
        ("predict", bad, "--model", files.model): files.profile,
        ("advise", bad, "--model", files.model): files.profile,
        (*TRAIN, bad, "-o", out): files.table,
        ("study", "errors", bad, "--predictor", "nearest", "--seeds", "1"): files.table,
    }
    for column, values in CELLS.items():
        yield (
            f"a table: {column} that cannot be",
            [
                partial(_cell, source, bad, column, value, words)
                for value in values
                for words, source in reading.items()
            ],
        )
    for name, words in _commands(files).items():
        yield name, [partial(tried, words, expected=2)]


class Vandal:
    """Pickled, it would make a file where it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def _streamed(member: str, piece: bytes, count: int) -> bytes:
    """A zip of one member that is a piece many times over."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(member, "w", force_zip64=True) as file,
    ):
        for _ in range(count):
            file.write(piece)
    return content.getvalue()


def _with(members: dict[str, bytes], **changes: object) -> bytes:
    """The file with other values in its document."""
    document = json.loads(members[DOCUMENT]) | changes
    return zipped(members | {DOCUMENT: json.dumps(document).encode()})


def _with_arrays(members: dict[str, bytes], change: Callable[[np.ndarray], object]) -> bytes:
    arrays = {n: np.load(io.BytesIO(m)) for n, m in members.items() if n.endswith(".npy")}
    return zipped(members | {name: npy(np.array(change(array))) for name, array in arrays.items()})


AXIS = [float(step) for step in range(1, 1001)]
MARK = Path("code-was-run")
MODEL_FILES: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "a pickle": lambda _: pickle.dumps(Vandal(MARK)),
    "arrays of Python objects": lambda m: _with_arrays(m, lambda _: [Vandal(MARK)]),
    "a document of 300 MB": lambda _: _streamed(DOCUMENT, b"[" + b"0," * (1 << 19), 300),
    "a document of 100 000 brackets": lambda _: zipped({DOCUMENT: b"[" * 10**5}),
    "an array of 1.2 GB": lambda _: _streamed("arrays/0.npy", bytes(1 << 20), 1200),
    "60 000 members": lambda _: zipped({f"{n}": b"" for n in range(60_000)}),
    "a grid of a milliard": lambda m: _with(m, cu_count=[*range(1, 1001)], engine_mhz=AXIS,
                                            memory_mhz=AXIS),
}  # fmt: skip


def _model_file(trial: Trial, name: str, content: Callable[[dict[str, bytes]], bytes]) -> Faults:
    crafted = content(members_of(trial.reader.content))
    with _limits():
        problem = trial.problem_of(crafted)
    if MARK.exists():
        problem = "code was run"
    elif not problem and trial.status != 2:
        problem = "is taken"
    return [f"{name}: {problem}"] if problem else []


# Of the second row of a table and of a profile, which every command then refuses.
CELLS = {
    "time_ms": ("", "-1", "0", "nan", "inf", "1e300", "9" * 400),
    "power_w": ("-5", "1_0", "text", "1e-320"),
    "engine_mhz": ("", "-800", "1e16"),
}


def _cell(source: Path, table: Path, column: str, value: str, words: Sequence[object]) -> Faults:
    header, *lines = source.read_text(encoding="utf-8").splitlines()
    cells = lines[1].split(",")
    cells[header.split(",").index(column)] = value
    lines[1] = ",".join(cells)
    table.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return tried(words, expected=2)


def _commands(files: Files) -> dict[str, Sequence[object]]:
    export = shipped("h100-by-hand.csv").read_bytes()
    steering = files.new("steering.csv", export.replace(b"triad", b"\x1b]0;title\x07"))
    nowhere = files.folder / "nowhere" / "m.mlscale"
    read = ("predict", files.profile, "--model", files.model, "--format", "csv")
    beginnings = {
        "trace": b'{"traceEvents": [', "answer": b'{"resultType": [',
        "result": b'{"num_prompts": 9, "itls": [', "table": b"kernel,time_ms\n",
    }  # fmt: skip
    blanks = gzip.compress(b" " * (1 << 28)) * 16
    bombs = {name: files.new(f"{name}.gz", gzip.compress(begin) + blanks)
             for name, begin in beginnings.items()}  # fmt: skip
    return {
        "a file without an end": ("predict", "/dev/zero"),
        "an empty file": ("advise", files.new("empty.csv", b"")),
        "a file of zeros": ("advise", files.new("zeros.csv", bytes(4096))),
        "an export cut off in its header": ("advise", files.new("cut.csv", export[:200])),
        "a name that is not UTF-8": ("predict", os.fsencode(files.folder) + b"/t\xff.csv"),
        "names that steer a terminal": ("predict", steering, "--model", "no\x1b[2J"),
        "output onto the table that is read": (*TRAIN, files.table, "-o", files.table),
        "output into a folder that is not there": (*TRAIN, files.table, "-o", nowhere),
        "output onto a full disk": (*read, "-o", "/dev/full"),
        **{f"a packed bomb of 4 GB: {name}": ("import", bomb) for name, bomb in bombs.items()},
        "--dask where nobody listens": (
            *(*STUDY, files.table, "-o", files.folder / "dask"), "--dask", "tcp://127.0.0.1:9"),
    }  # fmt: skip


def tried(words: Sequence[object], expected: int) -> Faults:
    """Run a command; what is wrong with how it ended. expected: its exit status."""
    command = [*MLSCALE, *(w if isinstance(w, bytes) else str(w) for w in words)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, timeout=WALL_S, check=False)
    except subprocess.TimeoutExpired:
        return [f"{words[0]}: over {WALL_S:g} s"]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    status, said = done.returncode, done.stderr.decode(errors="backslashreplace")
    errors = [line for line in said.splitlines() if line.startswith("mlscale: error: ")]
    faults = [f"{seconds:.0f} s of processor"] if seconds > PROCESSOR_S else []
    if status != expected:
        faults.append(f"exit status {status}: {said[-200:]!a}")
    elif "Traceback" in said or "\x1b" in said or (status == 2 and len(errors) != 1):
        faults.append(f"says {said[-300:]!a}")
    return [f"{words[0]}: {fault}" for fault in faults]


# Commands that are killed at random moments.

RECORD = "progress.jsonl"  # what a study and a fleet keep of their parts


def kills(files: Files, count: int, seed: int) -> Iterator[Attack]:
    """Each command is killed (its workers must end too), or interrupted with them by Ctrl-C."""
    commands = {
        "a study": (*STUDY, files.table),
        "a fleet": ("predict", files.fleet, "--model", files.model),
        "a training": (*TRAIN, files.table),
    }
    for name, words in commands.items():
        victim = Victim(files.folder / name.replace(" ", "-"), words)
        for how, said in ((signal.SIGKILL, "killed"), (signal.SIGINT, "interrupted")):
            shares = [Random(f"{seed} {n}").random() for n in range(count)]  # noqa: S311
            yield (
                f"{name} {said}, then begun again",
                [partial(victim.stopped, how, (n + one) / count) for n, one in enumerate(shares)],
            )


class Victim:
    """A command, undisturbed once: what it writes, and how long it takes."""

    def __init__(self, folder: Path, words: Sequence[object]) -> None:
        self.folder = folder
        has_parts = words[0] != "train"
        self._words = (*words, "-o", f"{folder / 'out'}{'/' if has_parts else ''}")
        self._more = ("--resume",) if has_parts else ()

    @cached_property
    def whole(self) -> dict[str, bytes]:
        """The files of the undisturbed command."""
        self.folder.mkdir()
        for _ in range(2):  # the second one finds its libraries in memory
            begin = time.monotonic()
            if faults := self._again():
                raise RuntimeError(str(faults))
            self.seconds = time.monotonic() - begin
            whole = self._files()
            self._clear()
        return whole

    def stopped(self, how: signal.Signals, moment: float) -> Faults:
        """Stop it at that part of its time, look at what it left, and begin it again."""
        whole = self.whole
        process = subprocess.Popen(
            [*MLSCALE, *map(str, self._words)], text=True, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        faults = []
        try:
            process.communicate(timeout=moment * self.seconds)
        except subprocess.TimeoutExpired:
            if how == signal.SIGINT:  # as a terminal does, to all of them
                os.killpg(process.pid, how)
            else:
                process.kill()
        try:  # the pipe is closed when all have ended
            _, said = process.communicate(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said = process.communicate()[1]
            faults.append("its workers live on")
        if how == signal.SIGINT and "mlscale/" in said.partition("Traceback")[2]:
            faults.append(f"says {said[-300:]!a}")
        faults += [
            f"{name} is half written"
            for name, content in self._files().items()
            if not name.startswith((".", "_")) and name != RECORD and content != whole.get(name)
        ]
        faults += self._again()
        is_same = self._files() == whole
        self._clear()
        return faults if is_same else [*faults, "what is begun again has other files"]

    def _again(self) -> Faults:
        return tried((*self._words, *self._more), expected=0)

    def _files(self) -> dict[str, bytes]:
        paths = [p for p in self.folder.rglob("*") if p.is_file() and ".mlscale-part" not in p.name]
        return {path.name: path.read_bytes() for path in paths}

    def _clear(self) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()


if __name__ == "__main__":
    sys.exit(main())
