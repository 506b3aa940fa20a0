"""Every real trace and summary of nsys and PyTorch: launches and totals, or a refusal.

Launches and nanoseconds are those that the collection of the files states after counting them by
other means; of the summaries, the sums of the columns Instances and Total Time, by hand or with the
csv module.
"""

from pathlib import Path

import pytest

from mlscale import InputError
from mlscale.profilers import import_exports

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
CLOCKS = {"engine_mhz": 1000.0, "memory_mhz": 1000.0}
BASE = {"cu_count": 10.0, **CLOCKS}
# File: launches, total time [ns], the GPU that it names with its SMs where it does not say them,
# and the time without a kernel [ns], where it is easily had by hand.
READ: dict[str, tuple[int, float, str | None, int | None, float | None]] = {
    "nsys_gpu_trace_csv/rtxa4500_torch_ex.csv": (
        2482, 339_300_381, "rtx-a4500", None, 526_929_900 - 339_300_381),
    "nsys_sqlite/rtxa4500_torch_ex.sqlite": (
        2482, 339_300_381, "rtx-a4500", None, 526_929_900 - 339_300_381),
    "nsys_sqlite/t4_sptrsv_ca.sqlite": (874, 61_898_238, "t4", None, None),
    "nsys_sqlite/t4_vecadd_old_schema.sqlite": (2, 8_511, "t4", None, 94_942 - 8_511),
    "nsys_kern_sum_csv/a100_vllm_qwen7b.csv": (39_002, 2_081_145_534, None, None, None),
    "nsys_kern_sum_csv/rtx5090_dsocr_all.csv": (1_695_983, 4_946_064_742, None, None, None),
    "nsys_kern_sum_csv/rtx5090_projector_tiny.csv": (2, 35_488, None, None, None),
    "torch_chrome_trace/a100_alexnet.json.gz": (
        79, 10_692_000, "a100-sxm4-40gb", None, None),
    "torch_chrome_trace/a100_triton_example.json.gz": (
        1, 1_760, "a100-sxm4-40gb", None, 0),
    "torch_chrome_trace/h100_bert_small.json.gz": (60, 307_197, "h100-sxm5", None, None),
    "torch_chrome_trace/mi300x_torch_compile.json.gz": (12, 12_549_021, "mi300x", None, None),
}  # fmt: skip
CSV = "or no CSV; give nsys stats --report cuda_gpu_trace --format csv"
REFUSED = {
    "nvprof_gpu_trace_csv/gtx1080ti_sobol_nvprof.csv": "nvprof's exports are not read; profile",
    "nsys_kern_sum_csv/gh200_no_kernels_SKIPPED.csv": "no kernels were traced; the profiler says",
    "nsys_stats_table/a100_laplace_readme.md": CSV,
    "nsys_stats_table/torch_gcn_stats.txt": CSV,
    "nsys_gpukernsum_old/vector_add_2021_stats.txt": CSV,
    "torch_key_averages/square_cuda.txt": "holds no table that mlscale knows",
    "torch_key_averages/rocm_blog_four_tables.txt": "holds no table that mlscale knows",
}


def test_every_file_is_here(data_folder: Path) -> None:
    folder = data_folder / "traces"
    files = {
        str(p.relative_to(folder))
        for kind in ("nsys", "nvprof", "torch")
        for p in folder.glob(f"{kind}_*/*")
    }
    assert files == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", READ)
def test_launches_and_their_total(data_folder: Path, name: str) -> None:
    launches, total_ns, device, sms, idle_ns = READ[name]
    base = dict(CLOCKS) if sms is None else {"cu_count": float(sms), **CLOCKS}
    file = data_folder / "traces" / name
    if device is None:
        table = import_exports([file], device="made-gpu", base=BASE).table
    else:
        table = import_exports([file], base=base).table
        assert table.text["device"][0] == device
    assert table.numbers["launches"].sum() == launches
    times_ns = table.numbers["launches"] * table.numbers["time_ms"] * 1e6
    assert times_ns.sum() == pytest.approx(total_ns, rel=1e-9)
    if idle_ns is not None:
        assert table.metadata["idle_ms"] * 1e6 == pytest.approx(idle_ns, abs=1)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(data_folder: Path, name: str) -> None:
    with pytest.raises(InputError, match=REFUSED[name]) as refusal:
        import_exports([data_folder / "traces" / name], device="made-gpu", base=BASE)
    assert "\n" not in str(refusal.value)
