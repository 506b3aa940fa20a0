"""What another memory clock does to board power: less work while waiting, and a cheaper interface.

Of no GPU that `board` learns power from can the memory clock be set. Two constants, measured on a
GTX 980 and a GTX 1080 Ti (docs/decisions/0016-board-power.md), are taken for all others.
"""

from collections.abc import Callable

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.devices import known_device
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces

WAITING = 0.4  # of the board's limit: what the GPU draws while all its waves wait for memory
INTERFACE = 0.12  # of the board's limit: what the memory draws by its clock alone, at the rated one
WAITING_SHARE = 0.5  # of the kernel's power, where the board's limit is not known
LARGEST_INTERFACE_SHARE = 0.5  # of the kernel's power; not measured, for boards that hardly work
LEAST = 0.05  # of the base's power; nothing runs on less
# Of log power per log memory clock: what is left where it is measured there, and the half-width of
# the interval. Assumed, not learnt.
MISFIT_PER_MEMORY_CLOCK, SPREAD_PER_MEMORY_CLOCK = 0.1, 0.2


def with_memory_clock(
    power_w: Floats, slowdown: Floats, memory: Floats, rated: float, limit_w: float
) -> Floats:
    """Return power (K, E, M) [W] at other memory clocks.

    power_w (K, E): at the base's memory clock. slowdown (K, E, M): time over that there. memory
    (M,): clocks relative to the base's; rated: the rated clock, likewise. limit_w: the board's
    default limit; where it is NaN, W is half the power, and D is left out.

    The two constants are for boards that are busy: W is at most the power, and D half of it.

    P(m) = W + (P - W) / slowdown - D (1 - m) / rated: W is drawn by a GPU whose work waits, what
    is above it goes with the rate of work, and D, at the rated clock, with the memory clock.

    By hand, at half the clock and half the rate of work, of a board of 200 W: W is 80 and D is 24.

    >>> import numpy as np
    >>> half = np.array([[[2.0]]])
    >>> with_memory_clock(np.array([[180.0]]), half, np.array([0.5]), 1.0, 200.0)
    array([[[118.]]])
    """
    power = power_w[..., None]
    waiting, interface = WAITING_SHARE * power, np.zeros_like(memory)
    if not np.isnan(limit_w):
        waiting = np.minimum(WAITING * limit_w, power)
        of_clock = np.minimum(INTERFACE * limit_w, LARGEST_INTERFACE_SHARE * power)
        interface = of_clock * (1 - memory) / rated
    return np.maximum(waiting + (power - waiting) / slowdown - interface, LEAST * power)


def on_grid(profiles: Profiles, times: Surfaces) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return log times (K, E) at the memory clock nearest the base's, and what takes power on.

    The latter gives log power ratios (K, N) on the grid by those at its engine clocks (K, E).
    times: of the runs on that grid, which has one CU count, relative to the profiles' base.
    """
    device = known_device(profiles.device)
    base_w = profiles.base_power_w[:, None] / profiles.gpu_count
    base_mhz = profiles.base.memory_mhz
    memory = np.array(times.grid.memory_mhz) / base_mhz
    factors = times.values[:, 0]
    at_base = factors[:, :, int(np.abs(np.log(memory)).argmin())]
    limit_w = device.tdp_w if device and device.tdp_w else np.nan
    rated = device.datasheet.memory_mhz / base_mhz if device and device.datasheet else 1.0

    def to_grid(logs: Floats) -> Floats:
        slowdown = factors / at_base[..., None]
        power_w = with_memory_clock(base_w * np.exp(logs), slowdown, memory, rated, limit_w)
        return np.asarray(np.log(power_w.reshape(len(base_w), -1) / base_w))

    return np.log(at_base), to_grid
