"""The page: one HTML file of answers, their surfaces, and the script that shows them.

It loads nothing and runs nothing but its own script: the content policy names the hashes of script
and style. All names are put in as text, in the script too. The same input gives the same bytes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from mlscale.advice.answer import PlainAnswer, under_caps
from mlscale.advice.commands import clock_templates
from mlscale.advice.document import Row, document, place_row
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Costs, Terms
from mlscale.advice.search import best_of_run, choices_at
from mlscale.advice.sureness import REASONS
from mlscale.advice.verdict import (
    answer_lines,
    effects,
    load_in_words,
    nothing_better,
    places,
    side,
)
from mlscale.data.devices import known_device
from mlscale.errors import InputError
from mlscale.notes import Note
from mlscale.pages.surfaces import deflated, surfaces
from mlscale.text import counted, number, rounded, share_in_percent

if TYPE_CHECKING:
    from mlscale.advice.server import Estimate, ServerAdvice

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; "
    "form-action 'none'"
)
_SCRIPTS = ("state.js", "charts.js", "page.js")  # one after the other
MAX_PERCENT, STEP = 60, 0.5  # on the limit's slider; beyond it there is no limit
_MOST_WORDS = 12  # in the headline
_ORIGINS = {
    "made": "MADE DATA: {} made by a program, not measured on a GPU.",
    "simulated": "SIMULATED DATA: {} run on a simulator, not measured on a GPU.",
}


def page(runs: Sequence[PlainAnswer], measured: Sequence[Row] = ()) -> str:
    """The answer on one run, or on several to compare, as an HTML document.

    measured: what `against_measured` says of the first. The plain tables stay where the script
    cannot run or the browser is too old for it. Raises InputError on too large a grid.
    """
    script = "".join(map(_read, _SCRIPTS))
    style = _read("page.css")
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    title = escape(_visible(f"mlscale: {runs[0].name}"))
    heads = "".join(_head(run, place) for place, run in enumerate(runs))
    rows = [_run(run, () if place else measured) for place, run in enumerate(runs)]
    shown = zip(runs, rows, strict=True)
    tables = "".join(_plain_kernels(run, row["document"]["kernels"]) for run, row in shown)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>\n<body><main>{heads}"
        f'<div id="page">{tables}</div></main>\n'
        f'<script type="application/json" id="data">{_data(rows)}</script>\n'
        f"<script>{script}</script>\n</body></html>\n"
    )


def _read(name: str) -> str:
    return files("mlscale.pages").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content policy names a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(rows: Sequence[Row]) -> str:
    """All runs as JSON that ends no script and has no character beyond ASCII."""
    text = json.dumps({"runs": rows}, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _run(answer: PlainAnswer, measured: Sequence[Row]) -> Row:
    row: Row = {
        "name": answer.name,
        "document": document(answer),
        "limit": answer.longest_percent if answer.limits.has_time else None,
        "measured": list(measured),
        "within": _within(answer),
        "grid": None,
        "commands": None,
    }
    if answer.advice is None or answer.subject is None:
        return row
    grid = surfaces(answer.advice, answer.subject.model, answer.subject.profiles)
    if grid is not None:
        row["grid"] = deflated(grid)
        row["commands"] = clock_templates(answer.subject.profiles, grid["axes"]["m"])
    return row


def _within(answer: PlainAnswer) -> Row:
    """The answer within each limit of slowdown that the slider has, as the command gives it there.

    places: for the run's own limit, for each step from 0, and for no limit, which of the choices
    it is. least: where the least energy is, None where that is not known.
    """
    percents = [*(STEP * n for n in range(round(MAX_PERCENT / STEP) + 1)), None]
    found = _caps_within if answer.lever == "cap" else _clocks_within
    choices = [_shown_choice(one) for one in (answer, *found(answer, percents))]
    least = None
    if answer.advice and answer.advice.no_energy is None:
        for one in _clocks_within(replace(answer, objective="energy"), [None]):
            least = place_row(one.best) if one.best else None
    each = [one for k, one in enumerate(choices) if one not in choices[:k]]
    return {"choices": each, "places": list(map(each.index, choices)), "least": least}


def _shown_choice(answer: PlainAnswer) -> Row:
    """The answer as the page's head has it, where it is, and the cap that it sets."""
    best = answer.best
    return {
        "headline": headline(answer),
        "at": place_row(best) if best else None,
        "cap_w": best.set.get("power_cap_w") if best else None,
    }


# The head, and what a browser without scripts shows.


