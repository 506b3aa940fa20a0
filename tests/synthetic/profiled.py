"""Profiles and measurements made from named columns, for tests of what reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlscale import ConfigGrid, HardwareConfig, Measurements, Profiles

BASE = HardwareConfig(16, 1000.0, 1000.0)


def profiles(
    counters: Mapping[str, Sequence[float]],
    time_ms: Sequence[float] | None = None,
    base: HardwareConfig = BASE,
    device: str = "made-gpu",
    **others: Any,
) -> Profiles:
    """Kernels k0, k1, … with these columns of counters; 1 ms each unless told, no power.

    others: of the fields of Profiles, as they are.
    """
    count = len(time_ms) if time_ms is not None else len(next(iter(counters.values())))
    names = tuple(f"k{k}" for k in range(count))
    columns = [np.asarray(column, dtype=np.float64) for column in counters.values()]
    made = Profiles(
        device=device,
        base=base,
        kernels=names,
        applications=names,
        time_ms=np.ones(count) if time_ms is None else np.asarray(time_ms, dtype=np.float64),
        power_w=None,
        counter_names=tuple(counters),
        counters=np.column_stack(columns) if columns else np.empty((count, 0)),
    )
    return replace(made, **others)


def measurements(
    grid: ConfigGrid,
    time_ms: np.ndarray,
    power_w: np.ndarray | None,
    counters: Mapping[str, np.ndarray],
    **others: Any,
) -> Measurements:
    """Kernels k0, k1, … of applications app0, app1, …, measured once at every configuration.

    time_ms, power_w (K, C, E, M); counters (K,), the same at every configuration. others: of the
    fields of Measurements, as they are.
    """
    columns = np.stack(list(counters.values()), axis=-1)[:, None, None, None]
    made = Measurements(
        device="made-gpu",
        grid=grid,
        kernels=tuple(f"k{k}" for k in range(len(time_ms))),
        applications=tuple(f"app{k}" for k in range(len(time_ms))),
        time_samples=time_ms[None],
        power_samples=None if power_w is None else power_w[None],
        counter_names=tuple(counters),
        counter_samples=np.broadcast_to(columns, (*time_ms.shape, len(counters)))[None].copy(),
        metadata={"origin": "made"},
    )
    return replace(made, **others)


def one_by_one(several: Profiles) -> list[Profiles]:
    """The same kernels, each in profiles of its own."""
    return [some_of(several, [k]) for k in range(len(several.kernels))]


def some_of(several: Profiles, chosen: Sequence[int]) -> Profiles:
    """The kernels at the given positions, in that order."""
    return several.select(chosen)
