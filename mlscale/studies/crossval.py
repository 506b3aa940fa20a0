"""The one cross-validation of all studies: what is held out is predicted from everything else.

Everything random and everything chosen is fitted anew inside each fold. `folds` says who is held
out; a training, such as `own`, says what is learnt from instead.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import (
    Surfaces,
    absolute_percentage_error,
    absolute_values,
    without_base,
)
from mlscale.errors import InputError, warn
from mlscale.predictors.base import (
    Bases,
    Predictor,
    Training,
    fit_all,
    for_other_gpus,
    predict_surfaces,
)
from mlscale.studies.candidates import Oracle, own_failures
from mlscale.text import counted

Split = Literal["leave-one-application-out", "k-fold", "holdout", "random-kernels"]
Fold = tuple[Indices, Indices]

SPLITS: tuple[str, ...] = get_args(Split)
FOLDS = 5
RANDOM_KERNELS = "random-kernels"
HELD_OUT_SHARE = 0.2
RANDOM_SPLITS = 12  # to repeat with by default: three say little of their mean
SEEDS = 3  # by default where the folds are not random, but a predictor may be
_OUTER_SEED = 20_150_207  # keeps the splits' random numbers apart from the predictors' seeds

ProfiledTable = tuple[Measurements, HardwareConfig]
Learnt = list[tuple[ProfiledTable, Indices]]  # tables, and which of their kernels
TrainingRule = Callable[[ProfiledTable, Fold, Sequence[ProfiledTable]], Learnt]

TRAIN, TEST = 0, 1  # the places in a fold


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


def own(target: ProfiledTable, fold: Fold, _: Sequence[ProfiledTable] = ()) -> Learnt:
    """Learn from the target itself, without what is held out."""
    return [(target, fold[TRAIN])]


def pooled(target: ProfiledTable, fold: Fold, tables: Sequence[ProfiledTable]) -> Learnt:
    """Learn from all tables, without the applications that are held out of the target.

    The target comes first if it is among them, then those like it; a table of which nothing is left
    is left out.
    """
    tested = {target[0].applications[k] for k in fold[TEST]}
    in_turn = sorted(tables, key=lambda one: (one[0] is not target[0], not alike(one, target)))
    learnt = []
    for table in in_turn:
        kernels = [k for k, name in enumerate(table[0].applications) if name not in tested]
        if kernels:
            learnt.append((table, np.array(kernels)))
    return learnt


def unseen(target: ProfiledTable, fold: Fold, tables: Sequence[ProfiledTable]) -> Learnt:
    """Learn from the tables of other GPUs alone, without the applications that are held out."""
    return pooled(target, fold, [one for one in tables if one[0].device != target[0].device])


def alike(one: ProfiledTable, other: ProfiledTable) -> bool:
    """Whether two tables are of one GPU, grid and base."""
    return (one[0].device, one[0].grid, one[1]) == (other[0].device, other[0].grid, other[1])


def is_elsewhere(target: ProfiledTable, learnt: Learnt) -> bool:
    """Whether nothing that is learnt from is of the target's GPU, grid and base."""
    return not any(alike(table, target) for table, _ in learnt)


@dataclass(frozen=True, eq=False)
class FoldPrediction:
    """The predicted surfaces of one fold's held-out kernels, beside what was measured.

    train_seconds: of this fold's predictor, as its share of all that were fitted together;
    predict_seconds: of all these kernels.
    """

    predictor: Predictor
    held_out: Measurements
    surfaces: Surfaces
    train_seconds: float
    predict_seconds: float

    @cached_property
    def measured(self) -> Floats:
        """Return the measured surfaces, relative to the base (K, C, E, M)."""
        return self.held_out.relative(self.predictor.quantity, self.surfaces.base)

    @property
    def predicted(self) -> Floats:
        """Return the predicted quantity in its unit, (K, C, E, M) [ms] or [W]."""
        return self.in_units(self.surfaces.values)

    def in_units(self, factors: Floats) -> Floats:
        """Return factors of these kernels, such as an end of the intervals, in [ms] or [W]."""
        profiles = self.held_out.profiles(self.surfaces.base)
        return absolute_values(factors, profiles.quantity(self.predictor.quantity))

    @property
    def errors(self) -> Floats:
        """Return the absolute errors at every configuration but the base, (K, targets) [%]."""
        errors = absolute_percentage_error(self.surfaces.values, self.measured)
        return without_base(errors, self.held_out.grid.index(self.surfaces.base))

    @property
    def covered(self) -> Floats | None:
        """100 where an interval holds the truth, else 0, (K, targets) [%]; None without intervals.

        Its mean is the coverage.
        """
        inside = self.surfaces.holds(self.measured)
        if inside is None:
            return None
        percent = np.where(inside, 100.0, 0.0)
        return without_base(percent, self.held_out.grid.index(self.surfaces.base))


