"""What nsys stats prints: summaries and traces as CSV. Made files."""

from pathlib import Path

import pytest
from synthetic.exports import by_kernel, read, row
from synthetic.traces import BUSY_S, SPAN_S, SUM_CSV, F, G, gpu_trace

from mlscale import DataWarning, InputError

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")


def test_a_summary_gives_launches_and_their_total(tmp_path: Path) -> None:
    """80 us in 2 launches, 20 us in 1; the table of copies below is no table of kernels."""
    imported = read(tmp_path, SUM_CSV)
    assert imported.tool == "nsys"
    assert by_kernel(imported, "launches") == {F: 2, G: 1}
    assert by_kernel(imported, "total_time_ms") == pytest.approx({F: 0.08, G: 0.02})
    assert by_kernel(imported, "time_ms") == pytest.approx({F: 0.04, G: 0.02})


@pytest.mark.parametrize(
    ("unit", "factor"), [("us", 1e3), ("\u03bcs", 1e3), ("ms", 1e6), ("s", 1e9)]
)
def test_nsys_stats_prints_other_units_of_time(tmp_path: Path, unit: str, factor: float) -> None:
    imported = read(tmp_path, SUM_CSV.replace("Total Time (ns)", f"Total Time ({unit})"))
    assert by_kernel(imported, "total_time_ms") == pytest.approx(
        {F: 0.08 * factor, G: 0.02 * factor}
    )


def test_grid_and_block_of_a_summary_by_them(tmp_path: Path) -> None:
    """cuda_gpu_kern_gb_sum: 8 x 2 workgroups of 128 threads."""
    text = (
        "Time (%),Total Time (ns),Instances,Avg (ns),GridXYZ,BlockXYZ,Name\n"
        f'100.0,80000,2,40000.0,   8    2    1, 128    1    1,"{F}"\n'
    )
    numbers = row(read(tmp_path, text))
    assert (numbers["workgroups"], numbers["workgroup_size"]) == (16, 128)


def test_a_name_that_is_cut_off_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="1 names of kernels are cut off"):
        read(tmp_path, SUM_CSV.replace("(T1 *, int)", "(T1 …"))


def test_several_tables_of_kernels_are_refused(tmp_path: Path) -> None:
    """Each of a run of its own: their sum would be of none. Their headers are rows 4 and 14."""
    with pytest.raises(InputError, match=r"tables of kernels in rows 4, 14; each is of a run"):
        read(tmp_path, SUM_CSV + SUM_CSV)


@pytest.mark.parametrize("total", ["600,5", "1,20,5"])
def test_a_time_with_a_decimal_comma_is_refused(tmp_path: Path, total: str) -> None:
    """600,5 ms were read as 6005; a spreadsheet of Germany writes them so."""
    text = f'Time (%),Total Time (ms),Instances,Name\n100,"{total}",100,k\n'
    with pytest.raises(
        InputError, match=r"row 2, column 'Total Time .*' is not a time, or has a de"
    ):
        read(tmp_path, text)


def test_thousands_of_a_time_are_read(tmp_path: Path) -> None:
    text = 'Time (%),Total Time (us),Instances,Name\n100.0,"600,500.5",100,k\n'
    assert row(read(tmp_path, text))["time_ms"] == pytest.approx(6.005005)


def test_no_kernels_were_traced(tmp_path: Path) -> None:
    text = (
        "\nProcessing [run.sqlite] with [/opt/nsight/reports/cuda_gpu_kern_sum.py]...\n"
        "SKIPPED: run.sqlite does not contain CUDA kernel data.\n"
    )
    with pytest.raises(InputError, match="no kernels were traced; the profiler says: SKIPPED: run"):
        read(tmp_path, text)


def test_another_report_is_named(tmp_path: Path) -> None:
    text = "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n100.0,9,1,9.0,cudaLaunchKernel\n"
    with pytest.raises(InputError, match=r"row 1: this report of .* is not one of kernels, or no"):
        read(tmp_path, text)


def test_a_report_in_text_says_how_to_write_csv(tmp_path: Path) -> None:
    text = " Time (%)  Total Time (ns)  Instances  Name\n --------  ---------------\n"
    with pytest.raises(InputError, match=r"row 1: .* or no CSV; give .* --format csv"):
        read(tmp_path, text)


def test_a_table_of_kernels_in_comments_is_not_called_another_report(tmp_path: Path) -> None:
    """As somebody keeps it below a program's source; no line of it is the tool's own."""
    text = (
        "Time (%)  Total Time (ns)  Instances  Name\n--------  ---------------  ---------  ----\n"
    )
    with pytest.raises(
        InputError, match=r"holds no table that mlscale knows; it begins with '// T"
    ):
        read(tmp_path, "".join(f"// {line}" for line in text.splitlines(keepends=True)))


class TestTrace:
    def test_launches_span_and_gpu(self, tmp_path: Path) -> None:
        """The run of LAUNCHES; the copy at 90 us is no kernel, and the span begins after it."""
        imported = read(tmp_path, gpu_trace(), device=None, base=CLOCKS)
        assert imported.table.text["device"][0] == "a100-sxm4-40gb"
        assert by_kernel(imported, "launches") == {F: 2, G: 1}
        assert by_kernel(imported, "time_ms") == pytest.approx({F: 0.04, G: 0.02})
        assert by_kernel(imported, "workgroups") == {F: 16, G: 4}
        assert by_kernel(imported, "workgroup_size") == {F: 128, G: 128}
        idle_ms = imported.table.metadata["idle_ms"]
        assert idle_ms == pytest.approx(1e3 * (SPAN_S - BUSY_S))

    def test_of_several_gpus_one_is_chosen(self, tmp_path: Path) -> None:
        """f ran on GPU 0 and 1, g on 1."""
        names = [f"NVIDIA A100-SXM4-40GB ({number})" for number in (0, 1, 1)]
        text = gpu_trace(names)
        with pytest.raises(InputError, match=r"GPUs 0 \(1 launch\), 1 \(2 launches\); choose"):
            read(tmp_path, text, device=None, base=CLOCKS)
        with pytest.raises(InputError, match="has no launches on GPU 5; is of GPUs 0"):
            read(tmp_path, text, device=None, base=CLOCKS, gpu="5")
        imported = read(tmp_path, text, device=None, base=CLOCKS, gpu="1")
        assert by_kernel(imported, "launches") == {F: 1, G: 1}
        assert imported.table.metadata["profiled_gpus"] == ["1"]
        assert imported.table.metadata["idle_ms"] == pytest.approx(0.01)

    def test_the_only_gpu_is_taken_for_the_one_that_was_chosen(self, tmp_path: Path) -> None:
        """CUDA_VISIBLE_DEVICES renumbers GPUs, and --gpu may be of a log beside the trace."""
        with pytest.warns(DataWarning, match="is of GPU 0 alone, which was taken for GPU 3"):
            imported = read(tmp_path, gpu_trace(), device=None, base=CLOCKS, gpu="3")
        assert imported.table.metadata["gpus"] == ["3"]
        assert by_kernel(imported, "launches") == {F: 2, G: 1}

    def test_each_launch_is_a_row(self, tmp_path: Path) -> None:
        imported = read(tmp_path, gpu_trace(), device=None, base=CLOCKS, each=True)
        assert imported.table.text["kernel"].count(F) == 2


CLOCKS = {"engine_mhz": 1410.0, "memory_mhz": 1215.0}
