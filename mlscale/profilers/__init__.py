"""Readers of profilers' exports: ncu, nvprof, rocprof, rocprofv3, CodeXL; traces of nsys, PyTorch.

A file is recognised (layouts) and read as rows (reader, values), each tool's reader makes launch
records of them, which are summed while the file streams by (launches); passes and traces are joined
(joining), the configuration is found (configuration), counters become Table II's features
(mapping), and the result is a tidy table or profiles (importing).
"""

from mlscale.profilers.appending import append
from mlscale.profilers.importing import ImportedTable, import_exports, import_profile
from mlscale.profilers.layouts import COUNTING_TOOLS, TOOLS
from mlscale.profilers.mapping import obtainable_features

__all__ = [
    "COUNTING_TOOLS",
    "TOOLS",
    "ImportedTable",
    "append",
    "import_exports",
    "import_profile",
    "obtainable_features",
]
