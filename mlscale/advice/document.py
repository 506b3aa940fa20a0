"""The document of an answer, schema 1: one for the terminal, CSV, JSON, the page and Python.

`schema.json` describes it as JSON Schema does, docs/reference/json.md in words. A value with its
interval is [value, low, high]; what is not known is None.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from mlscale import __version__
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Interval, Recommendation, Row, Setting
from mlscale.advice.sureness import Grounds, level, reasons
from mlscale.data.grid import HardwareConfig
from mlscale.data.surfaces import BOUNDS
from mlscale.model.predictions import COVERAGE
from mlscale.notes import Note, note_rows, notes_by_kernel
from mlscale.text import short_names

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice, CapPoint
    from mlscale.advice.commands import Commands
    from mlscale.advice.server import ServerAdvice

SCHEMA = 1


@dataclass(frozen=True)
class NextStep:
    """What would make an answer surer: a line of text, and the commands of a further run, if any.

    engine_mhz: of that run, where commands can tell how to make it.
    """

    text: str
    engine_mhz: int | None = None
    commands: tuple[str, ...] = ()


def document(
    advice: Advice,
    model: str,
    caps: "CapAdvice | None" = None,
    lever: str = "clock",
    notes: Iterable[Note] = (),
    commands: "Commands | None" = None,
    next_step: NextStep | None = None,
) -> Row:
    """An advice as JSON values.

    model: its name. caps: the run under power caps; lever: 'clock', or 'cap' where the answer is
    the best of them. notes: on the files and the choice of the model, before those of the advice.
    """
    run, is_cap = advice.whole_run, lever == "cap" and caps is not None
    has_reduction = advice.objective == "clock" and not is_cap
    base = run.base
    why = advice.sure_why_cap if is_cap else advice.sure_why
    row: Row = {
        **_head(model, advice.device, _base(base.config)),
        "objective": caps.objective if is_cap and caps else advice.objective,
        "limits": asdict(caps.limits if is_cap and caps else advice.limits),
        "coverage": COVERAGE,
        "run": {
            "kernels": advice.workload.kernels,
            "launches": advice.workload.launches,
            "gpu_count": advice.workload.gpu_count,
            **_costs(base),
            "counters_cover_percent": advice.workload.counters_cover_percent,
            "is_bounded": advice.is_bounded,
        },
        "answer": choice(run.best, base, has_reduction),
        "expected": choice(run.expected, base, has_reduction) if run.expected else None,
        "menu": [
            {"max_slowdown_percent": offer.max_slowdown_percent, **choice(offer.best, base)}
            for offer in advice.menu
        ]
        or None,
        **_sure(why),
        "notes": _notes(notes, advice, caps),
        **_steps(commands, next_step),
        "kernels": [] if is_cap else _kernels(advice.kernels, has_reduction),
        "front": [choice(setting, base, has_reduction) for setting in run.front],
        "measured": [choice(setting, base, has_reduction) for setting in advice.measured],
        "caps": [_cap_row(point, caps) for point in caps.points] if caps else None,
    }
    return {**row, **cap_answer(caps, row["base"])} if is_cap and caps else row


def capped_document(
    caps: "CapAdvice",
    notes: Iterable[Note] = (),
    commands: "Commands | None" = None,
    next_step: NextStep | None = None,
) -> Row:
    """As `document`, of runs that were read under caps, of whose clocks nothing is known."""
    why = reasons(Grounds(caps.device, power_readings=2, has_clock=False))
    row: Row = {
        **_head(None, caps.device or None, _at(caps.at_base.config)),
        "objective": caps.objective,
        "limits": asdict(caps.limits),
        "coverage": COVERAGE,
        "run": {
            "kernels": 1,
            "launches": None,
            "gpu_count": caps.runs.supply.gpu_count,
            **_costs(caps.at_base),
            "counters_cover_percent": 100.0,
            "is_bounded": False,
        },
        "answer": None,
        "expected": None,
        "menu": None,
        **_sure(why),
        "notes": _notes(notes, None, caps),
        **_steps(commands, next_step),
        "kernels": [],
        "front": [],
        "measured": [],
        "caps": [_cap_row(point, caps) for point in caps.points],
    }
    return {**row, **cap_answer(caps, row["base"])}


def server_document(
    advice: "ServerAdvice", notes: Iterable[Note] = (), commands: "Commands | None" = None
) -> Row:
    """As `document`, of an LLM server: times and energies are of RATED_UNITS output tokens."""
    best, expected = advice.best(is_sure=True), advice.best()
    expected = None if expected is best else expected
    result, log, base = advice.base.result, advice.base.log, advice.setting(advice.at_base)
    lacks_capacity = advice.is_open and advice.clocks[0]["capacity_share"] is None
    why = ["S10"] * bool(advice.withheld) + ["S09"] * lacks_capacity
    why += reasons(Grounds(log.device, is_law=True, power_readings=2))
    run: Row = {"kernels": 1, "launches": None, "gpu_count": log.gpu_count}
    run |= {"counters_cover_percent": 100.0, "is_bounded": False}
    return {
        **_head("runs", log.device, _at(base.config)),
        "objective": "energy",
        "limits": asdict(Limits()),
        "coverage": COVERAGE,
        "run": run | _costs(base),
        "answer": choice(advice.setting(best), base) if best else None,
        "expected": choice(advice.setting(expected), base) if expected else None,
        "menu": None,
        "caps": None,
        **_sure(why),
        "notes": note_rows([*notes, *advice.notes]),
        **_steps(commands, None),
        "kernels": [],
        "front": [],
        "measured": [choice(advice.setting(c), base) for c in advice.clocks if c["is_measured"]],
        "server": {
            "load": "open" if advice.is_open else "closed",
            "request_per_s": result.request_per_s,
            "rate_per_s": _known(result.rate_per_s) if advice.is_open else None,
            "clients": result.clients,
            "requests": result.completed,
            "pool": advice.pool,
            "limits": [{"latency": slo.name, "limit_ms": ms} for slo, ms in advice.limits],
            "withheld": advice.withheld or None,
            "clocks": advice.clocks,
        },
    }


# Settings.


def choice(at: Setting, base: Setting, has_reduction: bool = False) -> Row:
    """A setting, in what it differs from the base, and what becomes of the run there.

    has_reduction: whether to tell how much lower the engine clock is.
    """
    former = base.config.as_dict()
    changed = {axis: step for axis, step in at.config.as_dict().items() if step != former[axis]}
    row: Row = {"set": changed, "at": _at(at.config), **effect(at, base)}
    if has_reduction:
        row["clock_reduction_percent"] = 100 * (1 - at.config.engine_mhz / base.config.engine_mhz)
    return row


def effect(at: Setting, base: Setting) -> Row:
    """What becomes of a kernel or the run: changes against the base [%], and what it costs."""
    power, energy = (
        _with_ends(at.power_w, at.power_range),
        _with_ends(at.energy_mj, at.energy_range),
    )
    return {
        "slowdown_percent": _with_ends(at.slowdown_percent, at.slowdown_range),
        "energy_percent": _change(energy, base.energy_mj),
        "power_percent": _change(power, base.power_w),
        "time_ms": _with_ends(at.time_ms, at.time_range),
        "power_w": power,
        "energy_mj": energy,
    }


def _with_ends(value: float | None, ends: Interval) -> list[float | None] | None:
    """[value, low, high]; None for one that is not known, as for ends that are open."""
    known = _known(value)
    return None if known is None else [known, *map(_known, ends or (None, None))]


def _change(values: Sequence[float | None] | None, base: float | None) -> list[float | None] | None:
    """By how many percent values differ from the base's."""
    if values is None or not base:
        return None
    return [None if value is None else 100 * (value / base - 1) for value in values]


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _at(config: HardwareConfig) -> Row:
    """The settings, None for those that nobody knows."""
    return {axis: _known(step) or None for axis, step in config.as_dict().items()}


