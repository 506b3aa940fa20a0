"""Logs of GPU monitors, sampled while a program runs: DCGM, nvidia-smi and AMD's.

Each tool's reader (dcgm, prometheus, nvidia_smi, rocm_smi, amd_smi) makes samples of a
file, which become a log for each GPU (log); a file is known by its header (formats); idle head and
tail are cut and the rest is averaged (busy), into a row of a profile table (importing). Board power
alone can be joined to another table (power), if the log can be of its GPU (same_gpu).
"""

from mlscale.profilers.sampled.formats import TOOLS, log_format
from mlscale.profilers.sampled.importing import (
    RunFacts,
    SampledTable,
    import_logs,
    logs_at_one_clock,
)
from mlscale.profilers.sampled.power import gpu_of_log, join_power

__all__ = [
    "TOOLS",
    "RunFacts",
    "SampledTable",
    "gpu_of_log",
    "import_logs",
    "join_power",
    "log_format",
    "logs_at_one_clock",
]
