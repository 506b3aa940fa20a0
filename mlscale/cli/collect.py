"""mlscale collect: a training set measured on the GPU at hand, or on a processor by OpenCL."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from mlscale.cli import options
from mlscale.cli.text import columns, number
from mlscale.errors import InputError, UsageError, warn
from mlscale.files import write_text

if TYPE_CHECKING:
    from mlscale.collect.device import DeviceInfo
    from mlscale.collect.plan import Plan
    from mlscale.collect.recording import Row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="folder for measurements.csv and collect.json"
    )
    parser.add_argument(
        "--backend",
        choices=("cuda", "hip", "opencl"),
        help="NVIDIA, AMD, or OpenCL, which runs on a processor too (default: the first that finds "
        "a device)",
    )
    parser.add_argument(
        "--suite",
        choices=("full", "small"),
        default="full",
        help="sizes for a GPU, or small ones for a processor (default: %(default)s)",
    )
    parser.add_argument(
        "--kernels",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="NAME,…",
        help="kernels or applications of the suite, * for any characters (default: all)",
    )
    parser.add_argument(
        "--device",
        type=options.device_key,
        metavar="DEVICE",
        help="device file of this GPU, where the device table lacks it; the table carries its "
        "facts (see 'devices new')",
    )
    parser.add_argument(
        "--cu-counts",
        type=_numbers,
        metavar="N,N,…",
        help="compute units (SMs) to run on; the table has what the driver grants (default: up to "
        "eight counts, evenly spaced, all CUs among them)",
    )
    for clock in ("engine", "memory"):
        parser.add_argument(
            f"--{clock}",
            type=_numbers,
            default=(),
            metavar="MHZ,MHZ,…",
            help=f"{clock} clocks to hold (root); they are reset at the end, also after a crash "
            "(default: left alone)",
        )
    parser.add_argument(
        "--power-limits",
        type=_numbers,
        default=(),
        metavar="W,W,…",
        help="board power limits to set (root), a table for each; reset likewise",
    )
    parser.add_argument(
        "--repeat",
        type=options.whole_number,
        default=1,
        metavar="N",
        help="samples of each kernel and configuration (default: %(default)s)",
    )
    parser.add_argument(
        "--power-seconds",
        type=options.number_from_0,
        default=2.0,
        metavar="S",
        help="seconds over which power is averaged; 0 for time alone (default: %(default)g)",
    )
    parser.add_argument("--resume", action="store_true", help="go on with what DIR holds")
    task = parser.add_mutually_exclusive_group()
    task.add_argument(
        "--micro",
        action="store_true",
        help="measure latencies and throughputs in place of the suite: gpu.json for 'literature "
        "--gpu', and the models of the survey beside Volkov's kernel",
    )
    task.add_argument(
        "--dry-run",
        action="store_true",
        help="print the plan, its kernels and how long it takes, and end",
    )


def run(arguments: argparse.Namespace) -> None:
    """Collect. Raises InputError."""
    from mlscale.collect.device import find_device

    if arguments.micro:
        unused = ("suite", "kernels", "cu_counts", "power_limits", "power_seconds")
        options.refuse_unused(arguments, unused, "with --micro")
    if not arguments.output and not arguments.dry_run:
        raise UsageError("name a folder for the measurements with -o DIR")
    info = find_device(arguments.backend)
    plan = _plan(arguments, info)
    print(_plan_text(plan, info) if arguments.dry_run else _collect(arguments, plan, info))


def _plan(arguments: argparse.Namespace, info: DeviceInfo) -> Plan:
    """The plan, with the CU counts and clocks that the device offers. Raises InputError."""
    from mlscale.collect.clocks import require_settable
    from mlscale.collect.micro_kernels import micro_entries
    from mlscale.collect.plan import Plan, cu_counts
    from mlscale.collect.suite import select

    settings = {
        "engine_mhz": arguments.engine,
        "memory_mhz": arguments.memory,
        "cap_w": arguments.power_limits,
    }
    if any(settings.values()):
        require_settable(info)
    if arguments.micro:
        return Plan("micro", micro_entries(info), (info.cu_count,), settings, arguments.repeat)
    entries = select(arguments.suite, arguments.kernels, info.backend)
    if not entries:
        raise InputError("none of these kernels runs on this backend; 'tensor' needs CUDA or HIP")
    counts = cu_counts(arguments.cu_counts, info)
    power_s = arguments.power_seconds if info.sensors else 0.0
    return Plan(arguments.suite, entries, counts, settings, arguments.repeat, power_s)


def _plan_text(plan: Plan, info: DeviceInfo) -> str:
    """What would be measured, and an estimate of its duration."""
    minutes = max(1, round(plan.seconds / 60))
    duration = f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
    settings = {
        name: ", ".join(map(str, values)) or "as they are" for name, values in plan.settings.items()
    }
    lines = {
        "device": f"{info.name} by {info.backend}, {info.cu_count} CUs",
        "kernels": f"{len(plan.entries)}: {', '.join(entry.name for entry in plan.entries)}",
        "CUs": f"{', '.join(map(str, plan.cu_counts))} ({info.cu_axis or 'all at once'})",
        **settings,
        "power": f"{plan.power_s:g} s a sample" if plan.power_s else "not measured",
        "samples": f"{plan.samples}, about {duration} (an estimate)",
    }
    return "\n".join(f"{name + ':':<12}{what}" for name, what in lines.items())


def _collect(arguments: argparse.Namespace, plan: Plan, info: DeviceInfo) -> str:
    """Measure what is not there yet, write, and return what there is to say of it."""
    from tqdm import tqdm

    from mlscale.collect import clocks, recording, running

    with options.output_folder(arguments.output) as folder:
        record = recording.begin(folder, info, plan, arguments.resume)
        if record["finished"] and not record["failed"]:
            return f"{folder}: was finished at {record['finished']}; nothing is left to measure"
        for ending in (signal.SIGTERM, signal.SIGHUP):  # the board is reset, as after Ctrl-C
            signal.signal(ending, signal.default_int_handler)
        try:
            with (
                clocks.given_back(info, plan.sets_board),
                tqdm(total=plan.samples, unit="sample", disable=None, leave=False) as bar,
            ):
                failed = running.carry_out(plan, info, folder, bar.update)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; go on with --resume -o {folder}") from None
        rows = recording.rows_of(folder, plan, info)
        rows = [row for row in rows if row["kernel"] not in failed]
        for line in recording.notes(rows, plan, info, failed):
            warn(line)
        if not rows:
            raise InputError(f"{folder}: no kernel could be measured")
        if plan.suite == "micro":
            text = _write_micro(folder, rows, info)
        else:
            text = _write(folder, rows, plan, info)
        recording.finish(folder, record, failed)
    return text


def _write(folder: Path, rows: list[Row], plan: Plan, info: DeviceInfo) -> str:
    """Write the tables with their counters; the summary."""
    import numpy as np

    from mlscale.collect import counters, recording
    from mlscale.data.devices import device_keys
    from mlscale.data.grid import AXES

    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    device = recording.device_name(info)
    if info.backend in counters.TOOLS:
        base = {axis: max(row[axis] for row in rows) for axis in AXES}
        of_kernels, missing = counters.collect_counters(
            info, plan.suite, kernels, device, base, folder / "counters"
        )
        for line in missing:
            warn(line)
        recording.add_counters(rows, of_kernels)
    paths = recording.write_tables(folder, rows, plan, info)
    spread = float(np.median([row["time_spread_percent"] for row in rows]))
    power = "without" if np.isnan([row["power_w"] for row in rows]).all() else "with"
    if device not in device_keys() and info.backend != "opencl":
        warn(
            f"'{device}' is not in the device table, so 'bottleneck' does not apply; "
            "docs/collecting.md says how to describe a GPU"
        )
    return (
        f"{', '.join(map(str, paths))}: {len(rows)} samples of {len(kernels)} kernels on {device}, "
        f"{plan.configurations} configurations x {plan.repeat}, {power} power; median spread of "
        f"the times {number(spread, 2)} %"
    )


def _write_micro(folder: Path, rows: list[Row], info: DeviceInfo) -> str:
    """Fit the parameters and write gpu.json; what there is to say of it."""
    from mlscale.collect.micro_fit import gpu_document
    from mlscale.collect.recording import device_name

    document = gpu_document(rows, info, device_name(info))
    path = folder / "gpu.json"
    write_text(path, json.dumps(document, indent=1) + "\n")
    numbers = [*document["settings"][-1].items(), *document["compute_unit"].items()]
    note = (document["wang_chu"] or {"note": "the device table lacks it: no entry for wang-chu"})[
        "note"
    ]
    table = columns(["quantity", ""], [[name, number(value)] for name, value in numbers])
    return f"{path}: {document['device']}; {note}\n\n{table}"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({options.whole_number(part) for part in text.split(",")}))
