"""Profiles made from named columns, for tests of features and of what reads profiles."""

from collections.abc import Mapping, Sequence

import numpy as np

from mlscale import HardwareConfig, Profiles

BASE = HardwareConfig(16, 1000.0, 1000.0)


def profiles(
    counters: Mapping[str, Sequence[float]],
    time_ms: Sequence[float] | None = None,
    base: HardwareConfig = BASE,
    device: str = "made-gpu",
) -> Profiles:
    """Kernels k0, k1, … with these columns of counters; 1 ms each unless told, no power."""
    count = len(time_ms) if time_ms is not None else len(next(iter(counters.values())))
    names = tuple(f"k{k}" for k in range(count))
    columns = [np.asarray(column, dtype=np.float64) for column in counters.values()]
    return Profiles(
        device=device,
        base=base,
        kernels=names,
        applications=names,
        time_ms=np.ones(count) if time_ms is None else np.asarray(time_ms, dtype=np.float64),
        power_w=None,
        counter_names=tuple(counters),
        counters=np.column_stack(columns) if columns else np.empty((count, 0)),
    )


def one_by_one(several: Profiles) -> list[Profiles]:
    """The same kernels, each in profiles of its own."""
    return [some_of(several, [k]) for k in range(len(several.kernels))]


def some_of(several: Profiles, chosen: Sequence[int]) -> Profiles:
    """The kernels at the given positions, in that order."""
    return several.select(chosen)
