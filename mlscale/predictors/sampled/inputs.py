"""What a sampled profile tells of a kernel: shares of the GPU's peaks, standardised; NumPy."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, positive, require_rising, shaped
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.predictors.bottleneck.process import range_flags, scaling, standardised

# Of each kind the first that a table has is looked at.
MEMORY_SHARES = ("dram_active", "memory_copy_utilisation")  # DCGM's; nvidia-smi's
UTILISATIONS = ("gpu_utilisation", "gr_engine_active")
HOW_TO_SAMPLE = {
    "dram_active": "dcgmi dmon -e 1005",
    "memory_copy_utilisation": "nvidia-smi --query-gpu=utilization.memory",
}
LEAST_DRAM_PEAK = 0.3
TOP = 3  # peaks are the mean of so many largest values
LEAST_SHARE = 1e-3
# Beside the utilisation, in this order.
INPUTS = ("sm active", "root dram", "log power", "1 / power", "dram / power")


@dataclass(frozen=True, eq=False)
class SampledInputs:
    """The inputs of n training kernels, and how those of a new one are computed.

    measured: names of the M columns looked at, with their range trained, low and high (M,).
    top_dram, top_w (3,): the largest memory shares and powers [W] of the training kernels. present
    (D',): which of all inputs some kernel has; mean and spread (D,) standardise those, points
    (n, D).
    """

    measured: tuple[str, ...]
    low: Floats
    high: Floats
    top_dram: Floats
    top_w: Floats
    present: Floats
    mean: Floats
    spread: Floats
    points: Floats

    @classmethod
    def of(cls, profiles: Profiles, with_utilisation: bool) -> Self:
        """Those of training kernels; with_utilisation: the GPU's too. Raises InputError."""
        memory = memory_share(profiles)
        if memory is None:
            raise InputError(
                "no training kernel has a value for "
                f"{' or '.join(map(repr, MEMORY_SHARES))}, one of which 'sampled' rests on"
            )
        used = [name for name in UTILISATIONS if profiles.has_counter(name)][:1]
        asked = ("sm_active", memory, "power_w", *(used if with_utilisation else []))
        known_columns = _columns(profiles, asked).items()
        columns = {name: own for name, own in known_columns if not np.isnan(own).all()}
        measured = tuple(columns)
        top_dram, top_w = _top(columns[memory]), _top(columns.get("power_w", np.empty(0)))
        raw = _inputs(columns, top_dram, top_w)
        present = ~np.isnan(raw).all(axis=0)
        mean, spread = scaling(raw[:, present])
        known = {name: own[~np.isnan(own)] for name, own in columns.items()}
        return cls(
            measured=measured,
            low=np.array([own.min(initial=np.inf) for own in known.values()]),
            high=np.array([own.max(initial=-np.inf) for own in known.values()]),
            top_dram=top_dram,
            top_w=top_w,
            present=present.astype(float),
            mean=mean,
            spread=spread,
            points=standardised(raw[:, present], mean, spread, farthest=np.inf),
        )

    @property
    def memory(self) -> str:
        """The share that tells of the memory."""
        return next(name for name in MEMORY_SHARES if name in self.measured)

    def points_of(self, profiles: Profiles) -> Floats:
        """Points (K, D) of new kernels, as shares of the training kernels' peaks.

        A missing value is taken at the training mean. Raises InputError without a memory share.
        """
        columns = _columns(profiles, self.measured)
        lacking = np.flatnonzero(np.isnan(columns[self.memory]))
        if lacking.size:
            raise InputError(
                f"kernel '{profiles.kernels[lacking[0]]}' has no value for '{self.memory}', which "
                f"the model needs; sample it ({HOW_TO_SAMPLE[self.memory]})"
            )
        raw = _inputs(columns, self.top_dram, self.top_w)
        return standardised(raw[:, self.present > 0], self.mean, self.spread, farthest=np.inf)

    def with_ranges_of(self, other: "SampledInputs") -> Self:
        """These inputs with the ranges of both; the other may lack some of them, or have more."""
        low, high = self.low.copy(), self.high.copy()
        for k, name in enumerate(self.measured):
            if name in other.measured:
                j = other.measured.index(name)
                low[k], high[k] = min(low[k], other.low[j]), max(high[k], other.high[j])
        return replace(self, low=low, high=high)

    def flags(self, profiles: Profiles) -> list[list[str]]:
        """For each kernel what is missing or outside the range trained."""
        return range_flags(_columns(profiles, self.measured), self.low, self.high)

    def values(self, profiles: Profiles) -> Floats:
        """What was measured of each kernel, (K, M), NaN where missing."""
        return np.column_stack(list(_columns(profiles, self.measured).values()))

    def state(self) -> dict[str, Any]:
        """Arrays and JSON values for the model file."""
        return {**vars(self), "measured": list(self.measured)}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """What `state` described; a damaged one raises KeyError or ValueError."""
        measured = tuple(map(str, state["measured"]))
        columns = ("sm_active", *MEMORY_SHARES, "power_w", *UTILISATIONS)
        if set(measured) - set(columns) or len(set(measured) & set(MEMORY_SHARES)) != 1:
            raise ValueError("the columns measured are not those of a sampled profile")
        present = shaped(state["present"], len(INPUTS) + len(set(measured) & set(UTILISATIONS)))
        size = int((present > 0).sum())
        low, high = (shaped(state[name], len(measured)) for name in ("low", "high"))
        require_rising(low, high)
        top_dram, top_w = (shaped(state[name], None) for name in ("top_dram", "top_w"))
        positive(np.array([len(top_dram), top_w.sum()]), "a peak")
        return cls(
            measured=measured,
            low=low,
            high=high,
            top_dram=top_dram,
            top_w=top_w,
            present=present,
            mean=shaped(state["mean"], size),
            spread=positive(shaped(state["spread"], size), "a spread"),
            points=shaped(state["points"], None, size),
        )


def memory_share(profiles: Profiles) -> str | None:
    """The first of MEMORY_SHARES that some kernel has a value for; None without."""
    for name in MEMORY_SHARES:
        if not np.isnan(profiles.optional_counter(name)).all():
            return name
    return None


def _columns(profiles: Profiles, names: tuple[str, ...]) -> dict[str, Floats]:
    """The named columns (K,) each, NaN where missing."""
    missing = np.full(len(profiles.kernels), np.nan)
    power_w = missing if profiles.power_w is None else profiles.power_w
    return {
        name: power_w if name == "power_w" else profiles.optional_counter(name) for name in names
    }


def _top(values: Floats) -> Floats:
    """The largest few of those that are there; a single 1 without any."""
    known = np.sort(values[~np.isnan(values)])[-TOP:]
    return known if known.size else np.ones(1)


def _inputs(columns: dict[str, Floats], top_dram: Floats, top_w: Floats) -> Floats:
    """All inputs (K, D'), NaN where missing, as shares of the means of the largest values."""
    memory = next(columns[name] for name in MEMORY_SHARES if name in columns)
    missing = np.full(len(memory), np.nan)
    dram = memory / np.maximum(top_dram.mean(), LEAST_DRAM_PEAK)
    power = np.maximum(columns.get("power_w", missing) / top_w.mean(), LEAST_SHARE)
    shares = (np.sqrt(dram), np.log(power), 1 / power, dram / power)
    utilisation = [columns[name] for name in UTILISATIONS if name in columns]
    return np.column_stack([columns.get("sm_active", missing), *shares, *utilisation])
