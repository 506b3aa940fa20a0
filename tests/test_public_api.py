"""The public API: frames in and out, NumPy numbers and lists, and a Python user's usual mistakes.

Expected: what went in, or by hand.
"""

import importlib
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from synthetic import bottleneck_kernels
from synthetic import kernels as made
from synthetic.tidy import refused, same_bits

import mlscale
from mlscale import ConfigGrid, HardwareConfig, Measurements, Model, Surfaces

MID = made.GRID.mid


@cache
def core_bound() -> Model:
    return mlscale.train(made.measurements(), MID, "core-bound")


class TestFrames:
    def test_measurements_survive(self) -> None:
        before = made.measurements()
        frame = before.to_frame()
        after = Measurements.from_frame(frame, metadata=before.metadata)
        assert same_bits(after.time_samples, before.time_samples)
        assert same_bits(after.counter_samples, before.counter_samples)
        assert after.kernels == before.kernels
        assert (after.grid, after.metadata) == (before.grid, before.metadata)
        frame = frame.drop(columns="device").set_index(["application", "kernel"])
        after = Measurements.from_frame(frame, device="other")
        assert (after.device, after.kernels) == ("other", before.kernels)

    def test_missing_counters_are_missing(self) -> None:
        frame = made.measurements().to_frame()
        frame["busy_compute"] = frame["busy_compute"].astype("Float64").mask(frame["time_ms"] > 0)
        data = Measurements.from_frame(frame)
        assert np.isnan(data.counters[..., data.counter_names.index("busy_compute")]).all()

    def test_a_warning_is_of_the_line_that_asked(self) -> None:
        """A notebook shows the line beside a warning, here one of this file."""
        frame = made.measurements().to_frame().assign(temp_c=40.0)
        with pytest.warns(mlscale.DataWarning, match="'temp_c': treated as a counter") as told:
            Measurements.from_frame(frame)
        assert told[0].filename == __file__

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (lambda f: f.assign(time_ms=-1.0), "row 1, column 'time_ms': the value is -1; "),
            (lambda f: f.assign(time_ms="high"), "column 'time_ms' holds .*; numbers"),
            (lambda f: f.drop(columns="kernel"), "there is no column 'kernel'"),
            (lambda f: f.head(0), "has no rows"),
        ],
    )
    def test_a_bad_frame_is_refused(
        self, change: Callable[[pd.DataFrame], pd.DataFrame], problem: str
    ) -> None:
        with refused(f"^the frame: {problem}"):
            Measurements.from_frame(change(made.measurements().to_frame()))

    def test_surfaces(self) -> None:
        grid = ConfigGrid((4,), (400.0, 800.0), (500.0,))
        values = np.array([[2.0, 1.0], [1.5, 1.0]]).reshape(2, 1, 2, 1)
        surfaces = Surfaces(grid, grid.config((0, 1, 0)), values, low=values / 2, high=values * 2)
        assert surfaces.to_frame(["a", "b"]).to_dict("list") == {
            "kernel": ["a", "a", "b", "b"],
            "cu_count": [4, 4, 4, 4],
            "engine_mhz": [400.0, 800.0, 400.0, 800.0],
            "memory_mhz": [500.0, 500.0, 500.0, 500.0],
            "factor": [2.0, 1.0, 1.5, 1.0],
            "low": [1.0, 0.5, 0.75, 0.5],
            "high": [4.0, 2.0, 3.0, 2.0],
        }

    def test_predictions_are_the_rows(self) -> None:
        predictions = core_bound().predict(made.measurements(per_group=1, seed=1).profiles(MID))
        targets = [MID, HardwareConfig(8, 850.0, 700.0)]
        frame, rows = predictions.to_frame(targets), predictions.rows(targets)
        assert tuple(frame.columns) == tuple(rows[0])
        assert len(frame) == len(rows) == 8
        for row, (_, cells) in zip(rows, frame.iterrows(), strict=True):
            for name, value in row.items():
                if value is None:
                    assert np.isnan(cells[name])
                else:
                    assert cells[name] == ("; ".join(value) if name == "flags" else value)


def test_reprs_say_what_things_are() -> None:
    """The words are regression only; the numbers are those of the made kernels."""
    data = made.measurements()
    profiles = data.profiles(MID)
    assert "12 kernels" in repr(data)
    assert "12 kernels, 4 counters, with power" in repr(profiles)
    assert "time by core-bound and power by core-bound" in repr(core_bound())
    assert "time and power: 12 kernels" in repr(core_bound().predict(profiles))


