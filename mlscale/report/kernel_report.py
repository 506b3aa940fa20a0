"""What there is to say of each kernel: predicted quantities, intervals, and what they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlscale.advice.advise import COVERAGE, DYNAMIC, power_kind, why_no_power
from mlscale.advice.objectives import best_index, static_power
from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.model import Model
from mlscale.predictors.base import Explains, HasFeatures
from mlscale.predictors.explanation import Explanation

Interval = tuple[Floats, Floats]

UNITS = {"time": "ms", "power": "W", "energy": "mJ"}


@dataclass(frozen=True, eq=False)
class Facts:
    """One kernel at every configuration of the grid.

    quantities: by name (the keys of UNITS, as far as they can be given), (C, E, M) in that
    unit. intervals: low and high of time and power, where the predictor gives them. flags: as
    `predict` prints them. explanations: by quantity; `position` is the kernel's place in them.
    looked_at: names of features and counters that the time's predictor looks at.
    why_no_energy: where energy cannot be given, for a reader. was_trained_on: whether a kernel of
    this name is among the training kernels.
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
    looked_at: tuple[str, ...]
    why_no_energy: str | None
    was_trained_on: bool

    def config(self, index: Index) -> HardwareConfig:
        """The configuration at an index."""
        return self.grid.config(index)

    @property
    def what_lacks(self) -> str | None:
        """What cannot be given and why, as a sentence; None where nothing lacks."""
        if self.why_no_energy is None:
            return None
        lacks = "Energy is" if "power" in self.quantities else "Power and energy are"
        return f"{lacks} not predicted: {self.why_no_energy}."

    def best(self, objective: str) -> Index:
        """Where an objective is least on the grid. Raises InputError without power."""
        time = self.quantities["time"]
        return best_index(objective, time, self.quantities.get("power"), float(time[self.base]))


def facts_of(
    model: Model, profiles: Profiles, chosen: Sequence[int], static_power_w: float | None = None
) -> list[Facts]:
    """The facts of the kernels at the chosen positions. Raises InputError.

    static_power_w [W]: what the board draws beside power_w, where that is dynamic power.
    """
    without = why_no_power(model, profiles)
    if without and static_power_w is not None:
        raise InputError(f"static power is of no use: {without}")
    static = static_power(power_kind(model, profiles), static_power_w)
    why_no_energy = without or (DYNAMIC if static is None else None)
    added = {"time": 0.0, "power": static or 0.0}
    surfaces = model.predict(profiles, COVERAGE)
    bounds = {}
    explanations = {}
    for quantity in surfaces:
        predictor = model.predictors[quantity]
        low, high = surfaces[quantity].low, surfaces[quantity].high
        if low is not None and high is not None:
            bounds[quantity] = (low, high)
        if isinstance(predictor, Explains):
            explanations[quantity] = predictor.explain(profiles)
    of_time = model.predictors["time"]
    looked_at = of_time.feature_names() if isinstance(of_time, HasFeatures) else ()
    trained = model.card.get("kernels")
    found = []
    for k in chosen:
        at_base = {q: float(profiles.quantity(q)[k]) for q in surfaces}
        with np.errstate(over="ignore"):
            quantities = {q: at_base[q] * s.values[k] + added[q] for q, s in surfaces.items()}
            if why_no_energy is None:
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
                    q: (at_base[q] * low[k] + added[q], at_base[q] * high[k] + added[q])
                    for q, (low, high) in bounds.items()
                },
                flags=surfaces.flags[k],
                explanations=explanations,
                looked_at=looked_at,
                why_no_energy=why_no_energy,
                was_trained_on=isinstance(trained, list) and profiles.kernels[k] in trained,
            )
        )
    return found
