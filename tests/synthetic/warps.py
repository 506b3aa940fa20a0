"""GTX 980 kernels whose inputs of Wang and Chu's model, or whose times, are known by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.papers.wang_chu import dram_delay_cycles, dram_latency_cycles, predict_time_ms
from mlscale.papers.wang_chu_inputs import GpuParameters, WarpInputs, derive_inputs, load_gpu
from synthetic import profiled

GTX_980 = load_gpu("gtx980")

# One kernel of 100 warps. By hand, per warp: 16 global transactions of which half miss; 2 loads
# and 1 store; 10 shared transactions in 5 instructions; 50 - 3 - 5 = 42 other instructions.
KERNEL = {
    "warps": 100.0,
    "achieved_occupancy": 0.5,
    "inst_per_warp": 50.0,
    "dram_read_transactions": 600.0,
    "dram_write_transactions": 200.0,
    "l2_read_transactions": 1200.0,
    "l2_write_transactions": 400.0,
    "gld_transactions": 1600.0,
    "gld_transactions_per_request": 8.0,
    "gst_transactions": 400.0,
    "gst_transactions_per_request": 4.0,
    "shared_load_transactions": 1000.0,
    "shared_load_transactions_per_request": 2.0,
    "shared_store_transactions": 0.0,
    "shared_store_transactions_per_request": 0.0,
    "inst_fp_64": 0.0,
    "tex_cache_transactions": 800.0,
}
MEMORY_BOUND = {**KERNEL, **{n: 1000 * KERNEL[n] for n in KERNEL if n.endswith("_transactions")}}
MEMORY_BOUND["warps"] = 100_000.0
COMPUTE_BOUND = {**MEMORY_BOUND, "inst_per_warp": 2000.0}
GRID = ConfigGrid((16,), (400.0, 700.0, 1000.0), (400.0, 700.0, 1000.0))
BASE = HardwareConfig(16, 700.0, 700.0)


def profiles_of(*kernels: dict[str, float], **at: Any) -> Profiles:
    """Profiles on a GTX 980 at 700 / 700 MHz, 1 ms each; a column for each counter."""
    counters = {name: [kernel[name] for kernel in kernels] for name in kernels[0]}
    return profiled.profiles(counters, **{"device": "gtx980", "base": BASE, **at})


def dram(gpu: GpuParameters, engine_mhz: float, memory_mhz: float) -> tuple[float, float]:
    """Latency and delay of a DRAM transaction [cycles], by Eq. (4) and Table III."""
    clocks = engine_mhz, memory_mhz
    latency = dram_latency_cycles(*clocks, gpu.dram_latency_slope, gpu.dram_latency_offset)
    delay = dram_delay_cycles(*clocks, gpu.dram_delay_slope, gpu.dram_delay_offset)
    return float(latency), float(delay)


def derive(*kernels: dict[str, float]) -> WarpInputs:
    return derive_inputs(profiles_of(*kernels), GTX_980)


def measurements() -> Measurements:
    """Two kernels whose times are exactly the model's absolute ones."""
    profiles = profiles_of(MEMORY_BOUND, COMPUTE_BOUND)
    mesh = np.meshgrid(GRID.cu_count, GRID.engine_mhz, GRID.memory_mhz, indexing="ij")
    time = predict_time_ms(derive_inputs(profiles, GTX_980), GTX_980, *mesh[1:])
    counters = dict(zip(profiles.counter_names, profiles.counters.T, strict=True))
    names = ("memory", "compute")
    return profiled.measurements(
        *(GRID, time, np.ones_like(time), counters),
        device="gtx980",
        kernels=names,
        applications=names,
        metadata={},
    )


def gpu_file(folder: Path, **changed: object) -> str:
    """A gpu.json as `collect --micro` writes it; DRAM gives a CU a sector each 10 memory cycles.

    changed: of the document, other than this.
    """
    latencies = {"dram_latency_slope": 0, "dram_latency_offset": 400, "l2_latency": 200}
    row = {
        "dram_delay_slope": 0, "dram_delay_offset": 10, "l2_delay": 1, "shared_latency": 28,
        "shared_delay": 1, "instruction_factor": 1, "fp64_delay": 8, "source": "made", "note": "",
    }  # fmt: skip
    unit = dict.fromkeys(
        ("arithmetic_latency_cycles", "memory_latency_cycles", "issue_per_cycle",
         "arithmetic_per_cycle", "memory_per_cycle"), 1.0,
    )  # fmt: skip
    document = {
        "device": "gtx980", "name": "made", "wang_chu": {**latencies, **row},
        "compute_unit": unit, "volkov": [],
    }  # fmt: skip
    path = folder / "gpu.json"
    path.write_text(json.dumps({**document, **changed}))
    return str(path)
