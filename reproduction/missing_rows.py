"""What errors become where a table lost rows, and what is best done about it.

    MLSCALE_DATA=… python reproduction/missing_rows.py [TABLE] [--seeds N]

Rows are taken out at random. First, how well single cells are filled in. Then predictors learn from
what `--incomplete` makes of the rest, each application held out in turn; errors are of all cells of
the whole table, to which a grid without some steps goes on by power laws. The base is the mid-grid
of what is left. docs/trust.md has one of the figures.
"""

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from common import table

from mlscale import Measurements
from mlscale.arrays import Floats, Mask
from mlscale.cli.terminal import columns
from mlscale.data.cells import filled
from mlscale.data.grid import step_weights
from mlscale.data.measurements import Incomplete, from_table
from mlscale.data.surfaces import absolute_percentage_error, by_power_laws, without_base
from mlscale.errors import InputError
from mlscale.predictors import create
from mlscale.text import number

PREDICTORS = ("mean-surface", "nearest", "wu", "bottleneck")
LOST = (0.05, 0.2, 0.4)
QUANTITIES = ("time", "power")


def without_rows(
    data: Measurements, lost: float, seed: int, incomplete: Incomplete
) -> Measurements:
    """What is made of a table without that share of its rows."""
    rows = data.to_table()
    kept = np.random.default_rng(seed).random(len(rows)) >= lost
    return from_table(rows.select(np.flatnonzero(kept).tolist()), incomplete)


def errors(data: Measurements, rest: Measurements, name: str, quantity: str) -> float:
    """The mean error [%] of a predictor that learns from the rest of a table; NaN if it cannot."""
    base = rest.grid.mid
    rest = rest.with_base(base)
    options = {"intervals": False} if name == "bottleneck" else {}
    tests, jobs = [], []
    for application in sorted(set(data.applications)):
        training = rest.select([k for k, a in enumerate(rest.applications) if a != application])
        tests.append(data.select([k for k, a in enumerate(data.applications) if a == application]))
        jobs.append((create(name, quantity=quantity, **options), training, base))
    try:
        type(jobs[0][0]).fit_together(jobs)
    except InputError:  # too few kernels are left
        return np.nan
    found = []
    for (predictor, *_), test in zip(jobs, tests, strict=True):
        surfaces = by_power_laws(predictor.predict(test.profiles(base)), data.grid)
        error = absolute_percentage_error(surfaces.values, test.relative(quantity, base))
        found.append(without_base(error, data.grid.index(base)).mean(axis=1))
    return float(np.concatenate(found).mean())


def along_engine(values: Floats, known: Mask, clocks: Sequence[float]) -> Floats:
    """Values (E, M) from the clocks of the column that are known, NaN where fewer than two are."""
    found = np.full(values.shape, np.nan)
    for m in range(values.shape[1]):
        at = np.flatnonzero(known[:, m])
        if len(at) > 1:
            weights = step_weights([clocks[e] for e in at], clocks, ("lowest", "highest"))
            found[:, m] = np.exp(weights @ np.log(values[at, m]))
    return found


def filling(data: Measurements, quantity: str, lost: float, seed: int) -> list[float]:
    """Median and mean error [%] of filled cells; of these by interpolation along the clock."""
    whole = data.quantity(quantity)
    known = np.random.default_rng(seed).random(whole.shape) >= lost
    ours = filled(np.where(known, whole, np.nan), data.grid)
    other = whole.copy()
    for k, surface in enumerate(whole):
        for c, plane in enumerate(surface):
            other[k, c] = along_engine(plane, known[k, c], data.grid.engine_mhz)
    pairs = [absolute_percentage_error(one, whole)[~known] for one in (ours, other)]
    return [float(mean(pair)) for pair in pairs for mean in (np.nanmedian, np.nanmean)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", nargs="?", default="gtx980-low")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data, seeds = table(arguments.table), range(arguments.seeds)
    rows = []
    for quantity in QUANTITIES:
        for lost in LOST:
            each = np.mean([filling(data, quantity, lost, seed) for seed in seeds], axis=0)
            rows.append([quantity, f"{lost:.0%}", *(f"{value:.2f}" for value in each)])
    headers = ["filled", "lost", "median", "mean", "median, engine clock", "mean, engine clock"]
    print(columns(headers, rows), end="\n\n")
    choices = [(lost, choice) for lost in LOST for choice in ("keep", "drop-settings")]
    for quantity in QUANTITIES:
        rows = []
        for lost, choice in [(0.0, "keep"), *choices]:
            drawn = seeds if lost else [0]
            rests = [without_rows(data, lost, seed, choice) for seed in drawn]
            sizes = ", ".join(sorted({f"{len(r.kernels)} x {r.grid.size}" for r in rests}))
            each = [[errors(data, rest, name, quantity) for rest in rests] for name in PREDICTORS]
            cells = [number(float(np.mean(values)), 3) for values in each]
            rows.append([f"{lost:.0%}", choice, sizes, *cells])
        headers = ["lost", "--incomplete", "kernels x configurations", *PREDICTORS]
        print(f"error of {quantity} [%]", columns(headers, rows), sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
