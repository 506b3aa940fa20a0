"""Training on other tables: errors by hand, nothing of what is tested in the training, refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synthetic import bottleneck_kernels, made_runs, profiled
from synthetic import kernels as made
from synthetic.tidy import refused

import mlscale
from mlscale import ConfigGrid, Measurements, create
from mlscale.studies.errors import ErrorStudy
from mlscale.studies.study import study

GRID = ConfigGrid((4,), (500.0, 1000.0, 2000.0), (700.0,))
RAW: dict[str, Any] = {"features": "raw", "seeds": 1, "jobs": 1, "base": "mid"}


def one_kernel(name: str, *time_ms: float, power_w: float | None = None) -> Measurements:
    """A kernel, an application of its own, at the engine clocks 500, 1000 and 2000."""
    time = np.array(time_ms).reshape(1, 1, 3, 1)
    power = None if power_w is None else np.full(time.shape, power_w)
    names = {"kernels": (name,), "applications": (f"app-{name}",)}
    return profiled.measurements(GRID, time, power, {"loads": np.ones(1)}, **names)


# b scales by 1 and 1.6, the mean surface of a says 2 and 1/2; no-scaling 1 and 1.
# Errors 100 |predicted / true - 1|: 100 and 68.75; 0 and 37.5.
TRAINED, TESTED = one_kernel("a", 4, 2, 1), one_kernel("b", 5, 5, 8)
MEAN_SURFACE = (100 + 68.75) / 2


def other_kernels(data: Measurements) -> Measurements:
    """The same kernels under other names, of other applications."""
    return replace(
        data,
        kernels=tuple(f"other-{name}" for name in data.kernels),
        applications=tuple(f"other-{name}" for name in data.applications),
    )


def joined(one: Measurements, other: Measurements) -> Measurements:
    """The kernels of both."""
    return replace(
        one,
        kernels=one.kernels + other.kernels,
        applications=one.applications + other.applications,
        time_samples=np.concatenate([one.time_samples, other.time_samples], axis=1),
        counter_samples=np.concatenate([one.counter_samples, other.counter_samples], axis=1),
    )


def rows(
    trained: Any, predictor: str = "mean-surface", tested: Measurements = TESTED
) -> dict[str, dict[str, Any]]:
    """The rows of `tested` by predictor."""
    frame = study("errors", {"t": tested}, predictor, train_on=trained, **RAW)
    return {row["predictor"]: row for row in frame.to_dict("records")}


def planned(trained: dict[str, Measurements], tested: Measurements, **options: Any) -> ErrorStudy:
    options = {"seeds": 1, "base": "mid", **options}
    return ErrorStudy(tables={"t": tested}, train_on=trained, **options)


class TestKnownTruth:
    def test_errors_by_hand(self) -> None:
        found = rows({"m": TRAINED})
        assert found["mean-surface"]["mape"] == pytest.approx(MEAN_SURFACE)
        assert found["no-scaling"]["mape"] == pytest.approx(37.5 / 2)

    def test_kernels_of_the_same_laws_are_predicted_without_error(self) -> None:
        """Counters near 1 tell the law of each group, and factors of time do not matter."""
        tested, trained = made.measurements(2, seed=1), other_kernels(made.measurements())
        frame = study("errors", {"t": tested}, "nearest", train_on=trained, **RAW)
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
        frame = study("errors", {"t": tested}, train_on={"m": trained}, **{**RAW, "features": None})
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
        same = other_kernels(bottleneck_kernels.measurements(8, seed=2))
        other = replace(other_kernels(same), device="gtx1080ti")
        study = planned({"other": other, "same": same}, tested)
        [target] = study.targets
        assert [table.device for (table, _), _ in target.learnt] == ["gtx980", "gtx1080ti"]
        quantities = {(part.candidate.name, part.quantity) for part in study.parts}
        assert {("bottleneck", "time"), ("bottleneck", "power")} < quantities
        assert not {name for name, _ in quantities} & {"wu", "nearest", "mean-surface"}
        by_case = {(r["predictor"], r["quantity"]): r for r in study.rows(study.results())}
        row = by_case["bottleneck", "time"]
        assert row["train_on"] == ["other", "same"]
        assert row["n_training_kernels"] == 16
        assert row["mape"] < 5

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:.*has no counters:mlscale.DataWarning")
    @pytest.mark.parametrize("training", ["train_on", "unseen-gpu"])
    def test_power_of_another_gpu(self, training: str) -> None:
        """The same laws, and boards of 250 W both: what is left are the times, guessed too."""
        one = made_runs.measurements("v100", 0)
        two = other_kernels(made_runs.measurements("p100", 1))
        is_apart = training == "train_on"
        how: Any = {"train_on": {"one": one}} if is_apart else {"training": training}
        tables = {"two": two} if is_apart else {"one": one, "two": two}
        asked = {"quantity": "power", "base": "highest", "seeds": 1}
        predictors = ["runs", "engine-bound"]
        frame = study("errors", tables, predictors, **asked, **how)
        mapes = frame[frame.table == "two"].set_index("predictor").mape
        assert mapes["runs"] < 9
        assert mapes["runs"] < mapes["engine-bound"] / 2


class TestNoLeak:
    def test_applications_under_test_are_left_out_and_told(self) -> None:
        """With b in the training table nothing changes; with c in place of a it does."""
        with_tested = rows({"m": joined(TRAINED, TESTED)})["mean-surface"]
        assert with_tested["mape"] == pytest.approx(MEAN_SURFACE)
        assert with_tested["left_out_of_training"] == ["app-b"]
        assert with_tested["n_training_kernels"] == 1
        other = rows({"m": one_kernel("c", 1, 1, 1)})["mean-surface"]
        assert other["mape"] != pytest.approx(MEAN_SURFACE)
        assert other["left_out_of_training"] == []

    def test_another_kernel_of_a_tested_application_is_left_out_too(self) -> None:
        """c is of the application of b: it must not teach what b's application is like."""
        sibling = replace(one_kernel("c", 5, 5, 8), applications=TESTED.applications)
        found = rows({"m": joined(TRAINED, sibling)})
        assert found["mean-surface"]["mape"] == pytest.approx(MEAN_SURFACE)

    def test_nothing_is_learnt_from_the_tested_table(self) -> None:
        """The errors of b stand, whatever kernel is tested with it."""
        beside = joined(TESTED, one_kernel("d", 9, 1, 30))
        study = planned({"m": TRAINED}, beside, predictors=["mean-surface"])
        results = zip(study.parts, study.results(), strict=True)
        [result] = [result for part, result in results if part.candidate.name == "mean-surface"]
        np.testing.assert_allclose(result["errors"][0], [100, 68.75], rtol=1e-12)

    def test_a_tested_kernel_under_another_application_is_told(self) -> None:
        """By hand: b is left out as app-b, not as suite; the case of a name is no difference."""
        renamed = replace(one_kernel("B", 5, 5, 8), applications=("suite",))
        message = "1 kernel to train on may be under test in 't', such as 'B' of 'suite', there of"
        with pytest.warns(mlscale.DataWarning, match=f"^{message}"):
            rows({"m": renamed})

    def test_the_training_tables_enter_the_fingerprint(self) -> None:
        """So a study is not taken up with another training."""
        tables = (TRAINED, one_kernel("a", 4, 2, 1.5))
        assert len({planned({"m": table}, TESTED).fingerprint() for table in tables}) == 2


