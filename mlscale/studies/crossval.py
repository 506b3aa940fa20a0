"""The one cross-validation of all studies: what is held out is predicted from everything else.

Everything random and everything chosen is fitted anew inside each fold. `folds` says who is held
out; a training, such as `same_table`, says which kernels of which tables are learnt from instead.
`from_two_readings` predicts the runs of a GPU left out, as somebody does who has two logs of a run
and a model of other GPUs.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import HardwareConfig, Index
from mlscale.data.measurements import Measurements
from mlscale.data.points import SECOND_CLOCK
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.surfaces import Surfaces, absolute_percentage_error, absolute_values, without_base
from mlscale.errors import DataWarning, InputError, warn
from mlscale.model.model import train
from mlscale.model.predictions import COVERAGE
from mlscale.parameters import parameter
from mlscale.predictors.base import Predictor, TrainingSet, for_other_gpus, predict_surfaces
from mlscale.studies.candidates import Oracle
from mlscale.text import counted

Protocol = Literal["leave-one-application-out", "k-fold", "holdout", "random-kernels"]

PROTOCOLS: tuple[str, ...] = get_args(Protocol)
LEAVE_ONE_OUT, K_FOLD, HOLDOUT, RANDOM_KERNELS = PROTOCOLS
FOLDS = 5
HELD_OUT_SHARE = 0.2
_OUTER_SEED = 20_150_207  # keeps the splits' random numbers apart from the predictors' seeds

Fold = tuple[Indices, Indices]  # positions of the training kernels, and of those held out
ProfiledTable = tuple[Measurements, HardwareConfig]
Learnt = list[tuple[ProfiledTable, Indices]]  # tables, and which of their kernels
Training = Callable[[ProfiledTable, Fold, Sequence[ProfiledTable]], Learnt]
Side = tuple[Floats, Floats | None]  # time [ms] and power [W], (K, C, E, M)


def folds(
    protocol: str, applications: tuple[str, ...], seed: int, count: int = FOLDS
) -> list[Fold]:
    """Positions of training and held-out kernels, for each fold.

    k-fold: `count` folds of the applications; holdout: 20 % of the applications once;
    random-kernels: 20 % of the kernels once, as Wu et al. hold them out, whatever application they
    are of.
    Raises InputError where there are too few applications, or kernels.
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol '{protocol}'; one of {', '.join(PROTOCOLS)}")
    is_of_kernels = protocol == RANDOM_KERNELS
    what = "kernels" if is_of_kernels else "applications"
    there = len(applications if is_of_kernels else set(applications))
    needed = count if protocol == K_FOLD else 2
    if there < needed:
        problem = f"the protocol '{protocol}' needs {needed} {what}, not {there}"
        if not is_of_kernels:
            problem += "; if the kernels are independent, name each as its own application "
            problem += f"({parameter('columns', {'application': 'kernel'})}), "
            problem += f"or use the protocol '{RANDOM_KERNELS}'"
        raise InputError(problem)
    names, seed = np.array(applications), _OUTER_SEED + seed
    if protocol == LEAVE_ONE_OUT:
        # Not scikit-learn's LeaveOneGroupOut: its import takes longer than many a study.
        return [
            (np.flatnonzero(names != name), np.flatnonzero(names == name))
            for name in np.unique(names)
        ]
    if protocol == K_FOLD:
        return grouped_folds(names, count, seed)
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

    kind, groups = (ShuffleSplit, None) if is_of_kernels else (GroupShuffleSplit, names)
    splitter = kind(1, test_size=HELD_OUT_SHARE, random_state=seed)
    return list(splitter.split(np.zeros(len(names)), groups=groups))


def grouped_folds(groups: NDArray[Any], count: int, seed: int) -> list[Fold]:
    """That many folds, drawn at random; groups (K,): kernels of one group are held out together."""
    from sklearn.model_selection import GroupKFold

    splitter = GroupKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(groups)), groups=groups))


def is_partial(protocol: str) -> bool:
    """Whether each seed holds out some kernels alone, so that a mean depends on which."""
    return protocol in (HOLDOUT, RANDOM_KERNELS)


