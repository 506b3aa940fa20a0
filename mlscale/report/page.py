"""The whole page: head, contents, a section for each kernel, how it was made, references."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlscale.advice.advise import COVERAGE
from mlscale.data.profiles import Profiles
from mlscale.model import Model, feature_warnings, training_warnings
from mlscale.report import decision_sections, evidence_sections, provenance, surface_sections
from mlscale.report.blocks import (
    bullets,
    facts_list,
    line,
    name,
    names,
    spoken,
    table,
    whole_name,
)
from mlscale.report.kernel_report import UNITS, Facts, facts_of
from mlscale.report.markup import Child, Markup, document, element, joined, style_sheet
from mlscale.report.numbers import number, times

MOST_KERNELS = 20
_CONFIGS = 6
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Source:
    """Where model and profile came from, as the page says it; date: None for no date.

    static_power_w [W]: what the user says that the board draws beside dynamic power.
    """

    model_file: str
    profile_file: str
    command: str
    date: str | None = None
    static_power_w: float | None = None


def page(model: Model, profiles: Profiles, kernels: Sequence[int], source: Source) -> str:
    """The report on the kernels at these positions of the profiles, as one HTML document.

    Raises InputError where the profiles lack what the model needs.
    """
    facts = facts_of(model, profiles, kernels, source.static_power_w)
    title = f"mlscale report: {_title(facts)} on {model.device}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        style_sheet(Path(__file__).with_name("style.css").read_text(encoding="utf-8")),
    )
    sections = [_kernel(i, each, profiles) for i, each in enumerate(facts, start=1)]
    main = element(
        "main",
        _overview(facts, model, profiles, source),
        *sections,
        provenance.how_made(model, source.command),
    )
    return document(head, element("body", main))


def _title(facts: list[Facts]) -> str:
    return facts[0].name if len(facts) == 1 else f"{len(facts)} kernels"


def _overview(facts: list[Facts], model: Model, profiles: Profiles, source: Source) -> Markup:
    """Title, what the data are, and the kernels as a table of contents."""
    parts: list[Child] = [element("h1", "How ", _what(facts), f" would run on {model.device}")]
    parts += [line(text, kind="banner") for text in _banners(model, profiles)]
    parts.append(
        facts_list(
            [
                ("Profile", whole_name(source.profile_file)),
                ("Model", whole_name(source.model_file)),
                ("Device", whole_name(model.device)),
                ("Base", f"{spoken(model.base)} (engine / memory clock): where it was profiled"),
                ("Predicted for", _grid(model)),
                *([("Measured too at", _also(profiles))] if profiles.also else []),
                *([("Date", whole_name(source.date))] if source.date else []),
            ]
        )
    )
    warnings: list[Child] = [*training_warnings(model)]
    if facts[0].what_lacks:
        warnings.append(facts[0].what_lacks)
    if source.static_power_w is not None:
        warnings.append(f"{source.static_power_w:g} W of static power were added to power_w")
    warnings += feature_warnings(model, profiles)
    if known := [each.name for each in facts if each.was_trained_on]:
        warnings.append(
            joined(
                "among the model's training kernels, so partly remembered; what is shown says "
                "little of the error for new kernels: ",
                names(known, 10),
            )
        )
    if warnings:
        parts.append(element("div", bullets(warnings), class_="flags"))
    parts.append(_contents(facts))
    left_out = [k for k in profiles.kernels if k not in {each.name for each in facts}]
    if left_out:
        parts.append(
            line(
                f"{len(facts)} of the profile's {len(profiles.kernels)} kernels are shown; "
                "mlscale report --kernel NAME shows others. Not shown: ",
                names(left_out, 30),
                ".",
            )
        )
    return element("header", *parts)


def _what(facts: list[Facts]) -> Markup:
    return name(facts[0].name) if len(facts) == 1 else joined(f"{len(facts)} kernels")


def _banners(model: Model, profiles: Profiles) -> list[str]:
    """That data are made or simulated, in plain words at the top."""
    kinds = {
        "made": "MADE DATA: {} made by a program, not measured on a GPU.",
        "simulated": "SIMULATED DATA: {} run on a simulator, not measured on a GPU.",
    }
    whose = {
        "the model's training kernels were": model.card["metadata"],
        "the profiled kernels were": profiles.metadata,
    }
    return [
        kinds[origin].format(who)
        for who, metadata in whose.items()
        if (origin := str(metadata.get("origin"))) in kinds
    ]


def _grid(model: Model) -> str:
    """The extent of the grid."""
    grid = model.grid
    axes = [(grid.cu_count, "compute units"), (grid.engine_mhz, "MHz engine clock")]
    parts = []
    for steps, label in [*axes, (grid.memory_mhz, "MHz memory clock")]:
        ends = f"{steps[0]:g}" if len(steps) == 1 else f"{steps[0]:g} to {steps[-1]:g}"
        parts.append(f"{ends} {label}")
    return f"{grid.size} configurations: {', '.join(parts)}"


def _also(profiles: Profiles) -> str:
    """The further configurations that were measured and that the predictions take in."""
    configs = [spoken(point.config) for point in profiles.also]
    more = f" and {len(configs) - _CONFIGS} more" if len(configs) > _CONFIGS else ""
    return "; ".join(configs[:_CONFIGS]) + more


def _contents(facts: list[Facts]) -> Markup:
    """Kernels with links to their sections, and the first figures of each."""
    headers = ["kernel", "base [ms]", "shortest time", "there"]
    if "energy" in facts[0].quantities:
        headers += ["lowest energy", "there"]
    headers.append("flags")
    rows = []
    for i, each in enumerate(facts, start=1):
        link = element("a", name(each.name), href=f"#kernel-{i}")
        cells: list[Child] = [link, number(each.quantities["time"][each.base])]
        for quantity in ("time", "energy"):
            if quantity in each.quantities:
                values, best = each.quantities[quantity], each.best(quantity)
                cells += [times(values[best] / values[each.base]), spoken(each.config(best))]
        rows.append([*cells, str(len(each.flags))])
    words = tuple(i for i, header in enumerate(headers) if header in ("kernel", "there"))
    return element(
        "nav", element("h2", "Kernels"), table(headers, rows, words), aria_label="Kernels"
    )


def _kernel(i: int, facts: Facts, profiles: Profiles) -> Markup:
    """All of one kernel."""
    status = profiles.metadata.get("feature_status")
    explained = facts.explanations.get("time")
    used = set(explained.names) if explained else set()
    given = profiles.counters[facts.position]
    others = [
        counter
        for counter, value in zip(profiles.counter_names, given, strict=True)
        if counter not in used and not np.isnan(value)
    ]
    return element(
        "section",
        element("h2", name(facts.name)),
        _head(facts),
        surface_sections.heat_maps(facts),
        surface_sections.axis_curves(facts),
        decision_sections.pareto(facts),
        decision_sections.best(facts),
        evidence_sections.features(facts, status if isinstance(status, dict) else {}, others),
        evidence_sections.neighbours(facts),
        evidence_sections.extrapolation(facts),
        surface_sections.every_configuration(facts),
        line(element("a", "Back to the kernels", href="#top")),
        id=f"kernel-{i}",
        class_="kernel",
    )


def _head(facts: Facts) -> Markup:
    """What was profiled, and the range of each predicted quantity."""
    pairs: list[tuple[str, Child]] = [
        ("Kernel", whole_name(facts.name)),
        ("Application", whole_name(facts.application)),
    ]
    for quantity, values in facts.quantities.items():
        unit = UNITS[quantity]
        ends = f"{number(values.min())} to {number(values.max())} {unit}"
        text = f"{number(values[facts.base])} {unit} at the base; predicted {ends}"
        if quantity in facts.intervals:
            low, high = facts.intervals[quantity]
            ends = f"{number(low.min())} to {number(high.max())} {unit}"
            text += f" ({100 * COVERAGE:g} % intervals {ends})"
        pairs.append((quantity.capitalize(), text))
    return joined(facts_list(pairs), line(facts.what_lacks) if facts.what_lacks else None)
