"""A program that is measured: started, shown while it runs, and ended as if nobody measured it."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Self

from mlscale.errors import InputError

_LOOK_S = 0.5  # between two looks at what goes on
_ENDING = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
]
_FROM_KEYS = (signal.SIGINT, getattr(signal, "SIGQUIT", None))  # a terminal sends them to both


class Signals:
    """While it is entered, what would end this process goes to the program and is kept.

    So nothing of this process ends before its time, and what is set is put back. last: the number
    of the last signal; 0 without any.
    """

    def __init__(self) -> None:
        self.last = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._received) for number in _ENDING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _received(self, number: int, _: FrameType | None) -> None:
        self.last = number
        if self.process is not None and not (number in _FROM_KEYS and sys.stdin.isatty()):
            self.process.send_signal(number)


def run_program(words: Sequence[str], signals: Signals, look: Callable[[], None] | None) -> int:
    """Run a program to its end; its exit status, 128 and the signal's number where one ended it.

    look: is called again and again meanwhile, where there is somebody to see it. Raises InputError
    where it cannot be started.
    """
    try:
        signals.process = subprocess.Popen(words)  # noqa: S603, the user's program
    except OSError as error:
        raise InputError(f"{words[0]}: cannot be run: {error.strerror or error}") from None
    if signals.last:  # before there was a program
        signals.process.send_signal(signals.last)
    while (status := signals.process.poll()) is None:
        try:
            status = signals.process.wait(_LOOK_S if look else None)
        except subprocess.TimeoutExpired:
            if look:
                look()
    signals.process = None
    return 128 - status if status < 0 else status


def wait(seconds: float, signals: Signals, look: Callable[[], None] | None) -> int:
    """Wait so long, or until a signal; the exit status that it makes."""
    until_s = time.monotonic() + seconds
    while not signals.last and (left_s := until_s - time.monotonic()) > 0:
        time.sleep(min(_LOOK_S, left_s))
        if look:
            look()
    return 128 + signals.last if signals.last else 0
