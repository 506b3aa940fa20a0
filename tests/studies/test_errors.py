"""The error study: its figures by hand, and that nothing of what is held out leaks in."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synthetic import kernels as made
from synthetic import profiled
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig, Measurements, Predictor, create
from mlscale.studies import candidates as candidates_module
from mlscale.studies import errors
from mlscale.studies.candidates import BASELINES, Candidate, candidates
from mlscale.studies.crossval import Part

LOAO = "leave-one-application-out"
MID = made.GRID.mid
AT_MID = made.GRID.index(MID)
LEARNT = ["mean-surface", "nearest", "extra-trees", "wu"]
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


def study(
    data: Measurements,
    base: HardwareConfig,
    predictors: Sequence[str],
    quantities: Sequence[str] = ("time",),
    protocol: str = LOAO,
) -> list[dict[str, Any]]:
    """The errors of one table named 't' with three clusters, for each predictor and quantity."""
    parts = [
        Part("t", Candidate.of(name, FEATURES.get(name)), protocol, 0, base, quantity, 3)
        for quantity in quantities
        for name in predictors
    ]
    return [errors.part_errors(part, data) for part in parts]


def study_of(data: Measurements, **options: Any) -> errors.ErrorStudy:
    """A study of one table named 't'."""
    return errors.ErrorStudy(tables={"t": data}, **options)


def rows_of(data: Measurements, predictor: str) -> list[dict[str, Any]]:
    """The rows of one predictor, without seconds."""
    planned = study_of(data, predictors=[predictor], features=["raw"], quantity="time", seeds=1)
    rows = [row for row in planned.rows(planned.results()) if row["predictor"] == predictor]
    for row in rows:
        assert row.pop("train_seconds") >= 0
        assert row.pop("predict_microseconds") >= 0
    return rows


class TestByHand:
    # Errors [%] of a and b at 500 and 2000 MHz, from the times above: 100 |predicted/true - 1|.
    # a scales by 2 and 1/2, b by 1 and 1.6; no-scaling says 1, 1; engine-bound says 2, 1/2;
    # mean-surface says what the other kernel does.
    @pytest.mark.parametrize(
        ("predictor", "of_a", "of_b"),
        [
            ("no-scaling", [50, 100], [0, 37.5]),
            ("engine-bound", [0, 0], [100, 68.75]),
            ("core-bound", [0, 0], [100, 68.75]),
            ("memory-bound", [50, 100], [0, 37.5]),
            ("mean-surface", [50, 220], [100, 68.75]),
        ],
    )
    def test_errors_of_time(self, predictor: str, of_a: list[float], of_b: list[float]) -> None:
        [result] = study(*by_hand(), [predictor])
        assert (result["kernels"], result["applications"]) == (["a", "b"], ["A", "B"])
        np.testing.assert_allclose(result["errors"], [of_a, of_b], rtol=1e-12, atol=1e-12)

    # Power of a scales by 1/2 and 1, of b not at all; engine-bound says 1/2, 2.
    @pytest.mark.parametrize(
        ("predictor", "of_a", "of_b"),
        [("no-scaling", [100, 0], [0, 0]), ("engine-bound", [0, 100], [50, 100])],
    )
    def test_errors_of_power(self, predictor: str, of_a: list[float], of_b: list[float]) -> None:
        [result] = study(*by_hand(), [predictor], ["power"])
        np.testing.assert_allclose(result["errors"], [of_a, of_b], rtol=1e-12, atol=1e-12)

    def test_row_of_figures(self) -> None:
        data, _ = by_hand()
        [row] = rows_of(data, "no-scaling")
        for of_best in ("behind_best", "behind_best_standard_error", "within_error_of_best"):
            del row[of_best]
        assert row == {
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
        ("covered", "expected"), [((80.0, 90.0), 85.0), ((None, None), None), ((80.0, None), None)]
    )
    def test_coverage_is_of_all_seeds(
        self, covered: tuple[float | None, ...], expected: float | None
    ) -> None:
        [row] = two_seeds([{**result, "covered": share} for result, share in
                           zip(RESULTS, covered, strict=True)])  # fmt: skip
        assert row["coverage"] == expected

    def test_without_the_kernels_named_faulty(self) -> None:
        """What is left is b alone: errors 0 and 37.5 %; a is scored beside it as ever."""
        data, _ = by_hand()
        data = replace(data, metadata={"faults": {"a": "is odd", "elsewhere": "is not here"}})
        [row] = rows_of(data, "no-scaling")
        assert row["mape"] == pytest.approx((50 + 100 + 0 + 37.5) / 4)
        assert row["faulty_kernels"] == ["a"]
        assert row["without_faulty"] == {
            "mape": pytest.approx(18.75),
            "median_kernel": pytest.approx(18.75),
            "p90": pytest.approx(0.9 * 37.5),
            "worst_kernel": "b",
            "worst_kernel_mape": pytest.approx(18.75),
        }

    def test_without_faulty_is_nothing_where_all_are(self) -> None:
        data, _ = by_hand()
        data = replace(data, metadata={"faults": {"a": "is odd", "b": "too"}})
        [row] = rows_of(data, "no-scaling")
        assert (row["faulty_kernels"], row["without_faulty"]) == (["a", "b"], None)

    def test_seeds_are_averaged(self) -> None:
        """By hand: seed 0 has a mean of 2, seed 1 of 6; a has 1 and 5, b 3 and 7."""
        [row] = two_seeds(RESULTS)
        assert row["mape_by_seed"] == [2.0, 6.0]
        assert row["mape"] == 4.0
        assert (row["worst_kernel"], row["worst_kernel_mape"]) == ("b", 5.0)
        assert row["median_kernel"] == (3.0 + 5.0) / 2
        assert (row["n_kernels"], row["n_seeds"]) == (2, 2)


def result(values: list[list[float]]) -> dict[str, Any]:
    """What the part of a seed gives, with errors of a and b."""
    names = {"kernels": ["a", "b"], "applications": ["A", "B"]}
    return {**names, "errors": values, "covered": None, "train_seconds": 0, "predict_seconds": 0}


# Errors of a and b: 1 and 3 with seed 0, 5 and 7 with seed 1.
RESULTS = [result([[1.0, 1.0], [3.0, 3.0]]), result([[5.0, 5.0], [7.0, 7.0]])]


def two_seeds(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row that two seeds of one predictor give."""
    planned = study_of(by_hand()[0], predictors=["wu"], features=["raw"], quantity="time", seeds=2)
    parts = [part for part in planned.parts if part.candidate.name == "wu"]
    planned.__dict__["parts"] = parts
    return planned.rows(results)


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
        planned = study_of(
            made.measurements(),
            predictors=["wu", "extra-trees"],
            quantity="time",
            split=protocol,
            seeds=3,
        )
        seeds = [part.seed for part in planned.parts if part.candidate.name == predictor]
        assert seeds == list(range(count))

    def test_baselines_and_oracle_stand_beside_wu(self) -> None:
        everyone = candidates(["wu"], [], made.measurements(), "mid")
        assert [c.name for c in everyone] == [*BASELINES, "wu", "wu-oracle"]
        assert set(BASELINES) == {
            *("no-scaling", "engine-bound", "core-bound"),
            *("memory-bound", "mean-surface", "nearest"),
        }


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
    [result] = study(four_applications(), MID, [predictor])
    return result


