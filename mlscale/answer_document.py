"""The document of an answer, schema 1, as far as an `Advice` of today tells it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from mlscale import __version__
from mlscale.advice.commands import Commands
from mlscale.advice.recommendation import Advice, Recommendation, Row, Setting
from mlscale.model.predictions import COVERAGE
from mlscale.notes import Note
from mlscale.text import shortened

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice

SCHEMA = 1


def document(
    advice: Advice,
    model: str,
    caps: "CapAdvice | None",
    lever: str,
    notes: Sequence[Note],
    commands: Commands,
) -> Row:
    """The answer as JSON values.

    model: its name. notes: on the files and the choice of the model, before those of the advice.
    """
    run, told = advice.whole_run, [*advice.warnings, *(caps.warnings if caps else ())]
    best, expected, base, cap_w = run.best, run.expected, run.base, None
    if lever == "cap" and caps is not None and caps.best is not None and caps.best.run is not None:
        best, cap_w = caps.best.run, caps.best.cap_w
        expected = None if caps.expected is None else caps.expected.run
    every = [*notes, *told]
    workload = advice.workload
    return {
        "schema": SCHEMA,
        "mlscale": __version__,
        "model": model,
        "device": advice.device,
        "base": base.config.as_dict(),
        "objective": advice.objective,
        "limits": asdict(advice.limits),
        "coverage": COVERAGE,
        "run": {
            "kernels": workload.kernels,
            "launches": workload.launches,
            "time_ms": base.time_ms,
            "power_w": base.power_w,
            "energy_mj": base.energy_mj,
            "counters_cover_percent": workload.counters_cover_percent,
            "is_bounded": advice.is_bounded,
        },
        "answer": _choice(best, base, advice.objective, cap_w),
        "expected": None if expected is None else _choice(expected, base, advice.objective),
        "menu": None,
        "sure": None,
        "sure_why": [],
        "notes": [_note(note) for note in dict.fromkeys(every)],
        "next": None,
        "next_commands": None,
        "commands": {
            "set": list(commands.to_set),
            "reset": list(commands.to_reset),
            "notes": list(commands.notes),
        },
        "kernels": _kernels(advice.kernels, advice.objective),
        "front": [_choice(at, base, advice.objective) for at in run.front],
        "measured": [_choice(at, base, advice.objective) for at in advice.measured],
        "caps": None if caps is None else [point.row() for point in caps.points],
    }


def _note(note: Note) -> Row:
    kernels = list(note.kernels) or "all"
    return {"code": note.code, "severity": note.severity, "kernels": kernels, "text": note.text}


def _choice(at: Setting, base: Setting, objective: str, cap_w: float | None = None) -> Row:
    former, settings = base.config.as_dict(), at.config.as_dict()
    changed = {axis: value for axis, value in settings.items() if value != former[axis]}
    row = {
        "set": changed if cap_w is None else {"power_cap_w": cap_w},
        "at": settings,
        **_effect(at, base, objective),
    }
    if objective == "clock":
        row["clock_reduction_percent"] = 100 * (1 - settings["engine_mhz"] / former["engine_mhz"])
    return row


def _effect(at: Setting, base: Setting, objective: str) -> Row:
    """What becomes of time, power and energy, as [value, low, high]."""
    slower, saved = at.slowdown_range or (None, None), at.saving_range or (None, None)
    low, high = (None if end is None else -end for end in reversed(saved))
    is_ranged = {"energy": objective == "energy", "power": objective == "power"}
    row: Row = {"slowdown_percent": [at.slowdown_percent, *slower]}
    for name in ("energy", "power"):
        unit = {"energy": "energy_mj", "power": "power_w"}[name]
        here, there = getattr(at, unit), getattr(base, unit)
        ends = (low, high) if is_ranged[name] else (None, None)
        known = here is not None and there is not None
        row[f"{name}_percent"] = [100 * (here / there - 1), *ends] if known else None
    times = [None if end is None else base.time_ms * (1 + end / 100) for end in slower]
    row["time_ms"] = [at.time_ms, *times]
    for unit in ("power_w", "energy_mj"):
        here = getattr(at, unit)
        row[unit] = None if here is None else [here, None, None]
    return row


def _kernels(kernels: Sequence[Recommendation], objective: str) -> list[Row]:
    """A row for each kernel, largest share first."""
    largest_first = sorted(kernels, key=lambda kernel: -(kernel.share_percent or 0.0))
    return [
        {
            "number": number,
            "kernel": kernel.kernel,
            "short": shortened(kernel.kernel or ""),
            "share_percent": kernel.share_percent,
            "launches": kernel.launches,
            "at_answer": _effect(kernel.in_run or kernel.best, kernel.base, objective),
            "best": _choice(kernel.best, kernel.base, objective),
        }
        for number, kernel in enumerate(largest_first, start=1)
    ]
