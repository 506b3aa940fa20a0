"""Splits: who is held out. Kernels of one application are always held out together."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Indices
from mlscale.errors import InputError

Split = Literal["leave-one-application-out", "k-fold", "holdout"]
Fold = tuple[Indices, Indices]

SPLITS: tuple[str, ...] = get_args(Split)
FOLDS = 5
HELD_OUT_SHARE = 0.2
_OUTER_SEED = 20_150_207  # keeps the splits' random numbers apart from the predictors' seeds


def folds(split: str, applications: tuple[str, ...], seed: int) -> list[Fold]:
    """Positions of training and held-out kernels, for each fold.

    k-fold: 5 folds of the applications; holdout: 20 % of the applications once, as the paper
    holds out 20 % of its kernels. Raises InputError where there are too few applications.
    """
    from sklearn.model_selection import GroupShuffleSplit, LeaveOneGroupOut

    count = len(set(applications))
    needed = FOLDS if split == "k-fold" else 2
    if count < needed:
        raise InputError(f"the protocol '{split}' needs {needed} applications, not {count}")
    match split:
        case "leave-one-application-out":
            splitter = LeaveOneGroupOut()
        case "k-fold":
            return grouped_folds(np.array(applications), FOLDS, _OUTER_SEED + seed)
        case "holdout":
            splitter = GroupShuffleSplit(
                1, test_size=HELD_OUT_SHARE, random_state=_OUTER_SEED + seed
            )
        case _:
            raise InputError(f"there is no protocol '{split}'; one of {', '.join(SPLITS)}")
    return list(splitter.split(np.zeros(len(applications)), groups=np.array(applications)))


def grouped_folds(groups: NDArray[Any], count: int, seed: int) -> list[Fold]:
    """That many folds, drawn at random; groups (K,): kernels of one group are held out together."""
    from sklearn.model_selection import GroupKFold

    splitter = GroupKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(groups)), groups=groups))


def is_random(split: str) -> bool:
    """Whether the folds depend on the seed."""
    return split != "leave-one-application-out"
