"""mlscale collect: the plan that the options ask for, on the GPU at hand or without one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mlscale.errors import InputError, warn

if TYPE_CHECKING:
    from mlscale.collect.device import DeviceInfo, MeasuredGpu
    from mlscale.collect.entries import Entry
    from mlscale.collect.plan import Plan


def plan_of(arguments: argparse.Namespace, entries: tuple[Entry, ...], gpu: MeasuredGpu) -> Plan:
    """Plan with the CU counts and clocks that the GPU offers. Raises InputError; may warn."""
    from mlscale.collect.clocks import nearest, settings
    from mlscale.collect.counters import NsightCompute
    from mlscale.collect.plan import Plan, granted_counts

    counters = not arguments.no_counters and NsightCompute.find() is not None
    if not counters and not arguments.no_counters:
        warn(
            "Nsight Compute (ncu) is not on the path: time and power are collected, counters are "
            "not"
        )
    offered = gpu.cu_counts()
    granted = granted_counts(arguments.sm_counts, offered)
    if len(offered) == 1:
        warn(
            f"the driver (CUDA {gpu.info.versions.get('cuda')}) cannot set multiprocessors apart "
            f"(green contexts: CUDA 12.4): everything runs on all {offered[0]}, without a CU axis"
        )
    elif changed := [n for n in arguments.sm_counts or () if n not in offered]:
        taken = ", ".join(f"{nearest(count, offered)} for {count}" for count in changed)
        warn(f"{gpu.info.name} does not grant every SM count; the nearest is taken: {taken}")
    clocks = settings(arguments.engine, arguments.memory, gpu.sensors.supported_clocks())
    return Plan(entries, granted, clocks, arguments.repeat, arguments.power_seconds, counters)


def plan_without_gpu(
    arguments: argparse.Namespace, entries: tuple[Entry, ...], why: InputError
) -> str:
    """Return the plan with everything as it is asked for, for a machine that has no GPU."""
    from mlscale.collect.plan import AUTO_COUNTS, Plan, requested_settings

    warn(
        f"{why}; so the plan takes CU counts and clocks as they are asked for"
        + ("" if arguments.no_counters else ", Nsight Compute")
        + " and a GPU with an energy counter for granted"
    )
    counts, clocks = requested_settings(arguments.sm_counts, arguments.engine, arguments.memory)
    plan = Plan(
        entries, counts, clocks, arguments.repeat, arguments.power_seconds,
        counters=not arguments.no_counters,
    )  # fmt: skip
    auto = "" if arguments.sm_counts else f"{AUTO_COUNTS} that the GPU grants"
    return plan_text(plan, None, "energy", auto)


def plan_text(plan: Plan, info: DeviceInfo | None, mode: str, counts: str = "") -> str:
    """Return what would be measured, and an estimate of its duration.

    info: None where there is no GPU to ask. counts: the CU counts in words, if not by number.
    """
    counts = counts or ", ".join(
        str(granted) if granted == asked else f"{granted} (for {asked})"
        for granted, asked in plan.cu_counts.items()
    )
    applications = len({entry.application for entry in plan.entries})
    samples = sum(not step.profile for step in plan.steps())
    device = "none at hand"
    if info is not None:
        driver = info.versions.get("driver")
        device = f"{info.name}, {info.cu_count} multiprocessors, driver {driver}"
    power = f"{plan.window_s:g} s a sample, sensor '{mode}'" if plan.window_s else "-"
    lines = [
        f"device:   {device}",
        f"kernels:  {len(plan.entries)} of {applications} applications",
        f"CUs:      {counts}",
        f"clocks:   {'; '.join(map(str, plan.clocks))} (MHz)",
        f"power:    {power}",
        f"counters: {'Nsight Compute' if plan.counters else '-'}",
        f"samples:  {samples}, about {duration(plan.seconds(mode))} (an estimate)",
    ]
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Return minutes, or hours and minutes."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
