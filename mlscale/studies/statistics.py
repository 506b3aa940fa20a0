"""What sums up the errors of a study, and how sure it is: standard and paired errors."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.surfaces import mean_of_kernels
from mlscale.errors import DataWarning, InputError
from mlscale.model.model import Model
from mlscale.predictors import create
from mlscale.studies.candidates import ORACLE, Candidate
from mlscale.studies.crossval import (
    FOLDS,
    K_FOLD,
    RANDOM_KERNELS,
    ProfiledTable,
    cross_validate,
    folds,
    is_partial,
    pooled,
    same_table,
    warn_of_tested_kernels,
)

Row = dict[str, Any]
Errors = Mapping[str, Sequence[float]]  # by unit: an application's kernels, or a kernel

SIGNIFICANCE = 0.05  # level of the test that tells a candidate from the best


@dataclass(frozen=True)
class ErrorSummary:
    """The figures every error table shows, all in percent.

    mape: mean of the kernels' means over their measured targets; median_kernel: median of these;
    p90: 90th percentile over kernel x target; worst_kernel: the kernel of the largest mean.
    """

    mape: float
    median_kernel: float
    p90: float
    worst_kernel: str
    worst_kernel_mape: float


def summarise(errors: Floats, kernels: Sequence[str]) -> ErrorSummary:
    """Summarise errors (n, targets) [%], NaN if not measured; a kernel has a row for each seed."""
    names = np.array(kernels)
    means = {name: float(np.nanmean(errors[names == name])) for name in dict.fromkeys(kernels)}
    worst = max(means, key=means.__getitem__)
    return ErrorSummary(
        mape=mean_of_kernels(errors),
        median_kernel=float(np.median(list(means.values()))),
        p90=float(np.nanpercentile(errors, 90)),
        worst_kernel=worst,
        worst_kernel_mape=means[worst],
    )


def standard_error(
    values: Sequence[float], groups: Sequence[Hashable] | None = None
) -> float | None:
    """Return the standard error of the mean of values, None of fewer than two groups.

    groups: to which each value belongs; those of one group may be alike, groups are assumed to
    be independent. None for a group of each value's own, where it is the deviation / sqrt(n).
    Source: Cameron and Miller, A practitioner's guide to cluster-robust inference, 2015,
    section II.

    >>> standard_error([1.0, 3.0])
    1.0
    """
    labels = list(range(len(values)) if groups is None else groups)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    if len(numbers) < 2:
        return None
    off = np.asarray(values, dtype=np.float64) - np.mean(values)
    sums = np.bincount([numbers[label] for label in labels], weights=off)
    return _error_of_mean(sums / len(labels))


def split_error(
    values: Sequence[float], applications: Sequence[str], seeds: Sequence[int], protocol: str
) -> float | None:
    """Return the standard error of the mean of kernels' values under a protocol.

    Over splits, one for each seed, where each tests other kernels; else over applications.
    """
    return standard_error(values, seeds if is_partial(protocol) else applications)


def error_over(protocol: str) -> str:
    """Return what `split_error` goes over, in words."""
    return "splits" if is_partial(protocol) else "applications"


def paired_by(protocol: str) -> str:
    """Return what pairs the errors of two predictors: 'application' or 'kernel', what is held out.

    Pairs must be independent. Kernels of one application may be alike, so applications are the
    units wherever these are held out. `random-kernels` draws kernels and so claims that each is
    one; where they are alike, its test tells too much. Its splits are no units: they overlap.
    """
    return "kernel" if protocol == RANDOM_KERNELS else "application"


def _error_of_mean(shares: Floats) -> float:
    """The standard error where each group adds that share of the mean's deviation."""
    count = len(shares)
    return float(np.sqrt(count / (count - 1) * (shares**2).sum()))


def paired_difference(one: Errors, other: Errors) -> tuple[float, float | None, bool]:
    """Return the mean of one - other, its standard error, and whether a paired t test tells it.

    one, other: the errors of each unit (see `paired_by`), which count as they have errors in
    `one`. The test is two-sided at SIGNIFICANCE; with fewer than two units there is no standard
    error, and nothing is told.
    """
    from scipy.stats import t

    weights = np.array([len(values) for values in one.values()], dtype=np.float64)
    weights /= weights.sum()
    differences = np.array([np.mean(one[name]) - np.mean(other[name]) for name in one])
    mean = float(weights @ differences)
    if len(differences) < 2:
        return mean, None, False
    error = _error_of_mean(weights * (differences - mean))
    return mean, error, bool(abs(mean) > t.isf(SIGNIFICANCE / 2, len(differences) - 1) * error)


def behind_best(errors: Mapping[Candidate, Errors]) -> dict[Candidate, Row]:
    """For each candidate of a table and quantity how far its mean error is above the least.

    errors: of each unit. Gives behind_best and behind_best_standard_error of the differences paired
    by unit, and within_error_of_best: whether the paired t test does not tell it from the best at
    SIGNIFICANCE. The oracle, which knows the truth, is never the best; None for it.
    """
    means = {
        one: np.mean([value for values in by_unit.values() for value in values])
        for one, by_unit in errors.items()
        if one.name != ORACLE
    }
    best = min(means, key=means.__getitem__, default=None)
    rows: dict[Candidate, Row] = {}
    for candidate, by_unit in errors.items():
        mean = error = within = None
        if best is not None and candidate in means:
            mean, error, is_told = paired_difference(by_unit, errors[best])
            within = candidate == best or (error is not None and not is_told)
        rows[candidate] = {
            "behind_best": mean,
            "behind_best_standard_error": error,
            "within_error_of_best": within,
        }
    return rows


def left_out_errors(model: Model, tables: list[ProfiledTable]) -> dict[str, Any]:
    """The errors of the model's predictors on applications that they did not learn from.

    tables: those that the model learnt from, its own first, each with its base. The applications
    of the first are left out of all tables in at most FOLDS folds, of one seed; so this takes as
    long as FOLDS trainings at most. Gives `folds`, and for each quantity the mape and its
    standard_error, in percent.
    Raises InputError where there is one application alone, or the others do not suffice.
    """
    data, base = tables[0]
    count = min(FOLDS, len(set(data.applications)))
    if count < 2:
        raise InputError("it needs at least two applications")
    made = folds(K_FOLD, data.applications, 0, count)
    applications = [data.applications[k] for _, test in made for k in test]
    predictors = model.predictors.values()
    others = [(one, np.arange(len(one[0].kernels))) for one in tables[1:]]
    warn_of_tested_kernels(data.device, data, others)
    training = pooled if len(tables) > 1 else same_table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the training told them
        predictions = list(
            cross_validate(data, [base], made, lambda: [*map(create, predictors)], training, tables)
        )
    found: dict[str, Any] = {"folds": count}
    for quantity in model.predictors:
        errors = np.concatenate(
            [one.errors for one in predictions if one.predictor.quantity == quantity]
        )
        by_kernel = np.nanmean(errors, axis=1).tolist()
        error = standard_error(by_kernel, applications)
        found[quantity] = {"mape": mean_of_kernels(errors), "standard_error": error}
    return found
