"""The document of an answer as a terminal shows it, its notes, and its rows of CSV."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import mul
from textwrap import wrap
from typing import Any

from mlscale.advice.objectives import SAME, Limits
from mlscale.advice.sureness import LEVELS, in_words
from mlscale.advice.verdict import answer_lines, effects, places
from mlscale.cli.terminal import (
    INDENT,
    Line,
    Meaning,
    end,
    notes_line,
    sentences,
    shown,
    si,
    table,
)
from mlscale.errors import NotMetError, UsageError
from mlscale.text import counted, share_in_percent, short_names

Row = dict[str, Any]

MOST_KERNELS = 8  # that have a line of their own
MOST_CAPS = 7
LEAST_NAME, LONGEST_NAME = 24, 32  # characters of a kernel's name
UNLIMITED = 10_000  # columns of a table that is asked for whole
_OTHERWISE = "To set it: --commands.  To look around: mlscale report, or --all."
_OF_SERVER = "To set it: --commands.  All clocks: --all."
_PARTS = ("slowdown_percent", "energy_percent", "power_percent", "time_ms", "power_w", "energy_mj")


@dataclass(frozen=True)
class Layout:
    """How an answer is shown: so many columns wide, in colours or not, all of it or not.

    kernel: the number or a part of the name of the one kernel to show; None for the run.
    """

    width: int = 80
    has_colours: bool = False
    shows_all: bool = False
    kernel: str | None = None


def text(document: Row, layout: Layout) -> str:
    """The answer for a terminal. Raises UsageError on a kernel that is not there."""
    if layout.kernel is None:
        first, *more = answer_lines(document)
        lines = sentences(first, "answer", width=layout.width)
        lines += [line for said in more for line in sentences(said, width=layout.width)]
        lines += [*_tables(document, layout), Line()]
        lines += [*_closing(document, layout.width), *_commands(document, layout.width)]
    else:
        lines = _kernel(document, layout.kernel, layout.width)
        lines += _commands(document, layout.width)
    return shown(lines, layout.has_colours)


def _tables(document: Row, layout: Layout) -> list[Line]:
    """The menu, or the kernels and the run; the caps where these are asked for; with --all all."""
    shows_all, menu = layout.shows_all, document["menu"]
    width = UNLIMITED if shows_all else layout.width
    if document.get("server"):
        from mlscale.cli.server_clocks import clock_lines

        return [Line(), *clock_lines(document, width, shows_all)]
    is_cap, has_caps = "power_cap_w" in document["base"], bool(document["caps"])
    parts = [_menu(document, width)] if menu else []
    if not is_cap and (shows_all or not menu):
        most = len(document["kernels"]) if shows_all else MOST_KERNELS // (1 + has_caps)
        parts.append(_kernels(document, width, most))
    if has_caps and (shows_all or not (is_cap and menu)):
        parts.append(_caps(document, width, shows_all))
    if shows_all:
        parts.append(_choices("front", document["front"], document, width))
        parts.append(_choices("measured", document["measured"], document, width))
    return [line for part in parts if part for line in (Line(), *part)]


# The kernels.


def _kernels(document: Row, width: int, most: int) -> list[Line]:
    """A line for each of the kernels of most time, one for the others, and one for the run.

    Yellow is what gets slower than the limit.
    """
    answer, kernels, run = document["answer"], document["kernels"], document["run"]
    if not answer or not answer["set"]:
        return []
    is_single = len(kernels) == 1 and run["launches"] in (None, 1)
    if is_single or run["is_bounded"]:  # the run's numbers, or alike for all kernels
        kernels = []
    count = most if len(kernels) > most + 1 else len(kernels)
    quantities = ["slowdown_percent"]
    saved = "power" if document["objective"] == "power" else "energy"
    quantities += [] if document["objective"] in ("time", "clock") else [f"{saved}_percent"]
    coverage = f"{100 * document['coverage']:g} %"
    at = f"at {places(answer['set'], document['base'])}" if len(answer["set"]) == 1 else "time"
    header = ["", "kernel" * bool(kernels), "share", at]
    header.append("bounds" if run["is_bounded"] else coverage)
    header += [saved, coverage] if len(quantities) > 1 else []
    longest = Limits(**document["limits"]).longest_percent(run["time_ms"])
    rows: list[list[str]] = []
    meanings: list[Meaning | None] = []
    for kernel in kernels[:count]:
        at_answer = kernel["at_answer"]
        rows.append([str(kernel["number"]), "", _share(kernel["share_percent"])])
        rows[-1] += chain.from_iterable(_cells(at_answer, name) for name in quantities)
        is_over = at_answer["slowdown_percent"][0] > longest + SAME
        meanings.append("over" if is_over else None)
    if others := kernels[count:]:
        rows.append(_others(others))
        meanings.append(None)
    gpus = f" of {run['gpu_count']} GPUs" * (run["gpu_count"] > 1)
    time = si(run["time_ms"] / 1000, "s")
    whole = ["", f"whole run{gpus}, {time}", "100 %" * bool(kernels)]
    rows.append([*whole, *chain.from_iterable(_cells(answer, name) for name in quantities)])
    rows = [[*row, *[""] * (len(header) - len(row))] for row in rows]
    names = _names(header, rows, kernels, width)
    for row, kernel in zip(rows, kernels[:count], strict=False):
        row[1] = names[kernel["kernel"]]
    return table(header, rows, meanings=[*meanings, "bold"], width=width)


def _names(
    header: list[str], rows: list[list[str]], kernels: Sequence[Row], width: int
) -> dict[str, str]:
    """The kernels' names as long as there is room for, when the last column may go."""
    bare = [[number, "", *cells] for number, _, *cells in (header, *rows)]
    rooms = [width - len(INDENT) - _width(rows) for rows in (bare, [row[:-1] for row in bare])]
    room = rooms[0] if rooms[0] >= LEAST_NAME else rooms[1]
    longest = min(max(room, LEAST_NAME), LONGEST_NAME)
    return short_names([kernel["kernel"] for kernel in kernels], longest)


