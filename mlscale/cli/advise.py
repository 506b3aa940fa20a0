"""mlscale advise: the configuration to set for a run, and for each of its kernels."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mlscale.advice.advise import advise
from mlscale.advice.objectives import SAME, Limits, objective_name
from mlscale.advice.recommendation import WHOLE_RUN, Advice, Recommendation, Row, Setting
from mlscale.advice.verdict import cap_verdict, run_document, verdict
from mlscale.cli import capped, options, outputs, subject
from mlscale.cli.parser import Parser
from mlscale.cli.text import (
    axis_headings,
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
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import BOUNDED, BOUNDED_BY_COUNT, run_in_sequence
from mlscale.errors import extra_named
from mlscale.model.model import Model
from mlscale.model.predictions import INTERVAL
from mlscale.notes import Note
from mlscale.text import number, share_in_percent

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice, CapPoint
    from mlscale.advice.commands import Commands
    from mlscale.cli.further_run import FurtherRun

FORMATS = ("table", "csv", "json")
MOST_KERNELS = 10  # that have a line of their own
MOST_POINTS = 12  # of a front
MOST_CLOCKS = 6  # of bounds
MOST_CAPS, SPACED_CAPS = 12, 4  # in a table; of those, evenly spaced where there are more
COST_HEADINGS = ("time ms", "power W", "energy mJ")

_EXAMPLES = """\
examples, of a profile of ncu, two logs of nvidia-smi, a training step:
  mlscale advise ncu.csv --max-slowdown 5
  mlscale advise fast.csv --also slow.csv --commands
  mlscale advise ncu.csv trace.json.gz --power power.csv
