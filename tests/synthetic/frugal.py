"""Made kernels whose most frugal clocks are known: power is 30 W + 70 W (engine / 1000 MHz)^3.

With time by made.LAWS, the energy of a compute kernel at 16 CUs goes with (30 + 70 x^3) / x, x the
engine clock in GHz: 86.2, 75.2, 82.3 and 100 at 0.4, 0.6, 0.8 and 1.0; and its energy x time with
(30 + 70 x^3) / x^2: 215.5, 125.3, 102.8 and 100. A bandwidth kernel's goes with 30 + 70 x^3 alone:
34.48, 45.12, 65.84 and 100, and inversely with the memory clock.
"""

from dataclasses import replace

import numpy as np

from mlscale import Measurements, Profiles
from synthetic import kernels as made

LAWS = {group: made.LAWS[group] for group in ("compute", "bandwidth")}


def measurements(per_group: int = 3, power_kind: str | None = "board") -> Measurements:
    """Kernels compute0, ..., bandwidth0, ...; base times differ by a factor only."""
    plain = made.measurements(per_group=per_group, laws=LAWS)
    engine = np.array(made.GRID.engine_mhz)[:, None] / 1000
    power = np.broadcast_to(30 + 70 * engine**3, plain.time_samples.shape)
    return replace(
        plain, power_samples=power.copy(), metadata={"origin": "measured", "power_kind": power_kind}
    )


def new_kernels(launches: tuple[float, float] | None = None, power: bool = True) -> Profiles:
    """A compute and a bandwidth kernel, 2 ms and 4 ms at the base, both at the base's 65.84 W."""
    profiles = measurements(per_group=1).profiles(made.GRID.mid)
    return replace(
        profiles,
        time_ms=np.array([2.0, 4.0]),
        power_w=profiles.power_w if power else None,
        launches=None if launches is None else np.array(launches),
    )
