"""What sets an advice, on the page: power caps, and the commands of the GPU's vendor."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlscale.advice.caps import CapAdvice, CapPoint
from mlscale.advice.commands import Commands, commands_for_cap, commands_for_clocks
from mlscale.advice.objectives import objective_name
from mlscale.advice.recommendation import Advice
from mlscale.model.predictions import INTERVAL
from mlscale.report.charts import ChartCurve, axis_chart, chart
from mlscale.report.markup import (
    Child,
    Markup,
    block,
    bullets,
    element,
    joined,
    paragraph,
    part,
    percent,
    range_in_words,
    scale_and_unit,
    soft,
    table,
)
from mlscale.text import number


def power_caps(caps: CapAdvice) -> Markup:
    """What the run does under each power cap, and the best one."""
    best = "No cap keeps the limits, or is high enough to say."
    if caps.best is not None:
        of_none = "" if caps.helps else ", which is no better than the base"
        of_none = of_none if caps.binds else ", which changes nothing"
        best = f"Least {objective_name(caps.objective)}: a cap of {caps.best.cap_w:g} W{of_none}."
    if caps.default_w is not None:
        best += f" The GPU's own is {caps.default_w:.0f} W."
    ms, time_unit = scale_and_unit(caps.at_base.time_ms, "time_ms")
    mj, energy_unit = scale_and_unit(caps.at_base.energy_mj or 0, "energy_mj")
    headers = ["cap W", "engine MHz", f"time {time_unit}", "time", INTERVAL, "power W"]
    headers += [f"energy {energy_unit}", objective_name(caps.saved), INTERVAL, "note"]
    rows = [_row(point, caps.best, ms, mj) for point in caps.points]
    said = joined(
        soft(
            "Under a cap each kernel runs at the highest engine clock whose power is at most the "
            "cap, at the memory clock of the base. Engine clock and power are means over the run."
        ),
        paragraph(best),
        *(paragraph(str(warning)) for warning in caps.warnings),
    )
    return part(
        "Power caps",
        element("div", block(said), _chart(caps), class_="columns"),
        table(headers, rows, words=(), long=len(headers) - 1),
    )


def _chart(caps: CapAdvice) -> Markup | None:
    """Time and energy over the cap; nothing for fewer than two caps that say something."""
    runs = [(point.cap_w, point.run) for point in caps.points if point.run is not None]
    if len(runs) < 2:
        return None
    base = caps.at_base
    energy = np.array([(run.energy_mj or np.nan) / (base.energy_mj or np.nan) for _, run in runs])
    curves = [
        ChartCurve("time", np.array([run.time_ms / base.time_ms for _, run in runs])),
        ChartCurve("energy", energy),
    ]
    figure = axis_chart("power cap [W]", [cap_w for cap_w, _ in runs], None, curves)
    caption = "Time and energy of the run, to those at the base"
    return chart(caption, figure, "time and energy of the run over the power cap", "power caps")


def _row(point: CapPoint, best: CapPoint | None, ms: float, mj: float) -> list[Child]:
    """The run under one cap; ms, mj: what its time and energy are divided by."""
    notes = "; ".join(["best", *point.flags] if point == best else point.flags)
    run = point.run
    if run is None:
        return [f"{point.cap_w:g}", *[None] * 8, notes]
    saved = None if run.saving_range is None else (-run.saving_range[1], -run.saving_range[0])
    return [
        f"{point.cap_w:g}",
        number(run.config.engine_mhz),
        number(run.time_ms / ms),
        percent(run.slowdown_percent / 100),
        run.slowdown_range and range_in_words(run.slowdown_range),
        number(run.power_w),
        number((run.energy_mj or np.nan) / mj),
        percent(-run.saving_percent / 100),
        saved and range_in_words(saved),
        notes,
    ]


def commands_section(
    metadata: Mapping[str, Any], advice: Advice | None, caps: CapAdvice | None
) -> Markup:
    """The commands for the clocks of the whole run and, where one is best, for a power cap.

    metadata: of the profiles. advice: None where clocks are not to be set.
    """
    parts = []
    if advice is not None:
        parts.append(_shown("The clocks", commands_for_clocks(advice, metadata)))
    if caps is not None and caps.best is not None and caps.helps:
        of_cap = f"{'Or a' if parts else 'A'} power cap of {caps.best.cap_w:g} W"
        parts.append(_shown(of_cap, commands_for_cap(caps, metadata)))
    if not parts:
        parts.append(paragraph("Nothing to set: the power cap stays as it is."))
    return part("Commands", *parts)


def _shown(what: str, commands: Commands) -> Markup:
    """Commands to copy, and what to know of them."""
    lines = [*commands.to_set, "# to undo it", *commands.to_reset] if commands.to_set else []
    return joined(
        paragraph(f"{what}; mlscale runs none of it, and tried none of it on a GPU:"),
        element("pre", joined(*lines, between=Markup("\n"))) if lines else None,
        bullets(commands.notes) if commands.notes else None,
    )