class TestPlan:
    def test_seeds_count_where_a_predictor_has_one(self) -> None:
        study = planned({"m": TRAINED}, TESTED, predictors=["extra-trees"], seeds=3)
        names = [part.candidate.name for part in study.parts]
        assert (names.count("extra-trees"), names.count("mean-surface")) == (3, 1)

    def test_power_is_left_where_the_training_has_none(self) -> None:
        tested = one_kernel("b", 5, 5, 8, power_w=100)
        study = planned({"m": TRAINED}, tested, predictors=["nearest"])
        assert {part.quantity for part in study.parts} == {"time"}

    def test_on_another_grid_those_stand_that_predict_it(self) -> None:
        study = planned({"m": OTHER_GRID}, TESTED)
        names = {part.candidate.name for part in study.parts}
        assert names == {"no-scaling", "engine-bound"}  # the other axes have one step


OTHER_GRID = replace(TRAINED, grid=ConfigGrid((4,), (600.0, 1000.0, 1800.0), (700.0,)))
OTHER_BASE = replace(TRAINED, grid=ConfigGrid((4,), (600.0, 900.0, 1800.0), (700.0,)))


@pytest.mark.parametrize(
    ("train_on", "options", "problem"),
    [
        (
            {"m": OTHER_GRID},
            {"predictors": "mean-surface"},
            "'mean-surface' predicts on its training grid only; interpolate its surfaces$",
        ),
        (
            {"m": OTHER_BASE},
            {"predictors": "mean-surface"},
            "'mean-surface' predicts on the grid and from the base .*: 'm' is at cu=4,engine=900,",
        ),
        ({"m": OTHER_BASE}, {"base": "engine=1000"}, "'m': engine_mhz 1000 is not on "),
    ],
)
def test_what_cannot_be_studied(train_on: Any, options: dict[str, Any], problem: str) -> None:
    with refused(f"^{problem}"):
        study("errors", {"t": TESTED}, train_on=train_on, **{**RAW, **options})