def is_random(protocol: str) -> bool:
    """Whether the folds depend on the seed."""
    return protocol != LEAVE_ONE_OUT


def same_table(target: ProfiledTable, fold: Fold, _: Sequence[ProfiledTable] = ()) -> Learnt:
    """Learn from the target itself, without what is held out."""
    return [(target, fold[0])]


def pooled(target: ProfiledTable, fold: Fold, tables: Sequence[ProfiledTable]) -> Learnt:
    """Learn from all tables, without the applications that are held out of the target.

    The target comes first if it is among them, then those like it; a table of which nothing is left
    is left out.
    """
    tested = {target[0].applications[k] for k in fold[1]}
    in_turn = sorted(tables, key=lambda one: (one[0] is not target[0], not alike(one, target)))
    learnt = []
    for table in in_turn:
        kernels = [k for k, name in enumerate(table[0].applications) if name not in tested]
        if kernels:
            learnt.append((table, np.array(kernels)))
    return learnt


def unseen_gpu(target: ProfiledTable, fold: Fold, tables: Sequence[ProfiledTable]) -> Learnt:
    """Learn from the tables of other GPUs alone, without the applications that are held out."""
    return pooled(target, fold, [one for one in tables if one[0].device != target[0].device])


TRAININGS: dict[str, Training] = {
    "own-table": same_table,
    "pooled": pooled,
    "unseen-gpu": unseen_gpu,
}


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
        """Return the measured surfaces, relative to the base (K, C, E, M), NaN where they lack."""
        return self.held_out.measured_relative(self.predictor.quantity, self.surfaces.base)

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
        """Return the absolute errors at every configuration but the base, (K, targets) [%].

        NaN where a kernel was not measured.
        """
        errors = absolute_percentage_error(self.surfaces.values, self.measured)
        return without_base(errors, self.held_out.grid.index(self.surfaces.base))

    @property
    def covered(self) -> Floats | None:
        """100 where an interval holds the truth, else 0, (K, targets) [%]; None without intervals.

        NaN where a kernel was not measured; the mean of the others is the coverage.
        """
        inside = self.surfaces.holds(self.measured)
        if inside is None:
            return None
        percent = np.where(np.isnan(self.measured), np.nan, np.where(inside, 100.0, 0.0))
        return without_base(percent, self.held_out.grid.index(self.surfaces.base))


@dataclass(frozen=True, eq=False)
class _Case:
    """A predictor to fit, the fold and base it is of, and the parts of tables it learns from.

    is_elsewhere: none of these is of the GPU, grid and base to predict.
    """

    predictor: Predictor
    fold: Fold
    base: HardwareConfig
    tables: list[ProfiledTable]
    is_elsewhere: bool


