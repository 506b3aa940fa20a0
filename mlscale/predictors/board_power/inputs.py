"""What a run tells of where its power goes: DRAM's share, and the share of the board's limit."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, positive, require_rising, shaped
from mlscale.counters.kernel_use import kernel_use
from mlscale.data.devices import known_device
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import is_sampled
from mlscale.errors import InputError
from mlscale.predictors.bottleneck.process import range_flags, scaling, standardised
from mlscale.predictors.sampled.inputs import (
    LEAST_DRAM_PEAK,
    POWER_INPUTS,
    TOP,
    peak_shares,
    share_inputs,
)


@dataclass(frozen=True)
class GpuLimits:
    """What a GPU reaches at most: DRAM's share of its peak, and board power [W]."""

    dram: float
    power_w: float

    @classmethod
    def of(cls, profiles: Profiles) -> Self:
        """The mean of the three largest DRAM shares; the device table's limit of power.

        Where the table has no limit it is the mean of the three largest powers. Raises InputError.
        """
        power_w = board_limit_w(profiles.device) or _top(profiles.base_power_w)
        return cls(max(LEAST_DRAM_PEAK, _top(dram_share(profiles))), power_w)


def board_limit_w(device: str) -> float | None:
    """The board's default power limit in the device table [W]; None where it is not known."""
    known = known_device(device)
    return known.tdp_w if known else None


def dram_share(profiles: Profiles) -> Floats:
    """DRAM's share of its peak (K,): sampled, or from a profiler's counters. Raises InputError.

    NaN where samples lack it, as nvidia-smi's do.
    """
    if not profiles.has_counter("dram_active"):
        if is_sampled(profiles.metadata):
            return np.full(len(profiles.kernels), np.nan)
        return kernel_use(profiles).memory
    share = profiles.counter("dram_active")
    if np.isnan(share).any():
        name = profiles.kernels[int(np.isnan(share).argmax())]
        raise InputError(f"kernel '{name}' has no value for 'dram_active'")
    return share


def shares(profiles: Profiles, limits: GpuLimits) -> dict[str, Floats]:
    """Shares (K,) of what the GPU reaches at most, NaN where that is not known. InputError."""
    dram, power = peak_shares(
        dram_share(profiles), limits.dram, profiles.base_power_w, limits.power_w
    )
    return {"DRAM share": dram, "power share": power}


@dataclass(frozen=True, eq=False)
class ShareInputs:
    """The standardised inputs (n, 4) of training kernels; low and high (2,) of their shares."""

    low: Floats
    high: Floats
    mean: Floats
    spread: Floats
    points: Floats

    @classmethod
    def of(cls, known: dict[str, Floats]) -> Self:
        """Those of the training kernels' shares."""
        raw = _inputs(known)
        mean, spread = scaling(raw)
        low, high = (np.array([end(own) for own in known.values()]) for end in (np.min, np.max))
        return cls(low, high, mean, spread, _points(raw, mean, spread))

    def points_of(self, own: dict[str, Floats]) -> Floats:
        """Points (K, 4) of new kernels."""
        return _points(_inputs(own), self.mean, self.spread)

    def flags(self, own: dict[str, Floats]) -> list[list[str]]:
        """For each kernel which share is outside the range trained."""
        return range_flags(own, self.low, self.high)

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """What `vars` gave; a damaged state raises KeyError or ValueError."""
        size = len(POWER_INPUTS)
        low, high = (shaped(state[name], 2) for name in ("low", "high"))
        require_rising(low, high)
        return cls(
            low=low,
            high=high,
            mean=shaped(state["mean"], size),
            spread=positive(shaped(state["spread"], size), "a spread"),
            points=shaped(state["points"], None, size),
        )


def _inputs(own: dict[str, Floats]) -> Floats:
    return np.column_stack(share_inputs(*own.values()))


def _points(raw: Floats, mean: Floats, spread: Floats) -> Floats:
    return standardised(raw, mean, spread, farthest=np.inf)


def _top(values: Floats) -> float:
    return float(np.sort(values)[-TOP:].mean())
