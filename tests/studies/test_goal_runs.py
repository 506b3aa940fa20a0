"""Random runs, and the one configuration that serves several kernels best."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlscale import ConfigGrid, Measurements
from mlscale.advice.objectives import Limits
from mlscale.studies.regret import Goal, random_runs

MANY = [f"app{n}" for n in range(27)]


class TestRandomRuns:
    @given(st.lists(st.sampled_from("abcdefghijkl"), min_size=2).filter(lambda x: len(set(x)) > 1))
    def test_whole_applications_and_one_left_out(self, applications: list[str]) -> None:
        # What is promised: all kernels of 1 to 8 applications, never of all of them.
        for run in random_runs(applications, 20):
            chosen = {applications[k] for k in run.kernels}
            assert 1 <= len(chosen) <= min(8, len(set(applications)) - 1)
            of_chosen = [k for k, name in enumerate(applications) if name in chosen]
            assert list(run.kernels) == of_chosen
            assert len(run.launches) == len(run.kernels)
            assert all(launches > 0 for launches in run.launches)

    def test_the_first_of_many_are_those_of_few(self) -> None:
        runs = random_runs(MANY, 30)
        assert random_runs(MANY, 7) == runs[:7]
        assert [run.number for run in runs] == list(range(1, 31))
        assert len(set(runs)) == 30

    def test_every_number_of_applications_is_as_likely(self) -> None:
        # 4000 / 8 = 500 of each number; the standard deviation of a count is 21.
        sizes = Counter(len(run.kernels) for run in random_runs(MANY, 4000))
        assert sorted(sizes) == list(range(1, 9))
        assert all(abs(count - 500) < 100 for count in sizes.values())

    def test_launches_are_log_normal(self) -> None:
        # Logarithms of mean 0 and standard deviation 2, of which 90 % lie within 3.29 of 0.
        logs = np.log([n for run in random_runs(MANY, 4000) for n in run.launches])
        assert abs(logs.mean()) < 0.05
        assert abs(logs.std() - 2) < 0.05
        assert abs((np.abs(logs) < 3.29).mean() - 0.9) < 0.01


def test_the_best_fixed_one_breaks_the_fewest_limits() -> None:
    """By hand: at half the clock the first takes twice as long, more than allowed, the second not.

    There both need a half and a fourth of the energy, so that without the first it is the best.
    """
    grid = ConfigGrid((4,), (500.0, 1000.0), (700.0,))
    times_ms = np.array([[2.0, 1.0], [1.0, 1.0]]).reshape(1, 2, 1, 2, 1)
    powers_w = np.array([[10.0, 40.0], [10.0, 40.0]]).reshape(1, 2, 1, 2, 1)
    nothing = np.empty((1, 2, 1, 2, 1, 0))
    data = Measurements("gpu", grid, ("a", "b"), ("a", "b"), times_ms, powers_w, (), nothing)
    goal = Goal(grid.highest, ("energy",), Limits(max_slowdown_percent=10))
    assert goal.best_fixed("energy", data, [[0, 1], [1]]) == [(0, 1, 0), (0, 0, 0)]
