"""The public monitors' logs: what each gives, or the line that refuses it.

Expected numbers were taken from the files with awk: means of a column over the lines named here,
which a tenth of the column's highest value picks out.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from mlscale.errors import InputError
from mlscale.profilers.sampled import RunFacts, SampledTable, import_logs, log_format

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
A100 = {"cu_count": 108, "memory_mhz": 1215}
# File, tool, what the user says, and by GPU what the row holds.
READ: dict[str, tuple[str, dict[str, Any], list[dict[str, float]]]] = {
    # Lines 61 to 261: 167 samples of 0.1 s.
    "dcgmi_dmon/a100_bfs_1005.txt": (
        "dcgm", {"device": "a100-sxm4-40gb", "interval_s": 0.1, "base": A100},
        [{"time_ms": 16700, "engine_mhz": 1005, "memory_mhz": 1215, "power_w": 103.551,
          "gr_engine_active": 0.388754, "sm_active": 0.168946, "dram_active": 0.0308204}],
    ),
    # Lines 91 to 1990, from 11:16:58.590 to 11:33:20.896, and a sample of 0.103 s; a gap inside.
    "nvidia_smi_query/a100_falcon7b.csv": (
        "nvidia-smi", {"device": "a100-sxm4-40gb", "base": {**A100, "engine_mhz": 1410}},
        [{"time_ms": 982_306 + 103, "power_w": 131.962, "gpu_utilisation": 0.840237}],
    ),
    # Line 65 to the end, 02:24:41.678 to 02:25:36.486, and 0.109 s; 497 of 502 at 8001 MHz.
    "nvidia_smi_query/laptop_gpu_nounits.csv": (
        "nvidia-smi", {"device": "laptop", "base": {"cu_count": 20}},
        [{"time_ms": 54_808 + 109, "engine_mhz": 1872, "memory_mhz": 8001, "power_w": 69.6203,
          "gpu_utilisation": 1.0}],
    ),
    # Power alone, 18.81 to 110.85 W: lines 30 to 52, 15:59:00.684 to 15:59:02.888, and 0.1 s.
    "nvidia_smi_query/rtxa4500_power_only.csv": (
        "nvidia-smi",
        {"device": "a4500", "base": {"cu_count": 56, "engine_mhz": 1600, "memory_mhz": 8001}},
        [{"time_ms": 2204 + 100, "engine_mhz": 1600, "power_w": 84.05}],
    ),
    # The one row; power.draw.instant, not power.draw.
    "nvidia_smi_query/h100_all_fields_load.csv": (
        "nvidia-smi", {"time_ms": 10, "base": {"cu_count": 132}},
        [{"time_ms": 10, "engine_mhz": 1980, "memory_mhz": 2619, "power_w": 625.68,
          "gpu_utilisation": 1.0, "memory_copy_utilisation": 0.11}],
    ),
    "nvidia_smi_dmon/h100_load.txt": (
        "nvidia-smi", {"interval_s": 1, "device": "h100-sxm5", "base": {"cu_count": 132}},
        [{"time_ms": 5000, "engine_mhz": 1980, "memory_mhz": 2619, "power_w": 633.6}],
    ),
    # GPU 0: 5, 100 and 100 %, so two samples, of 191 and 244 W; GPU 7: three of 25, 100, 100 %.
    "nvidia_smi_dmon/h800x8.txt": (
        "nvidia-smi", {"interval_s": 5, "device": "h800", "base": {"cu_count": 132}},
        [{"time_ms": 10_000, "power_w": 217.5}, *[{"time_ms": 15_000}] * 6,
         {"time_ms": 15_000, "power_w": (124 + 198 + 214) / 3, "gpu_utilisation": 0.75}],
    ),
}  # fmt: skip
NO_BUSY_SPAN = "has no busy span: {} is at most 0, the GPU is idle"
REFUSED = {
    "dcgmi_dmon/h800_pcie_na.txt": ("dcgm", "has neither activity nor power, no reading"),
    "nvidia_smi_dmon/h100_idle.txt": ("nvidia-smi", NO_BUSY_SPAN.format("gpu_utilisation")),
    "rocm_smi_csv/rx7900xtx_x3.csv": ("rocm-smi", NO_BUSY_SPAN.format("gpu_utilisation")),
    "amd_smi_metric_csv/mi355x_x8_metric_head.csv": (
        "amd-smi", NO_BUSY_SPAN.format("gpu_utilisation")
    ),
}  # fmt: skip


def load(path: Path, tool: str | None = None, **facts: Any) -> SampledTable:
    return import_logs([path], tool, RunFacts(**facts))


@pytest.mark.parametrize("name", READ)
def test_a_busy_log_gives_the_means_of_its_busy_span(data_folder: Path, name: str) -> None:
    tool, facts, rows = READ[name]
    imported = load(data_folder / "traces" / name, **facts)
    assert imported.tool == tool
    assert len(imported.table) == len(rows)
    for position, row in enumerate(rows):
        for column, expected in row.items():
            assert imported.table.numbers[column][position] == pytest.approx(expected, rel=1e-5), (
                column
            )


@pytest.mark.parametrize("name", REFUSED)
def test_an_idle_log_is_refused_in_one_line(data_folder: Path, name: str) -> None:
    tool, message = REFUSED[name]
    path = data_folder / "traces" / name
    form = log_format(path)
    assert form is not None
    assert form.tool == tool
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load(path, tool)
    assert "\n" not in str(caught.value)


def test_every_log_is_in_one_of_the_lists(data_folder: Path) -> None:
    folder = data_folder / "traces"
    kinds = {name.partition("/")[0] for name in (*READ, *REFUSED)}
    files = {f"{kind}/{path.name}" for kind in kinds for path in (folder / kind).iterdir()}
    assert files == {*READ, *REFUSED}


def test_no_profilers_export_is_taken_for_a_log(data_folder: Path) -> None:
    exports = [path for path in (data_folder / "profiler-exports").rglob("*") if path.is_file()]
    assert exports
    assert [path for path in exports if log_format(path) is not None] == []


def test_no_other_trace_is_taken_for_a_log(data_folder: Path) -> None:
    kinds = {name.partition("/")[0] for name in (*READ, *REFUSED)}
    others = [
        path
        for path in (data_folder / "traces").rglob("*")
        if path.is_file() and path.parent.name not in kinds and path.name != "README.md"
    ]
    assert others
    assert [path for path in others if log_format(path) is not None] == []
