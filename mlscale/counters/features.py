"""Features: what a predictor computes from the counters of one run at the base.

Four kinds. `raw`: the counters as they are. `rates`: counts per instruction and log counts per
millisecond. `utilisation`: fractions of the device's peaks. `table2`: the 22 of Wu et al., HPCA
2015, Table II. With `+power` behind it, such as `utilisation+power`, a kind has the power at the
base beside it. Nothing is fitted here: a value depends on its own kernel and the device alone.

Utilisation features say what a kernel uses of its device, from nvprof counters. Counts are divided
by time and by the device's peak; the profiler's own *_throughput columns are never used, because
they come from passes at other clocks. Rates per cycle are per compute unit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.devices import SECTOR_BYTES, Device, device_keys
from mlscale.data.profiles import Profiles
from mlscale.data.table import NO_TIMES
from mlscale.errors import InputError
from mlscale.parameters import parameter

FeatureKind = Literal["raw", "rates", "utilisation", "table2"]

FEATURE_KINDS: tuple[str, ...] = get_args(FeatureKind)
_COUNTERS_THEMSELVES = ("raw", "table2")
WITH_POWER = "+power"
BASE_POWER, LOG_TIME = "base_power_w", "log_time_ms"

TABLE_2 = (
    *("VALUInsts", "SALUInsts", "VFetchInsts", "SFetchInsts", "VWriteInsts", "LDSInsts"),
    *("VALUUtilization", "VALUBusy", "SALUBusy", "CacheHit"),
    *("MemUnitBusy", "MemUnitStalled", "WriteUnitStalled", "LDSBankConflict", "Occupancy"),
    *("V_IPC", "MemTime", "FetchPerLoadByte", "WritePerStoreByte", "NumWorkGroups"),
    *("ReadBandwidth", "WriteBandwidth"),
)
_INSTRUCTIONS = ("inst_executed", "inst_issued")


@dataclass(frozen=True, eq=False)
class Features:
    """Values (K, F) of the named features; NaN if a kernel's counters do not give one."""

    names: tuple[str, ...]
    values: Floats


def compute_features(
    kind: str, profiles: Profiles, device: Device | None, names: tuple[str, ...] | None = None
) -> Features:
    """The features of one kind; all that the counters give, or exactly those named.

    A named one is NaN if its counters are missing. Raises InputError if the counters give no
    feature of the kind at all, and none is named.
    """
    if kind in _COUNTERS_THEMSELVES and names is not None:
        places = dict(zip(profiles.counter_names, range(len(profiles.counter_names)), strict=True))
        if places.keys() >= set(names):
            used = [places[name] for name in names]
            return Features(names, profiles.counters.take(used, axis=1))
    columns = _columns(kind.removesuffix(WITH_POWER), profiles, device)
    if kind.endswith(WITH_POWER):
        columns |= _base_power(profiles, is_needed=names is None)
    if names is None:
        if not columns:
            present = ", ".join(profiles.counter_names) or (
                "none: profile with counters, or choose a predictor without features, mean-surface"
            )
            raise InputError(f"the counters give no '{kind}' features; available: {present}")
        names = tuple(columns)
    missing = np.full(len(profiles.kernels), np.nan)
    values = np.array([columns.get(name, missing) for name in names])
    return Features(names, np.ascontiguousarray(values.T))


def _columns(kind: str, profiles: Profiles, device: Device | None) -> dict[str, Floats]:
    match kind:
        case "raw" | "table2":
            given = dict(zip(profiles.counter_names, profiles.counters.T, strict=True))
            names = TABLE_2 if kind == "table2" else profiles.counter_names
            return {name: given[name] for name in names if name in given}
        case "rates":
            return _rates(profiles)
        case "utilisation":
            return _utilisations(profiles, device)
    raise InputError(f"there are no features '{kind}'; one of {', '.join(FEATURE_KINDS)}")


def _base_power(profiles: Profiles, is_needed: bool) -> dict[str, Floats]:
    if profiles.power_w is not None:
        return {BASE_POWER: profiles.power_w}
    if is_needed:
        raise InputError(f"features with '{WITH_POWER}' need the column 'power_w'")
    return {}


