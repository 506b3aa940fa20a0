"""A real NVIDIA GPU through cuda-bindings (driver API): green contexts, launches, events."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.collect.compiling import INSTALL, Compiler
from mlscale.collect.device import DeviceInfo, EntryError, GpuError, scalar_or_buffer
from mlscale.collect.entries import Case, Entry
from mlscale.collect.nvml import NvmlSensors

_NEEDS_CUDA = 12000
_GREEN_CONTEXTS = 12040
_SM_IDS = 1024
_PROBE_CYCLES = 200_000

# Failures of one kernel that leave the context usable.
_OF_THE_KERNEL = (
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    "CUDA_ERROR_INVALID_VALUE",
)
_NO_GPU = ("CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_INVALID_DEVICE")


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise GpuError(f"cuda-bindings is not installed ({error}); {INSTALL}") from None
    return driver


def call(driver: Any, function: str, *arguments: Any) -> Any:
    """Call the driver; what follows the status. Raises EntryError or GpuError on a failure."""
    try:
        status, *values = getattr(driver, function)(*arguments)
    except RuntimeError as error:
        raise GpuError(f"no usable NVIDIA driver: {function}: {error}") from None
    if status != driver.CUresult.CUDA_SUCCESS:
        if status.name in _NO_GPU:
            raise GpuError(f"no NVIDIA GPU is visible ({status.name}); see nvidia-smi")
        kind = EntryError if status.name in _OF_THE_KERNEL else GpuError
        raise kind(f"the GPU failed: {function}: {status.name}")
    return values[0] if len(values) == 1 else values


class CudaGpu:
    """The first GPU that CUDA shows (CUDA_VISIBLE_DEVICES chooses another)."""

    def __init__(self) -> None:
        """Raises GpuError without bindings, driver or GPU, or with a driver before CUDA 12."""
        self._driver = driver = _driver()
        call(driver, "cuInit", 0)
        self._cuda = int(call(driver, "cuDriverGetVersion"))
        if self._cuda < _NEEDS_CUDA:
            raise GpuError(
                f"the driver is of CUDA {_version(self._cuda)}; collecting needs one of CUDA 12.0 "
                "or later, and of 12.4 or later to vary the CU count"
            )
        self._device = call(driver, "cuDeviceGet", 0)
        self._total = self._attribute("MULTIPROCESSOR_COUNT")
        capability = 10 * self._attribute("COMPUTE_CAPABILITY_MAJOR")
        capability += self._attribute("COMPUTE_CAPABILITY_MINOR")
        self._compiler = Compiler(f"sm_{capability}")
        bus = call(driver, "cuDeviceGetPCIBusId", 16, self._device).split(b"\0")[0].decode()
        self.sensors = NvmlSensors(bus)
        self._context = call(driver, "cuDevicePrimaryCtxRetain", self._device)
        call(driver, "cuCtxSetCurrent", self._context)
        self.info = DeviceInfo(
            name=call(driver, "cuDeviceGetName", 128, self._device).split(b"\0")[0].decode(),
            uuid=self.sensors.uuid,
            cu_count=self._total,
            capability=capability,
            engine_mhz=self._attribute("CLOCK_RATE") / 1e3,
            memory_mhz=self._attribute("MEMORY_CLOCK_RATE") / 1e3,
            memory_bus_bits=self._attribute("GLOBAL_MEMORY_BUS_WIDTH"),
            max_waves_per_cu=self._attribute("MAX_THREADS_PER_MULTIPROCESSOR")
            // self._attribute("WARP_SIZE"),
            l2_bytes=self._attribute("L2_CACHE_SIZE"),
            versions={
                "driver": self.sensors.driver,
                "cuda": _version(self._cuda),
                "nvrtc": self._compiler.version,
                **bindings(),
            },
        )

    def _attribute(self, name: str) -> int:
        which = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call(self._driver, "cuDeviceGetAttribute", which, self._device))

    def cu_counts(self) -> tuple[int, ...]:
        """What a split of the multiprocessors grants, and all; all alone before CUDA 12.4."""
        if self._cuda < _GREEN_CONTEXTS:
            return (self._total,)
        granted = {self._total}
        for count in range(1, self._total):
            group = self._group(count)
            if group is not None:
                granted.add(int(group.sm.smCount))
        return tuple(sorted(granted))

    def _group(self, count: int) -> Any | None:
        """A group of at least that many multiprocessors; None where there is none."""
        driver = self._driver
        kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
        whole = call(driver, "cuDeviceGetDevResource", self._device, kind)
        try:
            groups, found, _ = call(driver, "cuDevSmResourceSplitByCount", 1, whole, 0, count)
        except EntryError:  # more than a split can give
            return None
        except GpuError as error:
            if "RESOURCE" in str(error):
                return None
            raise
        return groups[0] if int(found) and groups else None

    def partition(self, cu_count: int) -> "CudaPartition":
        """Multiprocessors in a green context, or all of them in the primary one."""
        driver = self._driver
        if cu_count == self._total:
            call(driver, "cuCtxSetCurrent", self._context)
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            stream = call(driver, "cuStreamCreate", flags)
            return CudaPartition(driver, self._compiler, cu_count, stream)
        group = self._group(cu_count)
        if group is None or int(group.sm.smCount) != cu_count:
            raise GpuError(f"the GPU does not grant {cu_count} multiprocessors any more")
        description = call(driver, "cuDevResourceGenerateDesc", [group], 1)
        flag = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
        green = call(driver, "cuGreenCtxCreate", description, self._device, flag)
        call(driver, "cuCtxSetCurrent", call(driver, "cuCtxFromGreenCtx", green))
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        stream = call(driver, "cuGreenCtxStreamCreate", green, flags, 0)
        partition = CudaPartition(driver, self._compiler, cu_count, stream)
        partition.leave = lambda: self._leave(green)
        return partition

    def _leave(self, green: Any) -> None:
        """Destroy a green context, which must not be the current one."""
        self._driver.cuCtxSetCurrent(self._context)
        self._driver.cuGreenCtxDestroy(green)

    def close(self) -> None:
        """Release the primary context and NVML."""
        self._driver.cuDevicePrimaryCtxRelease(self._device)
        self.sensors.close()


class CudaPartition:
    """A stream on some multiprocessors; its context is the current one until it is closed."""

    def __init__(self, driver: Any, compiler: Compiler, cu_count: int, stream: Any) -> None:
        self.cu_count = cu_count
        self.leave: Callable[[], None] | None = None
        self._driver, self._compiler, self._stream = driver, compiler, stream

    def prepare(self, entry: Entry, case: Case) -> "CudaLaunch":
        """The kernel with its buffers filled. Raises EntryError."""
        return CudaLaunch(self._driver, self._stream, entry, case, self._compiler.image(entry))

    def used_cu_count(self) -> int:
        """Different multiprocessors that the blocks of a probe ran on."""
        used = Case((np.zeros(_SM_IDS, np.int32), np.int64(_PROBE_CYCLES)), {})
        probe = Entry("which_sm", "probe", "which_sm", 8 * self.cu_count, 64, lambda: used)
        launch = self.prepare(probe, used)
        try:
            launch.submit(1).elapsed_ms()
            return int(np.count_nonzero(launch.outputs((0,))[0]))
        finally:
            launch.close()

    def close(self) -> None:
        """Destroy the stream and the green context."""
        self._driver.cuStreamDestroy(self._stream)
        if self.leave is not None:
            self.leave()


class CudaLaunch:
    """A kernel of the suite on a stream.

    It is loaded as a library, whose kernels run in the context of the stream they are launched on.
    """

    def __init__(self, driver: Any, stream: Any, entry: Entry, case: Case, image: bytes) -> None:
        self._driver, self._stream = driver, stream
        self._shape = (entry.blocks, 1, 1, entry.threads, 1, 1, 0)
        self._buffers: dict[int, tuple[Any, NDArray[Any]]] = {}
        self._library = call(driver, "cuLibraryLoadData", image, [], [], 0, [], [], 0)
        try:
            self._kernel = call(driver, "cuLibraryGetKernel", self._library, entry.name.encode())
            values = [self._value(n, argument) for n, argument in enumerate(case.arguments)]
        except BaseException:
            self.close()
            raise
        call(driver, "cuCtxSynchronize")
        self._values = values
        self._parameters = np.array([value.ctypes.data for value in values], dtype=np.uint64)

    def _value(self, number: int, argument: NDArray[Any] | np.generic) -> NDArray[Any]:
        """What the kernel is passed: the number itself, or the address of a filled buffer."""
        array, is_buffer = scalar_or_buffer(argument)
        if not is_buffer:
            return array
        pointer = call(self._driver, "cuMemAlloc", array.nbytes)
        self._buffers[number] = (pointer, array)
        call(self._driver, "cuMemcpyHtoD", pointer, array.ctypes.data, array.nbytes)
        return np.array([int(pointer)], dtype=np.uint64)

    def submit(self, count: int) -> "CudaBatch":
        """Queue launches between two events."""
        driver = self._driver
        batch = CudaBatch(driver)
        call(driver, "cuEventRecord", batch.start, self._stream)
        parameters = int(self._parameters.ctypes.data)
        for _ in range(count):
            call(driver, "cuLaunchKernel", self._kernel, *self._shape, self._stream, parameters, 0)
        call(driver, "cuEventRecord", batch.end, self._stream)
        return batch

    def outputs(self, arguments: tuple[int, ...]) -> dict[int, NDArray[Any]]:
        """The content of those buffers, once the stream is through."""
        call(self._driver, "cuStreamSynchronize", self._stream)
        contents = {}
        for number in arguments:
            pointer, array = self._buffers[number]
            contents[number] = found = np.empty_like(array)
            call(self._driver, "cuMemcpyDtoH", found.ctypes.data, pointer, found.nbytes)
        return contents

    def close(self) -> None:
        """Free buffers and code."""
        for pointer, _ in self._buffers.values():
            self._driver.cuMemFree(pointer)
        self._buffers.clear()
        self._driver.cuLibraryUnload(self._library)


class CudaBatch:
    """Two events, and what ran between them."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        flag = driver.CUevent_flags.CU_EVENT_DEFAULT
        self.start = call(driver, "cuEventCreate", flag)
        self.end = call(driver, "cuEventCreate", flag)

    def done(self) -> bool:
        """Whether the second event was reached. Raises GpuError where it never will be."""
        driver = self._driver
        (status,) = driver.cuEventQuery(self.end)
        if status == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        call(driver, "cuEventQuery", self.end)
        return True

    def elapsed_ms(self) -> float:
        """Time between the events [ms]."""
        driver = self._driver
        call(driver, "cuEventSynchronize", self.end)
        elapsed = float(call(driver, "cuEventElapsedTime", self.start, self.end))
        for event in (self.start, self.end):
            driver.cuEventDestroy(event)
        return elapsed


def bindings() -> dict[str, str]:
    """The versions of the Python bindings in use."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("cuda-bindings", "nvidia-ml-py"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
