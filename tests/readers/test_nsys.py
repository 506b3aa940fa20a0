"""Nsight Systems: CSV of nsys stats and SQLite exports, made ones (real ones: test_exports.py).

The made run (see synthetic/traces.py): f twice, 40 us each, g once, 20 us, and a copy.
"""

from pathlib import Path

import pytest
from command import Capture, refuse
from summed_runs import only, run_of, run_of_text, totals
from synthetic.databases import changed
from synthetic.tidy import refused
from synthetic.traces import SUM_CSV, F, G, gpu_trace, write_sqlite

from mlscale import DataWarning

A100 = "NVIDIA A100-SXM4-40GB"


def times_us(folder: Path, text: str) -> dict[tuple[str, float | None], tuple[float, float]]:
    """By kernel and workgroups how many launches, and the time of them all [us]."""
    groups = run_of_text(folder, text).groups.items()
    return {
        (key.kernel, key.workgroups): (sums.launches, pytest.approx(1e6 * sums.time_total_s))
        for key, sums in groups
    }


@pytest.mark.parametrize(
    "text",
    [
        "Time (%),Total Time (ns),Instances,Avg (ns),Name\n50,80,0,40,f\n50,80,2,40,g\n",
        "Name,Calls,TotalDurationNs,AverageNs\nf,0,80,40\ng,2,80,40\n",  # by rocprofv3
    ],
)
def test_a_kernel_that_was_never_launched_has_no_time(tmp_path: Path, text: str) -> None:
    """A division by 0 was printed."""
    groups = run_of_text(tmp_path, text).groups.items()
    times_s = {key.kernel: sums.time_s for key, sums in groups}
    assert times_s == {"f": None, "g": pytest.approx(40e-9)}


class TestCsv:
    def test_a_trace(self, tmp_path: Path) -> None:
        """The copy is no launch; 8 x 2 and 4 workgroups."""
        assert times_us(tmp_path, gpu_trace()) == {(F, 16): (2, 80), (G, 4): (1, 20)}
        run = run_of_text(tmp_path, gpu_trace())
        assert run.facts.seen["device_name"] == {A100: 1}
        assert [key.workgroup_size for key in run.groups] == [128, 128]
        assert len(run_of_text(tmp_path, gpu_trace(), each=True).groups) == 3

    @pytest.mark.parametrize(
        ("unit", "scale"), [("", 1e9), (" (us)", 1e6), (" (\u03bcs)", 1e6), (" (ms)", 1e3)]
    )
    def test_units_of_a_trace(self, tmp_path: Path, unit: str, scale: float) -> None:
        """A duration of 5 in each; without a unit, as up to 2020, it is of nanoseconds."""
        header = f"Start{unit},Duration{unit},GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n"
        run = run_of_text(tmp_path, f"{header}90,5,8,2,1,128,1,1,k\n")
        assert only(run).time_s == pytest.approx(5 / scale)

    def test_a_summary(self, tmp_path: Path) -> None:
        """The table of copies behind the blank line is not read."""
        assert times_us(tmp_path, SUM_CSV) == {(F, None): (2, 80), (G, None): (1, 20)}

    def test_sizes_of_a_summary(self, tmp_path: Path) -> None:
        text = "Total Time (us),Instances,Name,GridXYZ,BlockXYZ\n10,2,k,   64    1    1,128 1 1\n"
        assert times_us(tmp_path, text) == {("k", 64): (2, 10)}

    def test_a_time_that_no_float_holds_is_refused(self, capsys: Capture, tmp_path: Path) -> None:
        """Damaged: 10 us over 1e-320 launches. NumPy warned of it in lines of its own."""
        path = tmp_path / "sums.csv"
        path.write_text("Total Time (us),Instances,Name\n10,1e-320,k\n")
        words = ("import", path, "--device", "a100-sxm4-40gb", "--base", "engine=1410,memory=1215")
        assert "column 'time_ms'" in refuse(capsys, tmp_path, *words, "-o", tmp_path / "t.csv")

    def test_further_reports_below(self, tmp_path: Path) -> None:
        """As `nsys stats --format csv` writes them all: the first that is known counts."""
        before = "Processing [run.sqlite] with [cuda_api_sum.py]...\nTime,Num Calls,Name\n1,2,cuX\n"
        text = f"{before}\n{gpu_trace()}\n{SUM_CSV}"
        assert times_us(tmp_path, text) == {(F, 16): (2, 80), (G, 4): (1, 20)}

    def test_the_only_gpu_is_taken_for_the_one_that_was_chosen(self, tmp_path: Path) -> None:
        """CUDA_VISIBLE_DEVICES renumbers GPUs, and --gpu may be of a log beside the trace."""
        with pytest.warns(DataWarning, match="has only GPU 0, which is used as GPU 3"):
            assert run_of_text(tmp_path, gpu_trace(), gpu="3").gpu == "0"

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("40000,2,8", "4e,2,8", r"row 3, column 'Duration \(ns\)': '4e' is not a number"),
            ("40000,2,8", "40000,2,0", "row 3, column 'GrdX': '0' has a size of 0"),
            (",7,", ",7,8,", "row 2: has 16 fields, the header has 15; is the file cut off"),
        ],
    )
    def test_refused(self, tmp_path: Path, old: str, new: str, message: str) -> None:
        assert old in gpu_trace()
        with refused(message):
            run_of_text(tmp_path, gpu_trace().replace(old, new))


