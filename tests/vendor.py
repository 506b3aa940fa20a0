# ruff: noqa: N802, N815, ARG002
"""Fakes of the vendor's Python bindings: cuda.bindings.driver, cuda.bindings.nvrtc and pynvml.

They answer as the real ones do (a tuple with the status first; NVML by exceptions), with a made
GPU of 20 multiprocessors that are granted in eights. Device memory is host memory, and launching
reads the kernel's parameters as the driver would, so that packing is checked.
"""

import ctypes
import sys
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

Status = IntEnum(
    "Status",
    {
        "CUDA_SUCCESS": 0,
        "CUDA_ERROR_INVALID_VALUE": 1,
        "CUDA_ERROR_OUT_OF_MEMORY": 2,
        "CUDA_ERROR_NO_DEVICE": 100,
        "CUDA_ERROR_NOT_READY": 600,
        "CUDA_ERROR_ILLEGAL_ADDRESS": 700,
        "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION": 915,
    },
)
ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 20,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "CLOCK_RATE": 1980000,
    "MEMORY_CLOCK_RATE": 2619000,
    "GLOBAL_MEMORY_BUS_WIDTH": 6144,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "WARP_SIZE": 32,
    "L2_CACHE_SIZE": 52428800,
}
# As in cuda-bindings 12.9, whose enumerations cannot be subscripted.
_Attribute = SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES})


