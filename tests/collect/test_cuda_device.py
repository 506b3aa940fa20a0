# ruff: noqa: ARG002
"""The vendor's bindings as the collector uses them: through fakes, and by name the real ones."""

import ast
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from vendor import Status, vendor

from mlscale.collect import suite_streams as streams
from mlscale.collect.compiling import Compiler
from mlscale.collect.cuda_device import CudaGpu
from mlscale.collect.device import ClockError, EntryError, GpuError
from mlscale.collect.launch_once import launch_once
from mlscale.collect.measuring import measure

__all__ = ["vendor"]
FOLDER = Path(__file__).parents[2] / "mlscale" / "collect"


class TestGpu:
    def test_is_described(self, vendor: SimpleNamespace) -> None:
        info = CudaGpu().info
        assert (info.name, info.uuid) == ("NVIDIA Made 9000", "GPU-made-9000")
        assert (info.cu_count, info.capability) == (20, 90)
        assert (info.engine_mhz, info.memory_mhz) == (1980, 2619)
        assert (info.memory_bus_bits, info.max_waves_per_cu) == (6144, 64)
        assert info.l2_bytes == 50 * 2**20
        assert info.versions["driver"] == "570.1"
        assert info.versions["cuda"] == "12.8"
        assert info.versions["nvrtc"] == "12.8"

    def test_grants_multiprocessors_by_groups(self, vendor: SimpleNamespace) -> None:
        """The fake rounds up to eights, of 20 in all."""
        gpu = CudaGpu()
        assert gpu.cu_counts() == (8, 16, 20)
        for cu_count in (8, 20):
            partition = gpu.partition(cu_count)
            assert partition.used_cu_count() == cu_count
            partition.close()
        streams_used = [stream for _, _, stream in vendor.driver.launched]
        assert streams_used == ["stream of green 8", "stream of primary"]
        assert vendor.driver.current == "primary"

    def test_gives_everything_back(self, vendor: SimpleNamespace) -> None:
        vendor.nvml.fails["nvmlDeviceGetCurrentClocksThrottleReasons"] = 3  # else it rests
        gpu = CudaGpu()
        partition, entry = gpu.partition(16), streams.copy(5000)
        launch = partition.prepare(entry, entry.case())
        measure(launch, gpu.sensors, 0.0)
        launch.close()
        partition.close()
        gpu.close()
        # Batches that were still queued when the sample was complete are waited for, too.
        assert vendor.driver.held == []
        assert vendor.driver.memory == {}

    def test_launches_with_the_arguments_of_the_case(self, vendor: SimpleNamespace) -> None:
        """The fake copies what the parameters point to; unchecked positions must be right, too."""
        entry = streams.copy(5000)
        case = entry.case()
        launch = CudaGpu().partition(20).prepare(entry, case)
        assert launch.submit(3).elapsed_ms() == 3 * 1.5
        found = launch.outputs((1,))
        assert case.error(found) == 0
        np.testing.assert_array_equal(found[1], case.arguments[0])
        assert vendor.driver.launched == [("copy_4k", 5120, "stream of primary")] * 3

    def test_launch_once(self, vendor: SimpleNamespace) -> None:
        assert launch_once(CudaGpu(), 8, ["few_threads_1", "matmul_naive_256"]) == []
        launched = [(name, stream) for name, _, stream in vendor.driver.launched]
        assert launched == [
            ("matmul_naive_256", "stream of green 8"), ("few_threads_1", "stream of green 8"),
        ]  # fmt: skip


