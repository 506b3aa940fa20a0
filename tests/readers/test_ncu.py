"""Nsight Compute's pages and its text: real files, and made ones worked out by hand.

Times of the real files were summed up by pandas, their metrics are read off them.
"""

from pathlib import Path

import pytest
from summed_runs import only, run_of, run_of_text, totals
from synthetic.exports import NCU, NCU_TEXT, long_page, long_rows, wide_page

from mlscale import InputError
from mlscale.readers import files, ncu

H100 = Path(__file__).parents[1] / "h100"
TIME, READ = "gpu__time_duration.sum", "dram__bytes_read.sum"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
K = "void k<int, 2>(float *, int)"


class TestRealFiles:
    @pytest.mark.parametrize(
        ("name", "groups", "launches", "time_ms"),
        [
            ("profiler-exports/ncu_details/rtx5070_ncu2026.2_gemm_tiled.csv", 1, 1, 10.195552),
            ("profiler-exports/ncu_details/v100_2020_12col_resaved.csv", 1, 7, 1.48768),
            ("profiler-exports/ncu_raw/b200_torch_sdpa_flash.csv", 2, 16, 3.262944),
            ("traces/ncu_details_csv/b200_cublaslt_base_units.csv", 1, 1, 0.40624),
            ("traces/ncu_details_csv/rtx5090_kernel0003_details.csv", 1, 1, 0.02342),
            ("traces/ncu_details_csv/torch_gcn_nvtx.csv", 11, 12, 0.067008),
            ("traces/ncu_raw_csv/b200_flashinfer_raw.csv", 2, 6, 0.133952),
            ("traces/ncu_details_text/rtx4090_flashinfer_issue188.txt", 1, 1, 0.27216),
            ("traces/ncu_details_text/rtx_utf16_windows.txt", 2, 6, 157.53649),
            ("traces/ncu_metrics_text/torch_gcn_nvtx.txt", 13, 14, 0.07942),
            ("traces/ncu_metrics_text/rtx4070l_pfac_windows.txt", 14, 18, 0.0),  # it says no time
        ],
    )
    @pytest.mark.parametrize("for_arrow", [0, 1 << 40], ids=["arrow", "csv"])
    def test_launches_and_time(
        self, data_folder: Path, monkeypatch: pytest.MonkeyPatch,
        name: str, groups: int, launches: int, time_ms: float, for_arrow: int,
    ) -> None:  # fmt: skip
        """The tables by Arrow and by the csv module."""
        monkeypatch.setattr(files, "LEAST_FOR_ARROW", for_arrow)
        run = run_of(data_folder / name)
        assert run.kind.tool == "ncu"
        assert totals(run) == (groups, launches, pytest.approx(time_ms, abs=1e-9))

    def test_a_raw_page_of_this_year(self) -> None:
        run = run_of(H100 / "ncu-gemm.csv")
        [(key, sums)] = run.groups.items()
        assert key == ("nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT", 132, 384, "")
        assert sums.time_s == pytest.approx(1_405_248e-9)
        assert sums.means()[READ] == 1_250_027_264
        assert run.facts.seen == {
            "device_name": {"NVIDIA H100 80GB HBM3": 1}, "engine_mhz": {1572.923: 1},
            "memory_mhz": {2618.855: 1}, "memory_limit_mhz": {2619: 1}, "cu_count": {132: 1},
        }  # fmt: skip
        assert run.facts.application == "python3.12"

    def test_sections_of_a_text(self, data_folder: Path) -> None:
        run = run_of(data_folder / "traces/ncu_details_text/rtx4090_flashinfer_issue188.txt")
        assert only(run).means()[DRAM] == 94.59
        assert run.facts.seen == {"engine_mhz": {2230: 1}, "memory_mhz": {10240: 1}}
        [key] = run.groups
        assert (key.workgroups, key.workgroup_size) == (1024, 128)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("profiler-exports/ncu_failed/no_csv_application_error.csv",
             r"no kernel launch; the profiler says: ==ERROR== The application returned an error"),
            ("traces/ncu_details_text/rtx40_failed_nan.txt",
             r"no kernel launch with a positive time \(1 without\); .*==ERROR== LaunchFailed$"),
            ("traces/ncu_summary_per_kernel/jetson_thor_saxpy.csv",
             "row 1: Nsight Compute's summary of kernels is not read; export the launches: ncu"),
            ("traces/ncu_summary_per_kernel/rtx40_heat3d.txt",
             "row 45: a summary of kernels is not read; export the launches: ncu --import"),
        ],
    )  # fmt: skip
    def test_refused(self, data_folder: Path, name: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            run_of(data_folder / name)


@pytest.mark.parametrize("page", [long_page(), wide_page()], ids=["details", "raw"])
def test_both_pages_give_the_same(tmp_path: Path, page: str) -> None:
    """16 workgroups of 128; 10 us; 20 Kbyte are 20000, and 5,000 byte have a comma."""
    run = run_of_text(tmp_path, page)
    assert list(run.groups) == [(K, 16, 128, "")]
    assert only(run).time_s == pytest.approx(1e-5)
    means = only(run).means()
    assert (means[READ], means["dram__bytes_write.sum"]) == (20_000, 5000)
    assert means["sm__inst_executed_pipe_fma.sum"] == 200
    assert "sm__inst_executed_pipe_fp16.sum" not in means  # n/a
    assert run.facts.application == "app"


def test_a_launch_in_two_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1000 bytes, in which no launch of 17 rows fits, give what one gives."""
    page = long_page(*(long_rows(i, metrics={**NCU, TIME: ("us", f"{i + 1}")}) for i in range(9)))
    whole = run_of_text(tmp_path, page)
    monkeypatch.setattr(files, "BLOCK", 1000)
    assert run_of_text(tmp_path, page).groups == whole.groups
    assert totals(whole) == (1, 9, pytest.approx(0.045))


def test_output_of_the_program_around_and_between(tmp_path: Path) -> None:
    rows = long_rows(0) + "step 1, loss 2\n" + long_rows(1) + "==PROF== Disconnected\nbye, 1\n"
    text = long_page(rows, before="device: GPU\nID, name\n==PROF== Disconnected from process 77\n")
    assert totals(run_of_text(tmp_path, text)) == (1, 2, pytest.approx(0.02))


@pytest.mark.parametrize(
    ("name", "unit", "value", "expected"),
    [
        ("Duration", "msecond", "0.5", 5e-4), ("Duration", "us", "1,250.5", 1.2505e-3),
        (READ, "Kbyte", "393.22", 393_220), (READ, "Mbyte", "3.35", 3.35e6),
        ("Memory Throughput", "Gbyte/s", "32", 32e9), ("Memory Throughput", "%", "60", 60),
        (READ, "byte", "7 (3; 4)", 7),
    ],
)  # fmt: skip
def test_units(tmp_path: Path, name: str, unit: str, value: str, expected: float) -> None:
    """Prefixes are decimal; one shown name has two meanings, by its unit."""
    raw = {("Memory Throughput", "%"): MEMORY, ("Memory Throughput", "Gbyte/s"):
           "dram__bytes.sum.per_second"}.get((name, unit), name)  # fmt: skip
    page = long_page(long_rows(metrics={name: (unit, value)}))
    sums = only(run_of_text(tmp_path, page))
    assert (sums.time_s if name == "Duration" else sums.means()[raw]) == pytest.approx(expected)


def test_a_raw_name_comes_before_what_a_section_shows(tmp_path: Path) -> None:
    """Sections round: 12.35 us are shown of 12,346 ns."""
    both = {"Duration": ("us", "12.35"), TIME: ("nsecond", "12346")}
    for metrics in (NCU | both, both | NCU | both):
        page = long_page(long_rows(metrics=metrics))
        assert only(run_of_text(tmp_path, page)).time_s == pytest.approx(12_346e-9)


@pytest.mark.parametrize(
    ("metrics", "facts"),
    [
        ({"gpc__cycles_elapsed.avg.per_second": ("Ghz", "1.20")}, {"engine_mhz": {1200: 1}}),
        ({"Elapsed Cycles": ("cycle", "12,000")}, {"engine_mhz": {1200: 1}}),  # in 10 us
        ({"device__attribute_memory_clock_rate": ("", "2619000")}, {"memory_limit_mhz": {2619: 1}}),
        ({"# SMs": ("SM", "36")}, {"cu_count": {36: 1}}),
        ({"device__attribute_display_name": ("", "NVIDIA L4")}, {"device_name": {"NVIDIA L4": 1}}),
    ],
)
def test_what_it_says_of_the_gpu(
    tmp_path: Path, metrics: dict[str, tuple[str, str]], facts: dict[str, dict[float, int]]
) -> None:
    page = long_page(long_rows(metrics={TIME: ("us", "10"), **metrics}))
    assert run_of_text(tmp_path, page).facts.seen == facts


@pytest.mark.parametrize(
    "page",
    [
        long_page(long_rows(0), long_rows(1, gpu=1)),
        wide_page([{}, {"Device": "1"}]),
        NCU_TEXT.replace("Device 0", "Device 1").replace("Device 1", "Device 0", 1),
    ],
    ids=["details", "raw", "text"],
)
def test_of_several_gpus_one_is_chosen(tmp_path: Path, page: str) -> None:
    with pytest.raises(InputError, match=r"is of GPUs 0 \(1 launch\), 1 \(1 launch\); name one"):
        run_of_text(tmp_path, page)
    run = run_of_text(tmp_path, page, gpu="1")
    assert (run.gpu, run.gpus, only(run).launches) == ("1", ("0", "1"), 1)


def test_a_raw_launch_that_failed_is_dropped(tmp_path: Path) -> None:
    failed = dict.fromkeys(NCU, "(!) nan") | {"Grid Size": "(0, 0, 0)"}
    run = run_of_text(tmp_path, wide_page([{}, failed]))
    assert (run.dropped, run.untimed, only(run).launches) == (1, {K}, 1)


class TestText:
    @pytest.mark.parametrize("rows_at_once", [10_000, 1])
    def test_launches(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
    ) -> None:
        """20 us and 0.04 ms are 30 us in the mean; 20 and 30 % are 25 %."""
        monkeypatch.setattr(ncu, "_AT_ONCE", rows_at_once)
        run = run_of_text(tmp_path, NCU_TEXT)
        [(key, sums)] = run.groups.items()
        assert key == ("void add<float, 2>(float *, int)", 16, 128, "")
        assert (sums.launches, sums.time_s) == (2, pytest.approx(30e-6))
        assert sums.means()[DRAM] == 25
        assert run.facts.application == "app"
        assert run.facts.seen == {
            "engine_mhz": {1000: 1}, "memory_mhz": {500: 1}, "cu_count": {4: 1}
        }  # fmt: skip

    def test_blanks_gained_in_a_paste(self, tmp_path: Path) -> None:
        """Each launch has its own time, none that of the one above."""
        pasted = "".join(f"    {line}" for line in NCU_TEXT.splitlines(keepends=True))
        assert run_of_text(tmp_path, pasted).groups == run_of_text(tmp_path, NCU_TEXT).groups


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (long_page().replace('"20"', '"twenty"'),
         r"row 12, column 'Metric Value': 'twenty' is not a number"),
        (long_page().replace('"20"', '"20,5"'), "row 12, column 'Metric Value': .*decimal comma"),
        (long_page().replace("Kbyte", "Kword"),
         "row 17, column 'Metric Value': has a unit that mlscale does not know; .*--print-units"),
        (long_page().replace("(8, 2, 1)", "(8, 0, 1)"), r"column 'Grid Size': .* has a size of 0"),
        (long_page(long_rows(kernel="")), "row 3: the kernel's name is empty"),
        (wide_page(units=False), "row 2: the row of units is missing below the header"),
        (wide_page().replace('"150"', '"1.5.0"'), "row 3, column 'sm__inst_executed_pipe_alu.sum'"),
        (long_page()[:-30], "row 19: is not valid CSV: .* cut off"),
        (long_page(long_rows(), long_rows(1), long_rows()),
         "row 37: launch 0 comes again; give one report's page"),
        (wide_page() + wide_page().splitlines()[-1], "row 4: launch 0 comes again"),
        (long_page(long_rows(metrics={TIME: ("", "10000")})),
         "row 3, column 'Metric Value': has a unit that mlscale does not know"),
    ],
)  # fmt: skip
def test_made_files_that_are_refused(tmp_path: Path, page: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_of_text(tmp_path, page)
