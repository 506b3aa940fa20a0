"""Made kernels whose surfaces are known up to noise of known size: the curve, a split, and noise.

What the counters tell of a kernel is known: its share of memory time follows its DRAM use and its
occupancy, memory's share of its dynamic energy follows its DRAM use. What they do not tell is
drawn: Gaussian noise of known deviation on both log odds, and on each measurement. The expected
surfaces without noise are given beside the measured ones, so that the error that no predictor
can avoid is known, too.
"""

from dataclasses import dataclass

import numpy as np

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from synthetic import profiled
from synthetic.networks import sigmoid

GRID = ConfigGrid((16,), (500.0, 700.0, 900.0, 1100.0, 1300.0), (1000.0, 2000.0, 3000.0, 4000.0))
SHARPNESS = 4.0
SHARE_NOISE = 0.35  # standard deviation of the log odds of memory's share of time
SPLIT_NOISE = 0.3  # in the log odds of memory's share of energy
MEASUREMENT_NOISE = 0.005  # in the log of a time or a power
OCCUPANCY_SLOPE = 4.0  # log odds of memory's share, per unit of occupancy
PEAK_BYTES_PER_MS_AND_MHZ = 256 / 8 * 2 * 1e3  # a GTX 980's: 256 bits, 2 transfers per cycle
LARGEST_USE = 0.85


@dataclass(frozen=True, eq=False)
class NoisyKernels:
    """Measured kernels; time and power (K, C, E, M) relative to mid-grid as they would be
    without noise, which is the best that any predictor can expect."""

    measurements: Measurements
    expected_time: np.ndarray
    expected_power: np.ndarray


def kernels(
    count: int, seed: int, device: str = "gtx980", share_offset: float = 0.0
) -> NoisyKernels:
    """Draw as many kernels, each of an application of its own, on one GPU.

    share_offset: that this GPU adds to the log odds of memory's share of time.
    """
    random = np.random.default_rng(seed)
    use = random.uniform(0.03, 1.0, count)
    occupancy = random.uniform(0.1, 0.9, count)
    base_ms = random.uniform(0.5, 5.0, count)
    base_dynamic_w = random.uniform(40, 90, count)
    share_odds = _odds(use**SHARPNESS) + OCCUPANCY_SLOPE * (occupancy - 0.5) + share_offset
    split_odds = -2.0 + 3.0 * use
    time = _time(share_odds + random.normal(0, SHARE_NOISE, count))
    power = _power(split_odds + random.normal(0, SPLIT_NOISE, count), time, base_dynamic_w)
    expected_time = _time(share_odds)
    expected_power = _power(split_odds, expected_time, base_dynamic_w)
    shape = time.shape
    time_ms = base_ms[:, None, None, None] * time
    time_ms = time_ms * np.exp(random.normal(0, MEASUREMENT_NOISE, shape))
    power_w = power * np.exp(random.normal(0, MEASUREMENT_NOISE, shape))
    c, e, m = GRID.index(GRID.mid)
    sectors = LARGEST_USE * use * PEAK_BYTES_PER_MS_AND_MHZ * GRID.mid.memory_mhz * base_ms / 32
    counters = {
        "dram_read_transactions": 0.7 * sectors,
        "dram_write_transactions": 0.3 * sectors,
        "achieved_occupancy": occupancy,
    }
    metadata = {"origin": "made", "power_kind": "board"}
    measurements = profiled.measurements(
        GRID, time_ms, power_w, counters, device=device, metadata=metadata
    )
    at_base = expected_power[:, c, e, m][:, None, None, None]
    return NoisyKernels(measurements, expected_time, expected_power / at_base)


def _odds(share: np.ndarray) -> np.ndarray:
    share = np.clip(share, 0.001, 0.98)
    return np.log(share / (1 - share))


def _clocks() -> tuple[np.ndarray, np.ndarray]:
    """Engine and memory clock of each configuration, relative to mid-grid."""
    engine, memory = np.meshgrid(GRID.engine_mhz, GRID.memory_mhz, indexing="ij")
    return engine[None] / GRID.mid.engine_mhz, memory[None] / GRID.mid.memory_mhz


def _time(share_odds: np.ndarray) -> np.ndarray:
    """The p-norm of two parts: the rest follows the engine clock, memory the memory clock."""
    share = sigmoid(share_odds)[:, None, None, None]
    engine, memory = _clocks()
    parts = (1 - share) * engine**-SHARPNESS + share * memory**-SHARPNESS
    return parts ** (1 / SHARPNESS)


def _power(split_odds: np.ndarray, time: np.ndarray, dynamic_w: np.ndarray) -> np.ndarray:
    """Idle watts, and dynamic energy of core (with voltage: clock squared) and memory / time."""
    split = sigmoid(split_odds)[:, None, None, None]
    engine, memory = _clocks()
    energy = (1 - split) * engine**1.5 + split * memory**0.3
    idle = 25 + 8 * engine + 4 * memory
    return idle + dynamic_w[:, None, None, None] * energy / time
