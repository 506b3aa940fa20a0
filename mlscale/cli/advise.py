"""What sets an advice: the clocks or a power cap, and the commands of the GPU's vendor.

The advice as a table for a terminal.

mlscale advise: the configuration to set for a run, and for each of its kernels.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mlscale.advice.advise import advise
from mlscale.advice.document import kernel_document, run_document
from mlscale.advice.objectives import SAME, objective_name, slowdown_percent
from mlscale.advice.search import WHOLE_RUN, Advice, OperatingPoint, Recommendation, Row
from mlscale.advice.verdict import cap_verdict, verdict
from mlscale.cli import options, outputs, subject
from mlscale.cli.text import (
    AXIS_HEADINGS,
    columns,
    csv_text,
    flag_lines,
    interval_cell,
    json_text,
    kept_warnings,
    kernel_names,
    print_or_write,
    print_warnings,
    setting_cells,
    warning_lines,
    without_empty,
)
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import BOUNDED, run_in_sequence
from mlscale.errors import extra_named
from mlscale.model.model import Model
from mlscale.model.predictions import INTERVAL
from mlscale.text import number, share_in_percent

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice, CapPoint
    from mlscale.advice.commands import Commands
    from mlscale.cli.second_run import SecondRun


@dataclass(frozen=True)
class Levers:
    """What the user asked for beside the clocks; None for what was not asked for."""

    lever: str
    caps: "CapAdvice | None"
    commands: "Commands | None"

    @property
    def is_cap(self) -> bool:
        """Whether the verdict is about a power cap."""
        return self.lever == "cap"

    def document(self, advice: Advice) -> Row:
        """Return what JSON has of it, with the verdict of a cap in place of the clocks'."""
        document: Row = {"lever": self.lever}
        if self.caps:
            best = self.caps.best
            document["power_caps"] = [point.row() for point in self.caps.points]
            document["best_power_cap"] = best and best.row()
            document["power_caps_save"] = self.caps.saved
            document["warnings"] = [*advice.warnings, *self.caps.warnings]
            if self.is_cap:
                document["verdict"] = cap_verdict(self.caps, advice)
        if self.commands:
            named = {"set": self.commands.to_set, "reset": self.commands.to_reset}
            document["commands"] = {**named, "notes": self.commands.notes}
        return document

    def text(self, advice: Advice) -> str:
        """Return what a terminal shows of it, with the verdict of a cap first."""
        parts = []
        if self.caps:
            if self.is_cap:
                parts.append(f"{cap_verdict(self.caps, advice)}\n")
            if self.caps.warnings:
                parts.append("".join(warning_lines(self.caps.warnings)))
            parts.append(_cap_table(self.caps))
            if self.is_cap:
                flags = flags_of_kernels(advice)
                notes = "".join(flag_lines(flags, MOST_KERNELS) + warning_lines(advice.warnings))
                parts += [notes] if notes else []
        if self.commands:
            parts.append(_commands_text(self.commands))
        return "\n".join(parts)


def read(arguments: argparse.Namespace, model: Model, profiles: Profiles, advice: Advice) -> Levers:
    """What the options ask for, of the run that the advice is for. Raises InputError."""
    lever, caps, commands = arguments.lever, None, None
    if (cap_w := options.caps_asked(arguments)) is not None:
        from mlscale.advice.caps import caps_of_run

        caps = caps_of_run(model, profiles, advice, cap_w, arguments.minimize, lever == "cap")
    if arguments.commands:
        from mlscale.advice.commands import commands_for_cap, commands_for_clocks

        if lever == "cap" and caps:
            commands = commands_for_cap(caps, model.device, profiles.metadata)
        else:
            commands = commands_for_clocks(advice, model.device, profiles.metadata)
    return Levers(lever, caps, commands)


def _cap_table(caps: "CapAdvice") -> str:
    """Return the run under each cap for a terminal."""
    headers = ["cap W", "engine MHz", "time ms", "power W", "energy mJ", "time %", INTERVAL]
    headers += ["saves %", INTERVAL, ""]
    lines = [_cells(point, point == caps.best) for point in caps.points]
    table = columns(*without_empty(headers, lines))
    text = f"The run under power caps{caps.limits.under()}:\n{table}\n"
    saved = objective_name(caps.saved)
    return text + f"\nsaves % is of {saved}; engine MHz and power W are means over the run\n"


