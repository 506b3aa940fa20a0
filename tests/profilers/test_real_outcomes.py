"""Every real export of ncu and rocprof: from the file to a prediction, or what it lacks.

The GPU is the one that the file's origin names (or one of its maker's, where that names none); a
clock is given where the file does not say it, and is then the memory's of the data sheet and
a made one of the engine.
"""

from pathlib import Path

import pytest

from mlscale import InputError, load
from mlscale.counters.kernel_use import kernel_use, use_sources
from mlscale.data.grid import ConfigGrid, HardwareConfig, parse_settings
from mlscale.data.profiles import Profiles
from mlscale.data.public import path as shipped
from mlscale.profilers import import_profile

PE, TR = "profiler-exports", "traces"
BYTES, DRAM, BUSIEST = "DRAM bytes", "DRAM throughput, % of peak", "memory throughput"
CLOCKS = {
    "rtx5070": (1500, 14001), "rtx5090": (1500, 14001), "b200": (1500, 3996),
    "a100-pcie-40gb": (1410, 1215), "mi210": (1700, 1600), "mi250x-gcd": (1700, 1600),
    "mi300a": (2100, 1300), "mi300x": (2100, 1300), "radeon8060s": (2900, 1000),
}  # fmt: skip
# File, its GPU, what of the base the file does not say, from what the DRAM use is, the first one.
PREDICTED = [
    (f"{PE}/ncu_details/rtx5070_ncu2026.2_gemm_tiled.csv", "rtx5070", "both", BYTES, 0.00827),
    (f"{PE}/ncu_details/rtx5070_ncu2026.2_transpose_tiled.csv", "rtx5070", "both", BYTES, 0.521),
    (f"{PE}/ncu_details/v100_2020_12col_resaved.csv", "v100", "", BYTES, 0.731),
    (f"{PE}/rocprof_v1/enccs_nbody_counters_timestamp.csv", "mi250x-gcd", "both", BYTES, 0.00041),
    (f"{PE}/rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv", "mi210", "both", BYTES, 0.527),
    (f"{PE}/rocprof_v2/mi300a_vcopy_pmc_perf_merged.csv", "mi300a", "both", BYTES, 0.446),
    (f"{PE}/rocprofv3_merged/mi300x_vcopy_rocpd_long_rows_filtered.csv", "mi300x", "both", BYTES,
     0.459),
    (f"{TR}/ncu_details_csv/b200_cublaslt_base_units.csv", "gb200", "", DRAM, 0.0074),
    (f"{TR}/ncu_details_csv/rtx5090_kernel0003_details.csv", "rtx5090", "", BYTES, 0.0813),
    (f"{TR}/ncu_details_csv/torch_gcn_nvtx.csv", "a100-pcie-40gb", "both", DRAM, 0.014),
    (f"{TR}/ncu_details_text/rtx4090_flashinfer_issue188.txt", "rtx4090", "", DRAM, 0.9459),
    (f"{TR}/ncu_details_text/rtx_utf16_windows.txt", "rtx4090", "engine=2033,memory=9497",
     DRAM, 0.0),
    (f"{TR}/ncu_metrics_csv/rtx5090_kernel0003_metrics.csv", "rtx5090", "both", BYTES, 0.0798),
    (f"{TR}/ncu_metrics_text/torch_gcn_nvtx.txt", "a100-pcie-40gb", "both", DRAM, 0.0141),
    (f"{TR}/ncu_speedoflight_csv/rtx5090_kernel0003_sol.csv", "rtx5090", "", DRAM, 0.0813),
    (f"{TR}/pmc_perf/mi200_device_filter_pmc_perf.csv", "mi210", "both", BYTES, 0.525),
    (f"{TR}/pmc_perf/mi300x_bmm1_pmc_perf.csv", "mi300x", "both", BYTES, 0.404),
]  # fmt: skip
NO_DRAM, NO_TIME = "needs the DRAM traffic", "says no time of"
NO_SUMMARY, STATISTICS = "summary of kernels is not read; export", "statistics, .*; give …_kernel"
TIMES_ALONE = "no kernel has counters, .* profile the kernels of most time"
REFUSED = [
    (f"{PE}/ncu_failed/no_csv_application_error.csv", "b200", "application returned an error"),
    (f"{PE}/ncu_raw/b200_torch_sdpa_flash.csv", "b200", NO_DRAM),
    (f"{PE}/rocprof_v1/enccs_nbody_results_stats_timing.csv", "mi250x-gcd", TIMES_ALONE),
    (f"{PE}/rocprof_v1_renamed/mi200_vcopy_SQ_LEVEL_WAVES.csv", "mi210", NO_DRAM),
    (f"{PE}/rocprof_v1_renamed/mi200_vcopy_timestamps.csv", "mi210", TIMES_ALONE),
    (f"{PE}/rocprof_v2/mi300a_vcopy_SQ_LEVEL_WAVES.csv", "mi300a", NO_DRAM),
    (f"{PE}/rocprofv3/sdkdocs_counter_collection.csv", "mi300x", NO_DRAM),
    (f"{PE}/rocprofv3/sdkdocs_kernel_trace.csv", "mi300x", TIMES_ALONE),
    (f"{PE}/rocprofv3/sdkdocs_kernel_trace_truncated_names.csv", "mi300x", TIMES_ALONE),
    (f"{TR}/ncu_details_text/rtx40_failed_nan.txt", "rtx4090", "says: ==ERROR== LaunchFailed"),
    (f"{TR}/ncu_metrics_text/rtx4070l_pfac_windows.txt", "rtx4070", NO_TIME),
    (f"{TR}/ncu_raw_csv/b200_flashinfer_raw.csv", "b200", NO_DRAM),
    (f"{TR}/ncu_speedoflight_csv/rtx5090_kernel0003_memory.csv", "rtx5090", NO_TIME),
    (f"{TR}/ncu_summary_per_kernel/jetson_thor_saxpy.csv", "jetson-thor", NO_SUMMARY),
    (f"{TR}/ncu_summary_per_kernel/rtx40_heat3d.txt", "rtx4060ti-16gb", NO_SUMMARY),
    (f"{TR}/pmc_perf/mi300x_bmm1_sysinfo.csv", "mi300x", "tells of a machine, not of kernels"),
    (f"{TR}/rocprof_stats/hip_vecadd_results.stats.csv", "mi300x", STATISTICS),
    (f"{TR}/rocprof_stats/rocm_blog_results.csv", "mi300x", TIMES_ALONE),
    (f"{TR}/rocprof_stats/rocm_blog_sys_trace_results.stats.csv", "mi300x", STATISTICS),
    (f"{TR}/rocprofv3_counter_collection/gfx1151_decode_stall.csv", "radeon8060s", NO_DRAM),
    (f"{TR}/rocprofv3_counter_collection/rocm6_docs.csv", "mi300x", NO_TIME),
    (f"{TR}/rocprofv3_kernel_stats/hip_api_stats_NOT_kernels.csv", "mi300x", STATISTICS),
    (f"{TR}/rocprofv3_kernel_stats/pytorch_resnet_mpi_rank.csv", "mi300x", STATISTICS),
    (f"{TR}/rocprofv3_kernel_stats/pytorch_resnet_single.csv", "mi300x", STATISTICS),
    (f"{TR}/rocprofv3_kernel_trace/gfx1151_llama_decode.csv", "radeon8060s", TIMES_ALONE),
    (f"{TR}/rocprofv3_kernel_trace/rocm6_docs.csv", "mi300x", TIMES_ALONE),
]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")


