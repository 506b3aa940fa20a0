"""What the page carries beside the document: every kernel over the grid, small.

A surface is relative to the base, in 4 significant digits: ln(factor) in steps of 1e-4 as whole
numbers, of which the second differences are written, as these are near 0. A number is written as
source maps write one, in base 64 digits of 5 bits each with a bit for "goes on"; '-' stands for a
value that is not known.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.advice.costs import Costs
from mlscale.advice.objectives import Limits, feasible
from mlscale.advice.recommendation import Advice
from mlscale.arrays import Floats, Mask
from mlscale.counters.roofline import RooflinePlace, roofline
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import run_in_sequence
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.unprofiled import AS_KEPT

Row = dict[str, Any]

MOST_SETTINGS = 10_000
MOST_VALUES = 100_000  # kernels times settings: beyond, the kernels of least time have no surface
STEP = 1e-4  # of ln(factor)
MAY_BE_SET, KEEPS_MEMORY, FILLED_IN, NO_SUPPLY, ABOVE_LIMIT = "01234"  # of each setting
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SIDES = ("value", "low", "high")


@dataclass(frozen=True, eq=False)
class Sides:
    """A quantity over the grid: (S, N), S is the value, or the value and the ends it lies between.

    Flat over the grid, engine clocks fastest, then memory clocks, then CUs.
    """

    values: Floats
    base_place: int

    @property
    def at_base(self) -> float:
        """The value at the base, in its unit."""
        return float(self.values[0, self.base_place])

    def packed(self) -> list[str] | None:
        """The sides, low before high, relative to the base; None where the base is not known."""
        base = self.at_base
        if not (np.isfinite(base) and base > 0):
            return None
        factors = self.values / base
        if len(factors) > 1:
            ends = np.array([factors.min(axis=0), factors.max(axis=0)])
            factors = np.concatenate([factors[:1], ends])
        return [packed(side) for side in factors]


def packed(factors: Floats) -> str:
    """Factors (N,) as text; what is not a positive number is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(factors) / STEP
    text: list[str] = []
    last = slope = 0
    for is_known, log in zip(np.isfinite(logs).tolist(), logs.tolist(), strict=True):
        if not is_known:
            text.append("-")
            continue
        value = round(log)
        text.append(_written(value - last - slope))
        last, slope = value, value - last
    return "".join(text)


def _written(number: int) -> str:
    """A whole number in base 64, its sign in the last bit."""
    left = -2 * number + 1 if number < 0 else 2 * number
    text = ""
    while True:
        digit, left = left & 31, left >> 5
        text += _DIGITS[digit | 32 if left else digit]
        if not left:
            return text