@pytest.mark.parametrize("predictor", LEARNT)
class TestNoLeak:
    """What is held out cannot be seen: neither its targets, nor other kernels held out with it."""

    @pytest.fixture(autouse=True)
    def _small_forests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def small(predictor: Any, **parameters: Any) -> Predictor:
            made = create(predictor, **parameters)
            return made.set_params(trees=10) if "trees" in made.get_params() else made

        monkeypatch.setattr(candidates_module, "create", small)

    def test_targets_held_out_do_not_change_their_own_prediction(self, predictor: str) -> None:
        """With true times a million times too short the error tells the prediction."""
        data = four_applications()
        bad, worse = (corrupted(data, HELD_OUT, scale) for scale in (1e-6, 1e-7))
        [one], [other] = (study(d, MID, [predictor]) for d in (bad, worse))
        clean = clean_errors(predictor)
        before, after = predicted(bad, one), predicted(worse, other)
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
        data = four_applications()
        clean = clean_errors(predictor)
        [one] = study(corrupted(data, HELD_OUT, 1e-6), MID, [predictor])
        others = [k for k, a in enumerate(clean["applications"]) if a != HELD_OUT]
        assert not np.allclose(np.array(one["errors"])[others], np.array(clean["errors"])[others])

    def test_kernels_held_out_together_do_not_see_each_other(self, predictor: str) -> None:
        """Odd counters of one held-out kernel: ranges are learnt on training kernels alone."""
        data = four_applications()
        odd = data.counter_samples.copy()
        odd[:, data.kernels.index("latency0")] = 1e6
        clean = clean_errors(predictor)
        [one] = study(replace(data, counter_samples=odd), MID, [predictor])
        at = clean["kernels"].index("bandwidth1")
        np.testing.assert_array_equal(np.array(one["errors"])[at], clean["errors"][at])


@pytest.mark.parametrize("predictor", ["mean-surface", "wu"])
@pytest.mark.parametrize("protocol", [LOAO, "k-fold"])
def test_every_kernel_is_predicted_once(predictor: str, protocol: str) -> None:
    data = made.measurements(per_group=2)
    [result] = study(data, MID, [predictor], protocol=protocol)
    assert sorted(result["kernels"]) == sorted(data.kernels)
    assert np.shape(result["errors"]) == (8, 35)
    assert np.isfinite(result["errors"]).all()


class TestTwoProcesses:
    def test_give_the_same_figures(self) -> None:
        planned = study_of(by_hand()[0], predictors=["no-scaling"], features=["raw"], seeds=1)
        alone, together = planned.results(), planned.results(jobs=2)
        assert [r["errors"] for r in alone] == [r["errors"] for r in together]

    def test_pass_an_error_on_and_say_nothing_themselves(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        data, _ = by_hand()
        planned = study_of(data, predictors=["nearest"], features=["table2"], seeds=1)
        with refused("^the counters give no 'table2' features; there are loads$"):
            planned.results(jobs=2)
        assert capfd.readouterr() == ("", "")