def _cells(point: "CapPoint", is_best: bool) -> list[str]:
    notes = ", ".join(["best", *point.flags] if is_best else point.flags)
    run = point.run
    if run is None:
        return [f"{point.cap_w:g}", *["-"] * 5, "", "-", "", notes]
    return [
        f"{point.cap_w:g}",
        f"{run.engine_mhz:.0f}",
        *map(number, (run.time_ms, run.power_w, run.energy_mj)),
        f"{run.slowdown_percent:+z.1f}",
        interval_cell(run.slowdown_range),
        f"{run.saving_percent:z.1f}",
        interval_cell(run.saving_range),
        notes,
    ]


def _commands_text(commands: "Commands") -> str:
    """Return the commands for a terminal."""
    parts = []
    for title, lines in (("To set it:", commands.to_set), ("To reset it:", commands.to_reset)):
        if lines:
            parts.append("\n".join([title, *(f"  {line}" for line in lines)]))
    return "\n".join([*parts, *(f"note: {note}" for note in commands.notes)]) + "\n"


MOST_KERNELS = 10  # that have a line of their own
MOST_POINTS = 12  # of a front
MOST_CLOCKS = 6  # of bounds
_OF_KERNELS = (
    "; a kernel's numbers are of one launch\nat its own best, in run % is its time at the best of "
    "the whole run"
)


def advice_table(advice: Advice, device: str, base: HardwareConfig) -> str:
    """Return the verdict, the best configurations, the front, flags and warnings."""
    largest, others = _by_share(advice)
    if advice.is_bounded and not advice.run.is_one_launch:  # alike for all kernels
        largest, others = [], []
    has_saving = advice.objective != "clock"
    of_time, of_saving = _interval_headings(advice)
    headers = ["kernel", "share %", *AXIS_HEADINGS, *_costs(advice), "time %", of_time]
    if has_saving:
        headers += ["saves %", of_saving]
    headers.append("in run %")
    names = kernel_names(kernel.kernel or "" for kernel in (*largest, *others))
    lines = [_line(names[kernel.kernel or ""], kernel, advice) for kernel in largest]
    if others:
        lines.append(_line_of_others(others, headers, advice))
    if not advice.run.is_one_launch:
        lines.append(_line(WHOLE_RUN, advice.whole_run, advice))
    least = f"Least {objective_name(advice.objective)}" if has_saving else "Lowest engine clock"
    text = f"{verdict(advice)}\n\n{least}{advice.limits.under()}:\n"
    text += columns(*without_empty(headers, lines))
    percents = "time % and saves % are" if has_saving else "time % is"
    text += f"\n\nbase {base} on {device}; {percents} against it"
    if largest and not advice.run.is_one_launch:
        text += _OF_KERNELS
    if advice.is_bounded:
        text += f"; times are the longest that they can be{_over_clocks(advice)}"
    else:
        text += _front(advice)
    text += _measured(advice)
    flags = flags_of_kernels(advice)
    notes = flag_lines(flags, most=MOST_KERNELS)
    notes += [f"flag: {WHOLE_RUN}: {flag}\n" for flag in advice.whole_run.flags]
    notes += warning_lines(advice.warnings)
    return f"{text}\n\n{''.join(notes)}" if notes else f"{text}\n"


def _interval_headings(advice: Advice) -> tuple[str, str]:
    """How tables head the ends of time, and those of what is saved, in which power may be."""
    of_time = "bounds" if advice.is_bounded else INTERVAL
    return of_time, of_time if advice.objective == "time" else INTERVAL


def flags_of_kernels(advice: Advice) -> dict[str, tuple[str, ...]]:
    """The flags by kernel, those of most time first, without the one that the verdict says."""
    return {
        kernel.kernel or "": tuple(flag for flag in kernel.flags if flag != BOUNDED)
        for kernel in sorted(advice.kernels, key=_percent, reverse=True)
    }


def _by_share(advice: Advice) -> tuple[list[Recommendation], list[Recommendation]]:
    """The kernels of most time, and the others. One other has the line that it would be told in."""
    ordered = sorted(advice.kernels, key=_percent, reverse=True)
    count = MOST_KERNELS if len(ordered) > MOST_KERNELS + 1 else len(ordered)
    return ordered[:count], ordered[count:]


