"""What is chosen on kernels held out: the blend, by hand."""

import numpy as np
import pytest

from mlscale.predictors.sampled.model import Opinions
from mlscale.predictors.sampled.training import application_groups, tree_weight


def opinions(curve: float, trees: float) -> Opinions:
    """Of three kernels at two clocks, which are off by these log errors."""
    ones = np.ones((3, 2))
    return Opinions(curve * ones, trees * ones, 0 * ones)


class TestTreeWeight:
    # The truth is 0; a blend is off by half of the sum.
    @pytest.mark.parametrize(
        ("curve", "trees", "weight"),
        [
            (0.10, 0.10, 0.5),
            (0.10, -0.10, 0.5),
            (0.10, 0.02, 1.0),  # 0.02 against 0.06
            (0.02, 0.10, 0.0),
            (0.100, 0.096, 0.5),  # 2 % better than the blend's 0.098
            (0.100, 0.090, 1.0),  # 5 % better than the blend's 0.095
        ],
    )
    def test_is_a_half_unless_one_is_clearly_better(
        self, curve: float, trees: float, weight: float
    ) -> None:
        assert tree_weight([opinions(curve, trees)], [np.zeros((3, 2))]) == weight

    def test_without_held_out_kernels_is_a_half(self) -> None:
        assert tree_weight([], []) == 0.5


class TestGroups:
    def test_keep_applications_whole_and_hold_out_all(self) -> None:
        applications = [f"app{k // 2}" for k in range(14)]
        groups = application_groups(applications)
        assert len(groups) == 5
        assert sorted(np.concatenate(groups).tolist()) == list(range(14))
        for group in groups:
            inside = {applications[k] for k in group}
            assert all(k in group for k in range(14) if applications[k] in inside)

    def test_of_two_applications_are_none(self) -> None:
        assert application_groups(["a", "a", "b"]) == []
