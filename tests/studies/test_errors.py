"""The error study: its figures by hand, and that nothing of what is held out leaks in."""

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synthetic import kernels as made
from synthetic import profiled
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig, Measurements, Predictor, create
from mlscale.studies import base, candidates, errors
from mlscale.studies.base import Part
from mlscale.studies.candidates import BASELINES, Candidate, with_baselines
from mlscale.studies.study import study as study_frame

LOAO = "leave-one-application-out"
MID = made.GRID.mid
AT_MID = made.GRID.index(MID)
FEATURES = {"nearest": "raw", "extra-trees": "raw", "wu": "raw"}


def by_hand() -> tuple[Measurements, HardwareConfig]:
    """Two kernels at engine clocks 500, 1000, 2000; base 1000.

    time_ms a: 4, 2, 1 (follows the clock); b: 5, 5, 8. power_w a: 10, 20, 20; b: 30, 30, 30.
    """
    grid = ConfigGrid((4,), (500.0, 1000.0, 2000.0), (700.0,))
    time, power = (
        np.array(values).reshape(2, *grid.shape)
        for values in ([[4.0, 2, 1], [5, 5, 8]], [[10.0, 20, 20], [30, 30, 30]])
    )
    names = {"kernels": ("a", "b"), "applications": ("A", "B")}
    data = profiled.measurements(grid, time, power, {"loads": np.array([1.0, 4.0])}, **names)
    return data, grid.mid


def errors_of(
    data: Measurements,
    base: HardwareConfig,
    predictor: str,
    quantity: str = "time",
    protocol: str = LOAO,
) -> dict[str, Any]:
    """The errors of a predictor on one table named 't', with three clusters."""
    candidate = Candidate.from_predictor(predictor, FEATURES.get(predictor))
    return errors.part_errors(Part("t", candidate, protocol, 0, base, quantity, 3), data)


def study(data: Measurements, **options: Any) -> errors.ErrorStudy:
    """A study of one table named 't', from its middle."""
    return errors.ErrorStudy(tables={"t": data}, quantity=["time"], base="mid", **options)


def row_of_no_scaling(data: Measurements) -> dict[str, Any]:
    """Its row, without seconds."""
    planned = study(data, predictors=["no-scaling"], features=["raw"], seeds=1)
    [row] = [r for r in planned.rows(planned.results()) if r["predictor"] == "no-scaling"]
    assert row.pop("train_seconds") >= 0
    assert row.pop("predict_microseconds") >= 0
    return row