def headline(answer: PlainAnswer) -> str:
    """The answer in at most 12 words.

    Example:
        >>> headline(answer)  # doctest: +SKIP
        'Set 1320 MHz: 4.8 % slower, 9.1 % less energy'
    """
    if answer.server:
        return _server_headline(answer, answer.server)
    best = answer.best
    if best is None and not answer.caps:
        return "No clock keeps the limits"
    if best is None:
        is_known = answer.caps and any(point.run for point in answer.caps.points)
        return f"None of these power caps {'will do' if is_known else 'can be judged'}"
    if not best.set:
        why = nothing_better(answer)
        is_short = len(why.split()) < _MOST_WORDS
        return f"Stay: {why}" if is_short else "Stay: nothing better keeps the limits"
    said = effects(best, answer.objective, answer.is_bounded)
    words = f"Set {places(best.set, answer.base.config.cu_axis)}: {said}"
    return words if len(words.split()) <= _MOST_WORDS else words.rpartition(",")[0]


def _server_headline(answer: PlainAnswer, server: "ServerAdvice") -> str:
    """Of a server: 'Set 1545 MHz: 36 % more tokens per joule'."""
    best = answer.best
    if best is None:
        return "Nothing is advised" if server.withheld else "Nothing keeps the limits"
    at, unit = server.chosen(best), "W" if server.is_of_caps else "MHz"
    if not best.set:
        why = "nothing better keeps the limits" if server.limits else "nothing is better"
        return f"Stay at {at.setting:g} {unit}: {why}"
    ratio = at.tokens_per_joule.value / server.now.tokens_per_joule.value
    said = side(100 * (ratio - 1), ("fewer tokens per joule", "more tokens per joule"))
    return f"Set {at.setting:g} {unit}: {said}"


def _head(answer: PlainAnswer, place: int) -> str:
    """The answer, what the run is, and what to know, folded up."""
    banners = ""
    if answer.subject:
        kinds = {
            "the model's training kernels were": answer.subject.model.card["metadata"],
            "the profiled kernels were": answer.subject.profiles.metadata,
        }
        said = [
            _ORIGINS[origin].format(kernels)
            for kernels, metadata in kinds.items()
            if (origin := str(metadata.get("origin"))) in _ORIGINS
        ]
        banners = "".join(f'<p class="banner">{_text(words)}</p>' for words in said)
    hidden = " hidden" if place else ""
    return (
        f'<header id="head-{place}"{hidden}>{banners}<h1>{_text(headline(answer))}</h1>'
        f'<p class="sub">{_text(_about(answer))}</p><div class="chips">{_chips(answer)}</div>'
        "</header>\n"
    )


def _about(answer: PlainAnswer) -> str:
    """'28 kernels, 397 launches, 70.8 ms on A100 …, from 1410 / 1593 MHz: files'."""
    workload, base, server = answer.workload, answer.base.config, answer.server
    device = known_device(answer.device or "")
    name = device.name if device else answer.device or "an unnamed GPU"
    several = f"{workload.gpu_count} x " * (workload.gpu_count > 1)
    launches = workload.launches
    parts = [answer.what_ran]
    if launches is not None:
        parts.append(f"{rounded(launches)} {'launch' if launches == 1 else 'launches'}")
    parts.append(_time(answer.base.time_ms))
    if server:
        parts = [server.base.result.model or "a server", load_in_words(server)]
    clocks = [f"{mhz:g}" for mhz in (base.engine_mhz, base.memory_mhz) if mhz > 0]
    start = f", from {' / '.join(clocks)} MHz" if clocks else ""
    return f"{', '.join(parts)} on {several}{name}{start}: {answer.name}"


def _time(time_ms: float) -> str:
    units = ((1e3, "s"), (1.0, "ms"))
    size, unit = next((one for one in units if time_ms >= one[0]), (1e-3, "µs"))
    return f"{rounded(time_ms / size, 3)} {unit}"


def _chips(answer: PlainAnswer) -> str:
    """What unfolds: how sure the answer is, what else it says, the notes, and the next step."""
    folded = [(f"sure: {answer.sure}", _list([REASONS[code].words for code in answer.sure_why]))]
    if more := answer_lines(answer)[1:]:
        title = "bounds" if answer.is_bounded else "load" if answer.server else "expected"
        folded.append((title, _list(more)))
    for severity in ("warning", "note"):
        notes = [note for note in answer.notes if note.severity == severity]
        told = [
            f"{note.code} {_without_folders(note.text, answer.name)}{_whose(note)}".strip()
            for note in notes
        ]
        if told:
            folded.append((counted(len(told), severity), _list(told)))
    if step := answer.next_step:
        folded.append(("next", _list([step.text, *step.commands])))
    return "".join(
        f"<details><summary>{_text(title)}</summary>{content}</details>"
        for title, content in folded
    )


