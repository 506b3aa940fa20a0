"""Training on other tables: errors by hand, nothing of what is tested in the training, refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synthetic import bottleneck_kernels, profiled
from synthetic import kernels as made
from synthetic.tidy import refused

import mlscale
from mlscale import ConfigGrid, Measurements, create
from mlscale.studies.errors import ErrorStudy, plan

GRID = ConfigGrid((4,), (500.0, 1000.0, 2000.0), (700.0,))
RAW: dict[str, Any] = {"features": "raw", "seeds": 1, "jobs": 1}


def one_kernel(name: str, *time_ms: float, power_w: float | None = None) -> Measurements:
    """A kernel, an application of its own, at the engine clocks 500, 1000 and 2000."""
    time = np.array(time_ms).reshape(1, 1, 3, 1)
    power = None if power_w is None else np.full(time.shape, power_w)
    names = {"kernels": (name,), "applications": (f"app-{name}",)}
    return profiled.measurements(GRID, time, power, {"loads": np.ones(1)}, **names)


TRAINED, TESTED = one_kernel("a", 4, 2, 1), one_kernel("b", 5, 5, 8)


def other_kernels(data: Measurements) -> Measurements:
    """The same kernels under other names, of other applications."""
    return replace(
        data,
        kernels=tuple(f"other-{name}" for name in data.kernels),
        applications=tuple(f"other-{name}" for name in data.applications),
    )


def errors(frame: Any) -> dict[str, float]:
    return dict(zip(frame["predictor"], frame["mape"], strict=True))


class TestKnownTruth:
    def test_errors_by_hand(self) -> None:
        """b scales by 1 and 1.6, the mean surface of a says 2 and 1/2; no-scaling 1 and 1.

        Errors 100 |predicted / true - 1|: 100 and 68.75; 0 and 37.5.
        """
        frame = mlscale.study(
            "errors", {"t": TESTED}, ["mean-surface"], train_on={"m": TRAINED}, **RAW
        )
        found = errors(frame)
        assert found["mean-surface"] == pytest.approx((100 + 68.75) / 2)
        assert found["no-scaling"] == pytest.approx(37.5 / 2)

    def test_kernels_of_the_same_laws_are_predicted_without_error(self) -> None:
        """Counters near 1 tell the law of each group, and factors of time do not matter."""
        tested = made.measurements(2, seed=1)
        frame = mlscale.study(
            "errors", {"t": tested}, ["nearest"], train_on=other_kernels(made.measurements()), **RAW
        )
        nearest = frame[frame["predictor"] == "nearest"]
        assert list(nearest["quantity"]) == ["time", "power"]
        assert nearest["mape"].max() == pytest.approx(0, abs=1e-9)
        assert set(nearest["n_kernels"]) == {8}
        assert set(nearest["n_training_kernels"]) == {12}

    def test_bottleneck_predicts_another_grid_with_intervals(self) -> None:
        """Kernels of its own curve; the bound is for the prior's pull with 15 kernels.

        The coverage is counted here anew, from the same predictor without a study.
        """
        grid = ConfigGrid((16,), (600.0, 800.0, 1000.0), (1500.0, 2500.0, 3500.0))
        tested = bottleneck_kernels.measurements(8, seed=1, grid=grid)
        trained = other_kernels(bottleneck_kernels.measurements(15))
        frame = mlscale.study("errors", {"t": tested}, train_on={"m": trained}, seeds=1, jobs=1)
        assert set(frame["quantity"]) == {"time"}
        [row] = frame[frame["predictor"] == "bottleneck"].to_dict("records")
        assert row["mape"] < 2
        predictor = create("bottleneck").fit(trained, "mid")
        surfaces = predictor.predict_interval(tested.profiles("mid"), 0.9, grid)
        truth = tested.relative("time", "mid")
        inside = (surfaces.low <= truth) & (truth <= surfaces.high)
        at_base = inside[:, *grid.index("mid")]
        count = inside.sum() - at_base.sum()
        assert row["coverage"] == pytest.approx(100 * count / (inside.size - at_base.size))
        assert "mean-surface" not in set(frame["predictor"])

    def test_predictors_that_pool_take_several(self) -> None:
        """The table of the tested grid comes first, wherever it was named."""
        tested = bottleneck_kernels.measurements(6, seed=1)
        own = other_kernels(bottleneck_kernels.measurements(8, seed=2))
        other = replace(other_kernels(own), device="gtx1080ti")
        planned = plan("errors", {"t": tested}, train_on={"other": other, "own": own}, seeds=1)
        assert isinstance(planned, ErrorStudy)
        learnt = planned.learnt["t"]
        assert [table.device for (table, _), _ in learnt] == ["gtx980", "gtx1080ti"]
        quantities = {(part.candidate.name, part.quantity) for part in planned.parts}
        assert {("bottleneck", "time"), ("bottleneck", "power")} < quantities
        assert not {name for name, _ in quantities} & {"wu", "nearest", "mean-surface"}
        [row] = [r for r in planned.rows(planned.results()) if
                 (r["predictor"], r["quantity"]) == ("bottleneck", "time")]  # fmt: skip
        assert row["train_on"] == ["other", "own"]
        assert row["n_training_kernels"] == 16
        assert row["mape"] < 5


def joined(one: Measurements, other: Measurements) -> Measurements:
    """The kernels of both."""
    return replace(
        one,
        kernels=one.kernels + other.kernels,
        applications=one.applications + other.applications,
        time_samples=np.concatenate([one.time_samples, other.time_samples], axis=1),
        power_samples=None,
        counter_samples=np.concatenate([one.counter_samples, other.counter_samples], axis=1),
    )


class TestNoLeak:
    def test_applications_under_test_are_left_out_and_told(self) -> None:
        """With b in the training table nothing changes; with c in place of a it does."""
        shown = joined(TRAINED, TESTED)
        rows = [
            mlscale.study("errors", {"t": TESTED}, ["mean-surface"], train_on={"m": table}, **RAW)
            for table in (TRAINED, shown, one_kernel("c", 1, 1, 1))
        ]
        clean, with_tested, other = (errors(frame)["mean-surface"] for frame in rows)
        assert with_tested == clean
        assert other != clean
        [row] = rows[1][rows[1]["predictor"] == "mean-surface"].to_dict("records")
        assert row["left_out_of_training"] == ["app-b"]
        assert row["n_training_kernels"] == 1
        assert rows[0]["left_out_of_training"].tolist()[0] == []

    def test_another_kernel_of_a_tested_application_is_left_out_too(self) -> None:
        """c is of the application of b: it must not teach what b's application is like."""
        sibling = replace(one_kernel("c", 5, 5, 8), applications=TESTED.applications)
        table = joined(TRAINED, sibling)
        frame = mlscale.study(
            "errors", {"t": TESTED}, ["mean-surface"], train_on={"m": table}, **RAW
        )
        assert errors(frame)["mean-surface"] == pytest.approx((100 + 68.75) / 2)

    def test_nothing_is_learnt_from_the_tested_table(self) -> None:
        """The errors of b stand, whatever kernel is tested with it."""
        beside = joined(TESTED, one_kernel("d", 9, 1, 30))
        planned = plan(
            "errors", {"t": beside}, predictors=["mean-surface"], train_on={"m": TRAINED}
        )
        results = zip(planned.parts, planned.results(), strict=True)
        [result] = [result for part, result in results if part.candidate.name == "mean-surface"]
        np.testing.assert_allclose(result["errors"][0], [100, 68.75], rtol=1e-12)


