"""The public API: frames in and out, readable reprs, NumPy numbers and lists."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic import bottleneck_kernels
from synthetic import kernels as made
from synthetic.tidy import refused, same_bits

import mlscale
from mlscale import ConfigGrid, HardwareConfig, Measurements, Surfaces

MID = made.GRID.mid


class TestFrames:
    def test_measurements_survive(self) -> None:
        """Expected: what went in, row by row."""
        before = made.measurements()
        after = Measurements.from_frame(before.to_frame(), metadata=before.metadata)
        assert same_bits(after.time_samples, before.time_samples)
        assert same_bits(after.counter_samples, before.counter_samples)
        assert (after.kernels, after.grid, after.metadata) == (
            before.kernels,
            before.grid,
            before.metadata,
        )

    def test_index_levels_are_columns_and_the_device_can_be_given(self) -> None:
        before = made.measurements()
        frame = before.to_frame().drop(columns="device").set_index(["application", "kernel"])
        after = Measurements.from_frame(frame, device="other")
        assert (after.device, after.kernels) == ("other", before.kernels)

    def test_missing_counters_are_missing(self) -> None:
        frame = made.measurements().to_frame()
        frame["busy_compute"] = frame["busy_compute"].astype("Float64").mask(frame["time_ms"] > 0)
        data = Measurements.from_frame(frame)
        assert np.isnan(data.counters[..., data.counter_names.index("busy_compute")]).all()

    def test_a_warning_is_of_the_line_that_asked(self) -> None:
        """Hand: a notebook shows the line beside a warning, here one of this file."""
        frame = made.measurements().to_frame().assign(temp_c=40.0)
        with pytest.warns(mlscale.DataWarning, match="'temp_c': taken for a counter") as told:
            Measurements.from_frame(frame)
        assert told[0].filename == __file__

    def test_a_bad_frame_is_refused(self) -> None:
        frame = made.measurements().to_frame()
        with refused("the frame: row 1, column 'time_ms': the value is -1; it must be positive"):
            Measurements.from_frame(frame.assign(time_ms=-1.0))
        with refused("the frame: column 'busy_compute' holds .*; numbers are needed there"):
            Measurements.from_frame(frame.assign(busy_compute="high"))
        with refused("the frame: there is no column 'kernel'"):
            Measurements.from_frame(frame.drop(columns="kernel"))
        with refused("the frame: row 1, column 'kernel': is empty"):
            Measurements.from_frame(frame.assign(kernel=None))
        with refused("the frame: has no rows"):
            Measurements.from_frame(frame.head(0))
        with refused("the frame: two columns have the same name"):
            Measurements.from_frame(pd.concat([frame, frame["time_ms"]], axis=1))

    def test_surfaces(self) -> None:
        """By hand: two kernels on two configurations."""
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
        assert Surfaces(grid, surfaces.base, values).to_frame()["kernel"].tolist() == [0, 0, 1, 1]

    def test_predictions_are_the_rows(self) -> None:
        model = mlscale.train(made.measurements(), MID, "core-bound")
        predictions = model.predict(made.measurements(per_group=1, seed=1).profiles(MID))
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


class TestReprs:
    def test_say_what_things_are(self) -> None:
        # The words are regression only; the numbers are those of the made kernels.
        data = made.measurements()
        model = mlscale.train(data, MID, "core-bound")
        predictions = model.predict(data.profiles(MID))
        grid = "3 CU counts x 4 engine clocks x 3 memory clocks"
        base = "cu=8,engine=800,memory=700"
        assert repr(data) == (
            f"<Measurements of 'made-gpu': 12 kernels of 12 applications, {grid}, 4 counters, "
            "with power>"
        )
        assert repr(data.profiles(MID)) == (
            f"<Profiles of 'made-gpu' at {base}: 12 kernels, 4 counters, with power>"
        )
        assert repr(model) == (
            f"<Model of 'made-gpu': time by core-bound and power by core-bound, {grid}, "
            f"base {base}>"
        )
        assert repr(predictions) == (
            f"<Predictions of time and power: 12 kernels on 'made-gpu', {grid}>"
        )
        assert repr(predictions["time"]) == (
            f"<Surfaces of 12 kernels on {grid}, relative to {base}>"
        )


class TestNumPyNumbersAndLists:
    def test_make_the_same_configurations(self) -> None:
        config = HardwareConfig(np.int64(8), np.float32(800), np.int32(700))
        assert config == MID
        assert str(config.as_dict()) == "{'cu_count': 8, 'engine_mhz': 800.0, 'memory_mhz': 700}"
        grid = ConfigGrid(*(np.array(getattr(made.GRID, axis)) for axis in MID.as_dict()))
        assert grid == made.GRID
        assert ConfigGrid(*map(list, vars(made.GRID).values())) == made.GRID
        assert hash(grid) == hash(made.GRID)

    @pytest.mark.parametrize("index", [[1, 2, 1], np.array([1, 2, 1]), (np.int64(1), 2, 1)])
    def test_are_indices_and_bases(self, index: object) -> None:
        data = made.measurements()
        assert made.GRID.config((1, 2, 1)) == made.GRID.config(index)  # type: ignore[arg-type]
        model = mlscale.train(data, index, "mean-surface")  # type: ignore[arg-type]
        assert model.base == made.GRID.config((1, 2, 1))

    @pytest.mark.parametrize(
        "base", [list(made.GRID.index(MID)), "mid", "cu=8,engine=800,memory=700"]
    )
    def test_lists_and_texts_are_bases(self, base: list[int] | str) -> None:
        data = made.measurements()
        assert np.array_equal(data.relative("time", base), data.relative("time", MID))
        assert data.profiles(base).base == MID
        assert made.GRID.index(base) == made.GRID.index(MID)
        predictor = mlscale.create("mean-surface").fit(data, base)
        assert predictor.score(data, base) == predictor.score(data, MID)
        assert mlscale.train(data, base, "mean-surface").base == MID

    @pytest.mark.parametrize(
        ("base", "message"),
        [
            ("middle", "^'middle' is not a configuration; write it as cu=16,engine=800"),
            ((0.5, 1, 1), r"^\(0.5, 1, 1\) is not a configuration; give a HardwareConfig, an inde"),
            ([1, 2], r"^\[1, 2\] is not a configuration; "),
            (None, "^None is not a configuration; "),
        ],
    )
    def test_anything_else_is_no_base(self, base: Any, message: str) -> None:
        data = made.measurements()
        with refused(message):
            mlscale.train(data, base, "mean-surface")
        with refused(message):
            data.relative("time", base)

    def test_are_hyper_parameters_of_a_saved_model(self, tmp_path: Path) -> None:
        data = made.measurements()
        mlscale.train(data, MID, "nearest", neighbours=np.int64(2)).save(tmp_path / "m.mlscale")
        predictor = mlscale.load(tmp_path / "m.mlscale").predictors["time"]
        assert predictor.get_params()["neighbours"] == 2

    @pytest.mark.parametrize("kernels", [[3, 1], np.array([3, 1]), (np.int64(3), 1)])
    def test_select_kernels(self, kernels: object) -> None:
        data = made.measurements()
        names = (data.kernels[3], data.kernels[1])
        assert data.select(kernels).kernels == names  # type: ignore[arg-type]
        assert data.profiles(MID).select(kernels).kernels == names  # type: ignore[arg-type]


class TestPredict:
    def test_takes_files_and_objects(self, tmp_path: Path) -> None:
        data = made.measurements()
        model = mlscale.train(data, MID, "core-bound")
        model.save(tmp_path / "m.mlscale")
        data.write(tmp_path / "p.csv")
        profiles = mlscale.read_profiles(tmp_path / "p.csv", MID, "made-gpu")
        expected = model.predict(profiles).to_frame()
        for one in (model, tmp_path / "m.mlscale"):
            for other in (profiles, str(tmp_path / "p.csv")):
                pd.testing.assert_frame_equal(mlscale.predict(one, other).to_frame(), expected)

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


class TestScore:
    def test_is_minus_the_mean_error_away_from_the_base(self) -> None:
        """By hand: 10 and 30 % too much at two targets, 0 at the base."""
        grid = ConfigGrid((4,), (400.0, 800.0, 1600.0), (500.0,))
        data = made.measurements(grid=grid).select([0])
        predictor = mlscale.create("no-scaling").fit(data, (0, 1, 0))
        data.time_samples[:] = np.array([1 / 1.1, 1.0, 1 / 1.3]).reshape(1, 1, 1, 3, 1)
        assert predictor.score(data, (0, 1, 0)) == pytest.approx(-20.0, rel=1e-12)


def test_no_two_classes_have_one_name() -> None:
    """By reading the source: whoever looks for a type finds one."""
    sources = [path.read_text("utf-8") for path in Path(mlscale.__file__).parent.rglob("*.py")]
    names = [n for s in sources for n in re.findall(r"^ *class (\w+)[(:]", s, re.MULTILINE)]
    assert "Measurements" in names
    assert [name for name, count in Counter(names).items() if count > 1] == []
