"""Synthetic measurements of 108 kernels of 49 applications on the grid of Wu et al., HPCA 2015.

Kernels are drawn as small sets of physical numbers and run on a mechanistic model of a GCN GPU,
which stands in for the paper's HD 7970: 32 CUs of 4 SIMDs, an L2 cache at the engine clock and 12
channels of GDDR5. Time, counters and power come from one evaluation. The four shapes of the
paper's Fig. 1 are there as the kernels of `made.fig1`.

    python reproduction/make_hd7970.py --seed 0 -o hd7970.parquet
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements

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
SHARPNESS = 5.0  # p of the p-norm in which the bounds on time meet


# K kernels as physical numbers, each (K,), under the names of TYPICAL. Instructions are per wave.
# active_lanes: share of lanes that work; lines: cache lines per vector memory instruction;
# parallelism: fetches that a wave has in flight; vgprs per lane, lds_bytes per workgroup; l1_reuse,
# l2_reuse: hit rates while the working set fits; wave_bytes: working set of a wave in L1; cu_bytes,
# shared_bytes: working sets in L2, per CU and in all; bank_conflict: extra LDS passes;
# dram_efficiency: of peak bandwidth; thrash: how much of it every further CU's stream costs;
# atomics: serialised operations per wave, and contention: how much slower they get with each
# further CU; launch_us: cost of a launch [us].
SyntheticKernels = Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one evaluation gives, each (K, C, E, M): time [s], counters by name, power [W]."""

    seconds: Floats
    counters: dict[str, Floats]
    dynamic_power_w: Floats


def occupancy(vgprs: Floats, lds_bytes: Floats, waves_per_workgroup: Floats) -> Floats:
    """Waves that a CU can hold: limited by registers, LDS, workgroups and the wave slots."""
    by_registers = SIMDS * np.floor(VGPRS / vgprs)
    by_lds = np.floor(LDS_BYTES / np.maximum(lds_bytes, 1.0)) * waves_per_workgroup
    waves = np.minimum(by_registers, np.minimum(by_lds, MAX_WORKGROUPS * waves_per_workgroup))
    whole = np.floor(np.minimum(waves, MAX_WAVES) / waves_per_workgroup) * waves_per_workgroup
    return np.asarray(np.maximum(whole, waves_per_workgroup))


