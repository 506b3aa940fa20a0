"""Arguments of the Python interface that are of a wrong type: one line that names them.

Expected: by hand, from each function's signature.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sklearn.ensemble import RandomForestRegressor
from synthetic import kernels as made
from synthetic import monitor_logs, monitor_readings
from synthetic.tidy import refused

import mlscale

MID = made.GRID.mid


class OwnPredictor:
    """No predictor; a class that stands where a list of classes is asked for."""


@cache
def right() -> dict[str, Any]:
    data = made.measurements()
    model = mlscale.train(data, MID, "core-bound")
    return {"measurements": data, "model": model, "profiles": data.profiles(MID)}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.csv"
    path.write_text(monitor_logs.query(monitor_readings.block(2, 5, 2)))
    return path


def given(*names: str, **others: Any) -> dict[str, Any]:
    return {**{name: right()[name] for name in names}, **others}


class TestImportProfile:
    @pytest.mark.parametrize(
        ("argument", "value", "message"),
        [
            ("device", 5, "device must be text, not int"),
            ("application", ["a"], "application must be text, not list"),
            ("gpu", 0, "gpu must be text, such as '0', not int"),
            ("power", [80], "power must be watts or a log's path, not list"),
            ("power", True, "power must be watts or a log's path, not bool"),
            ("interval_s", True, "interval_s must be a positive number, not True"),
            ("base", {"engine_mhz": "1 GHz"}, "engine_mhz of the base must be a positive number"),
            ("base", {"engine_mhz": True}, "engine_mhz of the base must be .*, not True"),
            ("base", {"memory_mhz": -1}, "memory_mhz of the base must be .*, not -1"),
        ],
    )
    def test_what_the_log_does_not_say(
        self, log: Path, argument: str, value: object, message: str
    ) -> None:
        with refused(f"^{message}"):
            mlscale.import_profile(log, **{argument: value})

    @pytest.mark.parametrize("files", [5, None, [5], b"run.csv"])
    def test_files(self, files: Any) -> None:
        with refused("^files must be a file's path or a list of such, not "):
            mlscale.import_profile(files)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (mlscale.read, {"path": 5}, "path must be a file's path, not int"),
        (mlscale.load, {"path": None}, "path must be a file's path, not NoneType"),
        (
            mlscale.load,
            {"path": "m.mlscale", "predictors": OwnPredictor},
            "predictors must be a list of classes, not <class",
        ),
        (
            mlscale.read_profiles,
            {"path": 5, "base": MID, "device": "a"},
            "path must be a file's path or a data frame, not int",
        ),
        (
            mlscale.read_profiles,
            {"path": "p.csv", "base": "mid", "device": "a"},
            "base must be a mlscale.HardwareConfig, such as model.base, not str",
        ),
        (
            mlscale.read_profiles,
            {"path": "p.csv", "base": MID, "device": 5},
            "device must be text, not int",
        ),
        (mlscale.Measurements.from_frame, {"frame": 5}, "frame must be a pandas DataFrame, not"),
        (mlscale.find_predictor, {"name": 5}, "name must be text, not int"),
    ],
)
def test_reading(function: Callable[..., Any], arguments: dict[str, Any], message: str) -> None:
    with refused(f"^{message}"):
        function(**arguments)


def test_advice() -> None:
    with refused("^model must be a mlscale.Model, not str$"):
        mlscale.advise(**given("profiles", model="m.mlscale"))
    with refused("^profiles must be mlscale.Profiles, as .* give, not Measurements$"):
        mlscale.advise(**given("model", profiles=right()["measurements"]))


def test_prediction() -> None:
    with refused("^model must be a mlscale.Model, or the path of its file, not int$"):
        mlscale.predict(**given("profiles", model=5))
    with refused("^profiles must be mlscale.Profiles, a file's path or a data frame, not int$"):
        mlscale.predict(**given("model", profiles=5))
    with refused("^profiles must be mlscale.Profiles, as .* give, not Measurements$"):
        right()["model"].predict(right()["measurements"])


def test_saving(tmp_path: Path) -> None:
    with refused("^model must be a mlscale.Model, not int$"):
        mlscale.save(5, tmp_path / "m.mlscale")
    with refused("^path must be a file's path, not int$"):
        mlscale.save(right()["model"], 5)


class TestTrain:
    @pytest.mark.parametrize(
        ("predictor", "given", "message"),
        [
            ("wu", {"clusters": 8.5}, "clusters must be a whole number or text or None, not float"),
            ("wu", {"clusters": True}, "clusters must be a whole number or text or None, not bool"),
            ("wu", {"clusters": "8"}, "clusters is a whole number or 'auto', not '8'"),
            ("wu", {"seed": "1"}, "seed must be a whole number, not str"),
            ("wu", {"seed": None}, "seed must be a whole number, not NoneType"),
            ("wu", {"features": 5}, "features must be text or None, not int"),
            ("wu", {"counters": 5}, "counters must be text or a list of names, not int"),
            ("wu", {"log_ratios": "yes"}, "log_ratios must be True or False, not str"),
            ("extra-trees", {"trees": "300"}, "trees must be a whole number, not str"),
            ("bottleneck", {"amplitude": "1"}, "amplitude must be a number or None, not str"),
            ("max-overlap", {"gpu": 5}, "gpu must be text, not int"),
        ],
    )
    def test_hyper_parameters(self, predictor: str, given: dict[str, Any], message: str) -> None:
        with refused(f"^{message}$"):
            mlscale.train(right()["measurements"], MID, predictor, **given)

    def test_measurements(self) -> None:
        with refused("^measurements must be mlscale.Measurements, as .* give, not str$"):
            mlscale.train("table.parquet", MID)

    def test_predictor(self) -> None:
        """An estimator of scikit-learn is none; it has a length, unknown before fitting."""
        with refused("RandomForestRegressor.* is not a predictor"):
            mlscale.train(right()["measurements"], MID, RandomForestRegressor())

    @pytest.mark.parametrize("others", [5, None, "ab", ["table.parquet"], [("table.csv", "mid")]])
    def test_others(self, others: Any) -> None:
        with refused("^others must be a list of pairs of mlscale.Measurements and their base$"):
            mlscale.train(right()["measurements"], MID, "core-bound", others)


class TestGridsAndFrames:
    def test_settings(self) -> None:
        with refused("^engine_mhz must be a number, not str$"):
            mlscale.HardwareConfig(8, "1 GHz", 700)  # type: ignore[arg-type]
        with refused("^cu_count must be a number, not bool$"):
            mlscale.HardwareConfig(True, 800, 700)
        with refused("^the grid's cu_count must be a list of numbers, not int$"):
            mlscale.ConfigGrid(8, (400, 800), (700,))  # type: ignore[arg-type]
        with refused("^each of the grid's memory_mhz must be a number, not str$"):
            mlscale.ConfigGrid((8,), (400, 800), ("700",))  # type: ignore[arg-type]

    def test_configurations(self) -> None:
        model, profiles = right()["model"], right()["profiles"]
        with refused("^targets must be a list of mlscale.HardwareConfig, not int$"):
            model.predict(profiles).to_frame(5)
        with refused("^each of targets must be a mlscale.HardwareConfig, not str$"):
            model.predict(profiles).rows(["mid"])
        with refused("^each of configs must be a mlscale.HardwareConfig, not str$"):
            model.extrapolating(["mid"])
        assert len(model.predict(profiles).to_frame(made.GRID)) == len(profiles.kernels) * 36

    def test_frames_and_files(self) -> None:
        data = right()["measurements"]
        with refused("^device must be text, not int$"):
            mlscale.Measurements.from_frame(data.to_frame(), device=5)  # type: ignore[arg-type]
        with refused("^metadata must be a dict, not str$"):
            mlscale.Measurements.from_frame(data.to_frame(), metadata="x")  # type: ignore[arg-type]
        with refused("^frame must be a pandas DataFrame, not int$"):
            mlscale.Measurements.from_frame(5, device="a")  # type: ignore[arg-type]
        with refused("^path must be a file's path, not int$"):
            data.write(5)

    @pytest.mark.parametrize("of", ["measurements", "profiles"])
    def test_kernels_and_quantities(self, of: str) -> None:
        """There are 12 kernels; a list of yes and no is a mask of all of them or nothing."""
        data = right()[of]
        for kernels in (5, "gemm", None, ["gemm"], [0.5], [[0]], [[0], [1, 2]], [True, False]):
            with refused("^kernels must be a list of positions, or a mask of 12$"):
                data.select(kernels)
        with refused("^kernels: there is no position 99, there are 12$"):
            data.select([0, 99])
        with refused("^there is no quantity 'energy'; one of time, power$"):
            data.quantity("energy")
        assert data.select([k == 3 for k in range(12)]).kernels == (data.kernels[3],)
        assert data.select([-1, 0]).kernels == (data.kernels[11], data.kernels[0])

    def test_steps(self) -> None:
        for kept in (1, [0, 1]):
            with refused("^kept must be a slice, such as slice.1, None., not "):
                right()["measurements"].at_steps("engine_mhz", kept)
