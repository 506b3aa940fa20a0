"""mlscale datasets: make the data sets that are drawn and not measured."""

import argparse

from mlscale.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    make = actions.add_parser(
        "make",
        help="make a data set",
        description="Make 108 kernels of 49 applications on the 8 x 8 x 7 grid of Wu et al., HPCA "
        "2015: time, dynamic power and the 22 counters of Table II. Made by a mechanistic model of "
        "the HD 7970, not measured.",
    )
    make.add_argument("dataset", choices=("hd7970",), metavar="DATASET", help="hd7970")
    make.add_argument("--seed", type=options.seed, default=0, help="(default: %(default)s)")
    make.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="TABLE",
        help="tidy table to write; Parquet if it ends in .parquet, else CSV",
    )


def run(arguments: argparse.Namespace) -> None:
    """Make the data set. Raises InputError."""
    from mlscale.datasets.hd7970 import make_hd7970

    output = options.output_file(arguments.output)
    made = make_hd7970(arguments.seed)
    made.write(output)
    print(
        f"{output}: made, not measured: {len(made.kernels)} kernels of "
        f"{len(set(made.applications))} applications at {made.grid.size} configurations"
    )
