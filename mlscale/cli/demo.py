"""mlscale demo: advice from two readings of a real run, then training on simulated data."""

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import mlscale
from mlscale.cli import advise, outputs
from mlscale.cli.parser import Parser
from mlscale.data import datasets
from mlscale.data.measurements import Measurements
from mlscale.data.table_files import read_table
from mlscale.errors import install_line
from mlscale.model.predictions import COVERAGE

SEED = 0
LIBRARIES = ("joblib", "matplotlib", "pyarrow", "scipy", "sklearn", "threadpoolctl", "torch")
TABLE, KERNEL = "headroom-rtx5060ti.csv", "layernorm"
FAST, SLOW = "layernorm-2782.csv", "layernorm-1702.csv"  # at its highest clock, and 0.6 of it
MAX_SLOWDOWN = 5


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add(
        "-o",
        "--output",
        default="mlscale-demo",
        metavar="DIR",
        help="folder for what it writes (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Advise a clock for a measured run; then train, show the errors, and name the page."""
    with outputs.output_folder(arguments.output) as folder:
        answer = mlscale.advise(
            datasets.path(FAST), also=datasets.path(SLOW), max_slowdown=MAX_SLOWDOWN
        )
        _show_advice()
        _show_measured(answer.best.engine_mhz)
        missing = [name for name in LIBRARIES if find_spec(name) is None]
        if missing:
            print(
                f"\nNot installed: {', '.join(missing)} ({install_line(*missing)}).\n"
                "So the demo leaves out training on simulated data.\n"
            )
        written = [] if missing else _train_on_simulated(folder)
        page = folder / "report.html"
        answer.save(page)
        if written:
            print(f"Written: {' and '.join(map(str, written))}")
        print(f"The answer as a page:\n{page}")


def _show_advice() -> None:
    words = [FAST, "--also", SLOW, "--max-slowdown", str(MAX_SLOWDOWN)]
    print(f"$ mlscale advise {' '.join(words)}", flush=True)
    parser = Parser(prog="mlscale advise")
    advise.add_arguments(parser)
    arguments = parser.parse_args(words)
    arguments.words = ["advise", *words]
    advise.run(arguments)


def _show_measured(engine_mhz: float) -> None:
    """Print what the run took at the measured clock nearest to an engine clock [MHz]."""
    table = read_table(datasets.path(TABLE))
    rows = table.select([k for k, name in enumerate(table.text["kernel"]) if name == KERNEL])
    clocks, time = rows.numbers["engine_mhz"], rows.numbers["time_ms"]
    energy = time * rows.numbers["power_w"]
    at, top = np.abs(clocks - engine_mhz).argmin(), clocks.argmax()
    print(
        f"\nMeasured at {clocks[at]:g} MHz, the nearest clock: "
        f"{100 * (time[at] / time[top] - 1):.1f} % slower, "
        f"{100 * (1 - energy[at] / energy[top]):.0f} % less energy.\n"
        f"(`{KERNEL}` on an RTX 5060 Ti, measured by github.com/imaoofu/headroom, CC BY 4.0. The\n"
        "model learnt from this GPU too: the README has errors on GPUs that were left out.)"
    )


def _train_on_simulated(folder: Path) -> list[Path]:
    """Train, draw a kernel that was left out, and print the errors. Returns what was written."""
    from mlscale.studies.crossval import folds
    from mlscale.studies.figures import draw_surface

    data = mlscale.read(datasets.path("simulated-gcn3.parquet"))
    base = data.usual
    [(train_on, _)] = folds("holdout", data.applications, SEED)
    model = mlscale.train(data.select(train_on), base)
    mlscale.save(model, folder / "model.mlscale")
    trained = model.card["applications"]
    unseen = data.select([k for k, name in enumerate(data.applications) if name not in trained])

    # Mean over CU counts and engine clocks of time at the lowest memory clock over the highest.
    dependence = np.log(unseen.time_ms[..., 0] / unseen.time_ms[..., -1]).mean(axis=(1, 2))
    kernel = unseen.select([int(np.argmax(dependence))])
    predictions = model.predict(kernel.profiles(base), COVERAGE)
    picture = folder / "surface.png"
    title = f"{kernel.kernels[0]}: simulated, and predicted from one profile at the base"
    draw_surface(picture, title, predictions, kernel.time_ms[0], str(data.metadata["origin"]))
    print(
        f"\nSimulated data (MGPUSim, not measured): trained on {len(train_on)} of "
        f"{len(data.kernels)} kernels.\nThe time of the others, each predicted from one profile, "
        f"is off by [%]:\n  {_errors(data)}\n"
    )
    return [folder / "model.mlscale", picture]


def _errors(data: Measurements) -> str:
    """The mean errors of predictors on the applications held out, the least first."""
    from mlscale.studies.study import study

    predictors = ["wu", "bottleneck"]
    rows = study(
        "errors", data, predictors, 1, quantity="time", clusters=12, protocol="holdout", seeds=1
    )
    shown = rows[rows["predictor"].isin([*predictors, "nearest", "mean-surface", "no-scaling"])]
    pairs = shown.sort_values("mape")[["predictor", "mape"]].itertuples(index=False)
    return ", ".join(f"{name} {error:.1f}" for name, error in pairs)