def cross_validate(
    data: Measurements,
    bases: Sequence[HardwareConfig],
    folds: Sequence[Fold],
    make: Callable[[], Sequence[Predictor]],
    training: TrainingRule = own,
    tables: Sequence[ProfiledTable] = (),
    coverage: float | None = None,
) -> Iterator[FoldPrediction]:
    """Predict the held-out kernels of each fold, and within a fold from each base.

    make: gives new predictors, one of each quantity that is wanted; those of all folds, bases and
    quantities are fitted as one batch where they can be. training: what they learn from, of these
    tables. Where none is of the GPU, grid and base of `data`, the predictors learn its peaks
    from the base profiles of the other kernels, if there are any. coverage: of the intervals; None
    for none. Raises InputError where something cannot be fitted or predicted.
    """
    cases = [
        (n, base, predictor) for n in range(len(folds)) for base in bases for predictor in make()
    ]
    learnt = {
        (n, base): training((data, base), fold, tables)
        for n, fold in enumerate(folds)
        for base in bases
    }
    selected: dict[tuple[int, int], Measurements] = {}  # by fold and table: it is a copy

    def select(fold: int, table: Measurements, kernels: Indices) -> Measurements:
        if (fold, id(table)) not in selected:
            selected[fold, id(table)] = table.select(kernels)
        return selected[fold, id(table)]

    started = time.perf_counter()
    jobs: list[tuple[Predictor, Training, Bases]] = []
    for n, base, predictor in cases:
        own_tables = [
            (select(n, table, kernels), own_base) for (table, own_base), kernels in learnt[n, base]
        ]
        jobs.append((predictor, *_as_training(own_tables)))
    with own_failures(cases[0][2], "fit", data.device):
        fit_all(jobs)
    elsewhere = {key: is_elsewhere((data, key[1]), tables) for key, tables in learnt.items()}
    for n, base, predictor in cases:
        if elsewhere[n, base] and len(folds[n][TRAIN]):
            others = data.select(folds[n][TRAIN]).profiles(base)
            with own_failures(predictor, "learn_peaks", data.device):
                for_other_gpus(predictor).learn_peaks(others, data.grid)
    train_seconds = (time.perf_counter() - started) / len(cases)
    held_out = cache(lambda n: data.select(folds[n][TEST]))  # a fold has many bases
    for n, base, predictor in cases:
        started = time.perf_counter()
        surfaces = _predicted(predictor, held_out(n), base, elsewhere[n, base], coverage)
        predict_seconds = time.perf_counter() - started
        yield FoldPrediction(predictor, held_out(n), surfaces, train_seconds, predict_seconds)


def _as_training(tables: Sequence[ProfiledTable]) -> tuple[Training, Bases]:
    """One table as it is, of which every predictor learns; several as lists."""
    if len(tables) == 1:
        return tables[0]
    return [table for table, _ in tables], [base for _, base in tables]


def _predicted(
    predictor: Predictor,
    held_out: Measurements,
    base: HardwareConfig,
    elsewhere: bool,
    coverage: float | None,
) -> Surfaces:
    """The surfaces of held-out kernels; elsewhere: nothing was learnt on their GPU and grid."""
    if isinstance(predictor, Oracle):
        return predictor.predict_measured(held_out)
    profiles, grid = held_out.profiles(base), held_out.grid if elsewhere else None
    with own_failures(predictor, "predict", held_out.device):
        return predict_surfaces(predictor, profiles, grid, coverage)


def warn_of_tested_kernels(name: str, tested: Measurements, learnt: Learnt) -> None:
    """Warn where tables to train on have kernels under test, under another application's name.

    What is tested is left out of them by its application, so that these would be trained on.
    """
    ours = {k.casefold(): a for k, a in zip(tested.kernels, tested.applications, strict=True)}
    known = [
        f"'{kernel}' of '{application}', there of '{ours[kernel.casefold()]}'"
        for (table, _), positions in learnt
        if table is not tested
        for kernel, application in ((table.kernels[k], table.applications[k]) for k in positions)
        if ours.get(kernel.casefold(), application) != application
    ]
    if known:
        warn(
            f"{counted(len(known), 'kernel')} to train on may be under test in '{name}', such as "
            f"{known[0]}: what is tested is left out of the training by its application; if it is "
            "one program, name its application alike in all tables"
        )
