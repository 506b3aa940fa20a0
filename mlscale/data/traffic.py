"""DRAM traffic as a share of what passes at most, which tells wrong clocks and wrong GPUs."""

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.device import Device

IMPOSSIBLE_SHARE = 10.0  # of the peak, by which no clock is mistaken: the time is in another unit
LARGEST_SHARE = 1.05  # of the peak: above it, bytes, time, clock or GPU are not what they are said


def share_of_peak(
    dram_bytes: Floats | float,
    seconds: Floats | float,
    device: Device,
    memory_mhz: Floats | float,
) -> Floats:
    """DRAM bytes as a share of what the bus passes in that time at that memory clock."""
    peak_bytes_per_s = device.peak_bandwidth_gb_per_s(1.0) * 1e9 * np.asarray(memory_mhz)
    return np.asarray(dram_bytes / (peak_bytes_per_s * seconds))
