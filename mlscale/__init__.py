"""mlscale: run a GPU kernel once and know how it would run anywhere.

The public API, imported on first use: `import mlscale` itself imports nothing heavy.

    import mlscale

    model = mlscale.load("model.mlscale")
    profiles = mlscale.read_profiles("profile.csv", model.base, model.device)
    frame = model.predict(profiles, coverage=0.9).to_frame()

The models of the literature are functions of `mlscale.papers`.
"""

import importlib

TYPE_CHECKING = False  # for type checkers it is true; typing itself takes long to load
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

_MODULES = {
    "mlscale.data.grid": ("ConfigGrid", "HardwareConfig"),
    "mlscale.data.measurements": ("Measurements", "read"),
    "mlscale.data.profiles": ("MeasuredPoint", "Profiles", "read_profiles"),
    "mlscale.data.surfaces": ("Surfaces",),
    "mlscale.readers.reading": ("import_profile",),
    "mlscale.model.model": ("Model", "load", "predict", "save", "train"),
    "mlscale.model.predictions": ("Predictions",),
    "mlscale.advice.advise": ("advise",),
    "mlscale.advice.objectives": ("Limits",),
    "mlscale.predictors": ("PREDICTORS", "create", "find_predictor"),
    "mlscale.predictors.base": ("Predictor",),
    "mlscale.predictors.baselines": (
        "CoreBound",
        "EngineBound",
        "ExtraTrees",
        "MeanSurface",
        "MemoryBound",
        "Nearest",
        "NoScaling",
    ),
    "mlscale.predictors.bottleneck.estimator": ("Bottleneck",),
    "mlscale.predictors.wang_chu": ("MaxOverlap", "WangChu"),
    "mlscale.predictors.wu": ("Wu",),
    "mlscale.studies.study": ("study",),
    "mlscale.errors": ("InputError", "DataWarning"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> "Any":
    if name == "papers":
        return importlib.import_module("mlscale.papers")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'mlscale' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "papers"]
