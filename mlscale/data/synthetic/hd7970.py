"""Made measurements of 108 kernels of 49 applications on the grid of Wu et al., HPCA 2015.

Made, not measured: kernels are drawn as small sets of physical numbers and run on the machine of
gcn_machine.py. The four shapes of the paper's Fig. 1 are there as kernels of `made.fig1`.
"""

from dataclasses import fields

import numpy as np

from mlscale.counters.features import TABLE_2
from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.synthetic.gcn_machine import LANES, LDS_BYTES, MadeKernels, evaluate

GRID = ConfigGrid(
    cu_count=tuple(range(4, 33, 4)),
    engine_mhz=tuple(float(clock) for clock in range(300, 1001, 100)),
    memory_mhz=tuple(float(clock) for clock in range(475, 1376, 150)),
)
KERNELS, APPLICATIONS = 108, 49
TIME_NOISE, POWER_NOISE, COUNTER_NOISE = 0.01, 0.02, 0.005  # relative standard deviations

_TYPICAL = {
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

# How far (standard deviation of the logarithm) a number strays between the applications of a
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
# Counters that repeat to the digit from run to run.
_STATIC = (
    *("VALUInsts", "SALUInsts", "VFetchInsts", "SFetchInsts", "VWriteInsts", "LDSInsts"),
    *("VALUUtilization", "Occupancy", "NumWorkGroups"),
)


def make_hd7970(seed: int = 0) -> Measurements:
    """The made data set: time, dynamic power and the counters of Table II at 448 configurations.

    Noise is multiplicative: 1 % on time, 2 % on power, 0.5 % on counters that change from run to
    run. The same seed gives the same numbers.
    """
    random = np.random.default_rng(seed)
    kernels, names, applications = _draw(random)
    run = evaluate(kernels, GRID)
    shape = run.seconds.shape
    counters = np.stack([run.counters[name] for name in TABLE_2], axis=-1)
    varies = np.array([name not in _STATIC for name in TABLE_2])
    noise = random.normal(0, COUNTER_NOISE, counters.shape) * varies
    return Measurements(
        device="hd7970",
        grid=GRID,
        kernels=names,
        applications=applications,
        time_samples=(1e3 * run.seconds * np.exp(random.normal(0, TIME_NOISE, shape)))[None],
        power_samples=(run.dynamic_power_w * np.exp(random.normal(0, POWER_NOISE, shape)))[None],
        counter_names=TABLE_2,
        counter_samples=(counters * np.exp(noise))[None],
        metadata={
            "origin": "made",
            "power_kind": "dynamic",
            "counter_tool": "made",
            "source": f"mlscale datasets make hd7970 --seed {seed}",
            "noise": {"time": TIME_NOISE, "power": POWER_NOISE, "counters": COUNTER_NOISE},
            "feature_status": dict.fromkeys(TABLE_2, "exact"),
        },
    )


def _draw(random: np.random.Generator) -> tuple[MadeKernels, tuple[str, ...], tuple[str, ...]]:
    """The kernels of Fig. 1 as they stand, then families in turn until there are enough."""
    drawn = [{**_TYPICAL, **numbers} for numbers in _FIG1.values()]
    names = [f"made.fig1.{shape}" for shape in _FIG1]
    applications = ["made.fig1"] * len(_FIG1)
    families = list(_FAMILIES)
    others = APPLICATIONS - 1
    sizes = np.diff(np.linspace(0, KERNELS - len(_FIG1), others + 1).round()).astype(int)
    for position in range(others):
        family = families[position % len(families)]
        application = f"made.{family}{position // len(families) + 1}"
        middle = _stray({**_TYPICAL, **_FAMILIES[family]}, _SPREAD_OF_APPLICATIONS, random)
        for number in range(sizes[position]):
            drawn.append(_stray(middle, _SPREAD_OF_KERNELS, random))
            names.append(f"{application}.k{number + 1}")
            applications.append(application)
    columns = {f.name: np.array([k[f.name] for k in drawn], float) for f in fields(MadeKernels)}
    return MadeKernels(**columns), tuple(names), tuple(applications)


def _stray(
    numbers: dict[str, float], spread: float, random: np.random.Generator
) -> dict[str, float]:
    """The numbers, each moved by a random factor; shares stay below 1, counts whole."""
    moved = {}
    for name, value in numbers.items():
        factor = float(np.exp(random.normal(0, spread)))
        if name in _SHARES and 0 < value < 1:
            odds = value / (1 - value) * factor
            moved[name] = odds / (1 + odds)
        elif name == "waves_per_workgroup":
            moved[name] = (
                float(random.choice(_WAVES_PER_WORKGROUP))
                if spread == _SPREAD_OF_APPLICATIONS
                else value
            )
        elif name == "vgprs":
            moved[name] = float(4 * round(value * factor / 4))
        elif name == "workgroups":
            moved[name] = float(round(value * factor**2))
        else:
            moved[name] = value * factor
        if name in _RANGES:
            moved[name] = float(np.clip(moved[name], *_RANGES[name]))
    return moved
