"""mlscale collect: a training set measured on the GPU at hand, or on a processor by OpenCL."""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli import options
from mlscale.cli.text import columns, number
from mlscale.errors import InputError, UsageError, warn

if TYPE_CHECKING:
    from mlscale.collect.device import DeviceInfo
    from mlscale.collect.entries import Entry
    from mlscale.collect.plan import Plan


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
        type=_names,
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
        type=_counts,
        metavar="N,N,…|auto",
        help="compute units (SMs) to run on; the table has what the driver grants (default: "
        "auto, up to eight counts, all CUs among them)",
    )
    for clock in ("engine", "memory"):
        parser.add_argument(
            f"--{clock}",
            type=_numbers,
            default=(),
            metavar="MHZ,MHZ,…",
            help=f"{clock} clocks to hold, each the nearest one offered; needs --set-clocks",
        )
    parser.add_argument(
        "--power-limits",
        type=_numbers,
        default=(),
        metavar="W,W,…",
        help="board power limits to set, a table for each; needs --set-clocks",
    )
    parser.add_argument(
        "--set-clocks",
        action="store_true",
        help="allow clocks and power limits to be set (root); they are reset at the end, also "
        "after a crash. Without it none is touched, only observed",
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
        type=_seconds,
        default=2.0,
        metavar="S",
        help="seconds over which power is averaged; 0 for time alone (default: %(default)g)",
    )
    parser.add_argument(
        "--no-counters",
        action="store_true",
        help="do not run ncu or rocprofv3 (default: run it if it is on the path)",
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
        "--dry-run", action="store_true", help="print the plan and how long it takes, and end"
    )
    task.add_argument(
        "--list-kernels", action="store_true", help="print the kernels of the suite, and end"
    )


def run(arguments: argparse.Namespace) -> None:
    """Collect. Raises InputError."""
    from mlscale.collect.device import NoDeviceError, find_device
    from mlscale.collect.suite import select

    entries = select(arguments.suite, arguments.kernels)
    if arguments.list_kernels:
        lines = [[e.name, e.application, str(e.blocks), str(e.block)] for e in entries]
        print(columns(["kernel", "application", "blocks", "threads"], lines))
        return
    settings = arguments.engine or arguments.memory or arguments.power_limits
    if bool(settings) != arguments.set_clocks:
        raise UsageError(
            "--set-clocks goes with what is to be set, --engine, --memory or --power-limits, and "
            "they with it"
        )
    if arguments.micro:
        unused = ("suite", "kernels", "cu_counts", "power_limits", "power_seconds", "no_counters")
        options.refuse_unused(arguments, unused, "with --micro")
    if not arguments.output and not arguments.dry_run:
        raise UsageError("name a folder for the measurements with -o DIR")
    try:
        info = find_device(arguments.backend)
    except NoDeviceError as error:
        if not arguments.dry_run:
            raise
        warn(f"{error}; so the plan takes CU counts and clocks as they are asked for")
        print(_plan_text(_plan_without_device(arguments, entries), None))
        return
    plan = _plan(arguments, entries, info)
    if arguments.dry_run:
        print(_plan_text(plan, info))
        return
    print(_collect(arguments, plan, info))


def _plan(arguments: argparse.Namespace, entries: tuple[Entry, ...], info: DeviceInfo) -> Plan:
    """The plan with the CU counts and clocks that the device offers. Raises InputError."""
    from mlscale.collect import plan as planning
    from mlscale.collect.clocks import offered_clocks

    engine, memory, suite = arguments.engine, arguments.memory, arguments.suite
    if arguments.set_clocks:
        if info.sensors != "nvml":
            raise InputError(
                f"{info.name}: clocks and power limits are set by NVML alone. For AMD set them "
                "with amd-smi and collect once for each setting; an MI300X refuses to hold its "
                "clocks (--setsclk), performance determinism caps them instead"
            )
        if os.geteuid() != 0:
            raise InputError("clocks and power limits are set by root; run it as root")
        engine, memory = planning.nearest_clocks(engine, memory, offered_clocks(info))
    if arguments.micro:
        from mlscale.collect.micro_kernels import micro_entries

        suite, entries = "micro", micro_entries(info)
    kernels = tuple(entry.name for entry in entries if info.backend in entry.backends)
    if not kernels:
        raise InputError(f"none of these kernels runs by {info.backend}")
    counts = (info.cu_count,) if arguments.micro else planning.cu_counts(arguments.cu_counts, info)
    return planning.Plan(
        suite=suite,
        kernels=kernels,
        cu_counts=counts,
        engine_mhz=engine,
        memory_mhz=memory,
        power_limits_w=arguments.power_limits,
        repeat=arguments.repeat,
        power_s=arguments.power_seconds if info.sensors and not arguments.micro else 0.0,
    )


def _plan_without_device(arguments: argparse.Namespace, entries: tuple[Entry, ...]) -> Plan:
    from mlscale.collect.plan import AUTO_COUNTS, Plan

    return Plan(
        suite=arguments.suite,
        kernels=tuple(entry.name for entry in entries),
        cu_counts=tuple(arguments.cu_counts or range(1, AUTO_COUNTS + 1)),
        engine_mhz=arguments.engine,
        memory_mhz=arguments.memory,
        power_limits_w=arguments.power_limits,
        repeat=arguments.repeat,
        power_s=arguments.power_seconds,
    )


