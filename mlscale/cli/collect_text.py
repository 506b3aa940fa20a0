"""mlscale collect: the plan, the suite and the result for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mlscale.cli.text import columns, number
from mlscale.data.devices import device_keys

if TYPE_CHECKING:
    from mlscale.collect.device import Facts
    from mlscale.collect.entries import Entry
    from mlscale.collect.plan import Plan
    from mlscale.data.tables import Table


def kernel_list(entries: Sequence[Entry]) -> str:
    """The kernels of the suite, a line each."""
    rows = [[e.name, e.application, str(e.blocks), str(e.threads)] for e in entries]
    return columns(["kernel", "application", "blocks", "threads"], rows)


def plan_text(plan: Plan, facts: Facts | None, mode: str, counts: str = "") -> str:
    """What would be measured, and an estimate of its duration.

    facts: None where there is no GPU to ask. counts: the CU counts in words, if not by number.
    """
    counts = counts or ", ".join(
        str(granted) if granted == asked else f"{granted} (for {asked})"
        for granted, asked in plan.cu_counts.items()
    )
    applications = len({entry.application for entry in plan.entries})
    samples = sum(not unit.profile for unit in plan.units())
    device = "none at hand"
    if facts is not None:
        driver = facts.versions.get("driver")
        device = f"{facts.name}, {facts.cu_count} multiprocessors, driver {driver}"
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
    """Minutes, or hours and minutes."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def as_text(folder: Path, table: Table, plan: Plan) -> str:
    """What was collected."""
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