class Driver(ModuleType):
    """cuda.bindings.driver of one process; `fails` answers a function with a status."""

    CUresult = Status
    CUdevice_attribute = _Attribute
    CUdevResourceType = SimpleNamespace(CU_DEV_RESOURCE_TYPE_SM=1)
    CUgreenCtxCreate_flags = SimpleNamespace(CU_GREEN_CTX_DEFAULT_STREAM=1)
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT=0)

    def __init__(self) -> None:
        super().__init__("cuda.bindings.driver")
        self.version = 12080
        self.fails: dict[str, Status] = {}
        self.no_library = False
        self.memory: dict[int, Any] = {}
        self.held: list[str] = []
        self.launched: list[tuple[str, int, Any]] = []
        self.sms = 20

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("cu") and name in self.fails:
            return lambda *_: (self.fails[name],)
        return found

    def cuInit(self, flags: int) -> Any:
        if self.no_library:
            raise RuntimeError("libcuda.so.1 was not found")
        return (Status.CUDA_SUCCESS,)

    def cuDriverGetVersion(self) -> Any:
        return Status.CUDA_SUCCESS, self.version

    def cuDeviceGet(self, number: int) -> Any:
        return Status.CUDA_SUCCESS, number

    def cuDeviceGetAttribute(self, which: str, device: int) -> Any:
        return Status.CUDA_SUCCESS, ATTRIBUTES[which]

    def cuDeviceGetPCIBusId(self, length: int, device: int) -> Any:
        return Status.CUDA_SUCCESS, b"0000:01:00.0\0\0\0\0"[:length]

    def cuDeviceGetName(self, length: int, device: int) -> Any:
        return Status.CUDA_SUCCESS, b"NVIDIA Made 9000" + b"\0" * (length - 16)

    def cuDevicePrimaryCtxRetain(self, device: int) -> Any:
        self.held.append("primary")
        return Status.CUDA_SUCCESS, "primary"

    def cuDevicePrimaryCtxRelease(self, device: int) -> Any:
        self.held.remove("primary")
        return (Status.CUDA_SUCCESS,)

    def cuCtxSetCurrent(self, context: str) -> Any:
        self.current = context
        return (Status.CUDA_SUCCESS,)

    def cuCtxSynchronize(self) -> Any:
        return (Status.CUDA_SUCCESS,)

    def cuDeviceGetDevResource(self, device: int, kind: int) -> Any:
        return Status.CUDA_SUCCESS, SimpleNamespace(sm=SimpleNamespace(smCount=20))

    def cuDevSmResourceSplitByCount(self, groups: int, whole: Any, flags: int, least: int) -> Any:
        granted = -(-least // 8) * 8
        if granted > whole.sm.smCount:
            return (Status.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, None, 0, None)
        group = SimpleNamespace(sm=SimpleNamespace(smCount=granted))
        return Status.CUDA_SUCCESS, [group], 1, SimpleNamespace(sm=SimpleNamespace(smCount=0))

    def cuDevResourceGenerateDesc(self, resources: list[Any], number: int) -> Any:
        assert len(resources) == number
        return Status.CUDA_SUCCESS, resources[0].sm.smCount

    def cuGreenCtxCreate(self, description: int, device: int, flags: int) -> Any:
        assert flags == 1  # the default stream is required
        self.held.append(f"green {description}")
        return Status.CUDA_SUCCESS, f"green {description}"

    def cuCtxFromGreenCtx(self, green: str) -> Any:
        return Status.CUDA_SUCCESS, f"context of {green}"

    def cuGreenCtxStreamCreate(self, green: str, flags: int, priority: int) -> Any:
        assert flags == 1  # non-blocking is required
        self.held.append(f"stream of {green}")
        return Status.CUDA_SUCCESS, f"stream of {green}"

    def cuStreamCreate(self, flags: int) -> Any:
        self.held.append("stream of primary")
        return Status.CUDA_SUCCESS, "stream of primary"

    def cuStreamDestroy(self, stream: str) -> Any:
        self.held.remove(stream)
        return (Status.CUDA_SUCCESS,)

    def cuGreenCtxDestroy(self, green: str) -> Any:
        assert self.current != f"context of {green}"
        self.held.remove(green)
        return (Status.CUDA_SUCCESS,)

    def cuStreamSynchronize(self, stream: str) -> Any:
        return (Status.CUDA_SUCCESS,)

    def cuLibraryLoadData(self, code: bytes, *options: Any) -> Any:
        assert options == ([], [], 0, [], [], 0)
        self.held.append("library")
        return Status.CUDA_SUCCESS, code

    def cuLibraryGetKernel(self, library: bytes, name: bytes) -> Any:
        assert name in library
        return Status.CUDA_SUCCESS, name.decode()

    def cuLibraryUnload(self, library: bytes) -> Any:
        self.held.remove("library")
        return (Status.CUDA_SUCCESS,)

    def cuMemAlloc(self, size: int) -> Any:
        buffer = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(buffer)] = buffer
        return Status.CUDA_SUCCESS, ctypes.addressof(buffer)

    def cuMemFree(self, pointer: int) -> Any:
        del self.memory[pointer]
        return (Status.CUDA_SUCCESS,)

    def cuMemcpyHtoD(self, to: int, source: int, size: int) -> Any:
        ctypes.memmove(to, source, size)
        return (Status.CUDA_SUCCESS,)

    def cuMemcpyDtoH(self, to: int, source: int, size: int) -> Any:
        ctypes.memmove(to, source, size)
        return (Status.CUDA_SUCCESS,)

    def cuEventCreate(self, flags: int) -> Any:
        self.held.append("event")
        return Status.CUDA_SUCCESS, SimpleNamespace(after=None)

    def cuEventDestroy(self, event: Any) -> Any:
        self.held.remove("event")
        return (Status.CUDA_SUCCESS,)

    def cuEventRecord(self, event: Any, stream: str) -> Any:
        event.after = len(self.launched)
        return (Status.CUDA_SUCCESS,)

    def cuEventQuery(self, event: Any) -> Any:
        return (Status.CUDA_SUCCESS if event.after is not None else Status.CUDA_ERROR_NOT_READY,)

    def cuEventSynchronize(self, event: Any) -> Any:
        return (Status.CUDA_SUCCESS,)

    def cuEventElapsedTime(self, start: Any, end: Any) -> Any:
        return Status.CUDA_SUCCESS, 1.5 * (end.after - start.after)

    def cuLaunchKernel(self, kernel: str, *given: Any) -> Any:
        blocks, *ones, threads, y, z, shared, stream, parameters, extra = given
        assert (*ones, y, z, shared, extra) == (1, 1, 1, 1, 0, 0)
        self.launched.append((kernel, blocks * threads, stream))
        addresses = np.ctypeslib.as_array((ctypes.c_uint64 * 3).from_address(parameters))
        values = [ctypes.c_uint64.from_address(int(address)).value for address in addresses[:2]]
        if kernel == "which_sm":
            count = int(stream.rsplit(" ", 1)[1]) if "green" in stream else self.sms
            for sm in range(count):
                ctypes.c_int32.from_address(values[0] + 4 * sm).value = 1
        elif kernel.startswith("copy"):
            n = ctypes.c_int32.from_address(int(addresses[2])).value
            ctypes.memmove(values[1], values[0], 4 * n)
        return (Status.CUDA_SUCCESS,)


