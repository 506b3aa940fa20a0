"""What a model holds, as JSON values."""

from typing import Any

import numpy as np

from mlscale.data.grid import AXES, ConfigGrid
from mlscale.model.model import Model
from mlscale.predictors.base import (
    GivesIntervals,
    HasFeatures,
    NeedsFeatures,
    PoolsGpus,
    Predictor,
    PredictsOtherGpus,
    Savable,
    UsesMeasuredPoints,
)

Row = dict[str, Any]

CAPABILITIES = {
    GivesIntervals: "gives intervals",
    PredictsOtherGpus: "predicts GPUs that it was not trained on",
    UsesMeasuredPoints: "uses further measured points",
}


def contents(model: Model) -> Row:
    """Return the grid, the base and the card of a model, and what each predictor holds."""
    return {
        "device": model.device,
        "base": model.base.as_document(),
        "grid": _steps(model.grid),
        "card": model.card,
        "predictors": {name: _predictor(one) for name, one in model.predictors.items()},
    }


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
        needs = predictor.needs() if isinstance(predictor, NeedsFeatures) else ()
        row["features_needed"] = list(needs)
    if isinstance(predictor, PoolsGpus):
        row["learnt_from"] = list(predictor.trained_devices())
    if isinstance(predictor, Savable):
        row["n_numbers"] = _numbers(predictor.state())
    return row


def _steps(grid: ConfigGrid) -> Row:
    return {axis: list(getattr(grid, axis)) for axis in AXES}


def _numbers(state: Any) -> int:
    """Return how many numbers a state holds in its arrays."""
    if isinstance(state, np.ndarray):
        return state.size
    parts = state.values() if isinstance(state, dict) else state
    return sum(map(_numbers, parts)) if isinstance(state, dict | list | tuple) else 0
