"""Predictors of one's own in studies: as objects, in worker processes, and where no module is."""

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import succeed
from predictor_calls import counted
from synthetic import kernels as made
from synthetic.tidy import refused

import mlscale
from mlscale import ConfigGrid, Nearest, NoScaling, Predictor, Profiles, Surfaces
from mlscale.studies.candidates import Candidate
from mlscale.studies.crossval import Study
from mlscale.studies.errors import ErrorStudy, plan

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


def rows_of(study: Study, predictor: str) -> list[dict[str, Any]]:
    return [row for row in study.rows(study.results()) if row["predictor"] == predictor]


class TestObjects:
    def test_an_object_keeps_its_hyper_parameters_and_its_class_names_it(self) -> None:
        """Twice no-scaling's factor: 100 |2 p - 1| where no-scaling errs by 100 |p - 1|."""
        one, two = (
            ErrorStudy(tables={"t": DATA}, predictors=[given], quantity="time")
            for given in (Level, Level(level=2.0))
        )
        results = [row["mape"] for study in (one, two) for row in rows_of(study, "Level")]
        truth = DATA.relative("time", GRID.mid).reshape(8, -1)[:, : GRID.size - 1]  # mid is last
        expected = [100 * np.abs(level / truth - 1).mean() for level in (1.0, 2.0)]
        assert results == pytest.approx(expected)

    def test_own_clusters_and_features_are_kept(self) -> None:
        given = mlscale.Wu(clusters=2, features="rates")
        study = ErrorStudy(tables={"t": DATA}, predictors=[given])
        [part] = [p for p in study.parts if p.candidate.name == "wu" and p.seed == 0][:1]
        assert (part.candidate.features, part.clusters) == ("rates", None)
        model = part.candidate.create(quantity="power", clusters=part.clusters, seed=7)
        assert model.get_params() == {
            **given.get_params(), "quantity": "power", "seed": 7,
        }  # fmt: skip

    def test_two_of_one_name_are_refused(self) -> None:
        study = ErrorStudy(tables={"t": DATA}, predictors=[Nearest(neighbours=1)])
        with refused("^two predictors are called 'nearest'; give yours another `name`$"):
            _ = study.parts

    def test_two_classes_of_one_name_are_refused(self) -> None:
        class Still(NoScaling):
            pass

        class Other(NoScaling):
            name = "Still"

        study = ErrorStudy(tables={"t": DATA}, predictors=[Still, Other])
        with refused("^two predictors are called 'Still'; give yours another `name`$"):
            _ = study.parts

    def test_a_subclass_of_another_stands_beside_it(self) -> None:
        class Same(Level):
            pass

        study = ErrorStudy(tables={"t": DATA}, predictors=[Level, Same])
        assert {"Level", "Same"} <= {part.candidate.name for part in study.parts}

    def test_a_name_of_its_own_tells_them_apart(self) -> None:
        closest = Nearest(neighbours=1)
        closest.name = "closest"  # type: ignore[misc]
        study = ErrorStudy(tables={"t": DATA}, predictors=[closest, "nearest"])
        assert {"closest", "nearest"} <= {part.candidate.name for part in study.parts}

    def test_without_a_quantity_it_predicts_time_alone(self) -> None:
        class Plain(NoScaling):
            name = "plain"

            def __init__(self) -> None:
                self.quantity = "time"

        study = ErrorStudy(tables={"t": DATA}, predictors=[Plain])
        own = [part for part in study.parts if part.candidate.name == "plain"]
        assert [part.quantity for part in own] == ["time"]


class TestTraining:
    def test_one_that_does_not_pool_is_refused(self) -> None:
        tables = {"a": DATA, "b": DATA}
        with refused("^'Level' learns from one table at a time, not from 2: 'a', 'b'$"):
            plan("errors", tables, predictors=[Level], training="pooled")

    def test_one_that_needs_no_training_can_stand_beside(self) -> None:
        planned = plan(
            "errors", {"a": DATA, "b": DATA}, predictors=["no-scaling"], training="pooled"
        )
        assert planned.rows(planned.results())


