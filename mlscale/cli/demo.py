"""mlscale demo: which clock, one kernel's whole surface, and how good a model is, on one page."""

import argparse
import html
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import mlscale
from mlscale.cli import outputs
from mlscale.cli.parser import Parser
from mlscale.data import datasets
from mlscale.data.table_files import read_table
from mlscale.errors import install_line

LIBRARIES = ("joblib", "matplotlib", "pyarrow", "scipy", "sklearn", "threadpoolctl", "torch")
TABLE, KERNEL = "headroom-rtx5060ti.csv", "layernorm"
FAST, SLOW = "layernorm-2782.csv", "layernorm-1702.csv"  # at its highest clock, and 0.6 of it
MAX_SLOWDOWN = 5
SWEEP, SIMULATED = "h100-suite.csv", "simulated-gcn3.parquet"
UNSEEN = ((SWEEP, "stencil2d_8192"), (SIMULATED, "matrixtranspose.matrixTranspose.w768"))
PREDICTORS = ("wu", "bottleneck")
SHOWN = (*PREDICTORS, "nearest", "mean-surface", "no-scaling")
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>mlscale demo</title>
<meta name="viewport" content="width=device-width"><style>
body {font: 16px/1.5 sans-serif; max-width: 52rem; margin: auto; padding: 1rem}
pre {white-space: pre-wrap; background: #f3f6f9; padding: .8rem} img {max-width: 100%}
</style><h1>mlscale</h1>"""
BELOW = (  # each part of the page
    '<p><a href="report.html">Look around in this answer</a></p>',
    '<img src="surfaces.svg" alt="Time and power of two kernels, predicted and known">',
    "",
)


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
    """Print three parts, and write a page of them, with a picture and a link to the answer's."""
    with outputs.output_folder(arguments.output) as folder:
        parts = [_which_clock(folder)]
        print(parts[0], flush=True)
        missing = [name for name in LIBRARIES if find_spec(name) is None]
        if not missing:
            parts.append(_surface(folder))
            print(f"\n{parts[-1]}", flush=True)
            parts.append(_how_good())
            print(f"\n{parts[-1]}", flush=True)
        if missing:
            print(f"\nNot installed: {', '.join(missing)} ({install_line(*missing)}).")
            print("So the demo leaves out parts 2 and 3.")
        page = folder / "demo.html"
        shown = [
            f"<pre>{html.escape(part)}</pre>{below}"
            for part, below in zip(parts, BELOW, strict=False)
        ]
        page.write_text(PAGE + "".join(shown), encoding="utf-8")
        print(f"\nAll of this as a page:\n{page}")


def _which_clock(folder: Path) -> str:
    """Advise a clock from two readings of a run, beside what was measured there."""
    answer = mlscale.advise(FAST, also=SLOW, max_slowdown=MAX_SLOWDOWN)
    answer.save(folder / "report.html")
    table = read_table(datasets.path(TABLE))
    rows = table.select([k for k, name in enumerate(table.text["kernel"]) if name == KERNEL])
    clocks, time = rows.numbers["engine_mhz"], rows.numbers["time_ms"]
    energy = time * rows.numbers["power_w"]
    at, top = np.abs(clocks - answer.best.engine_mhz).argmin(), clocks.argmax()
    return (
        f"1. Which clock? Two logs of a run on an RTX 5060 Ti, measured by others:\n"
        f"$ mlscale advise {FAST} --also {SLOW} --max-slowdown {MAX_SLOWDOWN}\n"
        f"{str(answer).partition(chr(10))[0]}\n"
        f"  Measured at {clocks[at]:g} MHz, the nearest clock: "
        f"{100 * (time[at] / time[top] - 1):.1f} % slower, "
        f"{100 * (1 - energy[at] / energy[top]):.0f} % less energy."
    )


def _surface(folder: Path) -> str:
    """Predict a measured kernel over SMs, and a simulated one over clocks too; draw both."""
    from mlscale.studies.figures import Shown, save_figure, surfaces_figure

    shown, errors = [], []
    for file, name in UNSEEN:
        table = mlscale.read(datasets.path(file))
        new, base = table.kernels.index(name), table.usual
        others = [k for k, one in enumerate(table.applications) if one != table.applications[new]]
        model, kernel = mlscale.train(table.select(others), base), table.select([new])
        mlscale.save(model, folder / f"{table.device}.mlscale")
        shown.append(Shown(kernel, model.predict(kernel.profiles(base))))
        scores = model.errors(kernel).items()
        errors.append(", ".join(f"{quantity} {error:.1f} %" for quantity, error in scores))
    save_figure(surfaces_figure(*shown), folder / "surfaces")
    return (
        "2. One profile, the whole surface, of kernels that the models have not seen:\n"
        f"  a stencil over the SMs of an H100 (measured): error of {errors[0]}\n"
        f"  a transpose over CUs, engine and memory clock (simulated): error of {errors[1]}\n"
        f"$ mlscale train {SWEEP} --leave-out stencil2d -o h100.mlscale\n"
        f"$ mlscale predict FILE --model h100.mlscale"
    )


def _how_good() -> str:
    """Leave one application after another out of the sweep, and compare predictors."""
    from mlscale.studies.study import study

    table = mlscale.read(datasets.path(SWEEP))
    few, *_, most = table.grid.cu_count
    rows = study("errors", table, PREDICTORS, quantity="time", seeds=1)
    shown = rows[rows["predictor"].isin(SHOWN)].sort_values("mape")
    return (
        "3. Your sweep, a model, and how good it is: error of time on unseen applications,\n"
        f"  of {len(table.kernels)} kernels on {few} to {most} SMs of an H100 (measured), by "
        "predictor:\n"
        f"$ mlscale study errors {SWEEP} --quantity time --seeds 1 \\\n"
        "    --predictor wu --predictor bottleneck\n"
        + "\n".join(f"  {row.predictor:14}{row.mape:5.1f} %" for row in shown.itertuples())
    )
