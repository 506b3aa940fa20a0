"""The page: one HTML file of answers, their surfaces, and the script that shows them.

It loads nothing and runs nothing but its own script: the content policy names the hashes of script
and style. All names are put in as text, in the script too. The same input gives the same bytes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from mlscale.advice.commands import clock_templates
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Row
from mlscale.advice.sureness import REASONS
from mlscale.advice.verdict import answer_lines, effects, nothing_better, places
from mlscale.data.devices import known_device
from mlscale.report.surfaces import deflated, surfaces
from mlscale.report.within import caps_within, clocks_within
from mlscale.subject import Subject
from mlscale.text import counted, rounded, share_in_percent

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; "
    "form-action 'none'"
)
_SCRIPTS = ("state.js", "charts.js", "page.js")  # one after the other
MAX_PERCENT, STEP = 60, 0.5  # of the slider of the limit; beyond it there is no limit
_MOST_WORDS = 12  # of the answer at the top
_ORIGINS = {
    "made": "MADE DATA: {} made by a program, not measured on a GPU.",
    "simulated": "SIMULATED DATA: {} run on a simulator, not measured on a GPU.",
}


@dataclass(frozen=True)
class Shown:
    """One run on the page.

    document: its answer's. name: what the run is called, its files. advice, subject: what the
    answer rests on; None of runs of which no clock is known. measured: what `against_measured`
    says. caps: the run under power caps, where these were asked for.
    """

    document: Row
    name: str
    advice: Advice | None = None
    subject: Subject | None = None
    measured: tuple[Row, ...] = ()
    caps: "CapAdvice | None" = None


def page(runs: Sequence[Shown]) -> str:
    """One run, or several to compare, as an HTML document. InputError on too large a grid.

    The plain tables stay where the script cannot run or the browser is too old for it.
    """
    script = "".join(map(_read, _SCRIPTS))
    style = _read("page.css")
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    title = escape(_visible(f"mlscale: {runs[0].name}"))
    heads = "".join(_head(run, place) for place, run in enumerate(runs))
    tables = "".join(map(_plain_kernels, runs))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>\n<body><main>{heads}"
        f'<div id="page">{tables}</div></main>\n'
        f'<script type="application/json" id="data">{_data(runs)}</script>\n'
        f"<script>{script}</script>\n</body></html>\n"
    )


def _read(name: str) -> str:
    return files("mlscale.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content policy names a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(runs: Sequence[Shown]) -> str:
    """All runs as JSON that ends no script and has no character beyond ASCII."""
    rows = [_run(run) for run in runs]
    text = json.dumps({"runs": rows}, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _run(run: Shown) -> Row:
    document = run.document
    limits = Limits(**document["limits"])
    row: Row = {
        "name": run.name,
        "document": document,
        "limit": limits.longest_percent(document["run"]["time_ms"]) if limits.has_time else None,
        "measured": list(run.measured),
        "within": _within(run),
        "grid": None,
        "commands": None,
    }
    if run.advice is None or run.subject is None:
        return row
    grid = surfaces(run.advice, run.subject.model, run.subject.profiles)
    if grid is not None:
        row["grid"] = deflated(grid)
        row["commands"] = clock_templates(run.subject.profiles, grid["axes"]["m"])
    return row


def _within(run: Shown) -> Row:
    """The answer within each limit of slowdown that the slider has, as the command gives it there.

    places: for the run's own limit, for each step from 0, and for no limit, which of the choices
    it is. least: where the least energy is, None where that is not known.
    """
    document = run.document
    percents = [*(STEP * n for n in range(round(MAX_PERCENT / STEP) + 1)), None]
    found, least = [document], None
    if "power_cap_w" in document["base"] and run.caps:
        found += caps_within(document, run.caps, percents)
    elif run.advice and run.subject:
        found += clocks_within(document, run.advice, run.subject.model, percents)
    if run.advice and run.subject and run.advice.no_energy is None:
        for_energy = {**document, "objective": "energy"}
        [one] = clocks_within(for_energy, run.advice, run.subject.model, [None])
        least = one["answer"] and one["answer"]["at"]
    choices = [_shown_choice(one) for one in found]
    each = [one for k, one in enumerate(choices) if one not in choices[:k]]
    return {"choices": each, "places": list(map(each.index, choices)), "least": least}


def _shown_choice(document: Row) -> Row:
    """The answer as the page's head has it, where it is, and the cap that it sets."""
    answer = document["answer"] or {"set": {}, "at": None}
    return {
        "headline": headline(document),
        "at": answer["at"],
        "cap_w": answer["set"].get("power_cap_w"),
    }


# The head, and what a browser without scripts shows.


