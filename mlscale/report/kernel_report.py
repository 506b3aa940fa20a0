"""What there is to say of each kernel: predicted quantities, intervals, counters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mlscale.advice.objectives import best_index, pareto_front
from mlscale.advice.recommendation import Advice, Recommendation
from mlscale.arrays import Floats, Mask
from mlscale.counters.roofline import RooflinePlace, roofline
from mlscale.data.grid import ConfigGrid, Index
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import relative_values
from mlscale.model.model import Model
from mlscale.predictors.base import HasFeatures
from mlscale.report.markup import scale_and_unit

Interval = tuple[Floats, Floats]

MOST_KERNELS = 20  # that have a section of their own
COSTS = {"time": "time_ms", "power": "power_w", "energy": "energy_mj"}


@dataclass(frozen=True, eq=False)
class KernelReport:
    """One kernel at every configuration of the grid.

    trained_range: what training speaks for, where the grid goes beyond; else None.
    quantities: by name (the keys of COSTS, as far as they can be given), (C, E, M); units: those
    that suit the base. intervals: low and high of time and power, where the predictor gives them;
    their high ends are as the board's limit leaves them. run: the advice
    for all kernels; advice: the best for this one alone, its part of the run and its flags. place:
    between the GPU's peaks. counters: of its profile, by name. counters_used: names of features and
    counters that the time's predictor looks at. why_no_energy: where
    energy cannot be given, for a reader. was_trained_on: whether a kernel of this name is among
    the training kernels.
    """

    name: str
    application: str
    run: Advice
    advice: Recommendation
    place: RooflinePlace
    has_counters: bool
    counters: dict[str, float]
    grid: ConfigGrid
    base: Index
    trained_range: ConfigGrid | None
    quantities: dict[str, Floats]
    units: dict[str, str]
    intervals: dict[str, Interval]
    counters_used: tuple[str, ...]
    why_no_energy: str | None
    was_trained_on: bool

    def factors(self, quantity: str) -> Floats:
        """The surface of a quantity: it, divided by its value at the base, (C, E, M)."""
        return relative_values(self.quantities[quantity], self.base)

    def interval_factors(self, quantity: str) -> tuple[Floats, ...]:
        """Low and high of the surface where there are intervals, else nothing."""
        values, ends = self.quantities[quantity], self.intervals.get(quantity, ())
        return tuple(relative_values(end, self.base, over=values) for end in ends)

    @property
    def missing_quantities(self) -> str | None:
        """What cannot be given and why, as a sentence; None where everything can."""
        if self.why_no_energy is None:
            return None
        subject = "Energy is" if "power" in self.quantities else "Power and energy are"
        return f"{subject} not predicted: {self.why_no_energy}."

    @property
    def memory_note(self) -> str | None:
        """That no other memory clock counts as the best, as a sentence; None where all do."""
        reason = self.run.keeps_memory
        if reason is None:
            return None
        reason = f"{reason[:1].upper()}{reason[1:]}"
        return f"{reason}. So no configuration at another counts as the best."

    @property
    def limit_note(self) -> str | None:
        """That the board cannot supply some configurations, as a sentence; None where it can."""
        count = self.is_supplied.size - int(self.is_supplied.sum())
        if not count:
            return None
        return (
            f"At {count} of {self.is_supplied.size} configurations the kernel would draw more than "
            f"{self.run.supply.most_in_words}: the GPU lowers its clock there, so "
            "none of them counts as the best."
        )

    @cached_property
    def is_supplied(self) -> Mask:
        """Where the board supplies what the kernel draws, (C, E, M)."""
        unknown = np.full(self.grid.shape, np.nan)
        return self.run.supply.suffices(self.quantities.get("power", unknown))

    @property
    def possible_time(self) -> Floats:
        """Time wherever the kernel may be set to, (C, E, M); NaN elsewhere."""
        offered = True if self.run.offered is None else self.run.offered
        return np.where(self.is_supplied & offered, self.quantities["time"], np.nan)

    def best(self, objective: str) -> Index:
        """Where an objective is least, of what is offered and the board can supply.

        Raises InputError without power.
        """
        time = self.possible_time
        return best_index(objective, time, self.quantities.get("power"), float(time[self.base]))

    @property
    def front(self) -> Mask:
        """Where no other that may be set is both as quick and as frugal, (C, E, M).

        Needs energy.
        """
        return pareto_front(self.possible_time, self.quantities["energy"])


def largest_kernels(profiles: Profiles) -> list[int]:
    """The positions of the kernels that most of the run's time goes to, MOST_KERNELS at most."""
    order = np.argsort(-profiles.run_times_ms, kind="stable")
    return [int(k) for k in order[:MOST_KERNELS]]


def kernel_reports(
    model: Model, profiles: Profiles, advice: Advice, kernels: Sequence[int]
) -> list[KernelReport]:
    """Report on the kernels at these positions of the profiles; nothing is predicted again.

    advice: for these profiles.
    """
    has_counters = profiles.has_counters
    time, base = model.predictors["time"], model.grid.index(model.base)
    training_kernels = model.card.get("kernels")
    places = roofline(profiles)
    reports = []
    for k in kernels:
        name = profiles.kernels[k]
        quantities = {quantity: of.values[k] for quantity, of in advice.surfaces.items()}
        if advice.no_energy is None:
            quantities["energy"] = quantities["time"] * quantities["power"]
        scales = {q: scale_and_unit(of[base], COSTS[q]) for q, of in quantities.items()}
        counters = zip(profiles.counter_names, profiles.counters[k].tolist(), strict=True)
        reports.append(
            KernelReport(
                name=name,
                application=profiles.applications[k],
                run=advice,
                advice=advice.kernels[k],
                place=places[k],
                has_counters=bool(has_counters[k]),
                counters={counter: value for counter, value in counters if not math.isnan(value)},
                grid=model.grid,
                base=base,
                trained_range=model.trained_range,
                quantities={q: of / scales[q][0] for q, of in quantities.items()},
                units={q: unit for q, (_, unit) in scales.items()},
                intervals={
                    quantity: (of.low[k] / scales[quantity][0], of.high[k] / scales[quantity][0])
                    for quantity, of in advice.held.items()
                    if of.low is not None and of.high is not None
                },
                counters_used=time.feature_names() if isinstance(time, HasFeatures) else (),
                why_no_energy=advice.no_energy,
                was_trained_on=isinstance(training_kernels, list) and name in training_kernels,
            )
        )
    return reports
