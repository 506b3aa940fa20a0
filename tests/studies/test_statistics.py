"""What sums up errors, how sure it is, and who is best: by hand, by SciPy, and by properties."""

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel

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


class TestStandardError:
    def test_of_independent_values(self) -> None:
        """2, 4, 9 have the variance 13: sqrt(13 / 3)."""
        assert standard_error([2.0, 4.0, 9.0]) == pytest.approx(np.sqrt(13 / 3))

    def test_of_groups_of_different_sizes(self) -> None:
        """a 0, 3 and b 6: mean 3, the groups' shares of its deviation -1 and 1: sqrt(2 (1 + 1))."""
        assert standard_error([0.0, 3.0, 6.0], ["a", "a", "b"]) == pytest.approx(2)

    def test_one_group_says_nothing(self) -> None:
        assert standard_error([1.0]) is standard_error([1.0, 2.0], ["a", "a"]) is None

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
