"""Counters and features for a reader: what they are in words, and their values with units."""

import math
from collections.abc import Callable

from mlscale.text import rounded

# Table II of Wu et al., HPCA 2015: by name what it is, and its unit.
_OF_INSTRUCTIONS = {
    "VALUInsts": "vector ALU instructions",
    "SALUInsts": "scalar ALU instructions",
    "VFetchInsts": "vector loads",
    "SFetchInsts": "scalar loads",
    "VWriteInsts": "vector stores",
    "LDSInsts": "shared-memory (LDS) instructions",
}
_TABLE_2 = {
    **{name: (f"{words}, of all instructions", "%") for name, words in _OF_INSTRUCTIONS.items()},
    "VALUUtilization": ("active lanes of a vector instruction", "%"),
    "VALUBusy": ("time in which vector ALU instructions run", "%"),
    "SALUBusy": ("time in which scalar ALU instructions run", "%"),
    "CacheHit": ("accesses that hit the L2 cache", "%"),
    "MemUnitBusy": ("time in which the memory unit is busy, waiting included", "%"),
    "MemUnitStalled": ("time in which the memory unit is stalled", "%"),
    "WriteUnitStalled": ("time in which the write unit is stalled", "%"),
    "LDSBankConflict": ("time in which shared memory is stalled by bank conflicts", "%"),
    "Occupancy": ("resident waves, of what a CU holds", "%"),
    "V_IPC": ("vector instructions per cycle and CU", ""),
    "MemTime": ("time that the DRAM traffic takes at least, of the whole", ""),
    "FetchPerLoadByte": ("load instructions per byte read", ""),
    "WritePerStoreByte": ("store instructions per byte written", ""),
    "NumWorkGroups": ("workgroups", ""),
    "ReadBandwidth": ("bytes read from DRAM per second", "B/s"),
    "WriteBandwidth": ("bytes written to DRAM per second", "B/s"),
}
# Other names say their unit themselves; the first part that a name contains counts.
_UNITS = {
    "bytes_per_instruction": "",
    "bytes_per_cycle": "B",
    "bytes_per_workgroup": "B",
    "bytes.sum.per_second": "B/s",
    "cycles_elapsed.avg.per_second": "Hz",
    "pct_of_peak": "%",
    "_pct": "%",
    ".pct": "%",
    "latency_ns": "ns",
    "_power_w": "W",
    "_bytes": "B",
}
_PREFIXES = ("", "k", "M", "G", "T", "P")
_WITH_PREFIX = frozenset({"B", "B/s", "Hz"})


def _of_log(value: float) -> float:
    return 100 * math.exp(value)


def _of_root(value: float) -> float:
    return 100 * value**2


def _of_share(value: float) -> float:
    return 100 * value


# The inputs that `mlscale.counters.kernel_use.inputs` computes: by name what undoes that it is a
# logarithm, a root or a share, and the unit then.
INPUTS: dict[str, tuple[Callable[[float], float], str]] = {
    "memory share": (_of_log, "%"),
    "busiest core unit": (_of_log, "%"),
    "issue use": (_of_root, "%"),
    "l2 use": (_of_root, "%"),
    "texture use": (_of_root, "%"),
    "shared use": (_of_root, "%"),
    "fp64 use": (_of_root, "%"),
    "occupancy": (_of_share, "%"),
    "eligible waves": (lambda value: math.exp(value) - 0.1, ""),
    "stall": (math.exp, ""),
    "L2 miss ratio": (_of_share, "%"),
    "write share": (_of_share, "%"),
    "lane efficiency": (_of_share, "%"),
}


def meaning(name: str) -> str | None:
    """What a counter or feature is, in words; None where its name has to do."""
    return _TABLE_2[name][0] if name in _TABLE_2 else None


def readable(name: str, value: float) -> str:
    """The value of a counter or feature with its unit, as a reader wants it.

    Example:
        >>> readable("ReadBandwidth", 24933010000.0), readable("inst_valu", 33280.0)
        ('24.93 GB/s', '33 280')
    """
    if math.isnan(value):
        return "missing"
    if name in INPUTS:
        undo, unit = INPUTS[name]
        value = undo(value)
    else:
        unit = _unit(name)
    if unit in _WITH_PREFIX:
        step = min(int(math.log10(max(abs(value), 1)) // 3), len(_PREFIXES) - 1)
        value, unit = value / 1000**step, _PREFIXES[step] + unit
    return f"{rounded(value)} {unit}".rstrip()


def _unit(name: str) -> str:
    if name in _TABLE_2:
        return _TABLE_2[name][1]
    return next((unit for part, unit in _UNITS.items() if part in name), "")
