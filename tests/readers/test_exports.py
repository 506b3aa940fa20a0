"""Real exports of profilers: launches, times, counters and GPUs of each, and what is refused.

Launches, times and counters were summed up by pandas, the csv module, SQL and json from the same
files; metrics are read off them. Of rocpd no real database was at hand.

Those of tests/h100 are of 2026-11-26, driver 580.159.04, ncu 2025.3.1, PyTorch 2.11. What they say
is held against what CUDA's events and NVML said of the same work outside any tool
(`datasets/h100-operations.csv`). gemm_bf16_8192-dcgmi.txt is NVML's GPM in dcgmi dmon's columns.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Capture, succeed
from summed_runs import only, run_of, totals
from synthetic.tidy import refused

from mlscale.data.datasets import path
from mlscale.data.table import Table
from mlscale.data.table_files import read_table
from mlscale.readers import files

H100 = Path(__file__).parents[1] / "h100"
H100_NAME = {"device_name": {"NVIDIA H100 80GB HBM3": 1}}
PE, TR = "profiler-exports", "traces"
V1_COUNTERS = f"{PE}/rocprof_v1/enccs_nbody_counters_timestamp.csv"
V1_PASSES = f"{PE}/rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv"
V3_PASSES = f"{PE}/rocprofv3_merged/mi300x_vcopy_rocpd_long_rows_filtered.csv"
V3_STALLS = f"{TR}/rocprofv3_counter_collection/gfx1151_decode_stall.csv"
RTX4090 = f"{TR}/ncu_details_text/rtx4090_flashinfer_issue188.txt"

# File, kind of tool, groups of launches, launches, time of them all [ms], the GPU's number.
REAL = [
    (f"{PE}/ncu_details/rtx5070_ncu2026.2_gemm_tiled.csv", "ncu", 1, 1, 10.195552, "0"),
    (f"{PE}/ncu_details/v100_2020_12col_resaved.csv", "ncu", 1, 7, 1.48768, ""),
    (f"{PE}/ncu_raw/b200_torch_sdpa_flash.csv", "ncu", 2, 16, 3.262944, "0"),
    (f"{TR}/ncu_details_csv/b200_cublaslt_base_units.csv", "ncu", 1, 1, 0.40624, "0"),
    (f"{TR}/ncu_details_csv/rtx5090_kernel0003_details.csv", "ncu", 1, 1, 0.02342, "0"),
    (f"{TR}/ncu_details_csv/torch_gcn_nvtx.csv", "ncu", 11, 12, 0.067008, ""),
    (f"{TR}/ncu_raw_csv/b200_flashinfer_raw.csv", "ncu", 2, 6, 0.133952, "0"),
    (RTX4090, "ncu", 1, 1, 0.27216, "0"),
    (f"{TR}/ncu_details_text/rtx_utf16_windows.txt", "ncu", 2, 6, 157.53649, ""),
    (f"{TR}/ncu_metrics_text/torch_gcn_nvtx.txt", "ncu", 13, 14, 0.07942, ""),
    (f"{TR}/ncu_metrics_text/rtx4070l_pfac_windows.txt", "ncu", 14, 18, 0.0, "0"),  # without times
    (f"{TR}/nsys_gpu_trace_csv/rtxa4500_torch_ex.csv", "nsys", 40, 2482, 339.300381, "0"),
    (f"{TR}/nsys_kern_sum_csv/a100_vllm_qwen7b.csv", "nsys", 65, 39_002, 2081.145534, ""),
    (f"{TR}/nsys_kern_sum_csv/rtx5090_dsocr_all.csv", "nsys", 113, 1_695_983, 4946.064742, ""),
    (f"{TR}/nsys_kern_sum_csv/rtx5090_projector_tiny.csv", "nsys", 2, 2, 0.035488, ""),
    (f"{TR}/nsys_sqlite/rtxa4500_torch_ex.sqlite", "nsys", 45, 2482, 339.300381, "0"),
    (f"{TR}/nsys_sqlite/t4_sptrsv_ca.sqlite", "nsys", 38, 874, 61.898238, "0"),
    (f"{TR}/nsys_sqlite/t4_vecadd_old_schema.sqlite", "nsys", 1, 2, 0.008511, "0"),
    (V1_COUNTERS, "rocprof", 1, 1, 26.326497, "0"),
    (f"{PE}/rocprof_v1/enccs_nbody_results_stats_timing.csv", "rocprof", 1, 10, 261.124944, "0"),
    (V1_PASSES, "rocprof", 1, 3, 0.05232, "2"),
    (f"{PE}/rocprof_v1_renamed/mi200_vcopy_timestamps.csv", "rocprof", 1, 3, 0.05232, "2"),
    (f"{PE}/rocprof_v2/mi300a_vcopy_pmc_perf_merged.csv", "rocprof", 1, 3, 0.021192, "11995"),
    (f"{PE}/rocprofv3/sdkdocs_counter_collection.csv", "rocprofv3", 4, 4, 0.1969, "1"),
    (f"{PE}/rocprofv3/sdkdocs_kernel_trace.csv", "rocprofv3", 4, 9, 0.09616, "4"),
    (f"{TR}/pmc_perf/mi300x_bmm1_pmc_perf.csv", "rocprof", 2, 10, 0.193756395, "0"),
    (f"{TR}/rocprof_stats/rocm_blog_results.csv", "rocprof", 1, 1, 0.00784, "2"),
    (f"{TR}/rocprof_stats/hip_vecadd_results.stats.csv", "rocprof", 1, 1, 3.431611, ""),
    (f"{TR}/rocprofv3_kernel_stats/pytorch_resnet_single.csv", "rocprof", 9, 17311, 95.395329, ""),
    (V3_STALLS, "rocprofv3", 21, 34, 0.463587, "1"),
    (f"{TR}/rocprofv3_counter_collection/rocm6_docs.csv", "rocprofv3", 3, 7, 0.0, "1"),  # as above
    (f"{TR}/rocprofv3_kernel_trace/gfx1151_llama_decode.csv", "rocprofv3", 21, 144, 1.857381, "1"),
    (f"{TR}/rocprofv3_kernel_trace/rocm6_docs.csv", "rocprofv3", 3, 7, 0.795453, "1"),
    (f"{TR}/torch_chrome_trace/a100_alexnet.json.gz", "torch", 33, 79, 10.692, "0"),
    (f"{TR}/torch_chrome_trace/a100_triton_example.json.gz", "torch", 1, 1, 0.00176, "0"),
    (f"{TR}/torch_chrome_trace/h100_bert_small.json.gz", "torch", 12, 60, 0.307197, "0"),
    (f"{TR}/torch_chrome_trace/mi300x_torch_compile.json.gz", "torch", 8, 12, 12.549021, "2"),
    ("cases/7-trace-empty-gpu-name.json", "torch", 4, 4, 0.036515, "2"),
]


@pytest.mark.parametrize("row", REAL, ids=[row[0] for row in REAL])
@pytest.mark.parametrize("for_arrow", [0, 1 << 40], ids=["arrow", "csv"])
def test_launches_and_time(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch, row: tuple[Any, ...], for_arrow: int
) -> None:
    """Tables by Arrow and by the csv module."""
    name, tool, groups, launches, time_ms, gpu = row
    monkeypatch.setattr(files, "LEAST_FOR_ARROW", for_arrow)
    run = run_of(data_folder / name)
    assert (run.kind.tool, run.gpus) == (tool, (gpu,) if gpu else ())
    assert totals(run) == (groups, launches, pytest.approx(time_ms, abs=1e-9))


@pytest.mark.parametrize(
    ("name", "counter", "total"),
    [
        (V1_COUNTERS, "FetchSize", 9429.1875),
        (V1_PASSES, "TCC_EA_WRREQ_sum", 313_257),
        (V3_STALLS, "GRBM_GUI_ACTIVE", 1_295_813),
        (V3_PASSES, "SQ_WAVES", 3 * 16_384),
        (RTX4090, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 94.59),
    ],
)
def test_counters(data_folder: Path, name: str, counter: str, total: float) -> None:
    groups = run_of(data_folder / name).groups.values()
    assert sum(sums.totals.get(counter, 0.0) for sums in groups) == pytest.approx(total)


def test_passes_in_one_file_are_of_the_same_launches(data_folder: Path) -> None:
    """Three dispatches, in ten passes each: thirty times, three launches."""
    sums = only(run_of(data_folder / V3_PASSES))
    assert (sums.launches, sums.time_count) == (3, 30)


def test_sections_of_a_text_tell_clocks_and_sizes(data_folder: Path) -> None:
    run = run_of(data_folder / RTX4090)
    assert run.facts.seen == {"engine_mhz": {2230: 1}, "memory_mhz": {10240: 1}}
    [key] = run.groups
    assert (key.workgroups, key.workgroup_size) == (1024, 128)


def test_a_machine_without_launches(data_folder: Path) -> None:
    run = run_of(data_folder / TR / "pmc_perf/mi300x_bmm1_sysinfo.csv")
    assert not run.groups
    assert run.facts.seen == {
        "chip": {"MI300X": 1}, "cu_count": {304: 1}, "memory_limit_mhz": {1300: 1},
        "engine_limit_mhz": {2100: 1}, "xcd_count": {8: 1},
    }  # fmt: skip


def test_a_raw_page_of_this_year() -> None:
    run = run_of(H100 / "ncu-gemm.csv")
    [(key, sums)] = run.groups.items()
    assert key == ("nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT", 132, 384, "")
    assert sums.time_s == pytest.approx(1_405_248e-9)
    assert sums.means()["dram__bytes_read.sum"] == 1_250_027_264
    assert run.facts.seen == H100_NAME | {
        "engine_mhz": {1572.923: 1}, "memory_mhz": {2618.855: 1}, "memory_limit_mhz": {2619: 1},
        "cu_count": {132: 1},
    }  # fmt: skip
    assert run.facts.application == "python3.12"


def test_a_step_of_training() -> None:
    run = run_of(H100 / "trace-step.json.gz")
    assert totals(run) == (71, 1302, pytest.approx(30.842625))
    assert run.facts.seen == H100_NAME | {"cu_count": {132: 1}}


SAYS = "the profiler says: "
REFUSED = [
    (f"{PE}/ncu_failed/no_csv_application_error.csv",
     f"no kernel launch; {SAYS}==ERROR== The application returned an error"),
    (f"{TR}/ncu_details_text/rtx40_failed_nan.txt",
     r"no kernel launch with a positive time \(1 without\); .*==ERROR== LaunchFailed$"),
    (f"{TR}/ncu_summary_per_kernel/jetson_thor_saxpy.csv",
     "row 1: Nsight Compute's summary of kernels is not read; export the launches: ncu"),
    (f"{TR}/ncu_summary_per_kernel/rtx40_heat3d.txt",
     "row 45: a summary of kernels is not read; export the launches: ncu --import"),
    (f"{TR}/nsys_kern_sum_csv/gh200_no_kernels_SKIPPED.csv",
     f"has no kernel launch; {SAYS}SKIPPED: .* does not contain CUDA kernel data"),
    (f"{TR}/nsys_gpukernsum_old/vector_add_2021_stats.txt",
     "row 13: this report .* does not list kernels"),
    (f"{TR}/nsys_stats_table/torch_gcn_stats.txt",
     "row 17: .* --report cuda_gpu_trace --format csv"),
    (f"{TR}/rocprofv3_kernel_stats/hip_api_stats_NOT_kernels.csv",
     "'hipStreamCreateWithFlags' is not a kernel: .* Give …_kernel_stats.csv"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message"), REFUSED)
def test_refused(data_folder: Path, name: str, message: str) -> None:
    with refused(message):
        run_of(data_folder / name)


def measured(operation: str) -> dict[str, float]:
    """On all SMs, outside any tool."""
    with path("h100-operations.csv").open(encoding="utf-8") as file:
        [row] = [
            row
            for row in csv.DictReader(file)
            if (row["operation"], row["sm_count"]) == (operation, "132")
        ]
    return {name: float(value) for name, value in row.items() if name != "operation"}


Import = Callable[..., Table]


@pytest.fixture
def imported(capsys: Capture, tmp_path: Path) -> Import:
    """A function: the table that `mlscale import` makes of a file, on all SMs."""

    def of(name: str, *options: str) -> Table:
        succeed(capsys, "import", H100 / name, "-o", tmp_path / "table.csv", *options)
        return read_table(tmp_path / "table.csv")

    return of


@pytest.mark.parametrize(
    ("file", "operation", "off"),
    [("ncu-gemm.csv", "gemm_bf16_8192", 0.01), ("ncu-layernorm.csv", "layernorm", 0.12)],
)
def test_ncu_times_a_launch_as_events_do(
    imported: Import, capsys: Capture, file: str, operation: str, off: float
) -> None:
    """Alone a launch of the layer norm is quicker than one behind another."""
    table = imported(file, "--base", "cu=132")
    assert table.numbers["time_ms"] == pytest.approx([measured(operation)["time_ms"]], rel=off)
    assert table.numbers["memory_mhz"] == pytest.approx([2619], rel=0.001)
    assert [*table.text["device"]] == ["h100-sxm5"]
    out, _ = succeed(capsys, "advise", H100 / file, "--max-slowdown", "5")
    assert out.startswith("  Set the engine clock to ")


def test_a_log_of_nvidia_smi(imported: Import) -> None:
    """Copies of 1 GB for 4 s; the log's power is within 6 % of NVML's, read between its samples."""
    table = imported("copy_1g-nvidia-smi.csv")
    assert table.numbers["power_w"] == pytest.approx([measured("copy_1g")["power_w"]], rel=0.06)
    assert table.numbers["engine_mhz"] == [1980]
    assert table.numbers["time_ms"] == pytest.approx([4100], rel=0.01)


@pytest.mark.filterwarnings("ignore:.*engine_mhz wanders")
def test_shares_by_gpm(imported: Import) -> None:
    """Of a matrix product on tensor cores: no other pipe is at work. The share: regression only."""
    table = imported("gemm_bf16_8192-dcgmi.txt", "--device", "h100-sxm5", "--interval", "0.1")
    assert table.numbers["tensor_active"] == pytest.approx([0.797], abs=1e-3)
    assert table.numbers["fp32_active"] == pytest.approx([0], abs=1e-3)


def test_a_training_step(capsys: Capture) -> None:
    """ncu counted 4 kernels of the trace's 71 in its 45 s; the trace has all launches."""
    asked = [H100 / "ncu-step.csv", H100 / "trace-step.json.gz", "--base", "engine=1980", "--json"]
    run = json.loads(succeed(capsys, "advise", *asked)[0])["run"]
    assert (run["launches"], run["kernels"]) == (1302, 71)
