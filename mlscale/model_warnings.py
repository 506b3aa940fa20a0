"""Warnings of a model: what a reader should know of what it was trained on, and of its profiles."""

from typing import TYPE_CHECKING

from mlscale.data.profiles import Profiles
from mlscale.predictors.base import (
    ComparesSources,
    HasFeatures,
    PredictsFromTimes,
    UsesMeasuredPoints,
)

if TYPE_CHECKING:
    from mlscale.model import Model


def warnings_for(model: "Model", profiles: Profiles) -> list[str]:
    """Return what a reader should know of all predictions for these profiles."""
    warnings = training_warnings(model)
    missing = model.why_no_power(profiles)
    if model.untrained and "power" not in model.predictors:
        learnt = model.device in model.card.get("time_learnt_from", ())
        why = (
            "power is learnt from the first table"
            if learnt
            else f"no training data of {model.device}"
        )
        warnings.append(f"{why}: time alone is predicted")
    elif missing:
        warnings.append(f"{missing}: power_w and energy_mj are not given")
    elif model.power_kind(profiles) == "dynamic":
        warnings.append("power_w is dynamic power: energy_mj leaves static power out")
    return warnings + feature_warnings(model, profiles)


def training_warnings(model: "Model") -> list[str]:
    """Say whether the model learnt from anything but measurements."""
    origin = model.card["metadata"].get("origin")
    if origin in ("made", "simulated"):
        return [f"the model was trained on {origin} data, not on measurements"]
    return []


def _source_warnings(model: "Model", profiles: Profiles) -> list[str]:
    """Say which numbers of the profile were computed from something else than in training."""
    others: dict[str, tuple[str, ...]] = {}
    for predictor in model.predictors.values():
        if isinstance(predictor, ComparesSources):
            others |= predictor.other_sources(profiles)
    if not others:
        return []
    texts = [f"{number} from {' and '.join(names)}" for number, names in others.items()]
    return [f"not measured as in training: {'; '.join(texts)}"]


def feature_warnings(model: "Model", profiles: Profiles) -> list[str]:
    """Say how what the profile was computed from differs from the training kernels'."""
    of_run = _power_of_run(model, profiles)
    profiles = profiles.profiled
    return (
        of_run
        + _power_warnings(model, profiles)
        + _table_2_warnings(model, profiles)
        + _source_warnings(model, profiles)
    )


def _power_of_run(model: "Model", profiles: Profiles) -> list[str]:
    """Say that the power of each kernel is that of the run, where it was joined to them all."""
    is_joined = "power_source" in profiles.metadata and len(profiles.kernels) > 1
    if not is_joined or profiles.power_w is None or model.why_no_power(profiles) is not None:
        return []
    if (profiles.power_w != profiles.power_w[0]).any():
        return []
    watts = f"{profiles.power_w[0]:.4g} W"
    of_run = f"every kernel's power at the base is that of the run, {watts}"
    return [f"{of_run}: no sensor tells one kernel from another"]


def _power_warnings(model: "Model", profiles: Profiles) -> list[str]:
    """Say what is assumed of the power of a GPU that was not learnt from, and what is not used."""
    power = model.predictors.get("power")
    is_predicted = model.why_no_power(profiles) is None
    warnings = []
    if isinstance(power, PredictsFromTimes) and is_predicted:
        assumption = power.assumption(profiles)
        warnings += [assumption] if assumption else []
    is_used = is_predicted and isinstance(power, UsesMeasuredPoints | PredictsFromTimes)
    if not is_used and any(point.power_w is not None for point in profiles.points):
        warnings.append("power at the further measured points is not used, only their times")
    return warnings


def _table_2_warnings(model: "Model", profiles: Profiles) -> list[str]:
    """Say how the profile's features of Table II differ in meaning from the training kernels'."""
    status = profiles.metadata.get("feature_status")
    tool = profiles.metadata.get("counter_tool", "the profiler")
    needed = {
        name
        for predictor in model.predictors.values()
        if isinstance(predictor, HasFeatures)
        for name in predictor.feature_names()
    }
    if not isinstance(status, dict) or not needed & status.keys():
        return []
    trained = model.card["metadata"].get("feature_status")
    trained = trained if isinstance(trained, dict) else {}
    same_tool = model.card["metadata"].get("counter_tool") == tool
    warnings = []
    nearest = [
        name
        for name in status
        if name in needed
        and status[name] == "nearest"
        and not (same_tool and trained.get(name) == "nearest")
    ]
    if nearest:
        warnings.append(f"not Table II's but {tool}'s nearest equivalent: {', '.join(nearest)}")
    if missing := [n for n in status if n in needed and status[n] == "missing"]:
        warnings.append(f"not given by {tool}: {', '.join(missing)}")
    return warnings
