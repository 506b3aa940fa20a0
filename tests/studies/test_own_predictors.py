"""Predictors of one's own in studies: as objects, in worker processes, and where no module is."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from predictor_calls import counted
from synthetic import bottleneck_kernels
from synthetic import kernels as made
from synthetic.tidy import refused

import mlscale
from mlscale import ConfigGrid, Nearest, NoScaling, Predictor, Profiles, Surfaces
from mlscale.studies.errors import ErrorStudy
from mlscale.studies.study import plan

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
DATA = made.measurements(per_group=2, grid=GRID)
# What no-scaling would say, with a class, a helper and a base class that lie in the module alone.
MODULE = """
from dataclasses import dataclass

import numpy as np

from mlscale import Predictor, Surfaces

def ones(profiles, grid):
    return np.ones((len(profiles.kernels), *grid.shape))

class Still(Predictor):
    def fit(self, training, base):
        self.grid_, self.base_ = training.grid, base
        return self

@dataclass
class Mine(Still):
    quantity: str = "time"
    name = "mine"

    def predict(self, profiles, grid=None):
        return Surfaces(self.grid_, self.base_, ones(profiles, self.grid_))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the current directory, of a name that nothing else has."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


@dataclass
class Level(Predictor):
    """Every factor is a level: the errors of what does not change tell it."""

    quantity: str = "time"
    level: float = 1.0

    def fit(self, training: Any, base: Any) -> "Level":
        self.grid_, self.base_ = training.grid, base
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:  # noqa: ARG002
        values = np.full((len(profiles.kernels), *self.grid_.shape), self.level)
        return Surfaces(self.grid_, self.base_, values)


def study(*predictors: Any) -> ErrorStudy:
    return ErrorStudy(tables={"t": DATA}, predictors=predictors, quantity=["time"], seeds=1)


class TestObjects:
    def test_an_object_keeps_its_hyper_parameters_and_its_class_names_it(self) -> None:
        """Twice no-scaling's factor: 100 |2 p - 1| where no-scaling errs by 100 |p - 1|."""
        found = []
        for planned in (study(Level), study(Level(level=2.0))):
            rows = planned.rows(planned.results())
            found += [row["mape"] for row in rows if row["predictor"] == "Level"]
        truth = DATA.relative("time", GRID.mid).reshape(8, -1)[:, : GRID.size - 1]  # mid is last
        expected = [100 * np.abs(level / truth - 1).mean() for level in (1.0, 2.0)]
        assert found == pytest.approx(expected)

    def test_own_clusters_and_features_are_kept(self) -> None:
        given = mlscale.Wu(clusters=2, features="rates")
        [part] = [part for part in study(given).parts if part.candidate.name == "wu"]
        assert (part.candidate.features, part.clusters) == ("rates", None)
        model = part.candidate.create(quantity="power", clusters=part.clusters, seed=7)
        assert model.get_params() == {**given.get_params(), "quantity": "power", "seed": 7}

    def test_two_of_one_name_are_refused_unless_a_name_tells_them_apart(self) -> None:
        with refused("^two predictors are called 'nearest'; give yours another `name`$"):
            _ = study(Nearest(neighbours=1)).parts
        closest = Nearest(neighbours=1)
        closest.name = "closest"  # type: ignore[misc]
        names = {part.candidate.name for part in study(closest, "nearest").parts}
        assert {"closest", "nearest"} <= names

    def test_without_a_quantity_it_predicts_time_alone(self) -> None:
        class Plain(NoScaling):
            name = "plain"

            def __init__(self) -> None:
                self.quantity = "time"

        planned = ErrorStudy(tables={"t": DATA}, predictors=[Plain])
        asked = [part.quantity for part in planned.parts if part.candidate.name == "plain"]
        assert asked == ["time"]


class TestElsewhere:
    def test_another_source_is_another_study(self, module: str, tmp_path: Path) -> None:
        """What is kept of an interrupted study is not mixed with that of a changed predictor."""
        options = {"predictors": [f"{module}:Mine"], "seeds": 1}
        before = plan("errors", {"t": DATA}, **options).fingerprint()
        assert plan("errors", {"t": DATA}, **options).fingerprint() == before
        sys.modules.pop(module)
        (tmp_path / f"{module}.py").write_text(MODULE.replace("np.ones", "0.5 + 0 * np.ones"))
        assert plan("errors", {"t": DATA}, **options).fingerprint() != before


@pytest.mark.parametrize("predictor", ["nearest", "bottleneck"])
def test_every_fold_is_predicted_once(monkeypatch: pytest.MonkeyPatch, predictor: str) -> None:
    """With intervals where there are any; each of six applications makes a fold."""
    data = bottleneck_kernels.measurements(6)
    calls = counted(monkeypatch, mlscale.PREDICTORS[predictor])
    planned = ErrorStudy(tables={"t": data}, predictors=[predictor], quantity=["time"], seeds=1)
    work, arguments = planned.calls()
    [call] = [call for call in arguments if call[0].candidate.name == predictor]
    work(*call)
    is_plain = predictor == "nearest"
    method = ("predict", "time", None) if is_plain else ("predict_interval", "time", 0.9)
    assert calls == [method] * len(set(data.applications))