def cross_validate(
    data: Measurements,
    bases: Sequence[HardwareConfig],
    folds: Sequence[Fold],
    make: Callable[[], Sequence[Predictor]],
    training: Training = same_table,
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
    started = time.perf_counter()
    cases = _cases(data, bases, folds, make, training, tables)
    _fit(cases, data)
    train_seconds = (time.perf_counter() - started) / len(cases)
    fold, held_out = None, data
    for case in cases:
        if case.fold is not fold:
            fold, held_out = case.fold, data.select(case.fold[1])
        started = time.perf_counter()
        surfaces = _predicted(case, held_out, coverage)
        predict_seconds = time.perf_counter() - started
        yield FoldPrediction(case.predictor, held_out, surfaces, train_seconds, predict_seconds)


def _cases(
    data: Measurements,
    bases: Sequence[HardwareConfig],
    folds: Sequence[Fold],
    make: Callable[[], Sequence[Predictor]],
    training: Training,
    tables: Sequence[ProfiledTable],
) -> list[_Case]:
    cases = []
    for fold in folds:
        selected: dict[int, Measurements] = {}  # by table: each is a copy that all bases share
        for base in bases:
            target = (data, base)
            learnt = training(target, fold, tables)
            for (table, _), kernels in learnt:
                if id(table) not in selected:
                    selected[id(table)] = table.select(kernels)
            parts = [(selected[id(table)], table_base) for (table, table_base), _ in learnt]
            elsewhere = is_elsewhere(target, learnt)
            cases += [_Case(predictor, fold, base, parts, elsewhere) for predictor in make()]
    return cases


def _fit(cases: Sequence[_Case], data: Measurements) -> None:
    """Fit all predictors as one batch; those of an unseen GPU learn its peaks from profiles."""
    jobs: list[Any] = []
    for case in cases:
        if len(case.tables) == 1:  # every predictor learns from one
            jobs.append((case.predictor, *case.tables[0]))
        else:
            several, bases = zip(*case.tables, strict=True)
            jobs.append((case.predictor, several, bases))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* at the base ", DataWarning)  # told of all kernels
        type(cases[0].predictor).fit_together(jobs)
    for case in cases:
        others = case.fold[0]
        if case.is_elsewhere and len(others):
            profiles = data.select(others).profiles(case.base)
            for_other_gpus(case.predictor).learn_peaks(profiles, data.grid)


def _predicted(case: _Case, held_out: Measurements, coverage: float | None) -> Surfaces:
    if isinstance(case.predictor, Oracle):
        return case.predictor.predict_measured(held_out)
    profiles, grid = held_out.profiles(case.base), held_out.grid if case.is_elsewhere else None
    return predict_surfaces(case.predictor, profiles, grid, coverage)


def warn_of_tested_kernels(name: str, tested: Measurements, learnt: Learnt) -> None:
    """Warn where tables to train on have kernels under test, under another application's name.

    What is tested is left out of them by its application, so that these would be trained on.
    """
    ours = {k.casefold(): a for k, a in zip(tested.kernels, tested.applications, strict=True)}
    known = []
    for (table, _), positions in learnt:
        for k in positions if table is not tested else ():
            kernel, application = table.kernels[k], table.applications[k]
            here = ours.get(kernel.casefold(), application)
            if here != application:
                known.append(f"'{kernel}' of '{application}', there of '{here}'")
    if known:
        warn(
            "T08",
            f"{counted(len(known), 'kernel')} to train on may be under test in '{name}', such as "
            f"{known[0]}; give one program the same application name in all tables",
        )


def from_two_readings(
    predictor: Predictor | None,
    data: Measurements,
    base: HardwareConfig,
    static_power_w: float,
    others: Sequence[TrainingSet],
) -> tuple[list[Side], Floats | None]:
    """Predicted time and power, also at the low and the high ends, and the high ends of time alone.

    The readings of each kernel are at the base and at `second_reading`. Power's ends are such that
    times those of time they are the ends of energy. Raises InputError.
    """
    (first, at), *more = others
    model = train(first, at, predictor, others=more).for_gpu(data.device, data.grid, base)
    second = second_reading(data, base)
    read = (slice(None), *second)
    watts = None if data.power_w is None else data.power_w[read]
    point = MeasuredPoint(data.grid.config(second), data.time_ms[read], watts)
    profiles = replace(data.profiles(base), points=(point,))
    predictions = model.predict(profiles, COVERAGE)
    time = predictions["time"].absolute(profiles.time_ms)
    if "power" not in predictions.surfaces:
        return [(time.values, None)], time.high
    power = predictions["power"].absolute(profiles.quantity("power"), static_power_w)
    sides: list[Side] = [(time.values, power.values)]
    if predictions.energy is not None:
        energy = predictions.energy.absolute(profiles.time_ms * profiles.quantity("power"))
        sides += [
            (ms, mj / ms + static_power_w)
            for ms, mj in ((time.low, energy.low), (time.high, energy.high))
            if ms is not None and mj is not None
        ]
    return sides, time.high


def second_reading(data: Measurements, base: HardwareConfig) -> Index:
    """Where the second reading is: at the next clock below SECOND_CLOCK of the base, or lowest."""
    c, _, m = data.grid.index(base)
    below = np.array(data.grid.engine_mhz) <= SECOND_CLOCK * base.engine_mhz
    return c, max(int(below.sum()) - 1, 0), m
