"""An answer as JSON, schema 1; no other module knows its keys.

`schema.json` describes it as JSON Schema does, docs/reference/json.md in words. A value with its
interval is [value, low, high]; what is not known is None.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mlscale import __version__
from mlscale.advice.answer import PlainAnswer
from mlscale.advice.recommendation import Choice, Interval, Recommendation
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.model.predictions import COVERAGE
from mlscale.notes import note_rows
from mlscale.text import short_names

if TYPE_CHECKING:
    from mlscale.advice.caps import CapPoint
    from mlscale.advice.server import LoadCell, ServerAdvice, ServerClock

SCHEMA = 1
Row = dict[str, Any]
_RANGES = {  # what becomes of the run, and what its interval is called
    "slowdown_percent": "slowdown_range",
    "energy_percent": "energy_percent_range",
    "power_percent": "power_percent_range",
    "time_ms": "time_range_ms",
    "power_w": "power_range_w",
    "energy_mj": "energy_range_mj",
}


def document(answer: PlainAnswer) -> Row:
    """An answer as JSON values."""
    workload, base, commands, step = answer.workload, answer.base, answer.commands, answer.next_step
    reduced_mhz = None
    if answer.objective == "clock" and answer.lever == "clock":
        reduced_mhz = base.config.engine_mhz

    def chosen(choice: Choice | None) -> Row | None:
        return choice_row(choice, reduced_mhz) if choice else None

    row: Row = {
        "schema": SCHEMA,
        "mlscale": __version__,
        "model": answer.model,
        "device": answer.device,
        "base": _base(answer),
        "objective": answer.objective,
        "limits": asdict(answer.limits),
        "coverage": COVERAGE,
        "run": {
            "kernels": workload.kernels,
            "launches": workload.launches,
            "gpu_count": workload.gpu_count,
            "time_ms": base.time_ms,
            "power_w": base.power_w,
            "energy_mj": base.energy_mj,
            "counters_cover_percent": workload.counters_cover_percent,
            "is_bounded": answer.is_bounded,
        },
        "answer": chosen(answer.best),
        "expected": chosen(answer.expected),
        "menu": [
            {"max_slowdown_percent": most, **choice_row(choice)}
            for most, choice in answer.menu.items()
        ]
        or None,
        "sure": answer.sure,
        "sure_why": list(answer.sure_why),
        "notes": note_rows(answer.notes),
        "next": step and step.text,
        "next_commands": [*step.commands] or None if step else None,
        "commands": commands and {name: list(lines) for name, lines in commands._asdict().items()},
        "kernels": _kernel_rows(answer.kernels, reduced_mhz),
        "front": [chosen(choice) for choice in answer.front],
        "measured": [chosen(choice) for choice in answer.measured],
        "caps": [_cap_row(point) for point in answer.caps.points] if answer.caps else None,
    }
    return row | ({"server": _server_row(answer.server)} if answer.server else {})


def choice_row(choice: Choice, reduced_mhz: float | None = None) -> Row:
    """A choice; reduced_mhz: the clock that its own is compared with, if it is."""
    row = {"set": dict(choice.set), "at": place_row(choice), **effect_row(choice)}
    if reduced_mhz is not None:
        row["clock_reduction_percent"] = 100 * (1 - choice.engine_mhz / reduced_mhz)
    return row


def place_row(at: Choice | HardwareConfig) -> Row:
    """The settings, None for those that nobody knows."""
    return {axis: _known(getattr(at, axis)) or None for axis in AXES}


def effect_row(choice: Choice | None) -> Row:
    """What becomes of the run or a kernel, None for what is not known."""
    return {
        name: _with_ends(getattr(choice, name, None), getattr(choice, ends, None))
        for name, ends in _RANGES.items()
    }


def _with_ends(value: float | None, ends: Interval) -> list[float | None] | None:
    """A value with its interval, None for an end that is not known."""
    if value is None:
        return None
    return [value, *map(_known, ends)] if ends else [value, None, None]


def _base(answer: PlainAnswer) -> Row:
    """The settings of the base, what stands for CUs where that is something else, and the cap."""
    config = answer.base.config
    row = place_row(config) | ({"cu_axis": config.cu_axis} if config.cu_axis else {})
    return row | ({"power_cap_w": answer.now_w} if answer.lever == "cap" else {})


def _kernel_rows(kernels: Sequence[Recommendation], reduced_mhz: float | None) -> list[Row]:
    short = short_names([kernel.name for kernel in kernels])
    return [
        {
            "number": number,
            "kernel": kernel.name,
            "short": short[kernel.name],
            "share_percent": kernel.share_percent,
            "launches": kernel.launches,
            "at_answer": effect_row(kernel.in_run) if kernel.in_run else None,
            "best": choice_row(kernel.best, reduced_mhz),
        }
        for number, kernel in enumerate(kernels, start=1)
    ]


def _cap_row(point: "CapPoint") -> Row:
    """A cap, the run under it, None where that cannot be said, and why."""
    from mlscale.advice.caps import cap_setting

    unknown = {"set": cap_setting(point.cap_w, point.unlocks), "at": None, **effect_row(None)}
    return {
        "cap_w": point.cap_w,
        **(choice_row(point.run) if point.run else unknown),
        "time_per_power": _known(point.time_per_power),
        "power_per_clock": _known(point.power_per_clock),
        "can_be_set": point.can_be_set,
        "flags": list(point.flags),
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _server_row(server: "ServerAdvice") -> Row:
    result = server.base.result
    loads = [_load_row(cell) for cell in server.loads]
    return {
        "load": "open" if server.is_open else "closed",
        "request_per_s": result.request_per_s,
        "rate_per_s": server.rate_per_s,
        "clients": result.clients,
        "requests": result.completed,
        "pool": server.pool,
        "limits": [{"latency": slo.name, "limit_ms": ms} for slo, ms in server.limits],
        "withheld": server.withheld or None,
        "clocks": [_clock_row(clock) for clock in server.clocks],
        **({"loads": loads} if loads else {}),
    }


def _load_row(cell: "LoadCell") -> Row:
    return {
        "clients": cell.clients,
        "engine_mhz": cell.engine_mhz,
        "is_measured": cell.is_measured,
        "output_per_s": list(cell.output_per_s),
        "power_w": list(cell.power_w),
        "tokens_per_joule": list(cell.tokens_per_joule),
    }


def _clock_row(clock: "ServerClock") -> Row:
    return {
        "engine_mhz": _known(clock.engine_mhz),
        **({} if clock.cap_w is None else {"power_cap_w": clock.cap_w}),
        "is_measured": clock.is_measured,
        "latency_ms": {name: list(latency) for name, latency in clock.latency_ms.items()},
        "power_w": list(clock.power_w),
        "output_per_s": clock.output_per_s.value,
        "output_range_per_s": list(clock.output_per_s[1:]),
        "tokens_per_joule": list(clock.tokens_per_joule),
        "capacity_share": clock.capacity_share,
        "breaks": list(clock.breaks),
    }