def run_kernels(kernels: SyntheticKernels, grid: ConfigGrid) -> Evaluation:
    """Run every kernel at every configuration."""
    k = SimpleNamespace(**{name: n[:, None, None, None] for name, n in kernels.items()})
    cus = np.array(grid.cu_count, dtype=np.float64)[:, None, None]
    engine_hz = 1e6 * np.array(grid.engine_mhz)[:, None]
    memory_hz = 1e6 * np.array(grid.memory_mhz)

    resident_limit = occupancy(k.vgprs, k.lds_bytes, k.waves_per_workgroup)
    workgroups_on_busiest = np.ceil(k.workgroups / cus)
    waves = workgroups_on_busiest * k.waves_per_workgroup
    resident = np.minimum(resident_limit, waves)
    rounds = np.ceil(workgroups_on_busiest / np.floor(resident_limit / k.waves_per_workgroup))
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
        "Occupancy": 100 * resident_limit / MAX_WAVES,
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
    return Evaluation(
        seconds=seconds,
        counters={n: np.broadcast_to(values, shape) for n, values in counters.items()},
        dynamic_power_w=np.broadcast_to(power, shape),
    )


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Numerator / denominator, NaN where nothing was moved."""
    is_moved = denominator > 0
    return np.asarray(np.where(is_moved, numerator / np.where(is_moved, denominator, 1.0), np.nan))


# The data set: the grid, and the families that its kernels are drawn from.
GRID = ConfigGrid(
    cu_count=tuple(range(4, 33, 4)),
    engine_mhz=tuple(float(clock) for clock in range(300, 1001, 100)),
    memory_mhz=tuple(float(clock) for clock in range(475, 1376, 150)),
)
KERNELS, APPLICATIONS = 108, 49
TIME_NOISE, POWER_NOISE, COUNTER_NOISE = 0.01, 0.02, 0.005  # relative standard deviations

TYPICAL = {
    "valu": 800, "salu": 120, "vector_fetch": 40, "scalar_fetch": 15, "vector_write": 12, "lds": 0,
    "active_lanes": 0.95, "lines": 4, "parallelism": 2, "workgroups": 4000,
    "waves_per_workgroup": 4, "vgprs": 32, "lds_bytes": 0, "l1_reuse": 0.2, "l2_reuse": 0.3,
    "wave_bytes": 300, "cu_bytes": 2e3, "shared_bytes": 5e4, "bank_conflict": 0,
    "dram_efficiency": 0.8, "thrash": 0, "atomics": 0, "contention": 0, "launch_us": 5,
}  # fmt: skip

# What sets a family apart from the typical kernel.
_FAMILIES: dict[str, dict[str, float]] = {
    "compute": {"valu": 6000, "vector_fetch": 20, "vector_write": 4, "l1_reuse": 0.7},
    "stream": {"valu": 60, "salu": 15, "vector_fetch": 24, "vector_write": 12, "l2_reuse": 0.05,
               "parallelism": 4},
    "balanced": {"valu": 700, "vector_fetch": 40, "l2_reuse": 0.5},
    "tiled": {"valu": 1800, "lds": 500, "lds_bytes": 8192, "vector_fetch": 24, "vgprs": 48,
              "l2_reuse": 0.6},
    "conflicted": {"valu": 500, "lds": 400, "bank_conflict": 4, "lds_bytes": 16384},
    "gather": {"valu": 150, "vector_fetch": 60, "lines": 24, "parallelism": 1.5, "l2_reuse": 0.4,
               "active_lanes": 0.6, "dram_efficiency": 0.55},
    "chase": {"valu": 200, "vector_fetch": 80, "parallelism": 1, "vgprs": 84, "lines": 10,
              "l2_reuse": 0.5},
    "cached": {"valu": 250, "vector_fetch": 80, "l2_reuse": 0.95, "cu_bytes": 1.2e4,
               "shared_bytes": 1e5, "parallelism": 3},
    "overflowing": {"valu": 250, "vector_fetch": 80, "l2_reuse": 0.95, "cu_bytes": 4e4,
                    "shared_bytes": 5e4, "parallelism": 4, "thrash": 0.02},
    "atomic": {"valu": 120, "vector_fetch": 20, "atomics": 3, "contention": 0.03},
    "small": {"valu": 2500, "workgroups": 24, "launch_us": 6},
    "narrow": {"valu": 1500, "salu": 300, "active_lanes": 0.3, "workgroups": 90},
    "scalar": {"valu": 500, "salu": 900, "scalar_fetch": 80},
}  # fmt: skip

_FIG1: dict[str, dict[str, float]] = {
    "compute": {"valu": 9000, "salu": 200, "vector_fetch": 10, "vector_write": 2},
    "bandwidth": {"valu": 40, "salu": 10, "vector_fetch": 24, "vector_write": 12, "l1_reuse": 0,
                  "l2_reuse": 0, "parallelism": 8, "workgroups": 20000},
    "balanced": {"valu": 900, "vector_fetch": 40, "vector_write": 12, "l1_reuse": 0, "l2_reuse": 0,
                 "parallelism": 6, "workgroups": 20000},
    "contended": {"valu": 60, "vector_fetch": 90, "vector_write": 4, "l1_reuse": 0, "lines": 6,
                  "l2_reuse": 0.97, "cu_bytes": 3.4e4, "shared_bytes": 2e4, "parallelism": 8,
                  "thrash": 0.02, "workgroups": 8000},
}  # fmt: skip

# Standard deviation of the logarithm of a number between the applications of a
# family, and between the kernels of an application.
_SPREAD_OF_APPLICATIONS, _SPREAD_OF_KERNELS = 0.5, 0.3
_WAVES_PER_WORKGROUP = (1, 2, 4, 4, 4, 8)
_RANGES = {
    "vgprs": (16, 128),
    "workgroups": (1, np.inf),
    "parallelism": (1, np.inf),
    "lines": (1, LANES),
    "lds_bytes": (0, LDS_BYTES),
}
_SHARES = ("active_lanes", "l1_reuse", "l2_reuse", "dram_efficiency")
# These counters repeat to the digit from run to run.
_STATIC = (
    *("VALUInsts", "SALUInsts", "VFetchInsts", "SFetchInsts", "VWriteInsts", "LDSInsts"),
    *("VALUUtilization", "Occupancy", "NumWorkGroups"),
)


def make_hd7970(seed: int = 0) -> Measurements:
    """108 synthetic kernels at 448 configurations: time, dynamic power, the counters of Table II.

    Noise is multiplicative: 1 % on time, 2 % on power, 0.5 % on counters that change from run to
    run. The same seed gives the same numbers.
    """
    random = np.random.default_rng(seed)
    kernels, names, applications = _draw(random)
    run = run_kernels(kernels, GRID)
    shape = run.seconds.shape
    counter_names = tuple(run.counters)
    counters = np.stack(list(run.counters.values()), axis=-1)
    varies = np.array([name not in _STATIC for name in counter_names])
    noise = random.normal(0, COUNTER_NOISE, counters.shape) * varies
    return Measurements(
        device="hd7970",
        grid=GRID,
        kernels=names,
        applications=applications,
        time_samples=(1e3 * run.seconds * np.exp(random.normal(0, TIME_NOISE, shape)))[None],
        power_samples=(run.dynamic_power_w * np.exp(random.normal(0, POWER_NOISE, shape)))[None],
        counter_names=counter_names,
        counter_samples=(counters * np.exp(noise))[None],
        metadata={
            "origin": "made",
            "power_kind": "dynamic",
            "counter_tool": "made",
            "source": f"reproduction/make_hd7970.py --seed {seed}",
            "noise": {"time": TIME_NOISE, "power": POWER_NOISE, "counters": COUNTER_NOISE},
            "feature_status": dict.fromkeys(counter_names, "exact"),
        },
    )


def _draw(random: np.random.Generator) -> tuple[SyntheticKernels, tuple[str, ...], tuple[str, ...]]:
    """Kernels, their names and their applications: those of Fig. 1, then families in turn."""
    kernels = [{**TYPICAL, **numbers} for numbers in _FIG1.values()]
    names = [f"made.fig1.{shape}" for shape in _FIG1]
    applications = ["made.fig1"] * len(_FIG1)
    families = list(_FAMILIES)
    others = APPLICATIONS - 1
    sizes = np.diff(np.linspace(0, KERNELS - len(_FIG1), others + 1).round()).astype(int)
    for position in range(others):
        family = families[position % len(families)]
        application = f"made.{family}{position // len(families) + 1}"
        middle = _vary({**TYPICAL, **_FAMILIES[family]}, _SPREAD_OF_APPLICATIONS, random)
        for number in range(sizes[position]):
            kernels.append(_vary(middle, _SPREAD_OF_KERNELS, random))
            names.append(f"{application}.k{number + 1}")
            applications.append(application)
    columns = {name: np.array([kernel[name] for kernel in kernels], float) for name in TYPICAL}
    return columns, tuple(names), tuple(applications)


def _vary(
    numbers: dict[str, float], spread: float, random: np.random.Generator
) -> dict[str, float]:
    """The numbers, each multiplied by a random factor; shares stay below 1, counts whole."""
    varied = {}
    for name, value in numbers.items():
        factor = float(np.exp(random.normal(0, spread)))
        if name in _SHARES and 0 < value < 1:
            odds = value / (1 - value) * factor
            varied[name] = odds / (1 + odds)
        elif name == "waves_per_workgroup":
            varied[name] = (
                float(random.choice(_WAVES_PER_WORKGROUP))
                if spread == _SPREAD_OF_APPLICATIONS
                else value
            )
        elif name == "vgprs":
            varied[name] = float(4 * round(value * factor / 4))
        elif name == "workgroups":
            varied[name] = float(round(value * factor**2))
        else:
            varied[name] = value * factor
        if name in _RANGES:
            varied[name] = float(np.clip(varied[name], *_RANGES[name]))
    return varied


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the made HD 7970 as a tidy table.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("hd7970.parquet"))
    arguments = parser.parse_args()
    make_hd7970(arguments.seed).write(arguments.output)
    print(
        f"{arguments.output}: {KERNELS} kernels at {GRID.size} configurations, made, not measured"
    )
