"""NVIDIA's GPUs by NVML (nvidia-ml-py): what they say, and what of them is set.

NVML does not tell which clocks were locked before: to put back is to leave them to the driver.
Which calls there are: NVIDIA's NVML API Reference Guide.
"""

from collections.abc import Mapping
from typing import Any

from mlscale.errors import InputError, extra_named
from mlscale.sensors import board
from mlscale.sensors.board import LostError, Sample, SettingError

# GPU performance monitoring (Hopper and later), by the names of nvidia-smi dmon --gpm-metrics.
_ACTIVITIES = {
    "gract": 1, "smutil": 2, "smocc": 3, "mmaact": 5, "dram": 10, "fp64": 11, "fp32": 12, "fp16": 13
}  # fmt: skip
_LOST = ("NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_RESET_REQUIRED", "NVML_ERROR_UNINITIALIZED")


def boards() -> "list[NvidiaBoard]":
    """All GPUs that the driver lists and that answer. Raises InputError without any."""
    with extra_named("mlscale measure"):
        import pynvml
    found: list[NvidiaBoard] = []
    why = "no GPU is listed"
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise InputError(f"NVIDIA: {error}") from None
    for place in range(count):
        try:
            found.append(NvidiaBoard(pynvml.nvmlDeviceGetHandleByIndex(place)))
        except (pynvml.NVMLError, ValueError) as error:  # one that fell off the bus
            why = f"GPU {place}: {error}"
    if not found:
        raise InputError(f"NVIDIA: {why}")
    return found


