"""What is measured until it ends: a program, or what runs already, as if nobody measured it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from mlscale.errors import InputError

_LOOK_S = 0.5  # between two looks at what goes on
_KEYS_S = 1.0  # in which a signal from a terminal reaches its processes, on a busy machine too
# What does not end a process, or tells of a fault in this one, or cannot be caught.
_OTHERS = ("CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "WINCH", "INFO", "KILL",
           "SEGV", "BUS", "FPE", "ILL", "CLD")  # fmt: skip
_FROM_KEYS = (signal.SIGINT, getattr(signal, "SIGQUIT", None))  # a terminal sends them to both


def ending_signals() -> list[int]:
    """The numbers of all signals that would end this process; none that is ignored, as by nohup."""
    others = {getattr(signal, f"SIG{name}", None) for name in _OTHERS}
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    ending = signal.valid_signals() - others
    return sorted(number for number in ending if signal.getsignal(number) in defaults)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """In the block the first such signal raises KeyboardInterrupt; others are ignored."""

    def interrupt(*_: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Signals:
    """While it is entered, what would end this process goes to the program and is kept.

    So nothing of this process ends before its time, and what is set is put back. What was ignored,
    as under nohup, stays so. last: the number of the last signal; 0 without any.
    """

    def __init__(self) -> None:
        self.last = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}
        self._beside: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._before = {
            number: signal.signal(number, self._received) for number in ending_signals()
        }
        if os.isatty(0) and os.name == "posix":  # its keys end this one too, which does nothing
            self._beside = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # noqa: S607
        return self

    def __exit__(self, *_: object) -> None:
        if self._beside is not None:
            self._beside.kill()
            self._beside.communicate()
        for number, before in self._before.items():
            signal.signal(number, before)

    def _received(self, number: int, _: FrameType | None) -> None:
        self.last = number
        if number in _FROM_KEYS and self._beside is not None:
            with suppress(subprocess.TimeoutExpired):
                self._beside.wait(_KEYS_S)
                return  # the program has it too
        if self.process is not None:
            self.process.send_signal(number)


class EndedBySignalError(KeyboardInterrupt):
    """A signal came before there was anything to log. number: its."""

    def __init__(self, number: int) -> None:
        super().__init__("interrupted; no log is written")
        self.number = number


class Work:
    """A program that was started; without words what runs already, for so many seconds.

    Raises KeyboardInterrupt after a signal, and InputError if it cannot be started.
    """

    def __init__(self, words: Sequence[str], seconds: float, signals: Signals) -> None:
        self._signals, self._until_s = signals, time.monotonic() + seconds
        if signals.last:
            raise EndedBySignalError(signals.last)
        if not words:
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
