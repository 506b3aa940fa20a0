"""Give mlscale damaged files, kill it at random moments, and count what it does not bear.

    python tools/reliability.py [--mutations N] [--kills N] [--seed S] [--only WORD]

Prints a line for each attack, with trials and faults, then what the faults are; docs/reliability.md
shows what it printed. A fault is a traceback, another exit status than expected, a file that is
left half written, a number that changed, a result that is not the undisturbed one's, or too much
time or memory.
"""

import argparse
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
from typing import Any

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from model_files import members_of, npy, zipped
from mutations import Trial, damaged
from readers import MODELS, profile_table, readers
from synthetic import bottleneck_kernels as made

from mlscale import ConfigGrid
from mlscale.data.public import path as shipped
from mlscale.data.table_files import write_table

GRID = ConfigGrid((16,), (500.0, 1000.0), (3000.0, 4000.0))
PROCESSOR_S = 10
SPARE_BYTES = 1 << 30  # of memory, for a damaged file
MEBIBYTES = 1024  # of a whole process
WALL_S = 300.0  # the machine may be busy
SECONDS_TO_END = 30.0  # of the processes that a killed one had begun
MLSCALE = (sys.executable, "-m", "mlscale")
DOCUMENT = "model.json"

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
        files = Files(Path(folder))
        for name, trials in (
            *damaged_files(files.folder, options.mutations, options.seed),
            *bad_inputs(files),
            *kills(files, options.kills, options.seed),
        ):
            if options.only in name:
                faults = [fault for trial in trials for fault in trial()]
                found += [f"{name}: {fault}" for fault in faults]
                print(f"{name:<52}{len(trials):>8}{len(faults):>8}", flush=True)
    print("\n".join(found))
    return int(bool(found))