def _plan_text(plan: Plan, info: DeviceInfo | None) -> str:
    """What would be measured, and an estimate of its duration. info: None without a device."""
    minutes = max(1, round(plan.seconds / 60))
    duration = f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
    axes = (plan.cu_counts, plan.engine_mhz, plan.memory_mhz, plan.power_limits_w)
    names = ("CUs", "engine", "memory", "limits")
    device = "none at hand"
    if info is not None:
        how = info.cu_axis or "all at once"
        device = f"{info.name} by {info.backend}, {info.cu_count} CUs ({how})"
    power = f"{plan.power_s:g} s a sample" if plan.power_s else "-"
    lines = [
        f"device:   {device}",
        f"kernels:  {len(plan.kernels)} of the suite '{plan.suite}'",
        *(
            f"{name + ':':<10}{', '.join(map(str, values)) or 'as they are'}"
            for name, values in zip(names, axes, strict=True)
        ),
        f"power:    {power}",
        f"samples:  {plan.samples}, about {duration} (an estimate)",
    ]
    return "\n".join(lines)


def _collect(arguments: argparse.Namespace, plan: Plan, info: DeviceInfo) -> str:
    """Measure what is not there yet, and write; what there is to say of it."""
    from tqdm import tqdm

    from mlscale.collect import clocks, recording, running

    with ExitStack() as stack:
        stack.enter_context(clocks.stopped_like_ctrl_c())
        folder = stack.enter_context(options.output_folder(arguments.output))
        record = recording.begin(folder, info, plan, arguments.resume)
        if record["finished"]:
            return f"{folder}: was finished at {record['finished']}; nothing is left to measure"
        bar = stack.enter_context(
            tqdm(total=plan.samples, unit="sample", disable=None, leave=False)
        )
        try:
            with clocks.given_back(info) if plan.sets_clocks else nullcontext():
                failed = running.carry_out(plan, info, folder, bar.update)
        except (InputError, KeyboardInterrupt) as stop:
            kind: Any = KeyboardInterrupt if isinstance(stop, KeyboardInterrupt) else InputError
            taken = len(recording.rows_of(folder, plan, info))
            raise kind(
                f"{str(stop) or 'interrupted'}; {taken} of {plan.samples} samples are in {folder}; "
                "go on with --resume"
            ) from None
        bar.close()
        rows = recording.rows_of(folder, plan, info)
        told = recording.notes(rows, plan, info, failed)
        if plan.suite == "micro":
            from mlscale.cli.collect_micro import write

            text = write(folder, rows, info, failed)
        else:
            text, why = _write(folder, rows, plan, info, failed, not arguments.no_counters)
            told += why
        recording.finish(folder, record, failed, told, whole=True)
    for line in told:
        warn(line)
    return text


def _write(
    folder: Path,
    rows: list[dict[str, Any]],
    plan: Plan,
    info: DeviceInfo,
    failed: dict[str, str],
    wants_counters: bool,
) -> tuple[str, list[str]]:
    import numpy as np

    from mlscale.collect import recording, running
    from mlscale.collect.counters import collect_counters
    from mlscale.data.devices import device_keys

    kernels = [kernel for kernel in plan.kernels if kernel not in failed]
    if not kernels or not rows:
        recording.finish(folder, {}, failed, [], whole=False)
        raise InputError(f"{folder}: no kernel could be measured; {recording.RECORD} says why")
    device = recording.device_name(info)
    counters: recording.Counters = {}
    told: list[str] = []
    if wants_counters:
        job = folder / running.CACHE / f"job{plan.cu_counts[-1]}.json"
        of_rows = {axis: max(row[axis] for row in rows) for axis in ("engine_mhz", "memory_mhz")}
        counters, told = collect_counters(info, device, job, kernels, of_rows)
    paths = recording.write_tables(folder, rows, plan, info, failed, counters)
    spread = float(np.median([row["time_spread_percent"] for row in rows]))
    power = "without" if np.isnan([row["power_w"] for row in rows]).all() else "with"
    onward = ""
    if device not in device_keys() and info.backend != "opencl":
        onward = (
            f"\n'{device}' is not in the device table, so 'bottleneck' does not apply; "
            "docs/collecting.md says how to describe a GPU"
        )
    return (
        f"{', '.join(map(str, paths))}: {len(rows)} samples of {len(kernels)} kernels on {device}, "
        f"{plan.configurations} configurations x {plan.repeat}, {power} power; median spread of "
        f"the times {number(spread, 2)} %{onward}"
    ), told


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(sorted({int(part) for part in text.split(",")}))
    if numbers[0] < 1:
        raise ValueError
    return numbers


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError
    return names


def _counts(text: str) -> tuple[int, ...] | None:
    return None if text == "auto" else _numbers(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 600:
        raise argparse.ArgumentTypeError("must be from 0 to 600 seconds")
    return seconds
