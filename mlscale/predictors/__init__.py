"""Predictors: profile -> surface. One interface, many predictors, known by name."""

from typing import Any

from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictors.base import Predictor
from mlscale.predictors.baselines import (
    CoreBound,
    EngineBound,
    MeanSurface,
    MemoryBound,
    NoScaling,
)
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.nearest import Nearest
from mlscale.predictors.trees import ExtraTrees
from mlscale.predictors.wang_chu import WangChu
from mlscale.predictors.wu.estimator import Wu

__all__ = ["PREDICTORS", "Predictor", "create", "default_predictor"]

PREDICTORS: dict[str, type[Predictor]] = {
    predictor.name: predictor
    for predictor in (
        NoScaling,
        EngineBound,
        CoreBound,
        MemoryBound,
        MeanSurface,
        Nearest,
        ExtraTrees,
        Wu,
        WangChu,
        Bottleneck,
    )
}


def default_predictor(measurements: Measurements) -> str:
    """`bottleneck` where it knows the GPU's peaks and the counters, else `wu` (decision 0008)."""
    return Bottleneck.name if Bottleneck.applies_to(measurements) else Wu.name


def create(name: str, **parameters: Any) -> Predictor:
    """A predictor by its name; parameters that it does not have are left out.

    Raises InputError on a name that does not exist.
    """
    if name not in PREDICTORS:
        raise InputError(f"there is no predictor '{name}'; one of {', '.join(PREDICTORS)}")
    predictor = PREDICTORS[name]()
    known = predictor.get_params()
    return predictor.set_params(**{k: v for k, v in parameters.items() if k in known})
