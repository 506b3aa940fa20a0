"""Rows in the forms of public tables of sampled profiles, with numbers made by hand."""

from typing import Any

SHARES = ("SMACT", "SMOCC", "DRAMA", "TENSO", "FP64A", "FP32A", "FP16A")


def micro_rows() -> list[dict[str, Any]]:
    """NV-DVFS-Benchmark's form: two micro-benchmarks of one program and one of another."""
    return [
        {
            **{name: round(0.1 * (1 + n), 1) for n, name in enumerate(SHARES)},
            "argNo": f"input00{k}",
            "average_power": 100 + clock / 100,
            "benchmark": benchmark,
            "core_frequency": clock,
            "kernel": "benchmark_int",
            "memory_frequency": 877,
            "time": (3000 + k) / clock,
        }
        for clock in (1000, 1500)
        for k, benchmark in enumerate(("cache", "cache", "mix"))
    ]


def application_rows() -> list[dict[str, Any]]:
    """The A100's form: two applications."""
    return [
        {
            "": row,
            "gr_engine_active": 0.9,
            "sm_active": 0.8,
            "sm_occupancy": 0.5,
            "tensor_activity": 0.0,
            "dram_active": 0.25,
            "fp64_active": 0.0,
            "fp32_active": 0.125,
            "fp16_active": 0.0,
            "gpu_utilization": 95.0,
            "mem_copy_utilization": 12.5,
            "mem_util_samples": 12.0,
            "gpu_util_samples": 95.0,
            "total_energy_consumption": 1e9 + row,
            "power_usage": 100 + clock / 100,
            "gpu_temp": 35.0,
            "sm_clock": clock,
            "run_time": 1500 / clock,
            "application": application,
            "sm_app_clock": clock,
        }
        for row, (application, clock) in enumerate(
            (application, clock) for application in ("lbm", "fft") for clock in (1500, 1000)
        )
    ]
