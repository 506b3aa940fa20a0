"""Studies and fetches that are killed, interrupted, doubled, or lose their disk or cluster."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

# mlscale with two worker processes, also on a machine of one core.
MLSCALE = (
    sys.executable, "-c",
    "import os, sys; os.cpu_count = lambda: 2; from mlscale.__main__ import main; sys.exit(main())",
)  # fmt: skip
STUDY = ("study", "base-configuration", "--predictor", "nearest", "--quantity", "time")
TIMEOUT_S = 300.0
SECONDS_TO_END = 30.0

Faults = list[str]


def begun(*words: object, **options: object) -> subprocess.Popen[str]:
    """Begin mlscale in a session of its own, whose output is read at the end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(
        [*MLSCALE, *map(str, words)], text=True, start_new_session=True, **pipes
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status, and what it said on stderr."""
    _, said = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, said or ""


def in_one_line(status: int, said: str) -> Faults:
    """What is wrong with how a command was refused, or was not."""
    if status == 0:
        return []
    is_clean = status == 2 and said.startswith("mlscale: error: ") and said.count("\n") == 1
    return [] if is_clean else [f"exit status {status}: {said[-300:]!a}"]


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _in_session(leader: int) -> set[int]:
    """The processes of that session that still run."""
    processes = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has just ended
            continue
        if int(session) == leader and state != "Z":
            processes.add(int(stat.parent.name))
    return processes


class Studies:
    """A small study, undisturbed once: what it writes, and how long it takes."""

    def __init__(self, folder: Path, table: Path, seed: int) -> None:
        self.folder, self.table = folder, table
        self.random = random.Random(seed)  # noqa: S311
        start = time.monotonic()
        status, said = ended(begun(*STUDY, table, "-o", folder / "whole"))
        if status:
            raise RuntimeError(said)
        self.seconds = time.monotonic() - start
        self.whole = _contents(folder / "whole")

    def stopped(self, how: signal.Signals, number: int) -> Faults:
        """Stop a study at a random moment, then resume it."""
        output = self.folder / f"{how.name}-{number}"
        study = begun(*STUDY, self.table, "-o", output)
        try:
            study.wait(self.random.uniform(0, self.seconds))
        except subprocess.TimeoutExpired:
            if how == signal.SIGINT:  # as a terminal does, to all of them
                os.killpg(study.pid, how)
            else:
                study.send_signal(how)
        status, said = ended(study)
        faults = []
        if how == signal.SIGINT and ("Exception ignored" in said or "mlscale/" in said.partition(
            "Traceback")[2]):  # fmt: skip
            faults.append(f"says {said[-300:]!a}")
        begin = time.monotonic()
        while left := _in_session(study.pid):
            if time.monotonic() - begin > SECONDS_TO_END:
                faults.append(f"{len(left)} processes live on")
                os.killpg(study.pid, signal.SIGKILL)
                break
            time.sleep(0.1)
        return [*faults, *self._resumed(output)] if status else faults

    def _resumed(self, output: Path) -> Faults:
        status, said = ended(begun(*STUDY, self.table, "-o", output, "--resume"))
        if status:
            return [f"is not resumed: {said[-300:]!a}"]
        return [] if _contents(output) == self.whole else ["the resumed study has other files"]

    def two_writers(self, number: int) -> Faults:
        """Begin the same study twice at once in one folder."""
        output = self.folder / f"two-{number}"
        both = [begun(*STUDY, self.table, "-o", output) for _ in range(2)]
        answers = [ended(study) for study in both]
        faults = [fault for answer in answers for fault in in_one_line(*answer)]
        if sorted(status for status, _ in answers) != [0, 2]:
            faults.append(f"exit statuses {[status for status, _ in answers]}")
        return faults + ([] if _contents(output) == self.whole else ["other files"])

    def on_disk(self, disk: Path, options: str) -> Faults:
        """Run the study on a small or a read-only disk, and if refused there then elsewhere."""
        with mounted(disk, options):
            before = set(disk.iterdir())
            status, said = ended(begun(*STUDY, self.table, "-o", disk / "study"))
            faults = in_one_line(status, said)
            if status == 0:
                faults.append("nothing was refused")
            for path in disk.rglob("*"):
                if path.suffix in (".csv", ".json", ".png") and path not in before:
                    whole = self.whole.get(path.name)
                    faults += [f"{path.name} is half written"] * (path.read_bytes() != whole)
        return faults

    def on_dask(self, kill: str) -> Faults:
        """Run the study on a Dask cluster of which a part is killed on the way."""
        output = self.folder / f"dask-{kill}"
        with cluster() as (address, parts):
            study = begun(*STUDY, self.table, "-o", output, "--dask", address)
            progress = output / "progress.jsonl"
            while study.poll() is None:
                if progress.exists() and progress.read_bytes().count(b"\n") > 3:
                    parts[kill].kill()
                    break
                time.sleep(0.02)
            status, said = ended(study)
        faults = in_one_line(status, said)
        if status:
            return [*faults, *self._resumed(output)]
        return faults + ([] if _contents(output) == self.whole else ["other files"])


@contextmanager
def mounted(disk: Path, options: str) -> Iterator[None]:
    """A file system of its own at that place; only root may make one."""
    disk.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", disk], check=True)


@contextmanager
def cluster() -> Iterator[tuple[str, dict[str, subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process: the address, and the processes by name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-m", "distributed.cli"]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with ExitStack() as stack:
        parts: dict[str, subprocess.Popen[bytes]] = {}
        workers = ("--nthreads", "1", "--no-nanny", "--no-dashboard", address)
        host = ("--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard")
        for name, words in (
            ("scheduler", ("dask_scheduler", *host)),
            ("worker", ("dask_worker", *workers)),
            ("other worker", ("dask_worker", *workers)),
        ):
            command = [*dask[:-1], f"distributed.cli.{words[0]}", *words[1:]]
            parts[name] = subprocess.Popen(command, **options)
            stack.callback(parts[name].wait)
            stack.callback(parts[name].kill)
        from distributed import Client

        with Client(address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield address, parts


def counted(name: str, trials: Sequence[Callable[[], Faults]]) -> tuple[str, int, Faults]:
    """The name, the trials and all their faults."""
    return name, len(trials), [fault for trial in trials for fault in trial()]
