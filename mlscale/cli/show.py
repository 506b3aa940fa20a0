"""mlscale show: what a model was trained on and holds."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import Line, facts, json_text, percent, sentences, shown
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import UsageError
from mlscale.model.model import Model, load, shipped_models
from mlscale.predictors.base import (
    GivesIntervals,
    HasFeatures,
    NeedsFeatures,
    PoolsGpus,
    Predictor,
    PredictsOtherGpus,
    Savable,
    UsesMeasuredPoints,
)
from mlscale.text import counted, rounded

MOST_NAMED = 3  # GPUs
Row = dict[str, Any]
Fact = tuple[str, str]
CAPABILITIES = {
    GivesIntervals: "gives intervals",
    PredictsOtherGpus: "predicts unseen GPUs",
    UsesMeasuredPoints: "uses further measured points",
}
_NOT_FACTS = ("kernels", "metadata", "unmeasured", "feature_status", "origin")


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    what = "model file, or the name of a shipped one"
    parser.add("model", nargs="?", metavar="MODEL", help=what)
    what = "print its grid, applications, sources, parameters and features too"
    parser.add("--all", action="store_true", help=what)
    options.add_predictor_class(parser)
    outputs.add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print what the model holds. Raises InputError."""
    if arguments.model is None:
        raise UsageError(f"name a model file, or a shipped model: {', '.join(shipped_models())}")
    model = load(arguments.model, [arguments.predictor] if arguments.predictor else [])
    document = {"model": Path(arguments.model).name, **contents(model)}
    if arguments.json:
        print(json_text(document), end="")
        return
    more = sentences("Grid, kernels, sources, parameters: --all.")
    if arguments.all:
        more = [Line(), *facts(_details(document))]
    print(shown([*facts(_in_short(document)), *more]), end="")


def contents(model: Model) -> Row:
    """Return the grid, the base and the card of a model, and what each predictor holds, as JSON."""
    return {
        "device": model.device,
        "base": model.base.as_document(),
        "grid": {axis: list(getattr(model.grid, axis)) for axis in AXES},
        "card": model.card,
        "predictors": {name: _predictor(one) for name, one in model.predictors.items()},
    }


def _predictor(predictor: Predictor) -> Row:
    row: Row = {
        "name": predictor.name,
        "what": (type(predictor).__doc__ or "").split("\n", 1)[0],
        "parameters": predictor.get_params(),
        "capabilities": [
            words for kind, words in CAPABILITIES.items() if isinstance(predictor, kind)
        ],
    }
    if isinstance(predictor, HasFeatures):
        row["features"] = list(predictor.feature_names())
        needs = predictor.needs() if isinstance(predictor, NeedsFeatures) else ()
        row["features_needed"] = list(needs)
    if isinstance(predictor, PoolsGpus):
        row["learnt_from"] = list(predictor.trained_devices())
    if isinstance(predictor, Savable):
        row["n_numbers"] = _numbers(predictor.state())
    return row


def _numbers(state: Any) -> int:
    """Return how many numbers a state holds in its arrays."""
    if isinstance(state, np.ndarray):
        return state.size
    parts = state.values() if isinstance(state, dict) else state
    return sum(map(_numbers, parts)) if isinstance(state, dict | list | tuple) else 0


def _in_short(document: Row) -> list[Fact]:
    """What the model is for, what it was trained on, its error and what it needs."""
    card, predictors = document["card"], document["predictors"]
    device, base = document["device"], HardwareConfig(**document["base"])
    by_name: dict[str, list[str]] = {}
    for quantity, one in predictors.items():
        by_name.setdefault(one["name"], []).append(quantity)
    by = [f"{' and '.join(quantities)} by {name}" for name, quantities in by_name.items()]
    first, *_ = predictors.values()
    goes_elsewhere = CAPABILITIES[PredictsOtherGpus] in first["capabilities"] and "for" not in card
    elsewhere = "; other GPUs of the device table too" * goes_elsewhere
    kernels = counted(len(card.get("kernels", ())), "kernel")
    applications = counted(len(card.get("applications", ())), "application")
    return [
        (document["model"], " and ".join(by)),
        ("for", f"{card.get('for') or f'profiles of {device} at {base}'}{elsewhere}"),
        ("trained on", _learnt_from(predictors) or f"{kernels} of {applications} on {device}"),
        ("data", str(card["metadata"].get("origin") or "")),
        ("error", _off_by(card)),
        ("needs", _needs(predictors.values())),
        ("other vendors", card.get("other_vendors", "")),
    ]


