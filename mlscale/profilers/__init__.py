"""Readers of profilers' exports: ncu, rocprof, rocprofv3; traces of nsys, PyTorch.

`importing` is the way through: a file becomes a table (folder exports), a tool's reader makes
launches of its rows (folder tools, launch_batch), which are summed while the file streams by
(launches); passes and traces are joined (joining, passes, names), the configuration is found
(configuration, cu_count, cycle_clock, counted_clock), counters become Table II's features (mapping,
kernel_features), and a table's rows come out (run_table), with warnings of what they lack
(left_out); they may be added to those of an earlier import (appending). Besides: monitors' logs
(folder sampled), and kernel_tuner's files (kernel_tuner).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlscale.profilers.importing import ImportedTable, import_exports, import_profile

__all__ = ["ImportedTable", "import_exports", "import_profile"]


def __getattr__(name: str) -> Any:
    """Import the readers on first use: predicting from a table needs none."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from mlscale.profilers import importing

    return getattr(importing, name)
