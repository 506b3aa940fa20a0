"""mlscale literature wu: how the kernels of a table scale, as in Fig. 1 of Wu et al."""

import argparse
from functools import partial
from itertools import chain
from typing import Any

from mlscale.cli import options, outputs, values
from mlscale.cli.text import columns, kernel_names, print_document, written
from mlscale.data.grid import SHORT_NAMES, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.studies.scaling import scaling_rows, unlike_kernels
from mlscale.text import counted, number

_PANELS = 4  # as many as Fig. 1 has


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("table", nargs="+", metavar="TABLE", help="tidy table, CSV or Parquet")
    parser.add_argument(
        "--kernels",
        type=values.names,
        metavar="NAMES",
        help="kernels to draw, separated by commas (default: the four of each table that scale "
        "most differently)",
    )
    options.add_reading(parser)
    outputs.add_results(parser, "measured surfaces as in the paper's Fig. 1, of each table")


def run(arguments: argparse.Namespace) -> None:
    """Print what each axis gains, and draw the surfaces. Raises InputError."""
    if not arguments.output:
        options.refuse_unused(arguments, ["kernels"], "without -o DIR")
    tables = {}
    for path, data in options.read_tables(arguments, arguments.table).items():
        if data.grid.size == 1:
            raise InputError(f"{path}: has a single configuration; how it scales takes several")
        tables[path.stem] = data
    shown = {
        name: unlike_kernels(data, _PANELS)
        if arguments.kernels is None
        else options.positions(arguments.kernels, data.kernels, name)
        for name, data in tables.items()
    }
    document: dict[str, Any] = {
        "literature": "wu",
        "rows": [{"table": t, **row} for t, data in tables.items() for row in scaling_rows(data)],
    }
    if arguments.output:
        from mlscale.report.scaling_figures import draw_scaling

        outputs.write_into(
            arguments,
            document,
            lambda folder: chain.from_iterable(
                draw_scaling(folder, name, tables[name], shown[name]) for name in tables
            ),
        )
    print_document(document, arguments.json, partial(_as_text, tables=tables))


def _as_text(document: dict[str, Any], tables: dict[str, Measurements]) -> str:
    """Return a table of gains for each table of measurements."""
    blocks = []
    for name, data in tables.items():
        rows = [row for row in document["rows"] if row["table"] == name]
        names = kernel_names([row["kernel"] for row in rows])
        ends = [
            f"{SHORT_NAMES[axis]} {steps[0]:g} to {steps[-1]:g}"
            for axis in rows[0]["gain"]
            for steps in [getattr(data.grid, axis)]
        ]
        lines = [
            [
                names[row["kernel"]],
                *(number(gain, 3) for gain in row["gain"].values()),
                number(row["speed_up"], 3),
                str(HardwareConfig(**row["fastest"])),
                f"{row['highest_behind_percent']:.1f}",
            ]
            for row in rows
        ]
        headers = ["kernel", *ends, "all", "fastest at", "highest is behind %"]
        blocks.append(
            f"{name}: speed-up by each axis, the others at their highest, "
            f"{counted(len(rows), 'kernel')} on {data.device}\n{columns(headers, lines)}"
        )
    return "\n\n".join([*blocks, *written(document)])
