"""What a kernel uses of its GPU: one handful of numbers from any counter set.

nvprof's names, those of Table II (Wu et al., HPCA 2015) and those of the simulated set lead to
the same numbers, so that a predictor need not know which tool counted. What a counter set does not
give is NaN. Counts are divided by time and peak; the profiler's own *_throughput columns are never
used.
"""

import warnings
from dataclasses import dataclass, fields

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.utilisation import UTILISATIONS, dram_utilisation
from mlscale.data.devices import Device, device_keys, load_device
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError

L2_BYTES_PER_CYCLE = 32.0  # of one CU
TEXTURE_BYTES_PER_CYCLE = 64.0
# The counters of DRAM traffic: nvprof's, and Table II's rates of it.
TRAFFIC = (
    *("dram_read_transactions", "dram_write_transactions"),
    *("ReadBandwidth", "WriteBandwidth"),
)
# What a launch is, known without counting.
LAUNCH = ("workgroups", "workgroup_size", "waves", "n_launches")
SIMDS = 4  # per CU: GCN's SIMDs, NVIDIA's warp schedulers
_NVIDIA_WAVES = 64.0  # resident on a CU, of the generations that the model was made with

# What `inputs` gives, by name.
MEANINGS = {
    "memory share": "log of DRAM traffic, as a share of what the GPU reaches",
    "busiest core unit": "log of the largest use of a unit",
    "issue use": "root of instructions issued per cycle and CU, as a share",
    "l2 use": "root of L2 traffic per cycle and CU, as a share",
    "texture use": "root of texture traffic or memory-unit use, as a share",
    "shared use": "root of shared-memory accesses per cycle and CU",
    "fp64 use": "root of FP64 instructions, as a share of the lanes",
    "occupancy": "resident waves, as a share of what a CU holds",
    "eligible waves": "log of the waves ready to issue",
    "stall": "log of waves waiting per instruction, or time waiting",
    "L2 miss ratio": "DRAM reads as a share of L2 reads",
    "write share": "share of DRAM traffic that is written",
    "lane efficiency": "active lanes of a vector instruction, as a share",
}
_CORE_UNITS = ("issue", "l2", "texture", "shared", "fp64")


@dataclass(frozen=True, eq=False)
class KernelUse:
    """K kernels at their base; each array (K,), NaN where the counters do not tell.

    Attributes:
        memory: DRAM bytes / (time x peak bandwidth at the base's memory clock).
        issue: instructions issued per cycle and CU, as a share of what it can issue (nvprof), or
            vector instructions per cycle and CU (Table II).
        l2: bytes between CU and L2 per cycle and CU, as a share of 32.
        texture: texture-cache bytes per cycle and CU as a share of 64; Table II: memory-unit busy.
        shared: shared-memory (LDS) transactions per cycle and CU.
        fp64: FP64 instructions per cycle and CU, as a share of the lanes.
        occupancy: resident waves, as a share of what a CU holds.
        log_eligible: log of the waves ready to issue, + 0.1.
        stall: log of the waves that wait per instruction issued.
        l2_miss: DRAM reads / L2 reads, at most 2.
        write_share: share of DRAM traffic that is written.
        lane_efficiency: active lanes per vector instruction, as a share of all.
        workgroups: of one launch.
        waves_per_workgroup: waves of one workgroup.
    """

    memory: Floats
    issue: Floats
    l2: Floats
    texture: Floats
    shared: Floats
    fp64: Floats
    occupancy: Floats
    log_eligible: Floats
    stall: Floats
    l2_miss: Floats
    write_share: Floats
    lane_efficiency: Floats
    workgroups: Floats
    waves_per_workgroup: Floats


def kernel_use(profiles: Profiles) -> KernelUse:
    """What each kernel uses, from whichever counter set the profiles hold.

    Raises InputError on a GPU whose peaks are not known, and where the counters do not give the
    DRAM traffic, without which no bottleneck can be told.
    """
    device = device_with_peaks(profiles.device)
    if profiles.has_counter("dram_read_transactions"):
        counted = _from_nvprof(profiles, device)
    elif profiles.has_counter("ReadBandwidth") and profiles.has_counter("WriteBandwidth"):
        counted = _from_table_2(profiles, device)
    else:
        raise InputError(
            "'bottleneck' needs the DRAM traffic: counters dram_read_transactions and "
            "dram_write_transactions (nvprof), or ReadBandwidth and WriteBandwidth (Table II)"
        )
    unknown = {field.name: np.full(len(profiles.kernels), np.nan) for field in fields(KernelUse)}
    use = KernelUse(**{**unknown, **counted, **_launch(profiles, device)})
    if np.isnan(use.memory).any():
        name = profiles.kernels[int(np.isnan(use.memory).argmax())]
        raise InputError(f"kernel '{name}' lacks its DRAM traffic; profile it with those counters")
    return use


