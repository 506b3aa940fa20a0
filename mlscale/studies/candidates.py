"""Who stands in a study: predictors with kinds of features, and always the baselines."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlscale.counters.features import WITH_POWER, default_kind, kinds_for
from mlscale.data.measurements import Measurements
from mlscale.predictors import PREDICTORS, create

ORACLE = "wu-oracle"
BASELINES = ("no-scaling", "engine-bound", "core-bound", "memory-bound", "mean-surface", "nearest")


@dataclass(frozen=True)
class Contender:
    """A predictor under study, or the oracle; features None where it has no such parameter."""

    predictor: str
    features: str | None

    def predicts(self, quantity: str) -> bool:
        """Whether it stands in a study of that quantity: features with power for power alone."""
        with_power = self.features is not None and self.features.endswith(WITH_POWER)
        return predicts(self.predictor, quantity) and (quantity == "power" or not with_power)


def has_parameter(predictor: str, parameter: str) -> bool:
    """Whether a predictor has that hyper-parameter; the oracle has the clusters and seed of wu."""
    if predictor == ORACLE:
        return parameter in ("clusters", "seed")
    return parameter in create(predictor).get_params()


def predicts(predictor: str, quantity: str) -> bool:
    """Whether a predictor knows that quantity; the oracle knows those of wu."""
    return quantity in PREDICTORS["wu" if predictor == ORACLE else predictor].quantities


def contenders(
    predictors: Sequence[str], kinds: Sequence[str], measurements: Measurements
) -> list[Contender]:
    """The predictors and, before them, the baselines; each with every kind of features it takes.

    kinds: empty for the one that suits the table's counters. The oracle stands beside wu.
    """
    kinds = kinds or [default_kind(measurements.counter_names, measurements.device)]
    names = [*BASELINES, *predictors]
    if "wu" in names:
        names.append(ORACLE)
    return [
        Contender(name, kind)
        for name in dict.fromkeys(names)
        for kind in (kinds if has_parameter(name, "features") else [None])
    ]


def everyone(kinds: Sequence[str], measurements: Measurements) -> list[Contender]:
    """All predictors that apply; without kinds, every kind of features that the table gives.

    What suits best comes with the base's power too, which some predictors of power see anyway.
    """
    fitting = kinds or kinds_for(measurements.counter_names, measurements.device)
    if not kinds and measurements.power_samples is not None:
        fitting = [*fitting, fitting[0] + WITH_POWER]
    names = [name for name, kind in PREDICTORS.items() if kind.applies_to(measurements)]
    return contenders(names, fitting, measurements)
