"""Runs under power caps, and how far off two ways to predict them are."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from run_predictions import by_law, read_at
from run_tables import LEAST_SAMPLES, LEFT_OUT, Rows, csv_rows, one_run

from mlscale import Measurements
from mlscale.advice.capped_runs import CappedReading, times_under
from mlscale.advice.caps import cap_curve
from mlscale.arrays import Floats
from mlscale.data.points import LOW

SECOND = 0.6  # second reading, as a share of the highest clock or the most watts
CAP_GRID = 100  # clocks of a predicted curve, evenly up to the highest
KEPT = 0.03  # a run that a cap holds draws within this share of it
LEAST_CAPS = 4  # for each run
MODES = ("MI325X_1000W", "MI325X_750W_Auto", "MI325X_750W_Manual")  # the last at most 1400 MHz
LIMIT_W, HELD_W = 1000.0, 750.0  # both modes
SLOWER = 0.03  # than at the most watts, from which on a cap counts that may not hold the run


@dataclass(frozen=True, eq=False)
class CappedRun:
    """A run under P power caps, in ascending order of the watts that it drew.

    caps_w [W], times (of the same work), powers_w [W]: (P,) each. sweep: the run over engine
    clocks, None where none is known.
    """

    caps_w: Floats
    times: Floats
    powers_w: Floats
    sweep: Measurements | None = None

    @classmethod
    def from_rows(cls, rows: Rows, sweep: Measurements | None = None) -> Self:
        """Rows: cap [W], time, power [W]."""
        caps, times, powers = np.array(sorted(rows, key=lambda row: row[2])).T
        return cls(caps, times, powers, sweep)


def capped_a100() -> list[CappedRun]:
    """Four applications on an A100, caps at its highest clock. Raises FileNotFoundError."""
    runs: dict[str, list[dict[str, float]]] = {}
    for row in csv_rows("sampled", "a100-clock-x-cap.csv"):
        time_s, energy_wh = float(row["time"]), float(row["energy_as_given(Wh)"])
        values = {"mhz": float(row["core_MHz"]), "cap": float(row["cap_W"])}
        values |= {"time": time_s, "power": 3600 * energy_wh / time_s}
        runs.setdefault(row["app"], []).append(values)
    found = []
    for rows in runs.values():
        highest_mhz, highest_w = (max(row[name] for row in rows) for name in ("mhz", "cap"))
        free = [(r["mhz"], r["time"], r["power"]) for r in rows if r["cap"] == highest_w]
        capped = [(r["cap"], r["time"], r["power"]) for r in rows if r["mhz"] == highest_mhz]
        found.append(CappedRun.from_rows(capped, one_run("a100-sxm4-80gb", "run", free)))
    return found


def capped_club(gpu: str) -> list[CappedRun]:
    """Language models on a GPU, by the file's name of it. Raises FileNotFoundError."""
    runs: dict[str, list[tuple[float, float, float, float]]] = {}
    for row in csv_rows("caps", "club-3090-power-caps.csv"):
        if row["gpu"] == gpu:
            values = float(row["cap_w"]), 1 / float(row["tps"]), float(row["actual_w"])
            runs.setdefault(row["load"], []).append((*values, float(row["sm_clock_mhz"] or "nan")))
    device = gpu.replace(" ", "").lower()
    return [with_clocks(device, rows) for rows in runs.values()]


def capped_ada() -> list[CappedRun]:
    """Kernels of known intensity on an RTX 5000 Ada. Raises FileNotFoundError."""
    runs: dict[tuple[str, str], list[tuple[float, float, float, float]]] = {}
    for row in csv_rows("caps", "rtx5000ada-caps-by-intensity.csv"):
        columns = ("cap_w", "seconds", "mean_w", "mean_sm_mhz")
        cap, time, power, clock = (float(row[column]) for column in columns)
        name = row["regime"], row["arithmetic_intensity_flop_per_byte"]
        runs.setdefault(name, []).append((cap, time, power, clock))
    return [with_clocks("rtx-5000-ada", rows) for rows in runs.values()]


def with_clocks(device: str, rows: list[tuple[float, float, float, float]]) -> CappedRun:
    """Rows of cap [W], time, power [W] and engine clock [MHz], NaN where it is not known."""
    sweep = None
    if not np.isnan(rows[0][3]):
        sweep = one_run(device, "run", [(clock, time, power) for _, time, power, clock in rows])
    return CappedRun.from_rows([row[:3] for row in rows], sweep)


def capped_zeus(gpu: str) -> list[CappedRun]:
    """Epochs of six networks, each measured once, without clocks. Raises FileNotFoundError."""
    runs: dict[tuple[str, ...], Rows] = {}
    for row in csv_rows("caps", f"summary_power_{gpu}.csv"):
        columns = ("power_limit", "time_per_epoch", "average_power")
        cap, time, power = (float(row[column]) for column in columns)
        name = tuple(row[key] for key in ("dataset", "network", "batch_size", "optimizer"))
        runs.setdefault(name, []).append((cap, time, power))
    return [CappedRun.from_rows(rows) for rows in runs.values() if len(rows) >= LEAST_CAPS]


def capped_modern(device: str, *names: str) -> list[CappedRun]:
    """Runs of a table in mlscale's columns, by its names; the clock may be missing.

    Raises FileNotFoundError.
    """
    runs: dict[str, list[tuple[float, float, float, float]]] = {}
    for row in csv_rows("modern", *names):
        if row["kernel"] not in LEFT_OUT:
            columns = ("power_cap_w", "time_ms", "power_w", "engine_mhz")
            cap, time, power, clock = (float(row[column] or "nan") for column in columns)
            runs.setdefault(row["kernel"], []).append((cap, time, power, clock))
    return [with_clocks(device, rows) for rows in runs.values()]


