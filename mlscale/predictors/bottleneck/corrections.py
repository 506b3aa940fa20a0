"""What the curve misses, learnt from training kernels: a regression on those alike, and trees.

Both look at the named inputs of `KernelTraits.similarity`, and both see a log surface as its
coordinates along a few main directions. The trees stand where the curve is known to lack a law, as
with CU counts. NumPy predicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices, positive, shaped
from mlscale.predictors.bottleneck.process import (
    JITTER,
    at_rows,
    columns_of,
    inducing_rows,
    known_names,
    scaling,
    squared_distance,
    standardised,
)
from mlscale.predictors.forest import Forest

LENGTH_SCALE = 0.4  # root mean square distance, in standard deviations, that is still alike
UNREPEATED_VARIANCE = 0.3  # variance of what does not repeat, against 1 of what does
ALIKE_DIRECTIONS = 3  # coordinates of the predicted surface that count as inputs
TREES, LEAST_LEAF, SEED = 50, 1, 0
TREES_DIRECTIONS = 8  # main directions of the log surfaces that the trees give coordinates along
WEIGHTS = np.linspace(0, 1, 21)  # of the trees against the curve, those that are tried


@dataclass(frozen=True, eq=False)
class Correction:
    """Kernel regression on the log times that training kernels were mispredicted by when held out.

    Alike are kernels near each other in D inputs: the named ones, then the coordinates of the
    predicted log surface along its main directions. mean, spread (D,) standardise; centre (N,) and
    directions (A, N) give the coordinates; points (n, D) of the kernels that stand for all,
    `inducing_rows`; weights (n, N). A kernel unlike all others gets no correction.
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
        names = known_names(named)
        centre, directions = _main_directions(predicted, ALIKE_DIRECTIONS)
        raw = np.hstack([columns_of(named, names), (predicted - centre) @ directions.T])
        mean, spread = scaling(raw)
        points = standardised(raw, mean, spread)
        rows = inducing_rows(lambda rows: _alike(points[rows], points[rows]), len(points))
        weights = _weights(points, rows, actual - predicted)
        return cls(names, centre, directions, mean, spread, at_rows(points, rows), weights)

    def predict(self, named: dict[str, Floats], predicted: Floats) -> Floats:
        """Return what to add to the log time ratios predicted, (K, N)."""
        coordinates = (predicted - self.centre) @ self.directions.T
        raw = np.hstack([columns_of(named, self.names), coordinates])
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


def _main_directions(logs: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the mean (N,) of log surfaces (K, N), and their main directions (A, N) about it."""
    centre = logs.mean(axis=0)
    return centre, np.linalg.svd(logs - centre, full_matrices=False)[2][:count]


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


@dataclass(frozen=True, eq=False)
class TimeTrees:
    """Extremely randomised trees from D inputs to log time ratios over N configurations.

    names of the inputs; mean, spread (D,) standardise them;
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
        names = known_names(named)
        raw = columns_of(named, names)
        mean, spread = scaling(raw)
        centre, directions = _main_directions(log_ratios, TREES_DIRECTIONS)
        coordinates = (log_ratios - centre) @ directions.T
        points = standardised(raw, mean, spread)
        forest = Forest.grow(points, coordinates, TREES, LEAST_LEAF, SEED)
        return cls(names, mean, spread, centre, directions, forest, weight)

    def predict(self, named: dict[str, Floats]) -> Floats:
        """Return log time ratios (K, N); a missing input is taken at the training mean."""
        raw = columns_of(named, self.names)
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