def test_a_tested_kernel_under_another_application_is_told() -> None:
    """Hand: b is left out as app-b, not as suite; the case of a name is no difference."""
    renamed = replace(one_kernel("B", 5, 5, 8), applications=("suite",))
    message = "1 kernel to train on may be under test in 't', such as 'B' of 'suite', there of 'ap"
    with pytest.warns(mlscale.DataWarning, match=f"^{message}"):
        mlscale.study("errors", {"t": TESTED}, ["mean-surface"], train_on={"m": renamed}, **RAW)


def test_the_training_tables_enter_the_fingerprint() -> None:
    """So a study is not taken up with another training."""
    prints = {
        plan("errors", {"t": TESTED}, train_on={"m": table}).fingerprint()
        for table in (TRAINED, one_kernel("a", 4, 2, 1.5))
    }
    prints.add(plan("errors", {"t": TESTED, "u": replace(TESTED)}).fingerprint())
    assert len(prints) == 3


def test_seeds_count_where_a_predictor_has_one() -> None:
    planned = plan(
        "errors", {"t": TESTED}, predictors=["extra-trees"], train_on={"m": TRAINED}, seeds=3
    )
    names = [part.candidate.name for part in planned.parts]
    assert (names.count("extra-trees"), names.count("mean-surface")) == (3, 1)


