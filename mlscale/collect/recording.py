"""What is written: the tidy table, and a record of what it was measured on and how.

Counters come from the vendor's profiler, run as a program over one launch of each kernel on all
CUs, with clocks as they are: as a user's own program is profiled. By ncu it is the second launch,
with caches as warm as where times are taken.
"""

import csv
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlscale import __version__
from mlscale.collect.plan import Plan
from mlscale.collect.running import cache_file
from mlscale.data.devices import device_keys, facts_to_carry
from mlscale.data.grid import AXES
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.data.table import IDENTITY, Table
from mlscale.data.table_files import table_from_frame, write_table
from mlscale.errors import DataWarning, InputError, warn
from mlscale.files import parse_json_object, read_bytes, write_text
from mlscale.parameters import command, parameter
from mlscale.readers.given import Given
from mlscale.readers.kernel_tuner import read_document, readings
from mlscale.readers.reading import read_table

_CLOCK_TOLERANCE, _MOVED = 0.02, 0.05
_CLOCKS = AXES[1:]
Counters = dict[str, dict[str, float]]
_HERE = Path(__file__).parent
# Kernels in one run of ncu, which takes seconds to start; how long a run may take.
_LOT = 15
_START_S, _KERNEL_S = 60, 30


def begin(folder: Path, plan: Plan, resume: bool) -> dict[str, Any]:
    """The record of a folder: a new one, written, or that of the same plan taken up again.

    Raises InputError where the folder holds something else.
    """
    path = folder / "collect.json"
    asked = {"version": __version__, **plan.record()}
    if not path.is_file():
        return _write(path, {"started": None, "finished": None, **asked}, "started")
    there = parse_json_object(read_bytes(path), str(path))
    if differing := [name for name, value in asked.items() if there.get(name) != value]:
        raise InputError(
            f"{folder}: holds a collection with another {', '.join(differing)} (collect.json says "
            "which); ask for the same again, or name another folder"
        )
    if not resume:
        what = "a finished" if there["finished"] else "an unfinished"
        raise InputError(
            f"{folder}: holds {what} collection; continue with {parameter('resume')}, or name "
            "another folder"
        )
    return there


def finish(folder: Path, record: dict[str, Any], **lacking: Any) -> None:
    """Record the end, and what is missing, by name."""
    _write(folder / "collect.json", {**record, **lacking}, "finished")


def _write(path: Path, record: dict[str, Any], what: str) -> dict[str, Any]:
    record[what] = datetime.now(UTC).isoformat(timespec="seconds")
    write_text(path, json.dumps(record, indent=1) + "\n")
    return record


def samples(folder: Path, plan: Plan) -> pd.DataFrame:
    """Every sample in the folder's caches, a row each, with the names of the table and cap_w.

    A kernel without power is left out where others have it: a table has it of all or of none.
    Raises InputError where there is no sample.
    """
    frame = pd.DataFrame(_rows(folder, plan))
    if frame.empty:
        raise InputError(f"{folder}: no kernel could be measured")
    silent = frame["kernel"][frame["power_w"].isna()].unique()
    if 0 < len(silent) < frame["kernel"].nunique():
        names = ", ".join(silent)
        warn("T09", f"left out, because the sensor ({plan.device.sensors}) gave no power: {names}")
        frame = frame[~frame["kernel"].isin(silent)].reset_index(drop=True)
    for axis in _CLOCKS:
        observed = frame[f"{axis}_observed"]
        if plan.settings[axis]:
            frame["throttled"] |= abs(observed / frame[axis] - 1) > _CLOCK_TOLERANCE
        elif observed.notna().any():  # a clock that was left alone is no axis, but one number
            frame[axis] = round(float(observed.median()))
        else:
            frame[axis] = getattr(plan.device, axis) or 1.0
    return frame


def _rows(folder: Path, plan: Plan) -> Iterator[dict[str, Any]]:
    for entry, cu_count in product(plan.entries, plan.cu_counts):
        path = cache_file(folder, entry.name, cu_count)
        for sample in read_document(path)["cache"].values() if path.exists() else ():
            if "times" in sample:
                low, median, high = np.percentile(sample["times"], [25, 50, 75])
                # Of micro-benchmarks the least: what else runs on the device only adds to a time.
                time_ms = min(sample["times"]) if plan.suite == "micro" else median
                yield {
                    "device": plan.device.key,
                    "application": entry.application,
                    "kernel": entry.name,
                    "cap_w": 0.0,
                    **{name: float(sample[name]) for name in plan.settings if name in sample},
                    **readings(sample),
                    "cu_count": float(sample.get("cu_count_granted", cu_count)),
                    "time_ms": float(f"{time_ms:.7g}"),
                    "time_spread_percent": round(float(100 * (high - low) / median), 4),
                    "throttled": False,
                }


