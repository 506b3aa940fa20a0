"""Damaged and crafted files, each trial in a process with 1 GiB to spare and 10 s of processor."""

import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import IO, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from model_files import members_of
from mutations import Trial
from readers import MODELS, readers
from reliability_crafted import exhausting, misleading

PROCESSOR_S = 10.0
SECONDS = 60.0  # of a machine that does other work too
SECONDS_TO_BEGIN = 300.0  # a model is trained first
SPARE_BYTES = 1 << 30
LEAVES = 20  # of the document of a crafted file, by trials of the other attacks
EXHAUSTING = "a small model file that exhausts memory"
Content = tuple[Callable[[], bytes], Callable[[bytes], str | None]]
DAMAGED, CRAFTED = "a damaged file: ", "a crafted model file: "


def attack(
    word: str, mutations: int, trials: int, seed: int
) -> Iterator[tuple[str, int, list[str]]]:
    """Yield of each kind of file in whose name the word stands, its trials, and its faults."""
    names: dict[str, list[str]] = json.loads(_asked("names", 0, 0))
    for kind, of_kind in names.items():
        for place, name in enumerate(of_kind):
            count = trials * LEAVES
            if kind == DAMAGED:
                count = mutations // len(of_kind) + (place < mutations % len(of_kind))
            if word in kind + name and count:
                yield (kind + name, *_faults(kind + name, count, seed))


def _command(name: str, count: int, seed: int) -> list[str]:
    return [sys.executable, __file__, name, str(count), str(seed)]


def _asked(name: str, count: int, seed: int) -> bytes:
    return subprocess.check_output(_command(name, count, seed), stderr=subprocess.DEVNULL)


def _faults(name: str, count: int, seed: int) -> tuple[int, list[str]]:
    """Let a process make the trials; one that hangs or dies is begun again behind that trial.

    Of each trial it says "ready" when it begins, and then its problem as JSON.
    """
    faults: list[str] = []
    done = 0
    while True:
        with subprocess.Popen(
            [*_command(name, count, seed), str(done)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        ) as child:  # fmt: skip
            answers = cast("IO[bytes]", child.stdout)
            is_ready = False
            while True:
                allowed = SECONDS if is_ready else SECONDS_TO_BEGIN
                has_answer = select.select([answers], [], [], allowed)[0]
                line = answers.readline() if has_answer else b""
                if line == b"end\n":
                    return done, faults
                if not line:
                    child.kill()
                    why = "it dies" if has_answer else f"over {allowed} s"
                    faults.append(f"trial {done}: {why}")
                    if not is_ready:  # nor would the next one be
                        return done, faults
                    done += 1
                    break
                is_ready = line == b"ready\n"
                if not is_ready:
                    if problem := json.loads(line):
                        faults.append(f"trial {done}: {problem}")
                    done += 1


def _make_trials(folder: Path, name: str, count: int, seed: int, first: int) -> None:
    """In a process of its own: a line before and after each trial."""
    answers = os.fdopen(os.dup(1), "w")
    contents = [*_contents(folder, name, count, seed)]
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + SPARE_BYTES,) * 2)
    for make_content, problem_of in contents[first:]:
        content = make_content()
        print("ready", file=answers, flush=True)
        begin = time.process_time()
        problem = problem_of(content)
        seconds = time.process_time() - begin
        if seconds > PROCESSOR_S and not problem:
            problem = f"{seconds:.0f} s of processor"
        print(json.dumps(problem), file=answers, flush=True)
    print("end", file=answers, flush=True)


def _contents(folder: Path, name: str, count: int, seed: int) -> Iterator[Content]:
    """What makes the content of each trial, and what says what is wrong with how it is borne."""
    if name.startswith(DAMAGED):
        name = name.removeprefix(DAMAGED)
        model = name.removeprefix("model ").partition(",")[0]
        models = [model] if name.startswith("model ") else []
        trial = next(Trial(r, folder) for r in readers(folder, models) if r.name == name)
        for number in range(count):
            random = Random(f"{seed} {name} {number}")  # noqa: S311
            yield partial(trial.damaged, random), trial.problem_of
        return
    model = "nearest" if name == EXHAUSTING else name.removeprefix(CRAFTED)
    trial = next(Trial(r, folder) for r in readers(folder, [model]) if r.name == f"model {model}")
    trial = Trial(replace(trial.reader, keeps="nobody"), folder)
    members, mark = members_of(trial.reader.content), folder / "code-was-run"
    crafted = exhausting(members)
    if name != EXHAUSTING:
        crafted = misleading(members, mark, count, seed)
    for what, make_content, is_refused in crafted:
        yield make_content, partial(_problem, trial, mark, what, is_refused)


def _problem(trial: Trial, mark: Path, what: str, is_refused: bool, content: bytes) -> str | None:
    problem = trial.problem_of(content)
    if mark.exists():
        problem = "code was run"
    elif is_refused and not problem and trial.status == 0:
        problem = "is taken"
    return problem and f"{what}: {problem}"


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        if sys.argv[1] == "names":
            files = [reader.name for reader in readers(Path(place))]
            models = [f"model {name}{how}" for name in MODELS for how in ("", ", made right")]
            print(json.dumps({DAMAGED: files + models, CRAFTED: MODELS, "": [EXHAUSTING]}))
        else:
            _make_trials(Path(place), sys.argv[1], *map(int, sys.argv[2:]))
