"""Error metrics against arrays small enough to reckon by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mlscale.data.surfaces import absolute_percentage_error, without_base
from mlscale.studies.statistics import kernel_means, summarise

# Hand: means 2.5, 25 and 6; sum 10 + 100 + 24 = 134 over 12 values.
ERRORS = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], [5.0, 5.0, 6.0, 8.0]])
KERNELS = ("a", "b", "c")


def test_absolute_percentage_error_by_hand() -> None:
    # Hand: the sign is dropped, and the *actual* value divides: 50 for 100 is 50 %, 100 for
    # 50 is 100 %.
    predicted = np.array([110.0, 90.0, 100.0, 50.0, 100.0])
    actual = np.array([100.0, 100.0, 100.0, 100.0, 50.0])
    errors = absolute_percentage_error(predicted, actual)
    np.testing.assert_allclose(errors, [10.0, 10.0, 0.0, 50.0, 100.0], atol=1e-12)


def test_the_base_and_nothing_else_is_left_out() -> None:
    # Hand: 2 kernels x 1 x 2 x 3, numbered 0 to 11; base (0, 1, 0) is the fourth of six.
    errors = np.arange(12.0).reshape(2, 1, 2, 3)
    expected = [[0, 1, 2, 4, 5], [6, 7, 8, 10, 11]]
    np.testing.assert_array_equal(without_base(errors, (0, 1, 0)), expected)


class TestSummary:
    def test_by_hand(self) -> None:
        summary = summarise(ERRORS, KERNELS)
        assert summary.mape == pytest.approx(134 / 12)
        # The median of 2.5, 6, 25; the median of all values would be 5.5.
        assert summary.median_kernel == pytest.approx(6.0)
        # Sorted: 1 2 3 4 5 5 6 8 10 20 30 40; position 0.9 x 11 = 9.9 lies at 20 + 0.9 x 10.
        assert summary.p90 == pytest.approx(29.0)
        assert summary.worst_kernel == "b"
        assert summary.worst_kernel_mape == pytest.approx(25.0)

    def test_kernel_means_by_hand(self) -> None:
        assert kernel_means(ERRORS, KERNELS) == pytest.approx({"a": 2.5, "b": 25.0, "c": 6.0})

    def test_several_seeds_of_a_kernel_count_as_one_kernel(self) -> None:
        # Hand: seeds of a 2, 4 and 6, 8 (mean 5), of b 1, 1 and 3, 3 (mean 2), of c 20, 0 and
        # 2, 0 (mean 5.5). The worst single row, c's first, has mean 10; its kernel has 5.5.
        errors = np.array([[2, 4], [1, 1], [20, 0], [6, 8], [3, 3], [2, 0]], dtype=float)
        kernels = ("a", "b", "c", "a", "b", "c")
        assert kernel_means(errors, kernels) == pytest.approx({"a": 5.0, "b": 2.0, "c": 5.5})
        summary = summarise(errors, kernels)
        assert summary.mape == pytest.approx(50 / 12)
        assert summary.median_kernel == pytest.approx(5.0)
        assert (summary.worst_kernel, summary.worst_kernel_mape) == ("c", pytest.approx(5.5))

    def test_of_one_kernel_at_one_target(self) -> None:
        summary = summarise(np.array([[7.5]]), ("only",))
        assert (summary.mape, summary.median_kernel, summary.p90) == (7.5, 7.5, 7.5)
        assert (summary.worst_kernel, summary.worst_kernel_mape) == ("only", 7.5)

    def test_median_of_an_even_number_of_kernels(self) -> None:
        # Hand: means 2.5 and 25.
        assert summarise(ERRORS[:2], KERNELS[:2]).median_kernel == pytest.approx(13.75)


errors_of_four = arrays(np.float64, (4, 5), elements=st.floats(0.0, 500.0))


class TestProperties:
    @settings(max_examples=50)
    @given(errors_of_four, st.permutations(range(4)))
    def test_the_order_of_kernels_is_of_no_matter(
        self, errors: np.ndarray, order: list[int]
    ) -> None:
        names = np.array(["a", "b", "c", "d"])
        one, other = summarise(errors, list(names)), summarise(errors[order], list(names[order]))
        assert other.mape == pytest.approx(one.mape)
        assert other.median_kernel == pytest.approx(one.median_kernel)
        assert other.p90 == pytest.approx(one.p90)
        assert other.worst_kernel_mape == one.worst_kernel_mape

    @settings(max_examples=50)
    @given(errors_of_four)
    def test_the_worst_kernel_is_not_better_than_the_others(self, errors: np.ndarray) -> None:
        summary = summarise(errors, ("a", "b", "c", "d"))
        means = kernel_means(errors, ("a", "b", "c", "d"))
        assert summary.worst_kernel_mape == means[summary.worst_kernel]
        assert all(mean <= summary.worst_kernel_mape for mean in means.values())
        assert summary.mape <= summary.worst_kernel_mape * (1 + 1e-12)
        assert summary.median_kernel <= summary.worst_kernel_mape
        assert summary.p90 <= errors.max()

    @settings(max_examples=50)
    @given(
        arrays(np.float64, (2, 2, 2, 2), elements=st.floats(0.1, 10.0)),
        st.tuples(*[st.integers(0, 1)] * 3),
        st.floats(0.0, 1e9),
    )
    def test_the_error_at_the_base_does_not_count(
        self, errors: np.ndarray, base: tuple[int, int, int], at_base: float
    ) -> None:
        changed = errors.copy()
        changed[:, *base] = at_base
        one = summarise(without_base(errors, base), ("a", "b"))
        assert summarise(without_base(changed, base), ("a", "b")) == one

    @settings(max_examples=50)
    @given(
        arrays(np.float64, 6, elements=st.floats(0.01, 100.0)),
        st.floats(0.0, 3.0),
        st.floats(0.01, 100.0),
    )
    def test_a_prediction_that_is_out_by_a_factor_errs_by_that_everywhere(
        self, actual: np.ndarray, factor: float, unit: float
    ) -> None:
        # Closed form: 100 |factor - 1|, in whatever unit both are given.
        errors = absolute_percentage_error(actual * unit * factor, actual * unit)
        np.testing.assert_allclose(errors, 100 * abs(factor - 1), atol=1e-10)
