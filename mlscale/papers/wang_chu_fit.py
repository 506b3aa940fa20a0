"""Fitting the DRAM parameters of Wang and Chu's model to micro-benchmarks of a GPU.

Source: Wang and Chu 2018, section IV-A: a latency benchmark (Table II, Eq. (4)) and a
bandwidth benchmark (Table III). A fit goes into a `Gpu` by `dataclasses.replace`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats
from mlscale.errors import InputError


@dataclass(frozen=True)
class LineFit:
    """A fitted line: slope x + offset, and the share of the variance that it explains."""

    slope: float
    offset: float
    r_squared: float


def fit_dram_latency(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, latency_cycles: ArrayLike
) -> LineFit:
    """dram_latency_slope [cycles] and dram_latency_offset [cycles] of Eq. (4), least squares.

    latency_cycles: of one DRAM transaction without contention, in engine cycles, one for each
    pair of clocks [MHz]. Raises InputError unless the pairs have two ratios of clocks at least.
    """
    engine, memory, latency = _samples(engine_mhz, memory_mhz, latency_cycles)
    return _line(engine / memory, latency, "ratios of engine to memory clock")


def fit_dram_delay(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, delay_cycles: ArrayLike
) -> LineFit:
    """dram_delay_slope [cycles MHz] and dram_delay_offset [cycles], least squares.

    delay_cycles: time between two 32-byte transactions of a CU with the memory saturated, in
    engine cycles, one for each pair of clocks [MHz]. It is scaled to equal clocks first, where
    Table III has its values. For that table the authors use 805.03 and 8.1762 (R2 0.980); least
    squares gives 726.127 and 8.28061. Raises InputError unless there are two memory clocks.
    """
    engine, memory, delay = _samples(engine_mhz, memory_mhz, delay_cycles)
    return _line(1 / memory, delay * memory / engine, "memory clocks")


def _samples(engine_mhz: ArrayLike, memory_mhz: ArrayLike, cycles: ArrayLike) -> list[Floats]:
    columns = [np.asarray(c, dtype=np.float64) for c in (engine_mhz, memory_mhz, cycles)]
    shapes = {column.shape for column in columns}
    if len(shapes) > 1 or columns[0].ndim != 1:
        raise InputError(
            "a fit needs as many engine clocks as memory clocks and cycles, not "
            + ", ".join(str(column.size) for column in columns)
        )
    for name, column in zip(("engine_mhz", "memory_mhz", "cycles"), columns, strict=True):
        bad = np.flatnonzero(~(np.isfinite(column) & (column > 0)))
        if bad.size:
            raise InputError(
                f"sample {bad[0] + 1}, {name}: {column[bad[0]]:g} must be positive and finite"
            )
    return columns


def _line(x: Floats, y: Floats, what: str) -> LineFit:
    if np.unique(x).size < 2:
        raise InputError(f"a fit needs samples at two {what} at least, not {np.unique(x).size}")
    slope, offset = np.polynomial.Polynomial.fit(x, y, 1).convert().coef[::-1]
    spread = np.sum((y - y.mean()) ** 2)
    residual = np.sum((y - slope * x - offset) ** 2)
    return LineFit(float(slope), float(offset), float(1 - residual / spread) if spread else 1.0)
