"""A made NVML: the calls of nvidia-ml-py 13.615 that `mlscale.sensors` uses, for one GPU or more.

Its state is in the folder that MADE_NVML names, so that several processes see one GPU: `locked` has
the engine clock that is held [MHz], `limit` the power limit [mW], `reads` a byte for each sample,
and `made.json` what is special (see `made`). The first GPU works from the first sample after there
is `go` (of PROGRAM) for `work` samples, more at a lower clock; then there is `done`.
"""

# ruff: noqa: N801, N802, N803, N818
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
NVML_FI_DEV_POWER_INSTANT, NVML_GPM_METRICS_GET_VERSION = 186, 1
NVML_ERROR_UNINITIALIZED, NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_NO_PERMISSION = 1, 3, 4
NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED = 9, 15, 16
PROGRAM = """\
cd "$MADE_NVML"; rm -f done started; touch go
for i in $(seq 3000); do [ -e done ] && break; sleep 0.01; done
rm -f go started done; echo worked
"""  # for a shell
NAME, FREE_MHZ, IDLE_MHZ, MEMORY_MHZ, LIMIT_MW = "NVIDIA A100-SXM4-80GB", 1395, 210, 1593, 400_000
CLOCKS = [*range(1410, 195, -15)]


class NVMLError(Exception):
    def __init__(self, value: int, text: str) -> None:
        super().__init__(text)
        self.value = value


class NVMLError_NotSupported(NVMLError):
    def __init__(self) -> None:
        super().__init__(NVML_ERROR_NOT_SUPPORTED, "Not Supported")


def made() -> dict[str, Any]:
    """What is special, if anything.

    gpus (how many), mig, no_driver, no_permission, lost_after (so many reads), reasons, others
    (processes), gpm, energy, without (calls), wanders (the clock), work, serves (always).
    """
    path = _file("made.json")
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _file(name: str) -> Path:
    return Path(os.environ["MADE_NVML"]) / name


def _number(name: str, default: int) -> int:
    """What a file says; another process may take it away, or begin to write it."""
    try:
        return int(_file(name).read_text() or default)
    except FileNotFoundError:
        return default


def _may_set() -> None:
    if made().get("no_permission"):
        raise NVMLError(NVML_ERROR_NO_PERMISSION, "Insufficient Permissions")


def is_busy(handle: int) -> bool:
    """Half of its work follows the clock."""
    special, started = made(), _number("started", -1)
    if handle or started < 0:
        return bool(special.get("serves")) and not handle
    work = special.get("work", 20) * (0.5 + 0.5 * FREE_MHZ / _number("locked", FREE_MHZ))
    if reads() < started + work:
        return True
    _file("done").touch()
    return False


def reads() -> int:
    """How many samples were taken."""
    path = _file("reads")
    return path.stat().st_size if path.exists() else 0


def engine_mhz(handle: int) -> int:
    if not is_busy(handle):
        return IDLE_MHZ
    mhz = _number("locked", FREE_MHZ)
    return mhz - 300 * (reads() % 2) if made().get("wanders") else mhz


def power_mw(handle: int) -> int:
    """60 W idle, and at work 250 W more at 1395 MHz, by the square of the clock."""
    return 60_000 + int(250_000 * (engine_mhz(handle) / FREE_MHZ) ** 2 * is_busy(handle))


