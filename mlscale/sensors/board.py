"""What NVIDIA's and AMD's GPUs have in common as they are measured."""

from collections.abc import Mapping
from typing import Any, Protocol

from mlscale.errors import InputError

Sample = dict[str, float]  # by the heading in a log; what a GPU does not tell is left out

POWER, MEAN_POWER = "power.draw.instant [W]", "power.draw [W]"
ENGINE, MEMORY = "clocks.current.sm [MHz]", "clocks.current.memory [MHz]"
BUSY, COPIES = "utilization.gpu [%]", "utilization.memory [%]"
TEMPERATURE, LIMIT = "temperature.gpu", "enforced.power.limit [W]"
REASONS, ENERGY = "clocks_event_reasons.active", "total_energy [J]"


class LostError(InputError):
    """The GPU does not answer any more."""


class SettingError(InputError):
    """The GPU refuses to be set: no right to, or it cannot."""


class GpuBoard(Protocol):
    """One GPU: index and uuid by the vendor's tool, and its name.

    `nvidia.NvidiaBoard` and `amd.AmdBoard` are such.
    """

    index: str
    uuid: str
    name: str

    def facts(self) -> dict[str, Any]:
        """What stays the same during a run: the driver, limits [W], the profile of power."""

    def read(self) -> Sample:
        """The sensors now. Raises LostError."""

    def parts(self) -> str:
        """What it is divided into, such as 'MIG'; '' of a whole GPU."""

    def processes(self) -> dict[int, str]:
        """Those that compute on it, by number."""

    def nearest_mhz(self, engine_mhz: float) -> int:
        """The nearest engine clock that can be set [MHz]."""

    def settings(self) -> dict[str, Any]:
        """What `put_back` needs, read before anything is set."""

    def hold(self, settings: Mapping[str, int]) -> None:
        """Hold engine_mhz, memory_mhz [MHz] and cap_w [W], if given. Raises SettingError."""

    def put_back(self, before: Mapping[str, Any]) -> None:
        """Set it as it was, by its `settings` of before. Raises SettingError."""

    def commands(self, engine_mhz: int) -> tuple[str, str]:
        """What sets that clock in a shell, and what puts it back."""
