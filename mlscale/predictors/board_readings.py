"""The readings that `board` predicts from: the highest first, none of them crossing: NumPy.

Time does not rise with the clock and power does not fall, so readings that do are taken for what
noise makes of equal ones: each is their mean. So the order of readings changes nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import QUANTITIES, MeasuredPoint, Profiles


def from_highest_reading(profiles: Profiles, quantity: str, grid: ConfigGrid) -> Profiles:
    """The same profiles with the reading of the highest engine clock as the base, points by clock.

    Or of the most CUs. Of readings of every run at the base's memory clock. The base stays where
    it is outside the grid's range.
    """
    base, name = profiles.base, QUANTITIES[quantity]
    top = first = MeasuredPoint(
        base, profiles.time_ms, profiles.power_w, log_time_sd=profiles.log_time_sd
    )
    for point in profiles.points if grid.spans(base) else ():
        values = getattr(point, name)
        is_known = values is not None and not np.isnan(values).any()
        is_alike = point.config.memory_mhz == base.memory_mhz
        if is_known and is_alike and _core(point) > _core(top):
            top = point
    others = [point for point in (first, *profiles.points) if point is not top]
    others.sort(key=lambda point: (_core(point), point.config.memory_mhz))
    return replace(
        profiles, base=top.config, time_ms=top.time_ms, power_w=top.power_w, points=tuple(others),
        log_time_sd=top.log_time_sd,
    )  # fmt: skip


def without_crossings(profiles: Profiles) -> Profiles:
    """The same profiles, of readings that cross the mean of their logs; see `pooled`.

    Those at other memory clocks than the base's stay.
    """
    base = MeasuredPoint(profiles.base, profiles.time_ms, profiles.power_w)
    readings = {one.config: one for one in (*profiles.points, base)}
    alike = [one for one in readings.values() if one.config.memory_mhz == base.config.memory_mhz]
    alike.sort(key=_core)
    for name, rising in (("time_ms", alike[::-1]), ("power_w", alike)):
        having = [one.config for one in rising if getattr(one, name) is not None]
        values = pooled(np.array([getattr(readings[config], name) for config in having]))
        for config, made in zip(having, values, strict=True):
            readings[config] = replace(readings[config], **{name: made})
    base = readings[base.config]
    points = tuple(readings[point.config] for point in profiles.points)
    return replace(profiles, time_ms=base.time_ms, power_w=base.power_w, points=points)


def pooled(values: Floats) -> Floats:
    """Values (P, K) that nowhere fall from row to row: those that do become their mean in the log.

    Pool adjacent violators, each kernel by itself; NaN stays. Ayer et al., Ann. Math. Stat. 26,
    1955.
    """
    values = values.copy()
    for column in values.T:
        known = np.flatnonzero(np.isfinite(column))
        blocks: list[list[float]] = []
        for value in column[known].tolist():
            blocks.append([value])
            while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
                blocks[-2:] = [blocks[-2] + blocks[-1]]
        column[known] = [_mean(block) for block in blocks for _ in block]
    return values


def _mean(block: Sequence[float]) -> float:
    """The geometric mean; of one value itself."""
    return block[0] if len(block) == 1 else float(np.exp(np.log(block).mean()))


def _core(point: MeasuredPoint) -> float:
    return point.config.cu_count * point.config.engine_mhz
