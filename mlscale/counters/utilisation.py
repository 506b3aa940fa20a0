"""Utilisation features: what a kernel uses of its device, from nvprof counters.

Counts are divided by time and by the device's peak; the profiler's own *_throughput columns are
never used, because they come from passes at other clocks. Rates per cycle are per compute unit.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.devices import SECTOR_BYTES, Device
from mlscale.data.profiles import Profiles

# Each quantity and the counters that give it: the first alternative that a profile has whole.
_ALTERNATIVES: dict[str, tuple[tuple[str, ...], ...]] = {
    "dram_reads": (("dram_read_transactions",),),
    "dram_writes": (("dram_write_transactions",),),
    "l2_reads": (("l2_read_transactions",),),
    "l2_writes": (("l2_write_transactions",),),
    "texture": (("tex_cache_transactions",),),
    "shared_loads": (("shared_load_transactions",),),
    "shared_stores": (("shared_store_transactions",),),
    "global_loads": (("gld_transactions",),),
    "global_stores": (("gst_transactions",),),
    "warps": (("warps",),),
    "instructions": (("inst_executed",), ("inst_per_warp", "warps")),
    "fp32": (("inst_fp_32",),),
    "integer": (("inst_integer",),),
    "special": (("flop_count_sp_special",),),
    "fp64": (("inst_fp_64",),),
    "ipc": (("ipc",), ("executed_ipc",)),
    "occupancy": (("achieved_occupancy",),),
    "eligible_warps": (("eligible_warps_per_cycle",),),
    "warp_efficiency": (("warp_execution_efficiency",),),
    "activity": (("sm_efficiency",), ("sm_activity",)),
    "texture_hits": (("tex_cache_hit_rate",),),
}


def dram_utilisation(
    dram_bytes: Floats, seconds: Floats | float, profiles: Profiles, device: Device
) -> Floats:
    """DRAM bytes as a share of what passes in that time at the base's memory clock, (K,)."""
    peak_gb_per_s = device.peak_bandwidth_gb_per_s(profiles.base.memory_mhz)
    return np.asarray(dram_bytes / (peak_gb_per_s * 1e9 * seconds))


class _CountedRun:
    """One run of each kernel: counters by quantity, and what its base and device add."""

    def __init__(self, profiles: Profiles, device: Device) -> None:
        self.profiles, self.device = profiles, device
        self.time_ms = profiles.time_ms
        self.seconds = profiles.time_ms / 1e3
        self.cycles = self.seconds * profiles.base.engine_mhz * 1e6 * profiles.base.cu_count

    def __getitem__(self, quantity: str) -> Floats:
        """The first alternative that is there, and for a kernel that lacks it the next one."""
        values = np.full(len(self.profiles.kernels), np.nan)
        for names in _ALTERNATIVES[quantity]:
            counters = [self.profiles.optional_counter(name) for name in names]
            values = np.where(np.isnan(values), np.prod(counters, axis=0), values)
        return values

    @property
    def dram_bytes(self) -> Floats:
        return SECTOR_BYTES * (self["dram_reads"] + self["dram_writes"])

    @property
    def l2_bytes(self) -> Floats:
        return SECTOR_BYTES * (self["l2_reads"] + self["l2_writes"])


