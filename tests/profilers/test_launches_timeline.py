"""Span and busy time of kernels' intervals, and what the readers of older traces make of them."""

from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic.exports import V3_TRACE, rocprof_v1

from mlscale.profilers.exports.reader import Export, open_export
from mlscale.profilers.launch_batch import LaunchRecord
from mlscale.profilers.launches import FileContent, Timeline
from mlscale.profilers.tools import rocprof

Reader = Callable[[Export, FileContent, Collection[str]], Iterator[LaunchRecord]]


def timeline(*intervals: tuple[int | Fraction, int | Fraction], exchanges: int = 0) -> Timeline:
    """exchanges: how many of the last kernels exchange data between GPUs."""
    line = Timeline()
    for position, (begin, end) in enumerate(intervals):
        own = np.arange(position >= len(intervals) - exchanges)
        line.add(np.array([begin], object), np.array([float(end - begin) / 1e9]), own)
    return line


def test_exchanges_beside_other_kernels() -> None:
    """Others run from 0 to 30 and 40 to 50 ns: hidden are 10 to 20, 25 to 30 and 40 to 45."""
    others = ((40, 50), (0, 30))
    assert timeline(*others, (10, 20), (25, 45), exchanges=2).hidden_exchange_s == 20e-9
    assert timeline(*others, (60, 70), exchanges=1).hidden_exchange_s == 0
    assert timeline((0, 10), (5, 20), exchanges=2).hidden_exchange_s == pytest.approx(5e-9)
    assert timeline(*others).hidden_exchange_s == 0
    # Others run from 8 to 25, for a while beside each other.
    assert timeline((8, 20), (15, 25), (5, 30), exchanges=1).hidden_exchange_s == 17e-9


def test_overlapping_and_nested_kernels_count_once() -> None:
    """By hand: 10 to 30 and 40 to 50 ns are busy; in between, 10 ns nothing runs."""
    line = timeline((40, 50), (10, 20), (15, 30), (16, 18))
    assert line.span_s == pytest.approx(40e-9)
    assert line.busy_s == pytest.approx(30e-9)


def test_without_a_kernel_nothing_is_known() -> None:
    line = timeline()
    assert line.span_s is None
    assert line.busy_s is None


def test_timestamps_since_1970_keep_their_nanoseconds() -> None:
    """A float holds 1.7e18 to within 256 ns only; the fraction is of a mean of passes."""
    begin = 1_700_000_000_000_000_001
    line = timeline((begin, begin + 3), (begin + Fraction("5.305"), begin + Fraction("6.805")))
    assert line.span_s == pytest.approx(6.805e-9, rel=1e-12)
    assert line.busy_s == pytest.approx(4.5e-9, rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1))
def test_busy_is_the_number_of_nanoseconds_in_which_any_kernel_runs(
    kernels: list[tuple[int, int]],
) -> None:
    """Counted nanosecond by nanosecond."""
    line = timeline(*((begin, begin + length) for begin, length in kernels))
    running = {ns for begin, length in kernels for ns in range(begin, begin + length)}
    assert line.busy_s == pytest.approx(len(running) / 1e9, rel=1e-12)
    assert line.span_s == pytest.approx((max(running) + 1 - min(running)) / 1e9, rel=1e-12)


def content_of(path: Path, text: str, reader: Reader) -> FileContent:
    path.write_text(text)
    content = FileContent(str(path))
    with open_export(path) as export:
        content.collect(reader(export, content, ("SQ_WAVES",)), each=False)
    return content


def test_rocprofv3s_trace_is_in_any_order(tmp_path: Path) -> None:
    """From 5000 to 9000 and from 1000 to 3000 ns."""
    content = content_of(tmp_path / "trace.csv", V3_TRACE, rocprof.read_trace)
    assert content.span_s == pytest.approx(8e-6)
    assert content.busy_s == pytest.approx(6e-6)


def test_the_gaps_of_a_run_with_counters_are_not_the_programs(tmp_path: Path) -> None:
    """Fractions of nanoseconds are means over passes: 1000.305 to 1001.805 to 1004 to 1005 ns."""
    times = [(Fraction("1000.305"), Fraction("1001.805")), (Fraction(1004), Fraction(1005))]
    text = rocprof_v1({}, 2, [(float(begin), float(end)) for begin, end in times])
    content = content_of(tmp_path / "times.csv", text, rocprof.read_wide)
    assert content.span_s == pytest.approx(4.695e-9, rel=1e-12)
    assert content.busy_s == pytest.approx(2.5e-9, rel=1e-12)
    text = rocprof_v1({"SQ_WAVES": 10}, 2, [(1000, 1001), (1004, 1005)])
    content = content_of(tmp_path / "counters.csv", text, rocprof.read_wide)
    assert content.span_s is None
    assert content.busy_s is None
