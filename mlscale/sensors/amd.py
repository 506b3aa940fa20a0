"""AMD's GPUs by AMD SMI (amdsmi, of the ROCm that is installed). No GPU has run this yet.

An engine clock is set as performance determinism, a highest clock; put back is the level of before.
Which calls there are: AMD SMI's Python API reference.
"""

from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any

from mlscale.errors import InputError, extra_named
from mlscale.sensors import board
from mlscale.sensors.board import LostError, Sample, SettingError

_LEVEL = "AMDSMI_DEV_PERF_LEVEL_"
_WHOLE = ("SPX", "N/A", "")  # compute partitions that are a whole GPU


def boards() -> "list[AmdBoard]":
    """All GPUs that the driver lists. Raises InputError."""
    with extra_named("mlscale measure"), redirect_stdout(None):  # it prints what it lacks
        try:
            import amdsmi
        except ModuleNotFoundError:
            raise
        except Exception as error:  # of a library of another ROCm, or of none
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
    """One GPU; as `nvidia.NvidiaBoard`."""

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
        """The sensors now. Raises LostError where none answers."""
        smi, number = self._smi, self._number
        watts = ("current_socket_power", "average_socket_power")
        kinds, metric = smi.AmdSmiTemperatureType, smi.AmdSmiTemperatureMetric.CURRENT
        limit_uw = number(smi.amdsmi_get_power_cap_info, names=("power_cap",))
        energy = self._ask(smi.amdsmi_get_energy_count) or {}
        counted, unit_uj = energy.get("energy_accumulator"), energy.get("counter_resolution", 0)
        activity = smi.amdsmi_get_gpu_activity
        read = {
            board.POWER: number(smi.amdsmi_get_power_info, names=watts),
            board.ENGINE: number(smi.amdsmi_get_clock_info, smi.AmdSmiClkType.GFX, names=("clk",)),
            board.MEMORY: number(smi.amdsmi_get_clock_info, smi.AmdSmiClkType.MEM, names=("clk",)),
            board.BUSY: number(activity, names=("gfx_activity",)),
            board.COPIES: number(activity, names=("umc_activity",)),
            board.TEMPERATURE: self._ask(smi.amdsmi_get_temp_metric, kinds.HOTSPOT, metric),
            board.LIMIT: limit_uw and limit_uw / 1e6,
            board.ENERGY: counted and counted * unit_uj / 1e6,
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
