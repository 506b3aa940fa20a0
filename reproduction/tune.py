"""What a job saves that finds its clock inside its loop, by simulation on measured curves.

    MLSCALE_DATA=FOLDER python reproduction/tune.py [PART ...] [--every N] [--seeds N]

Parts: `ways`, `mlscale.tune` beside Zeus' search and the highest clock; `steps`, by how long a step
takes; `worlds`, what disturbs a job, one after the other. Each job is one of 50 runs that others
measured over clocks, made into a training loop on a made GPU (`tests/synthetic/tuned_job.py`). The
truth is the curve, against its highest clock when cold. docs/howto/tune.md shows what is printed.
"""

import argparse
import logging
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from common import REPOSITORY, Report, run

from mlscale.tuning import Tuner, TuningGoal

sys.path.append(str(REPOSITORY / "tests"))
from synthetic.tuned_job import Curve, MadeBoard, MadeJob, World

# By the name in the files: the GPU, its memory clock [MHz], its power limit and the least [W], of
# data sheets.
BOARDS = {
    "v100": ("v100-sxm2-32gb", 877, 300, 150), "h100": ("h100-nvl", 1593, 500, 200),
    "h200": ("h200", 3201, 600, 200), "a100": ("a100-sxm4-40gb", 1215, 400, 100),
    "a40": ("a40", 7251, 300, 100), "ada4000": ("rtx-4000-ada", 9001, 130, 35),
    "ada5000": ("rtx-5000-ada", 9001, 250, 100), "laptop": ("rtx4050-laptop", 8001, 80, 20),
    "pro6000": ("rtx-pro-6000-blackwell", 14001, 600, 150),
}  # fmt: skip
# Clocks above these were set and not kept, by the README of the data.
KEPT_MHZ = {"h100-AMBER": 1785, "h100-GROMACS": 1785, "h100-FIRESTARTER": 1335,
            "h200-FIRESTARTER": 1410, "a40-FIRESTARTER": 1395}  # fmt: skip
LIMITS = (2.0, 5.0, 10.0, None)
STEPS_S = (0.05, 0.3, 2.0)
ZEUS_STEPS = 1, 10, 40  # before, and at each power limit before and in its window
ZEUS_STEP_W = 25
MOST_S = 7200.0


@dataclass(frozen=True)
class Case:
    """A run that was measured, the board with its memory clock and power limits, and its curve."""

    name: str
    gpu: str
    memory_mhz: float
    cap_w: float
    least_w: float
    curve: Curve


@dataclass(frozen=True)
class Found:
    """What a way found: its clock [MHz], lost time until then [s], how long it took [s]."""

    mhz: float
    lost_s: float
    took_s: float
    state: str


Way = Callable[[Case, MadeJob, float | None], Found]


@cache
def cases() -> list[Case]:
    """All runs. Raises FileNotFoundError without the data."""
    if not (name := os.environ.get("MLSCALE_DATA")):
        raise FileNotFoundError("MLSCALE_DATA does not name the folder of the data")
    return [*_cases(Path(name))]


def _cases(folder: Path) -> Iterator[Case]:
    sweeps = pd.read_csv(folder / "modern" / "v100-sxm2-32gb.csv")
    kernels = [group for _, group in sweeps.groupby("kernel")][::2]
    for sweep in kernels:
        yield _case("v100", sweep, "engine_mhz", sweep.time_ms, sweep.power_w)
    for gpu, file, low, high in (
        ("laptop", "rtx4050-laptop", 0, 9999),
        ("pro6000", "rtx-pro-6000-blackwell", 0, 2430),
        ("ada4000", "rtx-4000-ada", 700, 9999),
    ):
        table = pd.read_csv(folder / "modern" / f"{file}.csv")
        for _, rows in table.groupby("kernel"):
            sweep = rows.groupby(rows.engine_mhz.round().rename("mhz")).mean(numeric_only=True)
            sweep = sweep[(sweep.engine_mhz > low) & (sweep.engine_mhz <= high)]
            yield _case(gpu, sweep, "engine_mhz", sweep.time_ms, sweep.power_w)
    table = pd.read_csv(folder / "caps" / "rtx5000ada-caps-by-intensity.csv")
    for _, rows in table.groupby(["regime", "arithmetic_intensity_flop_per_byte"]):
        sweep = rows.groupby("mean_sm_mhz").mean(numeric_only=True).reset_index()
        if len(sweep) >= 6:
            yield _case("ada5000", sweep, "mean_sm_mhz", 1 / sweep.achieved_gb_per_s, sweep.mean_w)
    for file in sorted((folder / "modern" / "datacenter").glob("*-clocks.csv")):
        table = pd.read_csv(file)
        for (gpu, application, _), rows in table.groupby(["device", "application", "kernel"]):
            sweep = rows[rows.engine_mhz <= KEPT_MHZ.get(f"{gpu}-{application}", 9999)]
            if len(sweep) >= 5:
                yield _case(gpu, sweep, "engine_mhz", sweep.time_ms, sweep.power_w)


