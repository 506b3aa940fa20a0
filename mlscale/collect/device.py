"""The device at hand: which backend finds one, and what it is.

`python -m mlscale.collect.device N` prints the name of OpenCL's device N, runs a kernel on it, and
prints what it is.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from mlscale.errors import InputError, extra_named, install_line
from mlscale.parameters import command
from mlscale.readers.run import key_of
from mlscale.sensors.boards import board_by_uuid

_ALWAYS = ("kernel_tuner", "pyopencl")
_INSTALL = {
    "cuda": f"{install_line(*_ALWAYS, 'pynvml')} 'cuda-python[all]'",
    "hip": f"{install_line(*_ALWAYS, 'amdsmi')} 'hip-python<10', of the ROCm that is installed",
    "opencl": install_line(*_ALWAYS),
}
BACKENDS = tuple(_INSTALL)
_JETSON = Path("/etc/nv_tegra_release")
_UUID_BYTES = 16
# What is added to the environment: nothing first, then the place of the system's OpenCL.
_ENVIRONMENTS: tuple[dict[str, str], ...] = ({}, {"OCL_ICD_VENDORS": "/etc/OpenCL/vendors"})
_KERNEL = """
__kernel void one(__global int *out)
{ out[0] = 1; }
"""
_POCL = "Portable Computing Language"
_INSTALL_POCL = (
    "install one for this processor (pip install pocl-binary-distribution, or apt-get install "
    "pocl-opencl-icd), or the GPU's driver"
)
# A processor's caches are no GPU's L2: so small that the micro-benchmarks end soon.
_PROCESSOR_SET = 2**18


@dataclass(frozen=True)
class DeviceInfo:
    """What is measured on.

    uuid: of this one board; of a device without one its name and driver. l2_bytes: of a processor
    256 KiB. wave_size: threads that run together. threads_per_cu: that it holds at once; OpenCL
    does not say. engine_mhz, memory_mhz: highest clocks [MHz], for a table where none was observed;
    0 is unknown. capability: NVIDIA's, times ten. cu_axis: how fewer CUs are had, 'green contexts',
    'CU mask', 'threads', or not (''). sensors: 'nvml', 'amdsmi', 'tegra', or none (''). platform,
    place: numbers of the OpenCL platform and of the device on it. seen_by: the environment in which
    OpenCL's loader finds them.
    """

    backend: str
    name: str
    uuid: str
    driver: str
    cu_count: int
    l2_bytes: int
    wave_size: int
    engine_mhz: float = 0.0
    memory_mhz: float = 0.0
    capability: int = 0
    threads_per_cu: int = 2048
    cu_axis: str = ""
    sensors: str = ""
    platform: int = 0
    place: int = 0
    seen_by: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its key in the device table, or for another device its name in one word."""
        return key_of(self.name, self.cu_count)

    @property
    def profiler(self) -> str:
        """The program that counts, or ''."""
        return {"cuda": "ncu", "hip": "rocprofv3"}.get(self.backend, "")

    @property
    def lacks_sensors(self) -> str:
        """Why power and clocks are not observed, or ''."""
        package = {"cuda": "nvidia-ml-py", "hip": "amdsmi"}.get(self.backend)
        lacking = package and not self.sensors
        return f"{package} is not installed, or does not know the board" if lacking else ""

    @property
    def why_fixed(self) -> str:
        """Why clocks and power limits cannot be set, and what to do instead, or ''."""
        if self.sensors != "nvml":
            return (
                "mlscale sets clocks and power limits only through NVML. On AMD set them with "
                "amd-smi (on a Jetson with nvpmodel) and collect once for each setting; an MI300X "
                "refuses to hold its clocks (--setsclk), performance determinism caps them instead"
            )
        if os.geteuid() != 0:
            return (
                "only root sets clocks and power limits; the CU count, time and power need no "
                "rights. For your own program, two logs of nvidia-smi at two engine clocks are "
                f"enough, whoever sets them: {command('advise LOG', also='LOG')}"
            )
        return ""

    def environment(self, cu_count: int) -> dict[str, str]:
        """The variables that limit a process to that many CUs; none for green contexts."""
        if self.cu_axis == "threads":
            return {**self.seen_by, "POCL_MAX_PTHREAD_COUNT": str(cu_count)}
        if self.cu_axis == "CU mask" and cu_count < self.cu_count:
            return {"HSA_CU_MASK": f"0:0-{cu_count - 1}"}
        return self.seen_by


