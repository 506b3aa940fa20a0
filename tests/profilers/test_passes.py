"""Passes of counters that are of other launches in part; made by hand."""

import pytest

from mlscale import DataWarning
from mlscale.errors import InputError
from mlscale.profilers.launches import FileContent, GroupKey, LaunchGroup
from mlscale.profilers.passes import of_the_same_launches

MAIN, TUNED = GroupKey("gemm(float*)", 8.0, 64.0), GroupKey("try(float*)", 8.0, 64.0)


def a_pass(source: str, launches: dict[GroupKey, int], ms: float = 1.0) -> FileContent:
    """Each launch takes that long and has one counter, named after the file."""
    return FileContent(
        source,
        {
            key: LaunchGroup(count, count * ms / 1e3, count, {source: 5.0 * count}, {source: count})
            for key, count in launches.items()
        },
    )


def test_passes_of_the_same_launches_stay_as_they_are() -> None:
    """A launch more among ten changes no mean."""
    passes = [a_pass("a.csv", {MAIN: 10}), a_pass("b.csv", {MAIN: 9})]
    assert of_the_same_launches(passes) == passes


@pytest.mark.parametrize("order", [1, -1])
def test_few_that_differ_keep_their_time_and_no_counter(order: int) -> None:
    """One of 21 ms."""
    passes = [a_pass("a.csv", {MAIN: 20, TUNED: 1}), a_pass("b.csv", {MAIN: 20})][::order]
    told = r"^[ab]\.csv: the passes have other launches of 'try\(float.*: without counters here"
    with pytest.warns(DataWarning, match=told):
        alike = of_the_same_launches(passes)
    assert [file.groups[MAIN] for file in alike] == [file.groups[MAIN] for file in passes]
    [tuned] = [file.groups[TUNED] for file in alike if TUNED in file.groups]
    assert (tuned.time_s, tuned.means()) == (pytest.approx(1e-3), {})


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({MAIN: 20, TUNED: 3}, {MAIN: 20}, r"^b.csv: has no 'try\(float\*\)' .*, which a.csv has"),
        (
            {MAIN: 20},
            {MAIN: 10},
            r"^b.csv: has 10 launches of 'gemm.*, a.csv has 20; the passes mu",
        ),
    ],
)
def test_many_that_differ_are_refused(
    first: dict[GroupKey, int], second: dict[GroupKey, int], message: str
) -> None:
    """3 of 23 ms, and all of them."""
    with pytest.raises(InputError, match=f"{message}.*: where a library tunes itself .* once befo"):
        of_the_same_launches([a_pass("a.csv", first), a_pass("b.csv", second)])


def test_without_a_time_all_that_differ_are_refused() -> None:
    passes = [a_pass("a.csv", {MAIN: 99, TUNED: 1}, ms=0.0), a_pass("b.csv", {MAIN: 99}, ms=0.0)]
    with pytest.raises(InputError, match="has no 'try"):
        of_the_same_launches(passes)


def test_launch_by_launch_each_has_its_own_in_the_other() -> None:
    one = MAIN._replace(launch="1")
    with pytest.raises(InputError, match=r"launch 2, which a\.csv has"):
        of_the_same_launches(
            [
                a_pass("a.csv", {one: 1, MAIN._replace(launch="2"): 1}, ms=0.01),
                a_pass("b.csv", {one: 1}, ms=0.01),
            ]
        )
