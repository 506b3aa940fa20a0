"""mlscale show: what a model was trained on and holds, and its clusters for profiled kernels."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlscale.cli import options, outputs, subject
from mlscale.cli.text import columns, kernel_names, print_document, written
from mlscale.data.grid import SHORT_NAMES, HardwareConfig
from mlscale.errors import InputError
from mlscale.model import Model
from mlscale.predictors.wu.estimator import Wu
from mlscale.report.model_contents import Row, choices, contents
from mlscale.text import counted, number, rounded

_MOST_NAMED = 6
_NOT_FACTS = ("kernels", "applications", "metadata")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file, or the name of a shipped one")
    parser.add_argument(
        "file",
        nargs="*",
        metavar="PROFILE",
        help="a profile table, or the exports of one run, for a model with clusters: shows the "
        "outputs of all clusters for its kernels",
    )
    subject.add_own_predictor(parser)
    subject.add_facts(parser, "PROFILE")
    parser.set_defaults(profiled_only=True, extrapolate=False)
    outputs.add_results(parser, "a picture of the centroids of each cluster set of 'wu'")


def run(arguments: argparse.Namespace) -> None:
    """Print what the model holds; draw its centroids. Raises InputError."""
    model = options.load_model(arguments, arguments.model)
    document = {"model": Path(arguments.model).name, **contents(model)}
    if arguments.file:
        of = subject.read(arguments)
        document["kernels"] = choices(of.model, of.profiles)
        if not document["kernels"]:
            raise InputError(
                f"{arguments.model}: has no clusters to choose for a profile's kernels"
            )
    outputs.write_into(arguments, document, lambda folder: _draw(folder, model, arguments.model))
    print_document(document, arguments.json, _as_text)


def _draw(folder: Path, model: Model, name: str) -> list[Path]:
    from mlscale.studies.figures import draw_centroids

    written = []
    for quantity, predictor in model.predictors.items():
        if isinstance(predictor, Wu):
            title = f"{Path(name).name}, {model.device}, base {model.base}"
            written += draw_centroids(folder, title, quantity, predictor.cluster_surfaces())
    if not written:
        raise InputError(f"{name}: has no clusters to draw; -o DIR is for models of 'wu'")
    return written


def _as_text(document: Row) -> str:
    """Return the model, its predictors, their clusters, and the outputs for the kernels."""
    blocks = ["\n".join(_card(document))]
    for quantity, predictor in document["predictors"].items():
        blocks.append("\n".join(_predictor(quantity, predictor)))
        blocks += [_clusters(quantity, one) for one in predictor.get("cluster_sets", ())]
    blocks += _outputs(document.get("kernels", []))
    return "\n\n".join([*blocks, *written(document)])


def _card(document: Row) -> Iterator[str]:
    card, base = document["card"], HardwareConfig(**document["base"])
    yield f"{document['model']}: {document['device']}, base {base}"
    steps = [f"{SHORT_NAMES[axis]} {_steps(of)}" for axis, of in document["grid"].items()]
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
        yield f"  features that may be missing ({len(others)}): {', '.join(others)}"
    if predictor.get("learnt_from"):
        yield f"  learnt from: {', '.join(predictor['learnt_from'])}"
    if predictor["capabilities"]:
        yield f"  {', '.join(predictor['capabilities'])}"
    if "n_numbers" in predictor:
        yield f"  holds {rounded(predictor['n_numbers'])} numbers"


def _clusters(quantity: str, one: Row) -> str:
    """Return a row for each cluster: the factors at both ends of each axis, and the kernels."""
    base, grid = one["base"], one["grid"]
    ends = [
        (axis, position, steps[position])
        for axis, steps in grid.items()
        if len(steps) > 1
        for position in (0, -1)
    ]
    at_base = {axis: steps.index(base[axis]) for axis, steps in grid.items()}
    headers = ["cluster", "kernels", *(f"{SHORT_NAMES[axis]} {step:g}" for axis, _, step in ends)]
    lines = []
    for cluster in one["clusters"]:
        kernels = cluster["kernels"]
        cells = [str(cluster["cluster"]), str(len(kernels))]
        for axis, position, _ in ends:
            value = cluster["factors"]
            for index in ({**at_base, axis: position}).values():
                value = value[index]
            cells.append(number(value, 3))
        lines.append([*cells, _named(kernels)])
    return (
        f"{quantity}, {one['region']}: {len(lines)} clusters, times the value at "
        f"{HardwareConfig(**base)}\n{columns([*headers, 'training kernels'], lines)}"
    )


def _outputs(rows: list[Row]) -> list[str]:
    """Return a table for each quantity and region: the output of each cluster for each kernel."""
    blocks = []
    for quantity, region in dict.fromkeys((row["quantity"], row["region"]) for row in rows):
        of_region = [row for row in rows if (row["quantity"], row["region"]) == (quantity, region)]
        names = kernel_names([row["kernel"] for row in of_region])
        lines = [
            [names[row["kernel"]], str(row["cluster"]), *(f"{o:z.2f}" for o in row["outputs"])]
            for row in of_region
        ]
        headers = ["kernel", "cluster", *map(str, range(1, len(of_region[0]["outputs"]) + 1))]
        blocks.append(f"{quantity}, {region}: outputs of the clusters\n{columns(headers, lines)}")
    return blocks


def _steps(steps: list[float]) -> str:
    ends = f"{steps[0]:g} to {steps[-1]:g} in {len(steps)} steps"
    return ends if len(steps) > 1 else f"{steps[0]:g}"


def _named(kernels: list[str]) -> str:
    others = len(kernels) - _MOST_NAMED
    shown = ", ".join(kernel_names(kernels[:_MOST_NAMED]).values())
    return f"{shown} and {others} more" if others > 0 else shown


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        between = "; " if any(isinstance(one, Mapping) for one in value.values()) else ", "
        return between.join(f"{key} {_in_words(one)}" for key, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
