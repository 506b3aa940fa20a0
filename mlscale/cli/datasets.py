"""mlscale datasets: list, show and fetch data sets."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from mlscale.cli import outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import Line, or_dash, sentences, shown, table
from mlscale.data.datasets import Dataset, all_datasets, fetch, find
from mlscale.data.datasets import dataset as find_dataset


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    summaries = {
        "list": "list the data sets that mlscale knows",
        "show": "show what a data set holds, its licence, checksum, and known faults",
        "fetch": "download data sets into the cache",
    }
    commands = parser.add_commands("action", summaries)
    commands["list"].description = (
        "List the data sets that mlscale knows: grid as CU counts x engine clocks x memory clocks; "
        "'here' says whether a set is on this machine."
    )
    outputs.add_json(commands["list"])
    commands["fetch"].description = (
        "Download public data sets into the cache (MLSCALE_CACHE, else ~/.cache/mlscale), unless "
        "they are there or in MLSCALE_DATA already. A file of another SHA-256 is refused."
    )
    for name in ("show", "fetch"):
        what = "a name of 'datasets list'"
        commands[name].add("dataset", nargs="+", metavar="NAME", help=what)
    outputs.add_json(commands["show"])


def run(arguments: argparse.Namespace) -> None:
    """Do what the action says. Raises InputError."""
    match arguments.action:
        case "list":
            datasets = list(all_datasets().values())
            print(_as_json(datasets) + "\n" if arguments.json else _list(datasets), end="")
        case "show":
            datasets = [find_dataset(name) for name in arguments.dataset]
            print(_as_json(datasets) if arguments.json else "\n\n".join(map(_text, datasets)))
        case "fetch":
            for name in arguments.dataset:
                print(f"{name}: {fetch(name)}")


def _as_json(datasets: Sequence[Dataset]) -> str:
    """Return all that is known of the sets, and where each was found on this machine."""
    rows = []
    for dataset in datasets:
        file, place = find(dataset) or (None, None)
        rows.append({**asdict(dataset), "here": file and str(file), "found_by": place})
    return json.dumps(rows, indent=1)


def _list(datasets: Sequence[Dataset]) -> str:
    rows = []
    for dataset in datasets:
        _, place = find(dataset) or (None, "-")
        rows.append([
            dataset.name,
            dataset.device,
            or_dash(dataset.kernels, "d"),
            "x".join(str(len(steps)) for steps in (dataset.axes or {}).values()) or "-",
            or_dash(dataset.counters, "d"),
            "yes" if dataset.power else "no",
            "yes" if place == "MLSCALE_DATA" else place,
        ])  # fmt: skip
    headings = ["name", "GPU", "kernels", "grid", "counters", "power", "here"]
    more = "Origin, licence and faults of one: mlscale datasets show NAME."
    return shown([*table(headings, rows), Line(), *sentences(more)])


def _text(dataset: Dataset) -> str:
    lines = [
        ("holds", dataset.holds),
        ("GPU", dataset.device),
        ("origin", dataset.origin),
        ("kernels", or_dash(dataset.kernels, "d")),
    ]
    for axis, steps in (dataset.axes or {}).items():
        heading = axis.replace("_", " ").replace("mhz", "[MHz]")
        lines.append((heading, ", ".join(f"{step:g}" for step in steps)))
    lines += [
        ("counters", or_dash(dataset.counters, "d")),
        ("power", "yes" if dataset.power else "no"),
        ("licence", dataset.licence or "none stated by its authors; mlscale does not ship it"),
        ("file", dataset.file),
    ]
    if dataset.url:
        lines += [("URL", dataset.url), ("SHA-256", dataset.sha256)]
        lines += [("bytes", or_dash(dataset.size_bytes, "d"))]
    if dataset.parts:
        lines += [("made of", f"{len(dataset.parts)} files below {dataset.url_of_parts}")]
        lines += [("", f"{name}  {sha256}") for name, sha256 in dataset.parts.items()]
    lines += [("here", " ".join(map(str, reversed(find(dataset) or ()))) or "no")]
    lines += [("fault", f"{kernel}: {fault}") for kernel, fault in dataset.faults.items()]
    return "\n".join([dataset.name, *(f"  {name:<14}{text}" for name, text in lines)])