def _base(config: HardwareConfig) -> Row:
    """The settings, and what stands for CUs where that is something else."""
    return _at(config) | ({"cu_axis": config.cu_axis} if config.cu_axis else {})


def _costs(at: Setting) -> Row:
    return {"time_ms": at.time_ms, "power_w": at.power_w, "energy_mj": at.energy_mj}


# Parts of the document.


def _head(model: str | None, device: str | None, base: Row) -> Row:
    names = {"schema": SCHEMA, "mlscale": __version__, "model": model, "device": device}
    return {**names, "base": base}


def _sure(codes: Sequence[str]) -> Row:
    return {"sure": level(codes), "sure_why": list(codes)}


def _steps(commands: "Commands | None", step: NextStep | None) -> Row:
    """What to do next, and what sets the answer."""
    return {
        "next": step.text if step else None,
        "next_commands": list(step.commands) if step and step.commands else None,
        "commands": {
            "set": list(commands.to_set),
            "reset": list(commands.to_reset),
            "notes": list(map(str, commands.notes)),
        }
        if commands
        else None,
    }


def _kernels(kernels: Sequence[Recommendation], has_reduction: bool) -> list[Row]:
    """The kernels, those of most time first."""
    in_order = sorted(kernels, key=lambda kernel: kernel.share_percent or 0.0, reverse=True)
    short = short_names([kernel.kernel or "" for kernel in in_order])
    return [
        {
            "number": number,
            "kernel": kernel.kernel,
            "short": short[kernel.kernel or ""],
            "share_percent": kernel.share_percent,
            "launches": kernel.launches,
            "at_answer": effect(kernel.in_run, kernel.base) if kernel.in_run else None,
            "best": choice(kernel.best, kernel.base, has_reduction),
        }
        for number, kernel in enumerate(in_order, start=1)
    ]


