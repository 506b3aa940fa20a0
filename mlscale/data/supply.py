"""What power a board can supply: its limits, or what it was measured to draw."""

from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.device_table import known_device
from mlscale.data.profiles import Profiles

MOST_SUPPLIED = "the highest power limit known of the board, or the most it was measured to draw"
ROUNDING = 1e-9  # of power, that is no excess
AS_MEASURED = 0.02  # likewise: to so much predictions meet a power that was measured


@dataclass(frozen=True)
class Supply:
    """What a board supplies [W]; where work would need more, the GPU lowers its clock.

    most_w: its highest power limit, or more where it was measured to draw more. default_w: the
    limit that it is set to unless somebody changed it, likewise. slack: share of most_w that is no
    excess.
    """

    most_w: float
    default_w: float
    slack: float = ROUNDING

    def suffices(self, power_w: Floats) -> Mask:
        """Where a power (...) [W] can be supplied; what is not known can.

        Example:
            >>> Supply(700.0, 700.0).suffices(np.array([690.0, 710.0])).tolist()
            [True, False]
        """
        return np.asarray(~(power_w > self.most_w * (1 + self.slack)))


def supply_of(device: str, *drawn: float) -> Supply | None:
    """What a board supplies; None where the device table has no limit of it.

    drawn: powers that it was measured to draw [W]. A prediction may be 2 % above the highest of
    them, which is possible where it was measured, though the limit be between the two.
    """
    known = known_device(device)
    if known is None or known.most_power_w is None:
        return None
    most_drawn_w = max(drawn, default=0.0)
    most_w = max(known.most_power_w, most_drawn_w)
    default_w = max(known.tdp_w or known.most_power_w, most_drawn_w)
    slack = AS_MEASURED - (1 + AS_MEASURED) * (1 - most_drawn_w / most_w)
    return Supply(most_w, default_w, max(slack, ROUNDING))


def drawn_w(profiles: Profiles) -> float:
    """The most that a kernel was measured to draw, at the base or a further point [W]; 0: none."""
    measured = [profiles.power_w, *(point.power_w for point in profiles.points)]
    each = [watts for watts in measured if watts is not None]
    return float(np.fmax.reduce(np.concatenate([[0.0], *each])))
