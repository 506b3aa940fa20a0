"""Caches in kernel_tuner's form, written by hand."""

import json
from typing import Any


def entry(block: int, clock: int, **results: Any) -> dict[str, Any]:
    return {"block_size_x": block, "tile": 1, "nvml_gr_clock": clock, **results}


def cache(**entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "device_name": "NVIDIA RTX A4000",
        "kernel_name": "gemm",
        "problem_size": 4096,
        "tune_params_keys": ["block_size_x", "tile", "nvml_gr_clock"],
        "tune_params": {},
        "cache": entries,
    }


GOOD = {
    f"{block},1,{clock}": entry(
        block, clock, time=9.0, times=[6.0, 3.0, 4.0], nvml_power=100.0, core_freq=clock + 5.0
    )
    for block in (64, 128)
    for clock in (600, 1200)
}
CACHE = json.dumps(cache(**GOOD), indent=0)