class TestSqlite:
    def test_a_run(self, tmp_path: Path) -> None:
        run = run_of(write_sqlite(tmp_path / "run.sqlite"))
        assert list(run.groups) == [(F, 16, 128, ""), (G, 4, 128, "")]
        assert totals(run) == (2, 3, pytest.approx(0.1))
        assert run.facts.seen == {"device_name": {A100: 1}, "cu_count": {108: 1}}

    def test_gpus_that_each_process_numbers_from_0_are_told_apart(self, tmp_path: Path) -> None:
        """Process 4001 sees GPU 1 alone, as its number 0. The schema of Nsight Systems 2025."""
        processes = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid ="
        path = changed(
            write_sqlite(tmp_path / "run.sqlite"),
            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN globalPid INTEGER",
            f"{processes} {1 << 48 | 4000 << 24}",
            f"{processes} {1 << 48 | 4001 << 24} WHERE rowid = 3",
            "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER)",
            "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 4000), (1, 0, 4001)",
        )
        with refused(r"has GPUs 0 \(2 launches\), 1 \(1 launch\)"):
            run_of(path)
        assert only(run_of(path, gpu="1")).launches == 1

    @pytest.mark.parametrize("each_ns", [33_333, 33_334])
    def test_graphs_that_were_traced_whole(self, tmp_path: Path, each_ns: int) -> None:
        """Three of them, beside kernels of 100 us in all: warned of, or refused above these."""
        longer = f"UPDATE CUPTI_ACTIVITY_KIND_GRAPH_TRACE SET end = start + {each_ns}"
        path = changed(write_sqlite(tmp_path / "run.sqlite", graphs=3), longer)
        if each_ns == 33_333:
            with pytest.warns(DataWarning, match=r"are in CUDA graphs .*-graph-trace=node"):
                assert totals(run_of(path)) == (2, 3, pytest.approx(0.1))
            return
        with refused(r"0.0001 s are in CUDA graphs .*-graph-trace=node"):
            run_of(path)

    @pytest.mark.parametrize(
        ("statement", "message"),
        [
            ("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL", "has no kernel launch"),
            ("DELETE FROM StringIds", "row 1: the kernel's name is empty"),
            ("DROP TABLE StringIds", "cannot be read as SQLite .*StringIds.*; export it again"),
            ("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN gridX", "SQLite .*gridX"),
        ],
    )
    def test_refused(self, tmp_path: Path, statement: str, message: str) -> None:
        path = changed(write_sqlite(tmp_path / "run.sqlite"), statement)
        with refused(message):
            run_of(path)


@pytest.mark.parametrize("end", ["", ","], ids=["as written", "with an empty column"])
def test_names_are_quoted_where_they_need_it(tmp_path: Path, end: str) -> None:
    """Six launches of a name with a comma, three of a plain one; the header is all quoted."""
    names = ['"void k<float, 4>(int)"'] * 6 + ["gemm"] * 3
    header = ["Start (ns)", "Duration (ns)", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ"]
    header += ["Device", "Name"]
    lines = [",".join(f'"{name}"' for name in header)]
    lines += [f"{i}000,500,1,1,1,32,1,1,NVIDIA L40S (0),{name}" for i, name in enumerate(names)]
    groups = run_of_text(tmp_path, "".join(f"{line}{end}\n" for line in lines)).groups
    assert {key.kernel: sums.launches for key, sums in groups.items()} == {
        "void k<float, 4>(int)": 6,
        "gemm": 3,
    }
