"""Features with the power at the base beside them: who gets them, and who is refused.

Watts are made: of a few kernels by hand, else so that they alone tell the kernels apart.
"""

from dataclasses import replace

import numpy as np
import pytest
from parameters import own
from synthetic import kernels as made
from synthetic.profiled import profiles
from synthetic.tidy import refused

from mlscale import Profiles, create, train
from mlscale.counters.features import compute_features
from mlscale.notes import Note
from mlscale.predictors.features import FeatureScaling
from mlscale.studies.candidates import Candidate
from mlscale.studies.errors import ErrorStudy

MID = made.GRID.mid


def powered(*watts: float) -> Profiles:
    """Kernels whose counter 'busy' counts from 1, with these powers."""
    count = len(watts)
    return replace(
        profiles({"busy": list(range(1, count + 1))}), power_w=np.array(watts, dtype=np.float64)
    )


def test_the_power_stands_beside_the_counters() -> None:
    features = compute_features("raw+power", powered(80.0, 120.0), None)
    assert features.names == ("busy", "base_power_w")
    assert features.values.tolist() == [[1, 80], [2, 120]]


def test_is_scaled_as_every_feature_is() -> None:
    """100 W lies half way from 80 to 120, 130 W is beyond and clipped."""
    scaling = FeatureScaling.fit("raw+power", powered(80.0, 120.0))
    points, flags = scaling.transform(powered(100.0, 130.0))
    assert points.tolist() == [[0, 0.5], [1, 1]]
    assert flags[0] == ()
    assert flags[1] == (Note("P02", "base_power_w 130 above trained 120"),)


def test_without_power() -> None:
    """Refused in training; in a profile the training median stands for it."""
    with refused(r"^features with '\+power' need the column 'power_w'$"):
        FeatureScaling.fit("raw+power", profiles({"busy": [1.0, 2.0]}))
    scaling = FeatureScaling.fit("raw+power", powered(80.0, 120.0))
    for unknown in (profiles({"busy": [1.5]}), powered(np.nan)):
        _, [flags] = scaling.transform(unknown)
        assert flags == (Note("T10", "missing: base_power_w"),)


def test_without_counters_the_power_is_the_one_feature() -> None:
    """Two laws, each of its own power; counters of one value for all change nothing."""
    data = made.measurements(per_group=3)
    watts = np.repeat(np.arange(1.0, 5.0), 3)[:, None, None, None] * np.ones(data.grid.shape)
    known = replace(data, power_samples=watts[None])
    for counters in (data.counter_samples[..., :0], data.counter_samples * 0 + 1):
        names = data.counter_names[: counters.shape[-1]]
        table = replace(known, counter_names=names, counter_samples=counters)
        model = train(table, MID, "wu", features="raw+power", clusters=4)
        predicted = model.predict(table.profiles(MID)).surfaces["time"].values
        assert np.abs(predicted / table.relative("time", MID) - 1).max() < 0.01


@pytest.mark.parametrize("predictor", ["nearest", "wu", "extra-trees"])
def test_predictors_of_power_use_it(predictor: str) -> None:
    """Counters of chance, power that says everything: it alone tells the kernels apart."""
    data = made.measurements(per_group=5)
    chance = np.random.default_rng(0).uniform(size=data.counter_samples.shape[:2])
    blind = replace(data, counter_samples=data.counter_samples * 0 + chance[..., *[None] * 4])
    watts = np.repeat(np.arange(1.0, 5.0), 5)[:, None, None, None]
    known = replace(blind, power_samples=(watts * data.power_w)[None])

    held_out = np.arange(0, 20, 5)
    training = known.select(np.setdiff1d(np.arange(20), held_out))
    test, truth = known.select(held_out), data.select(held_out)

    def error(features: str) -> float:
        small = own(predictor, clusters=4)
        model = create(predictor, quantity="power", features=features, **small)
        values = model.fit(training, MID).predict(test.profiles(MID)).values
        actual = truth.power_w / truth.profiles(MID).power_w[:, None, None, None]
        return float(np.abs(values / actual - 1).mean())

    assert error("raw+power") < 0.8 * error("raw")


class TestInStudies:
    def test_they_stand_for_power_alone(self) -> None:
        assert Candidate.from_predictor("wu", "raw+power").predicts("power")
        assert not Candidate.from_predictor("wu", "raw+power").predicts("time")
        assert Candidate.from_predictor("wu", "raw").predicts("time")

    def test_plan(self) -> None:
        planned = ErrorStudy(
            tables={"t": made.measurements()},
            predictors=["nearest"],
            features=["raw", "raw+power"],
            seeds=1,
        )
        nearest = [part for part in planned.parts if part.candidate.name == "nearest"]
        assert [(part.quantity, part.candidate.features) for part in nearest] == [
            ("time", "raw"), ("power", "raw"), ("power", "raw+power"),
        ]  # fmt: skip
