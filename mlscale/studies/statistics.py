"""How sure a study is: standard errors of its means, and paired differences by application."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import WITH_POWER
from mlscale.studies.candidates import ORACLE, Candidate
from mlscale.studies.splits import is_random

Key = tuple[str, str, Candidate]
Errors = Mapping[str, Sequence[float]]

LEVEL = 0.05  # of the test that tells a candidate from the best


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

    Over splits, one for each seed, where these are random; else over applications.
    """
    return standard_error(values, seeds if is_random(split) else applications)


def error_over(split: str) -> str:
    """Return what `split_error` goes over, in words."""
    return "splits" if is_random(split) else "applications"


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


def behind_best(errors: Mapping[Key, Errors]) -> dict[Key, dict[str, Any]]:
    """For each candidate how far its mean error is above the least of its table and quantity.

    errors: of each application's kernels. Gives behind_best and behind_best_standard_error of the
    differences paired by application, and within_error_of_best: whether the paired t test does not
    tell it from the best at LEVEL. The oracle, which knows the truth, is never the best; None
    for it.
    """
    rows: dict[Key, dict[str, Any]] = {}
    for block in dict.fromkeys(key[:2] for key in errors):
        keys = [key for key in errors if key[:2] == block]
        means = {key: _mean(errors[key]) for key in keys if key[2].name != ORACLE}
        best = min(means, key=means.__getitem__, default=None)
        for key in keys:
            mean = error = within = None
            if best is not None and key in means:
                mean, error, p = paired_difference(errors[key], errors[best])
                within = key == best or (error is not None and p > LEVEL)
            rows[key] = {
                "behind_best": mean,
                "behind_best_standard_error": error,
                "within_error_of_best": within,
            }
    return rows


def p_values(errors: Mapping[Key, Errors]) -> dict[Key, dict[str, Any]]:
    """For each table, quantity and candidate: n_applications, compared_with and p_value.

    errors: of each application's kernels. Compared are the applications' mean errors with those of
    `wu` on the features that suit the table best, for power with the base's power among them if
    that stands in the study. The p-values of a table and quantity are corrected for their number;
    None for that wu itself, for the oracle, which knows the truth, and where there is no wu.
    """
    rows: dict[Key, dict[str, Any]] = {}
    for block in dict.fromkeys(key[:2] for key in errors):
        keys = [key for key in errors if key[:2] == block]
        wu = _wu(keys)
        tested = [key for key in keys if wu and key != wu and key[2].name != ORACLE]
        p = holm([signed_rank(errors[key], errors[wu]) for key in tested]) if wu else []
        corrected = dict(zip(tested, p, strict=True))
        for key in keys:
            rows[key] = {
                "n_applications": len(errors[key]),
                "compared_with": wu[2].features if wu and key in corrected else None,
                "p_value": corrected.get(key),
            }
    return rows


def _mean(errors: Errors) -> float:
    return float(np.mean([value for values in errors.values() for value in values]))


def _wu(keys: Sequence[Key]) -> Key | None:
    """Return the `wu` that the others of its table and quantity are compared with."""
    wus = [key for key in keys if key[2].name == "wu"]
    with_power = [key for key in wus if (key[2].features or "").endswith(WITH_POWER)]
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
    corrected = [0.0] * len(p)
    largest = 0.0
    for rank, number in enumerate(sorted(range(len(p)), key=lambda k: p[k])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[number]))
        corrected[number] = largest
    return corrected
