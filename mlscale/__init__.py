"""mlscale: run a GPU kernel once and know how it would run anywhere.

The public API, imported on first use: `import mlscale` itself imports nothing heavy.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "ConfigGrid": "mlscale.grid",
    "HardwareConfig": "mlscale.grid",
    "Measurements": "mlscale.measurements",
    "read_measurements": "mlscale.measurements",
    "MeasuredPoint": "mlscale.profiles",
    "Profiles": "mlscale.profiles",
    "read_profiles": "mlscale.profiles",
    "Surfaces": "mlscale.surfaces",
    "Model": "mlscale.model",
    "train": "mlscale.model",
    "load_model": "mlscale.model_file",
    "save_model": "mlscale.model_file",
    "next_profile": "mlscale.next_measurement",
    "predict_rows": "mlscale.prediction",
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
    "Profiles",
    "Surfaces",
    "create",
    "load_model",
    "next_profile",
    "predict_rows",
    "read_measurements",
    "read_profiles",
    "save_model",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'mlscale' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