def device_with_peaks(key: str) -> Device:
    """The device of that name. Raises InputError, with what would have to be known, without one."""
    if key not in device_keys():
        raise InputError(
            f"the peaks of '{key}' are not in the device table: 'bottleneck' needs its "
            "memory bus width [bits], transfers per memory clock, lanes and schedulers per CU (the "
            "vendor's data sheet has them); known are " + ", ".join(device_keys())
        )
    return load_device(key)


def _from_nvprof(profiles: Profiles, device: Device) -> dict[str, Floats]:
    def of(name: str, unit: float = 1.0) -> Floats:
        return UTILISATIONS[name].compute(profiles, device) / unit

    occupancy, issue = of("occupancy"), of("issue_utilisation")
    return {
        "memory": of("dram_utilisation"),
        "issue": issue,
        "l2": of("l2_bytes_per_cycle", L2_BYTES_PER_CYCLE),
        "texture": of("texture_bytes_per_cycle", TEXTURE_BYTES_PER_CYCLE),
        "shared": of("shared_transactions_per_cycle"),
        "fp64": of("fp64_utilisation"),
        "occupancy": occupancy,
        "log_eligible": of("log_eligible_warps"),
        "stall": _log_waiting(occupancy, issue, device),
        "l2_miss": of("l2_miss_ratio"),
        "write_share": of("dram_write_share"),
        "lane_efficiency": of("warp_efficiency"),
    }


def _from_table_2(profiles: Profiles, device: Device) -> dict[str, Floats]:
    def of(name: str, scale: float = 1.0) -> Floats:
        return profiles.optional_counter(name) * scale

    read, written = of("ReadBandwidth"), of("WriteBandwidth")
    issue = _either(of("V_IPC"), of("VALUBusy", 0.01))
    occupancy = of("Occupancy", 0.01)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = issue * of("LDSInsts") / of("VALUInsts")
        waiting = np.log(of("waitcnt_stall_pct", 0.01) + 0.01)
    return {
        "memory": dram_utilisation(read + written, 1.0, profiles, device),
        "issue": issue,
        "texture": of("MemUnitBusy", 0.01),
        "shared": np.where(np.isfinite(shared), shared, np.nan),
        "occupancy": occupancy,
        "stall": _either(waiting, _log_waiting(occupancy, issue, device)),
        "l2_miss": 1 - of("CacheHit", 0.01),
        "write_share": written / np.maximum(read + written, 1.0),
        "lane_efficiency": of("VALUUtilization", 0.01),
    }


def _launch(profiles: Profiles, device: Device) -> dict[str, Floats]:
    """Workgroups of one launch, and the waves of each.

    Table II has workgroups only, of all launches: a workgroup then counts as one wave.
    """
    of = profiles.optional_counter
    launches = _either(of("n_launches"), np.ones(len(profiles.kernels)))
    workgroups = _either(of("workgroups"), of("NumWorkGroups"))
    with np.errstate(divide="ignore", invalid="ignore"):
        waves = _either(of("waves") / of("workgroups"), of("workgroup_size") / device.wave_size)
        waves = _either(np.ceil(waves), np.where(np.isnan(workgroups), np.nan, 1.0))
        return {
            "workgroups": np.maximum(workgroups / np.maximum(launches, 1), 1),
            "waves_per_workgroup": np.maximum(waves, 1),
        }


def _log_waiting(occupancy: Floats, issue: Floats, device: Device) -> Floats:
    """Log of the resident waves per instruction in flight: how much latency is left to hide."""
    waves = _NVIDIA_WAVES if device.wave_size == 32 else device.max_waves_per_cu
    return np.asarray(np.log((waves * occupancy + 0.5) / (SIMDS * issue + 0.01)))


def _either(first: Floats, second: Floats) -> Floats:
    return np.where(np.isnan(first), second, first)


def log_share(values: Floats) -> Floats:
    """Log max(values, 0.02)."""
    return np.asarray(np.log(np.maximum(values, 0.02)))


def inputs(use: KernelUse, memory_share: Floats) -> dict[str, Floats]:
    """The inputs of every kernel by the names of MEANINGS, (K,) each, NaN where missing.

    memory_share: DRAM use as a share of what the GPU reaches, (K,).
    """
    core = {name: getattr(use, name) for name in _CORE_UNITS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all NaN is NaN
        busiest = np.nanmax(list(core.values()), axis=0)
    return {
        "memory share": log_share(memory_share),
        "busiest core unit": log_share(busiest),
        **{f"{name} use": np.sqrt(np.maximum(values, 0)) for name, values in core.items()},
        "occupancy": use.occupancy,
        "eligible waves": use.log_eligible,
        "stall": use.stall,
        "L2 miss ratio": use.l2_miss,
        "write share": use.write_share,
        "lane efficiency": use.lane_efficiency,
    }


def input_names() -> tuple[str, ...]:
    """The names that `inputs` gives."""
    return tuple(MEANINGS)
