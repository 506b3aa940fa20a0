"""Predicted against measured: the run as it was measured after its clocks were set."""

from contextlib import suppress
from typing import Any

import numpy as np

from mlscale.advice.recommendation import Advice
from mlscale.arrays import Floats, Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import interpolate, run_in_sequence
from mlscale.errors import InputError
from mlscale.pages.surfaces import run_at

Row = dict[str, Any]


def against_measured(advice: Advice, profiles: Profiles, point: MeasuredPoint) -> Row:
    """What was measured at a setting, and what is predicted of the same kernels there.

    Values as [value, low, high], None for what is not known; percentages are against these
    kernels at the base. Beyond the grid nothing is predicted.
    """
    is_timed = np.isfinite(point.time_ms)
    row: Row = {
        "at": {axis: float(step) for axis, step in point.config.as_dict().items()},
        "source": point.source,
        "share_percent": _share_percent(profiles, is_timed),
        "measured": {"time_ms": None, "power_w": None, "energy_mj": None},
        "predicted": {"time_ms": None, "power_w": None, "energy_mj": None},
    }
    launches = np.where(is_timed, profiles.weights, 0.0)
    if is_timed.any():
        each_w = None if point.power_w is None else np.where(is_timed, point.power_w, 0.0)
        time_ms, mean_w = run_in_sequence(np.nan_to_num(point.time_ms), each_w, launches)
        row["measured"]["time_ms"] = float(time_ms)
        if mean_w is not None and np.isfinite(mean_w):
            row["measured"]["power_w"] = float(mean_w)
            row["measured"]["energy_mj"] = float(time_ms * mean_w)
    elif point.power_w is not None:
        row["measured"]["power_w"] = float(point.power_w[0])
        is_timed = np.ones(len(is_timed), dtype=bool)
    with suppress(InputError):  # beyond the grid
        row["predicted"] = _predicted(advice, profiles, is_timed, point.config)
    return row


def _share_percent(profiles: Profiles, is_timed: Mask) -> float:
    times = profiles.run_times_ms
    return float(100 * times[is_timed].sum() / times.sum())


def _predicted(advice: Advice, profiles: Profiles, counted: Mask, config: HardwareConfig) -> Row:
    """What is predicted of some kernels (K,), between steps of the grid too. Raises InputError."""
    time_ms, power_w = run_at(advice, profiles, counted)
    grid = advice.surfaces["time"].grid
    row: Row = {"time_ms": _ends(interpolate(time_ms, grid, config)[0])}
    row["power_w"] = row["energy_mj"] = None
    at_w = None if power_w is None else interpolate(power_w, grid, config)[0]
    if at_w is not None and np.isfinite(at_w).all():
        row["power_w"] = _ends(at_w)
        if advice.no_energy is None:
            row["energy_mj"] = [row["time_ms"][0] * row["power_w"][0], None, None]
    return row


def _ends(sides: Floats) -> list[float | None]:
    """[value, low, high] of the value, or of the value and the ends it lies between."""
    value = float(sides[0])
    return (
        [value, float(sides.min()), float(sides.max())] if len(sides) > 1 else [value, None, None]
    )
