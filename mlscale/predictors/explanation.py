"""What a prediction rests on: features beside their training range, neighbours, clusters."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices, shaped


@dataclass(frozen=True, eq=False)
class TrainingKernels:
    """The names of n training kernels and their features, normalised to [0, 1], (n, F)."""

    kernels: tuple[str, ...]
    points: Floats

    def state(self) -> dict[str, Any]:
        """Array and JSON values for the model file."""
        return {"kernels": list(self.kernels), "points": self.points}

    @classmethod
    def restore(cls, state: dict[str, Any], features: int) -> Self:
        """What `state` gave; a damaged one raises KeyError, TypeError or ValueError."""
        kernels = tuple(map(str, state["kernels"]))
        return cls(kernels, shaped(state["points"], len(kernels), features))


@dataclass(frozen=True, eq=False)
class Choice:
    """A cluster that the predictor chose for each of K kernels.

    region: what the cluster covers, for a reader. chosen (K,): which of `count` clusters.
    training (n,): the one it chooses for each training kernel; None where they are not known.
    """

    region: str
    count: int
    chosen: Indices
    training: Indices | None


@dataclass(frozen=True, eq=False)
class Explanation:
    """F features of K kernels beside those of the training kernels.

    values (K, F), NaN where missing; minimum, maximum (F,) over the training kernels, in
    the features' own units. points (K, F): normalised to [0, 1] by that range. training: None
    where the model file does not have them. choices: empty for a predictor without clusters.
    """

    kind: str
    names: tuple[str, ...]
    values: Floats
    minimum: Floats
    maximum: Floats
    points: Floats
    training: TrainingKernels | None
    choices: tuple[Choice, ...] = ()

    def nearest(self, kernel: int, most: int) -> list[tuple[str, float]]:
        """The nearest training kernels of one: their names and Euclidean distances."""
        if self.training is None:
            return []
        distances = np.linalg.norm(self.training.points - self.points[kernel], axis=1)
        order = np.argsort(distances, kind="stable")[:most]
        return [(self.training.kernels[n], float(distances[n])) for n in order]

    def usual_distance(self) -> float | None:
        """The median distance of a training kernel to the nearest other one."""
        if self.training is None or len(self.training.points) < 2:
            return None
        points = self.training.points
        nearest = [
            np.linalg.norm(np.delete(points, n, axis=0) - point, axis=1).min()
            for n, point in enumerate(points)
        ]
        return float(np.median(nearest))