"""


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    options.add_goal(parser)
    options.add_subject(parser)
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
    if capped.is_asked(arguments):
        _advise_capped(arguments, limits, form)
        return
    with kept_warnings() as told:
        read = subject.read(subject.asked(arguments, arguments.weights))
    model, profiles = read.model, read.profiles
    if arguments.lever == "cap":
        from mlscale.advice.caps import require_other_clock

        require_other_clock(profiles)
    advice = advise(model, profiles, arguments.minimize, limits, arguments.static_power)
    notes = (*(told if form == "json" else ()), *read.notes)
    advice = replace(advice, warnings=(*notes, *advice.warnings))
    caps = _caps(arguments, model, profiles, advice)
    is_cap = arguments.lever == "cap"
    commands = further = None
    if arguments.commands:
        from mlscale.advice.commands import commands_for_cap, commands_for_clocks

        if caps and is_cap:
            commands = commands_for_cap(caps, profiles.metadata)
        else:
            commands = commands_for_clocks(advice, profiles.metadata)
    if model.lead.name == "board":
        from mlscale.cli.further_run import further_run

        best = (
            advice.whole_run.best if not is_cap else caps.best.run if caps and caps.best else None
        )
        further = further_run(arguments, read.files[0], profiles, advice, best)
    if form == "json":
        text = json_text(document(advice, arguments.lever, caps, commands, further))
    elif form == "table":
        text = text_of(advice, arguments.lever, caps, commands, further)
    else:
        print_warnings([*advice.warnings, *(caps.warnings if caps else ())])
        print_warnings([further.warning()] if further else [])
        rows = advice.rows()
        if caps and is_cap:
            rows = _cap_rows(caps)
        text = csv_text(rows)
    print_or_write(text, arguments.output)


def _cap_rows(caps: "CapAdvice") -> list[Row]:
    """A row for each cap, as CSV has them."""
    return [point.row() | {"flags": "; ".join(point.flags)} for point in caps.points]


def _advise_capped(arguments: argparse.Namespace, limits: Limits, form: str) -> None:
    """Advise on a cap from runs under caps, whose clock no file tells. Raises InputError."""
    from mlscale.advice.capped_runs import advise_capped
    from mlscale.advice.commands import commands_for_cap

    with kept_warnings() as told:
        run = capped.read(arguments)
    cap_w = options.caps_asked(arguments) or ()
    caps = advise_capped(run.readings, run.device, cap_w, arguments.minimize, limits)
    if form == "json":
        caps = replace(caps, warnings=(*told, *caps.warnings))
        text = json_text(capped.document(caps))
    elif form == "table":
        parts = [f"{cap_verdict(caps)}\n", cap_table(caps), "".join(warning_lines(caps.warnings))]
        parts += [_commands_text(commands_for_cap(caps, {}))] if arguments.commands else []
        text = "\n".join(filter(None, parts))
    else:
        print_warnings(caps.warnings)
        text = csv_text(_cap_rows(caps))
    print_or_write(text, arguments.output)


def _caps(
    arguments: argparse.Namespace, model: Model, profiles: Profiles, advice: Advice
) -> "CapAdvice | None":
    """The run under power caps, where they are asked for. Raises InputError."""
    cap_w, objective = options.caps_asked(arguments), arguments.minimize
    if cap_w is None:
        return None
    from mlscale.advice.caps import advise_caps

    if objective == "clock" and arguments.lever != "cap":  # says nothing of caps
        objective = None
    return advise_caps(
        model,
        profiles,
        cap_w,
        objective,
        advice.limits,
        advice.static_power_w,
        advice.surfaces,
    )


def document(
    advice: Advice,
    lever: str,
    caps: "CapAdvice | None" = None,
    commands: "Commands | None" = None,
    further: "FurtherRun | None" = None,
) -> Row:
    """The advice as JSON values.

    lever: 'clock' or 'cap', what the verdict is of. caps, commands, further: the run under power
    caps, what sets the advice, and the run that it asks for, if any.
    """
    document: Row = {
        **run_document(advice),
        "kernels": [kernel.kernel_row() for kernel in advice.kernels],
        "lever": lever,
    }
    if caps:
        document |= caps.document()
        document["warnings"] += map(str, caps.warnings)
        if lever == "cap":
            document["verdict"] = cap_verdict(caps, advice)
    if commands:
        document["commands"] = {
            "set": commands.to_set,
            "reset": commands.to_reset,
            "notes": commands.notes,
        }
    if further:
        document["second_run" if advice.is_bounded else "third_run"] = further.document()
    return document


def text_of(
    advice: Advice,
    lever: str,
    caps: "CapAdvice | None" = None,
    commands: "Commands | None" = None,
    further: "FurtherRun | None" = None,
) -> str:
    """The advice for a terminal, as `document`; of a cap without what clocks do."""
    parts = [] if lever == "cap" else [advice_table(advice)]
    if caps:
        is_lever = lever == "cap"
        parts += [f"{cap_verdict(caps, advice)}\n"] if is_lever else []
        parts += ["".join(warning_lines(caps.warnings))] if caps.warnings else []
        parts.append(cap_table(caps))
        if is_lever:
            lines = flag_lines(_flags(advice), MOST_KERNELS) + warning_lines(advice.warnings)
            parts.append("".join(lines))
    if commands:
        parts.append(_commands_text(commands))
    if further:
        parts.append(further.text())
    return "\n".join(filter(None, parts))


def cap_table(caps: "CapAdvice") -> str:
    """The run under the caps for a terminal; of many the ends, those about the best, and a few."""
    headers = ["cap W", "engine MHz", *COST_HEADINGS, "time %", INTERVAL, "saves %", INTERVAL, ""]
    shown = _few_caps(caps)
    table = columns(*without_empty(headers, [_cap_cells(point, caps) for point in shown]))
    more = len(caps.points) - len(shown)
    untold = f"; {more} more caps with --lever cap --format csv" if more else ""
    has_clock = not np.isnan(caps.at_base.config.engine_mhz)
    return (
        f"The run under power caps{caps.limits.under()}:\n{table}\n\nsaves % is of "
        f"{objective_name(caps.saved)}; {'engine MHz and ' * has_clock}power W "
        f"{'are means' if has_clock else 'is the mean'} over the run{untold}\n"
    )


def _few_caps(caps: "CapAdvice") -> list["CapPoint"]:
    """Some of the caps: both ends, those about the best and the expected, others evenly spaced."""
    points = caps.points
    if len(points) <= MOST_CAPS:
        return list(points)
    told = [place for place, point in enumerate(points) if point.run] or [0]
    shown = {0, *np.linspace(told[0], len(points) - 1, SPACED_CAPS).round().astype(int).tolist()}
    for chosen, reach in ((caps.best, 2), (caps.expected, 1)):
        if chosen is not None:
            place = points.index(chosen)
            shown |= {*range(max(place - reach, told[0]), min(place + reach + 1, len(points)))}
    return [points[place] for place in sorted(shown)]


def _cap_cells(point: "CapPoint", caps: "CapAdvice") -> list[str]:
    names = (("best", caps.best), ("expected", caps.expected))
    chosen = [name for name, other in names if point == other]
    run, notes = point.run, ", ".join([*chosen, *point.flags])
    if run is None:
        clock = "" if np.isnan(caps.at_base.config.engine_mhz) else "-"
        return [f"{point.cap_w:g}", clock, *["-"] * 4, "", "-", "", notes]
    mhz = run.config.engine_mhz
    costs = (run.time_ms, run.power_w, run.energy_mj)
    cells = [f"{point.cap_w:g}", "" if np.isnan(mhz) else f"{mhz:.0f}", *map(number, costs)]
    return [*cells, *_effect_cells(run), notes]


def _effect_cells(setting: Setting) -> list[str]:
    """Slowdown and saving, each with its interval."""
    return [
        f"{setting.slowdown_percent:+z.1f}",
        interval_cell(setting.slowdown_range),
        f"{setting.saving_percent:z.1f}",
        interval_cell(setting.saving_range),
    ]


def _commands_text(commands: "Commands") -> str:
    """The commands for a terminal."""
    lines = []
    for title, shell in (("To set it:", commands.to_set), ("To reset it:", commands.to_reset)):
        if shell:
            lines += [title, *(f"  {line}" for line in shell)]
    lines += [f"note: {note}" for note in commands.notes]
    return "\n".join(lines) + "\n"


def advice_table(advice: Advice) -> str:
    """The verdict, the best configurations, the front, flags and warnings."""
    is_one_launch, has_saving = advice.workload.is_one_launch, advice.objective != "clock"
    least = f"Least {objective_name(advice.objective)}" if has_saving else "Lowest engine clock"
    percents = "time % and saves % are" if has_saving else "time % is"
    text = (
        f"{verdict(advice)}\n\n{least}{advice.limits.under()}:\n{_table_of_best(advice)}\n\n"
        f"base {advice.whole_run.base.config} on {advice.device}; {percents} against it"
    )
    if not is_one_launch and not advice.is_bounded:
        text += (
            "; a kernel's numbers are of one launch\nat its own best, in run % is its time at the "
            "best of the whole run"
        )
    if advice.is_bounded:
        text += f"; times are the longest that they can be{_over_clocks(advice)}"
    else:
        text += _front(advice)
    text += _measured(advice)
    notes = flag_lines(_flags(advice), most=MOST_KERNELS)
    notes += [f"flag: {WHOLE_RUN}: {flag}\n" for flag in advice.whole_run.flags]
    notes += warning_lines(advice.warnings)
    return f"{text}\n\n{''.join(notes)}" if notes else f"{text}\n"


def _table_of_best(advice: Advice) -> str:
    """A line for each of the kernels of most time, one for the others, and one for the run."""
    is_one_launch = advice.workload.is_one_launch
    kernels = _by_share(advice)
    if advice.is_bounded and not is_one_launch:  # alike for all kernels
        kernels = []
    count = MOST_KERNELS if len(kernels) > MOST_KERNELS + 1 else len(kernels)
    names = kernel_names(kernel.kernel or "" for kernel in kernels)
    lines = [_line(names[kernel.kernel or ""], kernel, advice) for kernel in kernels[:count]]
    if kernels[count:]:
        lines.append(_line_of_others(kernels[count:], advice))
    if not is_one_launch:
        lines.append(_line(WHOLE_RUN, advice.whole_run, advice))
    bounds = "bounds" if advice.is_bounded else INTERVAL
    saving_ends = bounds if advice.objective == "time" else INTERVAL
    effects = ["time %", bounds, "saves %", saving_ends]
    headers = ["kernel", "share %", *_headings(advice), *effects, "in run %"]
    return columns(*without_empty(headers, lines))


def _by_share(advice: Advice) -> list[Recommendation]:
    """The kernels, those of most time first."""
    return sorted(advice.kernels, key=lambda kernel: kernel.share_percent or 0.0, reverse=True)


def _flags(advice: Advice) -> dict[str, tuple[Note, ...]]:
    """The flags by kernel, those of most time first, without the one that the verdict says."""
    return {
        kernel.kernel or "": tuple(
            flag for flag in kernel.flags if flag not in (BOUNDED, BOUNDED_BY_COUNT)
        )
        for kernel in _by_share(advice)
    }


def _line(name: str, kernel: Recommendation, advice: Advice) -> list[str]:
    """The line of a kernel, or of the whole run."""
    share = in_run = ""
    if not advice.workload.is_one_launch:
        share = share_in_percent(
            (100 if kernel.share_percent is None else kernel.share_percent) / 100
        )
        if kernel.in_run is not None:
            slowdown, most = kernel.in_run.slowdown_percent, advice.limits.max_slowdown_percent
            is_slower = most is not None and slowdown > most + SAME
            in_run = f"{slowdown:+z.1f}{', above the limit' if is_slower else ''}"
    effects = _effect_cells(kernel.best)
    if advice.objective == "clock":
        effects[2:] = ["", ""]
    return [name, share, *_cells(kernel.best), *effects, in_run]


def _line_of_others(others: Sequence[Recommendation], advice: Advice) -> list[str]:
    """A line that sums up the kernels that have none of their own."""
    shares = np.array([kernel.share_percent for kernel in others])
    slowdowns = [kernel.in_run.slowdown_percent for kernel in others if kernel.in_run]
    return [
        f"and {len(others)} others",
        share_in_percent(shares.sum() / 100),
        *("-" if cell else "" for cell in _cells(advice.whole_run.best)),
        *("-", "", "" if advice.objective == "clock" else "-", ""),
        f"{np.average(slowdowns, weights=shares):+z.1f}",
    ]


def _headings(advice: Advice) -> list[str]:
    return [*axis_headings(advice.whole_run.base.config), *COST_HEADINGS]


def _cells(setting: Setting) -> list[str]:
    """What is set and what it costs; nothing for what is not known."""
    costs = (setting.time_ms, setting.power_w, setting.energy_mj)
    return setting_cells(setting.config) + ["" if cost is None else number(cost) for cost in costs]


def _front(advice: Advice) -> str:
    """The front of the whole run, of a long one a few points, the best and the base among them."""
    run = advice.whole_run
    if not run.front:
        return ""
    points = list(run.front)
    if len(points) > MOST_POINTS:
        places = np.linspace(0, len(points) - 1, MOST_POINTS).round()
        ends = (run.best, run.base)
        points = [p for place, p in enumerate(points) if place in places or p in ends]
    more = ["all its points"] if len(points) < len(run.front) else []
    more += [] if advice.workload.is_one_launch else ["each kernel's"]
    what = "" if advice.workload.is_one_launch else " of the whole run"
    note = f" ({' and '.join(more)} with --format csv)" if more else ""
    lines = [
        [*_cells(p), ", ".join(name for name in ("best", "base") if p == getattr(run, name))]
        for p in points
    ]
    table = columns(*without_empty([*_headings(advice), ""], lines))
    return f"\n\nPareto front of time and energy{what}{note}:\n{table}"


def _over_clocks(advice: Advice) -> str:
    """The whole run at a few engine clocks: time between its bounds, and power."""
    run, time, power = advice.whole_run, advice.held["time"], advice.held.get("power")
    launches = np.array([kernel.launches or 1.0 for kernel in advice.kernels])
    c, base, m = time.grid.index(run.base.config)
    best = time.grid.index(run.best.config)[1]
    headers = ["engine MHz", "time ms from", "to"]
    sides = [
        run_in_sequence(end, None, launches)[0] for end in (time.low, time.high) if end is not None
    ]
    if power:
        headers += ["power W", INTERVAL]
        ends = (power.values, power.low, power.high)
        sides += [run_in_sequence(time.values, end, launches)[1] for end in ends if end is not None]
    lines = []
    for e in _few_clocks(len(time.grid.engine_mhz), {base, best}):
        cells = [number(float(side[c, e, m])) for side in sides]
        between = [" to ".join(cells[3:])] if power else []
        mark = ", ".join(name for name, place in (("best", best), ("base", base)) if place == e)
        lines.append([f"{time.grid.engine_mhz[e]:g}", *cells[:3], *between, mark])
    power_too = ", and power at the longest time" if power else ""
    table = columns([*headers, ""], lines)
    return f"\n\nTime between its bounds{power_too}:\n{table}"


def _few_clocks(count: int, needed: set[int]) -> list[int]:
    """At most MOST_CLOCKS of so many places, evenly spaced but for those that are needed."""
    places = set(np.linspace(0, count - 1, min(count, MOST_CLOCKS)).round().astype(int).tolist())
    for place in needed - places:
        inner = places - needed - {0, count - 1}
        places -= {min(inner, key=lambda other: abs(other - place))}
        places |= {place}
    return sorted(places)


def _measured(advice: Advice) -> str:
    """The whole run as it was measured at the further points; nothing without any."""
    lines = [[*_cells(at), f"{at.slowdown_percent:+z.1f}"] for at in advice.measured]
    table = columns(*without_empty([*_headings(advice), "time %"], lines))
    return f"\n\nMeasured at further configurations:\n{table}" if lines else ""
