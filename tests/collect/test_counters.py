"""Counters by a profiler: stand-ins for ncu and rocprofv3 that write what they are asked for.

The stand-ins' numbers are made; they show what the command line asks for, and that the importers
take it. No GPU and no profiler is there.
"""

import subprocess
import sys
from pathlib import Path

import pocl
import pytest

from mlscale.collect.counters import collect_counters, commands, metrics
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan, select
from mlscale.collect.recording import Counters

H200 = DeviceInfo("cuda", "NVIDIA H200", "abc", "d", 132, 50 << 20, 32, capability=90)
MI210 = DeviceInfo("hip", "AMD Instinct MI210", "def", "d", 104, 8 << 20, 64)
KERNELS = ("copy_1m", "fma_1chain")
NCU = """
import csv, sys
given = sys.argv[1:]
names = given[given.index("--metrics") + 1].split(",")
kernels = given[given.index("--kernel-name") + 1].removeprefix("regex:^(").removesuffix(")$")
fixed = {
    "gpu__time_duration.sum": 50_000, "launch__grid_size": 1024, "launch__block_size": 256,
    "dram__cycles_elapsed.avg.per_second": 3e9, "sm__cycles_elapsed.sum": 80_000 * 132,
    "dram__bytes_read.sum": 4e6, "dram__bytes_write.sum": 2e6,
}
unit = {"per_second": "hz", "time": "ns", "bytes": "byte", "pct": "%", "cycles": "cycle"}
head = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
        "Block Size", "Grid Size", "Device", "CC"]
units = [next((u for part, u in unit.items() if part in n and "launch" not in n), "inst")
         for n in names]
with open(given[given.index("--log-file") + 1], "w", newline="") as file:
    rows = csv.writer(file, quoting=csv.QUOTE_ALL)
    rows.writerow([*head, *names])
    rows.writerow([""] * len(head) + units)
    for number, kernel in enumerate(kernels.split("|")):
        row = [number, 1, "python", "h", kernel, 1, 7, "(256, 1, 1)", "(1024, 1, 1)", 0, "9.0"]
        clock = {"sm__cycles_elapsed.avg.per_second": 1.6e9 + 2e8 * number}
        rows.writerow([*row, *({**fixed, **clock}.get(name, 10) for name in names)])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the path too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def plan_of(info: DeviceInfo) -> Plan:
    return Plan("small", info, select("small", KERNELS, info.backend), (info.cu_count,), {})


def collected(folder: Path, info: DeviceInfo) -> tuple[Counters, list[str]]:
    base = {"cu_count": float(info.cu_count), "engine_mhz": 1980.0, "memory_mhz": 3201.0}
    return collect_counters(plan_of(info), base, folder / "counters")


def stand_in(folder: Path, name: str, program: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(0o755)


def test_ncu(folder: Path) -> None:
    """4 MB read and 2 MB written in 50 us are 80 and 40 GB/s, though the clocks differ."""
    stand_in(folder, "ncu", NCU)
    counters, missing = collected(folder, H200)
    assert missing == []
    assert set(counters) == set(KERNELS)
    assert counters["copy_1m"]["ReadBandwidth"] == pytest.approx(80e9)
    assert counters["fma_1chain"]["WriteBandwidth"] == pytest.approx(40e9)


def test_no_right(folder: Path) -> None:
    stand_in(folder, "ncu", "print('==ERROR== ERR_NVGPUCTRPERM')\nraise SystemExit(1)")
    counters, [why] = collected(folder, H200)
    assert counters == {}
    assert why == "there are no counters: ncu ended with 1: ==ERROR== ERR_NVGPUCTRPERM"


def test_a_profiler_that_fails(folder: Path) -> None:
    stand_in(folder, "ncu", "import sys\nsys.exit('no such metric')")
    counters, [why] = collected(folder, H200)
    assert counters == {}
    assert why == "there are no counters: ncu ended with 1: no such metric"


def test_one_kernel_that_cannot_be_profiled(folder: Path) -> None:
    """The others' counters stay."""
    dies = "if 'fma_1chain' in sys.argv:\n    sys.exit('gone')\n"
    stand_in(folder, "ncu", NCU.replace("given = sys.argv[1:]\n", f"{dies}given = sys.argv[1:]\n"))
    counters, missing = collected(folder, H200)
    assert set(counters) == {"copy_1m"}
    assert missing == ["fma_1chain has no counters: ncu ended with 1: gone"]


def test_an_export_that_cannot_be_read(folder: Path) -> None:
    program = "import sys\nopen(sys.argv[sys.argv.index('--log-file') + 1], 'w').write('no table')"
    stand_in(folder, "ncu", program)
    counters, [why] = collected(folder, H200)
    assert counters == {}
    assert why.startswith("there are no counters: ")
    assert "ncu.csv" in why


def test_without_it_the_command_is_told(folder: Path) -> None:
    counters, [why] = collected(folder, MI210)
    assert counters == {}
    assert "rocprofv3 is not on the path; by hand: rocprofv3 --kernel-trace --output-format" in why
    launch = "-m mlscale.collect.measuring hip small copy_1m fma_1chain"
    assert why.count(launch) == 3  # a trace, and two passes of counters


def test_passes_hold_what_the_hardware_counts_at_once() -> None:
    """docs/profiling.md: 8 counters of SQ, 4 of TCC (of which the sizes take up to three)."""
    for line in commands(plan_of(MI210), KERNELS, Path("out"))[1:]:
        assert sum(name.startswith("SQ_") for name in line) <= 8
        assert sum(name.startswith("TCC_") for name in line) <= 4


def test_metrics_by_capability() -> None:
    """Volta has no uniform pipe; Blackwell's GeForce names DRAM's bytes anew."""
    assert set(metrics(90)) - set(metrics(70)) == {"sm__inst_executed_pipe_uniform.sum"}
    assert "dram__bytes_op_read.sum" in metrics(120)


def test_each_kernel_is_launched_once(tmp_path: Path) -> None:
    """By OpenCL; what a profiler would see."""
    pocl.needs_pocl()
    module = [sys.executable, "-m", "mlscale.collect.measuring"]
    done = subprocess.run(
        [*module, "opencl", "small", "copy_1m"],
        env=pocl.environment(tmp_path),
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
