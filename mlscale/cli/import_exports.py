"""mlscale import of a profiler's export: its options, the progress bar, what is told."""

import argparse
import os
from pathlib import Path
from typing import Any

from mlscale.cli.text import columns, number
from mlscale.data.grid import HardwareConfig, parse_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of profilers' exports alone."""
    parser.add_argument(
        "--base",
        metavar="CONFIG",
        help="what the GPU was set to, as far as the files do not say: "
        "cu=56,engine=1303,memory=715 (clocks in MHz)",
    )
    parser.add_argument(
        "--application",
        metavar="NAME",
        help="application of all kernels (default: the program that was profiled, else the file)",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="a row for each launch, as repetitions (default: the mean over the launches of a "
        "kernel with the same grid and block)",
    )
    parser.add_argument(
        "--append",
        action="store_true",
        help="add the rows to TABLE if it exists, for example those of another configuration",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print each feature of Table II: exact, nearest or missing, and by which formula",
    )


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of exports as they were given, by name."""
    names = ("base", "application", "each", "append", "verbose")
    return {f"--{name}": getattr(arguments, name) for name in names}


def run(arguments: argparse.Namespace, output: Path) -> None:
    """Import the files of one run. Raises InputError."""
    from tqdm import tqdm

    from mlscale.data.tables import read_table, write_table
    from mlscale.profilers import import_exports
    from mlscale.profilers.appending import appended

    paths = [Path(name) for name in arguments.file]
    total = sum(os.path.getsize(path) for path in paths if path.is_file())  # noqa: PTH202
    with tqdm(total=total, unit="B", unit_scale=True, disable=None, leave=False) as bar:
        imported = import_exports(
            paths,
            None if arguments.format == "auto" else arguments.format,
            device=arguments.device,
            base=parse_settings(arguments.base) if arguments.base else None,
            application=arguments.application,
            each=arguments.each,
            progress=bar.update,
        )
    table = imported.table
    if arguments.append and output.exists():
        table = appended(read_table(output), table, str(output))
    write_table(table, output)
    statuses = [feature.status for feature in imported.features.values()]
    first = imported.table
    config = HardwareConfig(
        int(first.numbers["cu_count"][0]),
        float(first.numbers["engine_mhz"][0]),
        float(first.numbers["memory_mhz"][0]),
    )
    print(
        f"{output}: {imported.kernels} kernels from {imported.launches} launches "
        f"({'one row for each' if arguments.each else 'means'}) on {first.text['device'][0]} at "
        f"{config}; Table II: {statuses.count('exact')} exact, {statuses.count('nearest')} "
        f"nearest, {statuses.count('missing')} missing"
        + (f"; {len(table)} rows in all" if len(table) > len(first) else "")
    )
    if arguments.verbose:
        for path, title in zip(paths, imported.titles, strict=True):
            print(f"{path}: {title}")
        values = {name: first.numbers.get(name, [None])[0] for name in imported.features}
        rows = [
            [
                name,
                feature.status,
                "-" if feature.value is None else number(_plain(values[name])),
                feature.formula + (f"  ({feature.note})" if feature.note else ""),
            ]
            for name, feature in imported.features.items()
        ]
        print(columns(["feature", "status", "first row", "formula"], rows))


def _plain(value: Any) -> float | None:
    return None if value is None or value != value else float(value)  # noqa: PLR0124