class Nvrtc(ModuleType):
    """cuda.bindings.nvrtc; what it compiles is the function's name."""

    nvrtcResult = IntEnum("nvrtcResult", {"NVRTC_SUCCESS": 0, "NVRTC_ERROR_COMPILATION": 6})

    def __init__(self) -> None:
        super().__init__("cuda.bindings.nvrtc")
        self.archs = [50, 70, 80, 90]
        self.breaks = False
        self.options: list[bytes] = []
        self.log = b"kernel.cu(3): error: expected a ';'\nmore\0"

    def nvrtcGetSupportedArchs(self) -> Any:
        return self.nvrtcResult.NVRTC_SUCCESS, self.archs

    def nvrtcVersion(self) -> Any:
        return self.nvrtcResult.NVRTC_SUCCESS, 12, 8

    def nvrtcCreateProgram(self, text: bytes, name: bytes, *headers: Any) -> Any:
        assert headers == (0, [], [])
        return self.nvrtcResult.NVRTC_SUCCESS, name

    def nvrtcCompileProgram(self, program: bytes, number: int, options: list[bytes]) -> Any:
        assert len(options) == number
        self.options = options
        status = "NVRTC_ERROR_COMPILATION" if self.breaks else "NVRTC_SUCCESS"
        return (self.nvrtcResult[status],)

    def nvrtcGetProgramLogSize(self, program: bytes) -> Any:
        return self.nvrtcResult.NVRTC_SUCCESS, len(self.log)

    def nvrtcGetProgramLog(self, program: bytes, log: bytes) -> Any:
        return self._fill(log, self.log)

    def nvrtcGetCUBINSize(self, program: bytes) -> Any:
        return self.nvrtcResult.NVRTC_SUCCESS, len(b"cubin " + program)

    def nvrtcGetCUBIN(self, program: bytes, image: bytes) -> Any:
        return self._fill(image, b"cubin " + program)

    def nvrtcGetPTXSize(self, program: bytes) -> Any:
        return self.nvrtcResult.NVRTC_SUCCESS, len(b"ptx " + program)

    def nvrtcGetPTX(self, program: bytes, image: bytes) -> Any:
        return self._fill(image, b"ptx " + program)

    def nvrtcDestroyProgram(self, program: bytes) -> Any:
        return (self.nvrtcResult.NVRTC_SUCCESS,)

    def _fill(self, buffer: bytes, content: bytes) -> Any:
        """The real binding, too, writes into the bytes object that it is given."""
        assert len(buffer) == len(content)
        start = bytes.__basicsize__ - 1
        ctypes.memmove(id(buffer) + start, content, len(content))
        return (self.nvrtcResult.NVRTC_SUCCESS,)


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(
            {4: "Insufficient Permissions", 3: "Not Supported"}.get(value, "GPU is lost")
        )
        self.value = value


class Nvml(ModuleType):
    """pynvml; `fails` answers a function with an error's number."""

    NVMLError = NvmlError
    NVML_SUCCESS = 0
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_RESET_REQUIRED = 16
    NVML_ERROR_GPU_NOT_FOUND = 28
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
    NVML_TEMPERATURE_GPU = 0
    NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT = 185, 186

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.fails: dict[str, int] = {}
        self.fields = {185: 290_000, 186: 300_000}
        self.done: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def ask(*arguments: Any) -> Any:
            if name in self.fails:
                raise NvmlError(self.fails[name])
            return self._answer(name, arguments[1:])

        return ask

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetHandleByPciBusId": "board",
            "nvmlDeviceGetUUID": "GPU-made-9000",
            "nvmlSystemGetDriverVersion": "570.1",
            "nvmlDeviceGetTotalEnergyConsumption": 5_000_000,
            "nvmlDeviceGetPowerUsage": 280_000,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
            "nvmlDeviceGetTemperature": 55,
            "nvmlDeviceGetSupportedMemoryClocks": [2619, 1593],
        }
        if name == "nvmlDeviceGetClockInfo":
            return {1: 1755, 2: 2619}[arguments[0]]
        if name == "nvmlDeviceGetSupportedGraphicsClocks":
            return [1980, 1200] if arguments[0] == 2619 else [1200]
        if name == "nvmlDeviceGetFieldValues":
            (field,) = arguments[0]
            known = self.fields.get(field)
            value = SimpleNamespace(uiVal=known or 0)
            return [SimpleNamespace(nvmlReturn=0 if known else 3, value=value)]
        if "Set" in name or "Reset" in name:
            self.done.append((name, *arguments))
        return answers.get(name)


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The three fakes, put where the real ones are imported from."""
    fakes = SimpleNamespace(driver=Driver(), nvrtc=Nvrtc(), nvml=Nvml())
    bindings = ModuleType("cuda.bindings")
    bindings.driver, bindings.nvrtc = fakes.driver, fakes.nvrtc  # type: ignore[attr-defined]
    package = ModuleType("cuda")
    package.bindings = bindings  # type: ignore[attr-defined]
    for name, module in (
        ("cuda", package),
        ("cuda.bindings", bindings),
        ("cuda.bindings.driver", fakes.driver),
        ("cuda.bindings.nvrtc", fakes.nvrtc),
        ("pynvml", fakes.nvml),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    return fakes
