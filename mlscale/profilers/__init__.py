"""Readers of profilers' exports: ncu, nvprof, rocprof, rocprofv3, CodeXL.

A file is recognised and read as rows (reader, values), each tool's reader makes launch records of
them, which are summed while the file streams by (launches); passes and traces are joined (joining),
the configuration is found (configuration), counters become Table II's features (mapping), and the
result is a tidy table or profiles (importing).
"""

from mlscale.profilers.importing import ImportedTable, append, import_exports, import_profile
from mlscale.profilers.mapping import obtainable_features
from mlscale.profilers.reader import TOOLS

__all__ = [
    "TOOLS",
    "ImportedTable",
    "append",
    "import_exports",
    "import_profile",
    "obtainable_features",
]
