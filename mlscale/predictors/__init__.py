"""Predictors: profile -> surface. One interface, many predictors, known by name or class.

- The interface: `base`. What several use: `features`, `intervals` (also how far anything can be
  off near the base), `conditioning` (on further measured points), `state` (in a model file).
- The predictors: `baselines` (nearest kernels and trees too), `wang_chu`, `wu` (`wu_clusters`),
  `runs` (`runs_law`, `runs_intervals`; `server_law`: latencies of an LLM server), and the folder
  `bottleneck`.
"""

import copy
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.counters.kernel_use import kernel_use
from mlscale.data.grid import Base
from mlscale.data.measurements import Measurements
from mlscale.data.table import OF_LAUNCH
from mlscale.errors import InputError, warn
from mlscale.parameters import parameter
from mlscale.predictors.base import Predictor
from mlscale.predictors.features import training_profiles

__all__ = [
    "PREDICTORS",
    "Predictor",
    "applying",
    "create",
    "default_predictor",
    "find_predictor",
    "why_wu",
]

_HOMES = {
    "no-scaling": "baselines:NoScaling",
    "engine-bound": "baselines:EngineBound",
    "core-bound": "baselines:CoreBound",
    "memory-bound": "baselines:MemoryBound",
    "mean-surface": "baselines:MeanSurface",
    "nearest": "baselines:Nearest",
    "extra-trees": "baselines:ExtraTrees",
    "wu": "wu:Wu",
    "wang-chu": "wang_chu:WangChu",
    "max-overlap": "wang_chu:MaxOverlap",
    "bottleneck": "bottleneck.estimator:Bottleneck",
    "runs": "runs:Runs",
}


class _Predictors(Mapping[str, type[Predictor]]):
    """The built-in predictors by name, each imported when it is first asked for."""

    def __getitem__(self, name: str) -> type[Predictor]:
        module, _, kind = _HOMES[name].partition(":")
        predictor: type[Predictor] = getattr(import_module(f"{__name__}.{module}"), kind)
        return predictor

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


PREDICTORS: Mapping[str, type[Predictor]] = _Predictors()
DEFAULT = "default"  # stands for the predictor that suits a table


def default_predictor(measurements: Measurements, base: Base | None = None) -> str:
    """Return the name of the predictor that suits a table best, profiled at the base.

    `runs` for sampled profiles over the engine clock; `mean-surface` where a table has no
    counters, with a warning; `bottleneck` where it knows the GPU's peaks and the counters at the
    base, else `wu` (decision 0008). Raises InputError where the base is not on the grid, or where
    kernels have counters, but not there.
    """
    if applying(("runs",), measurements):
        return "runs"
    base = measurements.base(base)
    is_counter = [name not in OF_LAUNCH for name in measurements.counter_names]
    if np.isnan(measurements.counters[..., is_counter]).all():
        warn(
            "P08",
            f"the table of '{measurements.device}' has no counters, so the default is "
            "'mean-surface', which predicts the same mean for all kernels",
        )
        return "mean-surface"
    training_profiles(measurements, base)
    return "wu" if why_wu(measurements, base) else "bottleneck"


def why_wu(measurements: Measurements, base: Base) -> str | None:
    """What `bottleneck`, which gives intervals, lacks of table, GPU or counters; None: nothing."""
    try:
        measurements.quantity("time")
        kernel_use(measurements.profiles(base))
    except InputError as error:
        return f"not 'bottleneck', which gives intervals: {error}"
    if axis := measurements.metadata.get("cu_axis"):
        return f"not 'bottleneck', which gives intervals: '{axis}' stands for compute units"
    return None


def applying(names: Iterable[str], measurements: Measurements) -> list[str]:
    """Return those of the named predictors of mlscale that can be tried on these measurements."""
    return [name for name in names if PREDICTORS[name].applies_to(measurements)]


def or_default(
    predictor: str | type[Predictor] | Predictor, measurements: Measurements, base: Base
) -> str | type[Predictor] | Predictor:
    """Return what stands for a predictor; for 'default' what `default_predictor` names."""
    is_default = isinstance(predictor, str) and predictor == DEFAULT
    return default_predictor(measurements, base) if is_default else predictor


def find_predictor(name: str) -> type[Predictor]:
    """Return a predictor's class by name.

    name: of a built-in predictor, or `package.module:Class`, which imports, and so runs, code of
    the user's choice; modules in the current directory are found too. Raises InputError where there
    is no such predictor.
    """
    if name in PREDICTORS:
        return PREDICTORS[name]
    if ":" in name:
        return _checked(_import_class(name), name)
    raise InputError(
        f"there is no predictor '{name}'; one of {', '.join(PREDICTORS)}, or package.module:Class"
    )


def create(predictor: str | type[Predictor] | Predictor, **parameters: Any) -> Predictor:
    """Make a new predictor that is not fitted.

    predictor: a name as `find_predictor` takes it, a class, or an object, whose hyper-parameters
    are copied. parameters: hyper-parameters to set. Raises InputError on a predictor that does
    not exist, and on a hyper-parameter that it does not have.
    """
    if isinstance(predictor, Predictor):
        new = type(predictor)(**copy.deepcopy(predictor.get_params()))
    elif isinstance(predictor, str):
        new = find_predictor(predictor)()
    else:
        new = _checked(predictor, getattr(predictor, "__qualname__", repr(predictor)))()
    return new.set_params(**parameters)


def _import_class(name: str) -> Any:
    """Return what package.module:Class names. Raises InputError where it is not there."""
    module, _, path = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        value: Any = import_module(module)
    except Exception as error:  # whatever the user's module raises
        raise InputError(
            f"module '{module}' of {parameter('predictor')} cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(value, part):
            raise InputError(f"there is no predictor '{name}': {module} has no '{path}'")
        value = getattr(value, part)
    return value


def _checked(value: Any, name: str) -> type[Predictor]:
    """Return the class if it is a predictor with all methods; raise InputError if not."""
    if not (isinstance(value, type) and issubclass(value, Predictor)):
        raise InputError(f"'{name}' is not a predictor: it is not a subclass of mlscale.Predictor")
    lacking = ", ".join(sorted(value.__abstractmethods__))
    if lacking:
        raise InputError(f"the predictor '{name}' lacks the methods {lacking}")
    return value
