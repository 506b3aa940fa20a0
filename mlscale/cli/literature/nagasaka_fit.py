"""mlscale literature nagasaka-fit: a power model of Nagasaka et al. from a table, to keep."""

import argparse

from mlscale.cli import options, outputs
from mlscale.cli.text import columns, print_document
from mlscale.errors import InputError
from mlscale.papers.nagasaka_inputs import SETS
from mlscale.papers.nagasaka_model import FittedPowerModel
from mlscale.studies.nagasaka import PAPER, fit_model, select_cases

COUNTERS = "Mem/Inst"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("table", metavar="TABLE", help="tidy table with nvprof counters and power")
    options.add_base(
        parser,
        "the configuration that the model is of, 'mid' (default) or 'highest'; it estimates "
        "power there alone",
    )
    parser.add_argument(
        "--counters",
        choices=tuple(SETS),
        default=COUNTERS,
        metavar="SET",
        help=f"set of counters: {', '.join(SETS)} (default: {COUNTERS}, which errs less than Full "
        "on every table of docs/models.md)",
    )
    parser.add_argument(
        "--as-in-paper",
        action="store_true",
        help="leave out kernels that read textures or have fewer than 4 blocks per CU",
    )
    options.add_reading(parser)
    outputs.add_json(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="MODEL", help="model file to write, JSON"
    )


def run(arguments: argparse.Namespace) -> None:
    """Fit, write the model and show it. Raises InputError."""
    output = outputs.output_file(arguments.output)
    path = options.input_file(arguments.table)
    data = options.read_measurements(arguments, path)
    cases = select_cases(path, data, arguments.base, arguments.counters)
    case = cases[-1] if arguments.as_in_paper else cases[0]
    if arguments.as_in_paper and case.kernels != PAPER:
        raise InputError(f"{path}: too few kernels remain for --as-in-paper; leave it out")
    model = fit_model(case, arguments.counters)
    model.save(output)
    print_document(model.document(), arguments.json, lambda _: _text(model, output.name))


def _text(model: FittedPowerModel, name: str) -> str:
    """Return the energies, and what the model was fitted to."""
    rows = [[v["name"], f"{v['energy_nj']:+.3g}"] for v in model.document()["variables"]]
    head = (
        f"{name}: {model.counters} on {model.device} at {model.base}, of {model.n_kernels} "
        f"kernels\nintercept {model.intercept_w:z.1f} W; kernels held out with their application "
        f"err by {model.mape:.1f} % on average"
    )
    return f"{head}\n{columns(['variable', 'nJ/event'], rows)}" if rows else head