def _percent(of: Recommendation) -> float:
    return 100.0 if of.share is None else of.share.percent


def _line(name: str, of: Recommendation, advice: Advice) -> list[str]:
    has_share = of.share is not None and not advice.run.is_one_launch
    percent = "" if advice.run.is_one_launch else share_in_percent(_percent(of) / 100)
    slowdown = [f"{of.slowdown_percent:+z.1f}", interval_cell(of.slowdown_range)]
    cells = [name, percent, *_advice_table_cells(of.best), *slowdown]
    if advice.objective != "clock":
        cells += [f"{of.saving_percent:z.1f}", interval_cell(of.saving_range)]
    most = advice.limits.max_slowdown_percent
    is_slower = has_share and most is not None and of.slowdown_in_run_percent > most + SAME
    in_run = f"{of.slowdown_in_run_percent:+z.1f}" if has_share else ""
    if is_slower:
        in_run += ", above the limit"
    return [*cells, in_run]


def _line_of_others(
    others: Sequence[Recommendation], headers: Sequence[str], advice: Advice
) -> list[str]:
    """A line that sums up the kernels that have none of their own."""
    percent = sum(map(_percent, others))
    slowdown = sum(_percent(kernel) * kernel.slowdown_in_run_percent for kernel in others) / percent
    cells = dict.fromkeys(headers, "-") | dict.fromkeys(_interval_headings(advice), "")
    cells |= {"kernel": f"and {len(others)} others", "share %": share_in_percent(percent / 100)}
    cells["in run %"] = f"{slowdown:+z.1f}"
    return [cells[header] for header in headers]


def _front(advice: Advice) -> str:
    """The front of the whole run, of a long one a few points, the best and the base among them."""
    run = advice.whole_run
    if not run.front:
        return ""
    places = set(np.linspace(0, len(run.front) - 1, MOST_POINTS).round().tolist())
    points = list(run.front)
    if len(points) > MOST_POINTS:
        ends = (run.best, run.base)
        points = [p for place, p in enumerate(points) if place in places or p in ends]
    more = ["all its points"] if len(points) < len(run.front) else []
    if not advice.run.is_one_launch:
        more.append("each kernel's")
    of_run = "" if advice.run.is_one_launch else " of the whole run"
    note = f" ({' and '.join(more)} with --format csv)" if more else ""
    marks = [", ".join(n for n in ("best", "base") if p == getattr(run, n)) for p in points]
    lines = [[*_advice_table_cells(point), mark] for point, mark in zip(points, marks, strict=True)]
    table = columns([*AXIS_HEADINGS, *_costs(advice), ""], lines)
    return f"\n\nPareto front of time and energy{of_run}{note}:\n{table}"


def _over_clocks(advice: Advice) -> str:
    """The whole run at a few engine clocks: time between its bounds, and power."""
    run, time, power = advice.whole_run, advice.held["time"], advice.held.get("power")
    shares = [kernel.share for kernel in advice.kernels]
    launches = np.array([share.launches if share else 1.0 for share in shares])
    c, base, m = time.grid.index(run.base.config)
    best = time.grid.index(run.best.config)[1]
    headers = ["engine MHz", "time ms from", "to"]
    sides = [
        run_in_sequence(of, None, launches)[0] for of in (time.low, time.high) if of is not None
    ]
    if power:
        headers += ["power W", INTERVAL]
        ends = (power.values, power.low, power.high)
        sides += [run_in_sequence(time.values, of, launches)[1] for of in ends if of is not None]
    lines = []
    for e in _few(len(time.grid.engine_mhz), {base, best}):
        cells = [number(float(of[c, e, m])) for of in sides]
        between = [" to ".join(cells[3:])] if power else []
        mark = ", ".join(name for name, of in (("best", best), ("base", base)) if of == e)
        lines.append([f"{time.grid.engine_mhz[e]:g}", *cells[:3], *between, mark])
    power_too = ", and power at the longest time" if power else ""
    table = columns([*headers, ""], lines)
    return f"\n\nTime between its bounds{power_too}:\n{table}"


