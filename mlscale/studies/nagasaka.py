"""Cross-validated errors of Nagasaka's power model, with lambda chosen anew inside every fold.

Source: Nagasaka et al. 2010, section IV: ten-fold evaluation, lambda by n-fold cross-validation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.errors import InputError
from mlscale.papers import nagasaka
from mlscale.papers.nagasaka_counters import PowerInputs, untrained

Bools = Mask
Integers = Indices

Grouping = Literal["kernel", "application"]

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
FOLDS = 10
SHUFFLES = 5
# No penalty, and 1/100 to 10 000: from hardly any to nothing but the intercept.
PENALTIES: tuple[float, ...] = (0.0, *np.logspace(-2, 4, 25).tolist())
# Keeps the random numbers of the evaluation apart from those of the choice of lambda.
_OUTER_SEED = 20_100_815
_INNER_SEED = 70_000_000


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Every kernel estimated by a model that was trained without it.

    estimated_w (K,) [W]; penalty (K,): the lambda of the kernel's fold; untrained (K, F): the
    variables that are not zero in the kernel but were in all of its fold's training.
    """

    estimated_w: Floats
    penalty: Floats
    untrained: Bools


@dataclass(frozen=True, eq=False)
class SetErrors:
    """One set of counters under one grouping of folds, over S shuffles of the folds.

    estimated_w (S, K) and actual_w (K,) [W]; penalty (S, K); untrained: for each kernel the names
    of the variables that some shuffle's training could not teach.
    """

    name: str
    variables: tuple[str, ...]
    grouping: Grouping
    estimated_w: Floats
    actual_w: Floats
    penalty: Floats
    untrained: tuple[tuple[str, ...], ...]

    @property
    def errors_percent(self) -> Floats:
        """100 |estimated - actual| / actual, (S, K) [%]."""
        return np.asarray(100 * np.abs(self.estimated_w - self.actual_w) / self.actual_w)

    @property
    def mean_squared_error_w2(self) -> float:
        """Average squared error over kernels and shuffles [W^2]."""
        return nagasaka.mean_squared_error_w2(self.estimated_w, self.actual_w)


def choose_penalty(rates: Floats, power_w: Floats, groups: Integers, seeds: Sequence[int]) -> float:
    """The lambda of least squared error in a cross-validation of these kernels alone.

    rates (K, F) [1/s], power_w (K,) [W], groups (K,): kernels of one group are held out together.
    10 folds, or as many as there are groups, once for each seed; the smallest lambda of those that
    are equally good. Raises InputError where there is one group only.
    """
    if not rates.shape[1]:
        return PENALTIES[0]
    squared = np.zeros(len(PENALTIES))
    for seed in seeds:
        for train, test in _folds(groups, _INNER_SEED + seed):
            alpha, beta = nagasaka.fit_ridge(rates[train], power_w[train], PENALTIES)
            estimated = rates[test] @ alpha.T + beta
            squared += ((estimated - power_w[test, None]) ** 2).sum(axis=0)
    return PENALTIES[int(squared.argmin())]


def hold_out(rates: Floats, power_w: Floats, groups: Integers, seed: int) -> HeldOut:
    """Ten-fold evaluation: standardising, lambda and coefficients are learnt inside each fold.

    rates (K, F) [1/s], power_w (K,) [W], groups (K,): at least 10 groups, held out together.
    Raises InputError where there are fewer.
    """
    found = len(np.unique(groups))
    if found < FOLDS:
        raise InputError(f"ten folds need {FOLDS} groups of kernels, not {found}")
    estimated, penalty = np.empty(len(power_w)), np.empty(len(power_w))
    unknown = np.zeros(rates.shape, dtype=bool)
    for train, test in _folds(groups, _OUTER_SEED + seed):
        penalty[test] = choose_penalty(rates[train], power_w[train], groups[train], [seed])
        model = nagasaka.fit_power_model(rates[train], power_w[train], penalty[test][0])
        estimated[test] = nagasaka.estimate_power_w(model, rates[test])
        unknown[test] = untrained(rates[train], rates[test])
    return HeldOut(estimated, penalty, unknown)


def evaluate(
    inputs: PowerInputs, groupings: Sequence[Grouping], shuffles: int
) -> Iterator[SetErrors]:
    """The errors of every set of counters under each grouping of the folds, one by one.

    Raises InputError where there are fewer than 10 groups.
    """
    for grouping in groupings:
        groups = group_numbers(inputs, grouping)
        for name in inputs.sets:
            rates = inputs.matrix(name)
            runs = [hold_out(rates, inputs.power_w, groups, seed) for seed in range(shuffles)]
            yield SetErrors(
                name=name,
                variables=inputs.sets[name],
                grouping=grouping,
                estimated_w=np.array([run.estimated_w for run in runs]),
                actual_w=inputs.power_w,
                penalty=np.array([run.penalty for run in runs]),
                untrained=_named(np.any([run.untrained for run in runs], axis=0), inputs, name),
            )


def fit_all(inputs: PowerInputs, name: str) -> tuple[nagasaka.PowerModel, float]:
    """The model of all kernels and its lambda, chosen with folds grouped by application."""
    rates = inputs.matrix(name)
    groups = group_numbers(inputs, "application")
    penalty = choose_penalty(rates, inputs.power_w, groups, range(SHUFFLES))
    return nagasaka.fit_power_model(rates, inputs.power_w, penalty), penalty


def group_numbers(inputs: PowerInputs, grouping: Grouping) -> Integers:
    """A number for each kernel, the same for those that are held out together, (K,)."""
    if grouping == "kernel":
        return np.arange(len(inputs.kernels))
    return np.unique(np.array(inputs.applications), return_inverse=True)[1]


def _folds(groups: Integers, seed: int) -> list[tuple[Integers, Integers]]:
    from sklearn.model_selection import GroupKFold

    count = min(FOLDS, len(np.unique(groups)))
    if count < 2:
        raise InputError("cross-validation needs two groups of kernels at least, not one")
    splitter = GroupKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(groups)), groups=groups))


def _named(unknown: Bools, inputs: PowerInputs, name: str) -> tuple[tuple[str, ...], ...]:
    variables = inputs.sets[name]
    return tuple(tuple(np.array(variables)[row].tolist()) for row in unknown)
