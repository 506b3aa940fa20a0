"""mlscale: find the GPU clock that saves energy, without trying them all.

The public API, imported on first use: `import mlscale` itself imports nothing heavy.

    import mlscale

    answer = mlscale.advise("ncu.csv", power=500, max_slowdown=5)
    answer.best.engine_mhz, answer.commands.set
    frame = mlscale.predict("ncu.csv", at={"engine": [1200, 1400]}).frame

The models of the literature are functions of `mlscale.papers`.
"""

import importlib

TYPE_CHECKING = False  # for type checkers it is true; typing itself takes long to load
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

_MODULES = {
    "mlscale.api": (
        "Answer",
        "advise",
        "devices",
        "load",
        "measure",
        "predict",
        "save",
    ),
    "mlscale.data.grid": ("ConfigGrid", "HardwareConfig"),
    "mlscale.data.measurements": ("Measurements", "read"),
    "mlscale.data.profiles": ("MeasuredPoint", "Profiles", "read_profiles"),
    "mlscale.data.surfaces": ("Surfaces",),
    "mlscale.model.model": ("Model", "train"),
    "mlscale.model.predictions": ("Predictions",),
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
    "mlscale.readers.reading": ("import_profile",),
    "mlscale.studies.study": ("cross_validate",),
    "mlscale.tuning": ("tune",),
    "mlscale.errors": ("InputError", "DataWarning"),
}
_INSTEAD = {
    "report": "mlscale.advise(run).save('page.html')",
    "study": "mlscale.cross_validate(predictors, tables), or study of mlscale.studies.study",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> "Any":
    if name == "papers":
        return importlib.import_module("mlscale.papers")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    instead = f"; write {_INSTEAD[name]}" if name in _INSTEAD else ""
    raise AttributeError(f"module 'mlscale' has no attribute '{name}'{instead}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "papers"]
