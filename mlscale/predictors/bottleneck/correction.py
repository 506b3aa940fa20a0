"""What the bottleneck curve misses, learnt from the training kernels most like a new one: NumPy."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, positive, shaped
from mlscale.predictors.bottleneck.process import scaling, squared_distance, standardised

LENGTH_SCALE = 0.4  # root mean square distance, in standard deviations, that is still alike
UNREPEATED_VARIANCE = 0.3  # variance of what does not repeat, against 1 of what does
DIRECTIONS = 3  # coordinates of the predicted surface that count as inputs


@dataclass(frozen=True, eq=False)
class Correction:
    """Kernel regression on the log times that training kernels were mispredicted by when held out.

    Alike are kernels near each other in D inputs: the named ones of `KernelTraits.similarity`,
    then the coordinates of the predicted log surface along its main directions. mean, spread
    (D,) standardise; centre (N,) and directions (A, N) give the coordinates; points (n, D);
    weights (n, N). A kernel unlike all others gets no correction.
    """

    names: tuple[str, ...]
    centre: Floats
    directions: Floats
    mean: Floats
    spread: Floats
    points: Floats
    weights: Floats

    @classmethod
    def fit(cls, named: dict[str, Floats], predicted: Floats, actual: Floats) -> Self:
        """Learn from n kernels' inputs, held-out log time ratios (n, N), and the true ones."""
        names = tuple(name for name, values in named.items() if not np.isnan(values).all())
        centre = predicted.mean(axis=0)
        directions = np.linalg.svd(predicted - centre, full_matrices=False)[2][:DIRECTIONS]
        raw = _inputs(named, names, (predicted - centre) @ directions.T)
        mean, spread = scaling(raw)
        points = standardised(raw, mean, spread)
        alike = _alike(points, points) + UNREPEATED_VARIANCE * np.eye(len(points))
        weights = np.asarray(np.linalg.solve(alike, actual - predicted))
        return cls(names, centre, directions, mean, spread, points, weights)

    def predict(self, named: dict[str, Floats], predicted: Floats) -> Floats:
        """Return what to add to the log time ratios predicted, (K, N)."""
        raw = _inputs(named, self.names, (predicted - self.centre) @ self.directions.T)
        return _alike(standardised(raw, self.mean, self.spread), self.points) @ self.weights

    def state(self) -> dict[str, Any]:
        """Return arrays and JSON values for the model file."""
        return {**vars(self), "names": list(self.names)}

    @classmethod
    def restore(cls, state: dict[str, Any], configurations: int) -> Self:
        """Return what `state` described; a damaged one raises KeyError or ValueError."""
        names = tuple(map(str, state["names"]))
        directions = shaped(state["directions"], None, configurations)
        inputs = len(names) + len(directions)
        points = shaped(state["points"], None, inputs)
        return cls(
            names=names,
            centre=shaped(state["centre"], configurations),
            directions=directions,
            mean=shaped(state["mean"], inputs),
            spread=positive(shaped(state["spread"], inputs), "a spread"),
            points=points,
            weights=shaped(state["weights"], len(points), configurations),
        )


def _inputs(named: dict[str, Floats], names: tuple[str, ...], coordinates: Floats) -> Floats:
    missing = np.full(len(coordinates), np.nan)
    return np.column_stack([*(named.get(name, missing) for name in names), coordinates])


def _alike(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * squared_distance(a, b) / LENGTH_SCALE**2))