class Files:
    """A table, a profile, a fleet, a model and an export, made in the folder when asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def table(self) -> Path:
        """Six kernels at four configurations."""
        made.measurements(6, grid=GRID).write(self.folder / "t.csv")
        return self.folder / "t.csv"

    @cached_property
    def profile(self) -> Path:
        """The six kernels at the base."""
        write_table(profile_table(made.measurements(6, grid=GRID).profiles(GRID.mid)),
                    self.folder / "p.csv")  # fmt: skip
        return self.folder / "p.csv"

    @cached_property
    def fleet(self) -> Path:
        """Sixty kernels at the base, in row groups of one."""
        whole, fleet = self.folder / "whole.parquet", self.folder / "fleet.parquet"
        write_table(profile_table(made.measurements(60, grid=GRID).profiles(GRID.mid)), whole)
        pq.write_table(pq.read_table(whole), fleet, row_group_size=1)
        return fleet

    @cached_property
    def model(self) -> Path:
        """A model of the table."""
        path = self.folder / "m.mlscale"
        train = ("train", self.table, "--base", "mid", "--predictor", "nearest", "-o", path)
        if faults := tried(train, expected=0):
            raise RuntimeError(str(faults))
        return path

    def new(self, name: str, content: bytes) -> Path:
        """A file of that content."""
        path = self.folder / name
        path.write_bytes(content)
        return path


# Files that are damaged at random.


def damaged_files(folder: Path, count: int, seed: int) -> Iterator[Attack]:
    """Of each kind of file that mlscale reads, so many with one fault, in this process."""
    for reader in readers(folder, MODELS) if count else ():
        trial = Trial(reader, folder)
        yield (
            f"a damaged file: {reader.name}",
            [partial(_damaged, trial, Random(f"{seed} {n}")) for n in range(count)],  # noqa: S311
        )


def _damaged(trial: Trial, random: Random) -> Faults:
    content = trial.damaged(random)
    with _limits():
        problem = trial.problem_of(content)
    return [problem] if problem else []


@contextmanager
def _limits() -> Iterator[None]:
    """In the block, too much time or memory is an error as any other."""

    def too_long(_number: int, _frame: object) -> None:
        raise TimeoutError(f"over {PROCESSOR_S} s of processor")

    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    size = pages * os.sysconf("SC_PAGE_SIZE") + SPARE_BYTES
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
    """Each is refused in one line; of a model file also what it would do if it were not."""
    for name, content in MODEL_FILES.items():
        yield f"a model file: {name}", [partial(_model_file, files, content)]
    for column, values in CELLS.items():
        yield (
            f"a table: {column} that cannot be",
            [partial(_cell, files, column, value, words) for value in values for words in READING],
        )
    for name, words_of in COMMANDS.items():
        yield name, [lambda words_of=words_of: tried(words_of(files), expected=2)]


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
    names = [name for name in members if name.endswith(".npy")]
    other = {n: npy(np.array(change(np.load(io.BytesIO(members[n]))))) for n in names}
    return zipped(members | other)


AXIS = [float(step) for step in range(1, 1001)]
MARK = Path("code-was-run")
MODEL_FILES: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "a pickle": lambda _: pickle.dumps(Vandal(MARK)),
    "arrays of Python objects": lambda m: _with_arrays(m, lambda _: [Vandal(MARK)]),
    "arrays of text": lambda m: _with_arrays(m, lambda a: a.astype(str)),
    "arrays of NaN": lambda m: _with_arrays(m, lambda a: np.full_like(a, np.nan, float)),
    "a document of 300 MB": lambda _: _streamed(DOCUMENT, b"[" + b"0," * (1 << 19), 300),
    "a document of 100 000 brackets": lambda _: zipped({DOCUMENT: b"[" * 10**5}),
    "an array of 1.2 GB": lambda _: _streamed("arrays/0.npy", bytes(1 << 20), 1200),
    "60 000 members": lambda _: zipped({f"{n}": b"" for n in range(60_000)}),
    "a grid of a milliard": lambda m: _with(m, cu_count=[*range(1, 1001)], engine_mhz=AXIS,
                                            memory_mhz=AXIS),
    "a predictor that is none": lambda m: _with(m, predictors={"time": {"name": "os.system"}}),
    "of a later format": lambda m: _with(m, format_version=99),
}  # fmt: skip


def _model_file(files: Files, content: Callable[[dict[str, bytes]], bytes]) -> Faults:
    model = files.new("bad.mlscale", content(members_of(files.model.read_bytes())))
    faults = tried(("predict", files.profile, "--model", model), expected=2)
    return faults + (["runs code"] if MARK.exists() else [])


# Of the second row of a table and of a profile, which every command then refuses.
CELLS = {
    "time_ms": ("", "-1", "0", "nan", "inf", "1e300", "9" * 400),
    "power_w": ("-5", "1_0", "text", "1e-320"),
    "engine_mhz": ("", "-800", "1e16"),
}
READING = (
    ("predict", "{}", "--model", "{model}"),
    ("advise", "{}", "--model", "{model}"),
    ("train", "{}", "--base", "mid", "--predictor", "nearest", "-o", "{out}"),
    ("study", "errors", "{}", "--predictor", "nearest", "--seeds", "1"),
)


def _cell(files: Files, column: str, value: str, command: Sequence[str]) -> Faults:
    source = files.table if command[0] in ("train", "study") else files.profile
    header, *lines = source.read_text(encoding="utf-8").splitlines()
    cells = lines[1].split(",")
    cells[header.split(",").index(column)] = value
    lines[1] = ",".join(cells)
    table = files.new("bad.csv", "\n".join([header, *lines, ""]).encode())
    words = {"{}": table, "{model}": files.model, "{out}": files.folder / "of-bad.mlscale"}
    faults = tried([words.get(word, word) for word in command], expected=2)
    return faults + (["leaves a model"] if words["{out}"].exists() else [])


COMMANDS: dict[str, Callable[[Files], Sequence[object]]] = {
    "a file without an end": lambda _: ("predict", "/dev/zero"),
    "an empty file": lambda f: ("advise", f.new("empty.csv", b"")),
    "a file of zeros": lambda f: ("advise", f.new("zeros.csv", bytes(4096))),
    "an export cut off in its header": lambda f: (
        "advise", f.new("cut.csv", shipped("h100-by-hand.csv").read_bytes()[:200])),
    "a name that is not UTF-8": lambda f: ("predict", os.fsencode(f.folder) + b"/t\xff.csv"),
    "an export of which a name steers a terminal": lambda f: (
        "predict", f.new("steers.csv", shipped("h100-by-hand.csv").read_bytes().replace(
            b"triad", b"\x1b]0;title\x07")), "--model", f"no\x1b[2J{f.folder.name}"),
    "output onto the table that is read": lambda f: (
        "train", f.table, "--base", "mid", "-o", f.table),
    "output into a folder that is not there": lambda f: (
        "train", f.table, "--base", "mid", "-o", f.folder / "nowhere" / "m.mlscale"),
    "output onto a full disk": lambda f: (
        "predict", f.profile, "--model", f.model, "--format", "csv", "-o", "/dev/full"),
    "--dask where nobody listens": lambda f: (
        *STUDY, f.table, "-o", f.folder / "dask", "--dask", "tcp://127.0.0.1:9"),
}  # fmt: skip


def tried(words: Sequence[object], expected: int | None) -> Faults:
    """Run a command; what is wrong with how it ended. expected: its exit status; None: 0 or 2."""
    command = [*MLSCALE, *(w if isinstance(w, bytes) else str(w) for w in words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        process.stdout, pipe = None, process.stdout
        assert pipe is not None  # noqa: S101
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(int(WALL_S))
        said = pipe.read().decode(errors="backslashreplace")
        _, state, usage = os.wait4(process.pid, 0)
        signal.alarm(0)
        process.returncode = status = os.waitstatus_to_exitcode(state)
    faults = []
    errors = [line for line in said.splitlines() if line.startswith("mlscale: error: ")]
    if status not in ((0, 2) if expected is None else (expected,)):
        faults.append(f"exit status {status}: {said[-200:]!a}")
    elif "Traceback" in said or "\x1b" in said or (status == 2 and len(errors) != 1):
        faults.append(f"says {said[-300:]!a}")
    if (seconds := usage.ru_utime + usage.ru_stime) > PROCESSOR_S:
        faults.append(f"{seconds:.0f} s of processor")
    if (size := usage.ru_maxrss >> 10) > MEBIBYTES:
        faults.append(f"{size} MiB")
    return [f"{words[0]}: {fault}" for fault in faults]


# Commands that are killed at random moments.

STUDY = ("study", "advice", "--predictor", "nearest", "--seeds", "2")
RECORD = "progress.jsonl"  # what a study and a fleet keep of their parts


def kills(files: Files, count: int, seed: int) -> Iterator[Attack]:
    """Each command is killed (its workers must end too), or interrupted with them by Ctrl-C."""
    commands: dict[str, Callable[[], Sequence[object]]] = {
        "a study": lambda: (*STUDY, files.table, "-o"),
        "a fleet": lambda: ("predict", files.fleet, "--model", files.model, "-o"),
        "a training": lambda: ("train", files.table, "--base", "mid", "--predictor", "nearest",
                               "-o"),
    }  # fmt: skip
    for name, words in commands.items():
        victim = Victim(files.folder / name.replace(" ", "-"), words)
        for how, said in ((signal.SIGKILL, "killed"), (signal.SIGINT, "interrupted")):
            moments = [Random(f"{seed} {n}") for n in range(count)]  # noqa: S311
            yield (
                f"{name} {said}, then begun again",
                [
                    partial(victim.stopped, how, (n + random.random()) / count)
                    for n, random in enumerate(moments)
                ],
            )
        if name != "a training":
            yield (
                f"{name} killed, and its record damaged",
                [
                    partial(victim.with_damaged_record, Random(f"{seed} record {n}"))  # noqa: S311
                    for n in range(count)
                ],
            )


class Victim:
    """A command, undisturbed once: what it writes, and how long it takes."""

    def __init__(self, folder: Path, words: Callable[[], Sequence[object]]) -> None:
        self.folder, self._words = folder, words
        self.has_parts = "training" not in folder.name

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
        process = self._begun()
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
        return self._compared(faults + self._again())

    def with_damaged_record(self, random: Random) -> Faults:
        """Kill it when some parts are kept, damage what it kept, and begin it again."""
        whole, record = self.whole, self.folder / "out" / RECORD
        process = self._begun()
        while process.poll() is None:
            if record.exists() and record.read_bytes().count(b"\n") > 2:
                process.kill()
            time.sleep(0.01)
        process.communicate()
        if record.exists():
            record.write_bytes(damaged(record.read_bytes(), random))
        faults = self._again(expected=None)
        is_refused = self._files().keys() != whole.keys()
        if is_refused:
            self._clear()
            return faults
        return self._compared(faults)

    def _begun(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*MLSCALE, *map(str, self._words()), self._output], text=True, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    @property
    def _output(self) -> str:
        return str(self.folder / "out") + ("/" if self.has_parts else "")

    def _again(self, expected: int | None = 0) -> Faults:
        more = ("--resume",) if self.has_parts else ()
        return tried((*self._words(), self._output, *more), expected)

    def _compared(self, faults: Faults) -> Faults:
        other = [] if self._files() == self.whole else ["what is begun again has other files"]
        self._clear()
        return faults + other

    def _files(self) -> dict[str, bytes]:
        paths = [p for p in self.folder.rglob("*") if p.is_file() and ".mlscale-part" not in p.name]
        return {path.name: path.read_bytes() for path in paths}

    def _clear(self) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()


if __name__ == "__main__":
    sys.exit(main())
