"""mlscale collect: a training set measured on the GPU at hand, or on a processor by OpenCL."""

import argparse
import shutil
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import columns, json_text
from mlscale.collect.device import device_at_hand
from mlscale.collect.plan import Plan, cu_counts, select
from mlscale.collect.running import carry_out
from mlscale.errors import InputError, UsageError, warn
from mlscale.files import write_text
from mlscale.sensors.boards import board_by_uuid
from mlscale.sensors.clocks import given_back
from mlscale.sensors.program import interrupted_once
from mlscale.text import counted, number

if TYPE_CHECKING:
    import pandas as pd

# Compiling, checking and timing a kernel: 0.47 s on an H100.
_SAMPLE_S = 0.5


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    add = parser.add
    add("-o", "--output", metavar="DIR", help="folder for measurements.csv and collect.json")
    sources = "NVIDIA, AMD, or OpenCL, which has processors too (default: the first with a device)"
    add("--backend", choices=("cuda", "hip", "opencl"), help=sources)
    sizes = "sizes for a GPU, or small ones for a processor (default: %(default)s)"
    add("--suite", choices=("full", "small"), default="full", help=sizes)
    names = "kernels or applications of the suite, * for any characters (default: all)"
    add("--kernels", type=options.names, default=(), metavar="NAME,…", help=names)
    facts = "device file of this GPU, if the table lacks it: edit what 'devices show' prints"
    add("--device", type=options.device_key, metavar="DEVICE", help=facts)
    counts = "numbers of compute units (SMs) to run on (default: up to eight, evenly spaced)"
    add("--cu-counts", type=options.whole_numbers, metavar="N,N,…", help=counts)
    clocks_mhz = partial(options.whole_numbers, unit="MHz")
    for clock in ("engine", "memory"):
        clocks = f"{clock} clocks to hold (root), reset at the end (default: left alone)"
        add(f"--{clock}", type=clocks_mhz, default=(), metavar="MHZ,MHZ,…", help=clocks)
    limits = "board power limits to set (root), a table for each; reset at the end"
    caps_w = partial(options.whole_numbers, unit="W")
    add("--power-limits", type=caps_w, default=(), metavar="W,W,…", help=limits)
    samples = "samples of each kernel and configuration (default: %(default)s)"
    add("--repeat", type=options.whole_number, default=1, metavar="N", help=samples)
    window = "time of each power reading, at least 1 s; 0: only time (default: %(default)g)"
    span_s = partial(options.number_from_0, unit="s")
    add("--power-seconds", type=span_s, default=2.0, metavar="S", help=window)
    add("--resume", action="store_true", help="measure what is missing in DIR")
    task = parser.add_mutually_exclusive_group()
    micro = "measure latencies and throughputs, not the suite: gpu.json"
    add("--micro", action="store_true", help=micro, group=task)
    add("--dry-run", action="store_true", help="print the plan and exit", group=task)


def run(arguments: argparse.Namespace) -> None:
    """Collect. Raises InputError."""
    if not arguments.output and not arguments.dry_run:
        raise UsageError("name a folder for the measurements with -o DIR")
    plan = _plan(arguments)
    print(_plan_text(plan) if arguments.dry_run else _collect(arguments, plan))


def _plan(arguments: argparse.Namespace) -> Plan:
    """The plan, with the CU counts and clocks that the device offers. Raises InputError."""
    device, repeat = device_at_hand(arguments.backend), arguments.repeat
    settings = {"engine_mhz": arguments.engine, "memory_mhz": arguments.memory}
    settings["cap_w"] = arguments.power_limits
    if any(settings.values()) and (why := device.why_fixed):
        raise InputError(f"{device.name}: {why}")
    if arguments.micro:
        from mlscale.collect.plan import probes

        entries = tuple(entry for _, entry in probes(device))
        return Plan("micro", device, entries, (device.cu_count,), settings, repeat)
    entries = select(arguments.suite, arguments.kernels, device.backend)
    if not entries:
        raise InputError("none of these kernels runs on this backend; 'tensor' needs CUDA or HIP")
    counts = cu_counts(arguments.cu_counts, device)
    power_s = arguments.power_seconds if device.sensors else 0.0
    power_s = max(power_s, 1.0) if power_s else 0.0  # kernel_tuner's least
    return Plan(arguments.suite, device, entries, counts, settings, repeat, power_s)