def _case(gpu: str, sweep: pd.DataFrame, clock: str, times: pd.Series, watts: pd.Series) -> Case:
    """Clocks in ascending order; no step is quicker at a lower clock."""
    values = np.array([sweep[clock], times, watts], dtype=float)
    values = values[:, np.isfinite(values).all(0)]
    mhz, time, power = values[:, np.argsort(values[0])]
    time = np.maximum.accumulate((time / time[-1])[::-1])[::-1]
    name = f"{gpu}-{len(mhz)}-{mhz[0]:.0f}-{power.sum():.0f}"
    return Case(name, *BOARDS[gpu], Curve(mhz, time, power))


# Ways.


def tuned(_: Case, job: MadeJob, limit: float | None) -> Found:
    """By `mlscale.tune`, until it is done."""
    tuner = Tuner(None, TuningGoal(limit), job)
    with tuner:
        while tuner.state not in ("set", "stayed", "off") and job.gpu_s < MOST_S:
            job.run_step()
            tuner.step()
        mhz = tuner.engine_mhz if tuner.state == "set" else 0
        return Found(mhz or job.board.curve.mhz[-1], job.excess_s, job.gpu_s, tuner.state)


def zeus(case: Case, job: MadeJob, limit: float | None) -> Found:
    """GlobalPowerLimitOptimizer of Zeus (75a8b939): a window at every power limit, the first free.

    Then the limit of least energy among those that are slower by at most that much.
    """
    before, warm, count = ZEUS_STEPS
    step_w = ZEUS_STEP_W if case.cap_w > 130 else 10
    curve, windows = case.curve, list[tuple[float, float, float]]()
    _run(job, before)
    for cap_w in np.arange(case.cap_w, case.least_w - 1, -step_w):
        mhz = np.linspace(curve.mhz[0], curve.mhz[-1], 400)
        under = [one for one in mhz if curve.power_w(one) <= cap_w]
        job.board.locked_mhz = under[-1] if under else curve.mhz[0]
        _run(job, warm)
        begun = job.gpu_s, job.joules
        _run(job, count)
        windows.append((job.board.locked_mhz, job.gpu_s - begun[0], job.joules - begun[1]))
    most = np.inf if limit is None else (1 + limit / 100) * windows[0][1]
    mhz = min((one for one in windows if one[1] <= most), key=lambda one: one[2])[0]
    return Found(mhz, job.excess_s, job.gpu_s, "set")


def _run(job: MadeJob, steps: int) -> None:
    for _ in range(steps):
        job.run_step()


def stay(case: Case, _: MadeJob, __: float | None) -> Found:
    """The highest clock."""
    return Found(case.curve.mhz[-1], 0, 0, "stayed")


# Jobs.


