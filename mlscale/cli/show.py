"""mlscale show: what a model was trained on and holds."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlscale import subject
from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.text import print_document
from mlscale.data.grid import SHORT_NAMES, HardwareConfig
from mlscale.report.model_contents import Row, contents
from mlscale.text import counted, rounded

_NOT_FACTS = ("kernels", "applications", "metadata", "unmeasured")


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add("model", metavar="MODEL", help="model file, or the name of a shipped one")
    options.add_predictor_class(parser)
    outputs.add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print what the model holds. Raises InputError."""
    model = subject.load_model(
        arguments.model, [arguments.predictor] if arguments.predictor else []
    )
    document = {"model": Path(arguments.model).name, **contents(model)}
    print_document(document, arguments.json, _as_text)


def _as_text(document: Row) -> str:
    """Return the model and its predictors, a paragraph each."""
    predictors = document["predictors"].items()
    blocks = [_card(document), *(_predictor(quantity, one) for quantity, one in predictors)]
    return "\n\n".join(map("\n".join, blocks))


def _card(document: Row) -> Iterator[str]:
    card, base = document["card"], HardwareConfig(**document["base"])
    yield f"{document['model']}: {document['device']}, base {base}"
    names = {**SHORT_NAMES, "cu_count": base.cu_axis or "cu"}
    steps = [f"{names[axis]} {_steps(steps)}" for axis, steps in document["grid"].items()]
    if unmeasured := len(card.get("unmeasured", ())):
        steps.append(f"{counted(unmeasured, 'configuration')} of it not measured")
    yield f"grid: {'; '.join(steps)}"
    kernels, applications = card.get("kernels", []), card.get("applications", [])
    yield (
        f"trained on: {counted(len(kernels), 'kernel')} of "
        f"{counted(len(applications), 'application')}: "
        f"{', '.join(applications)}"
    )
    facts = {**card["metadata"], **{k: v for k, v in card.items() if k not in _NOT_FACTS}}
    for name, value in facts.items():
        if value is not None and name != "feature_status":
            yield f"{name.replace('_', ' ')}: {_in_words(value)}"


def _predictor(quantity: str, predictor: Row) -> Iterator[str]:
    yield f"{quantity}: {predictor['name']}: {predictor['what']}"
    parameters = {
        name: value
        for name, value in predictor["parameters"].items()
        if name != "quantity" and value is not None and value != () and value is not False
    }
    if parameters:
        yield f"  parameters: {_in_words(parameters)}"
    needed = predictor.get("features_needed", [])
    others = [name for name in predictor.get("features", []) if name not in needed]
    if needed:
        yield f"  features that a profile needs ({len(needed)}): {', '.join(needed)}"
    if others:
        which = "features that may be missing" if needed else "features"
        yield f"  {which} ({len(others)}): {', '.join(others)}"
    if predictor.get("learnt_from"):
        yield f"  learnt from: {', '.join(predictor['learnt_from'])}"
    if predictor["capabilities"]:
        yield f"  {', '.join(predictor['capabilities'])}"
    if "n_numbers" in predictor:
        yield f"  holds {rounded(predictor['n_numbers'])} numbers"


def _steps(steps: list[float]) -> str:
    ends = f"{steps[0]:g} to {steps[-1]:g} in {len(steps)} steps"
    return ends if len(steps) > 1 else f"{steps[0]:g}"


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        between = "; " if any(isinstance(one, Mapping) for one in value.values()) else ", "
        return between.join(f"{key} {_in_words(one)}" for key, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
