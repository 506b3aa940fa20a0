"""The tidy table of a run: names, launches and total times, from records made by hand."""

import numpy as np
import pytest

from mlscale import HardwareConfig
from mlscale.data.table import Table
from mlscale.profilers.configuration import RunConfiguration
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.kernel_features import with_features
from mlscale.profilers.run_table import _warps, launches_by_kernel, run_table

RUN = RunConfiguration("made-gpu", HardwareConfig(4, 1000.0, 500.0), {}, {})


def record(
    kernel: str,
    grid: float | None,
    launches: float = 1.0,
    time_s: float = 1e-3,
    traced: bool = True,
    block: float = 256,
) -> KernelRecord:
    return KernelRecord(kernel, grid, block, launches, time_s, traced, None, {"ipc": 2.0}, {})


def table(*records: KernelRecord) -> Table:
    return run_table("run.csv", "ncu", with_features("ncu", records, RUN), RUN, "app")


class TestNames:
    def test_one_geometry_needs_none(self) -> None:
        assert table(record("f", 8), record("g", 8)).text["kernel"] == ["f", "g"]

    def test_large_grids_keep_all_their_digits(self) -> None:
        """A number in six digits would name these two alike."""
        rows = table(record("f", 1048576, 1, 0.1e-3), record("f", 1048577, 2, 0.3e-3))
        names = ["f [grid 1048576, block 256]", "f [grid 1048577, block 256]"]
        assert rows.text["kernel"] == names
        assert rows.numbers["launches"].tolist() == [1, 2]
        assert rows.numbers["total_time_ms"] == pytest.approx([0.1, 0.6])

    def test_metadata_say_function_and_geometry_of_each_name(self) -> None:
        launches = launches_by_kernel([record("f", 8, 3), record("f", 9, 2)])
        assert launches == {
            f"f [grid {grid}, block 256]": {
                "function": "f", "workgroups": grid, "workgroup_size": 256, "launches": count,
            }
            for grid, count in ((8, 3), (9, 2))
        }  # fmt: skip


class TestOfTheRun:
    def test_rows_of_each_launch_say_their_kernels_sums(self) -> None:
        """By hand: 1 ms + 3 ms in two launches."""
        rows = table(record("f", 8), record("f", 8, time_s=3e-3))
        assert rows.numbers["time_ms"] == pytest.approx([1, 3])
        assert rows.numbers["launches"].tolist() == [2, 2]
        assert rows.numbers["total_time_ms"] == pytest.approx([4, 4])

    def test_without_a_trace_there_is_no_total(self) -> None:
        assert "total_time_ms" not in table(record("f", 8, traced=False)).numbers

    def test_what_is_not_known_is_missing(self) -> None:
        rows = table(record("f", None), record("g", 8))
        np.testing.assert_array_equal(rows.numbers["workgroups"], [np.nan, 8])

    def test_a_warp_is_whole(self) -> None:
        """100 threads are four warps, the last of them of four threads."""
        assert _warps(record("f", 10, block=100)) == 40
