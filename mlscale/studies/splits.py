"""Splits: who is held out. Kernels of one application together, but for `random-kernels`."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Indices
from mlscale.errors import InputError

Split = Literal["leave-one-application-out", "k-fold", "holdout", "random-kernels"]
Fold = tuple[Indices, Indices]

SPLITS: tuple[str, ...] = get_args(Split)
FOLDS = 5
RANDOM_KERNELS = "random-kernels"
HELD_OUT_SHARE = 0.2
RANDOM_SPLITS = 12  # to repeat with by default: three say little of their mean
SEEDS = 3  # by default where the folds are not random, but a predictor may be
_OUTER_SEED = 20_150_207  # keeps the splits' random numbers apart from the predictors' seeds


def folds(split: str, applications: tuple[str, ...], seed: int) -> list[Fold]:
    """Positions of training and held-out kernels, for each fold.

    k-fold: 5 folds of the applications; holdout: 20 % of the applications once; random-kernels:
    20 % of the kernels once, as Wu et al. hold them out, whatever application they are of.
    Raises InputError where there are too few applications, or kernels.
    """
    grouped = split != RANDOM_KERNELS
    count = len(set(applications) if grouped else applications)
    needed = FOLDS if split == "k-fold" else 2
    if count < needed:
        what = "applications" if grouped else "kernels"
        raise InputError(f"the protocol '{split}' needs {needed} {what}, not {count}")
    match split:
        case "leave-one-application-out":
            # Not scikit-learn's LeaveOneGroupOut: its import takes longer than many a study.
            own = np.array(applications)
            return [(np.flatnonzero(own != a), np.flatnonzero(own == a)) for a in np.unique(own)]
        case "k-fold":
            return grouped_folds(np.array(applications), FOLDS, _OUTER_SEED + seed)
        case "holdout" | "random-kernels":
            return [_random_fold(applications, grouped, _OUTER_SEED + seed)]
        case _:
            raise InputError(f"there is no protocol '{split}'; one of {', '.join(SPLITS)}")


def _random_fold(applications: tuple[str, ...], grouped: bool, seed: int) -> Fold:
    """Return one fold with a share of the applications held out, or of the kernels."""
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

    kind, groups = (GroupShuffleSplit, applications) if grouped else (ShuffleSplit, None)
    splitter = kind(1, test_size=HELD_OUT_SHARE, random_state=seed)
    fold: Fold = next(splitter.split(np.zeros(len(applications)), groups=groups))
    return fold


def grouped_folds(groups: NDArray[Any], count: int, seed: int) -> list[Fold]:
    """That many folds, drawn at random; groups (K,): kernels of one group are held out together."""
    from sklearn.model_selection import GroupKFold

    splitter = GroupKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(groups)), groups=groups))


def is_partial(split: str) -> bool:
    """Whether each seed holds out some kernels alone, so that a mean depends on which."""
    return split in ("holdout", RANDOM_KERNELS)


def is_random(split: str) -> bool:
    """Whether the folds depend on the seed."""
    return split != "leave-one-application-out"