class TestNumPyNumbersAndLists:
    def test_make_the_same_configurations(self) -> None:
        config = HardwareConfig(np.int64(8), np.float32(800), np.int32(700))
        assert config == MID
        assert str(config.as_dict()) == "{'cu_count': 8, 'engine_mhz': 800.0, 'memory_mhz': 700}"
        grid = ConfigGrid(*(np.array(getattr(made.GRID, axis)) for axis in MID.as_dict()))
        assert grid == made.GRID
        assert hash(grid) == hash(made.GRID)

    @pytest.mark.parametrize(
        "base",
        [
            list(made.GRID.index(MID)),
            np.array(made.GRID.index(MID)),
            "mid",
            "cu=8,engine=800,memory=700",
        ],
    )
    def test_are_bases(self, base: Any) -> None:
        data = made.measurements()
        assert np.array_equal(data.relative("time", base), data.relative("time", MID))
        assert data.profiles(base).base == MID
        assert made.GRID.index(base) == made.GRID.index(MID)
        assert mlscale.train(data, base, "mean-surface").base == MID

    def test_are_hyper_parameters_of_a_saved_model(self, tmp_path: Path) -> None:
        data = made.measurements()
        mlscale.train(data, MID, "nearest", neighbours=np.int64(2)).save(tmp_path / "m.mlscale")
        predictor = mlscale.load(tmp_path / "m.mlscale").predictors["time"]
        assert predictor.get_params()["neighbours"] == 2

    @pytest.mark.parametrize(
        ("kernels", "positions"),
        [([3, -11], [3, 1]), (np.array([3, 1]), [3, 1]), ([k == 3 for k in range(12)], [3])],
    )
    def test_select_kernels(self, kernels: Any, positions: list[int]) -> None:
        """There are 12; a list of yes and no is a mask of all of them."""
        data = made.measurements()
        names = tuple(data.kernels[k] for k in positions)
        assert data.select(kernels).kernels == names
        assert data.profiles(MID).select(kernels).kernels == names


class TestPredict:
    def test_takes_files_and_objects(self, tmp_path: Path) -> None:
        data, model = made.measurements(), core_bound()
        model.save(tmp_path / "m.mlscale")
        data.write(tmp_path / "p.csv")
        profiles = mlscale.read_profiles(tmp_path / "p.csv", MID, "made-gpu")
        expected = model.predict(profiles, 0.9).to_frame()
        for one in (model, tmp_path / "m.mlscale"):
            for other in (profiles, str(tmp_path / "p.csv")):
                predicted = mlscale.predict(other, model=one).to_frame()
                pd.testing.assert_frame_equal(predicted, expected)

    def test_intervals_are_asked_for_by_their_coverage(self) -> None:
        data = bottleneck_kernels.measurements(12)
        model = mlscale.train(data, bottleneck_kernels.CLOCKS.mid, "bottleneck")
        profiles = data.profiles(model.base)
        assert model.predict(profiles)["time"].low is None
        half, most = (model.predict(profiles, coverage)["time"] for coverage in (0.5, 0.9))
        assert half.low is not None
        assert most.low is not None
        assert (most.low <= half.low).all()
        assert (most.low < half.low).any()


# What a Python user gets wrong, and what is told in one line.
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "an estimator of scikit-learn": (
        lambda: mlscale.train(made.measurements(), MID, RandomForestRegressor()),
        "RandomForestRegressor.* is not a predictor",
    ),
    "a base that is none": (
        lambda: mlscale.train(made.measurements(), "middle"),
        "^'middle' is not a setting; use cu, engine or memory",
    ),
    "a quantity that is not there": (
        lambda: made.measurements().quantity("energy"),
        "^there is no quantity 'energy'; one of time, power$",
    ),
    "a file that is not there": (
        lambda: mlscale.read("nowhere.csv"),
        "^nowhere.csv: cannot be read: No such file or directory$",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line(mistake: str) -> None:
    make, message = MISTAKES[mistake]
    with refused(message):
        make()


def test_the_public_names_are_listed_once_and_resolve() -> None:
    assert len(set(mlscale.__all__)) == len(mlscale.__all__)
    assert set(mlscale.__all__) <= set(dir(mlscale))
    from_star: dict[str, object] = {}
    exec("from mlscale import *", from_star)
    assert all(from_star[name] is not None for name in mlscale.__all__)
    assert mlscale.ConfigGrid is importlib.import_module("mlscale.data.grid").ConfigGrid
    with pytest.raises(AttributeError, match=r"mlscale has no 'nonesuch'; help\(mlscale\) lists"):
        mlscale.nonesuch  # noqa: B018


def test_no_two_classes_have_one_name() -> None:
    """By reading the source: whoever looks for a type finds one."""
    sources = [path.read_text("utf-8") for path in Path(mlscale.__file__).parent.rglob("*.py")]
    names = [n for s in sources for n in re.findall(r"^ *class (\w+)[(:]", s, re.MULTILINE)]
    assert "Measurements" in names
    assert [name for name, count in Counter(names).items() if count > 1] == []
