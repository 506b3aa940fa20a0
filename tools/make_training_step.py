"""Make the files of a training step that ship in datasets/, in the forms of the tools.

    python tools/make_training_step.py

Nothing of it was measured. Kernels, times and shares of peak are typed here: what one step of a
small transformer (12 layers, 8 x 1024 tokens, width 1024, bf16) might be on an A100 SXM4 80 GB.
"""

import csv
import gzip
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DATASETS = Path(__file__).parent.parent / "datasets"
DEVICE, SMS, ENGINE_GHZ, MEMORY_GHZ = "NVIDIA A100-SXM4-80GB", 108, 1.41, 1.59
LAYERS, SEED = 12, 20
SKIPPED, PROFILED = 132, 24  # ncu --launch-skip, --launch-count, of the launches that -k selects
BEGIN_US, BETWEEN_US, LATE_US = 5_120_000_000.0, 2.2, 120.0  # LATE_US: the CPU, at each layer

_LOCAL, _NCU_LOCAL = "at::native::(anonymous namespace)::", "at::native::<unnamed>::"
_BF16 = "c10::BFloat16"
_CONST = f"{_BF16} const*"


@dataclass(frozen=True)
class Kernel:
    """A kernel as PyTorch's trace names it, and as ncu does.

    sm_dram: what it takes of the peaks [%]; None where ncu was not told to profile it.
    """

    name: str
    ncu_name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    time_us: float
    sm_dram: tuple[float, float] | None = None


def gemm(tile: str, grid: tuple[int, int, int], time_us: float, sm: float, dram: float) -> Kernel:
    """One of cuBLAS's products of matrices."""
    size, layout = tile.split()
    name = f"ampere_bf16_s16816gemm_bf16_{size}_ldg8_f2f_stages_64x3_{layout}"
    return Kernel(name, name, grid, (256, 1, 1), time_us, (sm, dram))


def elementwise(
    functors: tuple[str, str], arrays: int, blocks: int, time_us: float, sm: float, dram: float
) -> Kernel:
    """One of PyTorch's that goes over tensors; functors: as either tool writes it."""
    head = "void at::native::vectorized_elementwise_kernel<"
    functor, ncu_functor = functors
    of = f"at::detail::Array<char*, {arrays}>"
    ncu_of = f"at::detail::Array<char *, (int){arrays}>"
    return Kernel(
        f"{head}4, {functor}, {of} >(int, {functor}, {of})",
        f"{head}(int)4, {ncu_functor}, {ncu_of}>(int, T2, T3)",
        (blocks, 1, 1),
        (128, 1, 1),
        time_us,
        (sm, dram),
    )


def lambdas_of(function: str) -> tuple[str, str]:
    """A lambda in a lambda, as either tool writes it."""
    head = f"at::native::{function}(at::TensorIteratorBase"
    call, ncu_call = "operator()() const::", "operator ()() const::"
    torch = f"{{lambda()#2}}::{call}{{lambda()#4}}::{call}{{lambda({_BF16})#1}}"
    ncu = (
        f"[lambda() (instance 2)]::{ncu_call}[lambda() (instance 4)]::{ncu_call}"
        f"[lambda({_BF16}) (instance 1)]"
    )
    return f"{head}&, at::native::GeluType)::{torch}", f"{head} &, at::native::GeluType)::{ncu}"


def unprofiled(name: str, blocks: int, threads: int, time_us: float) -> Kernel:
    """A kernel that is in the trace alone."""
    return Kernel(f"void {name}", "", (blocks, 1, 1), (threads, 1, 1), time_us)


