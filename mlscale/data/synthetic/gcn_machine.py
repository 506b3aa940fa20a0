"""A mechanistic model of a GCN GPU: what a kernel, as a few physical numbers, does on it.

Made, not measured: it stands in for the HD 7970 of Wu et al., HPCA 2015 (32 CUs of 4 SIMDs, L2 at
the engine clock, 12 channels of GDDR5). Time, counters and power come from one evaluation.
Everything is vectorised over kernels and configurations: arrays are (K, 1, 1, 1) for a kernel's
numbers, and broadcast to (K, C, E, M).
"""

from dataclasses import dataclass, fields

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid

LANES = 64  # threads of a wave
SIMDS = 4
MAX_WAVES = 40  # per CU
MAX_WORKGROUPS = 16  # per CU
VGPRS = 256  # per lane of a SIMD, shared by its waves
LDS_BYTES = 65_536
LINE_BYTES = 64
L1_BYTES = 16_384
L2_BYTES = 768 * 1024
L2_BYTES_PER_CYCLE = 768
DRAM_BYTES_PER_CYCLE = 192  # 384 bits x 4 transfers: 264 GB/s at 1375 MHz
L1_CYCLES, L2_CYCLES = 110, 190  # latency [engine cycles]
DRAM_NS, DRAM_CYCLES = 110, 90  # latency beyond the L2 [ns] and [memory cycles]
ADDRESS_CYCLES = 4  # a wave's 64 addresses, 16 a cycle
LDS_CYCLES = 2  # 64 lanes over 32 banks
DISPATCH_CYCLES = 30  # between two workgroups
SHARPNESS = 5.0  # of the p-norm in which the bounds on time meet


@dataclass(frozen=True, eq=False)
class MadeKernels:
    """K kernels as physical numbers, each (K,). Instructions are per wave.

    valu, salu, vector_fetch, scalar_fetch, vector_write, lds: instructions; active_lanes: share
    of lanes that work; lines: cache lines per vector memory instruction; parallelism: fetches
    that a wave has in flight; workgroups, waves_per_workgroup; vgprs per lane, lds_bytes per
    workgroup; l1_reuse, l2_reuse: hit rates while the working set fits; wave_bytes: working set
    of a wave in L1; cu_bytes, shared_bytes: working sets in L2, per CU and in all;
    bank_conflict: extra LDS passes; dram_efficiency: of peak bandwidth; thrash: how much of it
    every further CU's stream costs; atomics: serialised operations per wave, and contention:
    how much slower they get with each further CU; launch_us: cost of a launch [us].
    """

    valu: Floats
    salu: Floats
    vector_fetch: Floats
    scalar_fetch: Floats
    vector_write: Floats
    lds: Floats
    active_lanes: Floats
    lines: Floats
    parallelism: Floats
    workgroups: Floats
    waves_per_workgroup: Floats
    vgprs: Floats
    lds_bytes: Floats
    l1_reuse: Floats
    l2_reuse: Floats
    wave_bytes: Floats
    cu_bytes: Floats
    shared_bytes: Floats
    bank_conflict: Floats
    dram_efficiency: Floats
    thrash: Floats
    atomics: Floats
    contention: Floats
    launch_us: Floats

    def broadcast(self) -> "MadeKernels":
        """The same numbers as (K, 1, 1, 1)."""
        return MadeKernels(*(getattr(self, f.name)[:, None, None, None] for f in fields(self)))


@dataclass(frozen=True, eq=False)
class Run:
    """What one evaluation gives, each (K, C, E, M): time [s], counters by name, power [W]."""

    seconds: Floats
    counters: dict[str, Floats]
    dynamic_power_w: Floats


def occupancy(kernels: MadeKernels) -> Floats:
    """Waves that a CU can hold: limited by registers, LDS, workgroups and the wave slots."""
    by_registers = SIMDS * np.floor(VGPRS / kernels.vgprs)
    by_lds = np.floor(LDS_BYTES / np.maximum(kernels.lds_bytes, 1.0)) * kernels.waves_per_workgroup
    by_workgroups = MAX_WORKGROUPS * kernels.waves_per_workgroup
    waves = np.minimum.reduce(
        [by_registers, by_lds, by_workgroups, np.full_like(by_lds, MAX_WAVES)]
    )
    whole = np.floor(waves / kernels.waves_per_workgroup) * kernels.waves_per_workgroup
    return np.asarray(np.maximum(whole, kernels.waves_per_workgroup))