def judged(
    way: Way,
    some: Sequence[Case],
    steps_s: Sequence[float],
    seeds: int,
    world: World,
    limit: float | None,
) -> list[str]:
    """What a way gives over jobs: columns of HEADER."""
    regrets, overs, lost, minutes, offs, saved = ([] for _ in range(6))
    for case in some:
        share = np.inf if limit is None else limit / 100
        best = case.curve.energy(case.curve.best_mhz(share))
        for step_s in steps_s:
            for seed in range(seeds):
                board = MadeBoard(case.curve, case.gpu, case.memory_mhz)
                number = zlib.crc32(
                    f"{case.name}|{step_s}|{seed}".encode()
                )  # the same for all ways
                job = MadeJob(board, step_s, world, number)
                found = way(case, job, limit)
                energy = case.curve.energy(found.mhz)
                regrets.append(100 * max(0, energy - best))
                saved.append(100 * (1 - energy))
                overs.append(100 * (case.curve.time(found.mhz) - 1 - share))
                lost.append(100 * found.lost_s / 3600)
                minutes.append(found.took_s / 60)
                offs.append(found.state == "off")
    over = np.array(overs)
    return [
        f"{np.mean(saved):.1f}", f"{np.mean(regrets):.1f}", f"{100 * np.mean(over > 1):.1f}",
        f"{max(over.max(), 0):.1f}", f"{np.mean(lost):.1f}", f"{np.mean(minutes):.1f}",
        f"{100 * np.mean(offs):.1f}",
    ]  # fmt: skip


HEADER = ("saves %", "regret", "over by 1 %", "worst", "lost %", "minutes", "off %")
SAYS = (
    "saves, regret: energy, % and points above the best clock; over by 1: jobs [%] slower than the "
    "limit by a point; worst [points]; lost: of the first hour; minutes until set; off: jobs [%]"
)


def ways(report: Report) -> None:
    """All ways at all limits, steps below 20 s."""
    some, seeds = _some(report)
    rows = []
    for name, way in (("mlscale.tune", tuned), ("Zeus", zeus), ("stay", stay)):
        for limit in LIMITS:
            shown = "none" if limit is None else f"{limit:g} %"
            rows.append((name, shown, *judged(way, some, STEPS_S, seeds, World(), limit)))
    jobs = len(some) * len(STEPS_S) * seeds
    report.rows(f"{jobs} jobs of {len(some)} runs; {SAYS}", ("way", "limit", *HEADER), rows, "tune")


def steps(report: Report) -> None:
    """How long a step takes, at a limit of 5 %."""
    some, seeds = _some(report)
    rows = [(f"{s:g} s", *judged(tuned, some, (s,), seeds, World(), 5.0)) for s in (*STEPS_S, 20.0)]
    report.rows("by the time of a step, limit 5 %", ("step", *HEADER), rows)


WORLDS = {
    "as in `ways`": World(),
    "nothing": World(0.005, 0, 0, 0, 0, 0, 0, 0, 0),
    "another job within the first 20 min": World(falls=0),
    "no other job": World(other=0),
    "evaluations and pauses alone": World(other=0, falls=0, warm_steps=0),
    "noise of 5 %": World(noise=0.05, other=0, falls=0),
    "drift of 5 % an hour": World(drift=0.05, other=0, falls=0),
    "a counter of energy that counts each second": World(counter_s=1.0),
    "a lock that is not kept": World(keeps_lock=False),
    "a loop that runs ahead by 10 steps": World(ahead=10),
    "a loop that waits for every 10th step": World(waits_every=10),
    "steps 1.5 times as long from the 150th": World(grows=(150, 1.5)),
}


def worlds(report: Report) -> None:
    """What disturbs a job, limit 5 %, steps of 0.3 s."""
    some, seeds = _some(report)
    rows = [(name, *judged(tuned, some, (0.3,), seeds, w, 5.0)) for name, w in WORLDS.items()]
    report.rows("by what disturbs, limit 5 %, steps of 0.3 s", ("world", *HEADER), rows)


def _some(report: Report) -> tuple[list[Case], int]:
    return cases()[:: report.options.every], report.options.seeds


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--every", type=int, default=1, help="take every N-th run")
    parser.add_argument("--seeds", type=int, default=1, help="jobs of each run and step")


if __name__ == "__main__":
    logging.disable()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        run(__doc__ or "", {"ways": ways, "steps": steps, "worlds": worlds}, _options)
