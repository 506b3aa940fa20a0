"""The one cross-validation of all studies: what is held out is predicted from everything else.

Everything random and everything chosen is fitted anew inside each fold.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, get_args

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid, HardwareConfig
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
    predict_beyond,
    predict_surfaces,
)
from mlscale.studies.candidates import own_failures
from mlscale.studies.oracle import Oracle
from mlscale.studies.splits import Fold
from mlscale.text import counted

TrainingOn = Literal["own-table", "pooled", "unseen-gpu"]
ProfiledTable = tuple[Measurements, HardwareConfig]

TRAININGS: tuple[str, ...] = get_args(TrainingOn)

TRAIN, TEST = 0, 1  # the places in a fold


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
    pool: Sequence[ProfiledTable] = (),
    unseen: bool = False,
    coverage: float | None = None,
) -> Iterator[FoldPrediction]:
    """Predict the held-out kernels of each fold, and within a fold from each base.

    make: gives new predictors, one of each quantity that is wanted; those of all folds, bases and
    quantities are fitted as one batch where they can be. pool: the tables to train on instead of
    `data`; an application that is held out is held out of all of them. unseen: `data` is of a GPU
    or grid that no table of the pool is of; the predictors learn its peaks from the base profiles
    of the other kernels, where there are any; else where the first table of the pool is on
    another grid, `data`'s is predicted beyond it. coverage: of the intervals; None for none. Raises
    InputError where something cannot be fitted or predicted.
    """
    # A fold has many bases, and a selection is a copy.
    selected = cache(lambda fold, part: data.select(folds[fold][part]))
    cases = [
        (n, base, predictor) for n in range(len(folds)) for base in bases for predictor in make()
    ]
    started = time.perf_counter()
    jobs: list[tuple[Predictor, Training, Bases]] = []
    for fold, base, predictor in cases:
        tables = [(selected(fold, TRAIN), base)]
        if pool:
            tables = without_applications(pool, {data.applications[k] for k in folds[fold][TEST]})
        jobs.append((predictor, *_as_training(tables)))
    with own_failures(cases[0][2], "fit", data.device):
        fit_all(jobs)
    for fold, base, predictor in cases:
        if unseen and len(folds[fold][TRAIN]):
            others = selected(fold, TRAIN).profiles(base)
            with own_failures(predictor, "learn_peaks", data.device):
                for_other_gpus(predictor).learn_peaks(others, data.grid)
    train_seconds = (time.perf_counter() - started) / len(cases)
    trained = pool[0][0].grid if pool else data.grid
    for fold, base, predictor in cases:
        held_out = selected(fold, TEST)
        started = time.perf_counter()
        surfaces = _predicted(predictor, held_out, base, None if unseen else trained, coverage)
        predict_seconds = time.perf_counter() - started
        yield FoldPrediction(predictor, held_out, surfaces, train_seconds, predict_seconds)


def _as_training(tables: Sequence[ProfiledTable]) -> tuple[Training, Bases]:
    """One table as it is, of which every predictor learns; several as lists."""
    if len(tables) == 1:
        return tables[0]
    return [table for table, _ in tables], [base for _, base in tables]


def _predicted(
    predictor: Predictor,
    held_out: Measurements,
    base: HardwareConfig,
    trained: ConfigGrid | None,
    coverage: float | None,
) -> Surfaces:
    """The surfaces of held-out kernels; trained: the grid learnt from, None of other GPUs alone."""
    if isinstance(predictor, Oracle):
        return predictor.predict_measured(held_out)
    profiles, grid = held_out.profiles(base), held_out.grid
    with own_failures(predictor, "predict", held_out.device):
        if trained is None:
            return predict_surfaces(predictor, profiles, grid, coverage)
        if trained == grid:
            return predict_surfaces(predictor, profiles, None, coverage)
        return predict_beyond(predictor, profiles, trained, grid, coverage)


def training_tables(
    training: str, target: ProfiledTable, tables: Sequence[ProfiledTable]
) -> list[ProfiledTable]:
    """The tables that predictors of the target train on, before anything is held out.

    pooled: all, the target first. unseen-gpu: those of other devices. own-table: none, which
    stands for the target itself. Raises InputError on another word, and where too few are left.
    """
    if training not in TRAININGS:
        raise InputError(f"there is no training '{training}'; one of {', '.join(TRAININGS)}")
    if training == "own-table":
        return []
    if training == "pooled":
        if len(tables) < 2:
            raise InputError("training on several GPUs at once needs two tables at least")
        return [target, *(table for table in tables if table is not target)]
    others = [table for table in tables if table[0].device != target[0].device]
    if not others:
        raise InputError(f"no table is of another GPU than '{target[0].device}' to train on")
    return others


def warn_of_tested_kernels(
    name: str, tested: Measurements, tables: Sequence[ProfiledTable]
) -> None:
    """Warn where tables to train on have kernels under test, under another application's name.

    What is tested is left out of them by its application, so that these would be trained on.
    """
    ours = {k.casefold(): a for k, a in zip(tested.kernels, tested.applications, strict=True)}
    known = [
        f"'{kernel}' of '{own}', there of '{ours[kernel.casefold()]}'"
        for table, _ in tables
        if table is not tested
        for kernel, own in zip(table.kernels, table.applications, strict=True)
        if ours.get(kernel.casefold(), own) != own
    ]
    if known:
        warn(
            f"{counted(len(known), 'kernel')} to train on may be under test in '{name}', such as "
            f"{known[0]}: what is tested is left out of the training by its application; if it is "
            "one program, name its application alike in all tables"
        )


def without_applications(
    tables: Sequence[ProfiledTable], applications: set[str]
) -> list[ProfiledTable]:
    """Return the tables without those applications' kernels; what is then empty is left out."""
    rest = []
    for table, base in tables:
        kernels = [k for k, name in enumerate(table.applications) if name not in applications]
        if kernels:
            rest.append((table.select(kernels), base))
    return rest
