"""How well readings of a run tell its time, power and energy on GPUs that no model learnt from.

    MLSCALE_DATA=FOLDER python reproduction/runs.py [PART ...] [--csv docs/tables]

Parts: `readings`, errors over the engine clock from one to three readings; `sureness`, how true
"How sure: high" is; `limits`, clocks that keep a limit of slowdown; `caps`, runs under power caps;
`amd`, power alone on GPUs of other kinds; `apart`, a run by a model that did not learn from its
GPU. Every GPU is left out of what predicts it, and weighs the same in a mean. docs/trust.md shows
what they print; docs/tables has it as CSV.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from common import Report, run
from run_caps import (
    SECOND,
    CappedRun,
    capped_a100,
    capped_ada,
    capped_club,
    capped_drafts,
    capped_language_models,
    capped_mi325x,
    capped_modern,
    capped_zeus,
    errors_of_measured_curve,
    errors_of_prediction,
    errors_over_watts,
)
from run_predictions import (
    QUANTITIES,
    Outcome,
    answers,
    by_law,
    by_law_without_times,
    in_proportion,
    outcome,
    read_at,
    straight_line,
    true_ratios,
    unchanged,
)
from run_tables import csv_rows, one_run, power_alone, tables

from mlscale import Measurements
from mlscale.advice.sureness import HIGH
from mlscale.arrays import Floats, Mask
from mlscale.data.devices import load_device, register_device
from mlscale.data.logs import tells_times
from mlscale.predictors.runs_intervals import ENOUGH

ZONES = {  # shares of the lowest reading's clock, above and up to
    "between": (1.0, np.inf),
    "0.75 to 1": (0.75, 1.0),
    "0.5 to 0.75": (0.5, 0.75),
    "below 0.5": (0.0, 0.5),
}
LEAST_SHARE = 0.45  # readings are compared above this share of the highest clock
READINGS = (
    (),
    (0.9,),
    (0.8,),
    (2 / 3,),
    (SECOND,),
    (0.5,),
    (0.75, 0.5),
)  # beside the highest clock
SURE_READINGS = ((SECOND,), (0.8,), (SECOND, 0.8), (0.8, 0.5), (0.75, 0.5))
LEAST_CLOCKS = 5
PROMISED = 0.02  # by `S01`: of the energy
LIMITS = (2.0, 5.0, 10.0)  # most slowdown [%]
OVER = 1.0  # points above a limit that count as a miss
FULL = ("off by", "+-", "intervals hold", "half-width", "GPUs held")
S_RULE = (0.7, 1.2)  # % of time for one of power


def mean(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error over GPUs, of those that have a value."""
    known = np.array(values)[np.isfinite(values)]
    if len(known) < 2:
        return (float(known[0]) if len(known) else np.nan), np.nan
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(len(known)))


def zones(one: Outcome) -> dict[str, Mask]:
    """Where an outcome's clocks are in each zone, and above LEAST_SHARE of the highest."""
    over = one.over_lowest
    where = {name: (over > low) & (over <= high) for name, (low, high) in ZONES.items()}
    where["0.75 to 1"] &= over < 1
    return where | {f"all from {LEAST_SHARE}": one.over_highest >= LEAST_SHARE}


def zone_means(
    outcomes: dict[str, Outcome], values: str, quantity: str, zone: str
) -> tuple[float, float]:
    """Mean and standard error over GPUs of `errors`, `half_widths` or `held` in a zone [%]."""
    return mean(
        [one.mean(getattr(one, values), quantity, zones(one)[zone]) for one in outcomes.values()]
    )


def triple(numbers: Sequence[float], digits: int = 1) -> str:
    """Numbers of time, power and energy, '-' for those not known."""
    return " / ".join("-" if np.isnan(number) else f"{number:.{digits}f}" for number in numbers)