class TestNoGpu:
    @pytest.mark.parametrize("module", ["cuda.bindings", "pynvml"])
    def test_a_binding_is_missing(
        self, vendor: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, module: str
    ) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(GpuError, match=r"is not installed.*pip install 'mlscale\[collect\]'"):
            CudaGpu()

    def test_no_driver(self, vendor: SimpleNamespace) -> None:
        vendor.driver.no_library = True
        with pytest.raises(
            GpuError, match=r"no usable NVIDIA driver: cuInit: libcuda.so.1 was not"
        ):
            CudaGpu()

    @pytest.mark.parametrize("asked", ["nvmlInit", "nvmlDeviceGetHandleByPciBusId"])
    def test_no_permission(self, vendor: SimpleNamespace, asked: str) -> None:
        vendor.nvml.fails[asked] = vendor.nvml.NVML_ERROR_NO_PERMISSION
        with pytest.raises(GpuError, match="NVML does not work: Insufficient Permissions"):
            CudaGpu()

    def test_no_gpu(self, vendor: SimpleNamespace) -> None:
        vendor.driver.fails["cuInit"] = Status.CUDA_ERROR_NO_DEVICE
        with pytest.raises(GpuError, match=r"no NVIDIA GPU is visible \(CUDA_ERROR_NO_DEVICE\)"):
            CudaGpu()

    def test_too_old_a_driver(self, vendor: SimpleNamespace) -> None:
        vendor.driver.version = 11080
        with pytest.raises(GpuError, match=r"is of CUDA 11\.8; collecting needs one of CUDA 12\.0"):
            CudaGpu()

    def test_a_driver_before_green_contexts(self, vendor: SimpleNamespace) -> None:
        vendor.driver.version = 12020
        vendor.driver.fails["cuDeviceGetDevResource"] = Status.CUDA_ERROR_INVALID_VALUE
        assert CudaGpu().cu_counts() == (20,)

    def test_too_old_a_gpu_for_nvrtc(self, vendor: SimpleNamespace) -> None:
        vendor.nvrtc.archs = [100, 120]
        with pytest.raises(GpuError, match="does not compile for sm_90, only for compute capabil"):
            CudaGpu()


class TestCompiler:
    def test_names_the_function_and_the_architecture(self, vendor: SimpleNamespace) -> None:
        entry = streams.strided(1024, 8)
        assert Compiler("sm_90").image(entry) == b"cubin strided_8_1k"
        assert vendor.nvrtc.options == [
            b"--gpu-architecture=sm_90", b"-DKERNEL=strided_8_1k", b"-DSTRIDE=8",
        ]  # fmt: skip

    def test_gives_ptx_for_a_newer_gpu(self, vendor: SimpleNamespace) -> None:
        assert Compiler("sm_130").image(streams.copy(256)) == b"ptx copy_256"
        assert vendor.nvrtc.options[0] == b"--gpu-architecture=compute_90"

    def test_says_the_first_error(self, vendor: SimpleNamespace) -> None:
        vendor.nvrtc.breaks = True
        message = r"'copy_256' does not compile for sm_90: kernel.cu\(3\): error: expected a ';'$"
        with pytest.raises(EntryError, match=message):
            Compiler("sm_90").image(streams.copy(256))


