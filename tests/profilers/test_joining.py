"""Launch by launch (`--each`) over several files of a run, and what cannot be told apart.

Made files in the layouts of the tools; every expected number is written into them.
"""

from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic.exports import V3_TRACE, read, rocprof_v1, rocprofv3

from mlscale import InputError
from mlscale.profilers import ImportedTable, import_exports
from mlscale.profilers.joining import join
from mlscale.profilers.launches import FileContent, GroupKey, LaunchGroup

KEY = GroupKey("f(int, int)", 10.0, 64.0)
COUNTED = rocprof_v1({"SQ_WAVES": 10, "SQ_INSTS_VALU": 500}, 3)  # dispatches 0, 1, 2


def times_alone(*microseconds: int, first: int = 0) -> str:
    """A v1 file of timestamps without counters, of launches one after the other."""
    ends = [1000 * us for us in accumulate(microseconds)]
    times = [(end - 1000 * us, end) for us, end in zip(microseconds, ends, strict=True)]
    text = rocprof_v1({}, len(microseconds), times)
    header, *rows = text.splitlines()
    rows = [f"{first + i},{row.partition(',')[2]}" for i, row in enumerate(rows)]
    return "\n".join([header, *rows]) + "\n"


def each(folder: Path, *texts: str) -> ImportedTable:
    return read(folder, *texts, device="mi210", each=True)


class TestTimesInAFileOfTheirOwn:
    @pytest.mark.parametrize("first", [0, 1, 7, 9])
    def test_are_those_of_the_same_launches(self, tmp_path: Path, first: int) -> None:
        """v2 counts dispatches from 0 beside counters and from 1 without them (1.5)."""
        imported = each(tmp_path, COUNTED, times_alone(20, 30, 50, first=first))
        assert imported.table.numbers["time_ms"] == pytest.approx([0.02, 0.03, 0.05])
        np.testing.assert_array_equal(imported.table.numbers["SQ_INSTS_VALU"], [500] * 3)
        assert len(set(imported.table.text["kernel"])) == 1

    def test_without_each_their_mean_is_taken(self, tmp_path: Path) -> None:
        imported = read(tmp_path, COUNTED, times_alone(20, 30, 50, first=1), device="mi210")
        assert imported.table.numbers["time_ms"] == pytest.approx([0.1 / 3])

    @pytest.mark.parametrize("first", [0, 1])
    def test_of_more_launches_cannot_be_told_apart(self, tmp_path: Path, first: int) -> None:
        texts = COUNTED, times_alone(20, 30, 50, 70, first=first)
        with pytest.raises(InputError, match=r"has 4 launches of 'f.int, int.* has 3; .* --each"):
            each(tmp_path, *texts)

    def test_of_another_kernel(self, tmp_path: Path) -> None:
        other = times_alone(20, 30, 50).replace("f(int, int)", "g(int)")
        with pytest.raises(InputError, match=r"has no kernel of .*'f.int, int.*launch 0 where"):
            each(tmp_path, COUNTED, other)

    @given(order=st.permutations([0, 1]))
    @settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_of_a_v3_trace_in_any_order(self, tmp_path: Path, order: list[int]) -> None:
        """Dispatch 1 took 2 us, dispatch 2 took 4 us, in whatever order they stand."""
        header, *rows = V3_TRACE.splitlines()
        trace = "\n".join([header, *(rows[i] for i in order)]) + "\n"
        imported = each(tmp_path, rocprofv3({"SQ_WAVES": 10}), trace)
        assert imported.table.numbers["time_ms"] == pytest.approx([0.002, 0.004])


def test_two_processes_of_one_v3_file_are_not_one_launch(tmp_path: Path) -> None:
    """Dispatch 1 of process 7 (2 us) and dispatch 1 of process 8 (5 us) are two launches."""
    one, other = rocprofv3({"SQ_WAVES": 10}), rocprofv3({"SQ_WAVES": 10}, 1000, 6000)
    text = one + "".join(other.replace(",1,7,7,640", ",1,8,8,640").partition("\n")[2])
    imported = each(tmp_path, text)
    assert imported.table.numbers["time_ms"] == pytest.approx([0.002, 0.002, 0.005, 0.005])
    assert imported.launches == 4


def test_the_same_file_twice_is_no_further_pass(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text(COUNTED)
    with pytest.raises(InputError, match=r"run.csv: is given twice; a file is no further pass"):
        import_exports([path, tmp_path / "." / "run.csv"])


def test_passes_of_other_times_are_of_other_work(tmp_path: Path) -> None:
    """By hand: 210 us a launch, and 135 us, which is 0.64 of it; 145 us are 0.69, less than 1.5."""
    passes = [
        rocprof_v1(
            {"SQ_WAVES": 10, "SQ_INSTS_VALU": 500}, 2, [(0, 1000 * us), (10**6, 10**6 + 1000 * us)]
        )
        for us in (210, 135, 145, 30, 10)
    ]
    with pytest.raises(InputError, match=r"its kernels take 0.64 times as long as in .*; of two"):
        read(tmp_path, passes[0], passes[1], device="mi210")
    with pytest.raises(InputError, match=r"its kernels take 7 times as long"):
        read(tmp_path, passes[3], passes[0], device="mi210")
    assert len(read(tmp_path, passes[0], passes[2], device="mi210").table) == 1
    assert len(read(tmp_path, passes[3], passes[4], device="mi210").table) == 1  # both are short


def test_traces_of_several_gpus_are_told(tmp_path: Path) -> None:
    """Those of two ranks, each on a GPU of its own: one trace of both would have been refused."""
    assert '"Agent 4"' in V3_TRACE
    with pytest.warns() as told:
        read(tmp_path, V3_TRACE, V3_TRACE.replace('"Agent 4"', '"Agent 5"'), device="mi210")
    assert "its files are of GPUs 4, 5, and are taken for one" in str(told[0].message)


def test_of_three_passes_the_time_is_the_median() -> None:
    """A pass that flushes caches, or waits, takes longer; here 210 us, beside 145 and 150."""
    groups = [
        FileContent(f"pass{us}.csv", {KEY: LaunchGroup(1, us / 1e6, 1, {name: 1.0}, {name: 1})})
        for us, name in ((145, "a"), (210, "b"), (150, "c"))
    ]
    [record] = join(groups)
    assert record.time_s == record.counted_time_s == pytest.approx(150e-6)
    assert record.counters == {"a": 1, "b": 1, "c": 1}
