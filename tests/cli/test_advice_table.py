"""The table of mlscale advise: which kernels have a line, and what stands in it."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import frugal
from synthetic import kernels as made

from mlscale import Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.objectives import Limits
from mlscale.cli.advise import advice_table
from mlscale.cli.text import flag_lines

MID = made.GRID.mid  # cu=8, engine=800, memory=700
MODEL = train(frugal.measurements(), MID, "nearest")


def table(profiles: Profiles, objective: str, limits: Limits | None = None) -> list[list[str]]:
    """The lines of the table in words."""
    text = advice_table(advise(MODEL, profiles, objective, limits))
    return [line.split() for line in text.splitlines()]


def kernels(count: int) -> Profiles:
    """Compute kernels of 2 ms at the base and as many launches as their number, from 1."""
    profiles = frugal.measurements(per_group=count).profiles(MID).select(range(count))
    launches = np.arange(1.0, count + 1)
    return replace(profiles, time_ms=np.full(count, 2.0), power_w=None, launches=launches)


def test_the_ten_of_most_time_and_the_others_in_a_line() -> None:
    # 20 kernels of 1, 2, ..., 20 launches: the last has 20/210 of the time, the first ten 55/210.
    # All need 33 % more time at 600 MHz, and 600 MHz is the lowest that keeps 40 %.
    lines = table(kernels(20), "clock", Limits(max_slowdown_percent=40))
    start = next(at for at, line in enumerate(lines) if line[:1] == ["Lowest"])
    rows = lines[start + 3 : start + 15]
    assert [row[0] for row in rows[:10]] == [f"compute{number}" for number in range(19, 9, -1)]
    assert rows[0] == ["compute19", "9.5", "8", "600", "700", "2.667", "+33.3", "+33.3"]
    assert rows[10] == ["and", "10", "others", "26.2", "-", "-", "-", "-", "-", "+33.3"]
    assert rows[11] == ["whole", "run", "100.0", "8", "600", "700", "560.0", "+33.3"]


def test_others_weigh_by_their_time() -> None:
    """At 600 MHz one launch gets slower by 33.3 %, and three that memory bounds by nothing."""
    profiles = frugal.measurements(per_group=11).profiles(MID).select(range(12))
    launches = np.array([100.0] * 10 + [1.0, 3.0])
    profiles = replace(profiles, time_ms=np.full(12, 2.0), power_w=None, launches=launches)
    lines = table(profiles, "clock", Limits(max_slowdown_percent=40))
    [others] = [row for row in lines if "others" in row]
    assert others == ["and", "2", "others", "0.4", "-", "-", "-", "-", "-", "+8.3"]


def test_one_other_has_its_own_line() -> None:
    lines = table(kernels(11), "clock")
    assert sum(row[:1] == ["compute0"] for row in lines) == 1
    assert not any("others" in row for row in lines)


def test_a_launch_of_a_kernel_is_told_once() -> None:
    one = replace(kernels(1), launches=None)
    lines = table(one, "clock")
    assert not any("run" in row or "share" in row for row in lines)
    assert any("whole" in row for row in table(kernels(2), "clock"))


def test_what_is_slower_than_the_limit_is_marked() -> None:
    # 400 MHz doubles the compute kernel's 2 ms, not the bandwidth kernel's 8 ms: 20 % of the run.
    profiles = frugal.measurements(per_group=1).profiles(MID)
    profiles = replace(profiles, time_ms=np.array([2.0, 8.0]))
    lines = table(profiles, "clock", Limits(max_slowdown_percent=20))
    marks = {row[0]: row[-4:] for row in lines if row and row[0] in ("compute0", "bandwidth0")}
    assert marks["compute0"] == ["+100.0,", "above", "the", "limit"]
    assert marks["bandwidth0"][-1] == "+0.0"


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (None, ["flag: all kernels: a\n", "flag: 2 kernels: b\n", "flag: x: c\n", "flag: z: d\n"]),
        (
            1,
            [
                "flag: all kernels: a\n",
                "flag: 2 kernels: b\n",
                "flag: x: c\n",
                "flag: 1 more of other kernels, with --format json or csv\n",
            ],
        ),
    ],
)
def test_a_flag_of_several_kernels_stands_once(most: int | None, expected: list[str]) -> None:
    flags = {"x": ("a", "c"), "y": ("a", "b"), "z": ("b", "a", "d")}
    assert flag_lines(flags, most) == expected


def test_flags_alike_but_for_numbers_stand_once_with_their_range() -> None:
    """By hand; fp64 is a word, and so are the units."""
    flags = {
        "x": ("fp64 use 0.05 below trained 0.1", "lacks 2 of 3"),
        "y": ("fp64 use 1e-05 below trained 0.1",),
        "z": ("fp64 use 0.02 below trained 0.1", "fp32 use 0.02 below trained 0.1"),
    }
    assert flag_lines(flags) == [
        "flag: all kernels: fp64 use 1e-05 to 0.05 below trained 0.1\n",
        "flag: x: lacks 2 of 3\n",
        "flag: z: fp32 use 0.02 below trained 0.1\n",
    ]
