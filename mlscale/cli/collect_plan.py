"""mlscale collect: the plan that the options ask for, on the GPU at hand or without one."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING

from mlscale.cli.collect_text import plan_text
from mlscale.errors import DataWarning, InputError

if TYPE_CHECKING:
    from mlscale.collect.device import Gpu
    from mlscale.collect.entries import Entry
    from mlscale.collect.plan import Plan


def plan_of(arguments: argparse.Namespace, entries: tuple[Entry, ...], gpu: Gpu) -> Plan:
    """With the CU counts and clocks that the GPU offers. Raises InputError; warns of changes."""
    from mlscale.collect.clocks import nearest, settings
    from mlscale.collect.counters import NsightCompute
    from mlscale.collect.plan import Plan, granted_counts

    counters = not arguments.no_counters and NsightCompute.find() is not None
    if not counters and not arguments.no_counters:
        warnings.warn(
            "Nsight Compute (ncu) is not on the path: time and power are collected, counters are "
            "not",
            DataWarning,
            stacklevel=2,
        )
    offered = gpu.cu_counts()
    granted = granted_counts(arguments.sm_counts, offered)
    if len(offered) == 1:
        warnings.warn(
            f"the driver (CUDA {gpu.facts.versions.get('cuda')}) cannot set multiprocessors apart "
            f"(green contexts: CUDA 12.4): everything runs on all {offered[0]}, without a CU axis",
            DataWarning,
            stacklevel=2,
        )
    elif changed := [n for n in arguments.sm_counts or () if n not in offered]:
        taken = ", ".join(f"{nearest(count, offered)} for {count}" for count in changed)
        warnings.warn(
            f"{gpu.facts.name} does not grant every SM count; the nearest is taken: {taken}",
            DataWarning,
            stacklevel=2,
        )
    clocks = settings(arguments.engine, arguments.memory, gpu.sensors.supported_clocks())
    return Plan(entries, granted, clocks, arguments.repeat, arguments.power_seconds, counters)


def plan_without_gpu(
    arguments: argparse.Namespace, entries: tuple[Entry, ...], why: InputError
) -> str:
    """The plan with everything as it is asked for, for a machine that has no GPU."""
    from mlscale.collect.plan import AUTO_COUNTS, Plan, as_asked

    warnings.warn(
        f"{why}; so the plan takes CU counts and clocks as they are asked for"
        + ("" if arguments.no_counters else ", Nsight Compute")
        + " and a GPU with an energy counter for granted",
        DataWarning,
        stacklevel=2,
    )
    counts, clocks = as_asked(arguments.sm_counts, arguments.engine, arguments.memory)
    plan = Plan(
        entries, counts, clocks, arguments.repeat, arguments.power_seconds,
        counters=not arguments.no_counters,
    )  # fmt: skip
    auto = "" if arguments.sm_counts else f"{AUTO_COUNTS} that the GPU grants"
    return plan_text(plan, None, "energy", auto)
