"""mlscale datasets: list, show and fetch data sets, and make those that are drawn."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from mlscale.cli import outputs, values
from mlscale.cli.text import columns, or_dash
from mlscale.data.public import fetching, registry
from mlscale.data.public.registry import Dataset

UNVERIFIED = "not known: nobody here has had the file, and what is fetched is not verified"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    lists = actions.add_parser(
        "list",
        help="list the data sets that mlscale knows",
        description="List the data sets that mlscale knows: grid as CU counts x engine clocks x "
        "memory clocks; 'here' says where a set was found on this machine.",
    )
    outputs.add_json(lists)
    show = actions.add_parser(
        "show",
        help="show what a data set holds",
        description="Show what a data set holds, its licence, checksum, known faults and citation.",
    )
    show.add_argument("dataset", nargs="+", metavar="NAME", help="a name of 'datasets list'")
    outputs.add_json(show)
    fetch = actions.add_parser(
        "fetch",
        help="download data sets into the cache",
        description="Download public data sets into the cache (MLSCALE_CACHE, else "
        "~/.cache/mlscale), unless they are there or in MLSCALE_DATA already. A file whose SHA-256 "
        "is not the known one is refused; if none is known, a message says so.",
    )
    fetch.add_argument("dataset", nargs="+", metavar="NAME", help="a name of 'datasets list'")
    make = actions.add_parser(
        "make",
        help="make a data set",
        description="Make 108 kernels of 49 applications on the 8 x 8 x 7 grid of Wu et al., HPCA "
        "2015: time, dynamic power and the 22 counters of Table II. Made by a mechanistic model of "
        "the HD 7970, not measured.",
    )
    make.add_argument("dataset", choices=("hd7970",), metavar="DATASET", help="hd7970")
    make.add_argument(
        "--seed", type=values.seed, default=0, help="seed of the data (default: %(default)s)"
    )
    outputs.add_output_table(make)


def run(arguments: argparse.Namespace) -> None:
    """Do what the action says. Raises InputError."""
    match arguments.action:
        case "list":
            datasets = list(registry.all_datasets().values())
            print(_as_json(datasets) if arguments.json else _list(datasets))
        case "show":
            datasets = [registry.dataset(name) for name in arguments.dataset]
            print(_as_json(datasets) if arguments.json else "\n\n".join(map(_text, datasets)))
        case "fetch":
            for name in arguments.dataset:
                print(f"{name}: {fetching.fetch(name)}")
        case "make":
            _make(arguments.seed, arguments.output)


def _as_json(datasets: Sequence[Dataset]) -> str:
    """Return all that is known of the sets, and where each was found on this machine."""
    rows = []
    for dataset in datasets:
        file, place = fetching.find(dataset) or (None, None)
        rows.append({**asdict(dataset), "here": file and str(file), "found_by": place})
    return json.dumps(rows, indent=1)


def _list(datasets: Sequence[Dataset]) -> str:
    rows = [
        [
            dataset.name,
            dataset.device,
            dataset.origin,
            or_dash(dataset.kernels, "d"),
            " x ".join(str(len(steps)) for steps in (dataset.axes or {}).values()) or "-",
            or_dash(dataset.counters, "d"),
            "yes" if dataset.power else "no",
            dataset.licence or "none stated",
            (fetching.find(dataset) or (None, "-"))[1] if dataset.file else "by 'make'",
        ]
        for dataset in datasets
    ]
    headers = ["name", "GPU", "origin", "kernels", "grid", "counters", "power", "licence", "here"]
    return columns(headers, rows)


def _text(dataset: Dataset) -> str:
    from mlscale.papers.citations import references_of

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
        ("licence", dataset.licence or "none stated by its authors; mlscale does not pass it on"),
        ("file", dataset.file or f"mlscale datasets make {dataset.name} -o TABLE"),
    ]
    if dataset.url:
        lines += [("URL", dataset.url), ("SHA-256", dataset.sha256 or UNVERIFIED)]
        lines += [("bytes", or_dash(dataset.size_bytes, "d"))]
    if dataset.parts:
        lines += [("made of", f"{len(dataset.parts)} files below {dataset.url_of_parts}")]
        lines += [("", f"{name}  {sha256}") for name, sha256 in dataset.parts.items()]
    lines += [("here", " ".join(map(str, reversed(fetching.find(dataset) or ()))) or "no")]
    lines += [("fault", f"{kernel}: {fault}") for kernel, fault in dataset.faults.items()]
    lines += [("cite", ref.as_text()) for ref, _ in references_of([dataset.name])]
    return "\n".join([dataset.name, *(f"  {name:<14}{text}" for name, text in lines)])


def _make(seed: int, output: str) -> None:
    from mlscale.data.synthetic.hd7970 import make_hd7970

    table = outputs.output_file(output)
    measurements = make_hd7970(seed)
    measurements.write(table)
    print(
        f"{table}: made, not measured: {len(measurements.kernels)} kernels of "
        f"{len(set(measurements.applications))} applications at {measurements.grid.size} "
        "configurations"
    )