def test_power_is_left_where_the_training_has_none() -> None:
    tested = one_kernel("b", 5, 5, 8, power_w=100)
    planned = plan("errors", {"t": tested}, predictors=["nearest"], train_on={"m": TRAINED})
    assert {part.quantity for part in planned.parts} == {"time"}


OTHER_GPU = replace(TRAINED, device="gtx980")
OTHER_GRID = replace(TRAINED, grid=ConfigGrid((4,), (600.0, 1000.0, 1800.0), (700.0,)))
OTHER_BASE = replace(TRAINED, grid=ConfigGrid((4,), (600.0, 900.0, 1800.0), (700.0,)))


@pytest.mark.parametrize(
    ("train_on", "options", "problem"),
    [
        (TESTED, {}, "no kernel is left to train on: 't' tests every application of 'made-gpu'; "),
        ({"m": OTHER_GPU}, {"predictors": "nearest"},
         "'nearest' cannot predict a GPU that it .* 't' is of 'made-gpu', 'm' of 'gtx980'$"),
        ({"m": OTHER_GRID}, {"predictors": "mean-surface"},
         "'mean-surface' predicts on its training grid only; interpolate its surfaces$"),
        ({"m": OTHER_BASE}, {"predictors": "mean-surface"},
         "'mean-surface' predicts on the grid and from the base .*: 'm' is at cu=4,engine=900,"),
        ({"m": OTHER_BASE}, {"base": "engine=1000"},
         "'m': engine_mhz 1000 is not on .*; 'mid' and 'highest' are on every grid$"),
        ({"m": OTHER_GRID}, {"quantity": "power"}, "power is learnt on the GPU itself"),
        ({"m": TRAINED, "n": one_kernel("c", 1, 2, 3)}, {"predictors": ["nearest"]},
         "'nearest' learns from one table at a time, not from 2: 'm', 'n'$"),
        ({"m": TRAINED}, {"split": "k-fold"},
         "a study that trains on other tables has a protocol of its own: leave out 'k-fold'$"),
        ({"m": TRAINED}, {"training": "pooled"}, "a study that trains .* leave out 'pooled'$"),
        ({"m": "m.csv"}, {}, "a table is Measurements, not str"),
    ],
)  # fmt: skip
def test_what_cannot_be_studied(train_on: Any, options: dict[str, Any], problem: str) -> None:
    with refused(f"^{problem}"):
        mlscale.study("errors", {"t": TESTED}, train_on=train_on, **{**RAW, **options})


def test_other_studies_have_no_such_protocol() -> None:
    with refused("^the study 'advice' has no option 'train_on'; it has predictors, features"):
        mlscale.study("advice", {"t": TESTED}, train_on=[TRAINED])


def test_on_another_grid_those_stand_that_predict_it() -> None:
    elsewhere = plan("errors", {"t": TESTED}, train_on={"m": OTHER_GRID}, quantity="time")
    assert {part.candidate.name for part in elsewhere.parts} == {
        *("no-scaling", "engine-bound", "core-bound", "memory-bound")
    }
