"""The study of wu's classifier: known laws, and by hand what clustering and network err."""

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from mlscale.studies.classifier import ClassifierStudy
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import Wu
from mlscale.studies import classifier

DATA = made.measurements()


def study(*predictors: Any, **options: Any) -> ClassifierStudy:
    given = {"quantity": "time", "seeds": 1, "predictors": predictors, **options}
    return ClassifierStudy(name="classifier", tables={"t": DATA}, **given)


def row(*predictors: Any, **options: Any) -> dict[str, Any]:
    planned = study(*predictors, **options)
    (found,) = planned.rows(planned.results())
    return found


def test_counters_that_tell_the_laws_are_never_wrong() -> None:
    """Known truth: four laws, a cluster for each; along the CU axis three, as two are alike."""
    found = row(clusters=4)
    assert (found["accuracy"], found["training_accuracy"]) == (100, 100)
    assert found["mape"] == pytest.approx(0, abs=1e-6)
    assert found["mape_where_wrong"] is None
    confusion = np.array(found["confusion"])
    assert (confusion == np.diag(np.diag(confusion))).all()
    # By hand: 12 kernels, a choice at each of three CU counts and one along the CU axis.
    assert confusion.sum() == 12 * 4


def test_without_the_counters_that_tell_them_the_network_alone_errs() -> None:
    """Known truth: the clusters are right, and two of the laws cannot be told apart."""
    some = Wu(clusters=4, counters=("busy_compute", "busy_bandwidth"))
    found = row(some)
    assert found["clustering"] == pytest.approx(0, abs=1e-6)
    assert found["misclassification"] == pytest.approx(found["mape"])
    assert 50 <= found["accuracy"] < 100  # the kernels of the two that are told, at least
    assert found["mape_where_right"] == pytest.approx(0, abs=1e-6)
    assert found["mape_where_wrong"] > 1
    off = np.array(found["confusion"])
    assert (off - np.diag(np.diag(off))).sum() > 0


def test_one_cluster_is_always_right_and_all_error_is_the_clustering() -> None:
    found = row(clusters=1)
    assert found["accuracy"] == 100
    assert found["misclassification"] == pytest.approx(0, abs=1e-9)
    assert found["clustering"] == pytest.approx(found["mape"])
    assert found["mape"] > 5


class TestByHand:
    """Two kernels of an application each, of which the second is once in two choices wrong."""

    PLANNED = study(clusters=2)
    RESULT: ClassVar = {
        "kernels": ["one", "two"],
        "applications": ["a", "b"],
        "right": [100.0, 50.0],
        "training_right": [100.0, 80.0],
        "error": [2.0, 6.0],
        "oracle": [2.0, 3.0],
        "confusion": [[3, 1], [0, 4]],
    }

    def test_means_and_standard_errors(self) -> None:
        """Of two values the standard error of the mean is half of their distance."""
        [found] = self.PLANNED.rows([self.RESULT])
        expected = {
            "accuracy": 75, "accuracy_standard_error": 25, "training_accuracy": 90,
            "mape": 4, "mape_where_right": 2, "mape_where_wrong": 6,
            "clustering": 2.5, "clustering_standard_error": 0.5,
            "misclassification": 1.5, "misclassification_standard_error": 1.5,
        }  # fmt: skip
        assert {name: found[name] for name in expected} == pytest.approx(expected)

    def test_cells_say_the_nearest_and_the_chosen(self) -> None:
        cells = self.PLANNED.files([self.RESULT])["confusion"]
        counts = {(cell["nearest"], cell["chosen"]): cell["count"] for cell in cells}
        assert counts == {(1, 1): 3, (1, 2): 1, (2, 1): 0, (2, 2): 4}

    def test_clusters_are_numbered_from_the_fastest(self) -> None:
        """The first of two is slower; of two kernels that are near it, one gets the other."""
        sets: Any = [SimpleNamespace(region=0, centroids=np.array([[0.9], [0.5]]))]
        nearest, chosen = np.array([[0], [0]]), np.array([[0], [1]])
        counts = classifier._added(np.zeros((0, 0), dtype=int), sets, nearest, chosen)
        assert counts.tolist() == [[0, 0], [1, 1]]


def test_files() -> None:
    planned = study(clusters=4)
    files = planned.files(planned.results())
    assert len(files["confusion"]) == 16
    assert sum(cell["count"] for cell in files["confusion"]) == 48
    assert files["classifier"][0]["engine_mhz"] == DATA.grid.mid.engine_mhz
    assert "confusion" not in files["classifier"][0]


def test_another_predictor_is_refused() -> None:
    with refused("the study 'classifier' is of 'wu', not of 'nearest'"):
        _ = study("nearest").parts
