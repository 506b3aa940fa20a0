"""Intervals in rows of predictions, and in the command's table."""

from pathlib import Path

import numpy as np
import pytest
from command import succeed
from synthetic import bottleneck_kernels as made

from mlscale import HardwareConfig, Model, save, train
from mlscale.predictions import COVERAGE
from mlscale.predictors.base import GivesIntervals

MID = made.CLOCKS.mid
SIDES = ("low", "high")


@pytest.fixture(scope="module")
def model() -> Model:
    return train(made.measurements(12), MID, "bottleneck")


def test_rows_have_the_predictors_own(model: Model) -> None:
    """Expected: base value x the surfaces of predict_interval."""
    profiles = made.measurements(3, seed=1).profiles(MID)
    rows = model.predict(profiles, COVERAGE).rows()
    for quantity, name in (("time", "time_ms"), ("power", "power_w")):
        predictor = model.predictors[quantity]
        assert isinstance(predictor, GivesIntervals)
        surfaces = predictor.predict_interval(profiles, COVERAGE)
        at_base = profiles.quantity(quantity)
        for side in SIDES:
            found = np.array([row[f"{name}_{side}"] for row in rows]).reshape(3, -1)
            expected = at_base[:, None] * getattr(surfaces, side).reshape(3, -1)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_hold_the_value_and_close_at_the_base(model: Model) -> None:
    profiles = made.measurements(3, seed=1).profiles(MID)
    between = HardwareConfig(16, 600.0, 1500.0)
    for row in model.predict(profiles, COVERAGE).rows([MID, between]):
        for name in ("time_ms", "power_w"):
            low, value, high = row[f"{name}_low"], row[name], row[f"{name}_high"]
            if row["engine_mhz"] == MID.engine_mhz:
                assert low == value == high
            else:
                assert low < value < high


def test_are_shown(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(model, tmp_path / "m.mlscale")
    made.measurements(2, seed=1).write(tmp_path / "p.csv")
    out, _ = succeed(
        capsys, "predict", str(tmp_path / "m.mlscale"), str(tmp_path / "p.csv"), "--at", "mid"
    )
    heading, _, *rows = out.splitlines()
    assert heading.count("90% from") == 2
    values = rows[0].split()
    assert values[4] == values[6] == values[7]  # time at the base, and its interval
