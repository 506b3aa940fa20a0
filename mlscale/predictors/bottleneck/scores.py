"""The scores that a trained `bottleneck` makes its intervals of: NumPy only."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, shaped
from mlscale.predictors.intervals import LEVELS, restored_scores, score_at


@dataclass(frozen=True, eq=False)
class IntervalScores:
    """Scores at levels of coverage, see `calibrated_scores`; of power those of one GPU alone.

    trained (G, L): of each trained GPU, with applications held out. known_peaks, mean_peaks (L,):
    of GPUs held out together with applications, whose peaks other kernels of them show, or that
    are taken to reach what the others do. These two are empty where training had one GPU alone;
    all are where it was without intervals.
    """

    trained: Floats = field(default_factory=lambda: np.empty((0, LEVELS.size)))
    known_peaks: Floats = field(default_factory=lambda: np.empty(0))
    mean_peaks: Floats = field(default_factory=lambda: np.empty(0))

    def __bool__(self) -> bool:
        """Whether there are intervals."""
        return bool(self.trained.size)

    def at(self, coverage: float, number: int | None, has_own_peaks: bool) -> float:
        """Return the score for a coverage on the trained GPU of that number, or on another.

        Another is taken to be no easier than any trained one: few were held out. 1 without
        intervals, see `score_at`.
        """
        if not self:
            return score_at(np.empty(0), coverage)
        if number is not None:
            return score_at(self.trained[number], coverage)
        elsewhere = self.known_peaks if has_own_peaks else self.mean_peaks
        rows = [*self.trained, elsewhere] if elsewhere.size else self.trained
        return max(score_at(own, coverage) for own in rows)

    def state(self) -> dict[str, Any]:
        """Return arrays for the model file."""
        return dict(vars(self))

    @classmethod
    def restore(cls, state: Any, gpus: int) -> Self:
        """Return what `state` described; older files have one row for all. Raises ValueError."""
        if not isinstance(state, dict):
            scores = restored_scores(state)
            return cls(np.tile(scores, (gpus, 1))) if scores.size else cls()
        trained = shaped(state["trained"], None, LEVELS.size)
        if len(trained) not in (0, gpus):
            raise ValueError("the scores of the intervals are not of each GPU")
        for own in trained:
            restored_scores(own)
        known, mean = (restored_scores(state[name]) for name in ("known_peaks", "mean_peaks"))
        return cls(trained, known, mean)
