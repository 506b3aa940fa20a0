"""What a model says of all its predictions: of the training data, and of power.

The words are regression only; that there is a warning, and which, is not.
"""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import MeasuredPoint, Model, train
from mlscale.advice.advise import advise
from mlscale.model.model import feature_warnings

MID = made.GRID.mid
KERNELS = replace(made.measurements().profiles(MID), metadata={})
DYNAMIC = "power_w is dynamic power: energy_mj leaves static power out"


def model_of(metadata: dict[str, str], power: bool = True) -> Model:
    return train(replace(made.measurements(power=power), metadata=metadata), MID, "no-scaling")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"origin": "measured"}, []),
        ({}, []),
        ({"origin": "simulated"}, ["the model was trained on simulated data, not on measurements"]),
        ({"origin": "made"}, ["the model was trained on made data, not on measurements"]),
        ({"power_kind": "dynamic"}, [DYNAMIC]),
        ({"power_kind": "board"}, []),
    ],
)
def test_say_what_the_data_were(metadata: dict[str, str], expected: list[str]) -> None:
    assert [*model_of(metadata).predict(KERNELS).warnings] == expected


def test_a_model_of_time_alone_says_so() -> None:
    model = model_of({}, power=False)
    assert model.predictors.keys() == {"time"}
    assert [*model.predict(KERNELS).warnings] == [
        "the model was trained without power: power_w and energy_mj are not given"
    ]


def test_a_profile_without_power_says_so() -> None:
    assert [*model_of({}).predict(replace(KERNELS, power_w=None)).warnings] == [
        "the profile has no power_w, which --power gives: power_w and energy_mj are not given"
    ]


def test_two_kinds_of_power_are_refused() -> None:
    model = model_of({"power_kind": "dynamic"})
    board = replace(KERNELS, metadata={"power_kind": "board"})
    with refused("the model's power_w is dynamic power, the profile's board power"):
        model.predict(board)
    assert "power" not in model.predict(replace(board, power_w=None)).surfaces


def test_dynamic_power_that_only_the_profile_names() -> None:
    profiles = replace(KERNELS, metadata={"power_kind": "dynamic"})
    assert DYNAMIC in model_of({}).predict(profiles).warnings


def test_power_of_further_points_that_no_predictor_takes_is_said_to_be_unused() -> None:
    times_ms, powers_w = KERNELS.time_ms, np.full(len(KERNELS.kernels), 50.0)
    points = [MeasuredPoint(made.GRID.highest, times_ms, watts) for watts in (powers_w, None)]
    told = "power at the further measured points is not used, only their times"
    model = model_of({}, power=False)
    for point, is_told in zip(points, (True, False), strict=True):
        warnings = feature_warnings(model, replace(KERNELS, points=(point,)))
        assert (told in warnings) == is_told


def test_power_that_is_the_runs_is_said_to_be() -> None:
    """Of several kernels with one power that was joined to them, 250 W by hand."""
    metadata = {"power_kind": "board", "power_source": "250 W, as given"}
    joined = replace(KERNELS, power_w=np.full(len(KERNELS.kernels), 250.0), metadata=metadata)
    told = (
        "every kernel's power at the base is that of the run, 250 W: no sensor tells one kernel "
        "from another"
    )
    model = model_of({"power_kind": "board"})
    assert told in model.predict(joined).warnings
    assert told in advise(model, joined).warnings
    others = (
        joined.select([0]),
        replace(joined, metadata={"power_kind": "board"}),
        replace(joined, power_w=np.arange(1.0, 1 + len(KERNELS.kernels))),
        replace(joined, power_w=None),
    )
    for profiles in others:
        assert told not in model.predict(profiles).warnings
    assert told not in model_of({}, power=False).predict(joined).warnings
