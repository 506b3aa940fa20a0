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

__version__ = "0.3.0"

_MODULES = {
    "mlscale.api": ("Answer", "advise", "devices", "measure", "predict", "save"),
    "mlscale.data.grid": ("ConfigGrid", "HardwareConfig"),
    "mlscale.data.measurements": ("Measurements", "read"),
    "mlscale.data.profiles": ("MeasuredPoint", "Profiles", "read_profiles"),
    "mlscale.data.surfaces": ("Surfaces",),
    "mlscale.model.model": ("Model", "load", "train"),
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
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> "Any":
    if name in ("papers", "sklearn"):
        return importlib.import_module(f"mlscale.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    from mlscale.guesses import no_such

    raise AttributeError(no_such("mlscale", name, __all__))


def __dir__() -> list[str]:
    return [*__all__, "__version__", "papers"]
