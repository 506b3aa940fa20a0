"""Sensors and clocks of a board through NVML (the package nvidia-ml-py)."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mlscale.collect.compiling import INSTALL
from mlscale.collect.device import ClockError, GpuError, Reading


class NvmlSensors:
    """One board, by its PCI bus id."""

    def __init__(self, bus_id: str) -> None:
        """Raises GpuError without the binding, without a driver, or where the board is not found.

        mode is the best way to sense power that the board answers: 'energy' (the counter since
        the driver was loaded; Volta and later), 'instant', 'average' (over a second) or 'usage'
        (what nvidia-smi calls power.draw); 'none' where it answers no such question.
        """
        try:
            import pynvml as nvml
        except ImportError:
            raise GpuError(f"nvidia-ml-py is not installed; {INSTALL}") from None
        self._nvml: Any = nvml
        try:
            self._nvml.nvmlInit()
            self._board = self._nvml.nvmlDeviceGetHandleByPciBusId(bus_id)
            self.uuid = str(self._nvml.nvmlDeviceGetUUID(self._board))
            self.driver = str(self._nvml.nvmlSystemGetDriverVersion())
        except self._nvml.NVMLError as error:
            raise GpuError(f"NVML does not work: {error}") from None
        ways: dict[str, Callable[[], Any]] = {
            "energy": self._energy_j,
            "instant": lambda: self._field_w("NVML_FI_DEV_POWER_INSTANT"),
            "average": lambda: self._field_w("NVML_FI_DEV_POWER_AVERAGE"),
            "usage": lambda: self._maybe("nvmlDeviceGetPowerUsage"),
        }
        self.mode = next((mode for mode, way in ways.items() if way() is not None), "none")

    def read(self) -> Reading:
        """The sensors now. Raises GpuError when the board is lost."""
        nvml = self._nvml
        power = None
        if self.mode == "usage":
            milliwatts = self._maybe("nvmlDeviceGetPowerUsage")
            power = None if milliwatts is None else milliwatts / 1e3
        elif self.mode in ("instant", "average"):
            power = self._field_w(f"NVML_FI_DEV_POWER_{self.mode.upper()}")
        return Reading(
            time_s=time.perf_counter(),
            engine_mhz=self._maybe("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_mhz=self._maybe("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            reasons=int(self._maybe("nvmlDeviceGetCurrentClocksThrottleReasons") or 0),
            power_w=power,
            energy_j=self._energy_j() if self.mode == "energy" else None,
            temperature_c=self._maybe("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        )

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def supported_clocks(self) -> dict[int, tuple[int, ...]]:
        """Engine clocks by memory clock [MHz], rising; empty where the board lists none."""
        nvml = self._nvml
        try:
            return {
                int(memory): tuple(
                    sorted(nvml.nvmlDeviceGetSupportedGraphicsClocks(self._board, memory))
                )
                for memory in sorted(nvml.nvmlDeviceGetSupportedMemoryClocks(self._board))
            }
        except nvml.NVMLError:
            return {}

    def lock_clocks(self, engine_mhz: int | None, memory_mhz: int | None) -> None:
        """Hold clocks [MHz] until they are reset. Raises ClockError."""
        if memory_mhz is not None:
            self._set("the memory clock", "nvmlDeviceSetMemoryLockedClocks", memory_mhz, memory_mhz)
        if engine_mhz is not None:
            self._set("the engine clock", "nvmlDeviceSetGpuLockedClocks", engine_mhz, engine_mhz)

    def reset_clocks(self) -> None:
        """Give both clocks back to the driver. Raises ClockError."""
        self._set("the engine clock", "nvmlDeviceResetGpuLockedClocks")
        try:
            self._set("the memory clock", "nvmlDeviceResetMemoryLockedClocks")
        except ClockError as error:
            if "not supported" not in str(error).lower():  # a board that cannot lock it at all
                raise

    def close(self) -> None:
        """Let go of NVML."""
        with suppress(self._nvml.NVMLError):  # a lost board must not hide why it is closed
            self._nvml.nvmlShutdown()

    def _set(self, what: str, function: str, *arguments: int) -> None:
        nvml = self._nvml
        try:
            getattr(nvml, function)(self._board, *arguments)
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_NO_PERMISSION:
                raise ClockError(
                    f"no right to set {what}: run as root, or leave out --set-clocks"
                ) from None
            asked = f" to {arguments[0]} MHz" if arguments else ""
            raise ClockError(f"{what} cannot be set{asked}: {error}") from None

    def _energy_j(self) -> float | None:
        millijoules = self._maybe("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else millijoules / 1e3

    def _field_w(self, name: str) -> float | None:
        """A power field [W], None where the board or the driver has no such field."""
        nvml = self._nvml
        values = self._maybe("nvmlDeviceGetFieldValues", [getattr(nvml, name)])
        if values is None or values[0].nvmlReturn != nvml.NVML_SUCCESS:
            return None
        return float(values[0].value.uiVal) / 1e3

    def _maybe(self, function: str, *arguments: Any) -> Any:
        """NVML's answer; None where the board does not support the question."""
        nvml = self._nvml
        ask: Callable[..., Any] = getattr(nvml, function)
        try:
            return ask(self._board, *arguments)
        except nvml.NVMLError as error:
            if error.value in (
                nvml.NVML_ERROR_GPU_IS_LOST,
                nvml.NVML_ERROR_RESET_REQUIRED,
                nvml.NVML_ERROR_GPU_NOT_FOUND,
            ):
                raise GpuError(f"the GPU was lost: {error}") from None
            return None
