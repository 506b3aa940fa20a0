"""What there is to say of each kernel: predicted quantities, intervals, and what they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlscale.advice import best_index
from mlscale.errors import InputError
from mlscale.grid import ConfigGrid, HardwareConfig, Index
from mlscale.model import Model
from mlscale.predictors.explanation import Explanation
from mlscale.profiles import Profiles

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]

COVERAGE = 0.9
UNITS = {"time": "ms", "power": "W", "energy": "mJ"}


@dataclass(frozen=True, eq=False)
class Facts:
    """One kernel at every configuration of the grid.

    quantities: by name (the keys of UNITS, as far as they can be given), (C, E, M) in that
    unit. intervals: low and high of time and power, where the predictor gives them. flags: as
    `predict` prints them. explanations: by quantity; `position` is the kernel's place in them.
    why_no_energy: where power and energy cannot be given, for a reader. was_trained_on: whether
    a kernel of this name is among the training kernels.
    """

    name: str
    application: str
    position: int
    grid: ConfigGrid
    base: Index
    quantities: dict[str, Floats]
    intervals: dict[str, Interval]
    flags: tuple[str, ...]
    explanations: dict[str, Explanation]
    why_no_energy: str | None
    was_trained_on: bool

    def config(self, index: Index) -> HardwareConfig:
        """The configuration at an index."""
        return self.grid.config(index)

    def best(self, objective: str) -> Index:
        """Where an objective of `mlscale.advice` is least. Raises InputError without power."""
        time = self.quantities["time"]
        return best_index(objective, time, self.quantities.get("power"), float(time[self.base]))


def _why_no_energy(model: Model) -> str:
    lacks = "the profile has no power_w" if "power" in model.predictors else None
    return f"not predicted: {lacks or 'the model was trained without power'}"


def facts_of(model: Model, profiles: Profiles, chosen: Sequence[int]) -> list[Facts]:
    """The facts of the kernels at the chosen positions. Raises InputError."""
    surfaces = model.predict(profiles)
    bounds = {}
    explanations = {}
    for quantity in surfaces:
        predictor = model.predictors[quantity]
        interval = getattr(predictor, "predict_interval", lambda *_: None)(profiles, COVERAGE)
        if interval is not None and interval.low is not None and interval.high is not None:
            bounds[quantity] = (interval.low, interval.high)
        if explanation := predictor.explain(profiles):
            explanations[quantity] = explanation
    trained = model.card.get("kernels")
    found = []
    for k in chosen:
        at_base = {q: float(profiles.quantity(q)[k]) for q in surfaces}
        with np.errstate(over="ignore"):
            quantities = {q: at_base[q] * s.values[k] for q, s in surfaces.items()}
            if "power" in quantities:
                quantities["energy"] = quantities["time"] * quantities["power"]
        if not all(np.isfinite(v).all() and (v > 0).all() for v in quantities.values()):
            raise InputError(f"kernel '{profiles.kernels[k]}': its predictions are not finite")
        found.append(
            Facts(
                name=profiles.kernels[k],
                application=profiles.applications[k],
                position=k,
                grid=model.grid,
                base=model.grid.index(model.base),
                quantities=quantities,
                intervals={
                    q: (at_base[q] * low[k], at_base[q] * high[k])
                    for q, (low, high) in bounds.items()
                },
                flags=tuple(dict.fromkeys(f for s in surfaces.values() for f in s.flags[k])),
                explanations=explanations,
                why_no_energy=None if "power" in quantities else _why_no_energy(model),
                was_trained_on=isinstance(trained, list) and profiles.kernels[k] in trained,
            )
        )
    return found
