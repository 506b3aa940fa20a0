"""Folds and trainings: who is held out, what is learnt from instead, and that nothing leaks.

Folds are tested by properties of their definitions in docs/howto/errors.md. Kernels of trainings
are made ones of the bottleneck curve; a copy of the table plays another GPU.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import bottleneck_kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, Measurements, Profiles
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.studies.crossval import (
    HOLDOUT,
    K_FOLD,
    LEAVE_ONE_OUT,
    RANDOM_KERNELS,
    Training,
    folds,
    pooled,
    same_table,
    unseen_gpu,
)
from mlscale.studies.errors import ErrorStudy

names = st.sampled_from([f"app{a}" for a in range(9)])
enough = st.lists(names, min_size=5, max_size=40).filter(lambda given: len(set(given)) >= 5)
seeds = st.integers(0, 50)


def split(protocol: str, applications: list[str], seed: int = 0) -> list[tuple[list[int], ...]]:
    return [
        (train.tolist(), test.tolist()) for train, test in folds(protocol, (*applications,), seed)
    ]


class TestFolds:
    @settings(max_examples=60)
    @given(enough, seeds, st.sampled_from([(LEAVE_ONE_OUT, None), (K_FOLD, 5), (HOLDOUT, 1)]))
    def test_no_application_is_on_both_sides(
        self, applications: list[str], seed: int, protocol: tuple[str, int | None]
    ) -> None:
        """All kernels are held out once, but by holdout, which holds out some of them."""
        name, count = protocol
        parts = split(name, applications, seed)
        assert len(parts) == (count or len(set(applications)))
        for train, test in parts:
            assert train
            assert test
            assert sorted([*train, *test]) == list(range(len(applications)))
            assert not {applications[k] for k in train} & {applications[k] for k in test}
        if name != HOLDOUT:
            assert sorted(k for _, test in parts for k in test) == list(range(len(applications)))

    def test_leave_one_application_out_by_hand(self) -> None:
        expected = [([0, 2], [1]), ([1], [0, 2])]
        assert split(LEAVE_ONE_OUT, ["b", "a", "b"], 0) == expected
        assert split(LEAVE_ONE_OUT, ["b", "a", "b"], 1) == expected

    @pytest.mark.parametrize(("count", "held_out"), [(10, 2), (50, 10), (2, 1)])
    def test_holdout_is_of_a_fifth_of_the_applications(self, count: int, held_out: int) -> None:
        """20 % as in Wu et al. (section V), here of the applications; at least one."""
        [(_, test)] = split(HOLDOUT, [f"app{a}" for a in range(count)])
        assert len(test) == held_out

    def test_k_fold_has_as_many_folds_as_asked(self) -> None:
        applications = tuple(f"app{k // 2}" for k in range(40))
        tests = [test for _, test in folds(K_FOLD, applications, 0, 10)]
        assert [len({applications[k] for k in test}) for test in tests] == [2] * 10
        assert sorted(k for test in tests for k in test) == list(range(40))

    def test_random_kernels_are_a_fifth_whatever_their_application(self) -> None:
        """Of two applications of ten kernels neither can be whole among four."""
        applications = ["a"] * 10 + ["b"] * 10
        [(train, test)] = split(RANDOM_KERNELS, applications)
        assert sorted([*train, *test]) == list(range(20))
        assert len(test) == 4
        assert {applications[k] for k in train} == {"a", "b"}

    @pytest.mark.parametrize("protocol", [K_FOLD, HOLDOUT, RANDOM_KERNELS])
    def test_seeds_decide_and_nothing_else(self, protocol: str) -> None:
        applications = [f"app{k // 2}" for k in range(40)]
        np.random.seed(1)  # noqa: NPY002
        first = [split(protocol, applications, seed) for seed in range(5)]
        np.random.seed(2)  # noqa: NPY002
        assert [split(protocol, applications, seed) for seed in range(5)] == first
        assert len({tuple(sorted(parts[0][1])) for parts in first}) == 5

    @pytest.mark.parametrize(
        ("protocol", "count", "problem"),
        [
            (LEAVE_ONE_OUT, 1, f"the protocol '{LEAVE_ONE_OUT}' needs 2 applications, not 1"),
            (HOLDOUT, 1, "needs 2 applications, not 1"),
            (K_FOLD, 4, "needs 5 applications, not 4"),
            ("jackknife", 9, "there is no protocol 'jackknife'; one of leave-one-application-out"),
        ],
    )
    def test_refused(self, protocol: str, count: int, problem: str) -> None:
        """Many kernels do not help: it is applications that are held out."""
        with refused(problem):
            folds(protocol, tuple(f"app{k % count}" for k in range(20)), 0)


MID = made.CLOCKS.mid
TARGET = made.measurements(6)
OTHER = replace(made.measurements(6, seed=1), device="gtx1080ti")
TABLES = {"target": TARGET, "sibling": made.measurements(6, seed=2), "other": OTHER}
BASED = [(table, MID) for table in TABLES.values()]


def study(
    tables: dict[str, Measurements], training: str, predictor: str = "bottleneck"
) -> dict[str, Any]:
    """The errors of the target's time."""
    planned = ErrorStudy(
        tables=tables, predictors=[predictor], quantity=["time"], seeds=1, training=training
    )
    work, calls = planned.calls()
    assert calls[0][0].table == "target"
    result: dict[str, Any] = work(*calls[0])
    return {**result, "errors": np.array(result["errors"])}