def readings(report: Report) -> None:
    """Errors by the readings and by zone, intervals, and by GPU."""
    by_readings = {
        shares: {device: outcome(found, by_law, shares) for device, found in tables().items()}
        for shares in READINGS
    }
    rows = {
        ", ".join(f"{share:.2g}" for share in (1, *shares)): outcomes
        for shares, outcomes in by_readings.items()
    }
    simple = {
        rule.__name__.replace("_", " "): {
            device: outcome(found, rule, (SECOND,)) for device, found in tables().items()
        }
        for rule in (unchanged, in_proportion, straight_line)
    }
    rows |= {f"1, {SECOND:.2g}: {name}": outcomes for name, outcomes in simple.items()}
    # In proportion, energy is the same at all clocks, and of equal ones the lowest is taken.
    ruled = {"straight line": simple["straight line"], "lowest clock": simple["in proportion"]}
    two = by_readings[(SECOND,)]
    names = list(zones(next(iter(two.values()))))
    report.rows(
        f"time / power / energy off by, of {len(two)} GPUs [%]",
        ["read at", *names, "regret"],
        [
            *([name, *_cells(found, names), _regret(found)] for name, found in rows.items()),
            ["highest clock", *["- / - / -"] * len(names), _regret(two, "highest_regrets")],
        ],
        "readings",
    )
    report.rows(
        f"from 1, {SECOND:.2g}: means over GPUs [%]; half-width: of 90 % intervals",
        ["quantity", "clocks", *FULL],
        [
            [quantity, zone, *_full(two, quantity, zone)]
            for quantity in QUANTITIES
            for zone in names
        ],
        "intervals",
    )
    report.rows(
        f"from 1, {SECOND:.2g}: time / power / energy off by, by GPU [%]",
        ["GPU", "runs", *names, "intervals hold", "regret", *ruled, "highest clock"],
        [
            [
                device,
                sum(len(table.kernels) for table in tables()[device]),
                *_cells({device: one}, names),
                triple([zone_means({device: one}, "held", q, names[-1])[0] for q in QUANTITIES], 0),
                _regret({device: one}),
                *(_regret({device: outcomes[device]}) for outcomes in ruled.values()),
                _regret({device: one}, "highest_regrets"),
            ]
            for device, one in two.items()
        ],
        "by-gpu",
    )


def _cells(outcomes: dict[str, Outcome], names: Sequence[str]) -> list[str]:
    """Mean errors of time, power and energy by zone."""
    return [
        triple([zone_means(outcomes, "errors", quantity, name)[0] for quantity in QUANTITIES])
        for name in names
    ]


def _regret(outcomes: dict[str, Outcome], values: str = "regrets") -> str:
    """The mean regret of energy, by default at the clock of least predicted energy."""
    found = [getattr(one, values) for one in outcomes.values()]
    regret, _ = mean([values.mean() for values in found if values.size])
    return "-" if np.isnan(regret) else f"{regret:.2f}"


def _full(outcomes: dict[str, Outcome], quantity: str, zone: str) -> list[str]:
    """By FULL: mean error, its standard error over GPUs, what intervals hold, and their width.

    Then of how many GPUs they held ENOUGH.
    """
    numbers = [*zone_means(outcomes, "errors", quantity, zone)]
    numbers += [
        zone_means(outcomes, values, quantity, zone)[0] for values in ("held", "half_widths")
    ]
    digits = (1, 1, 0, 1)
    held = np.array([one.mean(one.held, quantity, zones(one)[zone]) for one in outcomes.values()])
    gpus = f"{(held >= 100 * ENOUGH).sum()} of {np.isfinite(held).sum()}"
    return [
        *(
            "-" if np.isnan(value) else f"{value:.{digit}f}"
            for value, digit in zip(numbers, digits, strict=True)
        ),
        gpus,
    ]


def sureness(report: Report) -> None:
    """How often an answer is told to be as sure as `S01` says, and how often that is true.

    It is where no clock that surely keeps the limit needs over PROMISED less energy, and the limit
    is passed by a point at most. Each GPU has one vote, shared by its runs; of runs at LEAST_CLOCKS
    or more.
    """
    rows = []
    for shares in SURE_READINGS:
        read = ", ".join(f"{share:.2g}" for share in (1, *shares))
        for limit in (np.inf, *LIMITS):
            votes, most = [], 1 + limit / 100
            for parts in tables().values():
                known = [
                    table
                    for table in parts
                    if tells_times(table) and len(table.grid.engine_mhz) >= LEAST_CLOCKS
                ]
                if not known:
                    continue
                told, cost, time = np.hstack([answers(table, shares, most) for table in known])
                high = told <= 100 * HIGH
                true = (cost <= 100 * PROMISED) & (time <= most + OVER / 100)
                votes.append([high.mean(), (high & true).mean(), true.mean(), high.any()])
            high, true, all_true, gpus = np.array(votes).T
            share = f"{100 * true.sum() / high.sum():.0f}" if high.any() else "-"
            name = "none" if np.isinf(limit) else f"{limit:g} %"
            counts = f"{int(gpus.sum())} of {len(votes)}"
            rows.append([read, name, _percent(high), share, counts, _percent(all_true)])
    report.rows(
        f"answers told to be within {100 * PROMISED:g} % of the best clock, and how true [%]",
        ["read at", "limit of slowdown", "high", "true of these", "on GPUs", "true of all"],
        rows,
        "sureness",
    )


