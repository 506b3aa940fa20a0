"""An answer as a terminal shows it, its notes, and its rows of CSV."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import mul
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from mlscale.advice.answer import PlainAnswer
from mlscale.advice.objectives import SAME, WITHOUT_POWER
from mlscale.advice.recommendation import WHOLE_RUN, Choice, Interval, Recommendation
from mlscale.advice.sureness import LEVELS, in_words
from mlscale.advice.verdict import answer_lines, effects, places
from mlscale.cli.terminal import (
    INDENT,
    Emphasis,
    Line,
    end,
    notes_line,
    sentences,
    shown,
    si,
    table,
)
from mlscale.data.grid import AXES
from mlscale.errors import NotMetError, UsageError
from mlscale.model.predictions import COVERAGE
from mlscale.text import counted, number, share_in_percent, short_names

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice, CapPoint
    from mlscale.advice.server import LoadCell, ServerAdvice, ServerClock

Row = dict[str, Any]  # by columns of CSV

MOST_KERNELS = 8  # that have a line of their own
MOST_CAPS = MOST_CLOCKS = 7
LEAST_NAME, LONGEST_NAME = 24, 32  # characters of a kernel's name
UNLIMITED = 10_000  # columns of a table that is asked for whole
_OTHERWISE = "To set it: --commands.  To look around: mlscale report, or --all."
_OF_SERVER = "To set it: --commands.  All clocks: --all."
_INTERVAL = f"{100 * COVERAGE:g} %"
_HEADINGS = ["time", _INTERVAL, "power", "energy", _INTERVAL]
_ENDS = ("", "_low", "_high")


@dataclass(frozen=True)
class Layout:
    """How an answer is shown: so many columns wide, in colours or not, all of it or not.

    kernel: the number or a part of the name of the one kernel to show; None for the run.
    """

    width: int = 80
    has_colours: bool = False
    shows_all: bool = False
    kernel: str | None = None


def text(answer: PlainAnswer, layout: Layout) -> str:
    """The answer for a terminal. Raises UsageError on a kernel that is not there."""
    width = layout.width
    if layout.kernel is not None:
        lines = _kernel(answer, _place(answer.kernels, layout.kernel), width)
    else:
        first, *more = answer_lines(answer)
        lines = sentences(first, "answer", width=width)
        lines += [line for said in more for line in sentences(said, width=width)]
        lines += [*_tables(answer, layout), Line(), *_closing(answer, width)]
    return shown([*lines, *_commands(answer, width)], layout.has_colours)


def _tables(answer: PlainAnswer, layout: Layout) -> list[Line]:
    """The menu, or the kernels and the run; the caps where these are asked for; with --all all."""
    shows_all, menu, caps = layout.shows_all, answer.menu, answer.caps
    width = UNLIMITED if shows_all else layout.width
    if answer.server:
        return [Line(), *_server_clocks(answer, answer.server, width, shows_all)]
    is_cap = answer.lever == "cap"
    parts = [_menu(answer, width)] if menu else []
    if not is_cap and (shows_all or not menu):
        most = len(answer.kernels) if shows_all else MOST_KERNELS // (2 if caps else 1)
        parts.append(_kernels(answer, width, most))
    if caps and (shows_all or not (is_cap and menu)):
        parts.append(_caps(answer, caps, width, shows_all))
    if shows_all:
        parts.append(_choices("front", answer.front, answer, width))
        parts.append(_choices("measured", answer.measured, answer, width))
    return [line for part in parts if part for line in (Line(), *part)]


# The kernels.


def _kernels(answer: PlainAnswer, width: int, most: int) -> list[Line]:
    """A line for each of the kernels of most time, one for the others, and one for the run.

    Yellow is what gets slower than the limit.
    """
    best, kernels, workload = answer.best, answer.kernels, answer.workload
    if not best or not best.set:
        return []
    is_single = len(kernels) == 1 and workload.launches in (None, 1)
    if is_single or answer.is_bounded:  # the run's numbers, or alike for all kernels
        kernels = ()
    count = most if len(kernels) > most + 1 else len(kernels)
    at = f"at {_places(best, answer)}" if len(best.set) == 1 else "time"
    header = ["", "kernel" * bool(kernels), "share", at]
    header.append("bounds" if answer.is_bounded else _INTERVAL)
    if answer.objective not in WITHOUT_POWER:
        header += ["power" if answer.objective == "power" else "energy", _INTERVAL]
    rows: list[list[str]] = []
    meanings: list[Emphasis | None] = []
    for place, kernel in enumerate(kernels[:count], start=1):
        cells = _changes(kernel.in_run, answer.objective)
        rows.append([str(place), "", _share(kernel), *cells])
        is_over = _slowdown(kernel) > answer.longest_percent + SAME
        meanings.append("over" if is_over else None)
    if others := kernels[count:]:
        rows.append(_others(others))
        meanings.append(None)
    whole = f"{answer.work}, {si(answer.base.time_ms / 1000, 's')}"
    rows.append(["", whole, "100 %" * bool(kernels), *_changes(best, answer.objective)])
    rows = [[*row, *[""] * (len(header) - len(row))] for row in rows]
    names = _names(header, rows, kernels, width)
    for row, kernel in zip(rows, kernels[:count], strict=False):
        row[1] = names[kernel.name]
    return table(header, rows, meanings=[*meanings, "bold"], width=width)


def _changes(choice: Choice | None, objective: str) -> list[str]:
    """What becomes of time, and of what is saved, in cells."""
    if choice is None:
        return ["-", ""]
    cells = _cells(choice.slowdown_percent, choice.slowdown_range)
    if objective in WITHOUT_POWER:
        return cells
    if objective == "power":
        return cells + _cells(choice.power_percent, choice.power_percent_range)
    return cells + _cells(choice.energy_percent, choice.energy_percent_range)


def _slowdown(kernel: Recommendation) -> float:
    return kernel.in_run.slowdown_percent if kernel.in_run else 0.0


def _names(
    header: list[str], rows: list[list[str]], kernels: Sequence[Recommendation], width: int
) -> dict[str, str]:
    """The kernels' names as long as there is room for, when the last column may go."""
    bare = [[number, "", *cells] for number, _, *cells in (header, *rows)]
    rooms = [width - len(INDENT) - _width(rows) for rows in (bare, [row[:-1] for row in bare])]
    room = rooms[0] if rooms[0] >= LEAST_NAME else rooms[1]
    longest = min(max(room, LEAST_NAME), LONGEST_NAME)
    return short_names([kernel.name for kernel in kernels], longest)


