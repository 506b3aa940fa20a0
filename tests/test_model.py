"""Training: what a model learns of a table; and what a model says of all its predictions.

Expected: from the made table itself. The words of warnings are regression only; that there is a
warning, and which, is not.
"""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import MeasuredPoint, Model, create, train
from mlscale.advice.advise import advise
from mlscale.model.model import feature_warnings
from mlscale.notes import Note

MID = made.GRID.mid
KERNELS = replace(made.measurements().profiles(MID), metadata={})
DYNAMIC = "power_w is dynamic power: energy_mj leaves static power out"


def model_of(metadata: dict[str, str], power: bool = True) -> Model:
    return train(replace(made.measurements(power=power), metadata=metadata), MID, "no-scaling")


class TestTrain:
    def test_trains_what_was_measured(self) -> None:
        model = train(made.measurements(), MID, clusters=3, seed=5)
        assert (model.device, model.grid, model.base) == ("made-gpu", made.GRID, MID)
        assert model.card["kernels"][:4] == ["compute0", "compute1", "compute2", "bandwidth0"]
        assert model.card["metadata"] == {"origin": "made"}
        for quantity, predictor in model.predictors.items():
            given = {"quantity": quantity, "clusters": 3, "seed": 5}
            assert given.items() <= predictor.get_params().items()

    def test_is_the_same_as_fitting(self) -> None:
        measurements = made.measurements()
        trained = train(measurements, MID, "nearest").predict(KERNELS)
        assert trained.keys() == {"time", "power"}
        for quantity, surfaces in trained.items():
            alone = create("nearest", quantity=quantity).fit(measurements, MID).predict(KERNELS)
            np.testing.assert_array_equal(surfaces.values, alone.values)


class TestWarnings:
    @pytest.mark.parametrize(
        ("metadata", "expected"),
        [
            ({"origin": "measured"}, []),
            (
                {"origin": "simulated"},
                ["the model was trained on simulated data, not on measurements"],
            ),
            ({"power_kind": "dynamic"}, [DYNAMIC]),
            ({"power_kind": "board"}, []),
        ],
    )
    def test_say_what_the_data_were(self, metadata: dict[str, str], expected: list[str]) -> None:
        assert [str(note) for note in model_of(metadata).predict(KERNELS).warnings] == expected

    def test_say_why_there_is_no_power(self) -> None:
        [told] = model_of({}, power=False).predict(KERNELS).warnings
        assert told.text.startswith("the model was trained without power")
        [told] = model_of({}).predict(replace(KERNELS, power_w=None)).warnings
        assert told.text.startswith("the profile has no power_w; give power=")

    def test_two_kinds_of_power_are_refused(self) -> None:
        model = model_of({"power_kind": "dynamic"})
        board = replace(KERNELS, metadata={"power_kind": "board"})
        with refused("the model's power_w is dynamic power, the profile's board power"):
            model.predict(board)
        assert "power" not in model.predict(replace(board, power_w=None)).surfaces

    def test_power_of_further_points_that_no_predictor_takes_is_not_used(self) -> None:
        model = model_of({}, power=False)
        for powers_w, count in ((np.full(len(KERNELS.kernels), 50.0), 1), (None, 0)):
            point = MeasuredPoint(made.GRID.highest, KERNELS.time_ms, powers_w)
            warnings = feature_warnings(model, replace(KERNELS, points=(point,)))
            assert len(warnings) == count
            assert all("power at the further measured points" in note.text for note in warnings)

    def test_power_that_is_the_runs_is_said_to_be(self) -> None:
        """Of several kernels with one power that was joined to them, 250 W by hand."""
        metadata = {"power_kind": "board", "power_source": "250 W, as given"}
        joined = replace(KERNELS, power_w=np.full(len(KERNELS.kernels), 250.0), metadata=metadata)
        text = "every kernel is given the run's power, 250 W: no sensor measures single kernels"
        told = Note("G02", text)
        model = model_of({"power_kind": "board"})
        assert told in model.predict(joined).warnings
        assert told in advise(model, joined).warnings
        others = (
            joined.select([0]),
            replace(joined, metadata={"power_kind": "board"}),
            replace(joined, power_w=np.arange(1.0, 1 + len(KERNELS.kernels))),
        )
        for profiles in others:
            assert told not in model.predict(profiles).warnings
