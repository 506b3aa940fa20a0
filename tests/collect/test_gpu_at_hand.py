"""The collector on the GPU at hand; skipped where there is none, or no binding. No clock is set."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Capture, succeed

from mlscale import read
from mlscale.collect.device import GpuError, MeasuredGpu
from mlscale.collect.suite import SUITE


@pytest.fixture(scope="module")
def gpu() -> Iterator[MeasuredGpu]:
    from mlscale.collect.cuda_device import CudaGpu

    try:
        found = CudaGpu()
    except GpuError as error:
        pytest.skip(f"no GPU to run on: {error}")
    yield found
    found.close()


def test_every_kernel_gives_what_numpy_gives(gpu: MeasuredGpu) -> None:
    """On the smallest part of the GPU that is granted, and on all of it."""
    off = {}
    for entry in SUITE:
        if entry.capability > gpu.info.capability:
            continue
        case = entry.case()
        for cu_count in {gpu.cu_counts()[0], gpu.cu_counts()[-1]}:
            partition = gpu.partition(cu_count)
            launch = partition.prepare(entry, case)
            launch.submit(1).elapsed_ms()
            error = case.error(launch.outputs(tuple(case.expected)))
            launch.close()
            partition.close()
            if error > case.tolerance:
                off[entry.name] = error
    assert off == {}


def test_a_part_of_the_gpu_is_what_it_says(gpu: MeasuredGpu) -> None:
    for cu_count in gpu.cu_counts():
        partition = gpu.partition(cu_count)
        assert partition.used_cu_count() == cu_count
        partition.close()


def test_collected_arithmetic_scales_with_the_cus(
    gpu: MeasuredGpu, capsys: Capture, tmp_path: Path
) -> None:
    """Independent chains of multiply-adds: twice the CUs, half the time, to a fifth."""
    counts = gpu.cu_counts()
    if len(counts) < 2:
        pytest.skip("this driver grants all multiprocessors or none")
    succeed(
        capsys, "collect", "--kernels", "fma_4chains", "--no-counters", "--power-seconds", "0",
        "-o", tmp_path / "out",
    )  # fmt: skip
    data = read(tmp_path / "out" / "measurements.csv")
    slowest, fastest = data.time_ms[0, 0, 0, 0], data.time_ms[0, -1, 0, 0]
    gained = data.grid.cu_count[-1] / data.grid.cu_count[0]
    assert slowest / fastest == pytest.approx(gained, rel=0.2)