class TestByHand:
    # Errors [%] of a and b at 500 and 2000 MHz, from the times above: 100 |predicted/true - 1|.
    # a scales by 2 and 1/2, b by 1 and 1.6; no-scaling says 1, 1; engine-bound says 2, 1/2;
    # mean-surface says what the other kernel does. Power of a scales by 1/2 and 1, of b not at all.
    @pytest.mark.parametrize(
        ("predictor", "quantity", "errors_a", "errors_b"),
        [
            ("no-scaling", "time", [50, 100], [0, 37.5]),
            ("engine-bound", "time", [0, 0], [100, 68.75]),
            ("core-bound", "time", [0, 0], [100, 68.75]),
            ("memory-bound", "time", [50, 100], [0, 37.5]),
            ("mean-surface", "time", [50, 220], [100, 68.75]),
            ("no-scaling", "power", [100, 0], [0, 0]),
            ("engine-bound", "power", [0, 100], [50, 100]),
        ],
    )
    def test_errors(
        self, predictor: str, quantity: str, errors_a: list[float], errors_b: list[float]
    ) -> None:
        result = errors_of(*by_hand(), predictor, quantity)
        assert (result["kernels"], result["applications"]) == (["a", "b"], ["A", "B"])
        np.testing.assert_allclose(result["errors"], [errors_a, errors_b], rtol=1e-12, atol=1e-12)

    def test_row_of_figures(self) -> None:
        row = row_of_no_scaling(by_hand()[0])
        assert {name: value for name, value in row.items() if "best" not in name} == {
            "table": "t",
            "base": {"cu_count": 4, "engine_mhz": 1000.0, "memory_mhz": 700.0},
            "predictor": "no-scaling",
            "features": None,
            "quantity": "time",
            "n_kernels": 2,
            "n_seeds": 1,
            "mape": pytest.approx((50 + 100 + 0 + 37.5) / 4),
            "standard_error": pytest.approx((75 - 18.75) / 2),  # half the distance of two
            "standard_error_over": "applications",
            "mape_by_seed": [pytest.approx((50 + 100 + 0 + 37.5) / 4)],
            "median_kernel": pytest.approx((75 + 18.75) / 2),
            # Sorted 0, 37.5, 50, 100: 90 % of the way from first to last is 0.7 beyond the third.
            "p90": pytest.approx(50 + 0.7 * 50),
            "worst_kernel": "a",
            "worst_kernel_mape": pytest.approx(75),
            "coverage": None,
            "faulty_kernels": [],
            "without_faulty": None,
        }

    @pytest.mark.parametrize(
        ("faults", "faulty", "without"), [("a elsewhere", ["a"], 18.75), ("a b", ["a", "b"], None)]
    )
    def test_without_the_kernels_named_faulty(
        self, faults: str, faulty: list[str], without: float | None
    ) -> None:
        """What is left of the first is b alone: errors 0 and 37.5 %; a is scored as ever."""
        data = replace(by_hand()[0], metadata={"faults": dict.fromkeys(faults.split(), "is odd")})
        row = row_of_no_scaling(data)
        assert row["mape"] == pytest.approx((50 + 100 + 0 + 37.5) / 4)
        assert row["faulty_kernels"] == faulty
        assert (row["without_faulty"] or {}).get("mape") == without

    @pytest.mark.parametrize(
        ("covered", "expected"), [((80.0, 90.0), 85.0), ((None, None), None), ((80.0, None), None)]
    )
    def test_seeds_are_averaged(
        self, covered: tuple[float | None, ...], expected: float | None
    ) -> None:
        """Errors of a and b: 1 and 3 with seed 0, 5 and 7 with seed 1; a has a mean of 3, b 5."""
        planned = study(by_hand()[0], predictors=["wu"], features=["raw"], seeds=2)
        planned.__dict__["parts"] = [part for part in planned.parts if part.candidate.name == "wu"]
        names = {"kernels": ["a", "b"], "applications": ["A", "B"]}
        results = [
            {**names, "errors": values, "covered": share, "train_seconds": 0, "predict_seconds": 0}
            for values, share in zip(([[1.0], [3.0]], [[5.0], [7.0]]), covered, strict=True)
        ]
        [row] = planned.rows(results)
        assert row["mape_by_seed"] == [2.0, 6.0]
        assert row["mape"] == 4.0
        assert (row["worst_kernel"], row["worst_kernel_mape"]) == ("b", 5.0)
        assert row["median_kernel"] == (3.0 + 5.0) / 2
        assert (row["n_kernels"], row["n_seeds"], row["coverage"]) == (2, 2, expected)