def kinds_for(counter_names: tuple[str, ...], device: str) -> tuple[str, ...]:
    """The kinds of features that a table's counters and device give, the best first."""
    is_given = {
        "table2": len(set(TABLE_2) & set(counter_names)) >= len(TABLE_2) // 2,
        "utilisation": "dram_read_transactions" in counter_names and device in device_keys(),
        "rates": bool(set(_INSTRUCTIONS) & set(counter_names)),
        "raw": True,
    }
    return tuple(kind for kind, is_kind_given in is_given.items() if is_kind_given)


def default_kind(counter_names: tuple[str, ...], device: str) -> str:
    """table2 for AMD's names, utilisation for nvprof's on a known device, else raw."""
    best = kinds_for(counter_names, device)[0]
    return "raw" if best == "rates" else best


def is_count(name: str) -> bool:
    """Whether an nvprof counter counts events, and so grows with the kernel's work."""
    if name.endswith(
        ("_per_request", "_rate", "_throughput", "per_warp", "_per_cycle", "_overhead")
    ):
        return False
    is_event = name.startswith(("inst_", "flop_count")) or name.endswith("_executed")
    return is_event or "_transactions" in name or name in ("warps", "issue_slots")


def _rates(profiles: Profiles) -> dict[str, Floats]:
    """Counts per instruction and log counts per millisecond; other counters as they are."""
    counts = [name for name in profiles.counter_names if is_count(name)]
    columns = {n: profiles.counter(n) for n in profiles.counter_names if n not in counts}
    instructions = [profiles.counter(n) for n in _INSTRUCTIONS if profiles.has_counter(n)]
    for name in counts:
        count = profiles.counter(name)
        if instructions and name != "inst_executed":
            executed = np.where(instructions[0] > 0, instructions[0], np.nan)
            columns[f"{name}_per_instruction"] = count / executed
        columns[f"log_{name}_per_ms"] = np.log1p(count / profiles.time_ms)
    return columns


def _utilisations(profiles: Profiles, device: Device | None) -> dict[str, Floats]:
    if device is None:
        raise InputError(
            f"utilisation features need the peaks of '{profiles.device}', which is not in the "
            f"device table; use {parameter('features', 'raw')} or rates"
        )
    utilisations = {n: u for n, u in UTILISATIONS.items() if not u.missing_counters(profiles)}
    if not any(utilisation.counters for utilisation in utilisations.values()):
        return {}
    if profiles.metadata.get(NO_TIMES) and (profiles.time_ms == 1).all():
        del utilisations[LOG_TIME]
    return {name: u.compute(profiles, device) for name, u in utilisations.items()}


# Counters whose product replaces a counter that is not there.
_SUBSTITUTES = {
    "inst_executed": ("inst_per_warp", "warps"),
    "ipc": ("executed_ipc",),
    "sm_efficiency": ("sm_activity",),
}


