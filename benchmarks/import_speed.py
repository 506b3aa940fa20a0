"""Import of large made exports beside `pandas.read_csv`, or `json.loads`, by processor time.

Makes a file of each layout in a temporary folder, one at a time, and imports it in a process of its
own. Memory must not grow with the file: a small one of the same layout is the yardstick.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
from table import Row
from timing import output_of

SMALL_MB, LARGE_MB, RUNS = 20, 200, 3
METRICS = (
    ("gpu__time_duration.sum", "ns"),
    *((f"sm__inst_executed_pipe_{pipe}.sum", "inst") for pipe in ("alu", "fma", "fp64", "xu")),
    *((f"sm__sass_inst_executed_op_{op}.sum", "inst")
      for op in ("global_ld", "global_st", "local_ld", "local_st", "shared_ld", "shared_st")),
    ("dram__bytes_read.sum", "byte"),
    ("dram__bytes_write.sum", "byte"),
    *((f"l1tex__made_metric_{i}.sum", "sector") for i in range(12)),
)  # fmt: skip
COUNTERS = ("SQ_WAVES", "SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_LDS", "GRBM_GUI_ACTIVE")
IDENTITY = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
    '"Block Size","Grid Size","Device","CC"'
)
BASE = {"cu_count": 4.0, "engine_mhz": 1000.0, "memory_mhz": 500.0}
OURS = f"""
import pyarrow.compute, pyarrow.csv
from mlscale.readers.given import Given
from mlscale.readers.reading import read_table
def work(path): read_table([path], Given("made-gpu", {BASE}))
"""
PEER = """
import pandas
def work(path): pandas.read_csv(path, low_memory=False)
"""
JSON_PEER = """
import json
def work(path): json.loads(path.read_text())
"""
TIMED = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from timing import peak_mib, timed
_, spent = timed(lambda: work(Path(sys.argv[1])))
print(json.dumps([spent.processor_s, peak_mib()]))
"""
KERNELS = [f"void k{i}<int, {i % 4}>(float *, int)" for i in range(40)]
# Counts of one to nine digits, again and again, by a step that shares no factor with their number.
VALUES = (10 ** np.random.default_rng(0).uniform(0, 9, 100_003)).astype(np.int64).tolist()


def _identity(launch: int) -> str:
    return (
        f'"{launch}","77","app","127.0.0.1","{KERNELS[launch % 40]}","1","7",'
        '"(128, 1, 1)","(64, 1, 1)","0","9.0"'
    )


def details() -> Iterator[str]:
    """A long page: a row for each launch and metric."""
    yield f'{IDENTITY},"Section Name","Metric Name","Metric Unit","Metric Value"\n'
    for launch in count():
        head = f'{_identity(launch)},"Command line profiler metrics"'
        yield "".join(
            f'{head},"{name}","{unit}","{_value(launch, i):,}"\n'
            for i, (name, unit) in enumerate(METRICS)
        )


def raw() -> Iterator[str]:
    """A wide page: a row for each launch."""
    yield IDENTITY + "".join(f',"{name}"' for name, _ in METRICS) + "\n"
    yield ",".join(['""'] * 11) + "".join(f',"{unit}"' for _, unit in METRICS) + "\n"
    for launch in count():
        values = "".join(f',"{_value(launch, i):,}"' for i in range(len(METRICS)))
        yield f"{_identity(launch)}{values}\n"


def rocprofv3() -> Iterator[str]:
    """A long counter collection: a row for each dispatch and counter."""
    yield (
        '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id",'
        '"Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size",'
        '"VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value",'
        '"Start_Timestamp","End_Timestamp"\n'
    )
    for launch in count(1):
        yield "".join(
            f'{launch},{launch},"Agent 4",1,7,7,640,3,"{KERNELS[launch % 40]}",64,0,0,8,0,16,'
            f'"{name}",{_value(launch, i)}.000000,{9000 * launch},{9000 * launch + 5000}\n'
            for i, name in enumerate(COUNTERS)
        )