def nvmlInit() -> None:
    if made().get("no_driver"):
        raise NVMLError(NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded")


def nvmlDeviceGetCount() -> int:
    return int(made().get("gpus", 1))


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    return index


def nvmlDeviceGetHandleByUUID(uuid: str) -> int:
    return int(uuid.rpartition("-")[2])


def nvmlDeviceGetIndex(handle: int) -> int:
    return handle


def nvmlDeviceGetUUID(handle: int) -> str:
    return f"GPU-made-{handle}"


def nvmlDeviceGetName(handle: int) -> str:
    return NAME


def nvmlSystemGetDriverVersion() -> str:
    return "580.82.07"


def nvmlDeviceGetPowerManagementLimit(handle: int) -> int:
    return _number("limit", LIMIT_MW)


def nvmlDeviceSetPowerManagementLimit(handle: int, limit: int) -> None:
    _may_set()
    _file("limit").write_text(str(limit))


def nvmlDeviceGetEnforcedPowerLimit(handle: int) -> int:
    return nvmlDeviceGetPowerManagementLimit(handle)


def nvmlDeviceGetUtilizationRates(handle: int) -> Any:
    with _file("reads").open("ab") as file:
        file.write(b".")
    # In this order: the program takes `go` away first.
    if handle == 0 and not _file("started").exists() and _file("go").exists():
        _file("started").write_text(str(reads()))
    if reads() > made().get("lost_after", 1 << 30):
        raise NVMLError(NVML_ERROR_GPU_IS_LOST, "GPU is lost")
    return (
        SimpleNamespace(gpu=95, memory=30) if is_busy(handle) else SimpleNamespace(gpu=0, memory=0)
    )


def nvmlDeviceGetFieldValues(handle: int, fieldIds: list[int]) -> Any:
    assert fieldIds == [NVML_FI_DEV_POWER_INSTANT]
    lacks = "nvmlDeviceGetFieldValues" in made().get("without", ())
    value = SimpleNamespace(uiVal=power_mw(handle))
    return [SimpleNamespace(nvmlReturn=3 if lacks else 0, value=value)]


def nvmlDeviceGetPowerUsage(handle: int) -> int:
    return power_mw(handle)


def nvmlDeviceGetTotalEnergyConsumption(handle: int) -> int:
    """A tenth more than the power says; only where asked for."""
    if "energy" not in made():
        raise NVMLError_NotSupported
    worked = max(0, reads() - _number("started", 1 << 30) + 1)
    return 6_600 * reads() + 27_500 * worked


def nvmlDeviceGetClockInfo(handle: int, type: int) -> int:  # noqa: A002
    return engine_mhz(handle) if type == NVML_CLOCK_SM else MEMORY_MHZ


def nvmlDeviceGetTemperature(handle: int, sensor: int) -> int:
    return 55


def nvmlDeviceGetCurrentClocksThrottleReasons(handle: int) -> int:
    return int(made().get("reasons", 0)) if is_busy(handle) else 1


def nvmlDeviceGetMigMode(device: int) -> list[int]:
    return [int(made().get("mig", 0))] * 2


def nvmlDeviceGetComputeRunningProcesses(handle: int) -> list[Any]:
    return [SimpleNamespace(pid=pid) for pid in made().get("others", ())]


def nvmlSystemGetProcessName(pid: int) -> str:
    return "/usr/bin/trainer"


def nvmlDeviceGetSupportedMemoryClocks(handle: int) -> list[int]:
    return [MEMORY_MHZ]


def nvmlDeviceGetSupportedGraphicsClocks(handle: int, memoryClockMHz: int) -> list[int]:
    return CLOCKS


def nvmlDeviceSetGpuLockedClocks(handle: int, minGpuClockMHz: int, maxGpuClockMHz: int) -> None:
    _may_set()
    _file("locked").write_text(str(maxGpuClockMHz))


def nvmlDeviceResetGpuLockedClocks(handle: int) -> None:
    _may_set()
    if "nvmlDeviceResetGpuLockedClocks" in made().get("without", ()):
        raise NVMLError_NotSupported
    _file("locked").unlink(missing_ok=True)


def nvmlDeviceSetMemoryLockedClocks(handle: int, minMemClockMHz: int, maxMemClockMHz: int) -> None:
    _may_set()
    _file("memory").write_text(str(maxMemClockMHz))


def nvmlDeviceResetMemoryLockedClocks(handle: int) -> None:
    _may_set()
    _file("memory").unlink(missing_ok=True)


def nvmlGpmQueryDeviceSupport(device: int) -> Any:
    return SimpleNamespace(isSupportedDevice=int(bool(made().get("gpm"))))


def nvmlGpmSampleAlloc() -> Any:
    return SimpleNamespace(taken=False)


def nvmlGpmSampleGet(device: int, gpmSample: Any) -> Any:
    gpmSample.taken = True
    return gpmSample


class c_nvmlGpmMetricsGet_t:
    def __init__(self) -> None:
        self.version = self.numMetrics = 0
        self.sample1 = self.sample2 = None
        self.metrics = [SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(333)]


def nvmlGpmMetricsGet(metricsGet: Any) -> Any:
    """Each metric is 50 % and its number while some GPU is at work."""
    assert metricsGet.version == NVML_GPM_METRICS_GET_VERSION
    assert metricsGet.sample1.taken
    assert metricsGet.sample2.taken
    for metric in metricsGet.metrics[: metricsGet.numMetrics]:
        metric.value = (50.0 + metric.metricId) * is_busy(0)
    return metricsGet
