"""Counters by a profiler: stand-ins for ncu and rocprofv3 that write what they are asked for.

The stand-ins' numbers are made; they show what the command line asks for, and that the importers
take it. No GPU and no profiler is there.
"""

import subprocess
import sys
from pathlib import Path

import pocl
import pytest

from mlscale.collect import counters as profiling
from mlscale.collect.counters import collect_counters, commands, metrics
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan, select
from mlscale.collect.recording import Counters
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
    """4 MB read and 2 MB written in 50 us are 80 and 40 GB/s, though the clocks differ."""
    stand_in(folder, "ncu", NCU)
    counters, missing = collected(folder, H200)
    assert missing == []
    assert set(counters) == set(KERNELS)
    assert counters["copy_1m"]["ReadBandwidth"] == pytest.approx(80e9)
    assert counters["fma_1chain"]["WriteBandwidth"] == pytest.approx(40e9)


def test_rocprofv3(folder: Path) -> None:
    """4096 KiB fetched in 50 us are 83.9 GB/s; the runtime's own copy is another row."""
    stand_in(folder, "rocprofv3", ROCPROFV3)
    counters, missing = collected(folder, MI210)
    assert missing == []
    assert set(counters) == set(KERNELS)
    for of_kernel in counters.values():
        assert of_kernel["NumWorkGroups"] == 64
        assert of_kernel["ReadBandwidth"] == pytest.approx(4096 * 1024 / 50e-6)


def test_a_kernel_that_was_not_counted(folder: Path) -> None:
    stand_in(folder, "rocprofv3", ROCPROFV3.replace("(2, kernel,", "(2, 'another',"))
    counters, [why] = collected(folder, MI210)
    assert counters == {}
    assert why.endswith("rocprofv3 did not count it, but __amd_rocclr_copyBuffer, another")


@pytest.mark.parametrize(
    "program", ["print('no right')\nraise SystemExit(1)", "import sys\nsys.exit('no right')"]
)
def test_a_profiler_that_fails(folder: Path, program: str) -> None:
    """It says why on either stream."""
    stand_in(folder, "ncu", program)
    assert collected(folder, H200) == ({}, ["there are no counters: ncu ended with 1: no right"])


def test_one_kernel_that_cannot_be_profiled(folder: Path) -> None:
    """The others' counters stay: what a lot did not count is tried again by itself."""
    dies = "if 'fma_1chain' in sys.argv:\n    sys.exit('gone')\n"
    stand_in(folder, "ncu", NCU.replace("given = sys.argv[1:]\n", f"{dies}given = sys.argv[1:]\n"))
    counters, missing = collected(folder, H200)
    assert set(counters) == {"copy_1m"}
    assert missing == ["fma_1chain has no counters: ncu ended with 1: gone"]


def test_kernels_are_profiled_in_one_run(folder: Path) -> None:
    """ncu takes seconds to start."""
    once = f"open({str(folder / 'runs')!r}, 'a').write('run ')\n"
    stand_in(folder, "ncu", once + NCU)
    assert set(collected(folder, H200)[0]) == set(KERNELS)
    assert (folder / "runs").read_text() == "run "


@pytest.mark.parametrize(
    "wrote", ["", """open(sys.argv[sys.argv.index("--log-file") + 1], "w").write('"ID"')"""]
)
def test_a_profiler_that_writes_nothing_of_use(folder: Path, wrote: str) -> None:
    """It is told, and what was measured stays."""
    stand_in(folder, "ncu", f"import sys\n{wrote}")
    counters, [why] = collected(folder, H200)
    assert counters == {}
    assert why.startswith("there are no counters: ")


def test_a_profiler_that_hangs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended with what it started, which would keep its output open."""
    monkeypatch.setattr(profiling, "_START_S", 0.5)
    monkeypatch.setattr(profiling, "_KERNEL_S", 0)
    starts = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])"
    stand_in(folder, "ncu", starts)
    assert collected(folder, H200) == (
        {},
        ["there are no counters: ncu was ended after 0.5 s: it said nothing"],
    )


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
    assert "not on the path; --resume when it is; by hand: rocprofv3 --kernel-trace" in why
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