def rocprof() -> Iterator[str]:
    """Rocprof v1: a row for each dispatch."""
    yield (
        "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,"
        f"sgpr,wave_size,sig,obj,{','.join(COUNTERS)},BeginNs,EndNs\n"
    )
    for launch in count():
        values = ",".join(str(_value(launch, i)) for i in range(len(COUNTERS)))
        begin = 10**15 + 9000 * launch
        yield (
            f'{launch},"{KERNELS[launch % 40]}",0,0,{launch},7,7,640,64,0,0,8,0,16,64,0x0,0x7f,'
            f"{values},{begin},{begin + 5000}\n"
        )


def nsys() -> Iterator[str]:
    """Nsys stats --report cuda_gpu_trace: a row for each launch or copy."""
    yield (
        "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),"
        "DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,"
        "Name\n"
    )
    for launch in count(1):
        begin, time = 9000 * launch, 1000 + _value(launch, 0) % 7000
        device = "Made GPU (0),1,,7"
        if launch % 10 == 0:
            copy = '"[CUDA memcpy Host-to-Device]"'
            yield f"{begin},{time},{launch},,,,,,,,,,1.049,2000,Pageable,Device,{device},{copy}\n"
        else:
            name = f'"{KERNELS[launch % 40]}"'
            yield f"{begin},{time},{launch},8,1,1,128,1,1,16,0.000,0.000,,,,,{device},{name}\n"


def torch() -> Iterator[str]:
    """PyTorch's Chrome trace: an event for each kernel, and one for the operator that calls it."""
    yield '{"schemaVersion": 1, "traceEvents": [\n'
    for launch in count(1):
        begin, time = 9 * launch, 1 + _value(launch, 0) % 7000 / 1e3
        yield (
            f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 77, "tid": 77, '
            f'"ts": {begin}, "dur": 5.000, "args": {{"External id": {launch}}}}},\n'
            f'{{"ph": "X", "cat": "kernel", "name": "{KERNELS[launch % 40]}", "pid": 0, "tid": 7, '
            f'"ts": {begin + 2}, "dur": {time:.3f}, "args": {{"External id": {launch}, '
            f'"device": 0, "stream": 7, "correlation": {launch}, "registers per thread": 16, '
            '"grid": [8, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 50}},\n'
        )


def _value(launch: int, counter: int) -> int:
    return VALUES[(31 * launch + counter) % len(VALUES)]


def write(lines: Callable[[], Iterator[str]], path: Path, megabytes: int) -> float:
    """Write at least so many megabytes; how many there are."""
    with path.open("w", encoding="utf-8") as file:
        for line in lines():
            file.write(line)
            if file.tell() >= megabytes * 1_000_000:
                break
        if lines is torch:
            file.write('{"ph": "i", "name": "end"}]}\n')
    return path.stat().st_size / 1e6


def cost(work: str, path: Path) -> tuple[float, float]:
    """Processor seconds and peak memory [MiB] of a work in its own process."""
    seconds, peak = json.loads(output_of(work + TIMED, str(path), str(Path(__file__).parent)))
    return seconds, peak


LAYOUTS = {
    "ncu details": details,
    "ncu raw": raw,
    "rocprof": rocprof,
    "rocprofv3": rocprofv3,
    "nsys trace": nsys,
    "PyTorch trace": torch,
}


def rows() -> Iterator[Row]:
    """Speed and memory for each layout."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        for name, lines in LAYOUTS.items():
            write(lines, path, SMALL_MB)
            _, small = cost(OURS, path)
            written = write(lines, path, LARGE_MB)
            is_json = lines is torch
            peer = "json.loads" if is_json else "pandas.read_csv"
            works = (OURS, JSON_PEER if is_json else PEER)
            runs = [[cost(work, path) for work in works] for _ in range(RUNS)]
            (seconds, peak), (of_peer, _) = map(min, zip(*runs, strict=True))
            yield Row(
                f"{name}, {written:.0f} MB",
                f"{written / seconds:.0f} MB/s", f"{written / of_peer:.0f} MB/s",
                f"{of_peer / seconds:.2f}", f"{peer} of the same file; processor, best of {RUNS}",
            )  # fmt: skip
            peer_is = f"the import of {SMALL_MB} MB"
            yield Row.beside("its peak memory", peak, small, "{:.0f} MiB", peer_is)
