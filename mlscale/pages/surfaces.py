"""What the page carries beside the document: every kernel over the grid, small.

A surface is relative to the base, in 4 significant digits: ln(factor) in steps of 1e-4 as whole
numbers, of which the second differences are kept, as these are near 0; null stands for a value that
is not known. Engine clocks vary fastest, then memory clocks, then CUs. All is JSON, deflated, in
base 64.
"""

import base64
import json
import zlib
from typing import Any

import numpy as np

from mlscale.advice.objectives import Limits, feasible
from mlscale.advice.recommendation import Advice, Costs
from mlscale.arrays import Floats, Mask
from mlscale.counters.roofline import RooflinePlace, roofline
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import run_in_sequence
from mlscale.errors import InputError
from mlscale.model.model import Model
from mlscale.model.unprofiled import AS_KEPT

Row = dict[str, Any]

MOST_SETTINGS = 10_000
MOST_VALUES = 100_000  # kernels times settings: beyond, the kernels of least time have no surface
STEP = 1e-4  # in ln(factor)
MAY_BE_SET, KEEPS_MEMORY, FILLED_IN, NO_SUPPLY, ABOVE_LIMIT = "01234"  # a setting's state


def deflated(row: Row) -> str:
    """JSON values as the page carries them."""
    text = json.dumps(row, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), level=9)).decode()


def packed(factors: Floats) -> list[int | None]:
    """Factors (N,) as second differences; what is not a positive number is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(factors) / STEP
    is_known = np.isfinite(logs)
    differences = np.diff(np.rint(logs[is_known]), n=2, prepend=[0, 0]).astype(int)
    if is_known.all():
        return list(differences.tolist())
    numbers = iter(differences.tolist())
    return [next(numbers) if known else None for known in is_known.tolist()]


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
            f"a page shows at most {MOST_SETTINGS} settings, but the model's grid has "
            f"{grid.size}; use 'mlscale predict' or 'advise'"
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
    """Time, power and energy of one launch: each its value at the base, and packed sides.

    Sides are the value and the ends of its interval, null for an end that is the value. Energy's
    value is null: it is time x power. The intervals are those of the document: energy's are of time
    and power together.
    """
    time = costs.time_ms[k]
    quantities = {"time": time}
    if costs.power_w is not None:
        power, ends = costs.power_w[k], costs.power_ends_w
        quantities["power"] = power[:1] if ends is None else np.concatenate([power[:1], ends[k]])
        if advice.no_energy is None:
            has_ends = advice.objective != "power" and len(time) > 1
            quantities["energy"] = time * power if has_ends else time[:1] * power[:1]
    at_base = costs.grid.index(costs.base)
    row: Row = {}
    for name, values in quantities.items():
        base = float(values[0][at_base])
        if np.isfinite(base) and base > 0:
            row[name] = [float(f"{base:.9g}"), *_sides(values / base)]
    if "energy" in row:
        row["energy"][1] = None
    return row


def _sides(factors: Floats) -> list[list[int | None] | None]:
    """Factors (S, C, E, M) packed: the value, and the ends around it where S is 3."""
    flat = factors.swapaxes(2, 3).reshape(len(factors), -1)
    value = packed(flat[0])
    if len(flat) == 1:
        return [value]
    ends = [packed(end) for end in (flat.min(axis=0), flat.max(axis=0))]
    return [value, *(None if end == value else end for end in ends)]


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
        raise InputError("nothing was predicted for this run to compare with the measurement")
    launches = profiles.weights * is_measured
    run_ms, run_w = run_in_sequence(costs.time_ms, costs.power_w, launches)
    if run_w is None:
        return run_ms, None
    _, ends_w = run_in_sequence(costs.time_ms[:, :1], costs.power_ends_w, launches)
    return run_ms, run_w[:1] if ends_w is None else np.concatenate([run_w[:1], ends_w])
