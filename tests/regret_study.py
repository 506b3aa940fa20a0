"""A small study of advice, and measurements that one kernel is made nonsense in."""

from dataclasses import replace
from typing import Any

import numpy as np

from mlscale import HardwareConfig, Measurements
from mlscale.studies.regret import RegretStudy


def regret_of(data: Measurements, **options: Any) -> RegretStudy:
    """A study of one table, of `nearest`, energy, the middle and one seed unless told."""
    usual: dict[str, Any] = {"predictors": ["nearest"], "objectives": ["energy"], "seeds": 1}
    given = {"features": ["raw"], "clusters": 2, "base": "mid", **usual, **options}
    return RegretStudy(tables={"made": data}, **given)


def spoilt(data: Measurements, base: HardwareConfig, k: int) -> Measurements:
    """All that was measured of one kernel away from the base made nonsense."""
    random = np.random.default_rng(0)
    time, power = data.time_samples.copy(), data.power_samples
    assert power is not None
    power = power.copy()
    elsewhere = np.ones(data.grid.shape, dtype=bool)
    elsewhere[data.grid.index(base)] = False
    for samples in (time, power):
        samples[0, k][elsewhere] = random.uniform(1, 100, elsewhere.sum())
    return replace(data, time_samples=time, power_samples=power)
