"""Import of a large export: MB/s and peak memory, beside a small one of the same layout.

Makes a details page of ncu, a raw page and a rocprofv3 file of 1000 MB each, one at a time, in a
temporary folder, and imports each in a process of its own. Memory must not grow with the file:
10 MB of the same is the yardstick.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from table import Row

SMALL_MB, LARGE_MB = 10, 1000
METRICS = (
    ("gpu__time_duration.sum", "ns"),
    *((f"sm__inst_executed_pipe_{pipe}.sum", "inst") for pipe in ("alu", "fma", "fp64", "xu")),
    *((f"sm__sass_inst_executed_op_{op}.sum", "inst")
      for op in ("global_ld", "global_st", "local_ld", "local_st", "shared_ld", "shared_st")),
    ("dram__bytes_read.sum", "byte"),
    ("dram__bytes_write.sum", "byte"),
    *((f"l1tex__made_metric_{i}.sum", "sector") for i in range(12)),
)  # fmt: skip
IDENTITY = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
    '"Block Size","Grid Size","Device","CC"'
)
WORKER = """
import json, sys, time
from pathlib import Path
from mlscale.profilers import import_exports
began = time.perf_counter()
base = {"cu_count": 4.0, "engine_mhz": 1000.0, "memory_mhz": 500.0}
import_exports([Path(sys.argv[1])], device="made-gpu", base=base)
seconds = time.perf_counter() - began
sys.path.insert(0, sys.argv[2])
from table import peak_mib
print(json.dumps([seconds, peak_mib()]))
"""


def _identity(launch: int) -> str:
    return (
        f'"{launch}","77","app","127.0.0.1","void k{launch % 40}<int, 2>(float *, int)","1","7",'
        '"(128, 1, 1)","(64, 1, 1)","0","9.0"'
    )


def details() -> Iterator[str]:
    """A long page: a row for each launch and metric."""
    yield f'{IDENTITY},"Section Name","Metric Name","Metric Unit","Metric Value"\n'
    for launch in count():
        head = f'{_identity(launch)},"Command line profiler metrics"'
        yield "".join(
            f'{head},"{name}","{unit}","{1000 + launch % 97 + i:,}"\n'
            for i, (name, unit) in enumerate(METRICS)
        )


def raw() -> Iterator[str]:
    """A wide page: a row for each launch."""
    yield IDENTITY + "".join(f',"{name}"' for name, _ in METRICS) + "\n"
    yield ",".join(['""'] * 11) + "".join(f',"{unit}"' for _, unit in METRICS) + "\n"
    for launch in count():
        values = "".join(f',"{1000 + launch % 97 + i:,}"' for i in range(len(METRICS)))
        yield f"{_identity(launch)}{values}\n"


def rocprofv3() -> Iterator[str]:
    """A long counter collection: a row for each dispatch and counter."""
    yield (
        '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id",'
        '"Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size",'
        '"VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value",'
        '"Start_Timestamp","End_Timestamp"\n'
    )
    counters = ("SQ_WAVES", "SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_LDS", "GRBM_GUI_ACTIVE")
    for launch in count(1):
        yield "".join(
            f'{launch},{launch},"Agent 4",1,7,7,640,3,"f{launch % 40}(int, int)",64,0,0,8,0,16,'
            f'"{name}",{1000 + launch % 97}.000000,{9000 * launch},{9000 * launch + 5000}\n'
            for name in counters
        )


def write(lines: Callable[[], Iterator[str]], path: Path, megabytes: int) -> float:
    """Write at least so many megabytes; how many there are."""
    with path.open("w", encoding="utf-8") as file:
        for line in lines():
            file.write(line)
            if file.tell() >= megabytes * 1_000_000:
                break
    return path.stat().st_size / 1e6


def import_cost(path: Path) -> tuple[float, float]:
    """Seconds and peak memory [MiB] of an import in its own process."""
    worker = subprocess.run(
        [sys.executable, "-c", WORKER, str(path), str(Path(__file__).parent)],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, peak = json.loads(worker.stdout)
    return seconds, peak


def rows() -> Iterator[Row]:
    """Speed and memory for each layout."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        for name, lines in (("ncu details", details), ("ncu raw", raw), ("rocprofv3", rocprofv3)):
            write(lines, path, SMALL_MB)
            _, small = import_cost(path)
            written = write(lines, path, LARGE_MB)
            seconds, peak = import_cost(path)
            yield Row(f"{name}, {written:.0f} MB", f"{written / seconds:.0f} MB/s")
            yield Row(
                "its peak memory",
                f"{peak:.0f} MiB", f"{small:.0f} MiB", f"{small / peak:.2f}",
                f"the import of {SMALL_MB} MB",
            )  # fmt: skip
