"""Counters by a profiler: stand-ins for ncu and rocprofv3 that write what they are asked for.

The stand-ins' numbers are made; they show what the command line asks for, and that the importers
take it. No GPU and no profiler is there.
"""

import sys
from pathlib import Path

import pytest

from mlscale.collect import recording as profiling
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan, select
from mlscale.collect.recording import Counters, collect_counters, commands
from mlscale.data.grid import AXES

H200 = DeviceInfo("cuda", "NVIDIA H200", "abc", "d", 132, 50 << 20, 32, 1980.0, 3201.0, 90)
MI210 = DeviceInfo("hip", "AMD Instinct MI210", "def", "d", 104, 8 << 20, 64, 1700.0, 1600.0)
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
    file.write("==WARNING== Note: clocks are not controlled, results may be inconsistent.\\n")
    rows = csv.writer(file, quoting=csv.QUOTE_ALL)
    rows.writerow([*head, *names])
    rows.writerow([""] * len(head) + units)
    for number, kernel in enumerate(kernels.split("|")):
        row = [number, 1, "python", "h", kernel, 1, 7, "(256, 1, 1)", "(1024, 1, 1)", 0, "9.0"]
        clock = {"sm__cycles_elapsed.avg.per_second": 1.6e9 + 2e8 * number}
        rows.writerow([*row, *({**fixed, **clock}.get(name, 10) for name in names)])
"""


# Two dispatches of a run in which ROCm's runtime copies by a kernel of its own, before ours.
ROCPROFV3 = """
import pathlib, sys
given = sys.argv[1:]
kernel, out = given[-1], pathlib.Path(given[given.index("-d") + 1], "host")
assert given[given.index("--output-format") + 1] == "csv"
out.mkdir(parents=True)
(out / "7_agent_info.csv").write_text(
    '"Node_Id","Agent_Type","Cu_Count","Max_Engine_Clk_Fcompute","Name","Product_Name"\\n'
    '0,"CPU",64,0,"A CPU","A CPU"\\n1,"GPU",104,1700,"gfx90a","AMD Instinct MI210"\\n')
dispatches = [(1, "__amd_rocclr_copyBuffer", 64, 1000), (2, kernel, 4096, 50_000)]
if "--pmc" in given:
    names = given[given.index("--pmc") + 1 : given.index("--output-format")]
    head = ('"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id",'
        '"Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size",'
        '"VGPR_Count","SGPR_Count","Counter_Name","Counter_Value"')
    rows = [f'{n},{n},"Agent 1",1,7,7,{grid},{n},"{kernel}",64,0,0,8,16,"{name}",'
            + str(grid // 64 if name == "SQ_WAVES" else grid)
            for n, kernel, grid, _ in dispatches for name in names]
    (out / "7_counter_collection.csv").write_text("\\n".join([head, *rows]))
else:
    head = ('"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
        '"Correlation_Id","Start_Timestamp","End_Timestamp","Workgroup_Size_X",'
        '"Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"')
    rows = [f'"KERNEL_DISPATCH","Agent 1",1,7,{n},{n},"{kernel}",{n},1000000,{1000000 + ns},'
            f'64,1,1,{grid},1,1' for n, kernel, grid, ns in dispatches]
    (out / "7_kernel_trace.csv").write_text("\\n".join([head, *rows]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the path too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def plan_of(info: DeviceInfo) -> Plan:
    return Plan("small", info, select("small", KERNELS, info.backend), (info.cu_count,), {})


def collected(folder: Path, info: DeviceInfo) -> tuple[Counters, list[str]]:
    base = {name: float(getattr(info, name)) for name in AXES}
    return collect_counters(plan_of(info), base, folder / "counters")


def stand_in(folder: Path, name: str, program: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(0o755)


def test_ncu(folder: Path) -> None:
    """4 MB read and 2 MB written in 50 us are 80 and 40 GB/s, though the clocks differ.

    In one run: ncu takes seconds to start.
    """
    stand_in(folder, "ncu", f"open({str(folder / 'runs')!r}, 'a').write('run ')\n{NCU}")
    counters, missing = collected(folder, H200)
    assert missing == []
    assert set(counters) == set(KERNELS)
    assert counters["copy_1m"]["ReadBandwidth"] == pytest.approx(80e9)
    assert counters["fma_1chain"]["WriteBandwidth"] == pytest.approx(40e9)
    assert (folder / "runs").read_text() == "run "


def test_rocprofv3(folder: Path) -> None:
    """4096 KiB fetched in 50 us are 83.9 GB/s; the runtime's own copy is another row."""
    stand_in(folder, "rocprofv3", ROCPROFV3)
    counters, missing = collected(folder, MI210)
    assert missing == []
    assert set(counters) == set(KERNELS)
    for found in counters.values():
        assert found["NumWorkGroups"] == 64
        assert found["ReadBandwidth"] == pytest.approx(4096 * 1024 / 50e-6)


WRITES = "import sys\nopen(sys.argv[sys.argv.index('--log-file') + 1], 'w').write({!r})"


@pytest.mark.parametrize(
    ("name", "program", "words"),
    [
        ("ncu", "print('no right')\nraise SystemExit(1)", "ncu ended with 1: no right"),
        ("ncu", "import sys\nsys.exit('no right')", "ncu ended with 1: no right"),
        ("ncu", "", "no counters: "),
        ("ncu", WRITES.format("no table"), "ncu.csv"),
        # What it started would keep its output open.
        (
            "ncu",
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])",
            "ncu was ended after 0.5 s: no output",
        ),
        (
            "rocprofv3",
            ROCPROFV3.replace("(2, kernel,", "(2, 'another',"),
            "rocprofv3 did not count it, but __amd_rocclr_copyBuffer, another",
        ),
    ],
    ids=["fails", "fails on stderr", "no file", "no table", "hangs", "other kernels"],
)
def test_a_profiler_without_counters_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, program: str, words: str
) -> None:
    """And what was measured stays."""
    if "while True" in program:
        monkeypatch.setattr(profiling, "_START_S", 0.5)
        monkeypatch.setattr(profiling, "_KERNEL_S", 0)
    stand_in(folder, name, program)
    counters, [why] = collected(folder, H200 if name == "ncu" else MI210)
    assert counters == {}
    assert words in why


def test_one_kernel_that_cannot_be_profiled(folder: Path) -> None:
    """The others' counters stay: what a lot did not count is tried again by itself."""
    dies = "if 'fma_1chain' in sys.argv:\n    sys.exit('gone')\n"
    stand_in(folder, "ncu", NCU.replace("given = sys.argv[1:]\n", f"{dies}given = sys.argv[1:]\n"))
    counters, missing = collected(folder, H200)
    assert set(counters) == {"copy_1m"}
    assert missing == ["fma_1chain has no counters: ncu ended with 1: gone"]


def test_without_it_the_command_is_told(folder: Path) -> None:
    counters, [why] = collected(folder, MI210)
    assert counters == {}
    assert "not on the path; resume=True when it is; by hand: rocprofv3 --kernel-trace" in why
    launch = "-m mlscale.collect.measuring hip small copy_1m fma_1chain"
    assert why.count(launch) == 3  # a trace, and two passes of counters


def test_passes_hold_what_the_hardware_counts_at_once() -> None:
    """docs/howto/profile.md: 8 counters of SQ, 4 of TCC (of which the sizes take up to three)."""
    for line in commands(plan_of(MI210), KERNELS, Path("out"))[1:]:
        assert sum(name.startswith("SQ_") for name in line) <= 8
        assert sum(name.startswith("TCC_") for name in line) <= 4
