"""mlscale collect: a training set measured on the NVIDIA GPU at hand."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli import options
from mlscale.cli.collect_plan import plan_of, plan_text, plan_without_gpu
from mlscale.cli.text import columns, number
from mlscale.data.devices import device_keys
from mlscale.errors import InputError, UsageError, warn

if TYPE_CHECKING:
    from mlscale.collect.clocks import ClockKeeper
    from mlscale.collect.device import MeasuredGpu
    from mlscale.collect.plan import Plan
    from mlscale.data.tables import Table
    from mlscale.records import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="folder for measurements.csv and collect.json"
    )
    parser.add_argument(
        "--device",
        type=options.device_key,
        metavar="DEVICE",
        help="device file of this GPU, where the device table lacks it; the table carries its "
        "facts (see 'devices new')",
    )
    parser.add_argument(
        "--sm-counts",
        type=_counts,
        metavar="N,N,…|auto",
        help="multiprocessors (CUs) to run on, by CUDA green contexts; the nearest count that the "
        "GPU grants is taken (default: auto, up to eight counts and all)",
    )
    for clock, name in (("engine", "engine"), ("memory", "memory")):
        parser.add_argument(
            f"--{clock}",
            type=_numbers,
            default=(),
            metavar="MHZ,MHZ,…",
            help=f"{name} clocks to lock, each at the nearest one offered; needs --set-clocks",
        )
    parser.add_argument(
        "--set-clocks",
        action="store_true",
        help="allow the clocks to be set (root); they are reset at the end, also after a crash. "
        "Without it no clock is touched, only observed",
    )
    parser.add_argument(
        "--kernels",
        type=_names,
        default=(),
        metavar="NAME,…",
        help="kernels or applications of the suite, * for any characters (default: all)",
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
        help="seconds over which power is averaged, after the sensor has settled; 0 for time alone "
        "(default: %(default)g)",
    )
    parser.add_argument(
        "--no-counters",
        action="store_true",
        help="do not run Nsight Compute (default: run it if ncu is on the path)",
    )
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--resume", action="store_true", help="go on with what DIR holds")
    task.add_argument(
        "--micro-benchmarks",
        action="store_true",
        help="measure latencies and throughputs in place of the suite: an entry for wang-chu, and "
        "the models of the survey beside Volkov's kernel",
    )
    task.add_argument(
        "--dry-run",
        action="store_true",
        help="print the plan and how long it takes, and end; needs no GPU",
    )
    task.add_argument(
        "--list-kernels", action="store_true", help="print the kernels of the suite, and end"
    )


def run(arguments: argparse.Namespace) -> None:
    """Collect. Raises InputError."""
    from mlscale.collect.clocks import stopped_like_ctrl_c
    from mlscale.collect.device import GpuError
    from mlscale.collect.suite import select

    entries = select(arguments.kernels)
    if arguments.list_kernels:
        kernels = [[e.name, e.application, str(e.blocks), str(e.threads)] for e in entries]
        print(columns(["kernel", "application", "blocks", "threads"], kernels))
        return
    if (arguments.engine or arguments.memory) and not arguments.set_clocks:
        raise UsageError("--engine and --memory set clocks; allow it with --set-clocks (root)")
    if arguments.set_clocks and not (arguments.engine or arguments.memory):
        raise UsageError("--set-clocks needs the clocks to set: give --engine or --memory")
    if arguments.micro_benchmarks:
        suite = ("kernels", "sm_counts", "repeat", "power_seconds", "no_counters")
        options.refuse_unused(arguments, suite, "with --micro-benchmarks")
    if not arguments.output and not arguments.dry_run:
        raise UsageError("name a folder for the measurements with -o DIR")
    with ExitStack() as stack:
        stack.enter_context(stopped_like_ctrl_c())
        try:
            gpu = open_gpu()
        except GpuError as error:
            if not arguments.dry_run:
                raise
            print(plan_without_gpu(arguments, entries, error))
            return
        stack.callback(gpu.close)
        if arguments.micro_benchmarks:
            from mlscale.cli import collect_micro

            collect_micro.run(arguments, gpu)
            return
        plan = plan_of(arguments, entries, gpu)
        if arguments.dry_run:
            print(plan_text(plan, gpu.info, gpu.sensors.mode))
            return
        _collect(arguments, plan, gpu)


def open_gpu() -> MeasuredGpu:
    """Return the GPU at hand. Raises InputError where there is none or a binding is missing."""
    from mlscale.collect.cuda_device import CudaGpu

    return CudaGpu()


def _collect(arguments: argparse.Namespace, plan: Plan, gpu: MeasuredGpu) -> None:
    from mlscale.collect import recording
    from mlscale.collect.clocks import ClockKeeper
    from mlscale.records import Progress

    fingerprint = plan.fingerprint(gpu.info)
    with ExitStack() as stack:
        keeper = stack.enter_context(ClockKeeper(gpu.sensors, gpu.info.uuid))
        recover(keeper)
        folder = stack.enter_context(options.output_folder(arguments.output))
        record = recording.begin(folder, gpu.info, plan, gpu.sensors.mode, fingerprint)
        if record["finished"]:
            if not arguments.resume:
                raise InputError(f"{folder}: holds a finished collection; name another folder")
            print(f"{folder}: was finished at {record['finished']}; nothing is left to measure")
            return
        results = Progress(folder, fingerprint, arguments.resume, "collection")
        stack.enter_context(results)

        def write(whole: bool) -> Any:
            return recording.finish(folder, record, plan, gpu.info, results.done, whole)

        _measure(plan, gpu, results, keeper, folder, write)
        table = write(whole=True)
        results.remove()
    if table is None:
        raise InputError(f"{folder}: no kernel could be measured; {recording.RECORD} says why")
    print(_summary(folder, table, plan))


def recover(keeper: ClockKeeper) -> None:
    """Reset clocks that a killed run left locked, and tell of it."""
    from mlscale.collect.clocks import RESET
    from mlscale.collect.device import ClockError

    try:
        if keeper.recover():
            warn("an earlier run was killed while it held the clocks; they have been reset")
    except ClockError as error:
        warn(
            f"an earlier run was killed while it held the clocks, and they cannot be reset "
            f"({error}); run as root: {RESET}"
        )


def _measure(
    plan: Plan,
    gpu: MeasuredGpu,
    results: Progress,
    keeper: ClockKeeper,
    folder: Path,
    write: Callable[[bool], Any],
) -> None:
    """Take all samples; where that is stopped, write the table so far, and say what is kept."""
    from tqdm import tqdm

    from mlscale.collect.counters import NsightCompute
    from mlscale.collect.recording import RECORD, device_name
    from mlscale.collect.running import carry_out

    program = NsightCompute.find() if plan.counters else None
    profiler = None
    if program:
        device, capability = device_name(gpu.info), gpu.info.capability
        profiler = NsightCompute(program, plan.entries, device, capability)
    total, first = sum(1 for _ in plan.steps()), len(results.done)
    try:
        with tqdm(total=total, initial=first, unit="sample", disable=None, leave=False) as bar:
            for number, _ in carry_out(gpu, plan, results, keeper, profiler):
                bar.update(number >= first)
    except (InputError, KeyboardInterrupt) as stop:
        kind = KeyboardInterrupt if isinstance(stop, KeyboardInterrupt) else InputError
        reason = "interrupted" if kind is KeyboardInterrupt else str(stop)
        if not results.done:
            results.remove()
            (folder / RECORD).unlink(missing_ok=True)
            raise type(stop)(reason) from None
        with suppress(InputError):  # on a full disk the samples are in progress.jsonl alone
            write(False)
        raise kind(
            f"{reason}; {len(results.done)} of {total} samples are kept in {folder}; go on with "
            "--resume"
        ) from None


def _summary(folder: Path, table: Table, plan: Plan) -> str:
    """Return what was collected."""
    import numpy as np

    kernels = set(table.text["kernel"])
    spread = float(np.median(table.numbers["time_spread_percent"]))
    power = "with" if "power_w" in table.numbers else "without"
    device = table.text["device"][0]
    onward = ""
    if device not in device_keys():
        onward = (
            f"\n'{device}' is not in the device table, so 'bottleneck' does not apply; "
            "docs/collecting.md says how to describe a GPU"
        )
    return (
        f"{folder}: {len(table)} samples of {len(kernels)} kernels of "
        f"{len(set(table.text['application']))} applications on {device}, "
        f"{len(plan.cu_counts)} CU counts x {len(plan.clocks)} clock settings x {plan.repeat}, "
        f"{power} power; median spread of the times {number(spread, 2)} %{onward}"
    )


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    if min(numbers) < 1:
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
