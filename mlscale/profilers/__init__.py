"""Readers of profilers' exports: ncu, nvprof, rocprof, rocprofv3, CodeXL; traces of nsys, PyTorch.

`importing` is the way through: a file becomes a table (folder exports), a tool's reader makes
launches of its rows (folder tools, launch_batch), which are summed while the file streams by
(launches); passes and traces are joined (joining, passes, names), the configuration is found
(configuration, cycle_clock, counted_clock), counters become Table II's features (mapping,
kernel_features), and a table's rows come out (run_table), with warnings of what they lack
(left_out); they may be added to those of an earlier import (appending). Besides: monitors' logs
(folder sampled), kernel_tuner's files (kernel_tuner), and device files (new_device).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlscale.profilers.appending import append
    from mlscale.profilers.exports.layouts import COUNTING_TOOLS, TOOLS
    from mlscale.profilers.importing import ImportedTable, import_exports, import_profile
    from mlscale.profilers.mapping import obtainable_features, with_obtainable

__all__ = [
    "COUNTING_TOOLS",
    "TOOLS",
    "ImportedTable",
    "append",
    "import_exports",
    "import_profile",
    "obtainable_features",
    "with_obtainable",
]

_HOMES = {  # imported on first use: predicting from a table reads no export
    "COUNTING_TOOLS": "exports.layouts",
    "TOOLS": "exports.layouts",
    "ImportedTable": "importing",
    "append": "appending",
    "import_exports": "importing",
    "import_profile": "importing",
    "obtainable_features": "mapping",
    "with_obtainable": "mapping",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