def _plan_text(plan: Plan) -> str:
    """What would be measured, and an estimate of its duration."""
    device, samples = plan.device, len(plan.entries) * plan.configurations * plan.repeat
    settings = {n: ", ".join(map(str, v)) or "as they are" for n, v in plan.settings.items()}
    power = f"{plan.power_s:g} s a sample" if plan.power_s else "not measured"
    minutes = samples * (_SAMPLE_S + plan.power_s) / 60
    where = "on" if shutil.which(device.profiler) else "not on"
    lines = {
        "device": f"{device.name} by {device.backend}, {device.cu_count} CUs",
        "kernels": f"{len(plan.entries)}: {', '.join(entry.name for entry in plan.entries)}",
        "CUs": f"{', '.join(map(str, plan.cu_counts))} ({device.cu_axis or 'all at once'})",
        **settings,
        "clocks": device.why_fixed if device.backend != "opencl" else "",
        "power": "; ".join(filter(None, [power, device.lacks_sensors])),
        "counters": f"by {device.profiler}, {where} the path" if device.profiler else "none",
        "samples": f"{samples}, about {minutes:.1f} min (an estimate)",
    }
    return "\n".join(f"{name + ':':<12}{what}" for name, what in lines.items() if what)


def _collect(arguments: argparse.Namespace, plan: Plan) -> str:
    """Measure what is not there yet, write, and return what there is to say of it."""
    from tqdm import tqdm

    from mlscale.collect import recording

    with outputs.output_folder(arguments.output) as folder:
        record = recording.begin(folder, plan, arguments.resume)
        if record["finished"] and not (record["failed"] or record.get("uncounted")):
            return f"{folder}: was finished at {record['finished']}; nothing is left to measure"
        steps = len(plan.entries) * len(plan.cu_counts)
        held: AbstractContextManager[None] = nullcontext()
        if plan.device.sensors == "nvml":
            board = board_by_uuid(plan.device.uuid)
            held = given_back(board, any(plan.settings.values()))
        try:
            with (
                interrupted_once(),
                held,
                tqdm(total=steps, unit="kernel", disable=None, leave=False) as bar,
            ):
                failed = carry_out(plan, folder, bar.update)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; continue with --resume -o {folder}") from None
        for name, why in failed.items():
            warn("T09", f"{name} is left out: {why}")
        plan = replace(plan, entries=tuple(e for e in plan.entries if e.name not in failed))
        samples = recording.samples(folder, plan)
        recording.warn_of_samples(samples, plan)
        uncounted: list[str] = []
        if plan.suite == "micro":
            text = _write_micro(folder, samples, plan)
        else:
            text, uncounted = _write(folder, samples, plan)
        recording.finish(folder, record, failed=failed, uncounted=uncounted)
    return text


def _write(folder: Path, samples: "pd.DataFrame", plan: Plan) -> tuple[str, list[str]]:
    """Write the tables with their counters; the summary, and which counters are missing."""
    from mlscale.collect import recording

    missing: list[str] = []
    if plan.device.profiler:
        base = recording.base(samples)
        counted_kernels, missing = recording.collect_counters(plan, base, folder / "counters")
        for line in missing:
            warn("T10", line)
        if counted_kernels:
            samples = recording.with_counters(samples, counted_kernels)
    paths = recording.write_tables(folder, samples, plan)
    power = "with" if samples["power_w"].notna().any() else "without"
    summary = (
        f"{', '.join(map(str, paths))}: {counted(len(samples), 'sample')} of "
        f"{counted(samples['kernel'].nunique(), 'kernel')} on "
        f"{plan.device.key}, {counted(plan.configurations, 'configuration')} x {plan.repeat}, "
        f"{power} power; median spread of the times "
        f"{number(samples['time_spread_percent'].median(), 2)} %"
    )
    return summary, missing


def _write_micro(folder: Path, samples: "pd.DataFrame", plan: Plan) -> str:
    """Fit the parameters and write gpu.json; what there is to say of it."""
    from mlscale.collect.plan import probes
    from mlscale.papers.gpu_file import gpu_document

    device = plan.device
    launched = [probe for probe, _ in probes(device)]
    document = gpu_document(device.key, device.name, device.wave_size, samples, launched)
    path = folder / "gpu.json"
    write_text(path, json_text(document))
    numbers = [*document["settings"][-1].items(), *document["compute_unit"].items()]
    entry = document["wang_chu"] or {"note": "the device table lacks it: no entry for wang-chu"}
    table = columns(["quantity", ""], [[name, number(value)] for name, value in numbers])
    return f"{path}: {document['device']}; {entry['note']}\n\n{table}"
