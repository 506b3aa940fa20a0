"""What sums up the errors of a study, and how sure it is: standard errors and paired tests."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import WITH_POWER
from mlscale.studies.candidates import ORACLE, Candidate
from mlscale.studies.splits import is_partial

Row = dict[str, Any]
Errors = Mapping[str, Sequence[float]]  # of each application's kernels

LEVEL = 0.05  # of the test that tells a candidate from the best


@dataclass(frozen=True)
class ErrorSummary:
    """The figures every error table shows, all in percent.

    mape: mean over kernels and targets; median_kernel: median of the kernels' means;
    p90: 90th percentile over kernel x target; worst_kernel: the kernel of the largest mean.
    """

    mape: float
    median_kernel: float
    p90: float
    worst_kernel: str
    worst_kernel_mape: float


def kernel_means(errors: Floats, kernels: Sequence[str]) -> dict[str, float]:
    """Return the mean error [%] of each kernel; errors (n, targets), the kernel of each row."""
    names = np.array(kernels)
    return {kernel: float(errors[names == kernel].mean()) for kernel in dict.fromkeys(kernels)}


def summarise(errors: Floats, kernels: Sequence[str]) -> ErrorSummary:
    """Summarise errors (n, targets) [%]; a kernel may have several rows, one for each seed."""
    means = kernel_means(errors, kernels)
    worst = max(means, key=lambda kernel: means[kernel])
    return ErrorSummary(
        mape=float(errors.mean()),
        median_kernel=float(np.median(list(means.values()))),
        p90=float(np.percentile(errors, 90)),
        worst_kernel=worst,
        worst_kernel_mape=means[worst],
    )


def standard_error(
    values: Sequence[float], groups: Sequence[Hashable] | None = None
) -> float | None:
    """Return the standard error of the mean of values, None of fewer than two groups.

    groups: to which each value belongs; those of one group may be alike, groups are taken to be
    independent. None for a group of each value's own, where it is the deviation / sqrt(n). Source:
    Cameron and Miller, A practitioner's guide to cluster-robust inference, 2015, section II.

    >>> standard_error([1.0, 3.0])
    1.0
    """
    labels = list(range(len(values)) if groups is None else groups)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    if len(numbers) < 2:
        return None
    off = np.asarray(values, dtype=np.float64) - np.mean(values)
    sums = np.bincount([numbers[label] for label in labels], weights=off)
    return _of_sums(sums / len(labels))


def split_error(
    values: Sequence[float], applications: Sequence[str], seeds: Sequence[int], split: str
) -> float | None:
    """Return the standard error of the mean of kernels' values under a protocol.

    Over splits, one for each seed, where each tests other kernels; else over applications.
    """
    return standard_error(values, seeds if is_partial(split) else applications)


def error_over(split: str) -> str:
    """Return what `split_error` goes over, in words."""
    return "splits" if is_partial(split) else "applications"


def _of_sums(shares: Floats) -> float:
    """Return the standard error where each group adds that share of the mean's deviation."""
    count = len(shares)
    return float(np.sqrt(count / (count - 1) * (shares**2).sum()))


def paired_difference(one: Errors, other: Errors) -> tuple[float, float | None, float]:
    """Return the mean of one - other, its standard error, and p of the paired t test.

    one, other: the errors of each application's kernels; applications are the pairs, and count
    as they have kernels in `one`. None and 1 with fewer than two applications.
    """
    from scipy.stats import t

    weights = np.array([len(values) for values in one.values()], dtype=np.float64)
    weights /= weights.sum()
    differences = np.array([np.mean(one[name]) - np.mean(other[name]) for name in one])
    mean = float(weights @ differences)
    if len(differences) < 2:
        return mean, None, 1.0
    error = _of_sums(weights * (differences - mean))
    if error == 0:
        return mean, error, float(mean == 0)
    return mean, error, float(2 * t.sf(abs(mean) / error, len(differences) - 1))


def behind_best(errors: Mapping[Candidate, Errors]) -> dict[Candidate, Row]:
    """For each candidate of a table and quantity how far its mean error is above the least.

    errors: of each application's kernels. Gives behind_best and behind_best_standard_error of the
    differences paired by application, and within_error_of_best: whether the paired t test does not
    tell it from the best at LEVEL. The oracle, which knows the truth, is never the best; None
    for it.
    """
    means = {one: _mean(of) for one, of in errors.items() if one.name != ORACLE}
    best = min(means, key=means.__getitem__, default=None)
    rows: dict[Candidate, Row] = {}
    for candidate, of in errors.items():
        mean = error = within = None
        if best is not None and candidate in means:
            mean, error, p = paired_difference(of, errors[best])
            within = candidate == best or (error is not None and p > LEVEL)
        rows[candidate] = {
            "behind_best": mean,
            "behind_best_standard_error": error,
            "within_error_of_best": within,
        }
    return rows


def p_values(errors: Mapping[Candidate, Errors]) -> dict[Candidate, Row]:
    """For each candidate of a table and quantity: n_applications, compared_with and p_value.

    errors: of each application's kernels. Compared are the applications' mean errors with those of
    `wu` on the features that suit the table best, for power with the base's power among them if
    that stands in the study. The p-values are corrected for their number; None for that wu itself,
    for the oracle, which knows the truth, and where there is no wu.
    """
    wu = _wu(errors)
    tested = [one for one in errors if wu and one != wu and one.name != ORACLE]
    p = holm([signed_rank(errors[one], errors[wu]) for one in tested]) if wu else []
    corrected = dict(zip(tested, p, strict=True))
    return {
        candidate: {
            "n_applications": len(of),
            "compared_with": wu.features if wu and candidate in corrected else None,
            "p_value": corrected.get(candidate),
        }
        for candidate, of in errors.items()
    }


def _mean(errors: Errors) -> float:
    return float(np.mean([value for values in errors.values() for value in values]))


def _wu(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the `wu` that the others of its table and quantity are compared with."""
    wus = [one for one in candidates if one.name == "wu"]
    with_power = [one for one in wus if (one.features or "").endswith(WITH_POWER)]
    return next(iter([*with_power, *wus]), None)


def signed_rank(one: Errors, other: Errors) -> float:
    """Two-sided p of Wilcoxon's signed-rank test on the mean errors of the same applications.

    Applications with equal errors are left out, as Wilcoxon does; 1 where all are equal.
    """
    from scipy.stats import wilcoxon

    differences = np.array([np.mean(one[name]) - np.mean(other[name]) for name in one])
    differences = differences[differences != 0]
    return float(wilcoxon(differences).pvalue) if differences.size else 1.0


def holm(p: list[float]) -> list[float]:
    """Holm's correction: the i-th smallest of n times n - i + 1, at least those before it.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(np.arange(len(p), 0, -1) * np.asarray(p)[order])
    return [*map(float, np.minimum(corrected, 1.0))]
