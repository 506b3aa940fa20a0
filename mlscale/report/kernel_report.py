"""What there is to say of each kernel: predicted quantities, intervals, and what they rest on."""

from dataclasses import dataclass

import numpy as np

from mlscale.advice.advise import absolute, whole_power
from mlscale.advice.objectives import best_index
from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import relative_values
from mlscale.errors import InputError
from mlscale.model import Model
from mlscale.predictions import COVERAGE
from mlscale.predictors.base import Explains, HasFeatures
from mlscale.predictors.features import Explanation

Interval = tuple[Floats, Floats]

UNITS = {"time": "ms", "power": "W", "energy": "mJ"}


@dataclass(frozen=True, eq=False)
class KernelReport:
    """One kernel at every configuration of the grid.

    quantities: by name (the keys of UNITS, as far as they can be given), (C, E, M) in that
    unit. intervals: low and high of time and power, where the predictor gives them. flags: as
    `predict` prints them. explanations: by quantity; `position` is the kernel's place in them.
    counters_used: names of features and counters that the time's predictor looks at.
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
    counters_used: tuple[str, ...]
    why_no_energy: str | None
    was_trained_on: bool

    def config(self, index: Index) -> HardwareConfig:
        """The configuration at an index."""
        return self.grid.config(index)

    def factors(self, quantity: str) -> Floats:
        """The surface of a quantity: it, divided by its value at the base, (C, E, M)."""
        return relative_values(self.quantities[quantity], self.base)

    def interval_factors(self, quantity: str) -> tuple[Floats, ...]:
        """Low and high of the surface where there are intervals, else nothing."""
        values, ends = self.quantities[quantity], self.intervals.get(quantity, ())
        return tuple(relative_values(end, self.base, of=values) for end in ends)

    @property
    def missing_quantities(self) -> str | None:
        """What cannot be given and why, as a sentence; None where everything can."""
        if self.why_no_energy is None:
            return None
        subject = "Energy is" if "power" in self.quantities else "Power and energy are"
        return f"{subject} not predicted: {self.why_no_energy}."

    def best(self, objective: str) -> Index:
        """Where an objective is least on the grid. Raises InputError without power."""
        time = self.quantities["time"]
        return best_index(objective, time, self.quantities.get("power"), float(time[self.base]))


def kernel_reports(
    model: Model, profiles: Profiles, static_power_w: float | None = None
) -> list[KernelReport]:
    """Report on every kernel of the profiles; each surface is predicted once.

    static_power_w [W]: what the board draws beside power_w, where that is dynamic power. Raises
    InputError where the profiles lack what the model needs, where static power is of no use, and
    where a prediction is not finite.
    """
    power = whole_power(model, profiles, static_power_w)
    predictions = model.predict(profiles, COVERAGE)
    surfaces = absolute(predictions, power)
    predictors = {quantity: model.predictors[quantity] for quantity in surfaces}
    explanations = {
        q: p.explain(profiles) for q, p in predictors.items() if isinstance(p, Explains)
    }
    time = predictors["time"]
    training_kernels = model.card.get("kernels")
    reports = []
    for k, name in enumerate(profiles.kernels):
        quantities = {quantity: surface.values[k] for quantity, surface in surfaces.items()}
        if power.why_no_energy is None:
            with np.errstate(over="ignore"):
                quantities["energy"] = quantities["time"] * quantities["power"]
        if not all(np.isfinite(v).all() and (v > 0).all() for v in quantities.values()):
            raise InputError(f"kernel '{name}': its predictions are not finite")
        reports.append(
            KernelReport(
                name=name,
                application=profiles.applications[k],
                position=k,
                grid=model.grid,
                base=model.grid.index(model.base),
                quantities=quantities,
                intervals={
                    quantity: (surface.low[k], surface.high[k])
                    for quantity, surface in surfaces.items()
                    if surface.low is not None and surface.high is not None
                },
                flags=predictions.flags[k],
                explanations=explanations,
                counters_used=time.feature_names() if isinstance(time, HasFeatures) else (),
                why_no_energy=power.why_no_energy,
                was_trained_on=(isinstance(training_kernels, list) and name in training_kernels),
            )
        )
    return reports
