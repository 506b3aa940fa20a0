"""Clocks and power limits that are set are given back: at the end, when stopped, after a crash.

kernel_tuner sets them, in the worker's process. While it may, a marker stands in a folder of the
user's state, held by a file lock. A marker that nobody holds is of a run that was killed: the next
run resets the board first.
"""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from mlscale.collect.device import DeviceInfo
from mlscale.errors import InputError, warn

RESET = "nvidia-smi --reset-gpu-clocks; nvidia-smi --reset-memory-clocks; nvidia-smi -pl WATTS"


def offered_clocks(info: DeviceInfo) -> dict[int, list[int]]:
    """Engine clocks by memory clock [MHz] that the board lists; empty where it lists none."""
    import pynvml

    board = _board(info)
    try:
        memory = pynvml.nvmlDeviceGetSupportedMemoryClocks(board)
        return {m: list(pynvml.nvmlDeviceGetSupportedGraphicsClocks(board, m)) for m in memory}
    except pynvml.NVMLError:
        return {}


def left_behind(info: DeviceInfo) -> bool:
    """Whether a run that was killed may have left the board set; `given_back` resets it."""
    return _marker(info).exists()


@contextmanager
def given_back(info: DeviceInfo) -> Iterator[None]:
    """Within the block the board may be set; after it the board is reset.

    Raises InputError where the marker cannot be written, where another run holds the board, and
    where the board cannot be reset.
    """
    import fcntl

    import pynvml

    marker = _marker(info)
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
        file.write(json.dumps({"pid": os.getpid(), "power_limit_mw": limit}).encode())
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
    stopping = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    try:
        with suppress(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceResetGpuLockedClocks(board)
        with suppress(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceResetMemoryLockedClocks(board)
        if pynvml.nvmlDeviceGetPowerManagementLimit(board) != before:
            pynvml.nvmlDeviceSetPowerManagementLimit(board, before)
    except pynvml.NVMLError as error:
        raise InputError(f"the clocks could not be reset ({error}); run as root: {RESET}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping)


def _board(info: DeviceInfo) -> Any:
    import pynvml

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{info.uuid}")


def _marker(info: DeviceInfo) -> Path:
    given = os.environ.get("XDG_STATE_HOME")
    state = Path(given) if given else Path.home() / ".local" / "state"
    return state / "mlscale" / f"clocks-{info.uuid}.json"


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Within the block, being asked to end (SIGTERM, SIGHUP) interrupts as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
