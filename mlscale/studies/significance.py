"""Whether two predictors differ by more than chance: Wilcoxon's signed-rank test, after Holm."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlscale.counters.features import WITH_POWER
from mlscale.studies.candidates import ORACLE, Candidate

Key = tuple[str, str, Candidate]


def p_values(errors: Mapping[Key, Mapping[str, float]]) -> dict[Key, dict[str, Any]]:
    """For each table, quantity and candidate: n_applications, compared_with and p_value.

    errors: mean error by application. Compared is with `wu` on the features that suit the table
    best, for power with the base's power among them if that stands in the study. The p-values of
    a table and quantity are corrected for their number; None for that wu itself, for the oracle,
    which knows the truth, and where there is no wu.
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


def _wu(keys: Sequence[Key]) -> Key | None:
    """Return the `wu` that the others of its table and quantity are compared with."""
    wus = [key for key in keys if key[2].name == "wu"]
    with_power = [key for key in wus if (key[2].features or "").endswith(WITH_POWER)]
    return next(iter([*with_power, *wus]), None)


def signed_rank(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test on pairs of the same applications.

    Applications with equal errors are left out, as Wilcoxon does; 1 where all are equal.
    """
    from scipy.stats import wilcoxon

    differences = np.array([one[application] - other[application] for application in one])
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
