"""What a run's power at one clock tells of where it goes: its share of the board's limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, require_rising, shaped
from mlscale.data.devices import known_device
from mlscale.data.profiles import Profiles
from mlscale.predictors.bottleneck.process import range_flags

TOP = 3  # without a limit, it is the mean of so many largest powers
COLUMNS = 3


def board_limit_w(device: str) -> float | None:
    """The board's default power limit in the device table [W]; None where it is not known."""
    known = known_device(device)
    return known.tdp_w if known else None


def limit_of(profiles: Profiles) -> float:
    """The board's limit [W]; where the table has none, the mean of the three largest powers."""
    largest = np.sort(profiles.base_power_w)[-TOP:]
    return board_limit_w(profiles.device) or float(largest.mean())


@dataclass(frozen=True)
class BoardInputs:
    """How a run's power and clock become the inputs of its latents.

    mean: of the log of power's share of the limit, over the training runs. low and high: the
    range of that share.
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, share: Floats, weight: Floats) -> Self:
        """Those of training runs (n,) with weights that sum to 1."""
        return cls(float(np.log(share) @ weight), float(share.min()), float(share.max()))

    def columns(self, share: Floats, base: float) -> Floats:
        """1, the log of the share over the mean, and ln(base / highest clock): (K, 3).

        share (K,): NaN where the limit is not known, which is taken for the mean.
        """
        log_share = np.nan_to_num(np.log(share) - self.mean)
        return np.column_stack([np.ones_like(log_share), log_share, 0 * log_share + base])

    def flags(self, share: Floats) -> list[list[str]]:
        """For each run whether the share is outside the range trained."""
        return range_flags({"power share": share}, np.array([self.low]), np.array([self.high]))

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """What `vars` gave; a damaged state raises KeyError or ValueError."""
        numbers = np.array([float(state[name]) for name in ("mean", "low", "high")])
        mean, low, high = shaped(numbers, 3)
        require_rising(np.array([low]), np.array([high]))
        return cls(float(mean), float(low), float(high))
