"""What is measured until it ends: a program, or what runs already, as if nobody measured it."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
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

    So nothing of this process ends before its time, and what is set is put back. What was ignored,
    as under nohup, stays so. last: the number of the last signal; 0 without any.
    """

    def __init__(self) -> None:
        self.last = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        heard = [one for one in _ENDING if signal.getsignal(one) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._received) for number in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _received(self, number: int, _: FrameType | None) -> None:
        self.last = number
        if self.process is not None and not (number in _FROM_KEYS and os.isatty(0)):
            self.process.send_signal(number)


class Work:
    """A program that was started; without words what runs already, for so many seconds.

    After a signal no program is started. Raises InputError where it cannot be.
    """

    def __init__(self, words: Sequence[str], seconds: float, signals: Signals) -> None:
        self._signals, self._until_s = signals, time.monotonic() + seconds
        if not words or signals.last:
            return
        try:
            signals.process = subprocess.Popen(words)  # noqa: S603, the user's program
        except OSError as error:
            raise InputError(f"{words[0]}: cannot be run: {error.strerror or error}") from None
        if signals.last:  # while it was started
            signals.process.send_signal(signals.last)

    def status(self) -> int | None:
        """The exit status, 128 and the number of a signal that ended it; None while it goes on.

        Waits for a moment.
        """
        if self._signals.process is None:
            left_s = self._until_s - time.monotonic()
            if self._signals.last or left_s <= 0:
                return 128 + self._signals.last if self._signals.last else 0
            time.sleep(min(_LOOK_S, left_s))
            return None
        try:
            status = self._signals.process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            return None
        self._signals.process = None
        return 128 - status if status < 0 else status
