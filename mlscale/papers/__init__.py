"""The models of four papers as pure functions: `mlscale.papers.wang_chu` and its neighbours.

- `wang_chu`: time under core and memory clocks (Wang and Chu, 2018), and this project's rule of its
  parts; `wang_chu_inputs` has its GPUs, and its inputs from counters;
- `volkov`: throughput of a CU (Volkov's survey, 2018);
- `nagasaka`: power from counters per second (Nagasaka et al., 2010).

Beside them stand the parameters of your own GPU, from micro-benchmarks (`gpu_file`), and what
checks inputs (`arguments`). The scripts of `reproduction/` compute and draw the papers' figures by
them.

The fourth, Wu et al. (2015), learns: it is the predictor `mlscale.Wu`. Modules are imported when
they are first used. Functions take numbers or arrays, numbers give numbers, and what cannot be is
refused with an InputError that names it. docs/papers/equations.md has every equation.
"""

import importlib
from types import ModuleType

__all__ = ("nagasaka", "volkov", "wang_chu", "wang_chu_inputs")


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"mlscale.papers.{name}")
    raise AttributeError(f"module 'mlscale.papers' has no attribute '{name}'")


def __dir__() -> tuple[str, ...]:
    return __all__
