"""Features as a predictor sees them: named, complete, scaled by the training kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Annotated, Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import LOG_TIME, compute_features, default_kind
from mlscale.data.checks import check, notes_on
from mlscale.data.devices import Device, known_device
from mlscale.data.grid import Base
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.notes import Note

Flags = tuple[tuple[Note, ...], ...]


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """Min-max normalisation learnt on training kernels (Wu et al., section III-D).

    For each named feature: its minimum, maximum and median over the training kernels (F,). A
    feature with one value maps to 0. A value outside the training range is clipped to it and
    flagged; a missing one, of a training kernel or a new one, takes the median, and is flagged.
    """

    kind: str
    device: Device | None
    names: Annotated[tuple[str, ...], "F"]
    minimum: Annotated[Floats, "F"]
    maximum: Annotated[Floats, "F"]
    median: Annotated[Floats, "F"]

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
        )

    def values(self, profiles: Profiles) -> Floats:
        """Return the features as they are, (K, F), NaN where a kernel lacks one."""
        return compute_features(self.kind, profiles, self.device, self.names).values

    def given(self, profiles: Profiles) -> tuple[str, ...]:
        """Return the features that some of the kernels have.

        Raises InputError where a kernel has none but its time, which tells of no scaling.
        """
        is_given = np.asarray(~np.isnan(self.values(profiles)))
        others = [f for f, name in enumerate(self.names) if name != LOG_TIME]
        if others and not (tells := is_given[:, others].any(axis=1)).all():
            raise InputError(
                f"kernel '{profiles.kernels[int(tells.argmin())]}' has none of the features that "
                f"the model was trained on, such as '{self.names[others[0]]}'; profile it with the "
                "counters of the training table, under their names, or leave it out"
            )
        return tuple(compress(self.names, np.asarray(is_given.any(axis=0))))

    def transform(self, profiles: Profiles) -> tuple[Floats, Flags]:
        """Return features in [0, 1], (K, F), and what to flag for each kernel."""
        values = self.values(profiles)
        flags = range_flags(self.names, values, self.minimum, self.maximum)
        if (is_missing := np.isnan(values)).any():
            values = np.where(is_missing, self.median, values)
        width = self.maximum - self.minimum
        values -= self.minimum  # in place: a new array of many kernels costs more than its numbers
        values /= np.where(width > 0, width, np.inf)
        np.maximum(values, 0.0, out=values)  # both take a fifth of the time of np.clip
        return np.minimum(values, 1.0, out=values), flags


class LearnsFeatures:
    """A predictor that learns from features of a kind, by way of a `FeatureScaling`."""

    features: str | None
    counters: str | Sequence[str] = ()
    scaling_: FeatureScaling

    def fit_features(self, profiles: Profiles) -> Floats:
        """Learn the scaling alone; the features in [0, 1], (K, F). InputError if too few."""
        self.scaling_ = FeatureScaling.fit(self.features, profiles, self.counters)
        return self.scaling_.transform(profiles)[0]


def training_profiles(measurements: Measurements, base: Base) -> Profiles:
    """Return what features are learnt from: the kernels at the base.

    Raises InputError where kernels have counters, but at other configurations.
    """
    counters_at = (measurements.counter_names, measurements.counters, measurements.grid)
    source, at = f"the table of '{measurements.device}'", measurements.grid.index(base)
    check("counters at the base", source, measurements.kernels, *counters_at, at)
    return measurements.profiles(base)


def range_flags(
    names: Sequence[str],
    values: Floats,
    lows: Floats,
    highs: Floats,
    shown: Callable[[str, float], str] = lambda _, value: f"{value:.4g}",
) -> Flags:
    """Return for each of K kernels what is missing, or outside the range of the training kernels.

    values (K, F), NaN where missing; names, lows and highs: of each of the F. shown: from a name
    and a value to the value for a reader.
    """
    is_missing, tolerance = np.isnan(values), 1e-6 * (highs - lows)
    is_outside = (values < lows - tolerance) | (values > highs + tolerance)
    nothing: Flags = ((),) * len(values)
    if not (is_missing.any() or is_outside.any()):
        return nothing
    flags = list(nothing)
    for k in np.flatnonzero(is_missing.any(axis=1)).tolist():
        flags[k] += (Note("T10", f"missing: {', '.join(compress(names, is_missing[k]))}"),)
    for k, f in np.argwhere(is_outside).tolist():
        flags[k] += (*notes_on("feature", names[f], values[k, f], lows[f], highs[f], shown),)
    return tuple(flags)