def _others(kernels: Sequence[Recommendation]) -> list[str]:
    """A line that sums up the kernels that have none of their own."""
    shares = [kernel.share_percent or 0.0 for kernel in kernels]
    mean = sum(map(mul, shares, map(_slowdown, kernels))) / sum(shares)
    share = share_in_percent(sum(shares) / 100)
    return ["", f"{len(kernels)} others", f"{share} %", f"{mean:+z.1f} %"]


def _share(kernel: Recommendation) -> str:
    return f"{share_in_percent((kernel.share_percent or 0.0) / 100)} %"


def _cells(percent: float | None, ends: Interval) -> list[str]:
    """A change and its interval: '+4.9 %', '+2.4 to +7.3'."""
    return ["-", ""] if percent is None else [f"{percent:+z.1f} %", interval(ends)]


def interval(ends: Interval) -> str:
    """The ends of an interval of changes, '?' for one that is not known; '' without both."""
    known = [math.isfinite(one) for one in ends or ()]
    if not any(known):
        return ""
    return " to ".join(end(one) if math.isfinite(one) else "?" for one in ends or ())


def _width(rows: Sequence[Sequence[str]]) -> int:
    """How wide a table of these cells is."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1)


# Other tables.


def _menu(answer: PlainAnswer, width: int) -> list[Line]:
    """What is best under several limits of slowdown; the answer is marked."""
    rows: list[list[str]] = []
    meanings: list[Emphasis | None] = []
    for most, choice in answer.menu.items():
        name = "no limit" if most is None else f"up to {most:g} %"
        is_answer = most == answer.limits.max_slowdown_percent
        rows.append([name, *_choice_cells(choice, answer), "<-" * is_answer])
        meanings.append("bold" if is_answer else None)
    headings = ["slower by", answer.lever, *_HEADINGS, ""]
    labels = 1 + any(not choice.set for choice in answer.menu.values())  # 'as it is'
    if any("unlocked" in row[1] for row in rows):  # in the room of power, which is about the cap
        place = headings.index("power")
        for cells in (headings, *rows):
            del cells[place]
    return table(headings, rows, meanings=meanings, width=width, labels=labels)


def _choices(title: str, choices: Sequence[Choice], answer: PlainAnswer, width: int) -> list[Line]:
    rows = [_choice_cells(choice, answer) for choice in choices]
    return table([title, *_HEADINGS], rows, width=width, labels=1) if rows else []


def _caps(answer: PlainAnswer, caps: "CapAdvice", width: int, shows_all: bool) -> list[Line]:
    """The run under power caps; of many the ends, the answer and the expected, and a few."""
    rows: list[list[str]] = []
    unknown: list[Line] = []
    meanings: list[Emphasis | None] = []
    marks = {}
    for name, choice in (("expected", answer.expected), ("answer", answer.best)):
        if answer.lever == "cap" and choice and choice.set:
            marks[choice.set["power_cap_w"]] = name
    for point in caps.points if shows_all else _few_caps(caps.points, marks):
        choice, flags = point.run, "; ".join(point.flags)
        if choice is None:
            unknown += sentences(f"{point.cap_w:g} W: {flags}", width=width)
            continue
        mark, mhz = marks.get(point.cap_w, ""), choice.engine_mhz
        cells = [f"{mhz:.0f} MHz" if mhz > 0 else "", *_choice_cells(choice, answer)[1:]]
        rows.append([f"{point.cap_w:g} W", *cells, mark or flags * shows_all])
        meanings.append("bold" if mark == "answer" else None)
    header = ["cap", "clock", *_HEADINGS, ""]
    return [*unknown, *(table(header, rows, meanings=meanings, width=width) if rows else [])]


def _few_caps(
    points: "Sequence[CapPoint]", marks: Mapping[float | None, str]
) -> "Sequence[CapPoint]":
    """The ends of the caps that are known, those marked, and others evenly spaced."""
    if len(points) <= MOST_CAPS:
        return points
    told = [point for point in points if point.run] or points
    evenly = _evenly(len(told), max(2, MOST_CAPS - len(marks)))
    return [one for place, one in enumerate(told) if place in evenly or one.cap_w in marks]


def _evenly(count: int, most: int) -> set[int]:
    """So many places of a list, with its ends, evenly apart."""
    return {round(k * (count - 1) / (most - 1)) for k in range(most)}


def _choice_cells(choice: Choice, answer: PlainAnswer) -> list[str]:
    """What is set, and what becomes of time, power and energy."""
    power = si(choice.power_w, "W") if choice.power_w is not None else ""
    time = _cells(choice.slowdown_percent, choice.slowdown_range)
    energy = ["", ""]
    if choice.energy_percent is not None:
        energy = _cells(choice.energy_percent, choice.energy_percent_range)
    if not choice.set:  # as it is: nothing changes
        time[1] = energy[1] = ""
    return [_places(choice, answer), *time, power, *energy]


def _places(choice: Choice, answer: PlainAnswer) -> str:
    return places(choice.set, answer.base.config.cu_axis)


def _server_clocks(
    answer: PlainAnswer, server: "ServerAdvice", width: int, shows_all: bool
) -> list[Line]:
    """A line for each clock, or for a few evenly apart with those that the answer names."""
    clocks = server.clocks
    named = {server.chosen(c).setting: "expected" for c in (answer.expected,) if c}
    named |= {server.chosen(c).setting: "answer" for c in (answer.best,) if c}
    evenly = _evenly(len(clocks), len(clocks) if shows_all else MOST_CLOCKS - len(named))
    rows: list[list[str]] = []
    meanings: list[Emphasis | None] = []
    for place, clock in enumerate(clocks):
        name, over = named.get(clock.setting, ""), clock.breaks
        if not (place in evenly or name or clock.is_measured):
            continue
        above = ", ".join(limit.split()[0] for limit in over) if len(over) < 3 else "limits"
        said = [name, "measured" * clock.is_measured, f"above {above}" * bool(over)]
        values = (*clock.latency_ms.values(), clock.power_w, clock.tokens_per_joule)
        cells = [f"{clock.setting:g}", *(number(one.value, 3) for one in values)]
        rows.append([*cells, ", ".join(filter(None, said))])
        meanings.append("bold" if name == "answer" else "over" if over else None)
    header = ["cap W" if server.is_of_caps else "MHz", *clocks[0].latency_ms, "W", "tokens/J", ""]
    return [*table(header, rows, meanings=meanings, width=width), *_loads(server, width, shows_all)]


def _loads(server: "ServerAdvice", width: int, shows_all: bool) -> list[Line]:
    """Tokens per joule over clock and clients, each with half of its interval; none of one load."""
    if not server.loads:
        return []
    cells = [list(row) for _, row in groupby(server.loads, lambda cell: cell.engine_mhz)]
    kept = _evenly(len(cells), len(cells) if shows_all else MOST_CLOCKS)
    rows = []
    for row in (cells[at] for at in sorted(kept)):
        told = [f"{row[0].engine_mhz:g}"]
        for value, _, high in (cell.tokens_per_joule for cell in row):
            ends = f" ±{100 * (high / value - 1):.0f} %" if high else ""
            told.append(f"{number(value, 3)}{ends}")
        rows.append(told)
    header = ["MHz", *(f"{cell.clients:g}" for cell in cells[0])]
    title = Line("Tokens/J by number of clients, ± half of the 90 % interval:")
    return [Line(), title, Line(), *table(header, rows, width=width)]


# Below the tables.


def _closing(answer: PlainAnswer, width: int) -> list[Line]:
    """How sure it is, where the notes are, and what to do next."""
    lines = sentences(f"How sure: {answer.sure}. {in_words(answer.sure_why)}", width=width)
    lines += notes_line((note.code for note in answer.notes), width)
    if answer.next_step:
        lines += sentences(answer.next_step.text, "dim", width=width)
    if not answer.commands and answer.best and answer.best.set:
        otherwise = _OF_SERVER if answer.server else _OTHERWISE
        lines += sentences(otherwise, "dim", width=width)
    return lines


def _commands(answer: PlainAnswer, width: int) -> list[Line]:
    """What sets the answer, what resets it, and what makes a surer one; not cut, to be copied.

    What to know of them are comments of the shell.
    """
    commands, step = answer.commands, answer.next_step
    if not commands:
        return []
    room = width - len(f"{INDENT}{INDENT}# ")
    comments = [f"# {line}" for text in commands.notes for line in wrap(text, room)]
    named = {"To set it:": [*commands.set, *comments], "To reset it:": commands.reset}
    named["For a surer answer:"] = step.commands if step else ()
    return [
        line
        for title, shell in named.items()
        if shell
        for line in (Line(), Line(title), *(Line(f"{INDENT}{words}") for words in shell))
    ]


# One kernel.


def _kernel(answer: PlainAnswer, place: int, width: int) -> list[Line]:
    """All of one kernel: its share, what the answer does to it, its own best, and its notes."""
    best, objective, kernel = answer.best, answer.objective, answer.kernels[place]
    share = f"{_share(kernel)} of the run's time"
    if kernel.launches is not None:
        share += f", {counted(round(kernel.launches), 'launch')}"
    lines = sentences(f"{place + 1}  {kernel.name}", "bold", width=width)
    lines.append(Line(share))
    if best and best.set and kernel.in_run:
        at_answer = _with_interval(kernel.in_run, objective)
        lines += sentences(f"At {_places(best, answer)}: {at_answer}", width=width)
    at_best = _with_interval(kernel.best, objective)
    lines += sentences(f"Its best, {_places(kernel.best, answer)}: {at_best}", width=width)
    for note in answer.notes:
        if kernel.name in note.kernels:
            lines += sentences(f"{note.code} {note.text}", "dim", width=width)
    return lines


def _with_interval(choice: Choice, objective: str) -> str:
    ends = interval(choice.slowdown_range)
    said = effects(choice, objective)
    return f"{said} (time {ends})" if ends else said


def _place(kernels: Sequence[Recommendation], asked: str) -> int:
    """Where the kernel of that number is, or with that in its name. Raises UsageError."""
    if not kernels:
        raise UsageError("--kernel: a power cap is for the whole run; omit --kernel")
    names = [kernel.name for kernel in kernels]
    found = [k for k, name in enumerate(names) if asked in (str(k + 1), name)]
    if not found and asked.isdecimal():
        raise UsageError(f"--kernel {asked}: kernels are numbered 1 to {len(kernels)}")
    found = found or [k for k, name in enumerate(names) if asked in name]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"--kernel {asked}: no such name; there are {len(kernels)} kernels")
    numbers = ", ".join(str(k + 1) for k in found)
    raise UsageError(f"--kernel {asked}: several names match; give a number: {numbers}")


# What is required.


def require(sure: str, least: str | None) -> None:
    """Raise NotMetError if an answer is less sure than that."""
    if least is not None and LEVELS.index(sure) < LEVELS.index(least):
        raise NotMetError(f"--require sure={least} is not met: the answer is {sure}")


# CSV.


def rows(answer: PlainAnswer, shows_all: bool) -> list[Row]:
    """A row for each choice of the run and each kernel: `at` says which, as the document names it.

    shows_all: the front, what was measured, and all caps too. Of a server a row for each clock.
    """
    if server := answer.server:
        return _server_rows(server)
    run: Row = {"kernel": WHOLE_RUN, "number": None, "share_percent": 100.0}
    run["launches"] = answer.workload.launches
    named = {"answer": answer.best, "expected": answer.expected}
    for most, choice in answer.menu.items():
        named["menu least" if most is None else f"menu {most:g} %"] = choice
    table = [_row(run, name, choice, choice.set) for name, choice in named.items() if choice]
    for place, kernel in enumerate(answer.kernels, start=1):
        row: Row = {"kernel": kernel.name, "number": place}
        row |= {"share_percent": kernel.share_percent, "launches": kernel.launches}
        if kernel.in_run:
            table.append(_row(row, "answer", kernel.in_run, {}))
        table.append(_row(row, "best", kernel.best, kernel.best.set))
    if shows_all:
        for name, choices in (("front", answer.front), ("measured", answer.measured)):
            table += [_row(run, name, choice, choice.set) for choice in choices]
    is_cap = answer.lever == "cap"
    if answer.caps and (is_cap or shows_all):
        from mlscale.advice.caps import cap_setting

        for one in answer.caps.points:
            table.append(_row(run, "cap", one.run, cap_setting(one.cap_w, one.unlocks)))
    for row in () if is_cap else table:
        del row["unlock"]
    return table


def _row(who: Row, name: str, choice: Choice | None, setting: Mapping[str, float | None]) -> Row:
    """One choice of a kernel or the run as CSV has it, an interval in two columns of its own."""
    from mlscale.advice.document import effect_row, place_row

    row = who | {"at": name} | (place_row(choice) if choice else dict.fromkeys(AXES))
    row["power_cap_w"] = setting.get("power_cap_w")
    row["unlock"] = "yes" if None in setting.values() else None
    for part, values in effect_row(choice).items():
        row |= _with_ends(part, values)
    return row


def _with_ends(name: str, values: Sequence[float | None] | None) -> Row:
    """A value and its ends, by their columns of CSV."""
    columns = [f"{name}{ending}" for ending in _ENDS]
    return dict(zip(columns, values or [None] * len(columns), strict=True))


def _server_rows(server: "ServerAdvice") -> list[Row]:
    """A row for each clock; of several numbers of clients also of the others, which have fewer."""
    rows = [_clock_row(clock) | {"withheld": server.withheld or None} for clock in server.clocks]
    if not server.loads:
        return rows
    clients = server.base.result.clients
    ours: list[Row] = [{"clients": clients} | row for row in rows]
    others = [_load_row(cell) for cell in server.loads if cell.clients != clients]
    return [*ours, *(dict.fromkeys(ours[0]) | row for row in others)]


def _load_row(cell: "LoadCell") -> Row:
    """A server with other clients as CSV has it."""
    row: Row = {"clients": cell.clients, "engine_mhz": cell.engine_mhz}
    row["is_measured"] = cell.is_measured
    for name in ("output_per_s", "power_w", "tokens_per_joule"):
        row |= _with_ends(name, getattr(cell, name))
    return row


def _clock_row(clock: "ServerClock") -> Row:
    """A server's clock as CSV has it."""
    setting = "engine_mhz" if clock.cap_w is None else "power_cap_w"
    row: Row = {setting: clock.setting, "is_measured": clock.is_measured}
    estimates = {"output_per_s": clock.output_per_s, **clock.latency_ms, "power_w": clock.power_w}
    for name, estimate in (estimates | {"tokens_per_joule": clock.tokens_per_joule}).items():
        row |= _with_ends(name, estimate)
    return {**row, "capacity_share": clock.capacity_share, "breaks": "; ".join(clock.breaks)}
