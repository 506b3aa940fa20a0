"""How much the features of `wu` matter: one shuffled at a time, and the best few alone.

A feature is shuffled by giving a held-out kernel the value of each training kernel in turn; the
mean error over these is that of a feature that tells nothing (Breiman, Random forests, 2001,
section 10; scikit-learn's permutation_importance would shuffle among the kernels of a fold, of
which there may be one). Which features are best is found inside each fold, by shuffling in a
cross-validation of its training kernels alone, so that the errors of the subsets are those of
kernels that had no part in the choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import absolute_percentage_error, without_base
from mlscale.predictors.wu.estimator import Wu
from mlscale.studies.base import Part, Row, Rows
from mlscale.studies.crossval import FoldPrediction, cross_validate
from mlscale.studies.of_wu import WuAloneStudy
from mlscale.studies.splits import Fold, grouped_folds

ALL, SHUFFLED, BEST = "all", "shuffled", "best"
SIZES = (1, 2, 4, 8, 16)  # of the subsets
NAMED = 4  # the subset whose features are counted
INNER_FOLDS = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class ImportanceStudy(WuAloneStudy):
    """Shuffles each feature, and predicts by the best few alone."""

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return what shuffles the features of a part, and the arguments of each."""
        return part_importance, [(part, self.tables[part.table]) for part in self.parts]

    def rows(self, results: Sequence[Any]) -> Rows:
        """One row for all features, each shuffled one and each subset of a case; in percent."""
        return [row for of_case in self.cases(results).values() for row in self._rows(of_case)]

    def _rows(self, results: Rows) -> Rows:
        whole = np.concatenate([result["error"] for result in results])
        names = list(results[0]["shuffled"])
        head = self.head(results)

        def row(what: str, feature: str | None, count: int, errors: Floats) -> Row:
            return {
                **head,
                "what": what,
                "feature": feature,
                "n_features": count,
                "mape": float(errors.mean()),
                "standard_error": self.standard_error(results, errors),
                "increase": float((errors - whole).mean()),
                "increase_standard_error": self.standard_error(results, errors - whole),
                "chosen_percent": None,
            }

        def joined(key: str, name: Any) -> Floats:
            return np.concatenate([result[key][name] for result in results])

        rows = [row(ALL, None, len(names), whole)]
        shuffled = [row(SHUFFLED, name, len(names), joined("shuffled", name)) for name in names]
        for one in shuffled:
            times = [name == one["feature"] for r in results for name in r["named"]]
            one["chosen_percent"] = 100 * sum(times) / sum(result["folds"] for result in results)
        rows += sorted(shuffled, key=lambda one: -one["increase"])
        subsets = results[0]["subsets"]
        return [*rows, *(row(BEST, None, int(n), joined("subsets", n)) for n in subsets)]


def part_importance(part: Part, data: Measurements) -> dict[str, Any]:
    """Return the errors [%] of each held-out kernel: with all, shuffled and the best features.

    named: the NAMED best features of each of the folds, one after the other.
    """
    folds = part.folds(data)
    plain = list(cross_validate(data, part.bases, folds, part.predictors))
    increases = _increases(part, data, folds)
    ranked = [_ranked(fold, of) for fold, of in zip(plain, increases, strict=True)]
    return {
        "kernels": [name for fold in plain for name in fold.held_out.kernels],
        "applications": [name for fold in plain for name in fold.held_out.applications],
        "error": _by_kernel(plain),
        "shuffled": _shuffled(plain),
        "subsets": _of_best_alone(part, data, folds, ranked),
        "named": [name for names in ranked for name in names[:NAMED]],
        "folds": len(folds),
    }


def _increases(
    part: Part, data: Measurements, folds: Sequence[Fold]
) -> list[dict[str, list[float]]]:
    """For each fold how much each feature's shuffling costs [%], among its training kernels."""
    inner = [(number, one) for number, fold in enumerate(folds) for one in _inside(data, fold)]
    trained = cross_validate(data, part.bases, [one for _, one in inner], part.predictors)
    increases: list[dict[str, list[float]]] = [{} for _ in folds]
    for (number, _), of_inner in zip(inner, trained, strict=True):
        for name, errors in shuffled_errors(of_inner).items():
            of_feature = increases[number].setdefault(name, [])
            of_feature += (errors - of_inner.errors.mean(axis=1)).tolist()
    return increases


def _shuffled(plain: Sequence[FoldPrediction]) -> dict[str, list[float]]:
    """Each feature's errors [%] with it shuffled, kernel by kernel.

    A feature that a fold has not learnt from changes nothing there.
    """
    of_folds = [(fold.errors.mean(axis=1), shuffled_errors(fold)) for fold in plain]
    return {
        name: [e for unshuffled, errors in of_folds for e in errors.get(name, unshuffled).tolist()]
        for name in dict.fromkeys(name for _, errors in of_folds for name in errors)
    }


def _of_best_alone(
    part: Part, data: Measurements, folds: Sequence[Fold], ranked: Sequence[Sequence[str]]
) -> dict[str, list[float]]:
    """The errors [%] of each kernel by the best features alone, for each number of these."""
    sizes = [size for size in SIZES if size < min(map(len, ranked))]
    if not sizes:
        return {}
    makes = iter([[p for n in sizes for p in part.predictors(counters=r[:n])] for r in ranked])
    trained = list(cross_validate(data, part.bases, folds, lambda: next(makes)))
    return {str(n): _by_kernel(trained[s :: len(sizes)]) for s, n in enumerate(sizes)}


def shuffled_errors(fold: FoldPrediction) -> dict[str, Floats]:
    """Return the mean errors (K,) [%] of the held-out kernels with each feature shuffled.

    A kernel's value is each training kernel's in turn, so that no random number enters.
    """
    predictor = cast("Wu", fold.predictor)
    base = fold.surfaces.base
    points, _ = predictor.scaling_.transform(fold.held_out.profiles(base))
    others = cast("Any", predictor.training_).points
    measured, at = fold.measured, fold.held_out.grid.index(base)
    errors = {}
    for f, name in enumerate(predictor.scaling_.names):
        of_feature = np.empty(len(points))
        for k, point in enumerate(points):
            drawn = np.repeat(point[None], len(others), axis=0)
            drawn[:, f] = others[:, f]
            off = absolute_percentage_error(predictor.factors(drawn), measured[k : k + 1])
            of_feature[k] = without_base(off, at).mean()
        errors[name] = of_feature
    return errors


def _inside(data: Measurements, fold: Fold) -> list[Fold]:
    """Return folds of a fold's training kernels, whole applications at a time."""
    train = fold[0]
    applications = np.array(data.applications)[train]
    count = min(INNER_FOLDS, len(set(applications)))
    if count < 2:
        return []
    return [(train[a], train[b]) for a, b in grouped_folds(applications, count, seed=0)]


def _ranked(fold: FoldPrediction, increases: dict[str, list[float]]) -> list[str]:
    """Return the features that differ between training kernels, the most important first."""
    predictor = cast("Wu", fold.predictor)
    points = cast("Any", predictor.training_).points
    names = [n for n, of in zip(predictor.scaling_.names, points.T, strict=True) if of.any()]
    return sorted(names, key=lambda name: -float(np.mean(increases.get(name, [0.0]))))


def _by_kernel(folds: Sequence[FoldPrediction]) -> list[float]:
    return [error for fold in folds for error in fold.errors.mean(axis=1).tolist()]
