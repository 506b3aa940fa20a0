"""A made NVIDIA GPU behind the calls of cuda-python 12.9 and 13.5, and of nvidia-ml-py 13.615.

Its functions have the names, the parameters and the shapes of answers of those packages
(`test_cuda_path.py` compares the signatures where they are installed). Time is virtual: a launch by
Python takes launch_us of the host, a kernel kernel_us on all SMs and more on fewer. What is queued
on a stream is done when its time has come, or when something waits for the stream; a copy waits
for those streams alone that block. A stream holds 1024 launches, and another waits for room.
"""

# ruff: noqa: N801, N802, N803, N815, ARG002, PLR0917
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

SMS, GROUP, QUEUE, POWER_MW = 132, 8, 1024, 321_000
UUID = bytes(range(16))
UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


class cudaError_t(IntEnum):
    cudaSuccess = 0
    cudaErrorNoDevice = 100
    cudaErrorNotReady = 600


OK = cudaError_t.cudaSuccess


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_PTX = 218


class nvrtcResult(IntEnum):
    NVRTC_SUCCESS = 0


class CUdeviceptr(int):
    """An address; the number of its buffer."""


@dataclass
class Stream:
    sms: int = SMS
    blocks_copies: bool = True
    end_us: float = 0.0
    queue: list[tuple[float, Callable[[], None]]] = field(default_factory=list)


@dataclass
class Gpu:
    """Its state. kernel: what a launch does to its arguments, buffers as bytes, in kernel_us."""

    kernel: Callable[..., None]
    launch_us: float = 10.0
    kernel_us: float = 4000.0
    now_us: float = 0.0
    buffers: list[Any] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    sms_used: list[int] = field(default_factory=list)
    profiling: bool = False
    profiled: int = 0
    power_mw: Callable[["Gpu"], int] = lambda _: POWER_MW
    engine_mhz: Callable[["Gpu"], int] = lambda _: 1755

    def progress(self, streams: list[Stream], *, wait: bool) -> None:
        """Do what is queued there: all of it, or what has had its time."""
        for stream in streams:
            if wait:
                self.now_us = max(self.now_us, stream.end_us)
            while stream.queue and stream.queue[0][0] <= self.now_us:
                stream.queue.pop(0)[1]()

    def before_a_copy(self) -> None:
        self.progress([s for s in self.streams if s.blocks_copies], wait=True)
        self.progress(self.streams, wait=False)