def _others(kernels: Sequence[Row]) -> list[str]:
    """A line that sums up the kernels that have none of their own."""
    shares = [kernel["share_percent"] for kernel in kernels]
    slowdowns = [kernel["at_answer"]["slowdown_percent"][0] for kernel in kernels]
    mean = sum(map(mul, shares, slowdowns)) / sum(shares)
    return ["", f"{len(kernels)} others", _share(sum(shares)), f"{mean:+z.1f} %"]


def _share(percent: float) -> str:
    return f"{share_in_percent(percent / 100)} %"


def _cells(at: Row, name: str) -> list[str]:
    """A change and its interval: '+4.9 %', '+2.4 to +7.3'."""
    values = at[name]
    return ["-", ""] if values is None else [f"{values[0]:+z.1f} %", interval(values)]


def interval(values: Sequence[float | None]) -> str:
    """The ends of an interval of changes, '?' for one that is not known; '' without both."""
    ends = ["?" if one is None else end(one) for one in values[1:]]
    return "" if ends == ["?", "?"] else " to ".join(ends)


def _width(rows: Sequence[Sequence[str]]) -> int:
    """How wide a table of these cells is."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1)


# Other tables.


def _menu(document: Row, width: int) -> list[Line]:
    """What is best under several limits of slowdown; the answer is marked."""
    suggested = document["limits"]["max_slowdown_percent"]
    rows: list[list[str]] = []
    meanings: list[Meaning | None] = []
    for offer in document["menu"]:
        most = offer["max_slowdown_percent"]
        name = "no limit" if most is None else f"up to {most:g} %"
        rows.append([name, *_choice_cells(offer, document), "<-" * (most == suggested)])
        meanings.append("bold" if most == suggested else None)
    what = "cap" if "power_cap_w" in document["base"] else "clock"
    headings = ["slower by", what, *_headings(document), ""]
    labels = 1 + any(not offer["set"] for offer in document["menu"])  # 'as it is'
    if any("unlocked" in row[1] for row in rows):  # in the room of power, which is about the cap
        place = headings.index("power")
        for cells in (headings, *rows):
            del cells[place]
    return table(headings, rows, meanings=meanings, width=width, labels=labels)


def _choices(title: str, choices: Sequence[Row], document: Row, width: int) -> list[Line]:
    rows = [_choice_cells(choice, document) for choice in choices]
    return table([title, *_headings(document)], rows, width=width, labels=1) if rows else []


def _caps(document: Row, width: int, shows_all: bool) -> list[Line]:
    """The run under power caps; of many the ends, the answer and the expected, and a few."""
    is_cap, marks = "power_cap_w" in document["base"], {}
    rows: list[list[str]] = []
    unknown: list[Line] = []
    meanings: list[Meaning | None] = []
    for name in ("expected", "answer") if is_cap else ():
        if document[name] and document[name]["set"]:
            marks[document[name]["set"]["power_cap_w"]] = name
    caps = document["caps"] if shows_all else _few_caps(document["caps"], marks)
    for cap in caps:
        flags = "; ".join(cap["flags"])
        if not cap["time_ms"]:
            unknown += sentences(f"{cap['cap_w']:g} W: {flags}", width=width)
            continue
        mark, mhz = marks.get(cap["cap_w"], ""), cap["at"]["engine_mhz"]
        cells = [f"{mhz:.0f} MHz" if mhz else "", *_choice_cells(cap, document)[1:]]
        rows.append([f"{cap['cap_w']:g} W", *cells, mark or flags * shows_all])
        meanings.append("bold" if mark == "answer" else None)
    header = ["cap", "clock", *_headings(document), ""]
    return [*unknown, *(table(header, rows, meanings=meanings, width=width) if rows else [])]


def _few_caps(caps: Sequence[Row], marks: Collection[float]) -> list[Row]:
    """The ends of the caps that are known, those marked, and others evenly spaced."""
    if len(caps) <= MOST_CAPS:
        return list(caps)
    told = [cap for cap in caps if cap["time_ms"]] or list(caps)
    count = max(2, MOST_CAPS - len(marks))
    evenly = {round(k * (len(told) - 1) / (count - 1)) for k in range(count)}
    return [cap for place, cap in enumerate(told) if place in evenly or cap["cap_w"] in marks]


def _headings(document: Row) -> list[str]:
    coverage = f"{100 * document['coverage']:g} %"
    return ["time", coverage, "power", "energy", coverage]


def _choice_cells(choice: Row, document: Row) -> list[str]:
    """What is set, and what becomes of time, power and energy."""
    power = si(choice["power_w"][0], "W") if choice["power_w"] else ""
    time, energy = (_cells(choice, f"{name}_percent") for name in ("slowdown", "energy"))
    if not choice["set"]:  # as it is: nothing changes
        time[1] = energy[1] = ""
    if choice["energy_percent"] is None:
        energy = ["", ""]
    return [places(choice["set"], document["base"]), *time, power, *energy]


# Below the tables.


def _closing(document: Row, width: int) -> list[Line]:
    """How sure it is, where the notes are, and what to do next."""
    sure = f"How sure: {document['sure']}. {in_words(document['sure_why'])}"
    lines = sentences(sure, width=width)
    lines += notes_line((note["code"] for note in document["notes"]), width)
    if document["next"]:
        lines += sentences(document["next"], "dim", width=width)
    if not document["commands"] and document["answer"] and document["answer"]["set"]:
        otherwise = _OF_SERVER if document.get("server") else _OTHERWISE
        lines += sentences(otherwise, "dim", width=width)
    return lines


def _commands(document: Row, width: int) -> list[Line]:
    """What sets the answer, what resets it, and what makes a surer one; not cut, to be copied.

    What to know of them are comments of the shell.
    """
    commands = document["commands"]
    if not commands:
        return []
    further = (document["next_commands"] or []) if document["next"] else []
    room = width - len(f"{INDENT}{INDENT}# ")
    comments = [f"# {line}" for text in commands["notes"] for line in wrap(text, room)]
    named = {"To set it:": [*commands["set"], *comments], "To reset it:": commands["reset"]}
    named["For a surer answer:"] = further
    return [
        line
        for title, shell in named.items()
        if shell
        for line in (Line(), Line(title), *(Line(f"{INDENT}{words}") for words in shell))
    ]


# One kernel.


def _kernel(document: Row, asked: str, width: int) -> list[Line]:
    """All of one kernel: its share, what the answer does to it, its own best, and its notes."""
    kernel, objective = _asked_kernel(document["kernels"], asked), document["objective"]
    share = f"{_share(kernel['share_percent'])} of the run's time"
    if kernel["launches"] is not None:
        share += f", {counted(round(kernel['launches']), 'launch')}"
    lines = sentences(f"{kernel['number']}  {kernel['kernel']}", "bold", width=width)
    lines.append(Line(share))
    answer, base, best = document["answer"], document["base"], kernel["best"]
    if answer and answer["set"]:
        at_answer = _with_interval(kernel["at_answer"], objective)
        lines += sentences(f"At {places(answer['set'], base)}: {at_answer}", width=width)
    at_best = f"Its best, {places(best['set'], base)}: {_with_interval(best, objective)}"
    lines += sentences(at_best, width=width)
    for note in document["notes"]:
        if note["kernels"] != "all" and kernel["kernel"] in note["kernels"]:
            lines += sentences(f"{note['code']} {note['text']}", "dim", width=width)
    return lines


def _with_interval(at: Row, objective: str) -> str:
    ends = interval(at["slowdown_percent"])
    said = effects(at, objective)
    return f"{said} (time {ends})" if ends else said


def _asked_kernel(kernels: Sequence[Row], asked: str) -> Row:
    """The kernel of that number, or with that in its name. Raises UsageError."""
    if not kernels:
        raise UsageError("--kernel: a power cap is for the whole run; the answer has no kernels")
    found = [k for k in kernels if asked in (str(k["number"]), k["kernel"])]
    if not found and asked.isdecimal():
        raise UsageError(f"--kernel {asked}: the kernels are 1 to {len(kernels)}")
    found = found or [kernel for kernel in kernels if asked in kernel["kernel"]]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"--kernel {asked}: no kernel has it; there are {len(kernels)}")
    numbers = ", ".join(str(kernel["number"]) for kernel in found)
    raise UsageError(f"--kernel {asked}: several kernels have it; give a number: {numbers}")


# What is required.


def require(found: Row, least: str | None) -> None:
    """Raise NotMetError where an answer is less sure than that."""
    if least is not None and LEVELS.index(found["sure"]) < LEVELS.index(least):
        raise NotMetError(f"--require sure={least} is not met: the answer is {found['sure']}")


# CSV.


def rows(document: Row, shows_all: bool) -> list[Row]:
    """A row for each choice of the run and each kernel: `at` says which, as the document names it.

    shows_all: the front, what was measured, and all caps too. Of a server a row for each clock.
    """
    if server := document.get("server"):
        from mlscale.cli.server_clocks import clock_row

        withheld = {"withheld": server["withheld"]}
        return [clock_row(clock) | withheld for clock in server["clocks"]]
    cap = "power_cap_w" in document["base"]
    run = {"kernel": "whole run", "number": None, "share_percent": 100.0}
    run["launches"] = document["run"]["launches"]
    table = [_row(run, name, document[name]) for name in ("answer", "expected") if document[name]]
    for offer in document["menu"] or []:
        most = offer["max_slowdown_percent"]
        table.append(_row(run, "menu least" if most is None else f"menu {most:g} %", offer))
    for kernel in document["kernels"]:
        if kernel["at_answer"]:
            at = {"at": document["answer"]["at"], **kernel["at_answer"]}
            table.append(_row(kernel, "answer", at))
        table.append(_row(kernel, "best", kernel["best"]))
    if shows_all:
        for name in ("front", "measured"):
            table += [_row(run, name, choice) for choice in document[name]]
    if cap or shows_all:
        table += [_row(run, "cap", point) for point in document["caps"] or []]
    for row in () if cap else table:
        del row["unlock"]
    return table


def _row(kernel: Row, name: str, choice: Row) -> Row:
    """One choice of a kernel as CSV has it, an interval in two columns of its own."""
    at = choice["at"] or {}
    row: Row = {key: kernel[key] for key in ("kernel", "number", "share_percent", "launches")}
    row |= {"at": name} | {axis: at.get(axis) for axis in ("cu_count", "engine_mhz", "memory_mhz")}
    setting = choice.get("set", {})
    row["power_cap_w"] = setting.get("power_cap_w")
    row["unlock"] = "yes" if None in setting.values() else None
    for part in _PARTS:
        value, low, high = choice[part] or (None, None, None)
        row |= {part: value, f"{part}_low": low, f"{part}_high": high}
    return row
