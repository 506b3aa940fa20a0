"""What a run's sums leave out or count twice; every expected number is a sum by hand.

A warning that no test expects is an error.
"""

from collections.abc import Iterable

import pytest

from mlscale import DataWarning
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent
from mlscale.profilers.left_out import (
    covered_share,
    run_time_s,
    warn_of_overlap,
    warn_of_uncounted,
)


def record(kernel: str, launches: float, time_s: float, counted: bool) -> KernelRecord:
    counters = {"cycles": 1.0} if counted else {}
    return KernelRecord(kernel, 8, 64, launches, time_s, True, None, counters, {})


def trace(intervals_ms: Iterable[tuple[int, float]]) -> FileContent:
    """A trace of launches of 'k': when each begins and for how long it runs."""
    content = FileContent("run.csv")
    content.collect(
        (
            LaunchRecord(1, "k", str(begin), 8, 64, ms / 1e3, {}, begin_ns=begin * 10**6)
            for begin, ms in intervals_ms
        ),
        each=False,
    )
    return content


def test_the_share_is_of_time_not_of_kernels() -> None:
    """By hand: 3 x 2 s counted, 2 x 1 s not: 6 of 8 s."""
    records = [record("f", 3, 2.0, True), record("g", 2, 1.0, False)]
    assert run_time_s(records) == 8
    assert covered_share(records) == 0.75


class TestUncounted:
    def test_are_listed_by_their_time_with_their_share(self) -> None:
        records = [record("f", 1, 6.0, True), *(record(k, 1, t, False) for k, t in
                   (("a", 0.5), ("b", 2.0), ("c", 1.0), ("d", 0.5)))]  # fmt: skip
        contents = [FileContent("counts.csv"), trace([(0, 1.0)])]
        with pytest.warns(DataWarning) as caught:
            warn_of_uncounted(contents, records)
        longest = "'b', 'c', 'a', 1 other"
        assert [str(warning.message) for warning in caught] == [
            f"run.csv: without counters: 4 kernels ({longest}), 40.0 % of the run's time"
        ]

    def test_nearly_all_of_the_run_is_not_all(self) -> None:
        """By hand: 99.96 %."""
        records = [record("f", 1, 0.0004, True), record("g", 1, 0.9996, False)]
        with pytest.warns(DataWarning, match=r"1 kernel \('g'\), >99.9 % of"):
            warn_of_uncounted([trace([(0, 1.0)])], records)

    def test_in_one_file_without_a_trace(self) -> None:
        """By hand: 1 of 4 s; a damaged export may have lost the counters of a kernel."""
        records = [record("f", 1, 3.0, True), record("g", 1, 1.0, False)]
        with pytest.warns(DataWarning, match=r"^counts.csv: .* \('g'\), 25.0 % of"):
            warn_of_uncounted([FileContent("counts.csv")], records)

    @pytest.mark.parametrize("counted", [True, False])
    def test_all_or_none_counted_is_nothing_to_tell(self, counted: bool) -> None:
        warn_of_uncounted([trace([(0, 1.0)])], [record("f", 1, 1.0, counted)])


class TestOverlap:
    def test_is_told_with_both_sums(self) -> None:
        """Three of 10000 ms, 5000 ms apart: 20000 ms in which any runs."""
        message = r"^run.csv: kernels run .*: 30000 ms of them within 20000 ms; .* too high"
        with pytest.warns(DataWarning, match=message):
            warn_of_overlap(trace([(0, 10_000.0), (5000, 10_000.0), (10_000, 10_000.0)]))

    def test_more_than_two_percent_is(self) -> None:
        """Kernels of 100 ms, of which 4 are shared: 200 of 196 ms, 2.04 % more."""
        with pytest.warns(DataWarning, match="200 ms of them within 196 ms"):
            warn_of_overlap(trace([(0, 100.0), (96, 100.0)]))

    @pytest.mark.parametrize("second_ms", [100, 97])
    def test_up_to_two_percent_is_not(self, second_ms: int) -> None:
        """Kernels of 100 ms, back to back and with 3 shared: 200 of 197 ms, 1.5 % more."""
        warn_of_overlap(trace([(0, 100.0), (second_ms, 100.0)]))
        warn_of_overlap(FileContent("no times of day.csv"))
