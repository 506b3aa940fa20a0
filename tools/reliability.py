"""Attack mlscale as bad luck and bad will do, and count what it does not bear.

    python tools/reliability.py [--trials N] [--mutations N] [--seed S] [--only WORD]

Prints a line for each attack, trials and faults, then what the faults are; docs/reliability.md
shows what it printed. As root it makes small and read-only file systems; else these are left out.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import reliability_mutations
from reliability_processes import Faults, Studies, begun, counted, ended, in_one_line

sys.path.insert(0, str(reliability_mutations.TESTS))
from synthetic import kernels as made

from mlscale import ConfigGrid
from mlscale.data.public import path as shipped

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
LARGE = ConfigGrid(tuple(range(1, 65)), tuple(range(500, 540)), tuple(range(400, 440)))
SET = "gtx980-low"

Outcome = tuple[str, int, Faults]


def main() -> int:
    """Run the attacks; the exit status is 1 where anything was not borne."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10, help="of each attack on processes")
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="attacks in whose name this word stands")
    options = parser.parse_args()
    outcomes = []
    print(f"{'attack':<48}{'trials':>8}{'faults':>8}")
    with TemporaryDirectory() as folder:
        for name, trials, faults in _attacks(Path(folder), options):
            outcomes.append((name, faults))
            print(f"{name:<48}{trials:>8}{len(faults):>8}", flush=True)
    for name, faults in outcomes:
        for fault in faults:
            print(f"{name}: {fault}")
    return int(any(faults for _, faults in outcomes))


def _attacks(folder: Path, options: argparse.Namespace) -> Iterator[Outcome]:
    """Yield each attack's name, how often it was tried, and its faults."""
    table = folder / "table.csv"
    made.measurements(per_group=2, grid=GRID).write(table)
    many = range(options.trials)
    files = {
        "output onto a link, a stream, its own input": [partial(_places, folder, table)],
        "closed and broken streams": [partial(_streams, table)],
        "a grid of 102 400 configurations": [partial(_large_grid, folder)],
        "a fetch killed at a random moment": [partial(_fetch, folder, n / 10) for n in many],
    }
    for name, trials in files.items():
        if options.only in name:
            yield counted(name, trials)
    names = [
        "a study killed (SIGKILL), then resumed", "a study interrupted (Ctrl-C), then resumed",
        "two studies in one folder at once", "a Dask worker killed", "the Dask scheduler killed",
        "a full disk", "a read-only disk",
    ]  # fmt: skip
    if any(options.only in name for name in names):
        studies = Studies(folder, table, options.seed)
        attacks: list[list[Callable[[], Faults]]] = [
            [partial(studies.stopped, signal.SIGKILL, n) for n in many],
            [partial(studies.stopped, signal.SIGINT, n) for n in many],
            [partial(studies.two_writers, n) for n in range(3)],
            [partial(studies.on_dask, "worker")],
            [partial(studies.on_dask, "scheduler")],
        ]
        if os.geteuid() == 0:
            sizes = [f"size={size}k" for size in (4, 16, 64, 128)]
            attacks += [[partial(studies.on_disk, folder / "disk", size) for size in sizes]]
            attacks += [[partial(studies.on_disk, folder / "disk", "ro")]]
        for name, trials in zip(names, attacks, strict=False):
            if options.only in name:
                yield counted(name, trials)
    if options.only in "a damaged file" and options.mutations:
        for name, trials, faults in reliability_mutations.attack(options.mutations, options.seed):
            yield f"a damaged file: {name}", trials, faults


def _places(folder: Path, table: Path) -> Faults:
    """Write to what is no plain file, and onto what is read."""
    faults = []
    target, link, log = folder / "target", folder / "link", folder / "log"
    target.write_text("old")
    link.symlink_to(target)
    words = ("import", "auto", shipped("h100-by-hand.csv"))
    status, said = ended(begun(*words, "-o", link))
    if status or not link.is_symlink() or target.read_text() == "old":
        faults.append(f"a link is not followed: {said!a}")
    with log.open("w") as file:
        file.write("before\n")
        file.flush()
        status, said = ended(begun(*words, "-o", "/dev/stdout", stdout=file))
    if status or not log.read_text().startswith("before\n"):
        faults.append("-o /dev/stdout replaces what was there")
    before = table.read_bytes()
    for words in (("train", table, "--base", "mid"), ("predict", table), ("report", table)):
        status, said = ended(begun(*words, "-o", table))
        if status != 2 or table.read_bytes() != before:
            faults.append(f"{words[0]} replaces what it reads")
        faults += in_one_line(status, said)
    return faults


def _streams(table: Path) -> Faults:
    """Leave the command without its streams."""
    faults = []
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&- <&-", ">/dev/full", "| head -1", "2>&1 | true"):
        for words in ("devices list", f"predict {table}", "advise --help", "no-command"):
            shell = f"{sys.executable} -m mlscale {words} {closed}; exit ${{PIPESTATUS[0]}}"
            done = subprocess.run(
                ["bash", "-c", shell], capture_output=True, text=True, check=False
            )
            is_quiet = all(line.startswith("mlscale: ") for line in done.stderr.splitlines())
            if done.returncode not in (0, 2) or not is_quiet:
                faults.append(f"{words} {closed}: {done.returncode} {done.stderr[-200:]!a}")
    return faults


def _large_grid(folder: Path) -> Faults:
    """Train on it, predict, and ask for a report, which has no place for it."""
    table, model = folder / "large.parquet", folder / "large.mlscale"
    made.measurements(per_group=1, grid=LARGE).write(table)
    train = ("train", table, "--base", "mid", "--predictor", "nearest", "-o", model)
    faults = []
    for words, expected in (
        (train, 0),
        (("predict", table, "--model", model, "-o", folder / "large-out.parquet"), 0),
        (("report", table, "--model", model, "-o", folder / "large.html"), 2),
    ):
        status, said = ended(begun(*words))
        if status != expected:
            faults.append(f"{words[0]}: exit status {status}: {said[-200:]!a}")
    return faults


def _fetch(folder: Path, seconds: float) -> Faults:
    """Kill a fetch; nothing but the file, its part and its lock may be left, and none half."""
    cache, data = folder / f"cache-{seconds}", os.environ.get("MLSCALE_DATA")
    mirror = ("--mirror", data) if data else ()
    environment = {k: v for k, v in os.environ.items() if k != "MLSCALE_DATA"}
    environment["MLSCALE_CACHE"] = str(cache)
    fetch = begun("datasets", "fetch", SET, *mirror, env=environment)
    time.sleep(seconds)
    fetch.kill()
    ended(fetch)
    names = [path.name for path in cache.iterdir()] if cache.exists() else []
    faults = [f"leaves {name}" for name in names if name.startswith("tmp")]
    status, said = ended(begun("datasets", "fetch", SET, *mirror, env=environment))
    return faults + in_one_line(status, said)


if __name__ == "__main__":
    sys.exit(main())
