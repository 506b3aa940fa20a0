"""Protocols: who is held out, every kernel is predicted, seeds where they belong.

Properties of the definitions in the architecture page; no number here comes from a run.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic.tidy import refused

from mlscale.studies.crossval import SPLITS, folds, is_random

LOAO, K_FOLD, HOLDOUT = "leave-one-application-out", "k-fold", "holdout"
KERNELS = "random-kernels"

names = st.sampled_from([f"app{a}" for a in range(9)])
labels = st.lists(names, min_size=2, max_size=40).filter(lambda given: len(set(given)) >= 2)
enough = st.lists(names, min_size=5, max_size=40).filter(lambda given: len(set(given)) >= 5)
seeds = st.integers(0, 50)


def split(
    protocol: str, applications: list[str], seed: int = 0
) -> list[tuple[list[int], list[int]]]:
    found = folds(protocol, tuple(applications), seed)
    return [(train.tolist(), test.tolist()) for train, test in found]


def check(applications: list[str], parts: list[tuple[list[int], list[int]]]) -> None:
    """Every fold parts all kernels in two, and no application is on both sides."""
    everyone = list(range(len(applications)))
    for train, test in parts:
        assert train
        assert test
        assert sorted([*train, *test]) == everyone
        assert not {applications[k] for k in train} & {applications[k] for k in test}


def test_the_protocols_of_the_architecture_page() -> None:
    assert set(SPLITS) == {LOAO, K_FOLD, HOLDOUT, KERNELS}


class TestLeaveOneApplicationOut:
    @settings(max_examples=60)
    @given(labels)
    def test_each_application_is_held_out_once_and_alone(self, applications: list[str]) -> None:
        parts = split(LOAO, applications)
        check(applications, parts)
        held_out = [{applications[k] for k in test} for _, test in parts]
        assert all(len(together) == 1 for together in held_out)
        assert sorted(a for together in held_out for a in together) == sorted(set(applications))
        assert sorted(k for _, test in parts for k in test) == list(range(len(applications)))

    def test_by_hand(self) -> None:
        assert split(LOAO, ["b", "a", "b"]) == [([0, 2], [1]), ([1], [0, 2])]

    @settings(max_examples=20)
    @given(labels, seeds)
    def test_knows_no_seed(self, applications: list[str], seed: int) -> None:
        assert split(LOAO, applications, seed) == split(LOAO, applications)


class TestKFold:
    @settings(max_examples=60)
    @given(enough, seeds)
    def test_every_kernel_is_held_out_once(self, applications: list[str], seed: int) -> None:
        parts = split(K_FOLD, applications, seed)
        check(applications, parts)
        assert len(parts) == 5
        assert sorted(k for _, test in parts for k in test) == list(range(len(applications)))


class TestHoldout:
    @settings(max_examples=60)
    @given(labels, seeds)
    def test_one_split(self, applications: list[str], seed: int) -> None:
        parts = split(HOLDOUT, applications, seed)
        check(applications, parts)
        assert len(parts) == 1

    @pytest.mark.parametrize(("count", "held_out"), [(10, 2), (50, 10), (2, 1)])
    def test_holds_out_a_fifth(self, count: int, held_out: int) -> None:
        """20 % as in the paper (section V), here of the applications; at least one."""
        [(_, test)] = split(HOLDOUT, [f"app{a}" for a in range(count)])
        assert len(test) == held_out


class TestRandomKernels:
    def test_holds_out_a_fifth_of_the_kernels_whatever_their_application(self) -> None:
        """Of two applications of ten kernels neither can be whole among four."""
        applications = ["a"] * 10 + ["b"] * 10
        [(train, test)] = split(KERNELS, applications)
        assert sorted([*train, *test]) == list(range(20))
        assert len(test) == 4
        assert {applications[k] for k in train} == {"a", "b"}

    def test_kernels_are_counted_not_applications(self) -> None:
        assert len(split(KERNELS, ["a", "a", "a"])) == 1
        with refused("the protocol 'random-kernels' needs 2 kernels, not 1"):
            folds(KERNELS, ("a",), 0)


@pytest.mark.parametrize("protocol", [K_FOLD, HOLDOUT, KERNELS])
class TestSeeds:
    applications = [f"app{k // 2}" for k in range(40)]  # noqa: RUF012

    def test_the_same_gives_the_same(self, protocol: str) -> None:
        assert split(protocol, self.applications, 7) == split(protocol, self.applications, 7)

    def test_others_give_others(self, protocol: str) -> None:
        first = {tuple(sorted(split(protocol, self.applications, seed)[0][1])) for seed in range(5)}
        assert len(first) == 5

    def test_numpys_global_seed_does_not_matter(self, protocol: str) -> None:
        np.random.seed(1)  # noqa: NPY002
        one = split(protocol, self.applications)
        np.random.seed(2)  # noqa: NPY002
        assert split(protocol, self.applications) == one


def test_which_are_random() -> None:
    assert [protocol for protocol in SPLITS if is_random(protocol)] == [K_FOLD, HOLDOUT, KERNELS]


class TestRefusals:
    @pytest.mark.parametrize(
        ("protocol", "count", "needed"), [(LOAO, 1, 2), (HOLDOUT, 1, 2), (K_FOLD, 4, 5)]
    )
    def test_too_few_applications(self, protocol: str, count: int, needed: int) -> None:
        """Many kernels do not help: it is applications that are held out."""
        with refused(f"the protocol '{protocol}' needs {needed} applications, not {count}"):
            folds(protocol, tuple(f"app{k % count}" for k in range(20)), 0)

    def test_unknown_protocol(self) -> None:
        with refused("there is no protocol 'jackknife'; one of leave-one-application-out, k-fold"):
            folds("jackknife", ("a", "b"), 0)
