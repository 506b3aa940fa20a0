"""Made kernels whose power is known: 30 W, 1 nJ a memory access, 0.3 nJ an instruction."""

from typing import Any

import numpy as np

from mlscale import HardwareConfig, Profiles
from synthetic import profiled

BASE = HardwareConfig(2, 1000.0, 1000.0)
INTERCEPT_W, MEMORY_J, INSTRUCTION_J = 30.0, 1e-9, 0.3e-9
MEMORY = ("l2_read_transactions", "l2_write_transactions")


def columns(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Counters of that many kernels, all that the seven sets need and what names the unseen."""
    random = np.random.default_rng(seed)

    def up_to(most: float) -> np.ndarray:
        return np.round(random.uniform(0.05, 1.0, count) * most)

    return {
        "l2_read_transactions": up_to(2e7),
        "l2_write_transactions": up_to(1e7),
        "inst_executed": up_to(1e8),
        "cf_executed": up_to(1e7),
        "branch_efficiency": random.uniform(0.5, 1.0, count),
        "shared_load_transactions": up_to(1e6),
        "shared_load_transactions_per_request": random.uniform(1.0, 2.0, count),
        "shared_store_transactions": up_to(1e6),
        "shared_store_transactions_per_request": random.uniform(1.0, 2.0, count),
        "dram_read_transactions": up_to(1e7),
        "dram_write_transactions": up_to(1e7),
        "local_load_transactions": np.zeros(count),
        "local_store_transactions": np.zeros(count),
        "gld_transactions": np.full(count, 1e7),
        "tex_cache_transactions": np.full(count, 1e6),
        "workgroups": np.full(count, 64.0),
    }


def times_ms(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + 1).uniform(0.5, 2.0, count)


def power_w(counters: dict[str, np.ndarray], time_ms: np.ndarray) -> np.ndarray:
    energy = MEMORY_J * sum(counters[name] for name in MEMORY)
    energy = energy + INSTRUCTION_J * counters["inst_executed"]
    return INTERCEPT_W + energy / (time_ms / 1e3)


def profiles(count: int = 20, per_application: int = 1, **replaced: Any) -> Profiles:
    """Kernels k0, k1, … of applications a0, a1, …; counters replaced by name, None to leave out."""
    counters = columns(count)
    time = times_ms(count)
    power = power_w(counters, time)
    counters |= {
        name: np.asarray(values) for name, values in replaced.items() if values is not None
    }
    counters = {name: c for name, c in counters.items() if replaced.get(name, 0) is not None}
    applications = tuple(f"a{k // per_application}" for k in range(count))
    return profiled.profiles(counters, time, BASE, applications=applications, power_w=power)


def rows(made: Profiles) -> list[dict[str, Any]]:
    """The same as rows of a tidy table."""
    return [
        {
            "device": made.device,
            "application": made.applications[k],
            "kernel": kernel,
            **made.base.as_dict(),
            "time_ms": made.time_ms[k],
            "power_w": made.power_w[k],
            **dict(zip(made.counter_names, made.counters[k].tolist(), strict=True)),
        }
        for k, kernel in enumerate(made.kernels)
    ]
