"""Studies and fetches that are killed, interrupted, doubled, or lose their disk or cluster."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from random import Random

from mutations import damaged
from reliability_copies import begun_copy
from reliability_trials import Attacks, Faults, Files, begun, ended, in_one_line, tried
from synthetic import kernels as made

from mlscale import ConfigGrid

STUDY = ("study", "base-configuration", "--predictor", "nearest", "--quantity", "time")
SECONDS_TO_END = 30.0
GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))


def attacks(files: Files, trials: int, seed: int) -> Attacks:
    """By name; as root also on small and read-only disks."""
    studies, many = Studies(files, seed), range(trials)
    every: Attacks = {
        "a study killed (SIGKILL), then resumed": [
            partial(studies.killed, n, 5 * trials) for n in range(5 * trials)
        ],
        "a study's parent killed, then resumed": [
            partial(studies.stopped, signal.SIGKILL, n, trials) for n in many
        ],
        "a study interrupted (Ctrl-C), then resumed": [
            partial(studies.stopped, signal.SIGINT, n, 2 * trials) for n in range(2 * trials)
        ],
        "a damaged record of a study's progress": [
            partial(studies.with_damaged_progress, n) for n in range(min(trials, 20))
        ],
        "two studies in one folder at once": [partial(studies.two_writers, n) for n in range(3)],
        "a Dask worker killed": [partial(studies.on_dask, "worker")],
        "the Dask scheduler killed": [partial(studies.on_dask, "scheduler")],
    }
    if os.geteuid() == 0:
        disk = files.folder / "disk"
        every["a full disk"] = [
            partial(studies.on_disk, disk, f"size={size}k") for size in (4, 16, 64, 128)
        ]
        every["a read-only disk"] = [partial(studies.on_disk, disk, "ro")]
    return every


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _half_written(folder: Path, whole: dict[str, bytes]) -> Faults:
    """Results that are not what they should be; what is known of unfinished work is none."""
    contents = _contents(folder) if folder.exists() else {}
    return [
        f"{name} is half written"
        for name, content in contents.items()
        if name.endswith((".csv", ".json", ".png", ".svg")) and content != whole.get(name)
    ]


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

    def __init__(self, files: Files, seed: int) -> None:
        self.folder, self.seed = files.folder, seed
        self.table = files.folder / "of-studies.csv"

    @cached_property
    def whole(self) -> dict[str, bytes]:
        """Its files, the same by one process and by two workers."""
        made.measurements(per_group=2, grid=GRID).write(self.table)
        start = time.monotonic()
        status, said = ended(begun(*STUDY, self.table, "-o", self.folder / "whole"))
        if status:
            raise RuntimeError(said)
        self.seconds = time.monotonic() - start
        for _ in range(2):  # of which the first also waits for what is copied to be loaded
            start = time.monotonic()
            if faults := self._resumed(self.folder / f"copied-{start}"):
                raise RuntimeError(str(faults))
        self.copied_seconds = time.monotonic() - start
        return _contents(self.folder / "whole")

    def moment(self, number: int, of: int, seconds: float) -> float:
        """A random moment in that part of the time of an undisturbed study."""
        return (number + Random(f"{self.seed} {number}").random()) / of * seconds  # noqa: S311

    def killed(self, number: int, of: int) -> Faults:
        """Kill a study at a random moment, then resume it; one that ended before is no trial."""
        whole, output = self.whole, self.folder / f"killed-{number}"
        moment = self.moment(number, of, self.copied_seconds)
        while True:
            study = begun_copy(self._words(output), os.devnull, os.devnull)
            study.join(moment)
            study.kill()
            study.join()
            if study.exitcode:
                break
            shutil.rmtree(output)
            moment *= 0.9
        return _half_written(output, whole) + self._resumed(output)

    def stopped(self, how: signal.Signals, number: int, of: int) -> Faults:
        """Stop a study with two workers at a random moment, then resume it."""
        whole, output = self.whole, self.folder / f"{how.name}-{number}"
        study = begun(*STUDY, self.table, "-o", output)
        try:
            study.wait(self.moment(number, of, self.seconds))
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
        faults += _half_written(output, whole)
        if status:
            return faults + self._resumed(output)
        return faults + ([] if _contents(output) == whole else ["other files"])

    def _words(self, output: Path) -> list[str]:
        return [*STUDY, str(self.table), "-o", str(output)]

    def _resumed(self, output: Path) -> Faults:
        if faults := tried(*self._words(output), "--resume", expected={0}, processor_s=60):
            return [f"is not resumed: {faults}"]
        is_same = _contents(output) == _contents(self.folder / "whole")
        return [] if is_same else ["the resumed study has other files"]

    def with_damaged_progress(self, number: int) -> Faults:
        """Kill a study late, damage what it kept of its units, and resume it."""
        output = self.folder / f"progress-{number}"
        whole = self.whole
        study = begun_copy(self._words(output), os.devnull, os.devnull)
        kept = output / "progress.jsonl"
        while study.exitcode is None:
            if kept.exists() and kept.read_bytes().count(b"\n") > 2 + number % 4:
                study.kill()
            study.join(0.01)
        if kept.exists():
            random = Random(f"{self.seed} progress {number}")  # noqa: S311
            kept.write_bytes(damaged(kept.read_bytes(), random))
        faults = tried(*self._words(output), "--resume", processor_s=60)
        is_refused = not (output / "study.json").exists()
        return faults if is_refused or _contents(output) == whole else [*faults, "other files"]

    def two_writers(self, number: int) -> Faults:
        """Begin the same study twice at once in one folder."""
        output = self.folder / f"two-{number}"
        whole = self.whole
        both = [begun(*STUDY, self.table, "-o", output) for _ in range(2)]
        answers = [ended(study) for study in both]
        faults = [fault for answer in answers for fault in in_one_line(*answer)]
        if sorted(status for status, _ in answers) != [0, 2]:
            faults.append(f"exit statuses {[status for status, _ in answers]}")
        return faults + ([] if _contents(output) == whole else ["other files"])

    def on_disk(self, disk: Path, options: str) -> Faults:
        """Run the study on a small or a read-only disk, and if refused there then elsewhere."""
        whole = self.whole
        with mounted(disk, options):
            status, said = ended(begun(*STUDY, self.table, "-o", disk / "study"))
            faults = in_one_line(status, said)
            if status == 0:
                faults.append("nothing was refused")
            faults += _half_written(disk / "study", whole)
        return faults

    def on_dask(self, kill: str) -> Faults:
        """Run the study on a Dask cluster of which a part is killed on the way."""
        output = self.folder / f"dask-{kill}"
        whole = self.whole
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
        return faults + ([] if _contents(output) == whole else ["other files"])


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
def cluster(
    workers: Sequence[str] = ("worker", "other worker"),
) -> Iterator[tuple[str, dict[str, subprocess.Popen[bytes]]]]:
    """A scheduler and workers of these names, each a process: the address, and the processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    quiet = subprocess.DEVNULL
    host = ("--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard")
    worker = ("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", address)
    with ExitStack() as stack:
        parts: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("scheduler", *workers):
            module, *words = ("dask_scheduler", *host) if name == "scheduler" else worker
            command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
            parts[name] = subprocess.Popen(command, stdout=quiet, stderr=quiet)
            stack.callback(parts[name].wait)
            stack.callback(parts[name].kill)
        from distributed import Client

        with Client(address, timeout=120, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(len(workers), timeout=120)
        yield address, parts
