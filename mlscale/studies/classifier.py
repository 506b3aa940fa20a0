"""How often the networks of `wu` choose the cluster that the oracle would, and what it costs.

Source: Wu et al., HPCA 2015, sections III-D and V-B2. The oracle takes each kernel's nearest
cluster of the same model; what it errs is the clustering's, and the rest is misclassification.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from mlscale.arrays import Indices
from mlscale.data.measurements import Measurements
from mlscale.predictors.wu.clusters import ClusterSet, cu_axis_last
from mlscale.predictors.wu.estimator import Wu
from mlscale.studies.base import Part, Row, Rows, flat
from mlscale.studies.crossval import cross_validate
from mlscale.studies.of_wu import WuAloneStudy
from mlscale.studies.oracle import Oracle


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifierStudy(WuAloneStudy):
    """Counts how often the networks choose the oracle's cluster."""

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return what counts the choices of a part, and the arguments of each."""
        return part_choices, [(part, self.tables[part.table]) for part in self.parts]

    def rows(self, results: Sequence[Any]) -> Rows:
        """One row for each table, quantity and kind of features; shares and errors in percent."""
        return [self._row(of_case) for of_case in self.cases(results).values()]

    def files(self, results: Sequence[Any]) -> dict[str, Rows]:
        """Return the rows, and each cell of the confusion matrices."""
        rows = self.rows(results)
        cells = [
            {
                **{key: row[key] for key in ("table", "quantity", "features")},
                "nearest": nearest + 1,
                "chosen": chosen + 1,
                "count": count,
            }
            for row in rows
            for nearest, counts in enumerate(row["confusion"])
            for chosen, count in enumerate(counts)
        ]
        plain = [{k: v for k, v in flat(row).items() if k != "confusion"} for row in rows]
        return {"classifier": plain, "confusion": cells}

    def _row(self, results: Rows) -> Row:
        of = {
            key: np.concatenate([result[key] for result in results])
            for key in ("right", "error", "oracle", "training_right")
        }
        largest = max(len(result["confusion"]) for result in results)
        confusion = np.zeros((largest, largest), dtype=int)
        for result in results:
            counts = np.array(result["confusion"])
            confusion[: len(counts), : len(counts)] += counts

        whole = of["right"] == 100
        return {
            **self.head(results),
            "training_accuracy": float(of["training_right"].mean()),
            "accuracy": float(of["right"].mean()),
            "accuracy_standard_error": self.standard_error(results, of["right"]),
            "mape": float(of["error"].mean()),
            "clustering": float(of["oracle"].mean()),
            "clustering_standard_error": self.standard_error(results, of["oracle"]),
            "misclassification": float((of["error"] - of["oracle"]).mean()),
            "misclassification_standard_error": self.standard_error(
                results, of["error"] - of["oracle"]
            ),
            "mape_where_right": float(of["error"][whole].mean()) if whole.any() else None,
            "mape_where_wrong": float(of["error"][~whole].mean()) if not whole.all() else None,
            "confusion": confusion.tolist(),
        }


def part_choices(part: Part, data: Measurements) -> dict[str, Any]:
    """Return of each held-out kernel how many of its choices are the oracle's [%], and errors [%].

    Of the confusion matrix, clusters stand in the order of their mean scaling values, so that
    neighbours are alike; rows are the nearest cluster, columns the chosen one.
    """
    results: dict[str, list[Any]] = {}
    confusion = np.zeros((0, 0), dtype=int)
    folds = part.folds(data)
    predictions = cross_validate(data, part.bases, folds, part.predictors)
    for (train, _), fold in zip(folds, predictions, strict=True):
        predictor, held_out = cast("Wu", fold.predictor), fold.held_out
        oracle = Oracle.of(predictor)
        by_oracle = replace(fold, surfaces=oracle.predict_measured(held_out))
        nearest, chosen = _choices(predictor, oracle, held_out)
        of_training = _choices(predictor, oracle, data.select(train))
        of_fold = {
            "kernels": held_out.kernels,
            "applications": held_out.applications,
            "right": 100 * (nearest == chosen).mean(axis=1),
            "training_right": 100 * (of_training[0] == of_training[1]).mean(axis=1),
            "error": fold.errors.mean(axis=1),
            "oracle": by_oracle.errors.mean(axis=1),
        }
        for name, values in of_fold.items():
            results.setdefault(name, []).extend(np.asarray(values).tolist())
        confusion = _added(confusion, predictor.cluster_sets_, nearest, chosen)
    return {**results, "confusion": confusion.tolist()}


def _choices(predictor: Wu, oracle: Oracle, kernels: Measurements) -> tuple[Indices, Indices]:
    """Return the nearest and the chosen cluster of each kernel in each cluster set, (K, S)."""
    sets = cu_axis_last(predictor.cluster_sets_)
    nearest = oracle.nearest(kernels)
    chosen = predictor.explain(kernels.profiles(predictor.base_)).choices
    return (
        np.stack([nearest[one.region] for one in sets], axis=1),
        np.stack([choice.chosen for choice in chosen], axis=1),
    )


def _added(
    confusion: Indices, sets: Sequence[ClusterSet], nearest: Indices, chosen: Indices
) -> Indices:
    """Return the confusion matrix with the choices of a fold; it grows where it must."""
    most = max(len(confusion), *(len(one.centroids) for one in sets))
    counts = np.zeros((most, most), dtype=np.intp)
    counts[: len(confusion), : len(confusion)] = confusion
    for s, one in enumerate(cu_axis_last(sets)):
        rank = np.argsort(np.argsort(one.centroids.mean(axis=1)))
        np.add.at(counts, (rank[nearest[:, s]], rank[chosen[:, s]]), 1)
    return counts
