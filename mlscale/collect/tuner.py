"""kernel_tuner, imported without torch.

It would import torch where that is installed, which takes seconds, for tensors as arguments; here
are none.
"""

import sys
from typing import Any, cast

_modules = cast("dict[str, Any]", sys.modules)
_torch = _modules.get("torch")
_modules["torch"] = None
try:
    from kernel_tuner import run_kernel, tune_kernel
    from kernel_tuner.observers import BenchmarkObserver
finally:
    del _modules["torch"]
    if _torch:
        _modules["torch"] = _torch

__all__ = ["BenchmarkObserver", "run_kernel", "tune_kernel"]
