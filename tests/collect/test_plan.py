"""The plan: counts that are granted, the order, the duration, and what changes its fingerprint."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replayed import DEVICE

from mlscale.collect.clocks import Clocks, nearest
from mlscale.collect.counters import metrics
from mlscale.collect.plan import Plan, granted_counts
from mlscale.collect.suite import SUITE, select
from mlscale.errors import InputError

PLAN = Plan(select(["few_threads"]), {4: 4, 8: 8, 12: 12}, (Clocks(),), 2, 2.0, counters=True)
OFFERED_H100 = (*range(8, 129, 8), 132)


class TestCounts:
    def test_the_nearest_is_taken_and_the_one_asked_for_kept(self) -> None:
        assert granted_counts([10, 1, 131, 500], OFFERED_H100) == {8: 10, 132: 131}
        assert granted_counts([20], OFFERED_H100) == {16: 20}  # of two, the lower

    def test_auto_takes_eight_from_the_least_to_all(self) -> None:
        """17 are offered: places 0, 16/7, ... of them, rounded: 0 2 5 7 9 11 14 16."""
        found = list(granted_counts(None, OFFERED_H100))
        assert found == [8, 24, 48, 64, 80, 96, 120, 132]
        assert list(granted_counts(None, (4, 8, 12))) == [4, 8, 12]
        assert list(granted_counts(None, (56,))) == [56]

    @given(st.lists(st.integers(1, 200), min_size=1), st.sets(st.integers(1, 150), min_size=1))
    @settings(deadline=None, max_examples=60)
    def test_every_count_is_offered_and_none_is_nearer(
        self, asked: list[int], offered: set[int]
    ) -> None:
        found = granted_counts(asked, tuple(sorted(offered)))
        assert list(found) == sorted(found)
        assert set(found) == {nearest(count, offered) for count in asked}
        for granted, wanted in found.items():
            assert all(abs(granted - wanted) <= abs(other - wanted) for other in offered)


class TestPlan:
    def test_a_kernels_configurations_follow_each_other_and_counters_come_last(self) -> None:
        steps = [(u.entry.name if u.entry else None, u.cu_count) for u in PLAN.steps()]
        assert steps[:4] == [
            ("few_threads_1", 4), ("few_threads_1", 8), ("few_threads_1", 12), ("few_threads_8", 4),
        ]  # fmt: skip
        assert steps[-3:] == [(None, 4), (None, 8), (None, 12)]
        assert len(steps) == 2 * 4 * 3 + 3

    def test_duration(self) -> None:
        """By hand: 4 kernels x 2 rounds x (1 s + 3 x (0.5 settling + 2 + 0.5 s)), and 12 x 6 s."""
        assert PLAN.seconds("energy") == pytest.approx(4 * 2 * (1 + 3 * 3.0) + 12 * 6)
        assert replace(PLAN, counters=False).seconds("average") == pytest.approx(8 * (1 + 3 * 4.0))

    def test_fingerprint_follows_all_that_the_samples_depend_on(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mark = PLAN.fingerprint(DEVICE)
        assert mark == replace(PLAN).fingerprint(replace(DEVICE))
        others = [
            replace(PLAN, entries=PLAN.entries[:2]),
            replace(PLAN, cu_counts={4: 4, 8: 8}),
            replace(PLAN, cu_counts={4: 5, 8: 8, 12: 12}),
            replace(PLAN, clocks=(Clocks(800, 800),)),
            replace(PLAN, repeat=1),
            replace(PLAN, window_s=1.0),
            replace(PLAN, counters=False),
        ]
        marks = {other.fingerprint(DEVICE) for other in others}
        marks.add(PLAN.fingerprint(replace(DEVICE, uuid="another")))
        marks.add(PLAN.fingerprint(replace(DEVICE, versions={"driver": "2"})))
        monkeypatch.setattr("mlscale.collect.entries.Entry.text", lambda _: "changed")
        marks.add(PLAN.fingerprint(DEVICE))
        assert len(marks) == 10
        assert mark not in marks


class TestSuite:
    def test_is_as_large_and_as_varied_as_asked(self) -> None:
        """60 or more kernels; names are unique, and identifiers, since they name C functions."""
        names = [entry.name for entry in SUITE]
        assert len(set(names)) == len(names) >= 60
        assert all(name.isidentifier() for name in names)
        wanted = (
            "copy triad strided gather stencil2d stencil3d transpose_naive transpose_tiled "
            "matmul_naive matmul_tiled reduction scan histogram_shared histogram_global "
            "bitonic_block fft_block nbody monte_carlo special fma_fp64 integer divergence "
            "few_threads chase tensor l2_set"
        )
        assert set(wanted.split()) <= {entry.application for entry in SUITE}

    def test_is_asked_for_by_name_application_or_pattern(self) -> None:
        assert [e.name for e in select(["scan", "copy_4m", "chase_1?k"])] == [
            "copy_4m", "chase_16k", "scan_4m", "scan_32m",
        ]  # fmt: skip
        assert select([]) == SUITE

    def test_an_unknown_kernel_is_refused(self) -> None:
        message = re.escape(
            "no kernel or application 'matmul_tild' in the suite; is 'matmul_tiled'"
        )
        with pytest.raises(InputError, match=message):
            select(["scan", "matmul_tild"])


def test_counters_asked_of_ncu_are_those_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "profiling.md").read_text(encoding="utf-8")
    everything = page[page.index("With everything that Table II can have") :]
    command = everything[: everything.index("./app\nmlscale import ncu")]
    listed = re.findall(r"[a-z0-9_]+__[a-z0-9_.]+", command)
    assert tuple(listed) == metrics(90)
    # As that page says: no uniform pipe before sm_75, other DRAM names on sm_120.
    assert set(metrics(90)) - set(metrics(70)) == {"sm__inst_executed_pipe_uniform.sum"}
    renamed = {"dram__bytes_op_read.sum", "dram__bytes_op_write.sum"}
    assert set(metrics(120)) - set(metrics(90)) == renamed