def _percent(shares: Floats) -> str:
    return f"{100 * shares.mean():.0f}"


def limits(report: Report) -> None:
    """How often a chosen clock is slower than a limit, and the energy that it saves."""
    rows = []
    for limit in LIMITS:
        found: dict[str, list[Floats]] = {"central": [], "cautious": [], "possible": []}
        for parts in tables().values():
            if timed := [table for table in parts if tells_times(table)]:
                choices = [choices_within(limit, table) for table in timed]
                for name, values in found.items():
                    values.append(np.hstack([choice[name] for choice in choices]).mean(axis=1))
        for name, values in found.items():
            (over, _), (saved, error) = (mean(column) for column in np.array(values).T)
            rows.append([f"{limit:g} %", name, f"{over:.0f}", f"{saved:.1f}", f"{error:.1f}"])
    report.rows(
        f"within a limit of slowdown, from 1, {SECOND:.2g}, means over GPUs [%]",
        ["limit", "clock", f"over it by {OVER:g} point", "energy saved", "+-"],
        rows,
        "limits",
    )


def choices_within(limit: float, table: Measurements) -> dict[str, Floats]:
    """By way of choosing a clock: 100 where it is too slow, and energy saved [%], (2, K).

    Central: of least predicted energy where the predicted time keeps the limit; cautious: where the
    upper end of time does; possible: by the truth.
    """
    truth, predicted = true_ratios(table), by_law(table, read_at(table, (SECOND,)))
    _, time, latest = predicted["time"]
    most = 1 + limit / 100
    ways = {
        "central": (time, predicted["energy"][1]),
        "cautious": (latest, predicted["energy"][1]),
        "possible": (truth["time"], truth["energy"]),
    }
    runs = np.arange(len(table.kernels))
    found = {}
    for name, (slowdown, energy) in ways.items():
        place = np.where(slowdown <= most, energy, np.inf).argmin(axis=1)
        over = truth["time"][runs, place] > most + OVER / 100
        found[name] = np.array([100.0 * over, 100 * (1 - truth["energy"][runs, place])])
    return found


def caps(report: Report) -> None:
    """Runs under caps: by predicted curves over the clock, and by two capped readings alone."""
    rtx3090 = partial(capped_club, "RTX 3090")
    rtx4000ada, b300 = (
        partial(capped_modern, name, f"{name}.csv") for name in ("rtx-4000-ada", "b300")
    )
    with_clocks = (
        ("a100-sxm4-80gb", capped_a100, errors_of_prediction),
        ("a100-sxm4-80gb, by all clocks measured", capped_a100, errors_of_measured_curve),
        ("rtx3090", rtx3090, errors_of_prediction),
        ("rtx-5000-ada", capped_ada, errors_of_prediction),
        ("rtx-4000-ada", rtx4000ada, errors_of_prediction),
        ("b300", b300, errors_of_prediction),
        ("mi325x", capped_mi325x, errors_of_prediction),
    )
    rows = []
    for name, load, errors in with_clocks:
        if runs := _there(load):
            rows.append([name, len(runs), *_cap_cells(np.hstack([errors(one) for one in runs]))])
    low, high = S_RULE
    classes = (f"S <= {low}", f"S <= {high}", f"S > {high}")
    report.rows(
        f"under caps, from 1 and {SECOND:.2g} of the clock, off by [%]; S: % of time for 1 % of "
        "power",
        [
            *("GPU", "runs", "caps", "time", "energy", "below the lowest clock", "not kept"),
            *(f"{name}: {value}" for name in classes for value in ("caps", "time")),
            *("below what was read: caps", "below what was read: time"),
        ],
        rows,
        "caps",
    )
    loads = {gpu: partial(capped_zeus, gpu) for gpu in ("a40", "p100", "rtx6000", "v100")}
    loads |= {f"rtx{n}": partial(capped_club, f"RTX {n}") for n in ("3090", "4090", "5090")}
    loads |= {"rtx5090, 95th percentile of watts": capped_drafts}
    loads |= {f"rtx-{n}-ada": partial(capped_language_models, f"rtx {n}") for n in (5000, 6000)}
    loads |= {"rtx-5000-ada, kernels": capped_ada, "rtx-4000-ada": rtx4000ada, "b300": b300}
    for device, name in (("h100-sxm5", "h100-amber"), ("a100-sxm4-40gb", "a100-firestarter")):
        loads[device] = partial(capped_modern, device, "datacenter", f"{name}-caps.csv")
    rows = []
    for device, load in loads.items():
        if found := [errors_over_watts(one) for one in _there(load)]:
            told = sum(part.size > 0 for part in found)
            off = np.hstack(found)
            worst = f"{off.max():.1f}" if off.size else "-"
            rows.append([device, len(found), told, *_count_and_mean(off), worst])
    report.rows(
        f"rate of work over watts, from the most watts and {SECOND:.2g} of them: caps, off by [%]",
        ["GPU", "runs", "runs slowed", "caps", "time", "worst"],
        rows,
        "caps-by-watts",
    )


