"""GTX 980 kernels whose inputs of Wang and Chu's model, or whose times, are known by hand."""

import json
from pathlib import Path

import numpy as np

from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.papers.wang_chu import predict_time_ms
from mlscale.papers.wang_chu_gpus import load_gpu
from mlscale.papers.wang_chu_inputs import WarpInputs, derive_inputs

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


def profiles_of(*kernels: dict[str, float], **at: object) -> Profiles:
    """Profiles on a GTX 980 at 700 / 700 MHz, 1 ms each; a column for each counter."""
    names = tuple(kernels[0])
    given_at = {"device": "gtx980", "base": HardwareConfig(16, 700.0, 700.0), **at}
    return Profiles(
        **given_at,
        kernels=tuple(f"k{k}" for k in range(len(kernels))),
        applications=tuple(f"a{k}" for k in range(len(kernels))),
        time_ms=np.ones(len(kernels)),
        power_w=None,
        counter_names=names,
        counters=np.array([[kernel[name] for name in names] for kernel in kernels]),
    )


def derive(*kernels: dict[str, float]) -> WarpInputs:
    return derive_inputs(profiles_of(*kernels), GTX_980)


def measurements() -> Measurements:
    """Two kernels whose times are exactly the model's absolute ones."""
    profiles = profiles_of(MEMORY_BOUND, COMPUTE_BOUND)
    mesh = np.meshgrid(GRID.cu_count, GRID.engine_mhz, GRID.memory_mhz, indexing="ij")
    time = predict_time_ms(derive_inputs(profiles, GTX_980), GTX_980, *mesh[1:])
    counters = np.broadcast_to(
        profiles.counters[:, None, None, None, :], (*time.shape, len(KERNEL))
    )
    return Measurements(
        device="gtx980",
        grid=GRID,
        kernels=("memory", "compute"),
        applications=("memory", "compute"),
        time_samples=time[None],
        power_samples=np.ones_like(time)[None],
        counter_names=profiles.counter_names,
        counter_samples=counters[None].copy(),
    )


def gpu_file(folder: Path, parameters: dict[str, float] | None = None, **changed: object) -> str:
    """A gpu.json as `collect --micro` writes it; DRAM gives a CU a sector each 10 memory cycles.

    parameters, changed: of Wang and Chu's model, and of the document, other than these.
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
        "device": "gtx980", "name": "made", "wang_chu": {**latencies, **row, **(parameters or {})},
        "compute_unit": unit, "volkov": [],
    }  # fmt: skip
    path = folder / "gpu.json"
    path.write_text(json.dumps({**document, **changed}))
    return str(path)
