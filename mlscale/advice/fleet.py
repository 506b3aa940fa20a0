"""Advice on more kernels than fit in memory: part by part, and for the whole run from its sums."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.advice.advise import Terms, advice_on, kernel_flags, search_for, search_on
from mlscale.advice.recommendation import Advice, Run
from mlscale.advice.search import RunBase
from mlscale.arrays import Floats
from mlscale.data.profiles import Profiles
from mlscale.data.sequence import run_in_sequence
from mlscale.data.supply import UNLIMITED, drawn_w, supply_of
from mlscale.data.surfaces import Surfaces
from mlscale.model import Model


@dataclass(frozen=True, eq=False)
class Sums:
    """Some kernels as if they were one that runs all their launches one after the other.

    time_ms (S, C, E, M) [ms] and power_w [W], the mean over that time, None where it is not
    predicted; S: the value, and the low and high end of its interval where there are intervals.
    peak_w (C, E, M) [W]: power of the most demanding kernel.
    """

    time_ms: Floats
    power_w: Floats | None
    peak_w: Floats | None

    @classmethod
    def of(
        cls, surfaces: dict[str, Surfaces], launches: Floats, peak_w: Floats | None = None
    ) -> "Sums":
        """Of absolute surfaces of kernels, each of which runs so often, (K,).

        peak_w: where it is more than these surfaces say.
        """
        sides: dict[str, Floats] = {}
        for quantity, of in surfaces.items():
            ends = [end for end in (of.low, of.high) if end is not None]
            sides[quantity] = np.stack([of.values, *ends], axis=1)
        power_w = sides.get("power")
        if peak_w is None and power_w is not None:
            peak_w = power_w[:, 0].max(axis=0)
        return cls(*run_in_sequence(sides["time"], power_w, launches), peak_w)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> "Sums":
        """From what `state` gave."""
        power_w, peak_w = (state[n] and np.array(state[n]) for n in ("power_w", "peak_w"))
        return cls(np.array(state["time_ms"]), power_w, peak_w)

    @property
    def state(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {name: of if of is None else of.tolist() for name, of in vars(self).items()}

    def __add__(self, other: "Sums") -> "Sums":
        time_ms, power_w, peak_w = np.stack([self.time_ms, other.time_ms]), None, None
        if self.power_w is not None and other.power_w is not None:
            power_w = np.stack([self.power_w, other.power_w])
        if self.peak_w is not None and other.peak_w is not None:
            peak_w = np.maximum(self.peak_w, other.peak_w)
        return Sums(*run_in_sequence(time_ms, power_w, np.ones(2)), peak_w)

    def surfaces(self, model: Model) -> dict[str, Surfaces]:
        """The one kernel's, absolute."""
        sides = {"time": self.time_ms, "power": self.power_w}
        return {
            quantity: Surfaces(model.grid, model.base, of[:1], (), *of[1:, None])
            for quantity, of in sides.items()
            if of is not None
        }


def run_base(parts: Iterable[Profiles], terms: Terms) -> RunBase:
    """What the whole run, all kernels of all parts, takes and draws at the base."""
    time_ms, peak_w = 0.0, 0.0
    for profiles in parts:
        time_ms += float(profiles.run_times_ms.sum())
        peak_w = max(peak_w, drawn_w(profiles))
    static_w = terms.power.static_w or 0.0
    return RunBase(time_ms, None if terms.power.absent else peak_w + static_w)


def advise_part(
    model: Model, profiles: Profiles, terms: Terms, base: RunBase
) -> tuple[dict[str, Any], Sums]:
    """What is best for each of some kernels of a run, as columns (K,), and the kernels' sums.

    The columns are those of `mlscale advise --format csv`, without the front. Raises InputError.
    """
    predictions, search = search_for(model, profiles, terms, base)
    columns: dict[str, Any] = {"kernel": np.array(profiles.kernels, dtype=object)}
    columns |= search.kernel_columns()
    flags = ["; ".join(of) for of in kernel_flags(search, predictions)]
    columns["flags"] = np.array(flags, dtype=object)
    return columns, Sums.of(search.held, profiles.weights, search.peak_w)


def advise_run(model: Model, sums: Sums, terms: Terms, run: Run, notes: Sequence[str]) -> Advice:
    """The advice for the whole run alone, from the sums of all its kernels. Raises InputError.

    notes: the warnings of the profiles.
    """
    surfaces, peak_w = sums.surfaces(model), sums.peak_w
    at_base = 0.0 if peak_w is None else float(peak_w[model.grid.index(model.base)])
    supply = UNLIMITED if terms.power.absent else supply_of(model.device, at_base)
    search = search_on(surfaces, np.ones(1), terms, supply, peak_w=peak_w)
    return advice_on(search, terms, run, notes, model.trained_range)
