"""Studies of tables with fewer kernels than `wu` has clusters by default."""

import pytest
from synthetic import kernels as made

import mlscale


def test_wu_has_as_many_clusters_as_there_are_training_kernels() -> None:
    # Hand: of six kernels, each an application, five are trained on in every fold.
    data = made.measurements().select(range(6))
    assert len(set(data.applications)) == 6
    asked = {"quantity": "time", "seeds": 1, "jobs": 1}
    default, five = (
        mlscale.study("errors", data, "wu", **asked, **given) for given in ({}, {"clusters": 5})
    )
    for name in ("wu", "wu-oracle"):
        of_default, of_five = (f[f.predictor == name].mape.item() for f in (default, five))
        assert of_default == pytest.approx(of_five)
