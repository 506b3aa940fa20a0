"""How model and report were made, and what to cite for them."""

import platform
from typing import Any

import numpy as np

from mlscale import __version__
from mlscale.model import Model
from mlscale.papers.citations import Reference, citable_names, references_of
from mlscale.report.blocks import bullets, facts_list
from mlscale.report.markup import Child, Markup, element, joined

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
    trained_by = made_by.get("command")
    trained = f"{trained_by} -o MODEL" if trained_by else "not kept in the model file"
    report_versions = {
        "mlscale": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    metadata = {key: value for key, value in card["metadata"].items() if value is not None}
    if "power" in model.predictors:
        metadata = {"power_kind": "of a kind not said, taken for board power", **metadata}
    pairs: list[tuple[str, Child]] = [
        ("Predictors", "; ".join(_predictor(q, p) for q, p in model.predictors.items())),
        ("Trained on", _training(card)),
        *[(label, str(metadata[key])) for key, label in _METADATA.items() if key in metadata],
        ("Model made with", _versions(made_by.get("versions"))),
        ("Report made with", _versions(report_versions)),
    ]
    return element(
        "section",
        element("h2", "How this was made"),
        facts_list(pairs),
        element("pre", trained),
        element("pre", command),
        *_references(model),
        class_="end",
        id="made",
    )


def _predictor(quantity: str, predictor: Any) -> str:
    given = {k: v for k, v in predictor.get_params().items() if k != "quantity" and v is not None}
    settings = ", ".join(f"{key}={value}" for key, value in given.items())
    return f"{quantity}: {predictor.name}" + (f" ({settings})" if settings else "")


def _training(card: dict[str, Any]) -> str:
    counts = [
        len(v) if isinstance(v := card.get(k), list) else "?" for k in ("kernels", "applications")
    ]
    return "{} kernels of {} applications".format(*counts)


def _versions(versions: Any) -> str:
    if not isinstance(versions, dict) or not versions:
        return "not kept in the model file"
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def _references(model: Model) -> list[Markup]:
    """What to cite for the model's predictors and the data of its device."""
    behind = [p.name for p in model.predictors.values()] + [model.device]
    found = references_of([one for one in dict.fromkeys(behind) if one in citable_names()])
    if not found:
        return []
    items = [
        joined(*_reference(reference), f" (for {', '.join(for_)})") for reference, for_ in found
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
