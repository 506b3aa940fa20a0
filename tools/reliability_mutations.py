"""Damaged files of every kind, each trial in a process with 1 GiB to spare and 10 s of time."""

import json
import os
import resource
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import IO, cast

TESTS = Path(__file__).resolve().parents[1] / "tests"
SECONDS = 10.0
SECONDS_TO_BEGIN = 300.0  # a model is trained first
SPARE_BYTES = 1 << 30


def attack(trials: int, seed: int) -> Iterator[tuple[str, int, list[str]]]:
    """Yield of each reader its name, its trials, and what went wrong."""
    command = [sys.executable, __file__, str(seed)]
    names = json.loads(subprocess.check_output([*command, "names"], stderr=subprocess.DEVNULL))
    for place, name in enumerate(names):
        share = trials // len(names) + (place < trials % len(names))
        yield name, share, _faults([*command, name], share)


def _faults(command: list[str], trials: int) -> list[str]:
    """Let a process make the trials; one that hangs or dies is begun again behind that trial."""
    faults: list[str] = []
    done = 0
    while done < trials:
        with subprocess.Popen(
            [*command, str(done), str(trials)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        ) as child:  # fmt: skip
            allowed = SECONDS_TO_BEGIN
            answers = cast("IO[bytes]", child.stdout)
            while done < trials:
                ready = select.select([answers], [], [], allowed)[0]
                line = answers.readline() if ready else b""
                if not line:
                    faults.append(f"trial {done}: " + ("it dies" if ready else f"over {SECONDS} s"))
                    done += 1
                    child.kill()
                    break
                allowed = SECONDS
                if line != b"ready\n":
                    if problem := json.loads(line):
                        faults.append(f"trial {done}: {problem}")
                    done += 1
    return faults


def _make_trials(folder: Path, seed: int, name: str, first: int, last: int) -> None:
    """In a process of its own: a line for each trial, its problem as JSON."""
    answers = os.fdopen(os.dup(1), "w")
    trial = next(Trial(reader, folder) for reader in _readers(folder, name) if reader.name == name)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + SPARE_BYTES,) * 2)
    print("ready", file=answers, flush=True)
    for number in range(first, last):
        problem = trial.problem(Random(f"{seed} {name} {number}"))  # noqa: S311
        print(json.dumps(problem), file=answers, flush=True)


def _readers(folder: Path, name: str) -> "Iterator[Reader]":
    """The readers among which the one of that name is; models take long to train."""
    return readers(
        folder, [model for model in MODELS if name.partition(",")[0] == f"model {model}"]
    )


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    from mutations import Trial
    from readers import MODELS, Reader, readers

    seed, name = int(sys.argv[1]), sys.argv[2]
    with TemporaryDirectory() as folder:
        if name == "names":
            files = [reader.name for reader in readers(Path(folder))]
            models = [f"model {name}{how}" for name in MODELS for how in ("", ", made right")]
            print(json.dumps(files + models))
        else:
            _make_trials(Path(folder), seed, name, int(sys.argv[3]), int(sys.argv[4]))
