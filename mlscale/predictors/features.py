"""Features as a predictor sees them: named, complete, scaled by the training kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Annotated, Self

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.counters.features import (
    BASE_POWER,
    PER_ACCESS,
    compute_features,
    default_kind,
)
from mlscale.data.checks import sentences
from mlscale.data.devices import Device, known_device
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError

Flags = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """Min-max normalisation learnt on training kernels (Wu et al., section III-D).

    For each named feature: its minimum, maximum and median over the training kernels (F,), and
    whether it may be missing: some training kernel lacked it, or a kernel without loads does. A
    feature with one value maps to 0. A value outside the training range is clipped to it and
    flagged; a missing one takes the median, and is flagged.
    """

    kind: str
    device: Device | None
    names: Annotated[tuple[str, ...], "F"]
    minimum: Annotated[Floats, "F"]
    maximum: Annotated[Floats, "F"]
    median: Annotated[Floats, "F"]
    may_be_missing: Annotated[Mask, "F"]

    @classmethod
    def fit(cls, kind: str | None, profiles: Profiles, only: str | Sequence[str] = ()) -> Self:
        """Learn the scaling; kind None takes what suits the counters. Raises InputError.

        only: the features to use, a name or several; empty for all. A feature that no training
        kernel has is left out, or refused if it was asked for.
        """
        kind = kind or default_kind(profiles.counter_names, profiles.device)
        device = known_device(profiles.device)
        features = compute_features(kind, profiles, device)
        present = np.asarray(~np.isnan(features.values).all(axis=0))
        if wanted := [only] if isinstance(only, str) else list(only):
            known = list(compress(features.names, present))
            if absent := [name for name in wanted if name not in known]:
                raise InputError(
                    f"there is no '{kind}' feature '{absent[0]}'; there are {', '.join(known)}"
                )
            present &= np.isin(features.names, wanted)
        if not present.any():
            raise InputError(f"no training kernel has a value for any '{kind}' feature")
        names = tuple(compress(features.names, present))
        values = features.values[:, present]
        return cls(
            kind=kind,
            device=device,
            names=names,
            minimum=np.nanmin(values, axis=0),
            maximum=np.nanmax(values, axis=0),
            median=np.nanmedian(values, axis=0),
            may_be_missing=np.asarray(np.isnan(values).any(axis=0) | np.isin(names, PER_ACCESS)),
        )

    def transform(self, profiles: Profiles) -> tuple[Floats, Flags]:
        """Return features in [0, 1], (K, F), and what to flag for each kernel.

        Raises InputError when a kernel lacks a feature that every training kernel had.
        """
        optional = set(compress(self.names, self.may_be_missing))
        values = compute_features(self.kind, profiles, self.device, self.names, optional).values
        is_missing = np.isnan(values)
        needed = is_missing & ~self.may_be_missing
        if needed.any():
            k = int(needed.any(axis=1).argmax())
            lacking = ", ".join(f"'{name}'" for name in compress(self.names, needed[k]))
            source = "its power (column 'power_w')" if BASE_POWER in lacking else "their counters"
            raise InputError(
                f"kernel '{profiles.kernels[k]}' has no value for {lacking}, which the model "
                f"needs; profile it with {source}"
            )
        flags = range_flags(self.names, values, self.minimum, self.maximum)
        width = self.maximum - self.minimum
        known = np.where(is_missing, self.median, values)
        scaled = (known - self.minimum) / np.where(width > 0, width, np.inf)
        return np.clip(scaled, 0.0, 1.0), tuple(map(tuple, flags))

    @property
    def needs(self) -> tuple[str, ...]:
        """The features that a profile must have."""
        return tuple(compress(self.names, ~self.may_be_missing))


def range_flags(
    names: Sequence[str],
    values: Floats,
    lows: Floats,
    highs: Floats,
    shown: Callable[[str, float], str] = lambda _, value: f"{value:.4g}",
) -> list[list[str]]:
    """Return for each of K kernels what is missing, or outside the range of the training kernels.

    values (K, F), NaN where missing; names, lows and highs: of each of the F. shown: from a name
    and a value to the value for a reader.
    """
    flags: list[list[str]] = [[] for _ in values]
    is_missing, tolerance = np.isnan(values), 1e-6 * (highs - lows)
    for k in np.flatnonzero(is_missing.any(axis=1)).tolist():
        flags[k].append(f"missing: {', '.join(compress(names, is_missing[k]))}")
    is_outside = (values < lows - tolerance) | (values > highs + tolerance)
    for k, f in np.argwhere(is_outside).tolist():
        flags[k] += sentences("feature", names[f], values[k, f], lows[f], highs[f], shown)
    return flags
