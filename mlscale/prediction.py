"""Predictions in absolute numbers: a row for each kernel and target configuration."""

from collections.abc import Sequence
from typing import Any

from mlscale.grid import HardwareConfig
from mlscale.model import Model
from mlscale.profiles import Profiles

COLUMNS = (
    "kernel",
    "cu_count",
    "engine_mhz",
    "memory_mhz",
    "time_ms",
    "time_factor",
    "power_w",
    "power_factor",
    "energy_mj",
    "time_ms_low",
    "time_ms_high",
    "flags",
)

Row = dict[str, Any]


def predict_rows(
    model: Model, profiles: Profiles, targets: Sequence[HardwareConfig] | None = None
) -> list[Row]:
    """Time [ms], power [W] and energy [mJ] of every kernel at every target.

    targets: by default every configuration of the model's grid; between two of its steps a
    prediction is interpolated and flagged so. A row has the keys of COLUMNS; what the model or
    the profile cannot give is None. Raises InputError outside the grid's range.
    """
    surfaces = model.predict(profiles)
    flags = [
        tuple(dict.fromkeys(flag for s in surfaces.values() for flag in s.flags[k]))
        for k in range(len(profiles.kernels))
    ]
    by_target = []
    for config in targets if targets is not None else model.grid:
        factors, between = {}, False
        for quantity, surface in surfaces.items():
            factors[quantity], between = surface.at(config)
        by_target.append((config, factors, between))
    rows = []
    for k, kernel in enumerate(profiles.kernels):
        for config, factors, between in by_target:
            time_factor = float(factors["time"][k])
            time_ms = float(profiles.time_ms[k]) * time_factor
            power_factor = power_w = energy_mj = None
            if "power" in factors:
                power_factor = float(factors["power"][k])
                power_w = float(profiles.quantity("power")[k]) * power_factor
                energy_mj = time_ms * power_w
            rows.append(
                {
                    "kernel": kernel,
                    **config.as_dict(),
                    "time_ms": time_ms,
                    "time_factor": time_factor,
                    "power_w": power_w,
                    "power_factor": power_factor,
                    "energy_mj": energy_mj,
                    "time_ms_low": None,
                    "time_ms_high": None,
                    "flags": [*(["interpolated"] if between else []), *flags[k]],
                }
            )
    return rows


def warnings_for(model: Model, profiles: Profiles) -> list[str]:
    """What a reader should know of all rows."""
    found = warnings_of_training(model)
    if "power" not in model.predictors:
        found.append("the model was trained without power: power_w and energy_mj are not given")
    elif profiles.power_w is None:
        found.append("the profile has no power_w: power_w and energy_mj are not given")
    elif model.card["metadata"].get("power_kind") == "dynamic":
        found.append("power_w is dynamic power: energy_mj leaves static power out")
    return found + warnings_of_features(model, profiles)


def warnings_of_training(model: Model) -> list[str]:
    """Whether the model learnt from anything but measurements."""
    origin = model.card["metadata"].get("origin")
    if origin in ("made", "simulated"):
        return [f"the model was trained on {origin} data, not on measurements"]
    return []


def warnings_of_features(model: Model, profiles: Profiles) -> list[str]:
    """How the profile's features of Table II differ in meaning from the training kernels'."""
    status = profiles.metadata.get("feature_status")
    tool = profiles.metadata.get("counter_tool", "the profiler")
    needed = {name for p in model.predictors.values() for name in p.feature_names()}
    if not isinstance(status, dict) or not needed & status.keys():
        return []
    trained = model.card["metadata"].get("feature_status")
    trained = trained if isinstance(trained, dict) else {}
    same_tool = model.card["metadata"].get("counter_tool") == tool
    found = []
    nearest = [
        name
        for name in status
        if name in needed
        and status[name] == "nearest"
        and not (same_tool and trained.get(name) == "nearest")
    ]
    if nearest:
        found.append(f"not Table II's but {tool}'s nearest equivalent: {', '.join(nearest)}")
    if missing := [n for n in status if n in needed and status[n] == "missing"]:
        found.append(f"not given by {tool}: {', '.join(missing)}")
    return found
