"""The study of wu's classifier: known laws, and by hand what clustering and network err."""

from typing import Any

import numpy as np
import pytest
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import Wu
from mlscale.studies.classifier import ClassifierStudy

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
