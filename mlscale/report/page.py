"""The whole page: verdict and head, the whole run, a section for each kernel, how it was made."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import __version__
from mlscale.advice.answer import RunGoal, advised
from mlscale.advice.document import document as answer_document
from mlscale.advice.recommendation import Advice
from mlscale.advice.verdict import answer_lines
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.predictions import COVERAGE
from mlscale.notes import Note
from mlscale.report import sections
from mlscale.report.kernel_report import KernelReport, kernel_reports
from mlscale.report.levers import commands_section
from mlscale.report.markup import (
    Child,
    Markup,
    block,
    bullets,
    config_in_words,
    document,
    element,
    joined,
    name,
    names,
    paragraph,
    style_sheet,
    terms,
)
from mlscale.report.whole_run import RunReport, whole_run
from mlscale.text import counted, number

MOST_CONFIGURATIONS = 10_000  # each has a row for each kernel; a browser stands no more
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

    notes: on the files, and what was chosen for the user. goal: of the advice. has_commands:
    whether to show what sets the advice.
    """

    model_file: str
    profile_file: str
    command: str
    date: str | None = None
    notes: tuple[Note, ...] = ()
    goal: RunGoal = field(default_factory=RunGoal)
    has_commands: bool = False


def page(model: Model, profiles: Profiles, kernels: Sequence[int], source: Source) -> str:
    """The report on the run, and on the kernels at these positions, as one HTML document.

    Raises InputError where the profiles lack what the model needs, and on a grid of more than
    MOST_CONFIGURATIONS.
    """
    if model.grid.size > MOST_CONFIGURATIONS:
        raise InputError(
            f"a report shows {MOST_CONFIGURATIONS} configurations at most, the model's grid has "
            f"{model.grid.size}; 'mlscale predict' and 'advise' take it"
        )
    goal = source.goal
    advice, caps = advised(model, profiles, goal)
    commands = None
    if source.has_commands:
        clocks = None if goal.lever == "cap" else advice
        commands = commands_section(profiles.metadata, clocks, caps)
    answer = "\n".join(answer_lines(answer_document(advice, source.model_file, caps, goal.lever)))
    reports = kernel_reports(model, profiles, advice, kernels)
    subject = reports[0].name if len(profiles.kernels) == 1 else f"{len(profiles.kernels)} kernels"
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
        _overview(subject, answer, reports, model, profiles, advice, source),
        whole_run(RunReport(advice, profiles, tuple(kernels)), caps, commands),
        *(_kernel(i, report) for i, report in enumerate(reports, start=1)),
        _how_made(model, source.command),
    )
    return document(head, element("body", main))


def _overview(
    subject: str,
    answer: str,
    reports: list[KernelReport],
    model: Model,
    profiles: Profiles,
    advice: Advice,
    source: Source,
) -> Markup:
    """Title, the verdict, and what the data are."""
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
    warnings = _warnings(reports, advice, source)
    return element(
        "header",
        element("h1", "How ", name(subject), f" would run on {model.device}"),
        *(paragraph(text, kind="banner") for text in _banners(model, profiles)),
        *(paragraph(line, kind="verdict") for line in answer.splitlines()),
        element(
            "div",
            terms(pairs),
            element("div", bullets(warnings), class_="flags") if warnings else None,
            class_="columns",
        ),
    )


def _warnings(reports: list[KernelReport], advice: Advice, source: Source) -> list[Child]:
    """What a reader should know of all that is shown."""
    warnings: list[Child] = [*map(str, source.notes)]
    if reports[0].missing_quantities:
        warnings.append(reports[0].missing_quantities)
    if source.goal.static_power_w is not None:
        warnings.append(f"{source.goal.static_power_w:g} W of static power were added to power_w")
    warnings += map(str, (*advice.whole_run.flags, *advice.warnings))
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
        grid.cu_axis or "compute units": grid.cu_count,
        "MHz engine clock": grid.engine_mhz,
        "MHz memory clock": grid.memory_mhz,
    }
    extents = [
        f"{steps[0]:g} {unit}" if len(steps) == 1 else f"{steps[0]:g} to {steps[-1]:g} {unit}"
        for unit, steps in axes.items()
    ]
    return f"{counted(grid.size, 'configuration')}: {', '.join(extents)}"


def _measured_points(profiles: Profiles) -> str:
    """The further configurations that were measured and that the predictions take in."""
    configs = [config_in_words(point.config) for point in profiles.points]
    more = len(configs) - _MOST_POINTS
    return "; ".join(configs[:_MOST_POINTS]) + (f" and {more} more" if more > 0 else "")


def _kernel(i: int, report: KernelReport) -> Markup:
    """All of one kernel."""
    has_energy = report.missing_quantities is None
    return element(
        "section",
        element("h2", name(report.name)),
        element(
            "div",
            block(_kernel_head(report)),
            block(sections.best(report)),
            block(sections.heat_maps(report), is_wide=True),
            block(sections.axis_curves(report), is_wide=not has_energy),
            block(sections.pareto(report), is_wide=not has_energy),
            block(sections.counters(report), is_wide=True),
            block(sections.extrapolation(report)),
            class_="columns",
        ),
        sections.every_configuration(report),
        paragraph(element("a", "Back to the kernels", href="#kernels")),
        id=f"kernel-{i}",
        class_="kernel",
    )


def _kernel_head(report: KernelReport) -> Markup:
    """What was profiled, and the range of each predicted quantity."""
    pairs: list[tuple[str, Child]] = [
        ("Kernel", name(report.name, None)),
        ("Application", name(report.application, None)),
        ("Bound", str(report.place) if report.has_counters else "not known: no counters"),
    ]
    shown = report.is_supplied
    for quantity, values in report.quantities.items():
        unit = report.units[quantity]
        extent = f"{number(values[shown].min())} to {number(values[shown].max())} {unit}"
        text = f"{number(values[report.base])} {unit} at the base; predicted {extent}"
        if quantity in report.intervals:
            low, high = report.intervals[quantity]
            extent = f"{number(low[shown].min())} to {number(high[shown].max())} {unit}"
            is_bounded = quantity == "time" and report.run.is_bounded
            what = "bounds" if is_bounded else f"{100 * COVERAGE:g} % intervals"
            text += f" ({what} {extent})"
        pairs.append((quantity.capitalize(), text))
    missing = report.missing_quantities
    return joined(terms(pairs), paragraph(missing) if missing else None)


def _how_made(model: Model, command: str) -> Markup:
    """The section with commands, versions and the model's card.

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
        ("Predictors", "; ".join(_predictor_in_words(q, p) for q, p in model.predictors.items())),
        ("Trained on", "{} kernels of {} applications".format(*counts)),
        *[(label, str(metadata[key])) for key, label in _METADATA.items() if key in metadata],
        ("Model made with", _versions(made_by.get("versions"))),
        ("Report made with", _versions(report_versions)),
    ]
    return element(
        "section",
        element("h2", "How this was made"),
        terms(pairs),
        element("pre", training_command or "not kept in the model file"),
        element("pre", command),
        class_="end",
        id="made",
    )


def _predictor_in_words(quantity: str, predictor: Any) -> str:
    parameters = predictor.get_params().items()
    settings = [f"{k}={v}" for k, v in parameters if k != "quantity" and v is not None]
    return f"{quantity}: {predictor.name}" + (f" ({', '.join(settings)})" if settings else "")


def _versions(versions: Any) -> str:
    if not isinstance(versions, Mapping) or not versions:
        return "not kept in the model file"
    return ", ".join(f"{package} {version}" for package, version in versions.items())
