"""Utilisation features: what a kernel uses of its device, from nvprof counters.

Counts are divided by time and by the device's peak; the profiler's own *_throughput columns are
never used, because they come from passes at other clocks. Rates per cycle are per compute unit.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.device import SECTOR_BYTES, Device
from mlscale.data.profiles import Profiles

# Counters whose product stands in for a counter that is not there.
_SUBSTITUTES = {
    "inst_executed": ("inst_per_warp", "warps"),
    "ipc": ("executed_ipc",),
    "sm_efficiency": ("sm_activity",),
}


class _CountedRun:
    """One run of each kernel: its counters, and what its base and device add."""

    def __init__(self, profiles: Profiles, device: Device) -> None:
        self.profiles, self.device = profiles, device
        self.seconds = profiles.time_ms / 1e3
        self.cycles = self.seconds * profiles.base.engine_mhz * 1e6 * profiles.base.cu_count

    def __getitem__(self, counter: str) -> Floats:
        """A counter; for a kernel that lacks it, what stands in for it."""
        values = self.profiles.optional_counter(counter)
        if counter in _SUBSTITUTES:
            names = _SUBSTITUTES[counter]
            product = np.prod([self.profiles.optional_counter(name) for name in names], axis=0)
            values = np.where(np.isnan(values), product, values)
        return values

    @property
    def dram_bytes(self) -> Floats:
        return SECTOR_BYTES * (self["dram_read_transactions"] + self["dram_write_transactions"])

    @property
    def l2_bytes(self) -> Floats:
        return SECTOR_BYTES * (self["l2_read_transactions"] + self["l2_write_transactions"])


@dataclass(frozen=True)
class Utilisation:
    """One feature: the counters that it is made of, and its formula on a run."""

    counters: tuple[str, ...]
    formula: Callable[[_CountedRun], Floats]

    def missing_counters(self, profiles: Profiles) -> list[str]:
        """The counters that the profile has not, nor what stands in for them."""
        return [
            counter
            for counter in self.counters
            if not profiles.has_counter(counter)
            and not all(map(profiles.has_counter, _SUBSTITUTES.get(counter, (counter,))))
        ]

    def compute(self, profiles: Profiles, device: Device) -> Floats:
        """The feature of every kernel, (K,); NaN where a counter is missing or a count is 0/0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.formula(_CountedRun(profiles, device))
        return np.where(np.isfinite(values), values, np.nan)


def _as_counted(counter: str) -> Utilisation:
    return Utilisation((counter,), lambda run: run[counter])


def _per_cycle(*counters: str, bytes_each: int = 1) -> Utilisation:
    """The sum of counters per cycle and CU, or the bytes that they stand for."""
    return Utilisation(
        counters,
        lambda run: bytes_each * np.sum([run[name] for name in counters], axis=0) / run.cycles,
    )


def _of_peak(counter: str, peak: str) -> Utilisation:
    """A counter per cycle and CU as a share of a peak, which is a field of Device."""
    return Utilisation(
        (counter,), lambda run: run[counter] / run.cycles / getattr(run.device, peak)
    )


def _log_stall(run: _CountedRun) -> Floats:
    """Resident warps per instruction in flight: how much latency is left to hide."""
    waves = run.device.max_waves_per_cu
    return np.asarray(np.log((waves * run["achieved_occupancy"] + 0.5) / (run["ipc"] + 0.05)))


def _write_share(run: _CountedRun) -> Floats:
    reads, writes = run["dram_read_transactions"], run["dram_write_transactions"]
    return np.asarray(writes / (reads + writes + 1))


def _l2_miss_ratio(run: _CountedRun) -> Floats:
    return np.clip((run["dram_read_transactions"] + 1) / (run["l2_read_transactions"] + 1), 0, 2)


_DRAM = ("dram_read_transactions", "dram_write_transactions")
_L2 = ("l2_read_transactions", "l2_write_transactions")

UTILISATIONS: dict[str, Utilisation] = {
    "dram_utilisation": Utilisation(
        _DRAM,
        lambda run: run.device.share_of_bandwidth(
            run.dram_bytes, run.seconds, run.profiles.base.memory_mhz
        ),
    ),
    "l2_bytes_per_cycle": _per_cycle(*_L2, bytes_each=SECTOR_BYTES),
    "texture_bytes_per_cycle": _per_cycle("tex_cache_transactions", bytes_each=SECTOR_BYTES),
    "shared_transactions_per_cycle": _per_cycle(
        "shared_load_transactions", "shared_store_transactions"
    ),
    "global_transactions_per_cycle": _per_cycle("gld_transactions", "gst_transactions"),
    "issue_utilisation": _of_peak("inst_executed", "schedulers_per_cu"),
    "ipc_utilisation": Utilisation(("ipc",), lambda run: run["ipc"] / run.device.schedulers_per_cu),
    "fp32_utilisation": _of_peak("inst_fp_32", "lanes_per_cu"),
    "integer_utilisation": _of_peak("inst_integer", "lanes_per_cu"),
    "special_function_utilisation": _of_peak(
        "flop_count_sp_special", "special_function_lanes_per_cu"
    ),
    "fp64_utilisation": _of_peak("inst_fp_64", "fp64_lanes_per_cu"),
    "occupancy": _as_counted("achieved_occupancy"),
    "log_eligible_warps": Utilisation(
        ("eligible_warps_per_cycle",), lambda run: np.log(run["eligible_warps_per_cycle"] + 0.1)
    ),
    "warp_efficiency": _as_counted("warp_execution_efficiency"),
    "cu_activity": _as_counted("sm_efficiency"),
    "log_stall": Utilisation(("achieved_occupancy", "ipc"), _log_stall),
    "log_dram_bytes_per_instruction": Utilisation(
        (*_DRAM, "inst_executed"), lambda run: np.log1p(run.dram_bytes / run["inst_executed"])
    ),
    "log_l2_bytes_per_instruction": Utilisation(
        (*_L2, "inst_executed"), lambda run: np.log1p(run.l2_bytes / run["inst_executed"])
    ),
    "texture_hit_rate": _as_counted("tex_cache_hit_rate"),
    "l2_miss_ratio": Utilisation((_DRAM[0], _L2[0]), _l2_miss_ratio),
    "dram_write_share": Utilisation(_DRAM, _write_share),
    "log_time_ms": Utilisation((), lambda run: np.log(run.profiles.time_ms)),
    "log_warps": Utilisation(("warps",), lambda run: np.log(run["warps"])),
}
