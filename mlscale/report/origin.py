"""How a page was made: commands, versions, what the model was trained on, what to cite."""

import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from mlscale import __version__
from mlscale.model import Model
from mlscale.papers.citations import Reference, citable_names, references_of
from mlscale.report.markup import Child, Markup, bullets, element, joined, terms

_METADATA = {
    "origin": "Data are",
    "source": "Source",
    "counter_tool": "Counters by",
    "power_kind": "Power is",
}


def how_made(model: Model, command: str) -> Markup:
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
