"""Readers of profilers' exports: ncu, nvprof, rocprof, rocprofv3, CodeXL.

files → lines (decoded, bounded) → layouts (which tool) → one reader per tool → samples (launches,
summed while streaming) → joining (passes, traces) → mapping (Table II) → a tidy table.
"""

from mlscale.profilers.importing import Imported, import_exports
from mlscale.profilers.layouts import TOOLS
from mlscale.profilers.mapping import obtainable_features

__all__ = ["TOOLS", "Imported", "import_exports", "obtainable_features"]
