"""Clocks that are set are given back: at the end, on Ctrl-C and kill, and after a crash.

While clocks are locked a marker names them, in a folder of the user's state and held by a file
lock. A marker that nobody holds is of a run that was killed: the next run resets the clocks.
"""

import atexit
import json
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Self

from mlscale.collect.device import ClockError, Sensors
from mlscale.errors import InputError, warn

RESET = "nvidia-smi --reset-gpu-clocks; nvidia-smi --reset-memory-clocks"
_STOPPING = ("SIGTERM", "SIGHUP")


@dataclass(frozen=True)
class Clocks:
    """A setting: what was asked for and what the board offers nearest [MHz]; None: left alone."""

    engine_requested: int | None = None
    engine_locked: int | None = None
    memory_requested: int | None = None
    memory_locked: int | None = None

    @property
    def locked(self) -> tuple[int | None, int | None]:
        """Engine and memory clock as they are locked [MHz]."""
        return self.engine_locked, self.memory_locked

    def __str__(self) -> str:
        named = (("engine", self.engine_locked), ("memory", self.memory_locked))
        return ", ".join(f"{name}={mhz}" for name, mhz in named if mhz) or "clocks as they are"


def settings(
    engine: tuple[int, ...], memory: tuple[int, ...], supported: dict[int, tuple[int, ...]]
) -> tuple[Clocks, ...]:
    """Every combination of the clocks that were asked for, each at the nearest one offered.

    engine, memory: MHz; empty leaves that clock alone. supported: engine clocks by memory clock.
    Raises ClockError where the board lists no clocks.
    """
    if not engine and not memory:
        return (Clocks(),)
    if not supported:
        raise ClockError("the board lists no clocks that could be set; leave out --set-clocks")
    found: dict[tuple[int | None, int | None], Clocks] = {}
    for memory_asked in memory or (None,):
        memory_mhz = None if memory_asked is None else nearest(memory_asked, supported)
        offered = supported[max(supported) if memory_mhz is None else memory_mhz]
        for engine_asked in engine or (None,):
            engine_mhz = None if engine_asked is None else nearest(engine_asked, offered)
            setting = Clocks(engine_asked, engine_mhz, memory_asked, memory_mhz)
            found.setdefault(setting.locked, setting)
    return tuple(found.values())


def nearest(asked: int, offered: Iterable[int]) -> int:
    """The offered number nearest to the one asked for; of two, the lower."""
    return min(offered, key=lambda offer: (abs(offer - asked), offer))


def state_folder() -> Path:
    """Where markers stand: $XDG_STATE_HOME/mlscale, else ~/.local/state/mlscale."""
    given = os.environ.get("XDG_STATE_HOME")
    return (Path(given) if given else Path.home() / ".local" / "state") / "mlscale"


class ClockKeeper:
    """Sets clocks and gives them back; a context manager.

    Raises InputError when another run holds the clocks of this board.
    """

    def __init__(self, sensors: Sensors, uuid: str) -> None:
        self._sensors = sensors
        self._marker = state_folder() / f"clocks-{uuid}.json"
        self._held: IO[Any] | None = None
        self._now: tuple[int | None, int | None] = (None, None)

    def recover(self) -> bool:
        """Reset clocks that a killed run left locked; whether there were any. Raises ClockError."""
        if not self._marker.exists():
            return False
        with self._take("rb"):  # another user's may be read, though not written
            self._sensors.reset_clocks()
            self._marker.unlink()
        return True

    @contextmanager
    def _take(self, mode: str) -> Iterator[IO[Any]]:
        """The marker, locked against other runs, and without a buffer that could fail later."""
        import fcntl

        with self._marker.open(mode, buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"another mlscale collect sets the clocks of this GPU ({self._marker}); "
                    "wait for its end"
                ) from None
            yield file

    @contextmanager
    def _marking(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._marker}: cannot be written ({error.strerror}), and without it clocks are "
                "not locked: a run that is killed must be known to the next"
            ) from None

    def set(self, clocks: Clocks) -> None:
        """Lock clocks; nothing is touched for a setting that leaves both alone.

        The marker is on the disk before a clock is locked. Raises ClockError, and InputError where
        the marker cannot be written.
        """
        if clocks.locked in ((None, None), self._now):
            return
        with self._marking():
            if self._held is None:
                self._marker.parent.mkdir(parents=True, exist_ok=True)
                self._holding = self._take("ab")
                self._held = self._holding.__enter__()
                atexit.register(self.restore)
            self._held.truncate(0)
            content = json.dumps({"pid": os.getpid(), "locked": clocks.locked}) + "\n"
            self._held.write(content.encode())
            os.fsync(self._held.fileno())
        try:
            self._sensors.lock_clocks(*clocks.locked)
        except ClockError:
            if self._now == (None, None):  # nothing is locked, or the memory clock alone
                with suppress(ClockError):
                    self._sensors.reset_clocks()
                self._marker.unlink(missing_ok=True)
                self._release()
            raise
        self._now = clocks.locked

    def restore(self) -> None:
        """Reset the clocks, if they were set. Raises ClockError, and then keeps the marker."""
        if self._held is None:
            return
        with _undisturbed():
            try:
                self._sensors.reset_clocks()
                self._marker.unlink(missing_ok=True)
            finally:
                self._release()

    def _release(self) -> None:
        self._holding.__exit__(None, None, None)
        self._held = None
        self._now = (None, None)
        atexit.unregister(self.restore)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        try:
            self.restore()
        except ClockError as problem:
            if error is None:
                raise
            # what ended the block is told after it
            warn(f"the clocks could not be reset ({problem}); run as root: {RESET}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No signal interrupts the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", *_STOPPING)
    before = {name: signal.signal(getattr(signal, name), signal.SIG_IGN) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Within the block, being asked to end (SIGTERM, SIGHUP) interrupts as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    before = {}
    for name in _STOPPING:
        with suppress(AttributeError):  # a system without that signal
            before[name] = signal.signal(getattr(signal, name), stop)
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