class TestPlan:
    def test_power_only_where_it_was_measured(self) -> None:
        tables = {"yes": made.measurements(), "no": made.measurements(power=False)}
        planned = errors.ErrorStudy(tables=tables, predictors=["no-scaling"])
        found = dict.fromkeys((part.table, part.quantity) for part in planned.parts)
        assert list(found) == [("yes", "time"), ("yes", "power"), ("no", "time")]

    @pytest.mark.parametrize(
        ("predictor", "protocol", "count"),
        [
            ("mean-surface", LOAO, 1),  # no random number enters
            ("mean-surface", "k-fold", 3),  # the folds are random
            ("wu", LOAO, 3),  # K-means and first weights are
            ("extra-trees", LOAO, 3),
            ("wu-oracle", LOAO, 3),  # K-means
        ],
    )
    def test_seeds_only_where_they_matter(self, predictor: str, protocol: str, count: int) -> None:
        asked = {"predictors": ["wu", "extra-trees"], "protocol": protocol, "seeds": 3}
        planned = study(made.measurements(), **asked)
        seeds = [part.seed for part in planned.parts if part.candidate.name == predictor]
        assert seeds == list(range(count))

    def test_baselines_and_oracle_stand_beside_wu(self) -> None:
        everyone = with_baselines([Candidate.from_predictor("wu")], made.measurements())
        assert [c.name for c in everyone] == [*BASELINES, "wu", "wu-oracle"]

    def test_wu_has_as_many_clusters_as_there_are_training_kernels(self) -> None:
        """By hand: of six kernels, each an application, five are trained on in every fold."""
        data = made.measurements().select(range(6))
        asked = {"quantity": "time", "seeds": 1, "jobs": 1}
        default, five = (
            study_frame("errors", data, "wu", **asked, **given) for given in ({}, {"clusters": 5})
        )
        for name in ("wu", "wu-oracle"):
            mapes = [frame[frame.predictor == name].mape.item() for frame in (default, five)]
            assert mapes[0] == pytest.approx(mapes[1])


def corrupted(data: Measurements, application: str, scale: float) -> Measurements:
    """The same, but an application's targets are nonsense: far too short, counters unknown."""
    time, counters = data.time_samples.copy(), data.counter_samples.copy()
    random = np.random.default_rng(0)
    for k, name in enumerate(data.applications):
        if name == application:
            base_time = time[:, k, *AT_MID].copy()
            base_counters = counters[:, k, *AT_MID].copy()
            time[:, k] *= scale * random.uniform(0.5, 2.0, data.grid.shape)
            counters[:, k] = np.nan
            time[:, k, *AT_MID], counters[:, k, *AT_MID] = base_time, base_counters
    return replace(data, time_samples=time, counter_samples=counters)


def predicted(data: Measurements, result: dict[str, Any]) -> dict[str, np.ndarray]:
    """The factors behind the errors, by kernel, of kernels whose true times are far too short.

    There predicted > true, so the error is 100 (predicted / true - 1).
    """
    truth = data.time_ms / data.time_ms[:, *AT_MID][:, None, None, None]
    targets = np.delete(truth.reshape(len(truth), -1), np.ravel_multi_index(AT_MID, (3, 4, 3)), 1)
    rows = zip(result["kernels"], np.array(result["errors"]), strict=True)
    return {k: targets[data.kernels.index(k)] * (1 + e / 100) for k, e in rows}


HELD_OUT = "two"  # the application of bandwidth1 and latency0


def four_applications() -> Measurements:
    """Two kernels of each group, all a little different, two kernels to an application."""
    data = made.measurements(per_group=2)
    noise = np.random.default_rng(5).uniform(0.9, 1.1, data.time_samples.shape)
    applications = ("one", "three", "four", "two", "two", "four", "one", "three")
    return replace(data, time_samples=data.time_samples * noise, applications=applications)


@functools.cache
def clean_errors(predictor: str) -> dict[str, Any]:
    """The study of the four applications as they are."""
    return errors_of(four_applications(), MID, predictor)


