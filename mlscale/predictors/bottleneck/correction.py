"""What the bottleneck curve misses, learnt from the training kernels most like a new one: NumPy."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices, positive, shaped
from mlscale.predictors.bottleneck.process import (
    JITTER,
    at_rows,
    inducing_rows,
    scaling,
    squared_distance,
    standardised,
)

LENGTH_SCALE = 0.4  # root mean square distance, in standard deviations, that is still alike
UNREPEATED_VARIANCE = 0.3  # variance of what does not repeat, against 1 of what does
DIRECTIONS = 3  # coordinates of the predicted surface that count as inputs


@dataclass(frozen=True, eq=False)
class Correction:
    """Kernel regression on the log times that training kernels were mispredicted by when held out.

    Alike are kernels near each other in D inputs: the named ones of `KernelTraits.similarity`,
    then the coordinates of the predicted log surface along its main directions. mean, spread
    (D,) standardise; centre (N,) and directions (A, N) give the coordinates; points (n, D) of the
    kernels that stand for all, `inducing_rows`; weights (n, N). A kernel unlike all others gets no
    correction.
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
        """Learn from K kernels' inputs, held-out log time ratios (K, N), and the true ones."""
        names = tuple(name for name, values in named.items() if not np.isnan(values).all())
        centre = predicted.mean(axis=0)
        directions = np.linalg.svd(predicted - centre, full_matrices=False)[2][:DIRECTIONS]
        raw = _inputs(named, names, (predicted - centre) @ directions.T)
        mean, spread = scaling(raw)
        points = standardised(raw, mean, spread)
        rows = inducing_rows(lambda rows: _alike(points[rows], points[rows]), len(points))
        weights = _weights(points, rows, actual - predicted)
        return cls(names, centre, directions, mean, spread, at_rows(points, rows), weights)

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


def _weights(points: Floats, rows: Indices, missed: Floats) -> Floats:
    """Return the weights (n, N) of the kernels in those rows, by what was missed (K, N) of all.

    Kernel regression where the rows are all; else by the subset of regressors (Quinonero-Candela
    and Rasmussen, JMLR 6, 2005, section 5).
    """
    unrepeated = UNREPEATED_VARIANCE * np.eye(len(rows))
    alike = _alike(at_rows(points, rows), points)
    if len(rows) == len(points):
        return np.asarray(np.linalg.solve(alike + unrepeated, missed))
    whitening = np.linalg.inv(np.linalg.cholesky(alike[:, rows] + JITTER * np.eye(len(rows))))
    features = whitening @ alike
    seen = features @ features.T + unrepeated
    return np.asarray(whitening.T @ np.linalg.solve(seen, features @ missed))
