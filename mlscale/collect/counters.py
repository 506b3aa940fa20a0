"""Counters by the vendor's profiler, run as a program over one launch of each kernel.

All CUs, clocks as they are: the configuration at which a user's own program is profiled.
"""

import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlscale.collect.plan import Plan
from mlscale.collect.recording import Counters
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.errors import DataWarning, InputError
from mlscale.profilers import import_exports

_HERE = Path(__file__).parent


def metrics(capability: int) -> tuple[str, ...]:
    """What Nsight Compute is asked for, as in docs/profiling.md, of a GPU of that capability."""
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
    """The counters by kernel, and what is missing; each kernel is profiled by itself.

    base: the configuration that they are of. Where the first kernel's fail, no other is tried.
    """
    tool, kernels = plan.device.profiler, [entry.name for entry in plan.entries]
    if shutil.which(tool) is None:
        hand = "; ".join(map(shlex.join, commands(plan, kernels, folder)))
        return {}, [f"no counters: {tool} is not on the path; --resume when it is; by hand: {hand}"]
    shutil.rmtree(folder, ignore_errors=True)
    counters: Counters = {}
    missing = []
    for kernel in kernels:
        try:
            counters[kernel] = _of_kernel(plan, kernel, base, folder / kernel)
        except InputError as error:
            if not counters:
                return {}, [f"there are no counters: {error}"]
            missing.append(f"{kernel} has no counters: {error}")
    return counters, missing


def _of_kernel(
    plan: Plan, kernel: str, base: Mapping[str, float], folder: Path
) -> dict[str, float]:
    """The counters of one kernel. Raises InputError where the profiler or the importer refuses."""
    folder.mkdir(parents=True)
    device, tool = plan.device.key, plan.device.profiler
    for line in commands(plan, [kernel], folder):
        done = subprocess.run(  # noqa: S603
            line, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            logs = "".join(path.read_text(errors="replace") for path in folder.glob("*.csv"))
            last = (done.stdout + done.stderr + logs).strip().splitlines()[-1:]
            raise InputError(f"{tool} ended with {done.returncode}: {''.join(last)[:300]}")
    if tool == "ncu":  # whose file says the clocks of the launch
        base = {"cu_count": base["cu_count"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        table = import_exports(sorted(folder.rglob("*.csv")), tool, device=device, base=base).table
    if kernel not in table.text["kernel"]:
        raise InputError(f"{tool} did not count it, but {', '.join(table.text['kernel'])}")
    row = table.text["kernel"].index(kernel)  # ROCm's runtime copies by kernels of its own
    return {name: float(c[row]) for name, c in table.numbers.items() if name not in NOT_COUNTERS}
