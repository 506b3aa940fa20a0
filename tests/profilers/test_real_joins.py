"""Real files of two tools joined: counters of one, times of the other, both of one program.

Expected numbers are the files' own, as the docstrings say; the shares without such a source are
regression only.
"""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mlscale import InputError
from mlscale.profilers import ImportedTable, import_exports
from mlscale.profilers.exports.sqlite import open_read_only
from mlscale.profilers.names import same_kernels

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
DETAILS = "ncu_details_csv/rtx5090_kernel0003_details.csv"


def joined(folder: Path, *names: str, device: str, **base: float) -> ImportedTable:
    paths = [folder / "traces" / name for name in names]
    return import_exports(paths, device=device, base=base)


def test_one_kernel_counted_by_ncu_of_a_run_traced_by_nsys(data_folder: Path) -> None:
    """nsys says of that kernel: 6.1 % of the time, 302283088 ns in 37853 instances."""
    imported = joined(
        data_folder, DETAILS, "nsys_kern_sum_csv/rtx5090_dsocr_all.csv", device="rtx5090"
    )
    assert imported.covered == pytest.approx(0.061, abs=0.0005)
    counted = np.isfinite(imported.table.numbers["dram_utilisation"])
    assert imported.table.numbers["launches"][counted].tolist() == [37853]
    assert imported.table.numbers["total_time_ms"][counted] == pytest.approx([302.283088])
    assert imported.tool == "ncu"


def test_mangled_names_of_nsys_are_those_of_their_kernels(data_folder: Path) -> None:
    """The SQLite of 23 kernels has both names of each; eight are of a function with variants."""
    database = open_read_only(data_folder / "traces/nsys_sqlite/rtxa4500_torch_ex.sqlite")
    with closing(database):
        named = dict(
            database.execute(
                "SELECT DISTINCT mangled.value, name.value FROM CUPTI_ACTIVITY_KIND_KERNEL "
                "JOIN StringIds AS mangled ON mangled.id = mangledName "
                "JOIN StringIds AS name ON name.id = demangledName"
            )
        )
    joins = same_kernels(named.values(), named)
    assert all((named[mangled],) == join.counted for join in joins for mangled in join.traced)
    assert (len(named), len(joins)) == (23, 15)


def test_passes_of_rocprofv3_and_its_trace(data_folder: Path) -> None:
    """The trace has 144 dispatches that take 1857381 ns, copies of the runtime among them.

    A kernel and a copy were counted with a grid that the trace has not, and are left out.
    """
    imported = joined(
        data_folder,
        "rocprofv3_counter_collection/gfx1151_decode_stall.csv",
        "rocprofv3_kernel_trace/gfx1151_llama_decode.csv",
        device="gfx1151",
        cu_count=40.0,
        engine_mhz=2900.0,
        memory_mhz=1000.0,
    )
    assert imported.launches == imported.table.numbers["launches"].sum() == 144
    assert imported.table.numbers["total_time_ms"].sum() == pytest.approx(1.857381)
    assert imported.time_ms == pytest.approx(1.857381)
    assert imported.table.metadata["idle_ms"] > 0


def test_the_trace_of_another_program_is_refused(data_folder: Path) -> None:
    with pytest.raises(InputError, match=r"has no kernel of .* is it of another run"):
        joined(data_folder, DETAILS, "nsys_kern_sum_csv/a100_vllm_qwen7b.csv", device="rtx5090")
