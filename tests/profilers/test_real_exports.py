"""The public profiler files: what each gives, numbers read off the files by hand."""

from pathlib import Path
from typing import Any

import pytest

from mlscale import InputError
from mlscale.profilers import ImportedTable, import_exports

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
CLOCKS = {"engine_mhz": 1000.0, "memory_mhz": 1000.0}
# File, device, CUs where nobody says them, then kernels, launches, exact and nearest features.
READ = {
    "ncu_details/rtx5070_ncu2026.2_gemm_tiled.csv": ("rtx5070", 48, 1, 1, 3, 2),
    "ncu_details/rtx5070_ncu2026.2_transpose_tiled.csv": ("rtx5070", 48, 1, 1, 3, 2),
    "ncu_raw/b200_torch_sdpa_flash.csv": (None, None, 2, 16, 2, 0),
    "rocprof_v1/enccs_nbody_counters_timestamp.csv": ("mi250x", None, 1, 1, 15, 2),
    "rocprof_v1/enccs_nbody_results_stats_timing.csv": ("mi250x", None, 1, 10, 1, 0),
    "rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv": ("mi210", None, 1, 3, 17, 1),
    "rocprof_v1_renamed/mi200_vcopy_SQ_LEVEL_WAVES.csv": ("mi210", None, 1, 3, 1, 0),
    "rocprof_v1_renamed/mi200_vcopy_timestamps.csv": ("mi210", None, 1, 3, 1, 0),
    "rocprof_v2/mi300a_vcopy_SQ_LEVEL_WAVES.csv": ("mi300a", None, 1, 3, 1, 0),
    "rocprof_v2/mi300a_vcopy_pmc_perf_merged.csv": ("mi300a", None, 1, 3, 17, 1),
    "rocprofv3/sdkdocs_kernel_trace.csv": ("mi300x", None, 4, 9, 1, 0),
    "rocprofv3/sdkdocs_kernel_trace_truncated_names.csv": ("mi300x", None, 4, 4, 1, 0),
    "rocprofv3/sdkdocs_counter_collection.csv": ("mi300x", None, 4, 4, 1, 0),
    "rocprofv3_merged/mi300x_vcopy_rocpd_long_rows_filtered.csv": ("mi300x", None, 1, 3, 8, 1),
}
NVPROF = "nvprof's exports are not read; profile with ncu --csv"
REFUSED = {
    "ncu_failed/no_csv_application_error.csv": "==ERROR== The application returned an error code",
    "nvprof_gpu_trace/gtx1080ti_binomialOptions_trace.csv": NVPROF,
    "nvprof_gpu_trace/titanxp_cfd_trace_head25_tail25.csv": NVPROF,
    "nvprof_summary/titanxp_cfd_summary.csv": NVPROF,
    "nvprof_metrics/p100_srad_v1_metrics.log": NVPROF,
    "nvprof_metrics/p100_myocyte_metrics.log": NVPROF,
    "codexl/ati_stream_profiler_2010_Session1.csv": "CodeXL's files are not read; AMD's rocprofv3",
    "codexl/openmm_issue2894_gcn_counters_NOT_CSV.md": "holds no table",
    "codexl/codexl_issue49_header_line_semicolon.txt": "CodeXL's files are not read",
}


def load(folder: Path, *names: str, **options: Any) -> ImportedTable:
    return import_exports([folder / "profiler-exports" / n for n in names], **options)


def test_every_file_is_here(data_folder: Path) -> None:
    folder = data_folder / "profiler-exports"
    files = {str(p.relative_to(folder)) for p in folder.glob("*/*")}
    alone = {"ncu_details/v100_2020_12col_resaved.csv"}  # in a test of its own below
    assert files == READ.keys() | REFUSED.keys() | alone


@pytest.mark.parametrize("name", READ)
def test_is_read(data_folder: Path, name: str) -> None:
    device, cu_count, kernels, launches, exact, nearest = READ[name]
    base = dict(CLOCKS) if cu_count is None else {"cu_count": float(cu_count), **CLOCKS}
    if device == "rtx5070":
        base["memory_mhz"] = 14001.0  # at the made clock its traffic would be above the peak
    imported = load(data_folder, name, device=device, base=base)
    statuses = [feature.status for feature in imported.features.values()]
    assert (imported.kernels, imported.launches) == (kernels, launches)
    assert (statuses.count("exact"), statuses.count("nearest")) == (exact, nearest)


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(data_folder: Path, name: str) -> None:
    with pytest.raises(InputError, match=REFUSED[name]):
        load(data_folder, name, device=None, base=CLOCKS)


def test_numbers_of_the_rtx_5070(data_folder: Path) -> None:
    """Duration 10,195,552 ns; dram__bytes_op_read 53,261,312 byte; grid 64 x 64 (the file)."""
    name = "ncu_details/rtx5070_ncu2026.2_gemm_tiled.csv"
    imported = load(data_folder, name, device="rtx5070", base={"cu_count": 48.0, **CLOCKS})
    numbers = imported.table.numbers
    assert numbers["time_ms"][0] == pytest.approx(10.195552)
    assert numbers["ReadBandwidth"][0] == pytest.approx(53_261_312 / 10.195552e-3)
    assert numbers["workgroups"][0] == 4096


def test_clocks_of_the_v100(data_folder: Path) -> None:
    """About 1304 MHz and 873 MHz are in the file, and that is less than 1 % from 877 (HBM2)."""
    name = "ncu_details/v100_2020_12col_resaved.csv"
    imported = load(data_folder, name, device="v100", base={})
    assert imported.launches == 7
    assert imported.table.numbers["engine_mhz"][0] == 1304
    assert imported.table.numbers["memory_mhz"][0] == pytest.approx(877, rel=0.01)
    with pytest.raises(InputError, match="engine_mhz was 1304 while profiling, --base says 1000"):
        load(data_folder, name, device="v100", base=CLOCKS)


def test_mi200_vcopy(data_folder: Path) -> None:
    """4096 workgroups = SPI_CSN_NUM_THREADGROUPS; a copy of 8 MB reads 8 MB in 64 B requests."""
    name = "rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv"
    imported = load(data_folder, name, device="mi210", base=CLOCKS)
    numbers = {n: float(v[0]) for n, v in imported.table.numbers.items()}
    assert numbers["workgroups"] == 4096
    bytes_read = numbers["ReadBandwidth"] * numbers["time_ms"] / 1e3
    assert bytes_read == pytest.approx(8 * 1048576, rel=0.01)
    shares = [n for n in numbers if n.endswith("Insts")]
    assert sum(numbers[n] for n in shares) == pytest.approx(100)