@cache
def unchanged(training: str) -> dict[str, Any]:
    """The errors with all tables as they are."""
    return study(TABLES, training)


def slower(table: Measurements, kernels: list[int]) -> Measurements:
    """The table with times of some kernels that grow with the memory clock, for the worse."""
    time = table.time_samples.copy()
    time[:, kernels] *= 2.0 ** np.arange(4.0)
    return replace(table, time_samples=time)


class TestTrainings:
    def test_own_table_all_or_other_devices(self) -> None:
        """'sibling' is of the target's device, so it is left out of what has never seen it."""

        def tables(training: Training, target: Any) -> list[Any]:
            fold = (np.arange(6), np.arange(0))
            return [table for table, _ in training(target, fold, BASED)]

        target, sibling, other = BASED
        assert tables(same_table, target) == [target]
        assert tables(pooled, sibling) == [sibling, target, other]  # the target comes first
        assert tables(unseen_gpu, target) == [other]

    def test_applications_are_left_out_of_every_table(self) -> None:
        """The last table has the kernel 3 alone, and nothing of it is left."""
        one, fold = (TARGET.select([3]), MID), (np.array([0, 1, 2, 4]), np.array([3, 5]))
        learnt = pooled(BASED[0], fold, [*BASED, one])
        assert [kernels.tolist() for _, kernels in learnt] == [[0, 1, 2, 4]] * 3

    @pytest.mark.slow
    def test_pooled_recovers_the_curve(self) -> None:
        """Made kernels of one law on each table: little is left (4.9 % when written)."""
        result = unchanged("pooled")
        assert result["kernels"] == list(TARGET.kernels)
        assert result["errors"].shape == (6, 15)
        assert result["errors"].mean() < 5.5
        assert result["covered"] is not None
        assert 80 < result["covered"] <= 100

    @pytest.mark.parametrize("training", ["pooled", "unseen-gpu"])
    def test_a_held_out_application_is_held_out_of_every_gpu(self, training: str) -> None:
        """Ruining k2 on the other GPU cannot change the prediction of k2; it does of others."""
        before = unchanged(training)["errors"]
        after = study({**TABLES, "other": slower(OTHER, [2])}, training)["errors"]
        np.testing.assert_array_equal(after[2], before[2])
        assert not np.allclose(after[[0, 1, 3, 4, 5]], before[[0, 1, 3, 4, 5]])

    def test_no_surface_of_an_unseen_gpu_enters(self) -> None:
        """Ruining all times of its second table but the base's changes nothing at all."""
        ruined = {**TABLES, "sibling": slower(TABLES["sibling"], list(range(6)))}
        np.testing.assert_array_equal(
            study(ruined, "unseen-gpu")["errors"], unchanged("unseen-gpu")["errors"]
        )

    def test_peaks_come_from_the_other_kernels_profiles(self) -> None:
        """More traffic of k2 at the base changes what is said of the others, whose peak it sets."""
        counters = TARGET.counter_samples.copy()
        counters[:, 2] *= 10
        busier = {**TABLES, "target": replace(TARGET, counter_samples=counters)}
        before, others = unchanged("unseen-gpu")["errors"], [0, 1, 3, 4, 5]
        assert not np.allclose(study(busier, "unseen-gpu")["errors"][others], before[others])

    def test_peaks_are_never_of_the_kernel_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each of the six is an application of its own, and is held out once."""
        shown: list[tuple[str, ...]] = []
        usual = Bottleneck.learn_peaks

        def learn_peaks(self: Bottleneck, profiles: Profiles, grid: ConfigGrid) -> Bottleneck:
            shown.append(profiles.kernels)
            return usual(self, profiles, grid)

        monkeypatch.setattr(Bottleneck, "learn_peaks", learn_peaks)
        study(TABLES, "unseen-gpu")
        names = TARGET.kernels
        assert sorted(shown) == sorted(tuple(n for n in names if n != name) for name in names)
