"""Counters by the vendor's profiler, run as a program over one launch of each kernel.

All CUs, clocks as they are: the configuration at which a user's own program is profiled.
"""

import csv
import io
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from mlscale.collect.device import DeviceInfo
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.profilers import import_exports

TOOLS = {"cuda": "ncu", "hip": "rocprofv3"}
_HERE = Path(__file__).parent
_NO_RIGHT = "ERR_NVGPUCTRPERM"
_HOW_TO_ALLOW = (
    "no right to read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or let the driver allow "
    "it (NVreg_RestrictProfilingToAdminUsers=0)"
)
Counters = dict[str, dict[str, float]]


def metrics(capability: int) -> tuple[str, ...]:
    """What Nsight Compute is asked for, as in docs/profiling.md, of a GPU of that capability."""
    names = tuple((_HERE / "ncu_metrics.txt").read_text(encoding="utf-8").split())
    if capability < 75:  # no uniform pipe
        names = tuple(name for name in names if "pipe_uniform" not in name)
    if capability >= 120:
        names = tuple(name.replace("dram__bytes_", "dram__bytes_op_") for name in names)
    return names


def commands(info: DeviceInfo, job: Path, kernels: Sequence[str], folder: Path) -> list[list[str]]:
    """The profiler's command lines, one for each pass; what they write goes to the folder."""
    launch = [sys.executable, "-m", "mlscale.collect.worker", str(job), "--launch"]
    if info.backend == "cuda":
        names = metrics(info.capability)
        return [
            [
                "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
                "--log-file", str(folder / "ncu.csv"), "--metrics", ",".join(names),
                "--kernel-name", f"regex:^({'|'.join(kernels)})$", *launch,
            ]
        ]  # fmt: skip
    passes = (_HERE / "rocprof_metrics.txt").read_text(encoding="utf-8").splitlines()
    what = [["--kernel-trace"], *(["--pmc", *line.split()] for line in passes)]
    as_csv = ["--output-format", "csv", "-d"]
    return [
        ["rocprofv3", *given, *as_csv, str(folder / f"pass{number}"), "--", *launch]
        for number, given in enumerate(what)
    ]


def collect_counters(
    info: DeviceInfo, device: str, job: Path, kernels: Sequence[str], clocks: dict[str, float]
) -> tuple[Counters, list[str]]:
    """The counters by kernel, and why not all are there. clocks: of the table's rows [MHz]."""
    tool = TOOLS.get(info.backend)
    if tool is None:
        return {}, []
    folder = job.parent / "counters"
    lines = commands(info, job, kernels, folder)
    by_hand = "; ".join(map(shlex.join, lines))
    if shutil.which(tool) is None:
        return {}, [f"there are no counters: {tool} is not on the path; by hand: {by_hand}"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for line in lines:
        done = subprocess.run(  # noqa: S603
            line, capture_output=True, text=True, errors="replace", check=False
        )
        written = "".join(p.read_text(errors="replace") for p in folder.glob("ncu.csv"))
        if _NO_RIGHT in done.stdout + done.stderr + written:
            return {}, [f"there are no counters: {_HOW_TO_ALLOW}"]
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1][:200]
            return {}, [f"there are no counters: {tool} ended with {done.returncode}: {last}"]
    base = {"cu_count": float(info.cu_count)}
    if tool == "ncu":
        groups = [[path] for path in _by_kernel(folder / "ncu.csv")]
    else:
        groups, base = [sorted(folder.rglob("*.csv"))], base | clocks
    found: Counters = {}
    missing = []
    for paths in groups:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                found |= _counters(import_exports(paths, tool, device=device, base=base).table)
        except InputError as error:
            missing.append(str(error))
    lacking = [kernel for kernel in kernels if kernel not in found]
    if lacking and not missing:
        missing = [f"{tool} wrote nothing of {', '.join(lacking[:3])}"]
    return found, [f"counters are missing: {why}" for why in missing]


def _by_kernel(path: Path) -> list[Path]:
    """Nsight Compute's raw page parted: a file of each kernel, since unlocked clocks differ."""
    header: list[str] | None = None
    units: list[str] | None = None
    rows: dict[str, list[list[str]]] = {}
    for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8", errors="replace"))):
        if header is None:
            header = row if "Kernel Name" in row else None
        elif len(row) == len(header) and units is None:
            units = row
        elif len(row) == len(header):
            rows.setdefault(row[header.index("Kernel Name")], []).append(row)
    paths = []
    for kernel, of_kernel in rows.items():
        paths.append(path.with_name(f"{kernel}.csv"))
        with paths[-1].open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows([header or [], units or [], *of_kernel])
    return paths


def _counters(table: Table) -> Counters:
    names = [name for name in table.numbers if name not in NOT_COUNTERS]
    return {
        kernel: {name: float(table.numbers[name][row]) for name in names}
        for row, kernel in enumerate(table.text["kernel"])
    }