LAYER_NORM = Kernel(
    f"void {_LOCAL}vectorized_layer_norm_kernel<{_BF16}, float>(int, float, {_CONST}, {_CONST}, "
    f"{_CONST}, float*, float*, {_BF16}*)",
    f"void {_NCU_LOCAL}vectorized_layer_norm_kernel<{_BF16}, float>(int, T2, const T1 *, "
    "const T1 *, const T1 *, T2 *, T2 *, T1 *)",
    (8192, 1, 1),
    (32, 4, 1),
    23.4,
    (41.0, 62.0),
)
SOFTMAX = Kernel(
    f"void (anonymous namespace)::softmax_warp_forward<{_BF16}, {_BF16}, float, 10, false, false>"
    f"({_BF16}*, {_CONST}, int, int, int, bool const*, int, bool)",
    f"void <unnamed>::softmax_warp_forward<{_BF16}, {_BF16}, float, (int)10, (bool)0, (bool)0>"
    "(T2 *, const T1 *, int, int, int, const bool *, int, bool)",
    (32768, 1, 1),
    (32, 4, 1),
    322.0,
    (34.0, 82.0),
)
ADD = elementwise((f"at::native::CUDAFunctor_add<{_BF16}>",) * 2, 3, 16384, 33.5, 15.0, 73.0)
SCORES = gemm("128x128 tn", (8, 8, 128), 188.0, 41.0, 79.0)
ATTENTION = gemm("128x64 nn", (1, 8, 128), 186.0, 44.0, 81.0)
ATTENTION_BACKWARD = gemm("128x64 nt", (1, 8, 128), 190.0, 43.0, 80.0)
NORM_BACKWARD = (
    unprofiled(
        f"{_LOCAL}layer_norm_grad_input_kernel_vectorized<{_BF16}, float, false>({_CONST}, "
        f"{_CONST}, float const*, float const*, {_CONST}, {_BF16}*, int)",
        *(8192, 128, 52.0),
    ),
    unprofiled(
        f"{_LOCAL}GammaBetaBackwardCUDAKernel_32x32<{_BF16}, float>(long, long, {_CONST}, "
        f"{_CONST}, float const*, float const*, {_BF16}*, {_BF16}*)",
        *(32, 1024, 44.0),
    ),
    ADD,
)
FORWARD = (
    LAYER_NORM,
    gemm("128x256 tn", (12, 64, 1), 231.0, 88.0, 24.0),  # queries, keys, values
    SCORES,
    SOFTMAX,
    ATTENTION,
    gemm("128x128 tn", (8, 64, 1), 84.0, 81.0, 33.0),  # projection
    ADD,
    LAYER_NORM,
    gemm("128x256 tn", (16, 64, 1), 304.0, 89.0, 21.0),
    elementwise(lambdas_of("GeluCUDAKernelImpl"), 2, 65536, 84.0, 58.0, 79.0),
    gemm("128x256 tn", (4, 64, 1), 312.0, 87.0, 19.0),
    ADD,
)
HEAD = (
    LAYER_NORM,
    gemm("128x256 tn", (64, 64, 1), 1240.0, 90.0, 23.0),
    unprofiled(
        f"{_LOCAL}cunn_SoftMaxForward<4, float, float, float, {_LOCAL}LogSoftMaxForwardEpilogue>"
        "(float*, float const*, int)",
        *(8192, 1024, 338.0),
    ),
    unprofiled(
        f"{_LOCAL}nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, "
        "float const*, long const*, float const*, bool, long, long, long, long)",
        *(1, 32, 9.0),
    ),
    unprofiled(
        f"{_LOCAL}cunn_SoftMaxBackward<4, float, float, float, {_LOCAL}LogSoftMaxBackwardEpilogue>"
        "(float*, float const*, float const*, long)",
        *(8192, 1024, 412.0),
    ),
    gemm("128x256 nn", (4, 64, 4), 1255.0, 89.0, 22.0),
    gemm("256x128 nt", (64, 8, 1), 1290.0, 85.0, 25.0),
)
BACKWARD = (
    gemm("128x256 nn", (16, 64, 1), 308.0, 88.0, 22.0),
    gemm("256x128 nt", (4, 32, 1), 331.0, 82.0, 26.0),
    elementwise(lambdas_of("GeluBackwardCUDAKernelImpl"), 3, 65536, 119.0, 61.0, 83.0),
    gemm("128x256 nn", (4, 64, 1), 315.0, 87.0, 19.0),
    gemm("256x128 nt", (16, 8, 1), 333.0, 82.0, 26.0),
    *NORM_BACKWARD,
    gemm("128x128 nn", (8, 64, 1), 86.0, 80.0, 33.0),
    gemm("128x128 nt", (8, 8, 1), 97.0, 71.0, 30.0),
    ATTENTION_BACKWARD,
    SCORES,
    unprofiled(
        f"(anonymous namespace)::softmax_warp_backward<{_BF16}, {_BF16}, float, 10, false, false>"
        f"({_BF16}*, {_CONST}, {_CONST}, int, int, int, bool const*)",
        *(32768, 128, 481.0),
    ),
    ATTENTION,
    ATTENTION_BACKWARD,
    gemm("128x256 nn", (4, 64, 2), 240.0, 86.0, 22.0),
    gemm("256x128 nt", (12, 8, 1), 252.0, 82.0, 27.0),
    *NORM_BACKWARD,
)
OPTIMIZER = unprofiled(
    f"{_LOCAL}multi_tensor_apply_kernel<{_LOCAL}FusedOptimizerTensorListMetadata<4>, "
    f"{_LOCAL}FusedAdamMathFunctor<float, 4> >({_LOCAL}FusedOptimizerTensorListMetadata<4>, "
    f"{_LOCAL}FusedAdamMathFunctor<float, 4>)",
    *(2560, 512, 236.0),
)


def step() -> list[tuple[Kernel, float]]:
    """The launches of a step, each with the time before it in which the GPU waits [us]."""
    parts = (*(FORWARD,) * LAYERS, HEAD, *(BACKWARD,) * LAYERS, (OPTIMIZER,) * 6)
    return [
        (kernel, BETWEEN_US if position else LATE_US)
        for part in parts
        for position, kernel in enumerate(part)
    ]


def _varied(value: float, chance: np.random.Generator) -> float:
    """The value, as a measurement might vary."""
    return value * chance.uniform(0.985, 1.015)