class TestFailures:
    def test_of_one_kernel(self, vendor: SimpleNamespace) -> None:
        partition, entry = CudaGpu().partition(20), streams.copy(256)
        vendor.driver.fails["cuMemAlloc"] = Status.CUDA_ERROR_OUT_OF_MEMORY
        with pytest.raises(EntryError, match="cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"):
            partition.prepare(entry, entry.case())
        assert "library" not in vendor.driver.held

    def test_of_the_gpu(self, vendor: SimpleNamespace) -> None:
        entry = streams.copy(256)
        launch = CudaGpu().partition(20).prepare(entry, entry.case())
        batch = launch.submit(1)
        vendor.driver.fails["cuEventSynchronize"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
        with pytest.raises(GpuError, match="cuEventSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"):
            batch.elapsed_ms()

    def test_while_a_kernel_runs_is_no_endless_wait(self, vendor: SimpleNamespace) -> None:
        """A kernel that crashes leaves NVML healthy: the event alone tells, and never gets done."""
        entry, gpu = streams.copy(256), CudaGpu()
        launch = gpu.partition(20).prepare(entry, entry.case())
        batch = launch.submit(1)
        assert batch.done()
        batch.end.after = None  # as long as it was not reached
        assert not batch.done()
        vendor.driver.fails["cuEventQuery"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
        with pytest.raises(GpuError, match="cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS"):
            measure(launch, gpu.sensors, 0.0)

    def test_of_all_that_closing_asks_for_is_passed_over(self, vendor: SimpleNamespace) -> None:
        """A lost GPU fails these too; what is told is how it was lost."""
        gpu = CudaGpu()
        partition = gpu.partition(8)
        for name in ("cuStreamDestroy", "cuCtxSetCurrent", "cuGreenCtxDestroy"):
            vendor.driver.fails[name] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
        vendor.driver.fails["cuDevicePrimaryCtxRelease"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
        vendor.nvml.fails["nvmlShutdown"] = vendor.nvml.NVML_ERROR_GPU_IS_LOST
        partition.close()
        gpu.close()

    def test_of_a_split(self, vendor: SimpleNamespace) -> None:
        gpu = CudaGpu()
        with pytest.raises(GpuError, match="does not grant 24 multiprocessors any more"):
            gpu.partition(24)


class TestSensors:
    def test_reading(self, vendor: SimpleNamespace) -> None:
        reading = CudaGpu().sensors.read()
        assert (reading.engine_mhz, reading.memory_mhz, reading.reasons) == (1755, 2619, 4)
        assert (reading.energy_j, reading.power_w, reading.temperature_c) == (5000.0, None, 55)

    def test_best_way_to_sense_power(self, vendor: SimpleNamespace) -> None:
        """In turn: the energy counter, the two fields [mW], the plain question [mW], none."""
        unsupported = vendor.nvml.NVML_ERROR_NOT_SUPPORTED
        found = []
        for taken_away in (
            lambda: None,
            lambda: vendor.nvml.fails.update(nvmlDeviceGetTotalEnergyConsumption=unsupported),
            lambda: vendor.nvml.fields.pop(186),
            lambda: vendor.nvml.fields.pop(185),
            lambda: vendor.nvml.fails.update(nvmlDeviceGetPowerUsage=unsupported),
        ):
            taken_away()
            sensors = CudaGpu().sensors
            found.append((sensors.mode, sensors.read().power_w))
        assert found == [
            ("energy", None), ("instant", 300.0), ("average", 290.0), ("usage", 280.0),
            ("none", None),
        ]  # fmt: skip

    def test_lost(self, vendor: SimpleNamespace) -> None:
        sensors = CudaGpu().sensors
        vendor.nvml.fails["nvmlDeviceGetClockInfo"] = vendor.nvml.NVML_ERROR_GPU_IS_LOST
        with pytest.raises(GpuError, match="the GPU was lost"):
            sensors.read()

    def test_clocks(self, vendor: SimpleNamespace) -> None:
        sensors = CudaGpu().sensors
        assert sensors.supported_clocks() == {1593: (1200,), 2619: (1200, 1980)}
        sensors.lock_clocks(1200, None)
        sensors.lock_clocks(None, 1593)
        sensors.reset_clocks()
        assert vendor.nvml.done == [
            ("nvmlDeviceSetGpuLockedClocks", 1200, 1200),
            ("nvmlDeviceSetMemoryLockedClocks", 1593, 1593),
            ("nvmlDeviceResetGpuLockedClocks",),
            ("nvmlDeviceResetMemoryLockedClocks",),
        ]

    def test_clocks_without_the_right(self, vendor: SimpleNamespace) -> None:
        sensors = CudaGpu().sensors
        vendor.nvml.fails["nvmlDeviceSetGpuLockedClocks"] = vendor.nvml.NVML_ERROR_NO_PERMISSION
        with pytest.raises(ClockError, match="no right to set the engine clock: run as root"):
            sensors.lock_clocks(1200, None)

    def test_a_board_whose_memory_clock_cannot_be_locked_is_reset(
        self, vendor: SimpleNamespace
    ) -> None:
        sensors = CudaGpu().sensors
        vendor.nvml.fails["nvmlDeviceResetMemoryLockedClocks"] = 3
        sensors.reset_clocks()
        vendor.nvml.fails["nvmlDeviceSetMemoryLockedClocks"] = 3
        with pytest.raises(ClockError, match="memory clock cannot be set to 1593 MHz: Not Supp"):
            sensors.lock_clocks(None, 1593)


def used(file: str, holder: str) -> set[str]:
    """The attributes of a binding that a module asks for: driver.cuX, and call(driver, "cuX")."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    dotted = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(holder)
    }
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    named = {t for t in texts if isinstance(t, str) and re.fullmatch(r"(cu[A-Z]|nvml[A-Z])\w+", t)}
    return {name for name in dotted | named if not name.startswith("_")}


@pytest.mark.parametrize(
    ("module", "file", "holder"),
    [
        ("cuda.bindings.driver", "cuda_device.py", "driver"),
        ("cuda.bindings.nvrtc", "compiling.py", "nvrtc"),
        ("pynvml", "nvml.py", "nvml"),
    ],
)
def test_the_real_bindings_have_what_is_used(module: str, file: str, holder: str) -> None:
    """Skipped where the extra is not installed: they are imported, no GPU is needed."""
    real = pytest.importorskip(module, reason=f"{module} is not installed")
    names = used(file, holder)
    assert len(names) >= 8
    assert [name for name in sorted(names) if not hasattr(real, name)] == []
    if holder == "driver":
        text = (FOLDER / file).read_text(encoding="utf-8")
        for attribute in re.findall(r'_attribute\("(\w+)"\)', text):
            assert f"CU_DEVICE_ATTRIBUTE_{attribute}" in real.CUdevice_attribute.__members__
        for status in re.findall(r'"(CUDA_ERROR_\w+)"', text):
            assert status in real.CUresult.__members__
