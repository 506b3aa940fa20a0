"""Where a kernel stands between its GPU's peaks: DRAM bandwidth, and the busiest unit of the core.

A kernel that reaches 60 % of neither peak waits for latency, as Nsight Compute says of it too;
shares within 10 points of each other are called balanced, which is a convention of ours.

`readable` shows a reader the inputs that are computed of counters, with units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.kernel_use import device_with_peaks, use_and_sources
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.text import rounded

LEAST_BOUND, BALANCED = 0.6, 0.1
_UNITS = {
    "issue": "issue",
    "l2": "L2 bandwidth",
    "texture": "L1 bandwidth",
    "shared": "shared-memory accesses",
    "fp64": "FP64 throughput",
}
# Of AMD the texture unit counts as busy while it waits for memory, which is no use of the core.
_WAITS_TOO = "MemUnitBusy"


@dataclass(frozen=True)
class RooflinePlace:
    """Shares of peak, 0 to 1, NaN if the counters do not show it.

    dram: of the DRAM bandwidth; is_upper_bound: whether it is at most that. core: the largest
    share of a unit that runs at the engine clock; unit: its name.
    """

    dram: float
    core: float
    unit: str
    is_upper_bound: bool = False

    @property
    def bound(self) -> str | None:
        """'memory-bound', 'core-bound', 'balanced' or 'latency-bound'; None if unknown."""
        if math.isnan(self.dram) or math.isnan(self.core):
            return None
        if max(self.dram, self.core) < LEAST_BOUND:
            return "latency-bound"
        if abs(self.dram - self.core) < BALANCED:
            return "balanced"
        return "memory-bound" if self.dram > self.core else "core-bound"

    def __str__(self) -> str:
        """'memory-bound: 84 % of peak DRAM bandwidth, 12 % of peak issue'."""
        at_most = "at most " if self.is_upper_bound else ""
        shares = [(self.dram, at_most, "DRAM bandwidth"), (self.core, "", self.unit)]
        texts = [
            f"{prefix}{100 * share:.0f} % of peak {unit}"
            for share, prefix, unit in sorted(shares, key=lambda s: -s[0])
            if not math.isnan(share)
        ]
        return (f"{self.bound}: " if self.bound else "") + (", ".join(texts) or "not known")


def roofline(profiles: Profiles) -> tuple[RooflinePlace, ...]:
    """The place of every kernel; all unknown on a GPU whose peaks are unknown.

    Example:
        >>> str(RooflinePlace(dram=0.84, core=0.12, unit="issue"))
        'memory-bound: 84 % of peak DRAM bandwidth, 12 % of peak issue'
    """
    try:
        use, sources = use_and_sources(profiles)
    except InputError:
        return (RooflinePlace(math.nan, math.nan, "core throughput"),) * len(profiles.kernels)
    units = _unit_shares(profiles) | {
        name: getattr(use, unit) for unit, name in _UNITS.items() if _WAITS_TOO not in sources[unit]
    }
    names, shares = list(units), np.array(list(units.values()))
    busiest = np.where(np.isnan(shares), -1.0, shares).argmax(axis=0)
    is_upper_bound = any("upper bound" in source for source in sources["memory"])
    return tuple(
        RooflinePlace(float(dram), float(shares[unit, k]), names[unit], is_upper_bound)
        for k, (dram, unit) in enumerate(zip(use.memory, busiest, strict=True))
    )


def _unit_shares(profiles: Profiles) -> dict[str, Floats]:
    """The shares of units of the core that a profiler computed itself, by their names, (K,)."""
    is_amd = device_with_peaks(profiles.device).vendor == "AMD"
    core = "vector ALU cycles" if is_amd else "compute (SM) throughput"
    columns = {core: "core_utilisation", "tensor throughput": "tensor_utilisation"}
    return {unit: profiles.optional_counter(column) for unit, column in columns.items()}


def _percent_of_log(value: float) -> float:
    return 100 * math.exp(value)


def _percent_of_root(value: float) -> float:
    return 100 * value**2


def _percent(value: float) -> float:
    return 100 * value


# The inputs that `mlscale.counters.kernel_use.inputs` computes: by name what undoes that it is a
# logarithm, a root or a share, and the unit then.
INPUTS: dict[str, tuple[Callable[[float], float], str]] = {
    "memory share": (_percent_of_log, "%"),
    "busiest core unit": (_percent_of_log, "%"),
    "issue use": (_percent_of_root, "%"),
    "l2 use": (_percent_of_root, "%"),
    "texture use": (_percent_of_root, "%"),
    "shared use": (_percent_of_root, "%"),
    "fp64 use": (_percent_of_root, "%"),
    "occupancy": (_percent, "%"),
    "eligible waves": (lambda value: math.exp(value) - 0.1, ""),
    "stall": (math.exp, ""),
    "L2 miss ratio": (_percent, "%"),
    "write share": (_percent, "%"),
    "lane efficiency": (_percent, "%"),
}


def readable(name: str, value: float) -> str:
    """The value of an input with its unit, for a reader.

    Example:
        >>> readable("occupancy", 0.5), readable("issue use", 0.5)
        ('50 %', '25 %')
    """
    undo, unit = INPUTS.get(name, (float, ""))
    return f"{rounded(undo(value))} {unit}".rstrip()
