"""Training: what a model learns of a table, with which predictor and parameters."""

import numpy as np
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import create, train

MID = made.GRID.mid


class TestTrain:
    def test_trains_what_was_measured(self) -> None:
        model = train(made.measurements(), MID, "mean-surface")
        assert {q: p.get_params()["quantity"] for q, p in model.predictors.items()} == {
            "time": "time",
            "power": "power",
        }
        assert (model.device, model.grid, model.base) == ("made-gpu", made.GRID, MID)
        assert model.card["kernels"][:4] == ["compute0", "compute1", "compute2", "bandwidth0"]
        assert model.card["metadata"] == {"origin": "made"}

    def test_hands_parameters_on(self) -> None:
        model = train(made.measurements(), MID, clusters=3, seed=5)
        assert {
            q: (p.get_params()["clusters"], p.get_params()["seed"])
            for q, p in model.predictors.items()
        } == {"time": (3, 5), "power": (3, 5)}

    def test_refuses_an_unknown_predictor(self) -> None:
        with refused("there is no predictor 'magic'; one of no-scaling, "):
            train(made.measurements(), MID, "magic")

    def test_is_the_same_as_fitting(self) -> None:
        measurements = made.measurements()
        kernels = measurements.profiles(MID)
        trained = train(measurements, MID, "nearest").predict(kernels)
        for quantity, surfaces in trained.items():
            alone = create("nearest", quantity=quantity).fit(measurements, MID).predict(kernels)
            np.testing.assert_array_equal(surfaces.values, alone.values)
