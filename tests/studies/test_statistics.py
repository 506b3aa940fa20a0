"""What sums up errors, how sure it is, and who is best: by hand, by SciPy, and by properties."""

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import sem, ttest_rel

from mlscale.data.surfaces import absolute_percentage_error, without_base
from mlscale.studies.candidates import Candidate
from mlscale.studies.errors import errors_by
from mlscale.studies.statistics import (
    behind_best,
    paired_by,
    paired_difference,
    split_error,
    standard_error,
    summarise,
)

NAMES = "abcdef"


def by_application(values: list[float]) -> dict[str, list[float]]:
    """One kernel of each application."""
    return {name: [value] for name, value in zip(NAMES, values, strict=False)}


class TestErrors:
    def test_percentages_by_hand(self) -> None:
        """The sign is dropped, and the actual value divides: 50 for 100 is 50 %."""
        predicted = np.array([110.0, 90.0, 100.0, 50.0, 100.0])
        actual = np.array([100.0, 100.0, 100.0, 100.0, 50.0])
        errors = absolute_percentage_error(predicted, actual)
        np.testing.assert_allclose(errors, [10.0, 10.0, 0.0, 50.0, 100.0], atol=1e-12)

    def test_the_base_and_nothing_else_is_left_out(self) -> None:
        """2 kernels x 1 x 2 x 3, numbered 0 to 11; the base (0, 1, 0) is the fourth of six."""
        errors = np.arange(12.0).reshape(2, 1, 2, 3)
        expected = [[0, 1, 2, 4, 5], [6, 7, 8, 10, 11]]
        np.testing.assert_array_equal(without_base(errors, (0, 1, 0)), expected)

    @settings(max_examples=50)
    @given(
        arrays(np.float64, 6, elements=st.floats(0.01, 100.0)),
        st.floats(0.0, 3.0),
        st.floats(0.01, 100.0),
    )
    def test_a_prediction_that_is_out_by_a_factor_errs_by_that(
        self, actual: np.ndarray, factor: float, unit: float
    ) -> None:
        """Closed form: 100 |factor - 1|, in whatever unit both are given."""
        errors = absolute_percentage_error(actual * unit * factor, actual * unit)
        np.testing.assert_allclose(errors, 100 * abs(factor - 1), atol=1e-10)

    def test_of_an_application_are_those_of_its_kernels_and_seeds(self) -> None:
        """a has the kernels 1 (errors 1, 3) and 2 (5, 7) with seed 0, all 2 more with seed 1."""
        values = np.array([[1.0, 3.0], [10.0, 30.0], [5.0, 7.0]])
        results = [
            {"applications": ["a", "b", "a"], "errors": errors.tolist()}
            for errors in (values, values + 2)
        ]
        assert errors_by("application", results) == {"a": [2.0, 6.0, 4.0, 8.0], "b": [20.0, 22.0]}

    def test_pairs_are_of_what_is_held_out(self) -> None:
        """Six kernels of one application, 60 above the best: kernels alone tell it."""
        one = {"kernels": list(NAMES), "applications": ["a"] * 6, "errors": [[61.0], [62.0]] * 3}
        other = {**one, "errors": [[1.0], [1.5]] * 3}
        told = {
            protocol: paired_difference(
                errors_by(paired_by(protocol), [one]), errors_by(paired_by(protocol), [other])
            )[2]
            for protocol in ("random-kernels", "holdout")
        }
        assert told == {"random-kernels": True, "holdout": False}


class TestSummary:
    # Means 2.5, 25 and 6; sum 10 + 100 + 24 = 134 over 12 values.
    ERRORS = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], [5.0, 5.0, 6.0, 8.0]])

    def test_by_hand(self) -> None:
        summary = summarise(self.ERRORS, ("a", "b", "c"))
        assert summary.mape == pytest.approx(134 / 12)
        # The median of 2.5, 6, 25; the median of all values would be 5.5.
        assert summary.median_kernel == pytest.approx(6.0)
        # Sorted: 1 2 3 4 5 5 6 8 10 20 30 40; position 0.9 x 11 = 9.9 lies at 20 + 0.9 x 10.
        assert summary.p90 == pytest.approx(29.0)
        assert (summary.worst_kernel, summary.worst_kernel_mape) == ("b", pytest.approx(25.0))

    def test_several_seeds_of_a_kernel_count_as_one_kernel(self) -> None:
        """Means of a 5, b 2, c 5.5. The worst single row, c's first, has 10; its kernel 5.5."""
        errors = np.array([[2, 4], [1, 1], [20, 0], [6, 8], [3, 3], [2, 0]], dtype=float)
        summary = summarise(errors, ("a", "b", "c", "a", "b", "c"))
        assert summary.mape == pytest.approx(50 / 12)
        assert summary.median_kernel == pytest.approx(5.0)
        assert (summary.worst_kernel, summary.worst_kernel_mape) == ("c", pytest.approx(5.5))

    @settings(max_examples=50)
    @given(
        arrays(np.float64, (4, 5), elements=st.floats(0.0, 500.0)), st.permutations(list("abcd"))
    )
    def test_the_order_of_kernels_is_of_no_matter_and_the_worst_is_the_worst(
        self, errors: np.ndarray, order: list[str]
    ) -> None:
        one = summarise(errors, list("abcd"))
        other = summarise(errors[["abcd".index(name) for name in order]], order)
        assert other.mape == pytest.approx(one.mape)
        assert other.median_kernel == pytest.approx(one.median_kernel)
        assert other.worst_kernel_mape == one.worst_kernel_mape
        assert one.mape <= one.worst_kernel_mape * (1 + 1e-12)
        assert one.p90 <= errors.max()


