"""Counters by the vendor's profiler, run as a program over one launch of each kernel.

By ncu it is the second launch, with caches as warm as where times are taken.

All CUs, clocks as they are: the configuration at which a user's own program is profiled.
"""

import csv
import os
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mlscale.collect.plan import Plan
from mlscale.collect.recording import Counters
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.errors import DataWarning, InputError
from mlscale.readers.given import Given
from mlscale.readers.reading import read_table

_HERE = Path(__file__).parent
# Kernels in one run of ncu, which takes seconds to start; how long a run may take.
_LOT = 15
_START_S, _KERNEL_S = 60, 30


def metrics(capability: int) -> tuple[str, ...]:
    """What Nsight Compute counts on a GPU of that capability, as in docs/howto/profile.md."""
    names = tuple((_HERE / "ncu_metrics.txt").read_text(encoding="utf-8").split())
    if capability < 75:  # no uniform pipe
        names = tuple(name for name in names if "pipe_uniform" not in name)
    if capability >= 120:
        names = tuple(name.replace("dram__bytes_", "dram__bytes_op_") for name in names)
    return names


def commands(plan: Plan, kernels: Sequence[str], folder: Path) -> list[list[str]]:
    """The profiler's command lines, one for each pass; what they write goes to the folder."""
    device = plan.device
    worker = [sys.executable, "-m", "mlscale.collect.measuring"]
    launch = [*worker, device.backend, plan.suite, *kernels]
    if device.profiler == "ncu":
        output = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        # Of the two launches the second, which `measuring.main` lets it see, with warm caches.
        output += ["--profile-from-start", "off", "--cache-control", "none"]
        output += ["--log-file", str(folder / "ncu.csv")]
        counted = ["--metrics", ",".join(metrics(device.capability))]
        counted += ["--kernel-name", f"regex:^({'|'.join(kernels)})$"]
        return [["ncu", *output, *counted, *launch]]
    passes = (_HERE / "rocprof_metrics.txt").read_text(encoding="utf-8").splitlines()
    what = [["--kernel-trace"], *(["--pmc", *line.split()] for line in passes)]
    into = [["--output-format", "csv", "-d", str(folder / f"pass{n}")] for n in range(len(what))]
    return [["rocprofv3", *given, *to, "--", *launch] for given, to in zip(what, into, strict=True)]


def collect_counters(
    plan: Plan, base: Mapping[str, float], folder: Path
) -> tuple[Counters, list[str]]:
    """The counters by kernel, and what is missing.

    base: the configuration that they are of. Kernels are profiled in lots, and those that a lot
    did not count again by themselves. Where the first of those fails too, no other is tried.
    """
    tool, kernels = plan.device.profiler, [entry.name for entry in plan.entries]
    if shutil.which(tool) is None:
        hand = "; ".join(map(shlex.join, commands(plan, kernels, folder)))
        return {}, [f"no counters: {tool} is not on the path; --resume when it is; by hand: {hand}"]
    shutil.rmtree(folder, ignore_errors=True)
    counters: Counters = {}
    missing = []
    size = _LOT if tool == "ncu" else 1  # kernel_tuner never frees what it allocates by HIP
    for lot in (kernels[n : n + size] for n in range(0, len(kernels), size)):
        if size > 1:
            with suppress(InputError):
                _profile(plan, lot, folder)
        for kernel in lot:
            try:
                if not (folder / kernel).exists():
                    _profile(plan, [kernel], folder)
                counters[kernel] = _read(plan, kernel, base, folder / kernel)
            except InputError as error:
                if not counters:
                    return {}, [f"no counters: {error}"]
                missing.append(f"{kernel} has no counters: {error}")
    return counters, missing


def _profile(plan: Plan, kernels: Sequence[str], folder: Path) -> None:
    """Run the profiler over kernels, and leave the files of each in a folder of its name.

    Raises InputError where the profiler fails, or takes too long.
    """
    tool, into = plan.device.profiler, folder / kernels[0]
    into.mkdir(parents=True)
    limit_s = _START_S + _KERNEL_S * len(kernels)
    for line in commands(plan, kernels, into):
        status, said = _run(line, limit_s)
        if status != 0:
            said += "".join(path.read_text(errors="replace") for path in into.glob("*.csv"))
            shutil.rmtree(into)
            why = f"ended with {status}" if status else f"was ended after {limit_s:g} s"
            last = "".join(said.strip().splitlines()[-1:])[:300]
            raise InputError(f"{tool} {why}: {last or 'it said nothing'}")
    if len(kernels) > 1:
        _part(into / "ncu.csv", kernels, folder)


def _run(line: Sequence[str], limit_s: float) -> tuple[int | None, str]:
    """The exit status of a program, None if it took too long, and what it said.

    It is ended with all that it started: the kernel's own process would go on alone.
    """
    with subprocess.Popen(  # noqa: S603
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit_s)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return None, process.communicate()[0]
        return process.returncode, said


def _part(export: Path, kernels: Sequence[str], folder: Path) -> None:
    """Give each kernel that ncu counted its rows in a file of its own: clocks differ by launch."""
    lines = export.read_text(errors="replace").splitlines() if export.exists() else []
    # Lines of ncu's own begin with ==; a header and units come first.
    table = [*csv.reader(line for line in lines if line[:1] == '"')]
    shutil.rmtree(export.parent)
    for kernel in kernels:
        if rows := [row for row in table[2:] if kernel in row]:
            (folder / kernel).mkdir()
            with (folder / kernel / "ncu.csv").open("w", newline="") as file:
                csv.writer(file, quoting=csv.QUOTE_ALL).writerows([*table[:2], *rows])


def _read(plan: Plan, kernel: str, base: Mapping[str, float], folder: Path) -> dict[str, float]:
    """The counters of one kernel. Raises InputError where the importer refuses."""
    device, tool = plan.device.key, plan.device.profiler
    if tool == "ncu":  # whose file says the clocks of the launch
        base = {"cu_count": base["cu_count"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        table = read_table(sorted(folder.rglob("*.csv")), Given(device, base)).table
    if kernel not in table.text["kernel"]:
        raise InputError(f"{tool} did not count it, but {', '.join(table.text['kernel'])}")
    row = table.text["kernel"].index(kernel)  # ROCm's runtime copies by kernels of its own
    return {
        name: float(column[row])
        for name, column in table.numbers.items()
        if name not in NOT_COUNTERS and not name.startswith("device__")  # facts of the GPU
    }
