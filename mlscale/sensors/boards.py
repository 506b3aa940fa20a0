"""The GPUs at hand: what each says, and what of it is set; NVIDIA's by NVML, AMD's by AMD SMI.

NVML (nvidia-ml-py) does not say which clocks were locked before: to put back is to leave them to
the driver. Of AMD's, by amdsmi of the ROCm that is installed, none has run this yet: an engine
clock is set as performance determinism, a highest clock; put back is the level of before. Which
calls there are: NVIDIA's NVML API Reference Guide, AMD SMI's Python API reference.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

from mlscale.errors import InputError, MissingLibraryError, extra_named
from mlscale.parameters import parameter

Sample = dict[str, float]  # by the heading in a log; what a GPU does not tell is left out

POWER, MEAN_POWER = "power.draw.instant [W]", "power.draw [W]"
ENGINE, MEMORY = "clocks.current.sm [MHz]", "clocks.current.memory [MHz]"
BUSY, COPIES = "utilization.gpu [%]", "utilization.memory [%]"
TEMPERATURE, LIMIT = "temperature.gpu", "enforced.power.limit [W]"
REASONS, ENERGY = "clocks_event_reasons.active", "total_energy [J]"
# GPU performance monitoring (Hopper and later), by the names of nvidia-smi dmon --gpm-metrics.
_ACTIVITIES = {
    "gract": 1, "smutil": 2, "smocc": 3, "mmaact": 5, "dram": 10, "fp64": 11, "fp32": 12, "fp16": 13
}  # fmt: skip
_LOST = ("NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_RESET_REQUIRED", "NVML_ERROR_UNINITIALIZED")
_LEVEL = "AMDSMI_DEV_PERF_LEVEL_"
_WHOLE = ("SPX", "N/A", "")  # compute partitions that are a whole GPU
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


class LostError(InputError):
    """The GPU no longer answers."""


class SettingError(InputError):
    """The GPU refuses to be set: no right to, or it cannot."""


# NVIDIA


def nvidia_boards() -> "list[NvidiaBoard]":
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

    takes_away = "A lock set by hand before (nvidia-smi -lgc) is lost: NVML does not report it"

    def __init__(self, handle: Any) -> None:
        import pynvml

        self._nvml, self.handle = pynvml, handle
        self._lost = {getattr(pynvml, name) for name in _LOST}
        self.index = str(pynvml.nvmlDeviceGetIndex(handle))
        self.uuid = pynvml.nvmlDeviceGetUUID(handle).removeprefix("GPU-")
        self.name = str(self._ask("nvmlDeviceGetName") or "")
        self._last: Any = None  # sample of performance monitoring; False where there is none

    def _ask(self, function: str, *given: Any) -> Any:
        """What NVML says; None where the GPU, the driver or the library cannot. LostError."""
        try:
            return getattr(self._nvml, function)(self.handle, *given)
        except (AttributeError, UnicodeError):  # an older nvidia-ml-py; a name that is none
            return None
        except self._nvml.NVMLError as error:
            if error.value in self._lost:
                raise LostError(str(error)) from None
            return None

    def facts(self) -> dict[str, Any]:
        """What does not change: driver, limit [W], the active power profiles, as bits."""
        found = {"driver": self._told("nvmlSystemGetDriverVersion")}
        if limit_mw := self._ask("nvmlDeviceGetPowerManagementLimit"):
            found["power_limit_w"] = limit_mw / 1e3
        if make := getattr(self._nvml, "c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t", None):
            call = "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles"
            if self._ask(call, profiles := make()) is not None:
                found["power_profiles"] = hex(profiles.enforcedProfilesMask.mask[0])
        return found

    def read(self) -> Sample:
        """The sensors' present values. Raises LostError, also if none answers."""
        nvml, ask = self._nvml, self._ask
        shares = ask("nvmlDeviceGetUtilizationRates")
        instant_mw = self._instant_mw()
        mean_mw = ask("nvmlDeviceGetPowerUsage") if instant_mw is None else None
        limit_mw = ask("nvmlDeviceGetEnforcedPowerLimit")
        energy_mj = ask("nvmlDeviceGetTotalEnergyConsumption")
        read = {
            POWER: None if instant_mw is None else instant_mw / 1e3,
            MEAN_POWER: None if mean_mw is None else mean_mw / 1e3,
            ENGINE: ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            MEMORY: ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            BUSY: None if shares is None else shares.gpu,
            COPIES: None if shares is None else shares.memory,
            TEMPERATURE: ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            LIMIT: None if limit_mw is None else limit_mw / 1e3,
            REASONS: ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
            ENERGY: None if energy_mj is None else energy_mj / 1e3,
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


# AMD


def amd_boards() -> "list[AmdBoard]":
    """All GPUs that the driver lists. Raises InputError."""
    with extra_named("mlscale measure"), redirect_stdout(None):  # it prints what it lacks
        try:
            import amdsmi
        except ModuleNotFoundError:
            raise
        except Exception as error:  # the library of another ROCm, or without one
            raise InputError(f"AMD: amdsmi cannot be loaded ({error})") from None
    try:
        amdsmi.amdsmi_init()
        handles = amdsmi.amdsmi_get_processor_handles()
    except amdsmi.AmdSmiException as error:
        raise InputError(f"AMD: {error}") from None
    if not handles:
        raise InputError("AMD: no GPU is listed")
    return [AmdBoard(place, handle) for place, handle in enumerate(handles)]


class AmdBoard:
    """One GPU; as `NvidiaBoard`."""

    takes_away = ""

    def __init__(self, place: int, handle: Any) -> None:
        import amdsmi

        self._smi, self._handle = amdsmi, handle
        self.index = str(place)
        self.uuid = str(self._ask(amdsmi.amdsmi_get_gpu_device_uuid) or place)
        self.name = str((self._ask(amdsmi.amdsmi_get_gpu_asic_info) or {}).get("market_name", ""))

    def _ask(self, function: Callable[..., Any], *given: Any) -> Any:
        """What AMD SMI says; None where it cannot."""
        try:
            return function(self._handle, *given)
        except self._smi.AmdSmiException:
            return None

    def _number(self, function: Callable[..., Any], *given: Any, names: tuple[str, ...]) -> Any:
        """The first of these that is a number in what AMD SMI says; None without any."""
        told = self._ask(function, *given) or {}
        return next((told[n] for n in names if isinstance(told.get(n), int | float)), None)

    def facts(self) -> dict[str, Any]:
        """The driver."""
        driver = self._ask(self._smi.amdsmi_get_gpu_driver_info) or {}
        return {"driver": str(driver.get("driver_version", ""))}

    def read(self) -> Sample:
        """The sensors' present values. Raises LostError if none answers."""
        smi, number = self._smi, self._number
        watts = ("current_socket_power", "average_socket_power")
        kinds, metric = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
        limit_uw = number(smi.amdsmi_get_power_cap_info, names=("power_cap",))
        energy = self._ask(smi.amdsmi_get_energy_count) or {}
        counted, unit_uj = energy.get("energy_accumulator"), energy.get("counter_resolution", 0)
        activity = smi.amdsmi_get_gpu_activity
        read = {
            POWER: number(smi.amdsmi_get_power_info, names=watts),
            ENGINE: number(smi.amdsmi_get_clock_info, smi.AmdSmiClkType.GFX, names=("clk",)),
            MEMORY: number(smi.amdsmi_get_clock_info, smi.AmdSmiClkType.MEM, names=("clk",)),
            BUSY: number(activity, names=("gfx_activity",)),
            COPIES: number(activity, names=("umc_activity",)),
            TEMPERATURE: self._ask(smi.amdsmi_get_temp_metric, kinds.HOTSPOT, metric),
            LIMIT: limit_uw and limit_uw / 1e6,
            ENERGY: counted and counted * unit_uj / 1e6,
        }
        sample = {name: float(value) for name, value in read.items() if value is not None}
        if not sample:
            raise LostError("no sensor answers")
        return sample

    def parts(self) -> str:
        """Its compute partition, if it is divided."""
        partition = str(self._ask(self._smi.amdsmi_get_gpu_compute_partition) or "")
        return "" if partition in _WHOLE else partition

    def processes(self) -> dict[int, str]:
        """Those that compute on it, by number."""
        found = self._ask(self._smi.amdsmi_get_gpu_process_list) or []
        return {process["pid"]: process["name"] for process in found}

    def nearest_mhz(self, engine_mhz: float) -> int:
        """The clock itself: performance determinism takes any [MHz]."""
        return round(engine_mhz)

    def settings(self) -> dict[str, Any]:
        """The level of performance."""
        return {"level": self._ask(self._smi.amdsmi_get_gpu_perf_level) or f"{_LEVEL}AUTO"}

    def hold(self, settings: Mapping[str, int]) -> None:
        """Let the engine clock be that at most [MHz]; nothing else is set. Raises SettingError."""
        try:
            if mhz := settings.get("engine_mhz"):
                self._smi.amdsmi_set_gpu_perf_determinism_mode(self._handle, mhz)
        except self._smi.AmdSmiException as error:
            raise SettingError(str(error)) from None

    def put_back(self, before: Mapping[str, Any]) -> None:
        """The level of before. Raises SettingError."""
        level = self._smi.AmdSmiDevPerfLevel[before["level"].removeprefix(_LEVEL)]
        try:
            self._smi.amdsmi_set_gpu_perf_level(self._handle, level)
        except self._smi.AmdSmiException as error:
            raise SettingError(str(error)) from None

    def commands(self, engine_mhz: int) -> tuple[str, str]:
        """What sets that clock in a shell, and what puts it back."""
        smi = f"amd-smi set -g {self.index}"
        return f"{smi} --perf-determinism {engine_mhz}", f"{smi} --perf-level AUTO"


# Those at hand

GpuBoard = NvidiaBoard | AmdBoard
_FINDERS: tuple[Callable[[], Sequence[GpuBoard]], ...] = (nvidia_boards, amd_boards)


def boards_at_hand(names: Sequence[str] = ()) -> list[GpuBoard]:
    """The GPUs of these numbers or UUIDs; else those visible to a program by the environment.

    Without either the first. Raises InputError without a GPU, or of a part of one (MIG).
    """
    found: Sequence[GpuBoard] = []
    why: list[InputError] = []
    for find in _FINDERS:
        try:
            found = found or find()
        except InputError as error:
            why.append(error)
    if not found:
        if all(isinstance(error, MissingLibraryError) for error in why):
            raise why[0]
        raise InputError(f"no GPU was found: {'; '.join(map(str, why))}")
    visible = next((os.environ[name] for name in VISIBLE if os.environ.get(name)), "")
    asked = list(names) or [name.strip() for name in visible.split(",") if name.strip()]
    boards = [_named(found, name) for name in dict.fromkeys(asked)] if asked else [found[0]]
    for board in boards:
        if parts := board.parts():
            raise _parts_error(f"GPU {board.index} is divided ({parts})")
    return boards


def _named(found: Sequence[GpuBoard], name: str) -> GpuBoard:
    if name.startswith("MIG-"):
        raise _parts_error(f"{name} is a part of a GPU (MIG)")
    for board in found:
        is_uuid = name.startswith("GPU-") and f"GPU-{board.uuid}".startswith(name)
        if name == board.index or is_uuid:
            return board
    known = ", ".join(f"GPU {board.index} ({board.name})" for board in found)
    raise InputError(f"no GPU {name} answers; available: {known}")


def _parts_error(what: str) -> InputError:
    return InputError(
        f"{what}, and its sensors show the whole GPU with all that runs on it; measure an "
        f"undivided GPU ({parameter('gpu')}), or turn the partitioning off",
        "M01",
    )