def device_at_hand(backend: str | None = None) -> DeviceInfo:
    """The first device of the backend, or of the first backend that has one.

    Raises MissingLibraryError without kernel_tuner, and InputError without a device, which says
    of each backend what is missing.
    """
    with extra_named("mlscale collect"):
        if find_spec("kernel_tuner") is None:  # not imported: its processes alone do that
            raise ModuleNotFoundError(name="kernel_tuner")
    complaints = []
    for name in [backend] if backend else BACKENDS:
        try:
            return _FINDERS[name]()
        except (ImportError, RuntimeError, InputError) as error:
            install = f" ({_INSTALL[name]})" if isinstance(error, ImportError) else ""
            complaints.append(f"{name}: {error}{install}")
    raise InputError(f"no device to measure on; {'; '.join(complaints)}")


def _named_by_both(properties: Any) -> dict[str, Any]:
    """What CUDA and HIP call alike."""
    return {
        "name": properties.name.decode(),
        "uuid": str(UUID(bytes=properties.uuid.bytes)),
        "cu_count": properties.multiProcessorCount,
        "l2_bytes": properties.l2CacheSize,
        "wave_size": properties.warpSize,
        "threads_per_cu": properties.maxThreadsPerMultiProcessor,
    }


def _cuda() -> DeviceInfo:
    from cuda.bindings import nvrtc, runtime

    def ask(function: Callable[..., Any], *given: Any) -> Any:
        status, *answer = function(*given)
        if status:
            raise InputError(f"no NVIDIA GPU is visible ({function.__name__}: {status.name})")
        return answer[0]

    driver = int(ask(runtime.cudaDriverGetVersion))
    version = (driver // 1000, driver % 1000 // 10)
    _require_compiler(nvrtc, version)
    ask(runtime.cudaGetDeviceCount)
    properties = ask(runtime.cudaGetDeviceProperties, 0)
    called = _named_by_both(properties)
    return DeviceInfo(
        backend="cuda",
        driver="CUDA {}.{}".format(*version),
        capability=10 * properties.major + properties.minor,
        cu_axis="green contexts" if version >= (12, 4) else "",
        sensors=_nvidia_sensors(called["uuid"]),
        **called,
    )


def _require_compiler(nvrtc: Any, driver: tuple[int, int]) -> None:
    """Raise InputError without NVRTC, or where it is newer than the driver, which refuses its PTX.

    driver: the version of its CUDA, (0, 0) without one.
    """
    major, minor = driver
    if not major:
        raise InputError("no NVIDIA driver is installed")
    wheel = "nvidia-cuda-nvrtc-cu12" if major == 12 else "nvidia-cuda-nvrtc"
    install = f"pip install 'cuda-python=={major}.*' '{wheel}=={major}.{minor}.*'"
    try:
        _, *compiler = nvrtc.nvrtcVersion()
    except RuntimeError:
        raise InputError(f"NVRTC, CUDA's compiler, is missing: {install}") from None
    if (*compiler,) > driver:
        raise InputError(
            f"NVRTC {compiler[0]}.{compiler[1]} is newer than the driver, which has CUDA "
            f"{major}.{minor}: {install}"
        )


def _nvidia_sensors(uuid: str) -> str:
    """Those that kernel_tuner can read; of NVML whole boards that list their memory's clocks."""
    if _JETSON.exists():
        return "tegra"
    if find_spec("pynvml"):
        import pynvml

        with suppress(pynvml.NVMLError, InputError):
            pynvml.nvmlDeviceGetSupportedMemoryClocks(board_by_uuid(uuid).handle)
            return "nvml"
    return ""


def _hip() -> DeviceInfo:
    from hip import hip

    properties = hip.hipDeviceProp_t()
    try:
        status, *_ = hip.hipGetDeviceProperties(properties, 0)
    except TypeError:
        raise InputError(f"kernel_tuner cannot use this hip-python ({_INSTALL['hip']})") from None
    if status != hip.hipError_t.hipSuccess:
        raise InputError(f"no AMD GPU is visible ({status.name}); see rocminfo")
    if len(properties.uuid.bytes) < _UUID_BYTES:
        raise InputError("kernel_tuner cannot use an AMD GPU that has no unique number (UUID)")
    return DeviceInfo(
        backend="hip",
        driver=f"HIP {hip.hipRuntimeGetVersion()[1]}",
        engine_mhz=properties.clockRate / 1e3,
        memory_mhz=properties.memoryClockRate / 1e3,
        cu_axis="CU mask",
        sensors=_amd_sensors(),
        **_named_by_both(properties),
    )


def _amd_sensors() -> str:
    """Those of AMD SMI, where its library is there, and counts energy; it raises what it likes."""
    with suppress(Exception):
        import amdsmi

        amdsmi.amdsmi_init()
        amdsmi.amdsmi_get_energy_count(amdsmi.amdsmi_get_processor_handles()[0])
        return "amdsmi"
    return ""


def _opencl() -> DeviceInfo:
    """The first OpenCL device that runs a kernel, GPUs before others.

    Each is tried by a process of its own: OpenCL's loader reads its environment once in a process,
    and a compiler may end its process. Raises InputError that says what was tried, and ImportError
    without pyopencl.
    """
    import pyopencl  # noqa: F401

    tried: dict[str, str] = {}
    for environment in _ENVIRONMENTS:
        for place in count():
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-m", __name__, str(place)],
                env=os.environ | environment,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            name, *said = done.stdout.splitlines() or [""]
            if done.returncode == 0 and said:
                return DeviceInfo(**json.loads(said[-1]), seen_by=environment)
            if done.returncode:
                where = environment.get("OCL_ICD_VENDORS", "its loader")
                tried.setdefault(name or where, _why(done))
            if not name:  # there are no more
                break
    what = "; ".join(map(": ".join, tried.items())) or "it has no device"
    raise InputError(f"OpenCL cannot run a kernel here ({what}); {_INSTALL_POCL}")


def _why(done: subprocess.CompletedProcess[str]) -> str:
    """The compiler's first error, else the last line."""
    lines = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
    return next((line for line in lines if "error: " in line), lines[-1])


def main(place: int) -> None:
    """Print the device's name, run the kernel, and print the device as JSON."""
    import pyopencl

    platforms = [platform.get_devices() for platform in pyopencl.get_platforms()]
    devices = [
        (p, n, device) for p, there in enumerate(platforms) for n, device in enumerate(there)
    ]
    gpu = pyopencl.device_type.GPU
    devices.sort(key=lambda found: not found[2].type & gpu)
    if place == len(devices):
        return
    platform, number, device = devices[place]
    print(f"{device.platform.name} {device.driver_version}", flush=True)
    context = pyopencl.Context([device])
    queue = pyopencl.CommandQueue(context)
    out = pyopencl.Buffer(context, pyopencl.mem_flags.WRITE_ONLY, 4)
    pyopencl.Program(context, _KERNEL).build().one(queue, (1,), None, out)
    queue.finish()
    info = {
        "backend": "opencl",
        "name": device.name,
        "uuid": f"{device.name}, {device.driver_version}",
        "driver": device.platform.version,
        "cu_count": device.max_compute_units,
        "l2_bytes": device.global_mem_cache_size if device.type & gpu else _PROCESSOR_SET,
        "wave_size": 32,
        "engine_mhz": float(device.max_clock_frequency),
        "cu_axis": "threads" if device.platform.name == _POCL else "",
        "platform": platform,
        "place": number,
    }
    print(json.dumps(info))


_FINDERS: dict[str, Callable[[], DeviceInfo]] = {"cuda": _cuda, "hip": _hip, "opencl": _opencl}


if __name__ == "__main__":
    main(int(sys.argv[1]))
