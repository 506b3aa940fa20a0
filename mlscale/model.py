"""A trained model: a predictor of time and perhaps one of power, for one base configuration."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError
from mlscale.predictors import PREDICTORS, create, default_predictor
from mlscale.predictors.base import Bases, Predictor, Training, TrainingSet


@dataclass(frozen=True)
class Model:
    """What `train` makes and the model file holds.

    predictors: by quantity, 'time' and, where the training data have it, 'power'. card: what a
    reader should know of the training, JSON values only. untrained: whether it is for a GPU that
    it has no training data of.
    """

    device: str
    grid: ConfigGrid
    base: HardwareConfig
    predictors: dict[str, Predictor]
    card: dict[str, Any]
    untrained: bool = False

    def for_gpu(
        self, device: str, grid: ConfigGrid, base: HardwareConfig, peaks: Profiles | None = None
    ) -> "Model":
        """The same for the time of a GPU without training data, on a grid of one's choice.

        peaks: any profiles of that GPU, to see what its kernels reach at most; None takes what
        they reach on the trained GPUs. Raises InputError where the predictor cannot.
        """
        predictor = copy.copy(self.predictors["time"])
        if not predictor.other_gpus:
            raise InputError(f"'{predictor.name}' cannot predict a GPU that it was not trained on")
        if peaks is not None:
            predictor.learn_peaks(peaks, grid)
        return replace(
            self,
            device=device,
            grid=grid,
            base=base,
            predictors={"time": predictor},
            untrained=True,
        )

    def predict(self, profiles: Profiles, coverage: float | None = None) -> dict[str, Surfaces]:
        """The surfaces of every quantity that model and profiles have in common.

        coverage: with intervals that hold this share of the truth, from predictors that have
        them. Raises InputError where the profiles lack what a predictor needs, and where they
        have further points that it makes nothing of.
        """
        if profiles.also:
            require_also(self)
        grid = self.grid if self.untrained else None
        return {
            quantity: (predictor.predict_interval(profiles, coverage, grid) if coverage else None)
            or predictor.predict(profiles, grid)
            for quantity, predictor in self.predictors.items()
            if quantity == "time" or profiles.power_w is not None
        }


def require_also(model: Model) -> None:
    """Raise InputError unless the model's predictors make use of further measured points."""
    for predictor in model.predictors.values():
        if not predictor.uses_also:
            able = ", ".join(name for name, kind in PREDICTORS.items() if kind.uses_also)
            raise InputError(
                f"'{predictor.name}' makes nothing of further measured points; train a model "
                f"with --predictor {able}"
            )


def train(
    measurements: Measurements,
    base: HardwareConfig,
    predictor: str | None = None,
    others: Sequence[TrainingSet] = (),
    **parameters: Any,
) -> Model:
    """Train a model on every quantity that the measurements have.

    predictor: by name; None takes `default_predictor`'s. others: measurements of further GPUs,
    each with its base, that time is learnt from too, by a predictor that can; the model is of the
    first. parameters: the predictor's hyper-parameters; those it does not have are left out.
    Raises InputError.
    """
    predictor = predictor or default_predictor(measurements)
    known = create(predictor).quantities
    quantities = [q for q in known if q == "time" or measurements.power_samples is not None]
    predictors = {q: create(predictor, quantity=q, **parameters) for q in quantities}
    if not all(p.savable for p in predictors.values()):
        raise InputError(f"'{predictor}' exists for studies only and cannot be trained to a file")
    first = next(iter(predictors.values()))
    pooled = [(measurements, base), *others]
    jobs: list[tuple[Predictor, Training, Bases]] = [
        (p, [table for table, _ in pooled], [at for _, at in pooled])
        if others
        else (p, measurements, base)
        for p in predictors.values()
    ]
    type(first).fit_together(jobs)
    card = {
        "kernels": list(measurements.kernels),
        "applications": sorted(set(measurements.applications)),
        "metadata": {
            key: value
            for key, value in measurements.metadata.items()
            if key not in ("launches", "faults")
        },
    }
    if others:
        card["time_learnt_from"] = [table.device for table, _ in pooled]
    return Model(measurements.device, measurements.grid, base, predictors, card)
