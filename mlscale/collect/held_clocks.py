"""kernel_tuner's NVML observer, mended for two clocks at once; needs kernel_tuner and pynvml.

kernel_tuner 1.5.0 sets one locked clock together with a reading of the other, so that the second
of two clocks that are set undoes the first where the board idles. Here the other clock is the one
that was last asked for.
"""

from typing import Any

from kernel_tuner.observers.nvml import NVMLObserver, nvml


class HeldClocks(nvml):  # type: ignore[misc]
    """A board whose two clocks are locked together."""

    @property
    def gr_clock(self) -> Any:
        """The engine clock now [MHz]; setting it leaves the memory clock as it was asked for."""
        return super().gr_clock

    @gr_clock.setter
    def gr_clock(self, engine_mhz: int) -> None:
        if self.use_locked_clocks and engine_mhz != self.locked_gr_clock:
            self.set_clocks(self.locked_mem_clock, engine_mhz)

    @property
    def mem_clock(self) -> Any:
        """The memory clock now [MHz]; setting it leaves the engine clock as it was asked for."""
        return super().mem_clock

    @mem_clock.setter
    def mem_clock(self, memory_mhz: int) -> None:
        if self.use_locked_clocks and memory_mhz != self.locked_mem_clock:
            self.set_clocks(memory_mhz, self.locked_gr_clock)


class HeldClocksObserver(NVMLObserver):  # type: ignore[misc]
    """kernel_tuner's, on such a board."""

    def register_device(self, dev: Any) -> None:
        """Find the board of the device that is measured on."""
        super().register_device(dev)
        self.nvml.__class__ = HeldClocks
