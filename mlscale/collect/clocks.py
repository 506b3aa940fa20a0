"""Clocks and power limits of an NVIDIA board: offered, set, and given back even after a crash.

While they may be set, a marker stands in a folder of the user's state, held by a file lock. A
marker that nobody holds is of a run that was killed: the next run resets the board first.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mlscale.collect.device import DeviceInfo
from mlscale.errors import InputError, warn

_RESET = "nvidia-smi --reset-gpu-clocks; nvidia-smi --reset-memory-clocks; nvidia-smi -pl WATTS"
# Not from a manual: how long a board may take to run at a clock that was just set.
_SETTLE_S = 0.2
Settings = Mapping[str, tuple[int, ...]]


def offered(info: DeviceInfo, asked: Settings) -> dict[str, tuple[int, ...]]:
    """The settings of a plan at the clocks that the board offers, each the nearest one.

    An engine clock is one that all of the memory clocks go with. Raises InputError where the
    board offers none, or where nothing can be set.
    """
    if info.sensors != "nvml":
        raise InputError(
            f"{info.name}: clocks and power limits are set by NVML alone. For AMD set them with "
            "amd-smi and collect once for each setting; an MI300X refuses to hold its clocks "
            "(--setsclk), performance determinism caps them instead"
        )
    if os.geteuid() != 0:
        raise InputError("clocks and power limits are set by root; run it as root")
    import pynvml

    board = _board(info)
    try:
        memories = list(pynvml.nvmlDeviceGetSupportedMemoryClocks(board))
        memory = _nearest(asked["memory_mhz"], memories)
        engines = [
            set(pynvml.nvmlDeviceGetSupportedGraphicsClocks(board, mhz))
            for mhz in memory or [max(memories)]
        ]
    except pynvml.NVMLError as error:
        raise InputError(f"{info.name} does not list the clocks that it takes ({error})") from None
    common = sorted(set.intersection(*engines))
    if not common:
        raise InputError(f"no engine clock is offered at all of the memory clocks {memory} MHz")
    return {**asked, "engine_mhz": _nearest(asked["engine_mhz"], common), "memory_mhz": memory}


def set_board(info: DeviceInfo, settings: Mapping[str, int]) -> None:
    """Hold the clocks [MHz] and limit the power [W] as far as they are given.

    kernel_tuner 1.5.0 is not asked for it: it sets one locked clock together with a reading of
    the other, which undoes the second of two where the board idles.
    """
    import pynvml

    board = _board(info)
    if mhz := settings.get("engine_mhz"):
        pynvml.nvmlDeviceSetGpuLockedClocks(board, mhz, mhz)
    if mhz := settings.get("memory_mhz"):
        pynvml.nvmlDeviceSetMemoryLockedClocks(board, mhz, mhz)
    if watts := settings.get("cap_w"):
        pynvml.nvmlDeviceSetPowerManagementLimit(board, 1000 * watts)
    time.sleep(_SETTLE_S)


@contextmanager
def given_back(info: DeviceInfo, sets_board: bool) -> Iterator[None]:
    """Within the block the board may be set; after it the board is reset.

    Where nothing is to be set, only what a killed run left is reset. Raises InputError where the
    marker cannot be written, where another run holds the board, and where it cannot be reset.
    """
    import fcntl

    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    marker = Path(state) / "mlscale" / f"clocks-{info.uuid}.json"
    if not sets_board and not marker.exists():
        yield
        return
    import pynvml

    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        file = marker.open("a+b", buffering=0)
    except OSError as error:
        raise InputError(
            f"{marker}: cannot be written ({error.strerror}), and without it clocks are not set: a "
            "run that is killed must be known to the next"
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another mlscale collect sets the clocks of this GPU ({marker}); wait for its end"
            ) from None
        if marker.read_bytes():
            warn("an earlier run was killed while it held the clocks; they are reset first")
            _reset(info, marker)
        limit = pynvml.nvmlDeviceGetPowerManagementLimit(_board(info))
        file.truncate(0)
        file.write(json.dumps({"power_limit_mw": limit}).encode())
        os.fsync(file.fileno())
        try:
            yield
        finally:
            _reset(info, marker)
            marker.unlink()


def _reset(info: DeviceInfo, marker: Path) -> None:
    """The driver's clocks, and the power limit of before. Raises InputError."""
    import pynvml

    board, before = _board(info), json.loads(marker.read_bytes())["power_limit_mw"]
    try:
        with suppress(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceResetGpuLockedClocks(board)
        with suppress(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceResetMemoryLockedClocks(board)
        if pynvml.nvmlDeviceGetPowerManagementLimit(board) != before:
            pynvml.nvmlDeviceSetPowerManagementLimit(board, before)
    except pynvml.NVMLError as error:
        raise InputError(f"the board could not be reset ({error}); as root: {_RESET}") from None


def _board(info: DeviceInfo) -> Any:
    import pynvml

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{info.uuid}")


def _nearest(asked: tuple[int, ...], clocks: list[int]) -> tuple[int, ...]:
    return tuple(sorted({min(clocks, key=lambda clock: abs(clock - mhz)) for mhz in asked}))