def evaluate(kernels: MadeKernels, grid: ConfigGrid) -> Run:
    """Run every kernel at every configuration."""
    k = kernels.broadcast()
    cus = np.array(grid.cu_count, dtype=np.float64)[:, None, None]
    engine_hz = 1e6 * np.array(grid.engine_mhz)[:, None]
    memory_hz = 1e6 * np.array(grid.memory_mhz)

    held = occupancy(k)
    workgroups_on_busiest = np.ceil(k.workgroups / cus)
    waves = workgroups_on_busiest * k.waves_per_workgroup
    resident = np.minimum(held, waves)
    rounds = np.ceil(workgroups_on_busiest / np.floor(held / k.waves_per_workgroup))
    all_waves = k.workgroups * k.waves_per_workgroup
    mean_waves = all_waves / cus

    # Caches: the L1 is shared by the resident waves, the L2 by all CUs.
    l1_hit = k.l1_reuse / (1 + (resident * k.wave_bytes / L1_BYTES) ** 2)
    l2_hit = k.l2_reuse / (1 + ((k.shared_bytes + cus * k.cu_bytes) / L2_BYTES) ** 3)
    line_bytes = k.lines * LINE_BYTES
    read_l2 = all_waves * k.vector_fetch * line_bytes * (1 - l1_hit)
    written = all_waves * k.vector_write * line_bytes
    read_dram, written_dram = read_l2 * (1 - l2_hit), written * (1 - 0.5 * l2_hit)
    dram_bytes = read_dram + written_dram
    peak_dram = DRAM_BYTES_PER_CYCLE * memory_hz

    # Throughput bounds [s].
    requests = k.vector_fetch + k.vector_write
    valu = waves * k.valu * np.maximum(1.0, SIMDS / resident) / engine_hz
    salu = waves * (k.salu + k.scalar_fetch) / engine_hz
    lds = waves * k.lds * LDS_CYCLES * (1 + k.bank_conflict) / engine_hz
    address = waves * requests * ADDRESS_CYCLES * np.maximum(1.0, k.lines / 4) / engine_hz
    l2 = (read_l2 + written) / (L2_BYTES_PER_CYCLE * engine_hz)
    dram = dram_bytes * (1 + k.thrash * cus) / (k.dram_efficiency * peak_dram)
    dispatch = k.workgroups * DISPATCH_CYCLES / engine_hz
    atomics = all_waves * k.atomics * (1 + k.contention * cus) / engine_hz

    # Latency bound: a wave's own chain, round after round (Little's law).
    latency = (L1_CYCLES + (1 - l1_hit) * L2_CYCLES) / engine_hz + (1 - l1_hit) * (1 - l2_hit) * (
        DRAM_NS * 1e-9 + DRAM_CYCLES / memory_hz
    )
    chain = (
        SIMDS * (k.valu + k.salu) + 32 * k.lds * (1 + k.bank_conflict)
    ) / engine_hz + latency * k.vector_fetch / k.parallelism
    bounds = [valu, salu, lds, address, l2, dram, dispatch, atomics, rounds * chain]
    busy = sum(bound**SHARPNESS for bound in bounds) ** (1 / SHARPNESS)
    seconds = busy + 1e-6 * k.launch_us

    cycles = seconds * engine_hz
    memory_share = (l2**SHARPNESS + dram**SHARPNESS) / busy**SHARPNESS
    vmem_busy = np.minimum(1.0, mean_waves * requests * ADDRESS_CYCLES / cycles + memory_share)
    instructions = k.valu + k.salu + k.vector_fetch + k.scalar_fetch + k.vector_write + k.lds
    counters = {
        "VALUInsts": 100 * k.valu / instructions,
        "SALUInsts": 100 * k.salu / instructions,
        "VFetchInsts": 100 * k.vector_fetch / instructions,
        "SFetchInsts": 100 * k.scalar_fetch / instructions,
        "VWriteInsts": 100 * k.vector_write / instructions,
        "LDSInsts": 100 * k.lds / instructions,
        "VALUUtilization": 100 * k.active_lanes,
        "VALUBusy": 100 * mean_waves * k.valu / cycles,
        "SALUBusy": 100 * mean_waves * k.salu / cycles,
        "CacheHit": 100 * l2_hit,
        "MemUnitBusy": 100 * vmem_busy,
        "MemUnitStalled": 100 * vmem_busy * memory_share,
        "WriteUnitStalled": 100 * memory_share * written_dram / np.maximum(dram_bytes, 1.0),
        "LDSBankConflict": 100 * mean_waves * k.lds * LDS_CYCLES * k.bank_conflict / cycles,
        "Occupancy": 100 * held / MAX_WAVES,
        "V_IPC": mean_waves * k.valu / cycles,
        "MemTime": dram_bytes / peak_dram / seconds,
        "FetchPerLoadByte": _ratio(all_waves * k.vector_fetch, read_dram),
        "WritePerStoreByte": _ratio(all_waves * k.vector_write, written_dram),
        "NumWorkGroups": np.minimum(k.workgroups, 320.0),
        "ReadBandwidth": read_dram / seconds,
        "WriteBandwidth": written_dram / seconds,
    }
    # Dynamic power: energy per event at 1 V times rate, by the engine's voltage squared.
    volts = 0.65 + 0.525 * engine_hz / 1e9
    joules = all_waves * 1e-9 * (
        k.valu * (0.35 + 0.9 * k.active_lanes)
        + 0.08 * k.salu
        + 0.9 * k.lds * (1 + 0.3 * k.bank_conflict)
        + 1.0 * requests
    ) + 0.03e-9 * (read_l2 + written)
    power = volts**2 * (joules / seconds + 0.55e-9 * engine_hz * cus) + 0.16e-9 * (
        dram_bytes / seconds
    )
    shape = seconds.shape
    return Run(
        seconds=seconds,
        counters={n: np.broadcast_to(values, shape) for n, values in counters.items()},
        dynamic_power_w=np.broadcast_to(power, shape),
    )


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Numerator / denominator, NaN where nothing was moved."""
    moved = denominator > 0
    return np.asarray(np.where(moved, numerator / np.where(moved, denominator, 1.0), np.nan))