@dataclass(frozen=True)
class Utilisation:
    """One feature: the quantities that it is made of, and its formula on a run."""

    quantities: tuple[str, ...]
    formula: Callable[[_CountedRun], Floats]

    def missing_counters(self, profiles: Profiles) -> list[str]:
        """The counters that are not in the profile, by the first name each is known by."""
        return [
            _ALTERNATIVES[quantity][0][0]
            for quantity in self.quantities
            if not any(all(map(profiles.has_counter, n)) for n in _ALTERNATIVES[quantity])
        ]

    def compute(self, profiles: Profiles, device: Device) -> Floats:
        """The feature of every kernel, (K,); NaN where a counter is missing or a count is 0/0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.formula(_CountedRun(profiles, device))
        return np.where(np.isfinite(values), values, np.nan)


def _log_stall(run: _CountedRun) -> Floats:
    """Resident warps per instruction in flight: how much latency is left to hide."""
    waves = run.device.max_waves_per_cu
    return np.asarray(np.log((waves * run["occupancy"] + 0.5) / (run["ipc"] + 0.05)))


def _share_written(run: _CountedRun) -> Floats:
    return np.asarray(run["dram_writes"] / (run["dram_reads"] + run["dram_writes"] + 1))


def _l2_miss_ratio(run: _CountedRun) -> Floats:
    return np.clip((run["dram_reads"] + 1) / (run["l2_reads"] + 1), 0, 2)


_DRAM = ("dram_reads", "dram_writes")
_L2 = ("l2_reads", "l2_writes")

UTILISATIONS: dict[str, Utilisation] = {
    "dram_utilisation": Utilisation(
        _DRAM, lambda r: dram_utilisation(r.dram_bytes, r.seconds, r.profiles, r.device)
    ),
    "l2_bytes_per_cycle": Utilisation(_L2, lambda r: r.l2_bytes / r.cycles),
    "texture_bytes_per_cycle": Utilisation(
        ("texture",), lambda r: SECTOR_BYTES * r["texture"] / r.cycles
    ),
    "shared_transactions_per_cycle": Utilisation(
        ("shared_loads", "shared_stores"),
        lambda r: (r["shared_loads"] + r["shared_stores"]) / r.cycles,
    ),
    "global_transactions_per_cycle": Utilisation(
        ("global_loads", "global_stores"),
        lambda r: (r["global_loads"] + r["global_stores"]) / r.cycles,
    ),
    "issue_utilisation": Utilisation(
        ("instructions",), lambda r: r["instructions"] / r.cycles / r.device.schedulers_per_cu
    ),
    "ipc_utilisation": Utilisation(("ipc",), lambda r: r["ipc"] / r.device.schedulers_per_cu),
    "fp32_utilisation": Utilisation(
        ("fp32",), lambda r: r["fp32"] / r.cycles / r.device.lanes_per_cu
    ),
    "integer_utilisation": Utilisation(
        ("integer",), lambda r: r["integer"] / r.cycles / r.device.lanes_per_cu
    ),
    "special_function_utilisation": Utilisation(
        ("special",), lambda r: r["special"] / r.cycles / r.device.special_function_lanes_per_cu
    ),
    "fp64_utilisation": Utilisation(
        ("fp64",), lambda r: r["fp64"] / r.cycles / r.device.fp64_lanes_per_cu
    ),
    "occupancy": Utilisation(("occupancy",), lambda r: r["occupancy"]),
    "log_eligible_warps": Utilisation(
        ("eligible_warps",), lambda r: np.log(r["eligible_warps"] + 0.1)
    ),
    "warp_efficiency": Utilisation(("warp_efficiency",), lambda r: r["warp_efficiency"]),
    "cu_activity": Utilisation(("activity",), lambda r: r["activity"]),
    "log_stall": Utilisation(("occupancy", "ipc"), _log_stall),
    "log_dram_bytes_per_instruction": Utilisation(
        (*_DRAM, "instructions"), lambda r: np.log1p(r.dram_bytes / r["instructions"])
    ),
    "log_l2_bytes_per_instruction": Utilisation(
        (*_L2, "instructions"), lambda r: np.log1p(r.l2_bytes / r["instructions"])
    ),
    "texture_hit_rate": Utilisation(("texture_hits",), lambda r: r["texture_hits"]),
    "l2_miss_ratio": Utilisation(("dram_reads", "l2_reads"), _l2_miss_ratio),
    "dram_write_share": Utilisation(_DRAM, _share_written),
    "log_time_ms": Utilisation((), lambda r: np.log(r.time_ms)),
    "log_warps": Utilisation(("warps",), lambda r: np.log(r["warps"])),
}
