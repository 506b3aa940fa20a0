"""The GPUs at hand, and what NVIDIA's and AMD's have in common."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mlscale.errors import InputError, MissingLibraryError

Sample = dict[str, float]  # by the heading in a log; what a GPU does not tell is left out

POWER, MEAN_POWER = "power.draw.instant [W]", "power.draw [W]"
ENGINE, MEMORY = "clocks.current.sm [MHz]", "clocks.current.memory [MHz]"
BUSY, COPIES = "utilization.gpu [%]", "utilization.memory [%]"
TEMPERATURE, LIMIT = "temperature.gpu", "enforced.power.limit [W]"
REASONS, ENERGY = "clocks_event_reasons.active", "total_energy [J]"

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


class LostError(Exception):
    """The GPU does not answer any more."""


class SettingError(InputError):
    """The GPU refuses to be set: no right to, or it cannot."""


class Board(Protocol):
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


def boards_at_hand(names: Sequence[str] = ()) -> list[Board]:
    """The GPUs of these numbers or UUIDs; else those visible to a program by the environment.

    Without either the first. Raises InputError without a GPU, or of a part of one.
    """
    from mlscale.sensors import amd, nvidia

    found: list[Board] = []
    why: list[InputError] = []
    for find in (nvidia.boards, amd.boards):
        try:
            found = found or find()
        except InputError as error:
            why.append(error)
    if not found:
        if all(isinstance(error, MissingLibraryError) for error in why):
            raise why[0]
        raise InputError(f"no GPU is found: {'; '.join(map(str, why))}")
    visible = next((os.environ[name] for name in _VISIBLE if os.environ.get(name)), "")
    asked = list(names) or [name.strip() for name in visible.split(",") if name.strip()]
    return [_named(found, name) for name in dict.fromkeys(asked)] if asked else found[:1]


def _named(found: Sequence[Board], name: str) -> Board:
    if name.startswith("MIG-"):
        raise parts_error(f"{name} is a part of a GPU (MIG)")
    for board in found:
        is_uuid = name.startswith("GPU-") and f"GPU-{board.uuid}".startswith(name)
        if name == board.index or is_uuid:
            return board
    known = ", ".join(board.index for board in found)
    raise InputError(f"there is no GPU {name}; there are {known}")


def parts_error(what: str) -> InputError:
    """That a part of a GPU is not measured."""
    return InputError(
        f"{what}, whose power and clock are those of the whole GPU with all that runs on it; "
        "measure on a whole GPU (--gpu), or switch the parts off",
        "M01",
    )
