"""Wang and Chu's inputs from ncu's metrics, of files written by hand, and from real exports."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from synthetic import exports
from synthetic.warps import GTX_980, KERNEL, derive

from mlscale.collect.recording import metrics
from mlscale.errors import InputError
from mlscale.papers.wang_chu_inputs import COUNTERS, derive_inputs
from mlscale.readers.mapping import lacking_for_nvprof
from mlscale.readers.reading import import_profile

# KERNEL of synthetic.warps as ncu would count it: 25 blocks of 4 warps; 50 of the L2's sectors are
# atomics, which nvprof counts as reads and as writes.
METRICS = {
    "device__attribute_display_name": ("", "NVIDIA H200"),
    "device__attribute_multiprocessor_count": ("", "132"),
    "gpu__time_duration.sum": ("ms", "1"),
    "sm__cycles_elapsed.avg.per_second": ("hz", "1500000000"),
    "dram__cycles_elapsed.avg.per_second": ("hz", "3201000000"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "50"),
    "sm__inst_executed.sum": ("inst", "5,000"),
    "sm__inst_executed_pipe_fp64.sum": ("inst", "0"),
    "sm__sass_inst_executed_op_global_ld.sum": ("inst", "200"),
    "sm__sass_inst_executed_op_global_st.sum": ("inst", "100"),
    "sm__sass_inst_executed_op_shared_ld.sum": ("inst", "500"),
    "sm__sass_inst_executed_op_shared_st.sum": ("inst", "0"),
    "dram__bytes_read.sum": ("byte", "19200"),
    "dram__bytes_write.sum": ("Kbyte", "6.4"),
    "lts__t_sectors_op_read.sum": ("sector", "1150"),
    "lts__t_sectors_op_write.sum": ("sector", "350"),
    "lts__t_sectors_op_atom.sum": ("sector", "30"),
    "lts__t_sectors_op_red.sum": ("sector", "20"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", "1600"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sector", "400"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("", "1000"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": ("", "0"),
}
CLOCKS = {"engine_mhz": 1500.0, "memory_mhz": 3201.0}
RTX_5070 = "profiler-exports/ncu_details/rtx5070_ncu2026.2_gemm_tiled.csv"


def export(folder: Path, *without: str) -> Path:
    """The details of one launch of KERNEL."""
    kept = {name: cells for name, cells in METRICS.items() if name not in without}
    path = folder / "h200.csv"
    path.write_text(exports.long_page(exports.long_rows(metrics=kept, grid="(25, 1, 1)")))
    return path


def test_ncu_and_nvprof_give_the_same_inputs(tmp_path: Path) -> None:
    """Both count one kernel, whose inputs synthetic.warps has by hand."""
    profiles = import_profile(export(tmp_path), base=CLOCKS)
    for name, value in KERNEL.items():
        if name != "tex_cache_transactions":
            count = profiles.counter(name)[0]
            is_missing = value == 0 and name.endswith("_per_request")  # 0 of 0, which ncu omits
            assert np.isnan(count) if is_missing else count == pytest.approx(value)
    from_ncu, from_nvprof = derive_inputs(profiles, GTX_980), derive(KERNEL)
    for field in fields(from_ncu):
        if field.name != "flags":
            values = getattr(from_ncu, field.name)
            np.testing.assert_allclose(values, getattr(from_nvprof, field.name), err_msg=field.name)


def test_what_ncu_was_not_asked_for_is_named(tmp_path: Path) -> None:
    lacking = ("lts__t_sectors_op_read.sum", "dram__bytes_read.sum")
    profiles = import_profile(export(tmp_path, *lacking), base=CLOCKS)
    assert not profiles.has_counter("achieved_occupancy")  # all of them, or none
    with pytest.raises(InputError, match=r"lacks dram__bytes_read.sum, lts__t_sectors_op_read.sum"):
        derive_inputs(profiles, GTX_980)


@pytest.mark.parametrize("capability", [70, 90, 120])
def test_what_collect_asks_for_is_enough(capability: int) -> None:
    assert set(lacking_for_nvprof("ncu", ())) == set(COUNTERS) - {"warps"}
    assert not lacking_for_nvprof("ncu", metrics(capability))


def test_a_real_export_lacks_them(data_folder: Path) -> None:
    """No real export at hand counts L2 sectors; what it lacks is told, by ncu's names."""
    clocks = {"engine_mhz": 2512.0, "memory_mhz": 14001.0}
    profiles = import_profile(data_folder / RTX_5070, device="rtx5070", base=clocks)
    with pytest.raises(InputError, match="lacks") as refused:
        derive_inputs(profiles, GTX_980)
    lacking = str(refused.value).partition(" lacks ")[2].partition(":")[0].split(", ")
    assert lacking == [
        "sm__inst_executed.sum",
        "lts__t_sectors_op_read.sum",
        "lts__t_sectors_op_write.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ]
