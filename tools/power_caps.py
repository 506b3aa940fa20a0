"""How well time and energy under a power cap follow from time and power over the engine clock.

    python tools/power_caps.py a100-clock-x-cap.csv [TABLE]

The CSV holds runs of applications at locked clocks under caps, with the columns app, core_MHz,
cap_W, time [s] and energy_as_given(Wh). Each application's own curve over the clocks, measured
under the highest cap, tells its time and energy at the highest clock under every lower one.

TABLE, a tidy table of sampled profiles, shows what predicted curves add to that: its applications
are held out one at a time, and the time that their predicted curves give under caps of 60 to 90 %
of their power at the base is compared with what their measured curves give. Nobody ran them under
caps.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from mlscale.advice.caps import cap_curve
from mlscale.arrays import Floats
from mlscale.cli.text import columns
from mlscale.data.measurements import read
from mlscale.predictors.sampled.estimator import Sampled
from mlscale.studies.crossval import cross_validate
from mlscale.studies.splits import folds

SHARES = (0.6, 0.7, 0.8, 0.9)
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


def errors_under_caps(run: Run) -> list[tuple[float, float, float, float, float]]:
    """Cap, time [s] measured and predicted, errors of time and energy [%]; NaN where too low."""
    clocks, caps = (sorted(set(axis)) for axis in zip(*run, strict=True))
    time_s, power_w = np.array([run[clock, caps[-1]] for clock in clocks]).T
    curve = cap_curve(caps[:-1], clocks, time_s[None], power_w[None])
    rows = []
    for place, cap in enumerate(caps[:-1]):
        true_s, true_w = run[clocks[-1], cap]
        under_s, energy_j = curve.run_time_ms[place], curve.run_energy_mj[place]
        errors = 100 * (under_s / true_s - 1), 100 * (energy_j / (true_s * true_w) - 1)
        rows.append((cap, true_s, float(under_s), *map(float, errors)))
    return rows


def print_measured(path: Path) -> None:
    """Print the check of each application's own curve."""
    rows = [(app, *of) for app, run in measured_runs(path).items() for of in errors_under_caps(run)]
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


def print_predicted(path: Path) -> None:
    """Print the error of time under caps that predicted curves add."""
    data = read(path)
    base = data.grid.highest
    held_out = folds("leave-one-application-out", data.applications, 0)
    predicted: dict[str, list[Floats]] = {"time": [], "power": []}

    def make() -> list[Sampled]:
        return [Sampled(quantity=quantity) for quantity in predicted]

    for fold in cross_validate(data, [base], held_out, make):
        predicted[fold.predictor.quantity].append(fold.predicted[:, -1, :, -1])
    time_ms, power_w = (np.concatenate(predicted[quantity]) for quantity in ("time", "power"))
    kernels = [k for _, test in held_out for k in test]
    true_ms, true_w = (
        data.quantity(quantity)[kernels][:, -1, :, -1] for quantity in ("time", "power")
    )
    errors = []
    for k in range(len(kernels)):
        caps = np.array(SHARES) * true_w[k, -1]
        of_truth, of_prediction = (
            cap_curve(caps, data.grid.engine_mhz, of_time[k : k + 1], of_power[k : k + 1])
            for of_time, of_power in ((true_ms, true_w), (time_ms, power_w))
        )
        errors.append(100 * np.abs(of_prediction.run_time_ms / of_truth.run_time_ms - 1))
    lines = [
        [
            f"{100 * share:.0f} % of its power",
            f"{np.nanmean(of):.2f}",
            f"{np.nanmax(of):.2f}",
            f"{np.isfinite(of).sum()} of {len(of)}",
        ]
        for share, of in zip(SHARES, np.array(errors).T, strict=True)
    ]
    print(f"\n{data.device}, from {base}, applications held out one at a time:")
    print(columns(["cap", "mean error of time %", "worst", "kernels above the cap"], lines))


def main() -> None:
    """Print what the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, help="CSV of runs under caps")
    parser.add_argument("table", type=Path, nargs="?", help="tidy table of sampled profiles")
    arguments = parser.parse_args()
    print_measured(arguments.runs)
    if arguments.table:
        print_predicted(arguments.table)


if __name__ == "__main__":
    main()
