"""mlscale: run a GPU kernel once and know how it would run anywhere.

The public API, imported on first use: `import mlscale` itself imports nothing heavy.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "ConfigGrid": "mlscale.data.grid",
    "HardwareConfig": "mlscale.data.grid",
    "Measurements": "mlscale.data.measurements",
    "read_measurements": "mlscale.data.measurements",
    "MeasuredPoint": "mlscale.data.profiles",
    "Profiles": "mlscale.data.profiles",
    "read_profiles": "mlscale.data.profiles",
    "Surfaces": "mlscale.data.surfaces",
    "Model": "mlscale.model",
    "train": "mlscale.model",
    "load_model": "mlscale.model_file",
    "save_model": "mlscale.model_file",
    "next_profile": "mlscale.advice.next_point",
    "Predictions": "mlscale.predictions",
    "PREDICTORS": "mlscale.predictors",
    "create": "mlscale.predictors",
    "InputError": "mlscale.errors",
    "DataWarning": "mlscale.errors",
}

__all__ = [
    "PREDICTORS",
    "ConfigGrid",
    "DataWarning",
    "HardwareConfig",
    "InputError",
    "MeasuredPoint",
    "Measurements",
    "Model",
    "Predictions",
    "Profiles",
    "Surfaces",
    "create",
    "load_model",
    "next_profile",
    "read_measurements",
    "read_profiles",
    "save_model",
    "train",
]


def _predict_rows(model: Any, profiles: Any, targets: Any = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = model.predict(profiles, 0.9).rows(targets)
    return rows


def __getattr__(name: str) -> Any:
    if name == "predict_rows":
        return _predict_rows
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'mlscale' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