def headline(document: Row) -> str:
    """The answer in at most 12 words.

    Example:
        >>> headline(document)  # doctest: +SKIP
        'Set 1320 MHz: 4.8 % slower, 9.1 % less energy'
    """
    answer = document["answer"]
    if answer is None and not document["caps"]:
        return "No clock keeps the limits"
    if answer is None:
        is_known = any(cap["time_ms"] for cap in document["caps"])
        return f"None of these power caps {'will do' if is_known else 'can be judged'}"
    if not answer["set"]:
        why = nothing_better(document)
        is_short = len(why.split()) < _MOST_WORDS
        return f"Stay: {why}" if is_short else "Stay: nothing better keeps the limits"
    said = effects(answer, document["objective"], document["run"]["is_bounded"])
    words = f"Set {places(answer['set'], document['base'])}: {said}"
    return words if len(words.split()) <= _MOST_WORDS else words.rpartition(",")[0]


def _head(run: Shown, place: int) -> str:
    """The answer, what the run is, and what to know, folded up."""
    document, banners = run.document, ""
    if run.subject:
        kinds = {
            "the model's training kernels were": run.subject.model.card["metadata"],
            "the profiled kernels were": run.subject.profiles.metadata,
        }
        said = [
            _ORIGINS[origin].format(kernels)
            for kernels, metadata in kinds.items()
            if (origin := str(metadata.get("origin"))) in _ORIGINS
        ]
        banners = "".join(f'<p class="banner">{_text(words)}</p>' for words in said)
    hidden = " hidden" if place else ""
    return (
        f'<header id="head-{place}"{hidden}>{banners}<h1>{_text(headline(document))}</h1>'
        f'<p class="sub">{_text(_about(run))}</p><div class="chips">{_chips(run)}</div>'
        "</header>\n"
    )


def _about(run: Shown) -> str:
    """'28 kernels, 397 launches, 70.8 ms on A100 …, from 1410 / 1593 MHz: files'."""
    document = run.document
    run_row, base = document["run"], document["base"]
    device = known_device(document["device"] or "")
    name = device.name if device else document["device"] or "an unnamed GPU"
    several = f"{run_row['gpu_count']} x " * (run_row["gpu_count"] > 1)
    launches = run_row["launches"]
    parts = [counted(run_row["kernels"], "kernel")]
    if launches is not None:
        parts.append(f"{rounded(launches)} {'launch' if launches == 1 else 'launches'}")
    parts.append(_time(run_row["time_ms"]))
    clocks = [f"{base[axis]:g}" for axis in ("engine_mhz", "memory_mhz") if base[axis]]
    start = f", from {' / '.join(clocks)} MHz" if clocks else ""
    return f"{', '.join(parts)} on {several}{name}{start}: {run.name}"


def _time(time_ms: float) -> str:
    units = ((1e3, "s"), (1.0, "ms"))
    size, unit = next((one for one in units if time_ms >= one[0]), (1e-3, "µs"))
    return f"{rounded(time_ms / size, 3)} {unit}"


def _chips(run: Shown) -> str:
    """What unfolds: how sure the answer is, what else it says, the notes, and the next step."""
    document = run.document
    reasons = [REASONS[code].words for code in document["sure_why"]]
    folded = [(f"sure: {document['sure']}", _list(reasons))]
    if more := answer_lines(document)[1:]:
        folded.append(("bounds" if document["run"]["is_bounded"] else "expected", _list(more)))
    for severity in ("warning", "note"):
        notes = [note for note in document["notes"] if note["severity"] == severity]
        told = [
            f"{note['code']} {_without_folders(note['text'], run.name)}{_whose(note)}".strip()
            for note in notes
        ]
        if told:
            folded.append((counted(len(told), severity), _list(told)))
    if document["next"]:
        folded.append(("next", _list([document["next"], *(document["next_commands"] or [])])))
    return "".join(
        f"<details><summary>{_text(title)}</summary>{content}</details>"
        for title, content in folded
    )


def _whose(note: Row) -> str:
    return "" if note["kernels"] == "all" else f" ({counted(len(note['kernels']), 'kernel')})"


def _without_folders(text: str, files: str) -> str:
    """A note that names the run's files by their names alone, as the page may be sent."""
    for name in files.split(", "):
        text = re.sub(rf"[^\s'\",]*[/\\]({re.escape(name)})", r"\1", text)
    return text


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"


def _plain_kernels(run: Shown) -> str:
    """The kernels at the answer as a plain table."""
    rows = [["kernel", "% of run", "time", "energy"]]
    for kernel in run.document["kernels"]:
        at = kernel["at_answer"] or {}
        changes = [_change(at.get(name)) for name in ("slowdown_percent", "energy_percent")]
        share = share_in_percent((kernel["share_percent"] or 0) / 100)
        rows.append([kernel["short"] or kernel["kernel"], share, *changes])
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}' for cell in row)}" for row in rows)
    said = " ".join(answer_lines(run.document))
    return (
        f"<p>{_text(said)}</p><p>At the answer (the interactive page needs JavaScript and a "
        f"browser from mid 2024 or later):</p><table>{body}</table>"
    )


def _change(values: Sequence[float] | None) -> str:
    return f"{values[0]:+.1f} %" if values else "not known"


def _text(text: str) -> str:
    """Text that is no markup, whatever stands in it."""
    return escape(_visible(text), quote=False)


def _visible(text: str) -> str:
    r"""Text with what cannot be seen, such as marks that turn the writing, by its code: \u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
