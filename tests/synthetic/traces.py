"""Made traces and summaries of an application, in the form of Nsight Systems' and PyTorch's files.

One run: kernel f twice (100 to 140 and 160 to 200 us), kernel g once (130 to 150 us), a copy at 90.
"""

import gzip
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

F, G = "void f<int, (bool)1>(T1 *, int)", "g(float)"
# Kernel, begin and end [ns], workgroups along x, y, z, threads along x, y, z.
LAUNCHES = (
    (F, 100_000, 140_000, (8, 2, 1), (128, 1, 1)),
    (G, 130_000, 150_000, (4, 1, 1), (64, 2, 1)),
    (F, 160_000, 200_000, (8, 2, 1), (128, 1, 1)),
)
SPAN_S, BUSY_S = 100e-6, 90e-6  # from 100 to 200 us; nothing runs from 150 to 160

SUM_CSV = f"""
NOTICE: Existing SQLite export found: run.sqlite
Processing [run.sqlite] with [/opt/nsight/reports/cuda_gpu_kern_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
80.0,80000,2,40000.0,40000.0,40000,40000,0.0,"{F}"
20.0,20000,1,20000.0,20000.0,20000,20000,0.0,{G}

Processing [run.sqlite] with [/opt/nsight/reports/cuda_gpu_mem_time_sum.py]...
Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
100.0,500,1,500.0,500.0,500,500,0.0,[CUDA memcpy Host-to-Device]
"""
TRACE_HEADER = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,Bytes (MB),"
    "Device,Ctx,Strm,Name\n"
)


def gpu_trace(devices: Sequence[str] = ("NVIDIA A100-SXM4-40GB (0)",) * 3) -> str:
    """A cuda_gpu_trace of the run, each launch on the device that is named."""
    text = TRACE_HEADER + f"90000,5000,1,,,,,,,,0.038,{devices[0]},1,7,[CUDA memcpy HtoD]\n"
    for device, (name, begin, end, grid, block) in zip(devices, LAUNCHES, strict=True):
        sizes = ",".join(map(str, (*grid, *block)))
        text += f'{begin},{end - begin},2,{sizes},16,,{device},1,7,"{name}"\n'
    return text


def write_sqlite(path: Path, graphs: int = 0) -> Path:
    """An export of the run."""
    with closing(sqlite3.connect(path)) as database:
        run = database.execute
        run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        run("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER)")
        for number in (0, 1):
            run("INSERT INTO TARGET_INFO_GPU VALUES (?, 'NVIDIA A100-SXM4-40GB', 108)", (number,))
        run("INSERT INTO StringIds VALUES (7, ?)", (F,))
        run("INSERT INTO StringIds VALUES (8, ?)", (G,))
        run(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId "
            "INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, "
            "gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER)"
        )
        for name, begin, end, grid, block in LAUNCHES:
            cells = (begin, end, 0, 7 if name == F else 8, 9, *grid, *block)
            run(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({','.join('?' * 11)})", cells)
        if graphs:
            run("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER)")
            database.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?)", [(1, 2)] * graphs
            )
        database.commit()
    return path


def chrome_trace(devices: Sequence[int] = (0, 0, 0), **members: Any) -> dict[str, Any]:
    """A Chrome trace of the run, beginning in 2023, with what else a trace holds."""
    epoch_us = 1_695_835_573_000_000
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "args": {"name": "python"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 5, "dur": 300, "args": {}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 90, "dur": 5, "args": {}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "ts": 90, "dur": 200},
    ]
    for device, (name, begin, end, grid, block) in zip(devices, LAUNCHES, strict=True):
        arguments = {
            "device": device, "stream": 7, "registers per thread": 16,
            "grid": list(grid), "block": list(block),
        }  # fmt: skip
        event = {"ph": "X", "cat": "kernel", "name": name, "ts": epoch_us + begin / 1000}
        events.append({**event, "dur": (end - begin) / 1000, "args": arguments})
    properties = [{"id": i, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108} for i in range(2)]
    return {"schemaVersion": 1, "deviceProperties": properties, "traceEvents": events, **members}


def write_json(path: Path, document: object) -> Path:
    """A document as JSON, compressed where the name ends in .gz."""
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
