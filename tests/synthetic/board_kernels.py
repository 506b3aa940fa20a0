"""Made runs on boards that follow the law of `board-power`, with a known truth.

Time and power are the closed forms written out here, not mlscale's. A run's three parts of power
follow from its share of the limit of LIMIT_W; they and the voltage's floor have a shift of the
GPU's own and a spread of the run's.
"""

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements

CLOCKS = np.linspace(600, 1500, 10)
GRID = ConfigGrid((40,), tuple(CLOCKS.tolist()), (1000.0,))
TOP = GRID.highest
LIMIT_W = 250.0
P = 2.5
MEANS, SLOPES = (
    np.array([0.4, 0.2, 0.7]),
    np.array([1.2, 0.8, 0.0]),
)  # of latents; by ln(share / 0.6)
UNITS = np.array([1.0, 1.0, 0.2])  # of shifts and spreads


def measurements(
    device: str,
    seed: int,
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0),
    spread: float = 0.0,
    noise: float = 0.0,
    count: int = 30,
) -> Measurements:
    """A table of made runs.

    shift: of the latents, the GPU's own. spread: their standard deviation between its runs. Both
    are in UNITS. noise: standard deviation of the log of a power.
    """
    random = np.random.default_rng(seed)
    share, c = random.uniform(0.3, 1, count), random.uniform(0.2, 0.95, count)
    offsets = np.array(shift)[:, None] + spread * random.normal(size=(3, count))
    latents = MEANS[:, None] + SLOPES[:, None] * np.log(share / 0.6) + UNITS[:, None] * offsets
    slowdown = CLOCKS[-1] / CLOCKS
    time = (1 - c[:, None] + c[:, None] * slowdown**P) ** (1 / P)
    parts = relative_parts(latents, time)
    power = LIMIT_W * share[:, None] * parts.sum(axis=0)
    power = power * np.exp(noise * random.normal(size=power.shape))
    shape = (1, count, 1, len(CLOCKS), 1)
    return Measurements(
        device=device,
        grid=GRID,
        kernels=tuple(f"run{k}" for k in range(count)),
        applications=tuple(f"run{k}" for k in range(count)),
        time_samples=(1000 * time).reshape(shape),
        power_samples=power.reshape(shape),
        counter_names=(),
        counter_samples=np.empty((1, count, 1, len(CLOCKS), 1, 0)),
        metadata={"origin": "made", "profile_kind": "sampled"},
    )


def relative_parts(latents: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The three parts of power over all of it at the top clock, (3, count, N)."""
    odds = np.exp(np.array([0 * latents[0], latents[0], latents[1]]))[..., None]
    above = 0.05 * np.log1p(np.exp((CLOCKS / CLOCKS[-1] - latents[2][:, None]) / 0.05))
    squared_voltage = np.exp(3 * above)
    clocked = squared_voltage * CLOCKS / CLOCKS[-1]
    parts = odds * np.array([np.ones_like(time), clocked, squared_voltage**0.5 / time])
    return parts / parts.sum(axis=0)[:, -1:]
