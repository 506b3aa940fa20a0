"""mlscale demo: an export to advice, the main job on simulated data, and a page."""

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import mlscale
from mlscale.arrays import Floats
from mlscale.cli import advise, outputs, report
from mlscale.cli.parser import Parser
from mlscale.cli.text import columns
from mlscale.data import datasets
from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.model.predictions import COVERAGE
from mlscale.text import number

SEED = 0
EXPORT = "h100-by-hand.csv"
STEP = (
    *("training-step-ncu.csv", "training-step-trace.json.gz", "--power", "training-step-power.csv"),
    *("--base", "engine=1410,memory=1593"),
)
LIBRARIES = ("matplotlib", "pyarrow", "sklearn", "torch")  # one of each extra that training needs
FIGURES = {
    "mean": "mape", "median kernel": "median_kernel", "p90": "p90", "worst": "worst_kernel_mape",
}  # fmt: skip


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add(
        "-o",
        "--output",
        default="mlscale-demo",
        metavar="DIR",
        help="folder for model and picture (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Advise a clock for an export; train, predict simulated kernels; write a page."""
    with outputs.output_folder(arguments.output) as folder:
        missing = [name for name in LIBRARIES if find_spec(name) is None]
        if missing:
            print(
                f"Not installed: {', '.join(missing)} (pip install 'mlscale[train]'). The demo "
                "leaves out its second part: training on simulated data, and how far predictions "
                "are off.\n"
            )
        _advise_for_export()
        if not missing:
            _predict_simulated(folder)
        _write_page(folder / "training-step.html")


def _advise_for_export() -> None:
    words = [EXPORT, "--max-slowdown", "5"]
    print(
        "1. Two kernels on an H100, in the form of ncu's export, written by hand (not measured), "
        "and the\n   shipped model, which learnt from measurements of a GTX 980, a GTX 1080 Ti "
        "and a P100.\n   How far may the engine clock go down?\n\n"
        f"$ mlscale advise {' '.join(words)}",
        flush=True,
    )
    parser = Parser(prog="mlscale advise")
    advise.add_arguments(parser)
    advise.run(parser.parse_args(words))


def _write_page(file: Path) -> None:
    """Write the page of a training step, and say where it is."""
    parser = Parser(prog="mlscale report")
    report.add_arguments(parser)
    print("\nA page to look around in, of a training step on an A100:")
    report.run(parser.parse_args([*STEP, "-o", str(file)]))


def _predict_simulated(folder: Path) -> None:
    from mlscale.data.surfaces import absolute_percentage_error, without_base
    from mlscale.studies.crossval import folds
    from mlscale.studies.figures import draw_surface

    data = mlscale.read(datasets.path("simulated-gcn3.parquet"))
    base = data.grid.mid
    [(train_on, _)] = folds("holdout", data.applications, SEED)
    model = mlscale.train(data.select(train_on), base)
    mlscale.save(model, folder / "model.mlscale")
    trained = model.card["applications"]
    unseen = data.select([k for k, name in enumerate(data.applications) if name not in trained])
    print(
        f"\n2. Simulated data (MGPUSim, not measured), all three axes: {len(data.kernels)} kernels "
        f"at {data.grid.size} configurations of {data.device}.\n"
        f"Trained on {len(data.kernels) - len(unseen.kernels)} kernels; left out by random number: "
        f"{', '.join(dict.fromkeys(unseen.applications))}."
    )

    # Mean over CU counts and engine clocks of time at the lowest memory clock over the highest.
    dependence = np.log(unseen.time_ms[..., 0] / unseen.time_ms[..., -1]).mean(axis=(1, 2))
    kernel = unseen.select([int(np.argmax(dependence))])
    predictions = model.predict(kernel.profiles(base), COVERAGE)
    [predicted], [simulated] = predictions.time_ms, kernel.time_ms
    errors = absolute_percentage_error(predicted, simulated)[None]
    print(
        f"\nPredicted time [ms] of {kernel.kernels[0]}, from its profile at {base}, and the "
        "simulated time in brackets\n(of the left-out kernels the one whose simulated time "
        "depends most on the memory clock):\n\n"
        f"{_as_text(data.grid, predicted, simulated)}\n\n"
        f"Mean error of this kernel: {without_base(errors, data.grid.index(base)).mean():.1f} %"
    )
    picture = folder / "surface.png"
    title = f"{kernel.kernels[0]}: simulated, and predicted from one profile at the base"
    draw_surface(picture, title, predictions, simulated, str(data.metadata["origin"]))
    _show_errors(data)
    print(f"\nWritten: {folder / 'model.mlscale'}, {picture}")


def _as_text(grid: ConfigGrid, predicted: Floats, simulated: Floats) -> str:
    """Return a row for each CU count and engine clock, a column for each memory clock."""
    lines = []
    for c, cu_count in enumerate(grid.cu_count):
        for e, engine_mhz in enumerate(grid.engine_mhz):
            pairs = zip(predicted[c, e], simulated[c, e], strict=True)
            cells = [f"{number(ours, 3)} ({number(true, 3)})" for ours, true in pairs]
            lines.append([str(cu_count), f"{engine_mhz:g}", *cells])
    headers = ["CUs", "engine MHz", *(f"memory {clock:g} MHz" for clock in grid.memory_mhz)]
    return columns(headers, lines)


def _show_errors(data: Measurements) -> None:
    """Print the errors of predictors on held-out applications, the trivial ones beside them."""
    from mlscale.studies.study import study

    predictors = ["wu", "bottleneck"]
    rows = study(
        "errors", data, predictors, 1, quantity="time", clusters=12, protocol="holdout", seeds=1
    )
    print(f"\nError of all {rows['n_kernels'][0]} left-out kernels [%]:\n")
    lines = [
        [row["predictor"], *(f"{row[name]:.1f}" for name in FIGURES.values()), row["worst_kernel"]]
        for row in rows.to_dict("records")
    ]
    print(columns(["predictor", *FIGURES, "worst kernel"], lines))
