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
        info = None
    plan = _plan(arguments, entries, info)
    print(_plan_text(plan, info) if info is None or arguments.dry_run else
          _collect(arguments, plan, info))  # fmt: skip


def _plan(
    arguments: argparse.Namespace, entries: tuple[Entry, ...], info: DeviceInfo | None
) -> Plan:
    """Return the plan with the CU counts and clocks that the device offers. Raises InputError.

    info: None takes them as they are asked for.
    """
    from mlscale.collect import plan as planning

    engine, memory, suite = arguments.engine, arguments.memory, arguments.suite
    power_s, counts = arguments.power_seconds, arguments.cu_counts
    if info is None:
        counts = counts or tuple(range(1, planning.AUTO_COUNTS + 1))
    else:
        if arguments.set_clocks:
            engine, memory = _offered(engine, memory, info)
        if arguments.micro:
            from mlscale.collect.micro_kernels import micro_entries

            suite, entries, counts, power_s = "micro", micro_entries(info), (info.cu_count,), 0.0
        entries = tuple(entry for entry in entries if info.backend in entry.backends)
        counts = planning.cu_counts(counts, info)
        power_s = power_s if info.sensors else 0.0
    if not entries:
        raise InputError("none of these kernels runs on this backend; 'tensor' needs CUDA or HIP")
    return planning.Plan(
        suite=suite,
        kernels=tuple(entry.name for entry in entries),
        cu_counts=counts,
        engine_mhz=engine,
        memory_mhz=memory,
        power_limits_w=arguments.power_limits,
        repeat=arguments.repeat,
        power_s=power_s,
    )


def _offered(
    engine: tuple[int, ...], memory: tuple[int, ...], info: DeviceInfo
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the clocks that the board offers nearest to those asked for. Raises InputError."""
    from mlscale.collect.clocks import offered_clocks
    from mlscale.collect.plan import nearest_clocks

    if info.sensors != "nvml":
        raise InputError(
            f"{info.name}: clocks and power limits are set by NVML alone. For AMD set them with "
            "amd-smi and collect once for each setting; an MI300X refuses to hold its clocks "
            "(--setsclk), performance determinism caps them instead"
        )
    if os.geteuid() != 0:
        raise InputError("clocks and power limits are set by root; run it as root")
    if not engine and not memory:
        return engine, memory
    return nearest_clocks(engine, memory, offered_clocks(info))


def _plan_text(plan: Plan, info: DeviceInfo | None) -> str:
    """Return what would be measured, and an estimate of its duration. info: of the device."""
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
    """Measure what is not there yet, write, and return what there is to say of it."""
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
            is_set = plan.sets_clocks or clocks.left_behind(info)
            with clocks.given_back(info) if is_set else nullcontext():
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
        if all(kernel in failed for kernel in plan.kernels) or not rows:
            recording.finish(folder, record, failed, told, whole=False)
            raise InputError(f"{folder}: no kernel could be measured; {recording.RECORD} says why")
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
    """Write the tables with their counters; return the summary, and what is missing."""
    import numpy as np

    from mlscale.collect import recording, running
    from mlscale.collect.counters import Counters, collect_counters
    from mlscale.data.devices import device_keys

    kernels = [kernel for kernel in plan.kernels if kernel not in failed]
    device = recording.device_name(info)
    counters: Counters = {}
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
