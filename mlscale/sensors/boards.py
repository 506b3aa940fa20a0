"""The GPUs at hand."""

import os
from collections.abc import Callable, Sequence

from mlscale.errors import InputError, MissingLibraryError
from mlscale.sensors import amd, nvidia
from mlscale.sensors.amd import AmdBoard
from mlscale.sensors.nvidia import NvidiaBoard

GpuBoard = NvidiaBoard | AmdBoard
_FINDERS: tuple[Callable[[], Sequence[GpuBoard]], ...] = (nvidia.boards, amd.boards)
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


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
    raise InputError(f"there is no GPU {name} that answers; there is: {known}")


def _parts_error(what: str) -> InputError:
    return InputError(
        f"{what}, and its sensors show the whole GPU with all that runs on it; measure an "
        "undivided GPU (--gpu), or switch the division off",
        "M01",
    )