def _cap_row(point: "CapPoint", caps: "CapAdvice") -> Row:
    """A cap, the run under it, None where that cannot be said, and why."""
    return {
        "cap_w": point.cap_w,
        **_cap_choice(point, caps),
        "time_per_power": _known(point.time_per_power),
        "power_per_clock": _known(point.power_per_clock),
        "can_be_set": point.can_be_set,
        "flags": list(map(str, point.flags)),
    }


def _cap_choice(point: "CapPoint", caps: "CapAdvice") -> Row:
    base = caps.at_base
    nothing = dict.fromkeys(["at", *effect(base, base)])
    known = {"at": _at(point.run.config), **effect(point.run, base)} if point.run else nothing
    unlocked = {"engine_mhz": None} if point.unlocks else {}
    return {"set": {"power_cap_w": point.cap_w, **unlocked}, **known}


def cap_answer(caps: "CapAdvice", base: Row) -> Row:
    """What differs in a document whose answer is a cap: the best, or the base where none helps."""
    best = caps.best if caps.best and caps.best.run else None
    answer = _cap_choice(best, caps) if best else None
    stay = {"set": {}, "at": base, **effect(caps.at_base, caps.at_base)}
    if best and not caps.helps:
        answer = stay
    has_expected = caps.expected is not None and caps.expected.run is not None
    return {
        "base": {**base, "power_cap_w": caps.runs.now_w},
        "answer": answer,
        "expected": _cap_choice(caps.expected, caps) if caps.expected and has_expected else None,
        "menu": [
            {"max_slowdown_percent": most, **(_cap_choice(point, caps) if point else stay)}
            for most, point in caps.menu
        ]
        or None,
    }


# Notes.


def _notes(notes: Iterable[Note], advice: Advice | None, caps: "CapAdvice | None") -> list[Row]:
    """All notes, each once: of the files, the answer, and the kernels, those of most time first."""
    told = [*notes]
    if advice is not None:
        told += [*advice.warnings, *advice.whole_run.flags]
    told += [*_below_readings(caps), *_better_lock(caps), *caps.warnings] if caps else []
    if advice is not None:
        kernels = sorted(advice.kernels, key=lambda one: one.share_percent or 0.0, reverse=True)
        flags = {
            one.kernel or "": [flag for flag in one.flags if flag not in BOUNDS] for one in kernels
        }
        told += notes_by_kernel(flags)
    return note_rows(told)


def _below_readings(caps: "CapAdvice") -> list[Note]:
    """That the best cap, or without any the expected one, is below what any reading drew."""
    from mlscale.advice.caps import BELOW_READINGS

    point = caps.best if caps.best and caps.helps else caps.expected
    if point is None or BELOW_READINGS not in point.flags:
        return []
    told = (
        f"a cap of {point.cap_w:g} W is {BELOW_READINGS}, {caps.runs.supply.least_w:.0f} W: there "
        "less is known; measure the run under this cap: --also FILE"
    )
    return [Note("P03", told, "warning")]


def _better_lock(caps: "CapAdvice") -> list[Note]:
    """That a locked clock is better than the best cap, and why; nothing where it is not.

    Where no clock is known, how steep the run is there.
    """
    if caps.best is None or not caps.helps or not caps.best.steep:
        return []
    if caps.lock_mhz is None:
        return [Note("P03", f"at this cap {caps.best.steep}")]
    clock = f"the engine clock at {caps.lock_mhz:g} MHz"
    return [Note("P03", f"better lock {clock} in its place: there {caps.best.steep}", "warning")]
