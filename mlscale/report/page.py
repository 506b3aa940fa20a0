"""The whole page: head, contents, a section for each kernel, how it was made, references."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import __version__
from mlscale.data.profiles import Profiles
from mlscale.model import Model, feature_warnings, training_warnings
from mlscale.papers.citations import Reference, citable_names, references_of
from mlscale.predictions import COVERAGE
from mlscale.report import sections
from mlscale.report.kernel_report import UNITS, KernelReport, kernel_reports
from mlscale.report.markup import (
    Child,
    Markup,
    bullets,
    config_in_words,
    document,
    element,
    joined,
    name,
    names,
    number,
    paragraph,
    style_sheet,
    table,
    terms,
    times,
)

MOST_KERNELS = 20
_MOST_POINTS = 6
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BANNERS = {
    "made": "MADE DATA: {} made by a program, not measured on a GPU.",
    "simulated": "SIMULATED DATA: {} run on a simulator, not measured on a GPU.",
}
_METADATA = {
    "origin": "Data are",
    "source": "Source",
    "counter_tool": "Counters by",
    "power_kind": "Power is",
}


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
    shown = profiles.select(kernels)
    reports = kernel_reports(model, shown, source.static_power_w)
    subject = reports[0].name if len(reports) == 1 else f"{len(reports)} kernels"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"mlscale report: {subject} on {model.device}"),
        style_sheet(Path(__file__).with_name("style.css").read_text(encoding="utf-8")),
    )
    main = element(
        "main",
        _overview(reports, model, profiles, source),
        *(_kernel(i, report, shown) for i, report in enumerate(reports, start=1)),
        _how_made(model, source.command),
    )
    return document(head, element("body", main))


def _overview(
    reports: list[KernelReport], model: Model, profiles: Profiles, source: Source
) -> Markup:
    """Title, what the data are, and the kernels as a table of contents."""
    subject: Child = name(reports[0].name) if len(reports) == 1 else f"{len(reports)} kernels"
    base = f"{config_in_words(model.base)} (engine / memory clock): where it was profiled"
    pairs: list[tuple[str, Child]] = [
        ("Profile", name(source.profile_file, None)),
        ("Model", name(source.model_file, None)),
        ("Device", name(model.device, None)),
        ("Base", base),
        ("Predicted for", _grid_in_words(model)),
        *([("Measured too at", _measured_points(profiles))] if profiles.points else []),
        *([("Date", name(source.date, None))] if source.date else []),
    ]
    warnings = _warnings(reports, model, profiles, source.static_power_w)
    left_out = [k for k in profiles.kernels if k not in {report.name for report in reports}]
    others = paragraph(
        f"{len(reports)} of the profile's {len(profiles.kernels)} kernels are shown; "
        "mlscale report --kernel NAME shows others. Not shown: ",
        names(left_out, 30),
        ".",
    )
    return element(
        "header",
        element("h1", "How ", subject, f" would run on {model.device}"),
        *(paragraph(text, kind="banner") for text in _banners(model, profiles)),
        terms(pairs),
        element("div", bullets(warnings), class_="flags") if warnings else None,
        _contents(reports),
        others if left_out else None,
    )


def _warnings(
    reports: list[KernelReport], model: Model, profiles: Profiles, static_power_w: float | None
) -> list[Child]:
    """What a reader should know of all that is shown."""
    warnings: list[Child] = [*training_warnings(model)]
    if reports[0].missing_quantities:
        warnings.append(reports[0].missing_quantities)
    if static_power_w is not None:
        warnings.append(f"{static_power_w:g} W of static power were added to power_w")
    warnings += feature_warnings(model, profiles)
    if known := [report.name for report in reports if report.was_trained_on]:
        text = (
            "among the model's training kernels, so partly remembered; what is shown says "
            "little of the error for new kernels: "
        )
        warnings.append(joined(text, names(known, 10)))
    return warnings


def _banners(model: Model, profiles: Profiles) -> list[str]:
    """That data are made or simulated, in plain words at the top."""
    metadata_of = {
        "the model's training kernels were": model.card["metadata"],
        "the profiled kernels were": profiles.metadata,
    }
    return [
        _BANNERS[origin].format(kernels)
        for kernels, metadata in metadata_of.items()
        if (origin := str(metadata.get("origin"))) in _BANNERS
    ]


def _grid_in_words(model: Model) -> str:
    """The extent of the grid."""
    grid = model.grid
    axes = {
        "compute units": grid.cu_count,
        "MHz engine clock": grid.engine_mhz,
        "MHz memory clock": grid.memory_mhz,
    }
    extents = [
        f"{steps[0]:g} {unit}" if len(steps) == 1 else f"{steps[0]:g} to {steps[-1]:g} {unit}"
        for unit, steps in axes.items()
    ]
    return f"{grid.size} configurations: {', '.join(extents)}"


def _measured_points(profiles: Profiles) -> str:
    """The further configurations that were measured and that the predictions take in."""
    configs = [config_in_words(point.config) for point in profiles.points]
    more = len(configs) - _MOST_POINTS
    return "; ".join(configs[:_MOST_POINTS]) + (f" and {more} more" if more > 0 else "")


def _contents(reports: list[KernelReport]) -> Markup:
    """Kernels with links to their sections, and the first figures of each."""
    headers = ["kernel", "base [ms]", "shortest time", "there"]
    if "energy" in reports[0].quantities:
        headers += ["lowest energy", "there"]
    headers.append("flags")
    rows = []
    for i, report in enumerate(reports, start=1):
        link = element("a", name(report.name), href=f"#kernel-{i}")
        cells: list[Child] = [link, number(report.quantities["time"][report.base])]
        for quantity in ("time", "energy"):
            if quantity in report.quantities:
                best = report.best(quantity)
                cells.append(times(report.factors(quantity)[best]))
                cells.append(config_in_words(report.config(best)))
        rows.append([*cells, str(len(report.flags))])
    words = tuple(i for i, header in enumerate(headers) if header in ("kernel", "there"))
    return element(
        "nav", element("h2", "Kernels"), table(headers, rows, words), aria_label="Kernels"
    )


def _kernel(i: int, report: KernelReport, profiles: Profiles) -> Markup:
    """All of one kernel."""
    status = profiles.metadata.get("feature_status")
    counters = profiles.counters[report.position].tolist()
    values = dict(zip(profiles.counter_names, counters, strict=True))
    return element(
        "section",
        element("h2", name(report.name)),
        _kernel_head(report),
        sections.heat_maps(report),
        sections.axis_curves(report),
        sections.pareto(report),
        sections.best(report),
        sections.counters(report, status if isinstance(status, dict) else {}, values),
        sections.neighbours(report),
        sections.extrapolation(report),
        sections.every_configuration(report),
        paragraph(element("a", "Back to the kernels", href="#top")),
        id=f"kernel-{i}",
        class_="kernel",
    )


def _kernel_head(report: KernelReport) -> Markup:
    """What was profiled, and the range of each predicted quantity."""
    pairs: list[tuple[str, Child]] = [
        ("Kernel", name(report.name, None)),
        ("Application", name(report.application, None)),
    ]
    for quantity, values in report.quantities.items():
        unit = UNITS[quantity]
        extent = f"{number(values.min())} to {number(values.max())} {unit}"
        text = f"{number(values[report.base])} {unit} at the base; predicted {extent}"
        if quantity in report.intervals:
            low, high = report.intervals[quantity]
            extent = f"{number(low.min())} to {number(high.max())} {unit}"
            text += f" ({100 * COVERAGE:g} % intervals {extent})"
        pairs.append((quantity.capitalize(), text))
    missing = report.missing_quantities
    return joined(terms(pairs), paragraph(missing) if missing else None)


def _how_made(model: Model, command: str) -> Markup:
    """The section with commands, versions, the model's card, and references.

    command: what made the report.
    """
    card, made_by = model.card, model.card.get("made_by")
    made_by = made_by if isinstance(made_by, dict) else {}
    training_command = made_by.get("command")
    report_versions = {
        "mlscale": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    metadata = {key: value for key, value in card["metadata"].items() if value is not None}
    if "power" in model.predictors:
        metadata = {"power_kind": "of a kind not said, taken for board power", **metadata}
    counts = [
        len(v) if isinstance(v := card.get(k), list) else "?" for k in ("kernels", "applications")
    ]
    pairs: list[tuple[str, Child]] = [
        ("Predictors", "; ".join(_predictor(q, p) for q, p in model.predictors.items())),
        ("Trained on", "{} kernels of {} applications".format(*counts)),
        *[(label, str(metadata[key])) for key, label in _METADATA.items() if key in metadata],
        ("Model made with", _versions(made_by.get("versions"))),
        ("Report made with", _versions(report_versions)),
    ]
    not_kept = "not kept in the model file"
    return element(
        "section",
        element("h2", "How this was made"),
        terms(pairs),
        element("pre", f"{training_command} -o MODEL" if training_command else not_kept),
        element("pre", command),
        *_references(model),
        class_="end",
        id="made",
    )


def _predictor(quantity: str, predictor: Any) -> str:
    parameters = predictor.get_params().items()
    settings = [f"{k}={v}" for k, v in parameters if k != "quantity" and v is not None]
    return f"{quantity}: {predictor.name}" + (f" ({', '.join(settings)})" if settings else "")


def _versions(versions: Any) -> str:
    if not isinstance(versions, Mapping) or not versions:
        return "not kept in the model file"
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def _references(model: Model) -> list[Markup]:
    """What to cite for the model's predictors and the data of its device."""
    sources = dict.fromkeys([p.name for p in model.predictors.values()] + [model.device])
    references = references_of([source for source in sources if source in citable_names()])
    if not references:
        return []
    items = [
        joined(*_reference(reference), f" (for {', '.join(subjects)})")
        for reference, subjects in references
    ]
    return [element("h3", "References"), bullets(items)]


def _reference(reference: Reference) -> list[Child]:
    """A reference as text, its DOI or address as a link."""
    text = reference.as_text()
    for field, prefix in (("doi", "https://doi.org/"), ("url", "")):
        address = prefix + reference.fields.get(field, "")
        if field in reference.fields and address.startswith("https://"):
            shown = f"doi:{reference.fields[field]}" if field == "doi" else address
            before, _, after = text.rpartition(shown)
            return [before, element("a", shown, href=address, rel="noreferrer"), after]
    return [text]
