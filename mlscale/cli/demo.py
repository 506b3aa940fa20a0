"""mlscale demo: the main job from end to end on the shipped, simulated data."""

import argparse
from pathlib import Path

import mlscale
from mlscale.arrays import Floats
from mlscale.cli import options
from mlscale.cli.text import columns, number
from mlscale.data.grid import ConfigGrid
from mlscale.data.public import registry

SEED = 0
FIGURES = {
    "mean": "mape", "median kernel": "median_kernel", "p90": "p90", "worst": "worst_kernel_mape",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "-o",
        "--output",
        default="mlscale-demo",
        metavar="DIR",
        help="folder for model, predictions and picture (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Train without some applications, predict a kernel of them, and show the errors."""
    with options.output_folder(arguments.output) as folder:
        _demonstrate(folder)


def _demonstrate(folder: Path) -> None:
    from mlscale.data.surfaces import absolute_percentage_error, without_base
    from mlscale.report.figures import draw_surface
    from mlscale.studies.splits import folds

    data = mlscale.read(registry.path("simulated-gcn3.parquet"))
    base = data.grid.mid
    [(train_on, held_out)] = folds("holdout", data.applications, SEED)
    training, unseen = data.select(train_on), data.select(held_out)
    applications = ", ".join(dict.fromkeys(unseen.applications))
    print(
        f"Simulated data (MGPUSim, not measured): {len(data.kernels)} kernels at {data.grid.size} "
        f"configurations of {data.device}.\n"
        f"Training on {len(train_on)} kernels; left out, by random number: {applications}."
    )
    model = mlscale.train(training, base)
    mlscale.save(model, folder / "model.mlscale")

    kernel = unseen.select([0])
    [predicted], [actual] = model.predict(kernel.profiles(base)).time_ms, kernel.time_ms
    errors = absolute_percentage_error(predicted, actual)[None]
    print(
        f"\nPredicted time [ms] of {kernel.kernels[0]}, from its profile at {base}, "
        "and the simulated time in brackets:\n"
    )
    print(_as_text(data.grid, predicted, actual))
    print(
        f"\nMean error of this kernel: {without_base(errors, data.grid.index(base)).mean():.1f} %"
    )

    rows = mlscale.study(
        "errors", data, ["wu", "bottleneck"], jobs=1, quantity="time", clusters=12,
        split="holdout", seeds=1,
    )  # fmt: skip
    print(f"\nError of all {rows['n_kernels'][0]} left-out kernels [%]:\n")
    lines = [
        [row["predictor"], *(f"{row[name]:.1f}" for name in FIGURES.values()), row["worst_kernel"]]
        for row in rows.to_dict("records")
    ]
    print(columns(["predictor", *FIGURES, "worst kernel"], lines))
    title = f"{kernel.kernels[0]}: simulated (solid) and predicted (dashed)"
    draw_surface(folder / "surface.png", title, data.grid, base, predicted, actual)
    print(f"\nWritten: {folder / 'model.mlscale'}, {folder / 'surface.png'}")


def _as_text(grid: ConfigGrid, predicted: Floats, actual: Floats) -> str:
    """Return a row for each CU count and engine clock, a column for each memory clock."""
    lines = [
        [
            str(cu_count),
            f"{engine:g}",
            *(
                f"{number(predicted[c, e, m], 3)} ({number(actual[c, e, m], 3)})"
                for m in range(len(grid.memory_mhz))
            ),
        ]
        for c, cu_count in enumerate(grid.cu_count)
        for e, engine in enumerate(grid.engine_mhz)
    ]
    headers = ["CUs", "engine MHz", *(f"memory {clock:g} MHz" for clock in grid.memory_mhz)]
    return columns(headers, lines)
