"""Made runs that follow the law of `runs`, with a known truth.

Time and power are the closed forms written out here, not mlscale's. A run's unknowns, logit c,
ln p, ln a, x0 and ln s, are Gaussian with MEANS and SPREADS.
"""

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements

CLOCKS = np.linspace(600, 1500, 10)
GRID = ConfigGrid((40,), tuple(CLOCKS.tolist()), (1000.0,))
TOP = GRID.highest
MEANS = np.array([1.0, 0.7, 0.5, 0.75, 0.8])
SPREADS = np.array([1.5, 0.3, 0.4, 0.08, 0.2])


def measurements(device: str, seed: int, noise: float = 0.0, count: int = 30) -> Measurements:
    """A table of made runs; noise: standard deviation of the logs of times and powers."""
    random = np.random.default_rng(seed)
    unknowns = MEANS[:, None] + SPREADS[:, None] * random.normal(size=(5, count))
    logit, log_p, log_odds, floor, log_slope = unknowns[:, :, None]
    c, p, odds, slope = 1 / (1 + np.exp(-logit)), np.exp(log_p), np.exp(log_odds), np.exp(log_slope)
    time = (1 - c + c * (CLOCKS[-1] / CLOCKS) ** p) ** (1 / p)
    squared_voltage = np.exp(slope * 0.08 * np.log1p(np.exp((CLOCKS / CLOCKS[-1] - floor) / 0.08)))
    power = (1 + odds / time) * squared_voltage
    time, power = (one * np.exp(noise * random.normal(size=one.shape)) for one in (time, power))
    shape = (1, count, 1, len(CLOCKS), 1)
    return Measurements(
        device=device,
        grid=GRID,
        kernels=tuple(f"run{k}" for k in range(count)),
        applications=tuple(f"run{k}" for k in range(count)),
        time_samples=(1000 * time).reshape(shape),
        power_samples=(200 * power / power[:, -1:]).reshape(shape),
        counter_names=(),
        counter_samples=np.empty((1, count, 1, len(CLOCKS), 1, 0)),
        metadata={"origin": "made", "profile_kind": "sampled"},
    )