def errors_in_words(found: Row) -> str:
    """The errors on applications left out that a model's card keeps, in words."""
    told = []
    for quantity in QUANTITIES:
        if one := found.get(quantity):
            error = "" if one["standard_error"] is None else f" ±{one['standard_error']:.1f}"
            told.append(f"{quantity} {percent(one['mape'], '')}{error}")
    return ", ".join(told)


def _learnt_from(predictors: Mapping[str, Row]) -> str:
    """The GPUs of several that each quantity was learnt from."""
    learnt = {}
    for quantity, one in predictors.items():
        devices = list(dict.fromkeys(one.get("learnt_from", ())))
        if len(devices) > 1:
            many = len(devices) > MOST_NAMED
            learnt[quantity] = counted(len(devices), "GPU") if many else ", ".join(devices)
    return "; ".join(f"{quantity}: {devices}" for quantity, devices in learnt.items())


def _needs(predictors: Iterable[Row]) -> str:
    """The counters that a profile must have, and how many more there may be."""
    needed = dict.fromkeys(name for one in predictors for name in one.get("features_needed", ()))
    names = {name for one in predictors for name in one.get("features", ())} - {*needed}
    more = f"{counted(len(names), 'feature')}{' more improve it' if needed else ''} (--all)"
    return "; ".join([*filter(None, [", ".join(needed)]), *([more] if names else [])])


def _off_by(card: Row) -> str:
    """How far off it was on GPUs, or applications, left out; '' where nobody looked."""
    if found := card.get("left_out_errors"):
        return f"{errors_in_words(found)}, on unseen applications ({found['folds']} folds)"
    by_table = card.get("errors_on_gpus_left_out", {}).values()
    by_quantity = {q: [one[q] for one in by_table if q in one] for q in QUANTITIES}
    by_quantity["time"] += card.get("time_on_gpus_left_out", {}).values()
    ranges = []
    for quantity, figures in by_quantity.items():
        if figures:
            off = _range([one["mean_error_percent"] for one in figures], ".1f")
            held = _range([one["intervals_hold_percent"] for one in figures], ".0f")
            ranges.append(f"{quantity} {off} % (90 % intervals hold {held} %)")
    return f"{'; '.join(ranges)}, on unseen GPUs" if ranges else ""


def _range(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def _details(document: Row) -> list[Fact]:
    """The grid, the card, and what each predictor holds."""
    card, base = document["card"], HardwareConfig(**document["base"])
    names = {**SHORT_NAMES, "cu_count": base.cu_axis or "cu"}
    steps = [f"{names[axis]} {_steps(steps)}" for axis, steps in document["grid"].items()]
    if unmeasured := len(card.get("unmeasured", ())):
        steps.append(f"{counted(unmeasured, 'configuration')} of it not measured")
    told = [("grid", "; ".join(steps))]
    for name, value in {**card, **card["metadata"]}.items():
        if value is not None and name not in _NOT_FACTS:
            told.append((name.replace("_", " "), _in_words(value)))
    for quantity, one in document["predictors"].items():
        parameters = {
            name: value
            for name, value in one["parameters"].items()
            if name != "quantity" and value is not None and value != () and value is not False
        }
        features = one.get("features", ())
        told += [
            (quantity, f"{one['name']}: {one['what']}"),
            ("parameters", _in_words(parameters)),
            ("features needed", _in_words(one.get("features_needed", ()))),
            (f"features ({len(features)})", _in_words(features)),
            ("trained on", _in_words(one.get("learnt_from", ()))),
            ("it", _in_words(one["capabilities"])),
            ("numbers", rounded(one["n_numbers"]) if "n_numbers" in one else ""),
        ]
    return told


def _steps(steps: list[float]) -> str:
    ends = f"{steps[0]:g} to {steps[-1]:g} in {len(steps)} steps"
    return ends if len(steps) > 1 else f"{steps[0]:g}"


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        between = "; " if any(isinstance(one, Mapping) for one in value.values()) else ", "
        return between.join(f"{key} {_in_words(one)}" for key, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
