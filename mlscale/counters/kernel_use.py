"""What a kernel uses of its GPU: one handful of numbers from any counter set.

nvprof's names, those of Table II (Wu et al., HPCA 2015), those of the simulated set, and shares of
peak that a profiler computed lead to the same numbers, so that a predictor need not know which
tool counted. What a counter set does not give is NaN. Counts come before a profiler's own shares;
nvprof's *_throughput columns are never used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import UTILISATIONS
from mlscale.data.checks import check
from mlscale.data.devices import IMPOSSIBLE_SHARE, Device, device_keys, devices_named, load_device
from mlscale.data.logs import is_sampled
from mlscale.data.profiles import Profiles
from mlscale.data.table import NO_TIMES
from mlscale.errors import InputError
from mlscale.parameters import command, parameter

# Peaks of one CU.
L2_BYTES_PER_CYCLE = 32.0
TEXTURE_BYTES_PER_CYCLE = 64.0
# The counters of DRAM traffic: nvprof's, and Table II's rates of it.
TRAFFIC = (
    *("dram_read_transactions", "dram_write_transactions"),
    *("ReadBandwidth", "WriteBandwidth"),
)
_HALVES = (  # two counters that give the DRAM traffic only together
    ("dram__bytes_read.sum", "dram__bytes_write.sum"), ("FETCH_SIZE", "WRITE_SIZE"), TRAFFIC[2:],
)  # fmt: skip
_TRAFFIC_OF_A_TOOL = {
    "ncu": "--section SpeedOfLight (not of Jetson and GB10, which count none)",
    "nvprof": "metrics dram_read_transactions and dram_write_transactions",
    **dict.fromkeys(("rocprof", "rocprofv3"), "counters FETCH_SIZE and WRITE_SIZE"),
}
_TRAFFIC_OF_A_TABLE = (
    "dram_utilisation (a share of the peak), or dram_read_transactions and "
    "dram_write_transactions, or ReadBandwidth and WriteBandwidth (Table II)"
)
DESCRIBED = f"edit what '{command('devices show h100-sxm5', 'json')}' prints"
_INSTEAD = "omit the model or name 'runs', which needs none"
SCHEDULERS = 4  # per CU: GCN's SIMDs, NVIDIA's warp schedulers
# Share of DRAM's peak that a table's busiest kernel uses at least; GB/s for bytes/s are 1e-9.
_LEAST_OF_TABLE = 1e-5
_NVIDIA_WAVES = 64.0  # resident on a CU, of the generations that the model was made with

# By number of KernelUse the names of its sources.
UseSources = Mapping[str, tuple[str, ...]]

_CORE_UNITS = ("issue", "l2", "texture", "shared", "fp64")


@dataclass(frozen=True, eq=False)
class KernelUse:
    """K kernels at their base; each array (K,), NaN if the counters do not show it.

    Attributes:
        memory: DRAM bytes / (time x peak bandwidth at the base's memory clock).
        issue: instructions issued per cycle and CU, as a share of what it can issue; vector
            instructions per cycle and CU (Table II); or the use of the busiest unit of the CU.
        l2: bytes between CU and L2 per cycle and CU, as a share of 32; or of the L2's peak.
        texture: texture-cache bytes per cycle and CU as a share of 64; Table II: memory-unit busy;
            or the L1's throughput as a share of its peak.
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
        resident_waves: that a CU holds at once: Table II's occupancy, else what the CU can hold.
        unit: use of the CU's busiest unit, as a share of its peak: its pipes', by a profiler that
            knows them (tensor cores too), or its L1's.
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
    resident_waves: Floats
    unit: Floats


def kernel_use(profiles: Profiles, trained: UseSources | None = None) -> KernelUse:
    """What each kernel uses: each number from the first of its sources that the profile has.

    trained: the sources of a trained model, which come first. Raises InputError on a GPU whose
    peaks are unknown, and if nothing gives the DRAM traffic, without which no bottleneck can be
    determined.
    """
    use, _ = use_and_sources(profiles, trained)
    _check_memory(profiles, use.memory, "" if trained is None else f"; or {_INSTEAD}")
    return use


def use_sources(profiles: Profiles, trained: UseSources | None = None) -> UseSources:
    """Where `kernel_use` takes each number from; none for a number that is missing.

    Raises InputError on a GPU whose peaks are not known.
    """
    return use_and_sources(profiles, trained)[1]


def traffic_needed(counter_tool: str) -> str:
    """What to measure if the DRAM traffic is missing; for the tool that counted, if any."""
    measure = _TRAFFIC_OF_A_TABLE
    if counter_tool in _TRAFFIC_OF_A_TOOL:
        measure = f"{counter_tool}'s {_TRAFFIC_OF_A_TOOL[counter_tool]}"
    return f"the DRAM traffic: {measure}"


def half_of_traffic(profiles: Profiles) -> str:
    """In words which counter of the DRAM traffic there is without its other half, if so."""
    halves = [(a, b) for pair in _HALVES for a, b in (pair, pair[::-1])]
    lone = [(a, b) for a, b in halves if {a, b} & set(profiles.counter_names) == {a}]
    return f"; the profile has {lone[0][0]}, lacks {lone[0][1]}" if lone else ""


def tells_traffic(profiles: Profiles) -> bool:
    """Whether the DRAM traffic of every kernel with counters is known, as a share of the GPU's.

    Raises InputError on a name of several GPUs.
    """
    if not devices_named(profiles.device):
        return False
    is_known = ~np.isnan(use_and_sources(profiles)[0].memory)
    return bool(is_known[profiles.has_counters].all())


def use_and_sources(
    profiles: Profiles, trained: UseSources | None = None
) -> tuple[KernelUse, UseSources]:
    """`kernel_use` with `use_sources`, where the DRAM traffic may be missing too.

    Raises InputError on a GPU whose peaks are not known.
    """
    device = device_with_peaks(profiles.device, profiles.base.cu_count)
    numbers: dict[str, Floats] = {}
    sources: dict[str, tuple[str, ...]] = {}
    unknown = np.full(len(profiles.kernels), np.nan)
    for number, alternatives in _SOURCES.items():
        known = (trained or {}).get(number, ())
        numbers[number], sources[number] = unknown, ()
        labels = [source.label(profiles) for source in alternatives]
        as_trained = [i for i, label in enumerate(labels) if label in known]
        for i in (*as_trained, *(i for i in range(len(labels)) if i not in as_trained)):
            is_missing = np.isnan(numbers[number])
            if not is_missing.any():
                break
            filled = _either(numbers[number], alternatives[i].compute(profiles, device))
            if (np.isnan(filled) < is_missing).any():
                sources[number] = (*sources[number], labels[i])
            numbers[number] = filled
    waiting = _log_waiting(numbers["occupancy"], numbers["issue"], device)
    numbers["stall"] = _either(numbers["stall"], waiting)
    counter = profiles.optional_counter
    unit = np.fmax(counter("core_utilisation"), counter("texture_utilisation"))
    return KernelUse(**numbers, **_launch(profiles, device), unit=unit), sources


def _check_memory(profiles: Profiles, memory: Floats, instead: str) -> None:
    """Raise InputError, with what else to do, where a kernel's DRAM traffic is not known or odd."""
    if np.isnan(memory).all() and is_sampled(profiles.metadata):
        raise InputError(f"{_INSTEAD}: the log lacks the DRAM traffic, which this model needs")
    if np.isnan(memory).all():
        needed = traffic_needed(str(profiles.metadata.get("counter_tool")))
        raise InputError(f"the model needs {needed}{instead}{half_of_traffic(profiles)}")
    if np.isnan(memory).any():
        name = profiles.kernels[int(np.isnan(memory).argmax())]
        raise InputError(
            f"kernel '{name}' lacks its DRAM traffic at {profiles.base}; profile it with those "
            f"counters, or leave it out{instead}"
        )
    facts = (profiles.kernels, memory, IMPOSSIBLE_SHARE, profiles.device, profiles.base.memory_mhz)
    check("traffic", "profile", *facts)


def doubtful_traffic(profiles: Profiles) -> tuple[Any, ...]:
    """Facts for the check of DRAM traffic, as a warning to who can do without that.

    There is none on a GPU whose peaks are not known, and without times.
    """
    is_known = profiles.device in device_keys() and not profiles.metadata.get(NO_TIMES)
    memory = use_and_sources(profiles)[0].memory if is_known else np.zeros(len(profiles.kernels))
    base, device = profiles.base, profiles.device
    return profiles.kernels, memory, IMPOSSIBLE_SHARE, device, base.memory_mhz, "warning"


def check_traffic_of_training(profiles: Profiles) -> None:
    """Raise InputError where no kernel of a training table comes near any use of DRAM.

    One kernel may move next to nothing; a table of them is in another unit, such as GB/s.
    """
    most = float(kernel_use(profiles).memory.max())
    if 0 < most < _LEAST_OF_TABLE:
        raise InputError(
            f"no kernel of '{profiles.device}' uses more than {most:.1g} of the peak of its "
            "DRAM: are dram_utilisation a share from 0 to 1, ReadBandwidth and WriteBandwidth in "
            "bytes/s, and time_ms in milliseconds?"
        )


def device_with_peaks(key: str, cu_count: float | None = None) -> Device:
    """The device of that name. Raises InputError, with what would have to be known, without one."""
    if lack := lack_of_peaks(key, cu_count):
        raise InputError(lack)
    return load_device(key)


def lack_of_peaks(key: str, cu_count: float | None = None) -> str:
    """What would have to be known of a GPU whose peaks are not; empty where they are."""
    if key in device_keys():
        return ""
    if possible := devices_named(key, cu_count) or devices_named(key):
        return (
            f"'{key}' may be {' or '.join(possible)}; of an export name one with "
            f"{parameter('device')}, of a table with {parameter('columns', {'device': 'KEY'})}"
        )
    return (
        f"the GPU '{key}' is unknown; describe it in a device file ({DESCRIBED}), and give that, "
        f"of an export with {parameter('device', 'FILE')}, of a table with "
        f"{parameter('columns', {'device': 'FILE'})}"
    )


@dataclass(frozen=True)
class _Source:
    """One way to a number of KernelUse: the columns it is made of, and its formula.

    name: what a reader is told; None for a column whose table says what it was computed from.
    """

    name: str | None
    columns: tuple[str, ...]
    formula: Callable[[Profiles, Device], Floats]

    def label(self, profiles: Profiles) -> str:
        """From what the number comes, in words."""
        if self.name is not None:
            return self.name
        [column] = self.columns
        recorded = profiles.metadata.get("utilisation_sources", {}).get(column, column)
        labels = dict.fromkeys(text.partition(" = ")[0] for text in recorded.split("; "))
        return " or ".join(labels)

    def compute(self, profiles: Profiles, device: Device) -> Floats:
        """The number of every kernel, (K,), NaN where a column lacks."""
        if not all(map(profiles.has_counter, self.columns)):
            return np.full(len(profiles.kernels), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.formula(profiles, device)
        return np.where(np.isfinite(values), values, np.nan)


def _counted(utilisation: str, name: str, unit: float = 1.0) -> _Source:
    return _Source(
        name,
        (),
        lambda profiles, device: UTILISATIONS[utilisation].compute(profiles, device) / unit,
    )


def _column(column: str, name: str | None = None, scale: float = 1.0) -> _Source:
    return _Source(name, (column,), lambda profiles, _: profiles.counter(column) * scale)


def _bandwidth(profiles: Profiles, device: Device) -> Floats:
    bytes_per_s = profiles.counter("ReadBandwidth") + profiles.counter("WriteBandwidth")
    return device.share_of_bandwidth(bytes_per_s, 1.0, profiles.base.memory_mhz)


def _written(profiles: Profiles, _: Device) -> Floats:
    read, written = profiles.counter("ReadBandwidth"), profiles.counter("WriteBandwidth")
    return written / np.maximum(read + written, 1.0)


def _vector_issue(profiles: Profiles, device: Device) -> Floats:
    """Of AMD's CUs a share: GCN's and CDNA's take a wave of 64 lanes a cycle, RDNA's two of 32."""
    waves_per_instruction = (
        device.wave_size / device.lanes_per_cu if device.vendor == "AMD" else 1.0
    )
    return profiles.counter("V_IPC") * waves_per_instruction


def _shared_instructions(profiles: Profiles, _: Device) -> Floats:
    counter = profiles.optional_counter
    issue = _either(counter("V_IPC"), counter("VALUBusy") * 0.01)
    return issue * counter("LDSInsts") / counter("VALUInsts")


def _waiting_time(profiles: Profiles, _: Device) -> Floats:
    return np.asarray(np.log(profiles.counter("waitcnt_stall_pct") * 0.01 + 0.01))


# By number of KernelUse where it can come from, the best first. Sources of one name mean the same.
_BANDWIDTHS = ("ReadBandwidth", "WriteBandwidth")
_SOURCES: dict[str, tuple[_Source, ...]] = {
    "memory": (
        _counted("dram_utilisation", "DRAM bytes"),
        _Source("DRAM bytes", _BANDWIDTHS, _bandwidth),
        _column("dram_utilisation"),
    ),
    "issue": (
        _counted("issue_utilisation", "instructions per issue slot"),
        _column("issue_utilisation"),
        _Source("vector instructions per cycle", ("V_IPC",), _vector_issue),
        _column("VALUBusy", "VALUBusy", 0.01),
        _column("core_utilisation"),
    ),
    "l2": (
        _counted("l2_bytes_per_cycle", "L2 bytes per cycle", L2_BYTES_PER_CYCLE),
        _column("l2_utilisation"),
    ),
    "texture": (
        _counted("texture_bytes_per_cycle", "texture bytes per cycle", TEXTURE_BYTES_PER_CYCLE),
        _column("MemUnitBusy", "MemUnitBusy", 0.01),
        _column("texture_utilisation"),
    ),
    "shared": (
        _counted("shared_transactions_per_cycle", "shared-memory transactions per cycle"),
        _column("shared_transactions_per_cycle"),
        _Source("LDS instructions per cycle", ("LDSInsts", "VALUInsts"), _shared_instructions),
    ),
    "fp64": (
        _counted("fp64_utilisation", "FP64 instructions per lane"),
        _column("fp64_utilisation"),
    ),
    "occupancy": (
        _counted("occupancy", "resident waves"),
        _column("occupancy"),
        _column("Occupancy", "Occupancy", 0.01),
    ),
    "log_eligible": (_counted("log_eligible_warps", "eligible waves"),),
    "stall": (_Source("share of time waiting", ("waitcnt_stall_pct",), _waiting_time),),
    "l2_miss": (
        _counted("l2_miss_ratio", "DRAM reads per L2 read"),
        _Source(
            "CacheHit", ("CacheHit",), lambda profiles, _: 1 - profiles.counter("CacheHit") * 0.01
        ),
    ),
    "write_share": (
        _counted("dram_write_share", "DRAM bytes"),
        _Source("DRAM bytes", _BANDWIDTHS, _written),
    ),
    "lane_efficiency": (
        _counted("warp_efficiency", "active lanes"),
        _column("VALUUtilization", "active lanes", 0.01),
    ),
}


def _launch(profiles: Profiles, device: Device) -> dict[str, Floats]:
    """Workgroups of one launch, the waves of each, and how many waves a CU holds.

    Table II has workgroups only, of all launches: a workgroup then counts as one wave.
    """
    counter = profiles.optional_counter
    launches = _either(counter("n_launches"), np.ones(len(profiles.kernels)))
    workgroups = _either(counter("workgroups"), counter("NumWorkGroups"))
    with np.errstate(divide="ignore", invalid="ignore"):
        waves = _either(
            counter("waves") / counter("workgroups"), counter("workgroup_size") / device.wave_size
        )
        waves = _either(np.ceil(waves), np.where(np.isnan(workgroups), np.nan, 1.0))
        return {
            "workgroups": np.maximum(workgroups / np.maximum(launches, 1), 1),
            "waves_per_workgroup": np.maximum(waves, 1),
            "resident_waves": np.fmin(counter("Occupancy") * 0.01, 1) * device.max_waves_per_cu,
        }


def _log_waiting(occupancy: Floats, issue: Floats, device: Device) -> Floats:
    """Log of the resident waves per instruction in flight: how much latency is left to hide."""
    waves = _NVIDIA_WAVES if device.wave_size == 32 else device.max_waves_per_cu
    return np.asarray(np.log((waves * occupancy + 0.5) / (SCHEDULERS * issue + 0.01)))


def _either(first: Floats, second: Floats) -> Floats:
    return np.where(np.isnan(first), second, first)


def log_share(values: Floats) -> Floats:
    """Log max(values, 0.02)."""
    return np.asarray(np.log(np.maximum(values, 0.02)))


def inputs(use: KernelUse, memory_share: Floats) -> dict[str, Floats]:
    """The inputs of every kernel by the names of `roofline.INPUTS`, (K,) each, NaN where missing.

    memory_share: DRAM use as a share of what the GPU reaches, (K,).
    """
    core = {name: getattr(use, name) for name in _CORE_UNITS}
    return {
        "memory share": log_share(memory_share),
        "busiest core unit": log_share(np.fmax.reduce(list(core.values()))),
        **{f"{name} use": np.sqrt(np.maximum(values, 0)) for name, values in core.items()},
        "occupancy": use.occupancy,
        "eligible waves": use.log_eligible,
        "stall": use.stall,
        "L2 miss ratio": use.l2_miss,
        "write share": use.write_share,
        "lane efficiency": use.lane_efficiency,
    }
