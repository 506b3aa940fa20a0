"""mlscale: run a GPU kernel once and know how it would run anywhere.

The public API, imported on first use: `import mlscale` itself imports nothing heavy.

    import mlscale

    model = mlscale.load("model.mlscale")
    profiles = mlscale.read_profiles("profile.csv", model.base, model.device)
    frame = model.predict(profiles, coverage=0.9).to_frame()
"""

import importlib
import warnings
from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "ConfigGrid": "mlscale.data.grid",
    "HardwareConfig": "mlscale.data.grid",
    "Measurements": "mlscale.data.measurements",
    "read": "mlscale.data.measurements",
    "MeasuredPoint": "mlscale.data.profiles",
    "Profiles": "mlscale.data.profiles",
    "read_profiles": "mlscale.data.profiles",
    "Surfaces": "mlscale.data.surfaces",
    "import_profile": "mlscale.profilers.importing",
    "Model": "mlscale.model",
    "train": "mlscale.model",
    "load": "mlscale.model_file",
    "predict": "mlscale.model_file",
    "save": "mlscale.model_file",
    "Predictions": "mlscale.predictions",
    "advise": "mlscale.advice.advise",
    "next_points": "mlscale.advice.next_point",
    "Limits": "mlscale.advice.objectives",
    "PREDICTORS": "mlscale.predictors",
    "Bottleneck": "mlscale.predictors",
    "CoreBound": "mlscale.predictors",
    "EngineBound": "mlscale.predictors",
    "ExtraTrees": "mlscale.predictors",
    "MeanSurface": "mlscale.predictors",
    "MemoryBound": "mlscale.predictors",
    "Nearest": "mlscale.predictors",
    "NoScaling": "mlscale.predictors",
    "Predictor": "mlscale.predictors",
    "WangChu": "mlscale.predictors",
    "Wu": "mlscale.predictors",
    "create": "mlscale.predictors",
    "find_predictor": "mlscale.predictors",
    "InputError": "mlscale.errors",
    "DataWarning": "mlscale.errors",
}

_FORMER = {
    "read_measurements": "mlscale.read",
    "load_model": "mlscale.load",
    "save_model": "mlscale.save",
    "predict_rows": "mlscale.predict(model, profiles, coverage=0.9).rows()",
    "next_profile": "mlscale.next_points",
}

__all__ = [
    "PREDICTORS",
    "Bottleneck",
    "ConfigGrid",
    "CoreBound",
    "DataWarning",
    "EngineBound",
    "ExtraTrees",
    "HardwareConfig",
    "InputError",
    "Limits",
    "MeanSurface",
    "MeasuredPoint",
    "Measurements",
    "MemoryBound",
    "Model",
    "Nearest",
    "NoScaling",
    "Predictions",
    "Predictor",
    "Profiles",
    "Surfaces",
    "WangChu",
    "Wu",
    "advise",
    "create",
    "find_predictor",
    "import_profile",
    "load",
    "next_points",
    "predict",
    "read",
    "read_profiles",
    "save",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _FORMER:
        new = _FORMER[name]
        warnings.warn(f"mlscale.{name} is now {new}", DeprecationWarning, stacklevel=2)
        if name == "predict_rows":
            return _predict_rows
        module, _, attribute = new.rpartition(".")
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'mlscale' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _predict_rows(model: Any, profiles: Any, targets: Any = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = model.predict(profiles, 0.9).rows(targets)
    return rows