def _few(count: int, own: set[int]) -> list[int]:
    """At most MOST_CLOCKS of so many places, evenly spaced but for those of one's own."""
    places = set(np.linspace(0, count - 1, min(count, MOST_CLOCKS)).round().astype(int).tolist())
    for place in own - places:
        inner = places - own - {0, count - 1}
        places -= {min(inner, key=lambda other: abs(other - place))}
        places |= {place}
    return sorted(places)


def _measured(advice: Advice) -> str:
    """The whole run as it was measured at the further points; nothing without any."""
    headers = [*AXIS_HEADINGS, "time ms", "power W", "energy mJ", "time %"]
    lines = []
    for at in advice.measured:
        costs = [
            "" if cost is None else number(cost) for cost in (at.time_ms, at.power_w, at.energy_mj)
        ]
        slowdown = float(slowdown_percent(at.time_ms, advice.whole_run.base.time_ms))
        lines.append([*setting_cells(at.config), *costs, f"{slowdown:+z.1f}"])
    table = columns(*without_empty(headers, lines))
    return f"\n\nMeasured at further configurations:\n{table}" if lines else ""


def _costs(advice: Advice) -> list[str]:
    """The headers of what an operating point costs."""
    best = advice.whole_run.best
    costs = {"time ms": best.time_ms, "power W": best.power_w, "energy mJ": best.energy_mj}
    return [header for header, cost in costs.items() if cost is not None]


def _advice_table_cells(point: OperatingPoint) -> list[str]:
    costs = (point.time_ms, point.power_w, point.energy_mj)
    return setting_cells(point.config) + [number(cost) for cost in costs if cost is not None]


FORMATS = ("table", "csv", "json")
_EXAMPLES = """\
examples, of an export of ncu, two logs of nvidia-smi, a training step, two traces:
  mlscale advise ncu.csv --max-slowdown 5
  mlscale advise fast.csv --also slow.csv --commands
  mlscale advise ncu.csv trace.json.gz --power power.csv
  mlscale advise fast.sqlite --base engine=1980,memory=2619 --also slow.sqlite@engine=1335
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    options.add_subject(parser)
    options.add_goal(parser)
    outputs.add_output_of_format(parser, FORMATS)
    options.add_fleet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Advise and print or write. Raises InputError."""
    if options.is_of_fleet(arguments):
        with extra_named("a fleet", "study"):
            from mlscale.cli import fleet
        fleet.advise(arguments)
        return
    form = outputs.format_of_output(arguments, FORMATS)
    limits = options.read_limits(arguments)
    with kept_warnings() as told:
        of = subject.read(subject.asked(arguments, arguments.weights))
    model, profiles, notes = of.model, of.profiles, (*(told if form == "json" else ()), *of.notes)
    advice = advise(model, profiles, arguments.minimize, limits, arguments.static_power)
    advice = replace(advice, warnings=(*notes, *advice.warnings))
    asked = read(arguments, model, profiles, advice)
    further = None
    if advice.is_bounded:
        from mlscale.cli.second_run import second_run

        further = second_run(arguments, of.files[0], profiles)
    text = _advice_text(model, advice, form, asked, further)
    print_or_write(text, arguments.output)


def _advice_text(
    model: Model, advice: Advice, form: str, asked: Levers, further: "SecondRun | None"
) -> str:
    """Return the advice as a table, CSV or JSON; what CSV has no place for goes to stderr.

    further: the run that it asks for, if any.
    """
    if form == "json":
        kernels = [kernel_document(kernel) for kernel in advice.kernels]
        document = {**run_document(model, advice), "kernels": kernels, **asked.document(advice)}
        return json_text(document | ({"second_run": further.document()} if further else {}))
    if form == "table":
        clocks = "" if asked.is_cap else advice_table(advice, model.device, model.base)
        parts = [clocks, asked.text(advice), further.text() if further else ""]
        return "\n".join(filter(None, parts))
    of_caps = asked.caps.warnings if asked.caps else ()
    of_further = [further.warning()] if further else []
    print_warnings([*advice.warnings, *of_caps, *of_further])
    if asked.is_cap and asked.caps:
        return csv_text([p.row() | {"flags": "; ".join(p.flags)} for p in asked.caps.points])
    return csv_text(advice.rows())
