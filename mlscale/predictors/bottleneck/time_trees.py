"""Trees for time where the curve is known to lack a law, as with CU counts: NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, positive, shaped
from mlscale.predictors.bottleneck.process import scaling, standardised
from mlscale.predictors.forest import Forest

TREES, LEAST_LEAF, SEED = 50, 1, 0
DIRECTIONS = 8  # main directions of the log surfaces that the trees give coordinates along
WEIGHTS = np.linspace(0, 1, 21)  # of the trees against the curve, those that are tried


@dataclass(frozen=True, eq=False)
class TimeTrees:
    """Extremely randomised trees from D inputs to log time ratios over N configurations.

    names of the inputs, those of `KernelTraits.similarity`; mean, spread (D,) standardise them;
    centre (N,) and directions (A, N) turn the trees' A outputs into log time ratios. weight: of
    the trees in the log time, against the curve.
    """

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    centre: Floats
    directions: Floats
    forest: Forest
    weight: float

    @classmethod
    def fit(cls, named: dict[str, Floats], log_ratios: Floats, weight: float = 1.0) -> Self:
        """Grow the trees from n kernels' named inputs (n,) and log time ratios (n, N)."""
        names = tuple(name for name, values in named.items() if not np.isnan(values).all())
        raw = np.column_stack([named[name] for name in names])
        mean, spread = scaling(raw)
        centre = log_ratios.mean(axis=0)
        directions = np.linalg.svd(log_ratios - centre, full_matrices=False)[2][:DIRECTIONS]
        coordinates = (log_ratios - centre) @ directions.T
        points = standardised(raw, mean, spread)
        forest = Forest.grow(points, coordinates, TREES, LEAST_LEAF, SEED)
        return cls(names, mean, spread, centre, directions, forest, weight)

    def predict(self, named: dict[str, Floats]) -> Floats:
        """Return log time ratios (K, N); a missing input is taken at the training mean."""
        missing = np.full(len(next(iter(named.values()))), np.nan)
        raw = np.column_stack([named.get(name, missing) for name in self.names])
        coordinates, _ = self.forest.predict(standardised(raw, self.mean, self.spread))
        return np.asarray(coordinates @ self.directions + self.centre)

    def state(self) -> dict[str, Any]:
        """Return arrays and JSON values for the model file."""
        return {**vars(self), "names": list(self.names), "forest": self.forest.state()}

    @classmethod
    def restore(cls, state: dict[str, Any], configurations: int) -> Self:
        """Return what `state` described; a damaged one raises KeyError or ValueError."""
        names = tuple(map(str, state["names"]))
        directions = shaped(state["directions"], None, configurations)
        weight = float(state["weight"])
        if not 0 <= weight <= 1:
            raise ValueError("the weight of the trees is not between 0 and 1")
        return cls(
            names=names,
            mean=shaped(state["mean"], len(names)),
            spread=positive(shaped(state["spread"], len(names)), "a spread"),
            centre=shaped(state["centre"], configurations),
            directions=directions,
            forest=Forest.restore(state["forest"], len(names), len(directions)),
            weight=weight,
        )


def weight_of_trees(
    by_curve: Floats, by_trees: Floats, actual: Floats, applications: Sequence[str]
) -> float:
    """Return the one of WEIGHTS that gains most, without the application that gains most by it.

    A gain is what the blend errs less than the curve in log time ratios (n, N) of kernels held
    out. So no application alone makes the trees count; 0 where none is left. applications: of
    the n kernels.
    """
    errors = [np.abs(w * by_trees + (1 - w) * by_curve - actual).mean(axis=1) for w in WEIGHTS]
    gains = errors[0] - np.array(errors)
    own = np.array(applications) == np.unique(applications)[:, None]
    of_applications = gains @ own.T
    left = of_applications.sum(axis=1) - of_applications.max(axis=1)
    return float(WEIGHTS[np.argmax(left)])