def _there(load: Callable[[], list[CappedRun]]) -> list[CappedRun]:
    """The runs of a file, none where it is not there, which is said."""
    try:
        return load()
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return []


def _cap_cells(under: Floats) -> list[str]:
    """How many caps, mean errors, how many not told or not kept, and time's error by S."""
    time, energy, slope, kept, is_low = under
    told, binds = np.isfinite(time), np.isfinite(slope)
    cells = [str(len(time)), f"{time[told].mean():.1f}", f"{energy[told].mean():.1f}"]
    cells += [str((~told).sum()), str((told & binds & (kept == 0)).sum())]
    low, high = S_RULE
    for where in (slope <= low, (slope > low) & (slope <= high), slope > high):
        cells += _count_and_mean(time[told & (kept == 1) & where])
    return cells + _count_and_mean(time[told & (kept == 1) & (is_low == 1)])


def _count_and_mean(values: Floats) -> list[str]:
    """How many there are, and their mean [%]."""
    return [str(values.size), f"{values.mean():.1f}" if values.size else "-"]


def amd(report: Report) -> None:
    """Power alone, without times, on a GPU of AMD and two of NVIDIA, from one to three readings."""
    # Power from one reading asks for a known GPU; of its facts none counts here but the vendor.
    register_device(replace(load_device("r9nano"), key="rx580", datasheet=None))
    files = {
        "rx580": "rx580-power-microv3.csv",
        "titanv": "titanv-power-micro.csv",
        "titanxp": "titanxp-power-micro.csv",
    }
    rows = []
    for device, file_name in files.items():
        table = power_alone(device, file_name)
        for shares in ((), (SECOND,), (0.75, 0.5)):
            one = outcome([table], by_law_without_times, shares)
            read = ", ".join(f"{share:.2g}" for share in (1, *shares))
            for zone in zones(one):
                off, _, *intervals, _ = _full({device: one}, "power", zone)
                rows.append([device, len(table.kernels), read, zone, off, *intervals])
    report.rows(
        "power alone [%]; half-width: of 90 % intervals",
        ["GPU", "kernels", "read at", "clocks", FULL[0], *FULL[2:4]],
        [row for row in rows if row[4] != "-"],
        "power-alone",
    )


def apart(report: Report) -> None:
    """A run on an RTX 4000 Ada at its third clock; what else was kept apart is not public."""
    files = ("3-rtx4000ada-base.csv", "3-rtx4000ada-also.csv", "2-also-920-refused.csv")
    rows = [row for name in files for row in csv_rows("cases", name)]
    values = [(float(r["engine_mhz"]), float(r["time_ms"]), float(r["power_w"])) for r in rows]
    table = one_run("rtx-4000-ada", "bert", values)
    truth, predicted = true_ratios(table), by_law(table, [1, 2])
    clocks = table.grid.engine_mhz
    report.rows(
        f"rtx-4000-ada, one run at {clocks[0]:g} MHz from {clocks[2]:g} and {clocks[1]:g}",
        ["", "measured", "predicted", "90 % interval"],
        [
            [name, f"{truth[name][0, 0]:.3f}", f"{value:.3f}", f"{low:.3f} to {high:.3f}"]
            for name in QUANTITIES
            for low, value, high in [predicted[name][:, 0, 0]]
        ],
        "rtx-4000-ada",
    )


PARTS: dict[str, Callable[[Report], None]] = {
    "readings": readings,
    "sureness": sureness,
    "limits": limits,
    "caps": caps,
    "amd": amd,
    "apart": apart,
}

if __name__ == "__main__":
    run(__doc__.splitlines()[0], PARTS)