@pytest.mark.parametrize("predictor", ["mean-surface", "nearest", "extra-trees", "wu"])
class TestNoLeak:
    """What is held out cannot be seen: neither its targets, nor other kernels held out with it."""

    @pytest.fixture(autouse=True)
    def _small_forests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def small(predictor: Any, **parameters: Any) -> Predictor:
            made = create(predictor, **parameters)
            return made.set_params(trees=10) if "trees" in made.get_params() else made

        monkeypatch.setattr(candidates, "create", small)

    def test_targets_held_out_do_not_change_their_own_prediction(self, predictor: str) -> None:
        """With true times a million times too short the error tells the prediction."""
        data = four_applications()
        bad, worse = (corrupted(data, HELD_OUT, scale) for scale in (1e-6, 1e-7))
        before, after = (predicted(d, errors_of(d, MID, predictor)) for d in (bad, worse))
        clean = clean_errors(predictor)
        for kernel in ("bandwidth1", "latency0"):
            np.testing.assert_allclose(before[kernel], after[kernel], rtol=1e-9)
            # And so the errors of the study without corruption.
            at = data.kernels.index(kernel)
            truth = data.time_ms[at] / data.time_ms[at][AT_MID]
            targets = np.delete(truth.ravel(), np.ravel_multi_index(AT_MID, truth.shape))
            error = 100 * np.abs(before[kernel] / targets - 1)
            position = clean["kernels"].index(kernel)
            np.testing.assert_allclose(error, clean["errors"][position], rtol=1e-6, atol=1e-6)

    def test_they_do_change_the_others_which_learn_from_them(self, predictor: str) -> None:
        """So the test above can fail: the corrupted targets are in use."""
        clean = clean_errors(predictor)
        one = errors_of(corrupted(four_applications(), HELD_OUT, 1e-6), MID, predictor)
        others = [k for k, a in enumerate(clean["applications"]) if a != HELD_OUT]
        assert not np.allclose(np.array(one["errors"])[others], np.array(clean["errors"])[others])

    def test_kernels_held_out_together_do_not_see_each_other(self, predictor: str) -> None:
        """Odd counters of one held-out kernel: ranges are learnt on training kernels alone."""
        data = four_applications()
        odd = data.counter_samples.copy()
        odd[:, data.kernels.index("latency0")] = 1e6
        clean = clean_errors(predictor)
        one = errors_of(replace(data, counter_samples=odd), MID, predictor)
        at = clean["kernels"].index("bandwidth1")
        np.testing.assert_array_equal(np.array(one["errors"])[at], clean["errors"][at])


@pytest.mark.parametrize("predictor", ["mean-surface", "wu"])
@pytest.mark.parametrize("protocol", [LOAO, "k-fold"])
def test_every_kernel_is_predicted_once(predictor: str, protocol: str) -> None:
    data = made.measurements(per_group=2)
    result = errors_of(data, MID, predictor, protocol=protocol)
    assert sorted(result["kernels"]) == sorted(data.kernels)
    assert np.shape(result["errors"]) == (8, 35)
    assert np.isfinite(result["errors"]).all()


def test_folds_of_many_applications_are_parts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight folds in parts of three: the same rows, and folds numbered through."""
    planned = study(made.measurements(per_group=2), predictors=["nearest"], features=["raw"])
    whole, rows = planned.results(), planned.rows(planned.results())
    monkeypatch.setattr(base, "FOLDS_AT_ONCE", 3)
    del planned.__dict__["parts"]
    assert len(planned.parts) == 3 * len(whole)
    results = planned.results()
    for one, other in zip(planned.rows(results), rows, strict=True):
        assert {k: v for k, v in one.items() if "seconds" not in k} == {
            key: pytest.approx(v) for key, v in other.items() if "seconds" not in key
        }
    frame = planned.files(results)["predictions"]
    found = frame[frame.predictor == "nearest"].groupby("kernel").fold.unique()
    assert sorted(fold for [fold] in found) == list(range(8))


class TestTwoProcesses:
    def test_give_the_same_figures(self) -> None:
        planned = study(by_hand()[0], predictors=["no-scaling"], features=["raw"], seeds=1)
        alone, together = planned.results(), planned.results(jobs=2)
        assert [r["errors"] for r in alone] == [r["errors"] for r in together]

    def test_pass_an_error_on_and_say_nothing_themselves(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        planned = study(made.measurements(), predictors=["wu"], clusters=99, seeds=1)
        with refused("^99 clusters cannot be made of "):
            planned.results(jobs=2)
        assert capfd.readouterr() == ("", "")