def _whose(note: Note) -> str:
    return f" ({counted(len(note.kernels), 'kernel')})" if note.kernels else ""


def _without_folders(text: str, files: str) -> str:
    """A note that names the run's files by their names alone, as the page may be sent."""
    for name in files.split(", "):
        text = re.sub(rf"[^\s'\",]*[/\\]({re.escape(name)})", r"\1", text)
    return text


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"


def _plain_kernels(answer: PlainAnswer, documented: Sequence[Row]) -> str:
    """The kernels, with their rows of the document, at the answer, or a server's clocks."""
    rows = [["kernel", "% of run", "time", "energy"]]
    for kernel, row in zip(answer.kernels, documented, strict=True):
        at = kernel.in_run
        changes = (at.slowdown_percent, at.energy_percent) if at else (None, None)
        share = share_in_percent((kernel.share_percent or 0) / 100)
        rows.append([row["short"], share, *map(_change, changes)])
    where = "Between the measured clocks" if answer.server else "At the answer"
    if server := answer.server:
        rows = [
            ["cap W" if server.is_of_caps else "MHz", *server.clocks[0].latency_ms, "W", "tokens/J"]
        ]
        for clock in server.clocks:
            told = (*clock.latency_ms.values(), clock.power_w, clock.tokens_per_joule)
            rows.append([f"{clock.setting:g}", *map(_with_ends, told)])
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}' for cell in row)}" for row in rows)
    said = " ".join(answer_lines(answer))
    return (
        f"<p>{_text(said)}</p><p>{where} (the interactive page needs JavaScript and a "
        f"browser from mid 2024 or later):</p><table>{body}</table>"
    )


def _with_ends(told: "Estimate") -> str:
    ends = f" ({number(told.low, 3)} to {number(told.high, 3)})" if told.ends else ""
    return f"{number(told.value, 3)}{ends}"


def _change(percent: float | None) -> str:
    return "not known" if percent is None else f"{percent:+.1f} %"


def _text(text: str) -> str:
    """Text that is no markup, whatever stands in it."""
    return escape(_visible(text), quote=False)


def _visible(text: str) -> str:
    r"""Text with what cannot be seen, such as marks that turn the writing, by its code: \u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# The answer within other limits of slowdown, as `advise` decides it: not by the page's script.


def _clocks_within(answer: PlainAnswer, percents: Sequence[float | None]) -> list[PlainAnswer]:
    """The answer within each of these limits of slowdown [%], None for none.

    Its best is None where no clock keeps a limit.
    """
    advice, subject = answer.advice, answer.subject
    if advice is None or advice.costs is None or subject is None:
        return []
    run, found = advice.costs.summed(), []
    for percent in percents:
        within = replace(answer, limits=_limits(answer, percent), best=None, expected=None)
        terms = Terms(
            objective=answer.objective,
            limits=within.limits,
            no_energy=advice.no_energy,
            keeps_memory=advice.keeps_memory,
            unmeasured=subject.model.unmeasured,
        )
        with suppress(InputError):
            within = _clock_within(within, run, terms)
        found.append(within)
    return found


def _limits(answer: PlainAnswer, percent: float | None) -> Limits:
    return replace(answer.limits, max_slowdown_percent=percent, max_time_ms=None)


def _clock_within(answer: PlainAnswer, run: Costs, terms: Terms) -> PlainAnswer:
    """The answer under these terms. Raises InputError where no clock keeps their limits."""
    places = best_of_run(run, terms)
    best, expected = choices_at(run, terms, np.zeros(2, dtype=int), np.array(places))
    return replace(answer, best=best, expected=expected if places[0] != places[1] else None)


def _caps_within(answer: PlainAnswer, percents: Sequence[float | None]) -> list[PlainAnswer]:
    """As `_clocks_within`, of an answer that is a power cap."""
    from mlscale.advice.caps import choose_cap

    if answer.caps is None:
        return []
    caps, found = answer.caps, []
    for percent in percents:
        limits = _limits(answer, percent)
        best = choose_cap(caps.runs, caps.objective, limits)
        offers = dict(best.menu)
        if percent is None and None in offers:  # else the usual limit would hold
            offer = offers[None]
            best = replace(best, best=offer or best.best, helps=offer is not None, expected=None)
        found.append(replace(under_caps(answer, best), limits=limits))
    return found