class TestFailures:
    """What an own predictor raises is told in one line, also from a worker process."""

    @pytest.mark.parametrize(
        ("step", "where", "fault"),
        [
            ("fit", " on made-gpu", "self.grid_, self.base_ = training.grid, base"),
            ("predict", " on made-gpu", "return Surfaces(self.grid_, self.base_, ones(profiles"),
        ],
    )
    @pytest.mark.parametrize("jobs", [1, 2])
    def test_in_fit_and_predict(
        self, module: str, tmp_path: Path, step: str, where: str, fault: str, jobs: int
    ) -> None:
        before, after = MODULE.split(fault)
        line = before.count("\n") + 1
        (tmp_path / f"{module}.py").write_text(f"{before}raise TypeError('no'); {fault}{after}")
        message = f"predictor 'mine' failed in {step}{where}: TypeError: no ({module}.py, line "
        with refused(f"^{re.escape(message)}{line}\\)$"):
            mlscale.study("errors", DATA, f"{module}:Mine", jobs=jobs, seeds=1)

    def test_in_init(self) -> None:
        class Mine(NoScaling):
            def __init__(self) -> None:
                raise KeyError("x")

        with refused("^predictor 'Mine' failed in __init__: KeyError: 'x' .test_own_predictors.py"):
            mlscale.study("errors", DATA, Mine)

    def test_faults_of_ours_stay_as_they_are(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Nearest, "predict", lambda *_: {}["x"])
        with pytest.raises(KeyError):
            mlscale.study("errors", DATA, "nearest", jobs=1)


class TestElsewhere:
    def test_a_process_without_the_module_can_use_it(self, module: str, tmp_path: Path) -> None:
        """The class travels with its module: pickled here, used where no such file is."""
        candidate = Candidate.of(f"{module}:Mine")
        study = ErrorStudy(tables={"t": DATA}, predictors=[f"{module}:Mine"])
        work, calls = study.calls()
        [own] = [call for call in calls if call[0].candidate == candidate and call[0].quantity ==
                 "time"]  # fmt: skip
        (tmp_path / "call.pickle").write_bytes(pickle.dumps((work, own)))
        (tmp_path / f"{module}.py").unlink()
        (tmp_path / "elsewhere").mkdir()
        code = (
            "import pickle; work, call = pickle.load(open('../call.pickle', 'rb'));"
            "print(sum(map(sum, work(*call)['errors'])))"
        )
        found = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path / "elsewhere",
            env={**os.environ, "PYTHONPATH": str(Path(mlscale.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        )
        assert float(found.stdout) == pytest.approx(np.sum(work(*own)["errors"]))

    def test_in_worker_processes(self, capsys: Any, module: str, tmp_path: Path) -> None:
        """Time and power in two processes; the figures are those of no-scaling."""
        DATA.write(tmp_path / "t.csv")
        given = ["study", "errors", "t.csv", "--predictor", f"{module}:Mine", "--seeds", 1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "cpu_count", lambda: 2)
            out, _ = succeed(capsys, *given, "-o", "out")
        lines = [line.split() for line in out.splitlines()]
        own = [line[1:] for line in lines if line[:1] == ["mine"]]
        assert len(own) == 3  # time, power, and their means together
        assert own == [line[1:] for line in lines if line[:1] == ["no-scaling"]]

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
    """With intervals where there are any; eight applications make eight folds."""
    from synthetic import bottleneck_kernels

    data = bottleneck_kernels.measurements(6)
    calls = counted(monkeypatch, mlscale.PREDICTORS[predictor])
    study = ErrorStudy(tables={"t": data}, predictors=[predictor], quantity="time", seeds=1)
    work, arguments = study.calls()
    [own] = [call for call in arguments if call[0].candidate.name == predictor]
    work(*own)
    method = ("predict", "time", None)
    if predictor == "bottleneck":
        method = ("predict_interval", "time", 0.9)
    assert calls == [method] * len(set(data.applications))
