"""Predictions in absolute numbers: a row for each kernel and target configuration."""

from collections.abc import Sequence
from typing import Any

from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import QUANTITIES, Profiles
from mlscale.model import Model

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
    "power_w_low",
    "power_w_high",
    "flags",
)

COVERAGE = 0.9  # of the intervals, where the predictor has them

Row = dict[str, Any]


def predict_rows(
    model: Model, profiles: Profiles, targets: Sequence[HardwareConfig] | None = None
) -> list[Row]:
    """Time [ms], power [W] and energy [mJ] of every kernel at every target.

    targets: by default every configuration of the model's grid; between two of its steps a
    prediction is interpolated and flagged so. A row has the keys of COLUMNS; what the model or
    the profile cannot give is None. low and high hold COVERAGE of the truth. Raises InputError
    outside the grid's range.
    """
    surfaces = model.predict(profiles, COVERAGE)
    flags = [
        tuple(dict.fromkeys(flag for s in surfaces.values() for flag in s.flags[k]))
        for k in range(len(profiles.kernels))
    ]
    by_target = []
    for config in targets if targets is not None else model.grid:
        columns: dict[str, list[float]] = {}
        between = False
        for quantity, surface in surfaces.items():
            factors, between = surface.at(config)
            at_base, name = profiles.quantity(quantity), QUANTITIES[quantity]
            columns[f"{quantity}_factor"] = factors.tolist()
            columns[name] = (at_base * factors).tolist()
            for side, bound in zip(
                ("low", "high"), surface.interval_at(config) or (), strict=False
            ):
                columns[f"{name}_{side}"] = (at_base * bound).tolist()
        by_target.append((config, columns, between))
    rows = []
    for k, kernel in enumerate(profiles.kernels):
        for config, columns, between in by_target:
            row = dict.fromkeys(COLUMNS) | {name: column[k] for name, column in columns.items()}
            if row["power_w"] is not None:
                row["energy_mj"] = row["time_ms"] * row["power_w"]
            row["flags"] = [*(["interpolated"] if between else []), *flags[k]]
            rows.append({**row, "kernel": kernel, **config.as_dict()})
    return rows


def warnings_for(model: Model, profiles: Profiles) -> list[str]:
    """What a reader should know of all rows."""
    found = warnings_of_training(model)
    if model.untrained:
        learnt = model.device in model.card.get("time_learnt_from", ())
        why = (
            "power is learnt from the first table"
            if learnt
            else f"no training data of {model.device}"
        )
        found.append(f"{why}: time alone is predicted")
    elif "power" not in model.predictors:
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