class Driver:
    CUresult, CUdeviceptr, CUDA_VERSION = CUresult, CUdeviceptr, 12090
    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=16)
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_NUM_REGS=4)
    CUdevResourceType = SimpleNamespace(CU_DEV_RESOURCE_TYPE_SM=1)
    CUgreenCtxCreate_flags = SimpleNamespace(CU_GREEN_CTX_DEFAULT_STREAM=1)
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def cuInit(self, Flags: int) -> Any:
        return (CUresult(0),)

    def cuDeviceGet(self, ordinal: int) -> Any:
        return CUresult(0), ordinal

    def cuDevicePrimaryCtxRetain(self, dev: int) -> Any:
        return CUresult(0), "context"

    def cuCtxSetCurrent(self, ctx: Any) -> Any:
        return (CUresult(0),)

    def cuStreamCreate(self, Flags: int) -> Any:
        self.gpu.streams.append(Stream(blocks_copies=Flags == 0))
        return CUresult(0), self.gpu.streams[-1]

    def cuStreamDestroy(self, hStream: Stream) -> Any:
        return (CUresult(0),)

    def cuEventCreate(self, Flags: int) -> Any:
        return CUresult(0), SimpleNamespace(us=0.0)

    def cuDeviceGetAttribute(self, attrib: int, dev: int) -> Any:
        return CUresult(0), {16: SMS}[attrib]

    def cuDeviceGetDevResource(self, device: int, typename: int) -> Any:
        return CUresult(0), SimpleNamespace(sm=SimpleNamespace(smCount=SMS))

    def cuDevSmResourceSplitByCount(
        self, nbGroups: int, input_: Any, useFlags: int, minCount: int
    ) -> Any:
        """Groups of 8 on Hopper, of 132 at most."""
        granted = -(-minCount // GROUP) * GROUP
        assert granted <= SMS, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"
        return CUresult(0), [SimpleNamespace(sm=SimpleNamespace(smCount=granted))], nbGroups, None

    def cuDevResourceGenerateDesc(self, resources: list[Any], nbResources: int) -> Any:
        return CUresult(0), resources[0].sm.smCount

    def cuGreenCtxCreate(self, desc: int, dev: int, flags: int) -> Any:
        assert flags == 1, "CU_GREEN_CTX_DEFAULT_STREAM is required"
        return CUresult(0), desc

    def cuGreenCtxStreamCreate(self, greenCtx: int, flags: int, priority: int) -> Any:
        assert flags == 1, "CU_STREAM_NON_BLOCKING is required"
        self.gpu.streams.append(Stream(greenCtx, blocks_copies=False))
        return CUresult(0), self.gpu.streams[-1]

    def cuGreenCtxDestroy(self, hCtx: int) -> Any:
        return (CUresult(0),)

    def cuMemAlloc(self, bytesize: int) -> Any:
        self.gpu.buffers.append(np.zeros(bytesize, np.uint8))
        return CUresult(0), CUdeviceptr(len(self.gpu.buffers) - 1)

    def cuMemFree(self, dptr: CUdeviceptr) -> Any:
        self.gpu.buffers[dptr] = None
        return (CUresult(0),)

    def cuModuleLoadData(self, image: Any) -> Any:
        return CUresult(0), "module"

    def cuModuleGetFunction(self, hmod: Any, name: bytes) -> Any:
        return CUresult(0), name

    def cuFuncGetAttribute(self, attrib: int, hfunc: Any) -> Any:
        return CUresult(0), 32

    def cuLaunchKernel(
        self, f: Any, gridDimX: int, gridDimY: int, gridDimZ: int, blockDimX: int, blockDimY: int,
        blockDimZ: int, sharedMemBytes: int, hStream: Stream, kernelParams: Any, extra: int,
    ) -> Any:  # fmt: skip
        gpu, typed = self.gpu, [*zip(*kernelParams, strict=True)]
        assert all((kind is None) == isinstance(value, CUdeviceptr) for value, kind in typed)
        given = [kind(value).value if kind else gpu.buffers[value] for value, kind in typed]
        gpu.now_us += gpu.launch_us
        if len(hStream.queue) >= QUEUE:
            gpu.now_us = max(gpu.now_us, hStream.queue[-QUEUE][0])
        gpu.progress([hStream], wait=False)
        gpu.sms_used.append(hStream.sms)
        gpu.profiled += gpu.profiling
        begin = max(gpu.now_us, hStream.end_us)
        hStream.end_us = begin + gpu.kernel_us * SMS / hStream.sms
        hStream.queue.append((hStream.end_us, lambda: gpu.kernel(*given)))
        return (CUresult(0),)

    def cuProfilerStart(self) -> Any:
        self.gpu.profiling = True
        return (CUresult(0),)

    def cuProfilerStop(self) -> Any:
        self.gpu.profiling = False
        return (CUresult(0),)

    def cuMemcpyDtoH(self, dstHost: Any, srcDevice: CUdeviceptr, ByteCount: int) -> Any:
        self.gpu.before_a_copy()
        dstHost.view(np.uint8)[:] = self.gpu.buffers[srcDevice]
        return (CUresult(0),)

    def cuMemcpyHtoD(self, dstDevice: CUdeviceptr, srcHost: Any, ByteCount: int) -> Any:
        self.gpu.before_a_copy()
        self.gpu.buffers[dstDevice][:] = srcHost.view(np.uint8)
        return (CUresult(0),)


class Runtime:
    cudaError_t = cudaError_t
    cudaDeviceAttr = SimpleNamespace(
        cudaDevAttrComputeCapabilityMajor=75, cudaDevAttrComputeCapabilityMinor=76,
        cudaDevAttrMaxThreadsPerBlock=1,
    )  # fmt: skip

    def __init__(self, gpu: Gpu, driver: int = 12080) -> None:
        self.gpu, self.driver = gpu, driver

    def cudaDriverGetVersion(self) -> Any:
        return OK, self.driver

    def cudaGetDeviceCount(self) -> Any:
        return OK, 1

    def cudaGetDeviceProperties(self, device: int) -> Any:
        return OK, SimpleNamespace(
            name=b"NVIDIA H100 80GB HBM3", uuid=SimpleNamespace(bytes=UUID),
            multiProcessorCount=SMS, l2CacheSize=50 << 20, warpSize=32, major=9, minor=0,
            maxThreadsPerMultiProcessor=2048,
        )  # fmt: skip

    def cudaDeviceGetAttribute(self, attr: int, device: int) -> Any:
        return OK, {75: 9, 76: 0, 1: 1024}[attr]

    def cudaDeviceGetPCIBusId(self, length: int, device: int) -> Any:
        return OK, b"0000:1B:00.0".ljust(length, b"\0")

    def cudaEventRecord(self, event: Any, stream: Stream) -> Any:
        event.us = max(self.gpu.now_us, stream.end_us)
        return (OK,)

    def cudaEventQuery(self, event: Any) -> Any:
        self.gpu.now_us += 1 + (event.us - self.gpu.now_us) / 4
        return (OK if event.us <= self.gpu.now_us else cudaError_t.cudaErrorNotReady,)

    def cudaEventElapsedTime(self, start: Any, end: Any) -> Any:
        return OK, (end.us - start.us) / 1e3

    def cudaDeviceSynchronize(self) -> Any:
        self.gpu.progress(self.gpu.streams, wait=True)
        return (OK,)


class Nvrtc:
    nvrtcResult = nvrtcResult

    def __init__(self, version: tuple[int, int] = (12, 8)) -> None:
        self.version = version

    def nvrtcVersion(self) -> Any:
        return (nvrtcResult(0), *self.version)

    def nvrtcCreateProgram(
        self, src: bytes, name: bytes, numHeaders: int, headers: Any, includeNames: Any
    ) -> Any:
        return nvrtcResult(0), src

    def nvrtcAddNameExpression(self, prog: bytes, name_expression: bytes) -> Any:
        return (nvrtcResult(0),)

    def nvrtcCompileProgram(self, prog: bytes, numOptions: int, options: list[bytes]) -> Any:
        assert numOptions == len(options)
        assert b"--gpu-architecture=compute_90" in options
        return (nvrtcResult(0),)

    def nvrtcGetPTXSize(self, prog: bytes) -> Any:
        return nvrtcResult(0), 8

    def nvrtcGetPTX(self, prog: bytes, ptx: bytes) -> Any:
        return (nvrtcResult(0),)

    def nvrtcGetLoweredName(self, prog: bytes, name_expression: bytes) -> Any:
        return nvrtcResult(0), name_expression


class NvmlError(Exception):
    """As pynvml's."""


class NvmlNotSupportedError(NvmlError):
    """As pynvml's."""


class Nvml:
    """The board is the second of NVML's order, known by its whole name; a clock takes 1 ms."""

    NVML_CLOCK_GRAPHICS, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 0, 2, 0
    NVMLError, NVMLError_NotSupported = NvmlError, NvmlNotSupportedError
    NVML_ERROR_UNINITIALIZED, NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED = 1, 15, 16

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        assert index == 1
        return "board"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != f"GPU-{UUID_TEXT}":
            raise NvmlError("Not Found")
        return "board"

    def nvmlDeviceGetIndex(self, handle: str) -> int:
        return 1

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return f"GPU-{UUID_TEXT}"

    def nvmlDeviceGetPciInfo_v3(self, handle: str) -> Any:
        return SimpleNamespace(busId="00000000:1B:00.0")

    def nvmlDeviceGetPowerManagementLimit(self, handle: str) -> int:
        return 700_000

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle: str) -> list[int]:
        return [200_000, 700_000]

    def nvmlDeviceGetPersistenceMode(self, handle: str) -> int:
        return 1

    def nvmlDeviceGetAutoBoostedClocksEnabled(self, handle: str) -> list[int]:
        raise NvmlNotSupportedError

    def nvmlDeviceGetSupportedMemoryClocks(self, handle: str) -> list[int]:
        return [2619]

    def nvmlDeviceGetSupportedGraphicsClocks(self, handle: str, memoryClockMHz: int) -> list[int]:
        return [1980, 345]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 55

    def nvmlDeviceGetClockInfo(self, handle: str, type: int) -> int:  # noqa: A002
        self.gpu.now_us += 1000
        return self.gpu.engine_mhz(self.gpu) if type == self.NVML_CLOCK_GRAPHICS else 2619

    def nvmlDeviceGetFieldValues(self, handle: str, fieldIds: list[int]) -> Any:
        assert fieldIds == [186]  # NVML_FI_DEV_POWER_INSTANT
        return [SimpleNamespace(value=SimpleNamespace(uiVal=self.gpu.power_mw(self.gpu)))]


def module(name: str, content: Any) -> ModuleType:
    """A module with the names of an object."""
    made = ModuleType(name)
    vars(made).update({n: getattr(content, n) for n in dir(content) if not n.startswith("_")})
    return made