def events() -> Iterator[dict[str, Any]]:
    """The trace's events: two copies, every kernel with the call that launched it, the step."""
    chance, now_us = np.random.default_rng(SEED), BEGIN_US
    on_gpu: dict[str, Any] = {"ph": "X", "pid": 0, "tid": 7}
    on_cpu: dict[str, Any] = {"ph": "X", "pid": 4711, "tid": 4711}
    stream = {"device": 0, "context": 1, "stream": 7}
    for number in range(2):
        yield on_gpu | {
            "cat": "gpu_memcpy",
            "name": "Memcpy HtoD (Pinned -> Device)",
            "ts": now_us,
            "dur": 5.6,
            "args": stream | {"correlation": number, "bytes": 65_536},
        }
        now_us += 9.0
    for number, (kernel, wait_us) in enumerate(step(), start=2):
        yield on_cpu | {
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "ts": round(now_us - 40.0, 3),
            "dur": 3.9,
            "args": {"correlation": number},
        }
        now_us += wait_us
        time_us = round(_varied(kernel.time_us, chance), 3)
        yield on_gpu | {
            "cat": "kernel",
            "name": kernel.name,
            "ts": round(now_us, 3),
            "dur": time_us,
            "args": stream
            | {"correlation": number, "grid": kernel.grid, "block": kernel.block}
            | {"registers per thread": 128, "shared memory": 0}
            | {"blocks per SM": round(math.prod(kernel.grid) / SMS, 6)},
        }
        now_us += time_us
    yield on_cpu | {
        "cat": "user_annotation",
        "name": "ProfilerStep#3",
        "ts": BEGIN_US - 60.0,
        "dur": round(now_us - BEGIN_US + 60.0, 3),
    }


def trace() -> dict[str, Any]:
    """PyTorch's Chrome trace of the step."""
    gpu = {"id": 0, "name": DEVICE, "computeMajor": 8, "computeMinor": 0, "numSms": SMS}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{**gpu, "warpSize": 32, "maxThreadsPerBlock": 1024}],
        "displayTimeUnit": "ms",
        "traceName": "training-step-trace.json",
        "traceEvents": list(events()),
    }


def ncu_page() -> str:
    """The raw page of ncu --section SpeedOfLight for the launches that SKIPPED and PROFILED say."""
    units = {
        "dram__cycles_elapsed.avg.per_second": "Ghz",
        "gpc__cycles_elapsed.avg.per_second": "Ghz",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "%",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "%",
        "gpu__time_duration.sum": "us",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": "%",
    }
    identity = (
        "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
        "Block Size", "Grid Size", "Device", "CC",
    )  # fmt: skip
    chance, text = np.random.default_rng(SEED), io.StringIO()
    page = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    page.writerow([*identity, *units])
    page.writerow([*[""] * len(identity), *units.values()])
    selected = [(kernel, kernel.sm_dram) for kernel, _ in step() if kernel.sm_dram]
    for number, (kernel, shares) in enumerate(selected[SKIPPED : SKIPPED + PROFILED]):
        sm, dram = (_varied(share, chance) for share in shares)
        values = (MEMORY_GHZ, ENGINE_GHZ, dram + 3.0, dram, _varied(kernel.time_us, chance), sm)
        page.writerow(
            [
                *(number, 4711, "python3.11", "127.0.0.1", kernel.ncu_name, 1, 7),
                *(kernel.block, kernel.grid, 0, "8.0"),
                *(f"{value:.2f}" for value in values),
            ]
        )
    return (
        "==PROF== Connected to process 4711 (/usr/bin/python3.11)\n"
        f"==PROF== Disconnected from process 4711\n{text.getvalue()}"
    )


def power_log() -> str:
    """A second of training steps as nvidia-smi --query-gpu logs it, idle before and after."""
    chance = np.random.default_rng(SEED)
    text = (
        "timestamp, index, name, power.draw.instant [W], clocks.current.sm [MHz], "
        "clocks.current.memory [MHz], utilization.gpu [%]\n"
    )
    for number in range(24):
        works = 3 <= number < 21
        power = _varied(334.0 if works else 68.0, chance)
        state = f"{power:.2f} W, {1410 if works else 210} MHz, 1593 MHz, {97 if works else 0} %"
        second, milli = divmod(7_000 + 100 * number, 1000)
        text += f"2026/03/02 14:05:{second:02d}.{milli:03d}, 0, {DEVICE}, {state}\n"
    return text


def main() -> None:
    """Write the trace, the counters and the log of power."""
    packed = gzip.compress(json.dumps(trace()).encode(), mtime=0)
    (DATASETS / "training-step-trace.json.gz").write_bytes(packed)
    (DATASETS / "training-step-ncu.csv").write_text(ncu_page(), encoding="utf-8")
    (DATASETS / "training-step-power.csv").write_text(power_log(), encoding="utf-8")


if __name__ == "__main__":
    main()
