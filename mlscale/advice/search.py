"""The search: where the best of what kernels cost is."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice

import numpy as np

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
from mlscale.advice.recommendation import Choice, Costs, Interval, Points, Recommendation, Terms
from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.errors import InputError
from mlscale.notes import Note

USUAL_SLOWDOWN_PERCENT = 5.0  # allowed for least energy and lowest clock, where no limit is given
MENU_PERCENT = (2.0, USUAL_SLOWDOWN_PERCENT, 10.0, None)  # beside it; None for any time
_config = lru_cache(HardwareConfig)
TOO_SLOW = Note("P06", "cannot keep its share of the time limit: its fastest setting is shown")


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


def choices(
    objective: str,
    configs: Iterable[HardwareConfig],
    at: Points,
    base_config: HardwareConfig,
    base: Points,
    energy_mj: Floats | None,
    power_ends_w: Floats | None = None,
) -> list[Choice]:
    """What n kernels or runs cost and save at their configurations, against the base.

    energy_mj (n, S): None where it is not known. power_ends_w (n, 2): the ends of power by itself.
    The ends of what is saved are those of both sides and the value, which need not be in order.
    """
    values, base_values = (
        objective_values(objective, points.time_ms, points.power_w, points.engine_mhz[:, None])
        for points in (at, base)
    )
    saving = saving_percent(values, base_values[:, :1])
    slowdown = slowdown_percent(at.time_ms, base.time_ms[:, :1])
    unknown = np.full((len(saving), 1), np.nan)
    base_w = unknown if base.power_w is None else base.power_w[:, :1]
    watts = unknown if at.power_w is None else at.power_w[:, :1]
    ends_w = unknown if power_ends_w is None else power_ends_w
    energy_mj = unknown if energy_mj is None else energy_mj
    energy_percent = _change(energy_mj, base.time_ms[:, :1] * base_w)
    columns = (
        at.time_ms[:, 0].tolist(),
        _known(watts),
        _known(energy_mj),
        slowdown[:, 0].tolist(),
        saving[:, 0].tolist(),
        _ends(slowdown),
        _ends(saving),
        _known(energy_percent),
        _ends(energy_percent),
        _known(_change(watts, base_w)),
        _ends(_change(ends_w, base_w)),
        _ends(at.time_ms),
        _ends(ends_w),
        _ends(energy_mj),
    )
    configs = list(configs)
    changed = {config: _differing(config, base_config) for config in set(configs)}
    changes = [changed[config] for config in configs]
    return [Choice(*row) for row in zip(configs, *columns, changes, strict=True)]


def _known(values: Floats) -> list[float | None]:
    """Values (n, S) without their ends, None for those that are not known."""
    return [None if math.isnan(value) else value for value in values[:, 0].tolist()]


def _ends(values: Floats) -> list[Interval]:
    """The ends of values (n, S), None without them."""
    if values.shape[1] == 1:
        return [None] * len(values)
    ends = zip(values.min(axis=1).tolist(), values.max(axis=1).tolist(), strict=True)
    return [None if math.isnan(low) else (low, high) for low, high in ends]


def _change(values: Floats, base: Floats) -> Floats:
    """By how many percent values (n, S) differ from the base's (n, 1); NaN where that is 0."""
    return 100 * (values / np.where(base == 0, np.nan, base) - 1)


def _differing(config: HardwareConfig, base: HardwareConfig) -> dict[str, float | None]:
    """The settings that are known and not the base's."""
    steps = ((axis, getattr(config, axis), getattr(base, axis)) for axis in AXES)
    return {axis: step for axis, step, old in steps if step != old and not math.isnan(step)}


def choice_of_base(config: HardwareConfig, time_ms: float, power_w: float) -> Choice:
    """A base of known power, without intervals."""
    base = Points.single(config.engine_mhz, time_ms, power_w)
    [choice] = choices("energy", [config], base, config, base, np.array([[time_ms * power_w]]))
    return choice


def choices_at(costs: Costs, terms: Terms, rows: Indices, places: Indices) -> list[Choice]:
    """What some kernels (n,) cost and save, each at its own place, flat on the grid (n,).

    Ends of power that were not made for energy give none of energy.
    """
    at = costs.at(rows, places)
    base = costs.at(rows, np.full(len(rows), costs.base_place))
    energy_mj = ends_w = None
    if at.power_w is not None and terms.no_energy is None:
        energy_mj = at.time_ms * at.power_w
        energy_mj = energy_mj[:, :1] if terms.objective == "power" else energy_mj
    if costs.power_ends_w is not None:
        flat_w = costs.power_ends_w.reshape(*costs.power_ends_w.shape[:2], -1)
        ends_w = flat_w[rows, :, places]
    steps = [values[places].tolist() for values in costs.grid.settings().values()]
    configs = (_config(*step, cu_axis=costs.grid.cu_axis) for step in zip(*steps, strict=True))
    return choices(terms.objective, configs, at, costs.base, base, energy_mj, ends_w)


def recommendations(costs: Costs, terms: Terms, best: Sequence[int]) -> list[Recommendation]:
    """What is best, at places that are known, for each kernel, with its Pareto front."""
    fronts: list[list[int]] = [[] for _ in best]
    if terms.no_energy is None and costs.power_w is not None:
        possible_ms, power_w = costs.possible_ms(terms), costs.power_w[:, 0]
        fronts = [_front(*pair) for pair in zip(possible_ms, possible_ms * power_w, strict=True)]
    places = [[at, costs.base_place, *front] for at, front in zip(best, fronts, strict=True)]
    rows = np.repeat(np.arange(len(places)), [len(kernel_places) for kernel_places in places])
    found_at = iter(choices_at(costs, terms, rows, np.concatenate(places)))
    found = []
    for front in fronts:
        at_best, at_base, *on_front = islice(found_at, 2 + len(front))
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