def capped_mi325x() -> list[CappedRun]:
    """GEMMs that a cap held on an MI325X, and lower clocks below it. Raises FileNotFoundError."""
    runs: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in csv_rows("modern", "cdna3-gemm.csv"):
        if int(row["n_busy"]) >= LEAST_SAMPLES:
            values = float(row["engine_mhz"]), 1e6 / float(row["gflops"]), float(row["power_w"])
            runs.setdefault(f"{row['lib']}-{row['kernel']}", {})[row["mode"]] = values
    found = []
    for modes in runs.values():
        if len(at := [modes[mode] for mode in MODES if mode in modes]) < len(MODES):
            continue
        (_, *free), (_, *capped), (_, _, slow_w) = at
        if abs(capped[1] / HELD_W - 1) <= KEPT and slow_w < (1 - KEPT) * HELD_W < free[1]:
            rows: Rows = [(LIMIT_W, free[0], free[1]), (HELD_W, capped[0], capped[1])]
            found.append(CappedRun.from_rows(rows, one_run("mi325x", "run", at)))
    return found


def capped_language_models(gpu: str) -> list[CappedRun]:
    """Language models on a workstation's Ada, by the file's name of it. FileNotFoundError."""
    runs: dict[tuple[str, str], Rows] = {}
    for row in csv_rows("modern", "llm-caps-ada.csv"):
        if row["gpu"] == gpu:
            cap, time, power = (float(row[name]) for name in ("cap_w", "ms_per_token", "power_w"))
            runs.setdefault((row["set"], row["model"]), []).append((cap, time, power))
    return [CappedRun.from_rows(rows) for rows in runs.values()]


def capped_drafts() -> list[CappedRun]:
    """A language model at five depths of draft, the 95th percentile of W. FileNotFoundError."""
    runs: dict[str, Rows] = {}
    for row in csv_rows("modern", "rtx5090-mtp-caps.csv"):
        values = float(row["cap_w"]), 1 / float(row["tok_s"]), float(row["p95_power_w"])
        runs.setdefault(row["run"], []).append(values)
    return [CappedRun.from_rows(rows) for rows in runs.values()]


def errors_of_prediction(one: CappedRun) -> Floats:
    """By cap, see `errors_under_caps`; from the sweep's highest clock and about SECOND of it.

    Clocks below LOW are not predicted, as little as in an answer.
    """
    assert one.sweep is not None
    table = one.sweep
    read = read_at(table, (SECOND,))
    highest = table.grid.engine_mhz[-1]
    steps = {*(highest * np.arange(1, CAP_GRID + 1) / CAP_GRID).tolist(), *table.grid.engine_mhz}
    clocks = tuple(sorted(mhz for mhz in steps if mhz >= LOW * highest))
    predicted = by_law(table, read, replace(table.grid, engine_mhz=clocks))
    times, powers = (
        predicted[name][1] * table.quantity(name)[:, 0, -1] for name in ("time", "power")
    )
    lowest_w = float(table.quantity("power")[0, 0, read[0], 0])
    return errors_under_caps(one, np.array(clocks), times, powers, lowest_w)


def errors_of_measured_curve(one: CappedRun) -> Floats:
    """By cap, see `errors_under_caps`; from the whole sweep as it was measured."""
    assert one.sweep is not None
    times, powers = (one.sweep.quantity(name)[:, 0, :, 0] for name in ("time", "power"))
    return errors_under_caps(one, np.array(one.sweep.grid.engine_mhz), times, powers)


def errors_under_caps(
    one: CappedRun, clocks: Floats, times: Floats, powers: Floats, lowest_w: float = 0.0
) -> Floats:
    """By cap below the highest (5, P): |errors| of time and energy [%], S; 1 if it held, is low.

    times, powers [W] (1, E): the run's curve over the clocks [MHz]. Errors are NaN where the cap is
    below all of its power; S, % of time for 1 % of power, where the cap changes nothing. lowest_w:
    what the lowest reading drew, of which less is low.
    """
    new = one.caps_w < one.caps_w.max()
    cap_w, time, power = (values[new] for values in (one.caps_w, one.times, one.powers_w))
    curve = cap_curve(cap_w, clocks, times, powers)
    off = [curve.run_time_ms / time, curve.run_energy_mj / (time * power)]
    with np.errstate(divide="ignore", invalid="ignore"):
        by_clock = [np.gradient(np.log(values[0]), np.log(clocks)) for values in (times, powers)]
        slope = np.interp(curve.run_engine_mhz, clocks, -by_clock[0] / by_clock[1])
    slope[cap_w >= powers[0, -1]] = np.nan
    kept = np.abs(power / cap_w - 1) <= KEPT
    is_low = cap_w < lowest_w * (1 - KEPT)
    return np.array([*(100 * np.abs(np.array(off) - 1)), slope, kept, is_low])


def errors_over_watts(one: CappedRun) -> Floats:
    """|error| of time [%] under the caps that cost time, between two readings, (P,).

    From the run of most watts and the one nearest to SECOND of them; none where that one is hardly
    slower.
    """
    watts, times = one.powers_w, one.times
    second = int(np.abs(watts[:-1] / watts[-1] - SECOND).argmin())
    if times[second] < (1 + SLOWER) * times[-1]:
        return np.empty(0)
    readings = [CappedReading(float(times[at]), float(watts[at])) for at in (-1, second)]
    off = 100 * np.abs(times_under(watts, readings)[:, 0] / times - 1)
    costs = (times > (1 + SLOWER) * times[-1]) & (watts > watts[second])
    return np.asarray(off[costs])
