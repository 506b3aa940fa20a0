"""Whether two predictors differ by more than chance: Wilcoxon's signed-rank test, after Holm."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlscale.counters.features import WITH_POWER
from mlscale.studies.candidates import ORACLE, Contender

REFERENCE = "wu"

Key = tuple[str, str, Contender]


def p_values(errors: Mapping[Key, Mapping[str, float]]) -> dict[Key, dict[str, Any]]:
    """For each table, quantity and contender: n_applications, compared_with and p_value.

    errors: mean error by application. Compared is with `wu` on the features that suit the table
    best, for power with the base's power among them if that stands in the study. The p-values of
    a table and quantity are corrected for their number; None for wu itself, for the oracle, which
    knows the truth, and where there is no wu.
    """
    found: dict[Key, dict[str, Any]] = {}
    for block in dict.fromkeys(key[:2] for key in errors):
        own = {key: errors[key] for key in errors if key[:2] == block}
        reference = _reference(list(own))
        tested = [k for k in own if reference and k != reference and k[2].predictor != ORACLE]
        corrected: dict[Key, float] = {}
        if reference:
            found_p = [signed_rank(own[key], own[reference]) for key in tested]
            corrected = dict(zip(tested, holm(found_p), strict=True))
        for key, of_application in own.items():
            there = key in corrected and reference is not None
            found[key] = {
                "n_applications": len(of_application),
                "compared_with": reference[2].features if there and reference else None,
                "p_value": corrected.get(key),
            }
    return found


def _reference(block: list[Key]) -> Key | None:
    candidates = [key for key in block if key[2].predictor == REFERENCE]
    with_power = [key for key in candidates if (key[2].features or "").endswith(WITH_POWER)]
    return next(iter([*with_power, *candidates]), None)


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
