"""Predictors of one's own: found by name, trained, saved, and never run on a file's word."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from synthetic import kernels as made
from synthetic.tidy import refused, same_bits

import mlscale
from mlscale import ConfigGrid, HardwareConfig, Measurements, Predictor, Profiles, Surfaces
from mlscale.cli.show import contents
from mlscale.predictors.base import predict_surfaces

MID = made.GRID.mid
MODULE = """
from pathlib import Path

from mlscale import NoScaling

class Still(NoScaling):
    name = "still"

class Unfinished(__import__("mlscale").Predictor):
    pass

number = 3
Path("imported.txt").write_text("imported\\n")
"""


@dataclass
class Flat(Predictor):
    """Every factor is a level, but 1 at the base."""

    quantity: str = "time"
    level: float = 2.0

    def fit(self, training: Measurements, base: HardwareConfig) -> Self:  # type: ignore[override]  # noqa: ARG002
        self.grid_ = training.grid
        self.shift_ = np.full(3, self.level)
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        grid = grid or self.grid_
        values = np.full((len(profiles.kernels), *grid.shape), self.shift_[0])
        values[:, *grid.index(profiles.base)] = 1
        return Surfaces(grid, profiles.base, values)


@dataclass
class Looking(Flat):
    """The same, and it looks at two counters."""

    def feature_names(self) -> tuple[str, ...]:
        return ("loads", "stores")


@dataclass
class Needing(Looking):
    """The same, and it cannot do without one."""

    def needs(self) -> tuple[str, ...]:
        return ("loads",)


@dataclass
class SavableFlat(Flat):
    """The same, for a model file."""

    name = "savable-flat"

    def state(self) -> dict[str, Any]:
        return {"grid": {k: list(v) for k, v in vars(self.grid_).items()}, "shift": self.shift_}

    def restore(self, state: dict[str, Any]) -> Self:
        self.grid_ = ConfigGrid(**state["grid"])
        self.shift_ = state["shift"]
        return self


class WithoutQuantity(Predictor):
    """A plain class whose one parameter is not the quantity."""

    def __init__(self, level: float = 3.0) -> None:
        self.level = level

    fit = Flat.fit  # type: ignore[assignment]
    predict = Flat.predict  # type: ignore[assignment]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, with mine.py in it; sys.path and sys.modules are put back."""
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield tmp_path
    sys.modules.pop("mine", None)


class TestFindPredictor:
    def test_finds_a_class_in_the_current_directory(self, folder: Path) -> None:
        kind = mlscale.find_predictor("mine:Still")
        assert issubclass(kind, mlscale.NoScaling)
        assert (folder / "imported.txt").read_text() == "imported\n"
        assert sys.path[-1] == str(folder)  # at the end, so that nothing installed is hidden

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("mine:Missing", "mine has no 'Missing'"),
            ("mine:number", "'mine:number' is not a predictor"),
            ("mine:Unfinished", "'mine:Unfinished' lacks the methods fit, predict"),
            ("not_there:Flat", "'not_there' of predictor= cannot .*: No module named 'not_there'"),
            ("broken:Flat", "'broken' of predictor= cannot be imported: SyntaxError: .*syntax"),
            ("mine", "there is no predictor 'mine'; .*, or package.module:Class"),
        ],
    )
    def test_refuses(self, folder: Path, name: str, message: str) -> None:
        (folder / "broken.py").write_text("class (")
        with refused(message):
            mlscale.find_predictor(name)


class TestCreate:
    def test_copies_an_object(self) -> None:
        one = Flat(level=5.0).fit(made.measurements(), MID)
        other = mlscale.create(one, quantity="power")
        assert type(other) is Flat
        assert other.get_params() == {"quantity": "power", "level": 5.0}
        assert not hasattr(other, "grid_")

    def test_takes_a_class_and_names_it_after_itself(self) -> None:
        assert mlscale.create(Flat, level=4.0).get_params() == {"quantity": "time", "level": 4.0}
        assert Flat.name == "Flat"


class TestTrain:
    @pytest.mark.parametrize("predictor", [Flat, Flat(level=4.0)])
    def test_with_a_class_or_an_object(self, predictor: Any) -> None:
        model = mlscale.train(made.measurements(), MID, predictor)
        factors = model.predict(made.measurements().profiles(MID))["power"].values
        assert factors.max() == (2.0 if predictor is Flat else 4.0)

    def test_one_without_a_quantity_is_of_time(self) -> None:
        with pytest.warns(mlscale.DataWarning, match="^'WithoutQuantity' predicts only time: "):
            model = mlscale.train(made.measurements(), MID, WithoutQuantity, level=7.0)
        assert model.predictors.keys() == {"time"}
        assert model.predictors["time"].get_params() == {"level": 7.0}


class TestPredictions:
    """What an own predictor gives is looked at before anything is made of it."""

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.ones((12, 2)), r"factors of shape \(12, 2\), not \(12, "),
            (np.full((12, *made.GRID.shape), np.nan), "a factor that is not finite and"),
        ],
    )
    def test_bad_factors_are_refused(self, values: Any, message: str) -> None:
        class Bad(Flat):
            def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
                return Surfaces(grid or self.grid_, profiles.base, values)

        with refused(f"^the predictor 'Bad' gave {message}"):
            predict_surfaces(Bad().fit(made.measurements(), MID), made.measurements().profiles(MID))


class TestModelFile:
    def saved(self, folder: Path, predictor: Any) -> Path:
        mlscale.train(made.measurements(), MID, predictor).save(folder / "m.mlscale")
        return folder / "m.mlscale"

    def test_is_loaded_with_the_class_alone(self, tmp_path: Path) -> None:
        path = self.saved(tmp_path, SavableFlat(level=6.0))
        with refused(r"SavableFlat', which is not part of .*predictors=\[SavableFlat"):
            mlscale.load(path)
        with refused("which is not part of mlscale"):
            mlscale.load(path, predictors=[Flat])
        model = mlscale.load(path, predictors=[Flat, SavableFlat])
        profiles = made.measurements().profiles(MID)
        assert model.predictors["time"].get_params() == {"quantity": "time", "level": 6.0}
        expected = mlscale.train(made.measurements(), MID, SavableFlat(level=6.0)).predict(profiles)
        assert same_bits(model.predict(profiles)["power"].values, expected["power"].values)

    def test_runs_no_code(self, folder: Path) -> None:
        path = self.saved(folder, mlscale.find_predictor("mine:Still"))
        del sys.modules["mine"]
        (folder / "imported.txt").unlink()
        with refused("was made by the predictor 'mine:Still'"):
            mlscale.load(path)
        assert "mine" not in sys.modules
        assert not (folder / "imported.txt").exists()

    def test_without_state_is_refused(self, tmp_path: Path) -> None:
        with refused("m.mlscale: 'Flat' cannot be saved: it lacks state and restore"):
            self.saved(tmp_path, Flat)


@pytest.mark.parametrize(("predictor", "needed"), [(Looking, []), (Needing, ["loads"])])
def test_features_that_a_profile_needs(predictor: type[Flat], needed: list[str]) -> None:
    row = contents(mlscale.train(made.measurements(), MID, predictor))["predictors"]["time"]
    assert (row["features"], row["features_needed"]) == (["loads", "stores"], needed)
