"""How well time and energy under a power cap follow from time and power over the engine clock.

    python reproduction/power_caps.py a100-clock-x-cap.csv a100.parquet

The CSV holds runs of applications at locked clocks under caps, with the columns app, core_MHz,
cap_W, time [s] and energy_as_given(Wh). Each application's own curve over the clocks, measured
under the highest cap, tells its time and energy at the highest clock under every lower one.

Beside that stand predicted curves, of the application's reading at the highest clock, under the
highest cap, and how others change: the other runs of the CSV, or the applications of the table (a
tidy one of the same GPU or another board of it); and where a second reading was taken, at a lower
clock, these given that one. The runs were not profiled, so that no predictor that looks at counters
can be asked.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from mlscale.advice.caps import cap_curve
from mlscale.arrays import Floats
from mlscale.cli.text import columns
from mlscale.data.measurements import Measurements, read
from mlscale.predictors.conditioning import MeasuredRatios, SurfacePrior, condition

Run = dict[tuple[float, float], tuple[float, float]]  # by clock and cap: time [s], power [W]


def measured_runs(path: Path) -> dict[str, Run]:
    """Time and mean power of each application by clock [MHz] and cap [W]."""
    runs: dict[str, Run] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            time_s, energy_wh = float(row["time"]), float(row["energy_as_given(Wh)"])
            at = float(row["core_MHz"]), float(row["cap_W"])
            runs.setdefault(row["app"], {})[at] = time_s, 3600 * energy_wh / time_s
    return runs


def curve_of(run: Run) -> tuple[list[float], Floats]:
    """The clocks, and time and power (2, C) at them under the highest cap."""
    clocks, caps = (sorted(set(axis)) for axis in zip(*run, strict=True))
    return clocks, np.array([run[clock, caps[-1]] for clock in clocks]).T


def errors_under_caps(run: Run, curve: Floats) -> list[tuple[float, float, float, float, float]]:
    """Cap, time [s] measured and by the curve, errors of time and energy [%]; NaN if too low."""
    clocks, caps = (sorted(set(axis)) for axis in zip(*run, strict=True))
    under = cap_curve(caps[:-1], clocks, curve[:1], curve[1:])
    rows = []
    for place, cap in enumerate(caps[:-1]):
        true_s, true_w = run[clocks[-1], cap]
        under_s, energy_j = under.run_time_ms[place], under.run_energy_mj[place]
        errors = 100 * (under_s / true_s - 1), 100 * (energy_j / (true_s * true_w) - 1)
        rows.append((cap, true_s, float(under_s), *map(float, errors)))
    return rows


def log_ratios(curves: Floats) -> Floats:
    """Of time and power (K, 2, C) the logs of their ratios to those at the last clock (K, 2 C)."""
    return np.log(curves / curves[..., -1:]).reshape(len(curves), -1)


def predicted_curve(own: Floats, others: Floats, step: int | None = None) -> Floats:
    """Time and power (2, C) of a run by its reading at the last clock and how others change.

    own (2, C): of which the last is looked at and, if given, the one at that step; others (K, 2 C):
    log ratios of other applications. Given a second reading the mean of these becomes that of a
    normal distribution of their mean and covariance, under that condition.
    """
    mean = others.mean(axis=0)
    if step is not None:
        spread = (others - mean) / np.sqrt(len(others) - 1)
        none = np.empty((0, 1))
        at = np.eye(len(mean))[[step, own.shape[1] + step]]
        points = MeasuredRatios(at, log_ratios(own[None]) @ at.T)
        mean = condition(SurfacePrior(lambda _: mean[None], none, none, spread), points).logs[0]
    return np.asarray(own[:, -1:] * np.exp(mean.reshape(own.shape)))


def print_measured(runs: dict[str, Run]) -> None:
    """Print the check of each application's own curve."""
    rows = [
        (app, *of) for app, run in runs.items() for of in errors_under_caps(run, curve_of(run)[1])
    ]
    headers = ["application", "cap W", "measured s", "from its curve s", "time %", "energy %"]
    lines = [
        [app, f"{cap:g}", f"{true_s:.2f}", *cells(under_s, time_error, energy_error)]
        for app, cap, true_s, under_s, time_error, energy_error in rows
    ]
    print(columns(headers, lines))
    time_errors, energy_errors = (
        np.abs([row[column] for row in rows if np.isfinite(row[column])]) for column in (4, 5)
    )
    print(
        f"\nmean error of time {time_errors.mean():.2f} %, at most {time_errors.max():.2f} %; of "
        f"energy {energy_errors.mean():.2f} %, at most {energy_errors.max():.2f} %; "
        f"{len(rows) - len(time_errors)} of {len(rows)} caps are below the lowest clock's power"
    )


def cells(under_s: float, time_error: float, energy_error: float) -> list[str]:
    """What the curve says, in words where it says nothing."""
    if np.isnan(under_s):
        return ["below its clocks", "", ""]
    return [f"{under_s:.2f}", f"{time_error:+.2f}", f"{energy_error:+.2f}"]


def print_readings(runs: dict[str, Run], table: Measurements) -> None:
    """Print how far off predicted curves of the runs are, beside their own."""
    clocks = curve_of(next(iter(runs.values())))[0]
    own = np.array([curve_of(run)[1] for run in runs.values()])
    steps = [table.grid.engine_mhz.index(clock) for clock in clocks]
    measured = [table.quantity(quantity)[:, -1, steps, -1] for quantity in ("time", "power")]
    of_runs, of_table = log_ratios(own), log_ratios(np.stack(measured, axis=1))
    others = [np.delete(of_runs, place, axis=0) for place in range(len(runs))]
    sources: dict[str, list[Floats]] = {
        "its own, at all clocks": [*own],
        f"one reading, mean of the other {len(runs) - 1} runs": [
            predicted_curve(curve, rest) for curve, rest in zip(own, others, strict=True)
        ],
        f"one reading, mean of {len(of_table)} applications of the table": [
            predicted_curve(curve, of_table) for curve in own
        ],
    }
    for step, clock in reversed([*enumerate(clocks)][:-1]):
        sources[f"the same and a reading at {clock:g} MHz"] = [
            predicted_curve(curve, of_table, step) for curve in own
        ]
    errors = {
        source: np.abs(
            [
                of[3:]
                for run, of_run in zip(runs.values(), curves, strict=True)
                for of in errors_under_caps(run, of_run)
            ]
        )
        for source, curves in sources.items()
    }
    by_own = next(iter(errors.values()))
    lines = []
    for source, of in errors.items():
        told = np.isfinite(of[:, 0])
        pairs = (of[told], by_own[told])
        means = [f"{error:.2f}" for pair in pairs for error in np.nanmean(pair, axis=0)]
        lines.append([source, str(told.sum()), *means[:2], f"{of[told, 0].max():.2f}", *means[2:]])
    print(
        f"\nErrors under {len(by_own)} caps by curves predicted from readings at "
        f"{clocks[-1]:g} MHz:"
    )
    headers = ["curve", "caps told", "time %", "energy %", "worst time %"]
    print(columns([*headers, "its own there: time %", "energy %"], lines))


def main() -> None:
    """Print what the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="CSV of runs under caps")
    parser.add_argument("table", type=Path, help="tidy table of other applications")
    arguments = parser.parse_args()
    runs = measured_runs(arguments.runs)
    print_measured(runs)
    print_readings(runs, read(arguments.table))


if __name__ == "__main__":
    main()
