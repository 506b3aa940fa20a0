"""What a model holds, and the clusters that it gives to profiled kernels, as JSON values."""

from typing import Any

import numpy as np

from mlscale.data.grid import AXES, ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.model import Model
from mlscale.predictors.base import (
    Explains,
    GivesIntervals,
    HasFeatures,
    PoolsGpus,
    Predictor,
    PredictsOtherGpus,
    Savable,
    UsesMeasuredPoints,
)
from mlscale.predictors.wu.clusters import ClusterSurfaces
from mlscale.predictors.wu.estimator import Wu

Row = dict[str, Any]

CAPABILITIES = {
    GivesIntervals: "gives intervals",
    PredictsOtherGpus: "predicts GPUs that it has no training data of",
    UsesMeasuredPoints: "takes in further measured points",
}


def contents(model: Model) -> Row:
    """Return the grid, the base and the card of a model, and what each predictor holds."""
    return {
        "device": model.device,
        "base": model.base.as_dict(),
        "grid": _steps(model.grid),
        "card": model.card,
        "predictors": {name: _predictor(one) for name, one in model.predictors.items()},
    }


def choices(model: Model, profiles: Profiles) -> list[Row]:
    """Return for each kernel and quantity the outputs of all clusters, from 0 to 1, by region.

    clusters count from 1. Empty for predictors without clusters. Raises InputError where the
    profiles lack a feature.
    """
    rows = []
    for quantity, predictor in model.predictors.items():
        if not isinstance(predictor, Explains):
            continue
        for choice in predictor.explain(profiles).choices:
            rows += [
                {
                    "kernel": kernel,
                    "quantity": quantity,
                    "region": choice.region,
                    "cluster": int(choice.chosen[k]) + 1,
                    "outputs": choice.outputs[k].tolist(),
                }
                for k, kernel in enumerate(profiles.kernels)
            ]
    return rows


def _predictor(predictor: Predictor) -> Row:
    row: Row = {
        "name": predictor.name,
        "what": (type(predictor).__doc__ or "").split("\n", 1)[0],
        "parameters": predictor.get_params(),
        "capabilities": [
            words for kind, words in CAPABILITIES.items() if isinstance(predictor, kind)
        ],
    }
    if isinstance(predictor, HasFeatures):
        row["features"] = list(predictor.feature_names())
        row["features_needed"] = list(predictor.needs())
    if isinstance(predictor, PoolsGpus):
        row["learnt_from"] = list(predictor.trained_devices())
    if isinstance(predictor, Savable):
        row["n_numbers"] = _numbers(predictor.state())
    if isinstance(predictor, Wu):
        row["cluster_sets"] = [_cluster_set(one) for one in predictor.cluster_surfaces()]
    return row


def _cluster_set(one: ClusterSurfaces) -> Row:
    clusters = [
        {
            "cluster": k + 1,
            "kernels": list(one.kernels[k]),
            "factors": factors.tolist(),
        }
        for k, factors in enumerate(one.factors)
    ]
    return {
        "region": one.region,
        "grid": _steps(one.grid),
        "base": one.base.as_dict(),
        "clusters": clusters,
    }


def _steps(grid: ConfigGrid) -> Row:
    return {axis: list(getattr(grid, axis)) for axis in AXES}


def _numbers(state: Any) -> int:
    """Return how many numbers a state holds in its arrays."""
    if isinstance(state, np.ndarray):
        return state.size
    parts = state.values() if isinstance(state, dict) else state
    return sum(map(_numbers, parts)) if isinstance(state, dict | list | tuple) else 0
