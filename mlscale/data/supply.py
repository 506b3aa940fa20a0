"""What power a board can supply: its limits, or what it was measured to draw."""

import math
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.device_table import known_device
from mlscale.data.profiles import Profiles

MOST_SUPPLIED = "the highest power limit known of the board, or the most it was measured to draw"
ROUNDING = 1e-9  # of power, that is no excess
AS_MEASURED = 0.02  # of a power that was measured: so nearly predictions meet it


@dataclass(frozen=True)
class Supply:
    """What a board supplies [W]; where work would need more, the GPU lowers its clock.

    most_w: its highest power limit, or more where it was measured to draw more. default_w: the
    limit that it is set to unless somebody changed it, likewise. Both are infinite where that is
    not known. drawn_w: the most that it was measured to draw, 0 where that is not known; a
    prediction may be 2 % above it, which is possible where it was measured, though a limit be
    between the two.
    """

    most_w: float = math.inf
    default_w: float = math.inf
    drawn_w: float = 0.0

    def suffices(self, power_w: Floats) -> Mask:
        """Where a power (...) [W] can be supplied; what is not known can.

        Example:
            >>> Supply(700.0, 700.0).suffices(np.array([690.0, 710.0])).tolist()
            [True, False]
        """
        return self._within(self.most_w, power_w)

    def suffices_by_default(self, power_w: Floats) -> Mask:
        """Where a power (...) [W] can be supplied without raising the limit."""
        return self._within(self.default_w, power_w)

    def _within(self, limit_w: float, power_w: Floats) -> Mask:
        most_w = max(limit_w * (1 + ROUNDING), self.drawn_w * (1 + AS_MEASURED))
        return np.asarray(~(power_w > most_w))


UNLIMITED = Supply()  # what is not known


def supply_of(device: str, *drawn: float) -> Supply:
    """What a board supplies that was measured to draw these powers [W].

    Unlimited where the device table has no limit of it.
    """
    known, drawn_w = known_device(device), max(drawn, default=0.0)
    if known is None or known.most_power_w is None or known.default_power_w is None:
        return UNLIMITED
    most_w, default_w = (max(of, drawn_w) for of in (known.most_power_w, known.default_power_w))
    return Supply(most_w, default_w, drawn_w)


def drawn_w(profiles: Profiles) -> float:
    """The most that a kernel was measured to draw, at the base or a further point [W]; 0: none."""
    measured = [profiles.power_w, *(point.power_w for point in profiles.points)]
    each = [watts for watts in measured if watts is not None]
    return float(np.fmax.reduce(np.concatenate([[0.0], *each])))