class TestStandardError:
    def test_of_independent_values(self) -> None:
        """2, 4, 9 have the variance 13: sqrt(13 / 3)."""
        assert standard_error([2.0, 4.0, 9.0]) == pytest.approx(np.sqrt(13 / 3))

    def test_values_that_a_group_has_several_times_count_once(self) -> None:
        values, groups = [2.0, 2.0, 4.0, 4.0, 9.0, 9.0], [0, 0, 1, 1, 2, 2]
        assert standard_error(values, groups) == pytest.approx(np.sqrt(13 / 3))

    def test_of_groups_of_different_sizes(self) -> None:
        """a 0, 3 and b 6: mean 3, the groups' shares of its deviation -1 and 1: sqrt(2 (1 + 1))."""
        assert standard_error([0.0, 3.0, 6.0], ["a", "a", "b"]) == pytest.approx(2)

    def test_one_group_says_nothing(self) -> None:
        assert standard_error([1.0]) is standard_error([1.0, 2.0], ["a", "a"]) is None

    def test_covers_the_mean_of_alike_kernels(self) -> None:
        """40 applications of 3 kernels, deviation 2 between applications, 1 within: of 400 drawn
        means 68 % lie within one standard error (+- 6 %, for chance and the t distribution)."""
        random = np.random.default_rng(0)
        groups, inside = np.repeat(np.arange(40), 3), []
        for _ in range(400):
            values = random.normal(0, 2, 40)[groups] + random.normal(0, 1, 120)
            inside.append(abs(values.mean()) < (standard_error(values, groups.tolist()) or 0))
        assert np.mean(inside) == pytest.approx(0.68, abs=0.06)

    @pytest.mark.parametrize(
        ("protocol", "expected"),
        # Means of the splits are 2 and 4, of the applications 1.5 and 4.5: half of their distance.
        # The last two hold out all kernels with each seed.
        [
            ("holdout", 1),
            ("random-kernels", 1),
            ("leave-one-application-out", 1.5),
            ("k-fold", 1.5),
        ],
    )
    def test_over_splits_or_applications_as_the_protocol_is(
        self, protocol: str, expected: float
    ) -> None:
        values, applications, seeds = [1.0, 3.0, 2.0, 6.0], ["a", "b", "a", "b"], [0, 0, 1, 1]
        assert split_error(values, applications, seeds, protocol) == pytest.approx(expected)


class TestPairedDifference:
    @pytest.mark.parametrize("more", [0.0, 1.0])  # p is 0.08, and 0.01
    def test_is_scipys_paired_t_test_where_applications_have_one_kernel(self, more: float) -> None:
        one = [value + more for value in (2.0, 4.0, 6.5, 8.0, 11.0)]
        other = [1.0, 4.5, 5.0, 6.0, 7.0]
        mean, error, is_told = paired_difference(by_application(one), by_application(other))
        assert mean == pytest.approx(np.mean(one) - np.mean(other))
        assert error == pytest.approx(sem(np.subtract(one, other)))
        assert is_told == (ttest_rel(one, other).pvalue < 0.05)

    def test_applications_count_as_they_have_kernels(self) -> None:
        """a 1 and 3 against 0 and 0, b 8 against 0: the mean 4 of all three kernels; the shares of
        its deviation are 2/3 (2 - 4) and 1/3 (8 - 4), so the error is sqrt(2 (16 + 16) / 9)."""
        one, other = {"a": [1.0, 3.0], "b": [8.0]}, {"a": [0.0, 0.0], "b": [0.0]}
        mean, error, _ = paired_difference(one, other)
        assert (mean, error) == (pytest.approx(4), pytest.approx(8 / 3))

    def test_of_equals_and_of_one_application(self) -> None:
        same = by_application([1.0, 2.0])
        assert paired_difference(same, same) == (0.0, 0.0, False)
        assert paired_difference({"a": [3.0]}, {"a": [1.0]}) == (2.0, None, False)


class TestBehindBest:
    # `close` errs 1, -1, 1, -1, 1, -0.4 more than the best, `far` 4 to 6 more.
    ERRORS: ClassVar = {
        "best": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "close": [2.0, 1.0, 4.0, 3.0, 6.0, 5.6],
        "far": [5.0, 7.0, 9.0, 8.0, 10.0, 12.0],
        "wu-oracle": [0.0] * 6,
    }

    def test_what_is_within_the_error(self) -> None:
        """The oracle, which knows the truth, is not the best."""
        errors = {Candidate(name): by_application(values) for name, values in self.ERRORS.items()}
        rows: dict[str, Any] = {one.name: row for one, row in behind_best(errors).items()}
        within = {name: row["within_error_of_best"] for name, row in rows.items()}
        assert within == {"best": True, "close": True, "far": False, "wu-oracle": None}
        assert rows["wu-oracle"]["behind_best"] is None
        assert rows["best"]["behind_best"] == 0
        assert rows["close"]["behind_best"] == pytest.approx(0.1)
        differences = np.subtract(self.ERRORS["far"], self.ERRORS["best"])
        assert rows["far"]["behind_best_standard_error"] == pytest.approx(sem(differences))