def base(frame: pd.DataFrame) -> dict[str, float]:
    """The configuration of the counters: all CUs, the highest clocks."""
    return {axis: float(frame[axis].max()) for axis in AXES}


def with_counters(frame: pd.DataFrame, counters: Counters) -> pd.DataFrame:
    """The samples with the counters by kernel, at the base."""
    columns = pd.DataFrame(counters).T
    joined = frame.join(columns, on="kernel")
    elsewhere = (frame[[*AXES]] != base(frame)).any(axis=1)
    joined.loc[elsewhere, columns.columns] = np.nan
    return joined


def write_tables(folder: Path, frame: pd.DataFrame, plan: Plan) -> list[Path]:
    """Write measurements.csv, or one table for each power limit. Raises InputError."""
    paths = []
    for cap_w in sorted(map(float, frame["cap_w"].unique())):
        table = to_table(frame[frame["cap_w"] == cap_w].drop(columns="cap_w"), plan)
        if cap_w:
            table.metadata["cap_w"] = cap_w
        paths.append(folder / (f"measurements-{cap_w:g}w.csv" if cap_w else "measurements.csv"))
        write_table(table, paths[-1])
    return paths


def to_table(frame: pd.DataFrame, plan: Plan) -> Table:
    """The tidy table of samples at one power limit; columns that are empty are left out."""
    names = dict.fromkeys((*IDENTITY, *AXES, "time_ms", "power_w", *frame))
    table = table_from_frame(frame[[*names]].dropna(axis=1, how="all"))
    device, metadata = plan.device, table.metadata
    unknown = [a for a in _CLOCKS if not plan.settings[a] and f"{a}_observed" not in table.numbers]
    source = f"mlscale collect on {device.name}, {device.backend}"
    metadata.update(origin="measured", source=source, unknown_clocks=unknown)
    metadata.update(facts_to_carry(device.key))
    if "power_w" in table.numbers:
        metadata.update(power_kind="board", power_sensor=device.sensors)
        metadata["power_window_s"] = plan.power_s
    if {*table.numbers} - {*NOT_COUNTERS}:
        metadata["counter_tool"] = device.profiler
        if device.profiler == "ncu":
            metadata["counter_caches"] = "warm"
    return table


def _moved_clocks(frame: pd.DataFrame) -> list[str]:
    """The kernels whose observed engine clock differs by more than 5 % over their CU counts."""
    observed = frame.groupby("kernel", sort=False)["engine_mhz_observed"]
    ratios = observed.max() / observed.min()
    return [*ratios.index[ratios > 1 + _MOVED]]


def warn_of_samples(frame: pd.DataFrame, plan: Plan) -> None:
    """Warn of what a reader of the table should know."""
    device, throttled = plan.device, frame["kernel"][frame["throttled"]]
    if len(throttled):
        warn(
            "L04",
            f"{len(throttled)} of {len(frame)} samples ran more than "
            f"{100 * _CLOCK_TOLERANCE:.0f} % off the clocks that were set (column 'throttled'): "
            f"{', '.join(throttled.unique())}",
        )
    if not plan.settings["engine_mhz"] and len(moved := _moved_clocks(frame)):
        warn(
            "L04",
            "the engine clock differed between numbers of CUs, which distorts ratios over them "
            f"(column 'engine_mhz_observed'): {', '.join(moved)}",
        )
    if device.lacks_sensors:
        warn("P04", f"neither power nor clocks were observed: {device.lacks_sensors}")
    if plan.power_s and frame["power_w"].isna().any():
        warn("P04", f"no power: the sensor ({device.sensors}) gave none")
    if device.key not in device_keys() and device.backend != "opencl":
        warn(
            "G03",
            f"'{device.key}' is not in the device table, so 'bottleneck' does not apply; "
            f"'{command('devices show', 'help')}' says how to describe a GPU for "
            f"{parameter('device')}",
        )


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
        told = f"{parameter('resume')} when it is; by hand: {hand}"
        return {}, [f"no counters: {tool} is not on the path; {told}"]
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
            raise InputError(f"{tool} {why}: {last or 'no output'}")
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
    """Give each kernel that ncu counted its rows in a separate file: clocks differ by launch."""
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
