"""The search: where the best of what kernels cost is."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np

from mlscale.advice.costs import Costs, Points, Terms
from mlscale.advice.objectives import (
    SAME,
    Limits,
    best_index,
    feasible,
    least_indices,
    objective_values,
    pareto_front,
    saving_percent,
    slowdown_percent,
)
from mlscale.advice.recommendation import Recommendation, Setting
from mlscale.arrays import Floats, Indices, Mask
from mlscale.errors import InputError
from mlscale.notes import Note

USUAL_SLOWDOWN_PERCENT = 5.0  # allowed for least energy and lowest clock, where no limit is given
MENU_PERCENT = (2.0, USUAL_SLOWDOWN_PERCENT, 10.0, None)  # beside it; None for any time
TOO_SLOW = Note("P06", "cannot keep its share of the time limit: its quickest setting is shown")


def best_of_run(run: Costs, terms: Terms) -> tuple[int, int]:
    """Where the best of a run is, flat on the grid, and where it is by expected times.

    The best keeps limits of time by the high ends of its times, where anything does. run:
    `Costs.summed` of its kernels. Raises InputError, saying what is nearest, where nothing is
    expected to keep the limits.
    """
    power_w = None if run.power_w is None else run.power_w[0, 0]
    peak_w = None if run.peak_w is None else run.peak_w[0]
    times, base_ms = run.sought_ms(terms)[0], float(run.base_ms[0])
    is_sure = feasible(terms.limits, run.longest_ms[0], peak_w, base_ms) & np.isfinite(times)

    def best(times_ms: Floats) -> int:
        index = best_index(
            terms.objective,
            times_ms,
            power_w,
            base_ms,
            terms.limits,
            run.grid.engine_mhz,
            peak_power_w=peak_w,
        )
        return int(np.ravel_multi_index(index, run.grid.shape))

    try:
        expected = best(times)
    except InputError as error:
        raise InputError(f"the whole run: {error}") from None
    if not is_sure.any():
        return expected, expected
    return best(np.where(is_sure, times, np.nan)), expected


def allowed_of_run(run: Costs, terms: Terms) -> Mask:
    """What may be set and surely keeps the limits, flat on the grid (N,)."""
    peak_w = None if run.peak_w is None else run.peak_w[0]
    longest_ms = run.longest_ms[0] + 0 * run.sought_ms(terms)[0]
    return feasible(terms.limits, longest_ms, peak_w, float(run.base_ms[0])).ravel()


def menu_of_run(run: Costs, terms: Terms) -> dict[float | None, int]:
    """Where the best of a run is under each limit of slowdown of the menu, flat on the grid.

    Without the limits that nothing surely keeps beside the other limits.
    """
    places, base_ms = {}, float(run.base_ms[0])
    for percent in MENU_PERCENT if terms.has_menu else ():
        limits = replace(terms.limits, max_slowdown_percent=percent)
        with suppress(InputError):
            place, _ = best_of_run(run, replace(terms, limits=limits))
            if run.longest_ms[0].flat[place] <= limits.longest_ms(base_ms) * (1 + SAME):
                places[percent] = place
    return places


def best_of_kernels(costs: Costs, terms: Terms, run_ms: float) -> tuple[Indices, Mask]:
    """Where the best of each kernel is, flat on the grid, and which are too slow: (K,) each.

    Each keeps its part of the run's limits of time, by the high ends of its times where anything
    does, else by the expected times; run_ms: what the run takes at the base [ms].
    Of a kernel that cannot, and is too slow, it is the quickest within the limit of power. Raises
    InputError where there is none.
    """
    times, limits = costs.time_ms[:, 0], terms.limits
    power_w = None if costs.power_w is None else costs.power_w[:, 0]
    base_ms = costs.base_ms[:, None, None, None]
    sought_ms = costs.sought_ms(terms)
    limit_of_power = Limits(max_power_w=limits.max_power_w)
    keeps_power = feasible(limit_of_power, sought_ms, costs.peak_w, base_ms)
    allowed_ms = limits.longest_ms(run_ms) / run_ms * base_ms * (1 + SAME)
    expected, surely = (keeps_power & (ms <= allowed_ms) for ms in (times, costs.longest_ms))
    is_sure = surely.any(axis=(1, 2, 3), keepdims=True)
    allowed = np.where(is_sure, surely, expected)
    clocks = np.array(costs.grid.engine_mhz)[:, None]
    values = objective_values(terms.objective, times, power_w, clocks)
    best = least_indices([values, times, power_w], allowed)
    too_slow = best < 0
    if too_slow.any():
        quickest = least_indices([sought_ms, power_w], keeps_power)
        best = np.where(too_slow, quickest, best)
    if (best < 0).any():
        raise InputError(f"no configuration keeps {' and '.join(limit_of_power.words())}")
    return best, too_slow


def effects(objective: str, at: Points, base: Points) -> dict[str, Floats]:
    """What is saved and how much slower it is against the base, with ends of intervals, (n,) [%].

    The ends are those of both sides and the value, which need not be in order; NaN without them.
    """
    values, base_values = (
        objective_values(objective, points.time_ms, points.power_w, points.engine_mhz[:, None])
        for points in (at, base)
    )
    columns = {}
    for name, percent in (
        ("saving", saving_percent(values, base_values[:, :1])),
        ("slowdown", slowdown_percent(at.time_ms, base.time_ms[:, :1])),
    ):
        has_ends = at.time_ms.shape[1] > 1
        unknown = np.full(len(percent), np.nan)
        columns[f"{name}_percent"] = percent[:, 0]
        columns[f"{name}_low_percent"] = percent.min(axis=1) if has_ends else unknown
        columns[f"{name}_high_percent"] = percent.max(axis=1) if has_ends else unknown
    return columns


def columns_at(costs: Costs, terms: Terms, rows: Indices, places: Indices) -> dict[str, Floats]:
    """What some kernels (n,) cost and save, each at its own place, flat on the grid (n,).

    By the names of `mlscale advise --format csv`, NaN for what is not known.
    """
    at = costs.at(rows, places)
    base = costs.at(rows, np.full(len(rows), costs.base_place))
    time_ms, power_w = at.time_ms[:, 0], np.full(len(rows), np.nan)
    if at.power_w is not None:
        power_w = at.power_w[:, 0]
    return {
        **{axis: steps[places] for axis, steps in costs.grid.settings().items()},
        "time_ms": time_ms,
        "power_w": power_w,
        "energy_mj": time_ms * power_w if terms.no_energy is None else np.full(len(rows), np.nan),
        **effects(terms.objective, at, base),
    }


def settings_at(costs: Costs, terms: Terms, rows: Indices, places: Indices) -> list[Setting]:
    """As `columns_at`, a setting for each, with the ends of what it costs."""
    columns = columns_at(costs, terms, rows, places) | _ends_at(costs, terms, rows, places)
    rows_of_values = zip(*(values.tolist() for values in columns.values()), strict=True)
    by_name = [dict(zip(columns, row, strict=True)) for row in rows_of_values]
    return [Setting.from_row(row, costs.grid.cu_axis) for row in by_name]


def _ends_at(costs: Costs, terms: Terms, rows: Indices, places: Indices) -> dict[str, Floats]:
    """The ends of what some kernels cost, as `Setting.from_row` names them, as far as known.

    Ends of power that were not made for energy give none of energy.
    """
    at, ends = costs.at(rows, places), {}
    if at.time_ms.shape[1] > 1:
        ends["time", "ms"] = at.time_ms
        if at.power_w is not None and terms.no_energy is None and terms.objective != "power":
            ends["energy", "mj"] = at.time_ms * at.power_w
    if costs.power_ends_w is not None:
        flat_w = costs.power_ends_w.reshape(*costs.power_ends_w.shape[:2], -1)
        ends["power", "w"] = flat_w[rows, :, places]
    return {
        f"{name}_{end}_{unit}": edge
        for (name, unit), values in ends.items()
        for end, edge in (("low", values.min(axis=1)), ("high", values.max(axis=1)))
    }


def recommendations(costs: Costs, terms: Terms, best: Sequence[int]) -> list[Recommendation]:
    """What is best, at places that are known, for each kernel, with its Pareto front."""
    fronts: list[list[int]] = [[] for _ in best]
    if terms.no_energy is None and costs.power_w is not None:
        possible_ms, power_w = costs.possible_ms(terms), costs.power_w[:, 0]
        fronts = [_front(*pair) for pair in zip(possible_ms, possible_ms * power_w, strict=True)]
    places = [[at, costs.base_place, *front] for at, front in zip(best, fronts, strict=True)]
    rows = np.repeat(np.arange(len(places)), [len(kernel_places) for kernel_places in places])
    settings = iter(settings_at(costs, terms, rows, np.concatenate(places)))
    found = []
    for front in fronts:
        at_best, at_base, *on_front = islice(settings, 2 + len(front))
        found.append(Recommendation(None, at_best, at_base, tuple(on_front)))
    return found


def _front(time_ms: Floats, energy_mj: Floats) -> list[int]:
    """Where the front of a kernel is, flat on the grid, from the quickest; of equals the first."""
    times = time_ms.ravel()
    front: list[int] = []
    for place in np.flatnonzero(pareto_front(time_ms, energy_mj)).tolist():
        if not any(math.isclose(times[place], times[at], rel_tol=SAME) for at in front):
            front.append(place)
    return sorted(front, key=lambda place: float(times[place]))
