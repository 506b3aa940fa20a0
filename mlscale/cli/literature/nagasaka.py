"""mlscale literature nagasaka: board power from counters per second, on tables of measurements."""

import argparse
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from mlscale.cli import options, outputs, values
from mlscale.cli.text import columns, print_document, written
from mlscale.data.grid import HardwareConfig
from mlscale.papers.nagasaka_inputs import (
    BASELINE,
    BLOCKS_PER_CU,
    FULL,
    SETS,
)
from mlscale.studies.nagasaka import (
    GROUPINGS,
    SHUFFLES,
    PowerCase,
    SetErrors,
    document,
    select_cases,
    set_errors,
)
from mlscale.text import counted, number

NOTE = f"""\
Error of the power at the base; every kernel is estimated once in ten folds by a model that was
trained without it, and all is averaged over shuffles of the folds. MSE: mean squared error.
The paper: 4.7 %, 54.9 W² with {FULL} on a GTX 285, folds by kernel; an MSE does not compare across
GPUs.
{BASELINE}: no counters, the mean power of the training kernels.
TLB*: nothing counts TLB misses; DRAM transactions stand in."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "table", nargs="+", metavar="TABLE", help="tidy table with nvprof counters and power"
    )
    options.add_base(
        parser,
        "configuration of counters, time and power, 'mid' (default) or 'highest'",
    )
    parser.add_argument(
        "--counters",
        choices=tuple(SETS),
        default=FULL,
        metavar="SET",
        help="set of counters whose energies, contributions and watts are shown: "
        f"{', '.join(SETS)} (default: {FULL}, as in the paper)",
    )
    parser.add_argument(
        "--shuffles",
        type=values.whole_number,
        default=SHUFFLES,
        metavar="N",
        help="repeat the ten folds with N shuffles (default: %(default)s)",
    )
    parser.add_argument(
        "--penalty",
        type=values.number_from_0,
        metavar="LAMBDA",
        help="penalty of the ridge regression (default: chosen by cross-validation in each fold)",
    )
    options.add_reading(parser)
    outputs.add_results(parser, "the paper's Fig. 2 to 5 for each table, as PNG and SVG")


def run(arguments: argparse.Namespace) -> None:
    """Evaluate every table, print the errors, draw the figures. Raises InputError."""
    with outputs.output_folder(arguments.output) if arguments.output else nullcontext() as folder:
        if folder is not None:
            from mlscale.report.nagasaka_figures import draw_figures
        cases = _evaluate(_read(arguments), arguments.shuffles, arguments.penalty)
        figures = document(cases, arguments.counters)
        if folder is not None:
            drawn = draw_figures(folder, cases, arguments.counters)
            figures["figures"] = [str(path) for path in drawn]
    print_document(figures, arguments.json, _as_text)


def _read(arguments: argparse.Namespace) -> list[PowerCase]:
    return [
        case
        for path, data in options.read_tables(arguments, arguments.table).items()
        for case in select_cases(path, data, arguments.base, arguments.counters)
    ]


def _evaluate(cases: list[PowerCase], shuffles: int, penalty: float | None) -> list[PowerCase]:
    """Return the cases with their errors, cross-validated under a progress bar."""
    from tqdm import tqdm

    total = sum(len(GROUPINGS) * len(case.inputs.sets) for case in cases)
    with tqdm(total=total, unit="set", disable=None, leave=False) as bar:

        def results(case: PowerCase) -> Iterator[SetErrors]:
            for result in set_errors(case.inputs, GROUPINGS, shuffles, penalty):
                bar.update()
                yield result

        return [
            replace(case, results=tuple(results(case)), fixed_penalty=penalty) for case in cases
        ]


def _as_text(document: dict[str, Any]) -> str:
    """Show for each table and choice of kernels errors and model; then what is unseen."""
    blocks = [NOTE]
    for model in document["models"]:
        case = (model["table"], model["kernels"])
        rows = [row for row in document["rows"] if (row["table"], row["kernels"]) == case]
        blocks.append(
            f"{model['table']}: {model['n_kernels']} kernels ({model['kernels']}) on "
            f"{model['device']}, base {HardwareConfig(**model['base'])}, "
            f"{counted(rows[0]['n_shuffles'], 'shuffle')}; error [%], "
            f"MSE [W²]{_left_out_text(model)}\n{_errors_text(rows)}"
        )
        blocks.append(_model_text(model))
    unseen: dict[tuple[str, str, str], list[str]] = {}
    for row in document["unseen"]:
        unseen.setdefault((row["table"], row["counter"], row["why"]), []).append(row["kernel"])
    blocks += [
        f"{table}: the model cannot see all of {', '.join(kernels)}\n  {counter}: {why}"
        for (table, counter, why), kernels in unseen.items()
    ]
    return "\n\n".join([*blocks, *written(document)])


def _left_out_text(model: dict[str, Any]) -> str:
    if not model["left_out"]:
        return ""
    return (
        f"\nwithout {', '.join(model['left_out'])}: texture reads, or fewer than {BLOCKS_PER_CU} "
        "blocks per CU"
    )


def _errors_text(rows: list[dict[str, Any]]) -> str:
    headers = ["counters", "folds by kernel", "MSE", "by application", "MSE"]
    headers += ["median", "p90", "worst", "worst kernel"]
    lines = []
    for name in dict.fromkeys(row["counters"] for row in rows):
        by = {row["folds_by"]: row for row in rows if row["counters"] == name}
        cells = [name]
        for row in (by["kernel"], by["application"]):
            cells += [f"{row['mape']:.1f}", number(row["mean_squared_error_w2"], 3)]
        strict = by["application"]
        cells += [f"{strict[key]:.1f}" for key in ("median_kernel", "p90", "worst_kernel_mape")]
        lines.append([*cells, strict["worst_kernel"]])
    return columns(headers, lines)


def _model_text(model: dict[str, Any]) -> str:
    """Return the energies and mean contributions of the model that all kernels of a case give."""
    energies = {name: f"{value:+9.3g}" for name, value in model["energy_nj"].items()}
    lines = [
        [name, energies.get(name, ""), f"{share:+z6.1f}"]
        for name, share in model["contribution_percent"].items()
    ]
    headers = [model["counters"], "nJ/event", "share of the power [%]"]
    return (
        f"The model of these {model['n_kernels']} kernels: "
        f"intercept {model['intercept_w']:z.1f} W, lambda {model['penalty']:.3g}\n"
        f"{columns(headers, lines)}"
    )