def board_by_uuid(uuid: str) -> "NvidiaBoard":
    """The GPU of a UUID without its prefix. Raises InputError."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return NvidiaBoard(pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}"))
    except pynvml.NVMLError as error:
        raise InputError(f"NVIDIA: GPU-{uuid}: {error}") from None


class NvidiaBoard:
    """One GPU: its index, UUID and name. handle: NVML's. AMD's has the same methods."""

    takes_away = "A lock set by hand before (nvidia-smi -lgc) is gone: NVML does not tell it"

    def __init__(self, handle: Any) -> None:
        import pynvml

        self._nvml, self.handle = pynvml, handle
        self._lost = {getattr(pynvml, name) for name in _LOST}
        self.index = str(pynvml.nvmlDeviceGetIndex(handle))
        self.uuid = pynvml.nvmlDeviceGetUUID(handle).removeprefix("GPU-")
        self.name = str(self._ask("nvmlDeviceGetName") or "")
        self._last: Any = None  # of the samples of performance monitoring

    def _ask(self, function: str, *given: Any) -> Any:
        """What NVML says; None where the GPU, the driver or the library cannot. LostError."""
        try:
            return getattr(self._nvml, function)(self.handle, *given)
        except (AttributeError, UnicodeError):  # of an older nvidia-ml-py; a name that is none
            return None
        except self._nvml.NVMLError as error:
            if error.value in self._lost:
                raise LostError(str(error)) from None
            return None

    def facts(self) -> dict[str, Any]:
        """What stays: driver, limit [W], the profiles of power that are in force, as bits."""
        found = {"driver": self._told("nvmlSystemGetDriverVersion")}
        if limit_mw := self._ask("nvmlDeviceGetPowerManagementLimit"):
            found["power_limit_w"] = limit_mw / 1e3
        if make := getattr(self._nvml, "c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t", None):
            call = "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles"
            if self._ask(call, profiles := make()) is not None:
                found["power_profiles"] = hex(profiles.enforcedProfilesMask.mask[0])
        return found

    def read(self) -> Sample:
        """The sensors now. Raises LostError, also where none answers."""
        nvml, ask = self._nvml, self._ask
        shares = ask("nvmlDeviceGetUtilizationRates")
        instant_mw = self._instant_mw()
        mean_mw = ask("nvmlDeviceGetPowerUsage") if instant_mw is None else None
        limit_mw = ask("nvmlDeviceGetEnforcedPowerLimit")
        energy_mj = ask("nvmlDeviceGetTotalEnergyConsumption")
        read = {
            board.POWER: None if instant_mw is None else instant_mw / 1e3,
            board.MEAN_POWER: None if mean_mw is None else mean_mw / 1e3,
            board.ENGINE: ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            board.MEMORY: ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            board.BUSY: None if shares is None else shares.gpu,
            board.COPIES: None if shares is None else shares.memory,
            board.TEMPERATURE: ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            board.LIMIT: None if limit_mw is None else limit_mw / 1e3,
            board.REASONS: ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
            board.ENERGY: None if energy_mj is None else energy_mj / 1e3,
            **self._activities(),
        }
        sample = {name: value for name, value in read.items() if value is not None}
        if not sample:
            raise LostError("no sensor answers")
        return sample

    def _instant_mw(self) -> float | None:
        fields = self._ask("nvmlDeviceGetFieldValues", [self._nvml.NVML_FI_DEV_POWER_INSTANT])
        return None if fields is None or fields[0].nvmlReturn else float(fields[0].value.uiVal)

    def _activities(self) -> dict[str, float | None]:
        """The GPU's performance monitoring since the last call [%]; nothing where there is none."""
        if self._last is False:
            return {}
        nvml = self._nvml
        try:
            if self._last is None:
                self._last = False  # unless all of this works
                support = self._ask("nvmlGpmQueryDeviceSupport")
                if getattr(support, "isSupportedDevice", 0):
                    first, self._spare = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
                    nvml.nvmlGpmSampleGet(self.handle, first)
                    self._last = first
                return {}
            nvml.nvmlGpmSampleGet(self.handle, self._spare)
            asked = nvml.c_nvmlGpmMetricsGet_t()
            asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(_ACTIVITIES)
            asked.sample1, asked.sample2 = self._last, self._spare
            for place, metric in enumerate(_ACTIVITIES.values()):
                asked.metrics[place].metricId = metric
            self._last, self._spare = self._spare, self._last
            nvml.nvmlGpmMetricsGet(asked)
        except nvml.NVMLError:  # as of samples too close to each other
            return {}
        told = zip(_ACTIVITIES, asked.metrics, strict=False)
        return {name: None if one.nvmlReturn else one.value for name, one in told}

    def parts(self) -> str:
        """What it is divided into, 'MIG'; '' of a whole GPU."""
        mode = self._ask("nvmlDeviceGetMigMode")
        return "MIG" if mode and mode[0] else ""

    def processes(self) -> dict[int, str]:
        """Those that compute on it, by number."""
        found = self._ask("nvmlDeviceGetComputeRunningProcesses") or []
        return {
            process.pid: self._told("nvmlSystemGetProcessName", process.pid).rpartition("/")[2]
            for process in found
        }

    def _told(self, function: str, *given: int) -> str:
        """What NVML says of the system; '' where it cannot."""
        try:
            return str(getattr(self._nvml, function)(*given))
        except (self._nvml.NVMLError, UnicodeError):
            return ""

    def nearest_mhz(self, engine_mhz: float) -> int:
        """The nearest engine clock that can be set [MHz]."""
        memories = self._ask("nvmlDeviceGetSupportedMemoryClocks") or [0]
        listed = self._ask("nvmlDeviceGetSupportedGraphicsClocks", max(memories)) or [engine_mhz]
        clocks: list[int] = [round(mhz) for mhz in listed]
        return min(clocks, key=lambda mhz: abs(mhz - engine_mhz))

    def settings(self) -> dict[str, Any]:
        """What `put_back` needs, read before anything is set: the power limit."""
        return {"power_limit_mw": self._ask("nvmlDeviceGetPowerManagementLimit")}

    def _set(self, function: str, *given: int) -> None:
        try:
            getattr(self._nvml, function)(self.handle, *given)
        except self._nvml.NVMLError as error:
            raise SettingError(str(error)) from None

    def hold(self, settings: Mapping[str, int]) -> None:
        """Hold engine_mhz, memory_mhz [MHz] and cap_w [W], if given. Raises SettingError."""
        if mhz := settings.get("engine_mhz"):
            self._set("nvmlDeviceSetGpuLockedClocks", mhz, mhz)
        if mhz := settings.get("memory_mhz"):
            self._set("nvmlDeviceSetMemoryLockedClocks", mhz, mhz)
        if watts := settings.get("cap_w"):
            self._set("nvmlDeviceSetPowerManagementLimit", 1000 * watts)

    def put_back(self, before: Mapping[str, Any]) -> None:
        """The driver's clocks, and the power limit of before. Raises SettingError."""
        for function in ("nvmlDeviceResetGpuLockedClocks", "nvmlDeviceResetMemoryLockedClocks"):
            try:
                getattr(self._nvml, function)(self.handle)
            except self._nvml.NVMLError_NotSupported:
                continue
            except self._nvml.NVMLError as error:
                raise SettingError(str(error)) from None
        limit_mw = before.get("power_limit_mw")
        if limit_mw and self._ask("nvmlDeviceGetPowerManagementLimit") != limit_mw:
            self._set("nvmlDeviceSetPowerManagementLimit", limit_mw)

    def commands(self, engine_mhz: int) -> tuple[str, str]:
        """What sets that clock in a shell, and what puts it back."""
        smi = f"nvidia-smi -i {self.index}"
        return f"{smi} -lgc {engine_mhz},{engine_mhz}", f"{smi} -rgc"
