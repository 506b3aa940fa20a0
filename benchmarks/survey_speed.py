"""Volkov's survey on 1000 x 1000 points (occupancy, intensity): seconds for each model.

The aim is less than a second for the whole survey. The peer in the same run is the classical
bounds by a plain Python loop over the same points.
"""

from collections.abc import Iterator

import numpy as np
from table import Row
from timing import seconds

from mlscale.papers.volkov import (
    GTX_980,
    MODELS,
    hong_kim_case,
    saavedra_barrera_warps,
    throughput_bound,
    vendor_warps,
)

WARPS = np.linspace(1, 64, 1000)
INTENSITIES = np.geomspace(0.1, 1000, 1000)[:, np.newaxis]


def loop_over_bounds() -> list[float]:
    """The classical bounds, point by point."""
    a, latency = GTX_980.arithmetic_latency_cycles, GTX_980.memory_latency_cycles
    i, t, b = GTX_980.issue_per_cycle, GTX_980.arithmetic_per_cycle, GTX_980.memory_per_cycle
    return [
        min(n * (alpha + 1) / (alpha * a + latency), i, t * (1 + 1 / alpha), b * (1 + alpha))
        for alpha in INTENSITIES.ravel().tolist()
        for n in WARPS.tolist()
    ]


def rows() -> Iterator[Row]:
    """The seconds of all models together, of the slowest, and of the loop."""
    times = {
        name: seconds(lambda model=model: model(WARPS, INTENSITIES, GTX_980))  # type: ignore[misc]
        for name, model in MODELS.items()
    }
    times["Hong & Kim, case"] = seconds(lambda: hong_kim_case(WARPS, INTENSITIES))
    for name, rule in (
        ("throughput bound", throughput_bound),
        ("vendor's guide", vendor_warps),
        ("Saavedra-Barrera", saavedra_barrera_warps),
    ):
        times[name] = seconds(lambda rule=rule: rule(INTENSITIES))  # type: ignore[misc]
    whole, loop = sum(times.values()), seconds(loop_over_bounds)
    what = f"Volkov's survey, {len(times)} models, 1000 x 1000 points"
    peer_is = "the classical bounds alone, by a loop"
    yield Row.beside(what, whole, loop, "{:.2f} s", peer_is, "{:.1f}")
    slowest = max(times, key=lambda name: times[name])
    yield Row(f"its slowest model, {slowest}", f"{times[slowest]:.2f} s")
