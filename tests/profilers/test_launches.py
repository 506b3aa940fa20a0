"""Launches, their groups and sums; expected numbers by hand or from Python's own sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import (
    FileContent,
    GroupKey,
    LaunchGroup,
    NumberSet,
    Timeline,
    some_of,
)

NAN = float("nan")


def launch(time_s: float | None, weight: int = 1, **counters: float) -> LaunchRecord:
    return LaunchRecord(1, "f", "0", 8, 64, time_s, counters, weight)


class TestNames:
    def test_of_large_grids_keep_all_their_digits(self) -> None:
        assert str(GroupKey("f", 1048577, 256)) == "'f' (grid 1048577, block 256)"

    def test_say_the_launch_and_no_geometry_that_is_not_known(self) -> None:
        assert str(GroupKey("f", None, 64, "3")) == "'f', launch 3"

    def test_several_in_a_message(self) -> None:
        keys = [GroupKey("f", None, None), GroupKey("g", None, None)]
        assert some_of(keys[:1]) == "'f'"
        assert some_of(keys) == "2 kernels, such as 'f'"


@given(st.lists(st.integers(0, 40)))
def test_a_set_of_numbers_is_a_set(numbers: list[int]) -> None:
    """Python's own set says what is new."""
    numbers_seen, theirs = NumberSet(), set[int]()
    for number in numbers:
        assert numbers_seen.add(number) == (number not in theirs)
        theirs.add(number)


@given(st.lists(st.lists(st.integers(0, 40), max_size=4) | st.just([7, 8, 9]), max_size=8))
def test_numbers_added_together_are_a_set_too(several: list[list[int]]) -> None:
    """Python's own set says where the first stands that is there already, which ends a file."""
    numbers_seen, theirs = NumberSet(), set[int]()
    for numbers in several:
        is_there = [number in {*theirs, *numbers[:n]} for n, number in enumerate(numbers)]
        again = is_there.index(True) if True in is_there else None
        assert numbers_seen.add_all(np.array(numbers, np.int64)) == again
        if again is not None:
            return
        theirs |= {*numbers}


def group_of(*launches: LaunchRecord) -> LaunchGroup:
    """Launches of one kernel, summed."""
    content = FileContent("run.csv")
    content.collect(launches, each=False)
    [group] = content.groups.values()
    return group


class TestGroups:
    def test_means_are_over_the_launches_that_have_a_value(self) -> None:
        """Time (3 x 1 + 5) / 4; a is in three launches and one, b in the last alone."""
        first, second = launch(1.0, weight=3, a=2.0, b=NAN), launch(5.0, a=6.0, b=7.0)
        group = group_of(first, second, launch(None))
        assert (group.launches, group.time_s) == (5, 2.0)
        assert group.means() == {"a": 3.0, "b": 7.0}

    def test_merged_they_are_all_launches_of_both(self) -> None:
        one, other = group_of(launch(1.0, a=1.0)), group_of(launch(4.0, weight=2, a=4.0, b=1.0))
        one.merge(other)
        assert (one.launches, one.time_s, one.means()) == (3, 3.0, {"a": 3.0, "b": 1.0})

    def test_without_a_time_there_is_none(self) -> None:
        assert LaunchGroup().time_s is None


def test_a_file_groups_by_geometry_and_counts_rows_without_a_time() -> None:
    content = FileContent("run.csv")
    grids = (8, 8, 9)
    rows = [LaunchRecord(i, "f", str(i), grid, 64, 1.0, {}) for i, grid in enumerate(grids)]
    content.collect([*rows, launch(0.0)], each=False)
    launches = {key.workgroups: group.launches for key, group in content.groups.items()}
    assert (launches, content.dropped) == ({8: 2, 9: 1}, 1)
    assert content.span_s is None is Timeline().span_s