def base_of(device: str, given: str) -> dict[str, float]:
    if given == "both":
        engine_mhz, memory_mhz = map(float, CLOCKS[device])
        return {"engine_mhz": engine_mhz, "memory_mhz": memory_mhz}
    return parse_settings(given) if given else {}


def predict_at_four_fifths(profiles: Profiles) -> float:
    """The largest time factor at 0.8 of the engine clock, by the shipped model."""
    base = profiles.base
    lower = HardwareConfig(base.cu_count, 0.8 * base.engine_mhz, base.memory_mhz)
    model = load(shipped("simulated-gcn3.mlscale"))
    model = model.for_gpu(profiles.device, ConfigGrid.spanning([base, lower]), base)
    return float(model.predict(profiles, 0.9).surfaces["time"].values.max())


def test_every_file_is_here(data_folder: Path) -> None:
    files = {
        str(file.relative_to(data_folder))
        for folder in (PE, TR)
        for kind in ("ncu", "rocprof", "pmc")
        for file in (data_folder / folder).glob(f"{kind}*/*")
    }
    assert files == {row[0] for row in (*PREDICTED, *REFUSED)}


@pytest.mark.parametrize(("name", "device", "given", "source", "share"), PREDICTED)
def test_reaches_a_prediction(
    data_folder: Path, name: str, device: str, given: str, source: str, share: float
) -> None:
    """The shares that ncu printed itself (0.7311, 0.0813, …) are met by those from bytes.

    Other shares are regression only. Slower clocks take longer, but never by more than the clock.
    """
    profiles = import_profile(data_folder / name, device=device, base=base_of(device, given))
    assert use_sources(profiles)["memory"] == (source,)
    of_the_program = [not name.startswith("__amd_rocclr_") for name in profiles.kernels]
    assert kernel_use(profiles).memory[of_the_program][0] == pytest.approx(share, rel=0.02)
    assert 1 <= predict_at_four_fifths(profiles) <= 1.2501


@pytest.mark.parametrize(("name", "device", "lacks"), REFUSED)
def test_says_what_it_lacks(data_folder: Path, name: str, device: str, lacks: str) -> None:
    base = base_of(device, "both" if device in CLOCKS else "")
    with pytest.raises(InputError, match=lacks) as refusal:
        predict_at_four_fifths(import_profile(data_folder / name, device=device, base=base))
    assert "\n" not in str(refusal.value)