class _Counts:
    def __init__(self, profiles: Profiles, device: Device) -> None:
        self.profiles, self.device = profiles, device
        self.seconds = profiles.time_ms / 1e3
        self.cycles = self.seconds * profiles.base.engine_mhz * 1e6 * profiles.base.cu_count

    def __getitem__(self, counter: str) -> Floats:
        """A counter; for a kernel that lacks it, what is used in its place."""
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
    """One feature: the counters that it is made of, and its formula on a c."""

    counters: tuple[str, ...]
    formula: Callable[[_Counts], Floats]

    def missing_counters(self, profiles: Profiles) -> list[str]:
        """The counters that are missing from the profile, with no substitute either."""
        return [
            counter
            for counter in self.counters
            if not profiles.has_counter(counter)
            and not all(map(profiles.has_counter, _SUBSTITUTES.get(counter, (counter,))))
        ]

    def compute(self, profiles: Profiles, device: Device) -> Floats:
        """The feature of every kernel, (K,); NaN where a counter is missing or a count is 0/0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.formula(_Counts(profiles, device))
        return np.where(np.isfinite(values), values, np.nan)


def _as_counted(counter: str) -> Utilisation:
    return Utilisation((counter,), lambda c: c[counter])


def _per_cycle(*counters: str, bytes_each: int = 1) -> Utilisation:
    """The sum of counters per cycle and CU, or the bytes that they stand for."""
    return Utilisation(
        counters, lambda c: bytes_each * np.sum([c[name] for name in counters], axis=0) / c.cycles
    )


def _share_of_peak(counter: str, peak: str) -> Utilisation:
    """A counter per cycle and CU as a share of a peak, which is a field of Device."""
    return Utilisation((counter,), lambda c: c[counter] / c.cycles / getattr(c.device, peak))


def _log_stall(c: _Counts) -> Floats:
    """Resident warps per instruction in flight: how much latency is left to hide."""
    waves = c.device.max_waves_per_cu
    return np.asarray(np.log((waves * c["achieved_occupancy"] + 0.5) / (c["ipc"] + 0.05)))


def _write_share(c: _Counts) -> Floats:
    reads, writes = c["dram_read_transactions"], c["dram_write_transactions"]
    return np.asarray(writes / (reads + writes + 1))


def _l2_miss_ratio(c: _Counts) -> Floats:
    return np.clip((c["dram_read_transactions"] + 1) / (c["l2_read_transactions"] + 1), 0, 2)


_DRAM = ("dram_read_transactions", "dram_write_transactions")
_L2 = ("l2_read_transactions", "l2_write_transactions")

UTILISATIONS: dict[str, Utilisation] = {
    "dram_utilisation": Utilisation(
        _DRAM,
        lambda c: c.device.share_of_bandwidth(c.dram_bytes, c.seconds, c.profiles.base.memory_mhz),
    ),
    "l2_bytes_per_cycle": _per_cycle(*_L2, bytes_each=SECTOR_BYTES),
    "texture_bytes_per_cycle": _per_cycle("tex_cache_transactions", bytes_each=SECTOR_BYTES),
    "shared_transactions_per_cycle": _per_cycle(
        "shared_load_transactions", "shared_store_transactions"
    ),
    "global_transactions_per_cycle": _per_cycle("gld_transactions", "gst_transactions"),
    "issue_utilisation": _share_of_peak("inst_executed", "schedulers_per_cu"),
    "ipc_utilisation": Utilisation(("ipc",), lambda c: c["ipc"] / c.device.schedulers_per_cu),
    "fp32_utilisation": _share_of_peak("inst_fp_32", "lanes_per_cu"),
    "integer_utilisation": _share_of_peak("inst_integer", "lanes_per_cu"),
    "special_function_utilisation": _share_of_peak(
        "flop_count_sp_special", "special_function_lanes_per_cu"
    ),
    "fp64_utilisation": _share_of_peak("inst_fp_64", "fp64_lanes_per_cu"),
    "occupancy": _as_counted("achieved_occupancy"),
    "log_eligible_warps": Utilisation(
        ("eligible_warps_per_cycle",), lambda c: np.log(c["eligible_warps_per_cycle"] + 0.1)
    ),
    "warp_efficiency": _as_counted("warp_execution_efficiency"),
    "cu_activity": _as_counted("sm_efficiency"),
    "log_stall": Utilisation(("achieved_occupancy", "ipc"), _log_stall),
    "log_dram_bytes_per_instruction": Utilisation(
        (*_DRAM, "inst_executed"), lambda c: np.log1p(c.dram_bytes / c["inst_executed"])
    ),
    "log_l2_bytes_per_instruction": Utilisation(
        (*_L2, "inst_executed"), lambda c: np.log1p(c.l2_bytes / c["inst_executed"])
    ),
    "texture_hit_rate": _as_counted("tex_cache_hit_rate"),
    "l2_miss_ratio": Utilisation((_DRAM[0], _L2[0]), _l2_miss_ratio),
    "dram_write_share": Utilisation(_DRAM, _write_share),
    LOG_TIME: Utilisation((), lambda c: np.log(c.profiles.time_ms)),
    "log_warps": Utilisation(("warps",), lambda c: np.log(c["warps"])),
}