def surfaces(advice: Advice, model: Model, profiles: Profiles) -> Row | None:
    """The run and its kernels over the grid, as JSON values; None where there is nothing.

    Kernels are in the document's order, those of most time first. Raises InputError on a grid of
    more than MOST_SETTINGS.
    """
    costs = advice.costs
    if costs is None:
        return None
    grid = costs.grid
    if grid.size > MOST_SETTINGS:
        raise InputError(
            f"a page shows {MOST_SETTINGS} settings at most, the model's grid has {grid.size}; "
            "'mlscale predict' and 'advise' take it"
        )
    order = sorted(
        range(len(advice.kernels)),
        key=lambda k: advice.kernels[k].share_percent or 0.0,
        reverse=True,
    )
    shown = order[: max(1, MOST_VALUES // grid.size)]
    c, e, m = grid.index(costs.base)
    state, reasons = _states(advice, costs, model)
    bounds = _bounds(advice, profiles)
    return {
        "axes": {"c": list(grid.cu_count), "e": list(grid.engine_mhz), "m": list(grid.memory_mhz)},
        "cu_axis": grid.cu_axis or "CUs",
        "base": [c, e, m],
        "state": state,
        "reasons": reasons,
        "run": _quantities(costs.summed(), 0, advice),
        "kernels": [_quantities(costs, k, advice) | bounds[k] for k in shown]
        + [bounds[k] for k in order[len(shown) :]],
    }


def _quantities(costs: Costs, k: int, advice: Advice) -> Row:
    """Time, power and energy of one launch of a kernel: at the base, and its surface.

    The intervals are those of the document: energy's are those of time and power together.
    """
    row: Row = {}
    time = costs.time_ms[k]
    quantities = {"time": time}
    if costs.power_w is not None:
        power = costs.power_w[k]
        ends = costs.power_ends_w
        quantities["power"] = power[:1] if ends is None else np.concatenate([power[:1], ends[k]])
        if advice.no_energy is None:
            has_ends = advice.objective != "power" and len(time) > 1
            quantities["energy"] = time * power if has_ends else time[:1] * power[:1]
    place = costs.grid.index(costs.base)
    at = np.ravel_multi_index((place[0], place[2], place[1]), _shape(costs.grid))
    for name, values in quantities.items():
        sides = Sides(_flat(values), int(at))
        row[name] = {"base": sides.at_base, "sides": sides.packed()}
    return row


def _shape(grid: ConfigGrid) -> tuple[int, int, int]:
    """CUs, memory clocks, engine clocks: these vary fastest, over which surfaces are smooth."""
    return len(grid.cu_count), len(grid.memory_mhz), len(grid.engine_mhz)


def _flat(values: Floats) -> Floats:
    """(S, C, E, M) as (S, N)."""
    return values.swapaxes(2, 3).reshape(len(values), -1)


def _states(advice: Advice, costs: Costs, model: Model) -> tuple[str, Row]:
    """Whether each setting may be set, or why not; and the reasons in words."""
    grid, run = costs.grid, costs.summed()
    states = np.full(grid.shape, MAY_BE_SET)
    reasons = {}
    if run.peak_w is not None:
        peak_w, most_w = run.peak_w[0], advice.limits.max_power_w
        too_much = ~feasible(Limits(max_power_w=most_w), run.time_ms[0, 0], peak_w, 1.0)
        states[too_much] = ABOVE_LIMIT
        reasons[ABOVE_LIMIT] = f"a kernel draws more than {most_w or 0:g} W"
        states[~advice.supply.suffices(peak_w)] = NO_SUPPLY
        reasons[NO_SUPPLY] = f"a kernel would draw more than {advice.supply.most_in_words}"
    if advice.keeps_memory is not None:
        others = np.arange(len(grid.memory_mhz)) != grid.index(costs.base)[2]
        states[:, :, others] = KEEPS_MEMORY
        reasons[KEEPS_MEMORY] = advice.keeps_memory
    for config in model.unmeasured:
        states[grid.index(config)] = FILLED_IN
        reasons[FILLED_IN] = "not measured in training: filled in from its neighbours"
    flat = "".join(states.swapaxes(1, 2).ravel().tolist())
    return flat, {state: words for state, words in reasons.items() if state in flat}


def _bounds(advice: Advice, profiles: Profiles) -> list[Row]:
    """What bounds each kernel, and the shares of peak that say so, where they are known."""
    has_counters = profiles.has_counters
    return [
        _bound(place, AS_KEPT in kernel.flags, bool(has_counters[k]))
        for k, (place, kernel) in enumerate(zip(roofline(profiles), advice.kernels, strict=True))
    ]


def _bound(place: RooflinePlace, is_kept: bool, has_counters: bool) -> Row:
    if is_kept:
        return {"bound": "other GPUs"}
    if not has_counters:
        return {"bound": "no counters"}
    if place.bound is None:
        return {"bound": "not known"}
    shares = [round(100 * place.dram, 1), round(100 * place.core, 1)]
    return {"bound": place.bound, "shares": shares, "unit": place.unit}


def run_at(advice: Advice, profiles: Profiles, is_measured: Mask) -> tuple[Floats, Floats | None]:
    """Time [ms] and power [W] of the kernels (K,) that were measured, over the grid (S, C, E, M).

    As `run_in_sequence`; power's ends are those of power itself.
    """
    costs = advice.costs
    if costs is None:
        raise InputError("of this run nothing is predicted to compare with what was measured")
    launches = profiles.weights * is_measured
    run_ms, run_w = run_in_sequence(costs.time_ms, costs.power_w, launches)
    if run_w is None:
        return run_ms, None
    _, ends_w = run_in_sequence(costs.time_ms[:, :1], costs.power_ends_w, launches)
    return run_ms, run_w[:1] if ends_w is None else np.concatenate([run_w[:1], ends_w])
