"""Standard errors and differences between predictors: by hand, and by SciPy."""

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel

from mlscale.studies.candidates import Candidate
from mlscale.studies.errors import application_errors
from mlscale.studies.statistics import behind_best, paired_difference, split_error, standard_error

NAMES = "abcdef"


def by_application(values: list[float]) -> dict[str, list[float]]:
    """One kernel of each application."""
    return {name: [value] for name, value in zip(NAMES, values, strict=False)}


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

    def test_over_splits_or_applications_as_the_protocol_is(self) -> None:
        values, applications, seeds = [1.0, 3.0, 2.0, 6.0], ["a", "b", "a", "b"], [0, 0, 1, 1]
        # Means of the splits 2 and 4, of the applications 1.5 and 4.5: half of their distance.
        assert split_error(values, applications, seeds, "holdout") == pytest.approx(1)
        assert split_error(values, applications, seeds, "random-kernels") == pytest.approx(1)
        # These hold out all kernels with each seed, so that splits differ by their training alone.
        for protocol in ("leave-one-application-out", "k-fold"):
            assert split_error(values, applications, seeds, protocol) == pytest.approx(1.5)


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
    BEST: ClassVar = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    ERRORS: ClassVar = {
        "best": BEST,
        "close": [2.0, 1.0, 4.0, 3.0, 6.0, 5.6],
        "far": [5.0, 7.0, 9.0, 8.0, 10.0, 12.0],
        "wu-oracle": [0.0] * 6,
    }

    def rows(self) -> dict[str, dict[str, Any]]:
        errors = {Candidate(name): by_application(values) for name, values in self.ERRORS.items()}
        return {candidate.name: row for candidate, row in behind_best(errors).items()}

    def test_what_is_within_the_error(self) -> None:
        rows = self.rows()
        within = {name: row["within_error_of_best"] for name, row in rows.items()}
        assert within == {"best": True, "close": True, "far": False, "wu-oracle": None}
        assert rows["best"]["behind_best"] == 0
        assert rows["close"]["behind_best"] == pytest.approx(0.1)
        differences = np.subtract(self.ERRORS["far"], self.BEST)
        assert rows["far"]["behind_best_standard_error"] == pytest.approx(sem(differences))

    def test_the_oracle_is_not_the_best(self) -> None:
        assert self.rows()["wu-oracle"]["behind_best"] is None


def test_errors_of_an_application_are_those_of_its_kernels_and_seeds() -> None:
    """a has the kernels 1 (errors 1, 3) and 2 (5, 7) with seed 0, all 2 more with seed 1."""
    values = np.array([[1.0, 3.0], [10.0, 30.0], [5.0, 7.0]])
    results = [
        {"applications": ["a", "b", "a"], "errors": errors.tolist()}
        for errors in (values, values + 2)
    ]
    assert application_errors(results) == {"a": [2.0, 6.0, 4.0, 8.0], "b": [20.0, 22.0]}
