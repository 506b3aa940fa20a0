"""Which engine clocks of a run's readings ran, where its files tell only those asked for."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mlscale.data.logs import SAME_CLOCK, is_sampled
from mlscale.data.predicates import LEAST_STEP
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.supply import is_at_limit, run_cap_w
from mlscale.data.table import Table
from mlscale.notes import Note

EVEN = 0.1  # an exponent of time or power over the clock: below, it does not follow the clock
FALLEN = 0.5  # of both exponents of the next lower step: so low they fall at a clock not kept
HELD = 2 / 3  # of the way in logs from the clock asked for to the least, where a limit alone tells


def shows_clock(table: Table) -> bool:
    """Whether a table of whole runs tells the engine clocks that ran, not only those asked for."""
    if is_sampled(table.metadata):
        return not table.metadata.get("asked_clocks")
    nothing, names = np.array(np.nan), ("engine_mhz", "engine_mhz_observed")
    asked_mhz, ran_mhz = (table.numbers.get(name, nothing) for name in names)
    return np.allclose(asked_mhz, ran_mhz, rtol=2 * SAME_CLOCK)


def with_ran_clocks(profiles: Profiles, tables: Iterable[Table]) -> tuple[Profiles, list[Note]]:
    """A run's readings, of tables, at the clocks that ran, as far as they tell; a note on them."""
    are_shown = {shows_clock(table) for table in tables}
    is_of_run = is_sampled(profiles.metadata) or profiles.are_times_alone
    if not (is_of_run and profiles.points and False in are_shown):
        return profiles, []
    lost, mhz = (0, 0.0) if True in are_shown else not_kept(profiles)
    told = "no file shows the clocks that ran, so those asked for are taken: log them too"
    if lost:
        told += f"; by time and power {profiles.base.engine_mhz:g} MHz was not reached, {mhz:g} is "
        told += "assumed: measure at a clock that the GPU keeps"
        base, points = replace(profiles.base, engine_mhz=mhz), profiles.points[lost - 1 :]
        profiles = replace(profiles, base=base, points=points, is_clock_doubted=True)
    told += " (clocks.sm of nvidia-smi; of a table the column engine_mhz_observed)"
    note = Note("L04", told, "warning" if lost else "note")
    return replace(profiles, are_clocks_asked=True), [note]


def not_kept(profiles: Profiles) -> tuple[int, float]:
    """How many of a run's highest readings did not keep their clock, and the one that ran [MHz].

    They are even with the next lower reading; or the highest gains far less over it than that over
    its next, or drew its power limit. No work slows by more than the clock falls, and its power
    falls by no more than the cube, which gives the least clock; a limit alone does not tell which.
    """
    base = MeasuredPoint(profiles.base, profiles.time_ms, profiles.power_w)
    rows = [
        (one.config.engine_mhz, one.time_ms[0], one.power_w[0])
        for one in (base, *profiles.points)
        if one.power_w is not None
    ]
    mhz, time_ms, power_w = np.reshape(rows, (-1, 3)).T
    is_whole = len(rows) > len(profiles.points) and len(profiles.kernels) == 1
    if not is_whole or (np.diff(mhz) >= 0).any():
        return 0, 0.0
    clock, time, power = np.diff(np.log([1 / mhz, time_ms, 1 / power_w]))
    slopes, are_steps = np.array([time, power]) / clock, clock >= np.log(LEAST_STEP)
    even = int(np.argmin([*(are_steps & (slopes < EVEN).all(axis=0)), False]))
    falls = len(clock) > 1 and are_steps[:2].all() and slopes[0, 1] > EVEN
    falls = falls and (slopes[:, 0] < FALLEN * slopes[:, 1]).all()
    board_w = power_w[0] * profiles.hottest_gpu_ratio / profiles.gpu_count
    shown = even + 1 if even else int(falls)
    lost = shown or int(is_at_limit(board_w, run_cap_w(profiles)))
    n = min(lost, len(clock))
    least = mhz[n] * max(time_ms[n] / time_ms[0], np.cbrt(power_w[0] / power_w[n]), 1)
    ran = mhz[0] * (min(least, mhz[even]) / mhz[0]) ** (1 if shown else HELD)
    return (lost, float(round(ran))) if ran * (1 + SAME_CLOCK) < mhz[0] else (0, 0.0)
