"""What a job's steps say of time and power, and the machine that they run on."""

import atexit
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.sensors.boards import (
    ENERGY,
    ENGINE,
    MEAN_POWER,
    POWER,
    VISIBLE,
    GpuBoard,
    boards_at_hand,
)
from mlscale.sensors.clocks import given_back
from mlscale.sensors.log import Samples, at_work
from mlscale.sensors.program import ending_signals
from mlscale.sensors.recorder import Recorder

LEAST_STEPS, LEAST_S = 10, 3.0  # a window holds so many, and lasts so long
_MOST_STEPS, _MOST_ODD_STEPS, _ERROR = 40, 120, 0.01
_LONG, _WAITS = 3.0, 3  # medians of a step that waits; how many tell a loop that waits
_PAUSE = 0.25  # share of a step by which one that holds a pause is longer


def step_time(ends_s: Sequence[float]) -> tuple[float, float, Floats]:
    """Time of a step and its standard error [s]; begin and end of what is left out (N, 2).

    Left out are steps that hold a pause, an evaluation, a checkpoint. Where steps of over 3 medians
    come again and again and hold most of the time, the loop runs ahead of the GPU and waits there:
    then its time is from one wait to the next.
    """
    ends, counts = np.array(ends_s), np.ones(len(ends_s) - 1)
    waits = np.flatnonzero(_are_long(np.diff(ends)))
    if len(waits) >= _WAITS and _share_of_long(ends_s, but_one=True) > 1 / 2:
        ends, counts = ends[waits + 1], np.diff(waits)
    took = np.diff(ends) / counts
    middle = np.median(took[~_are_long(took)])
    deviation = 1.4826 * np.median(np.abs(took[~_are_long(took)] - middle))
    far = max(4 * deviation, 0.02 * middle)
    near = took[np.abs(took - middle) <= far]
    spread = max(near.std(), 0.3 * deviation, 1e-4 * near.mean())
    is_out = took > middle + max(far, _PAUSE * middle)
    left_out = np.stack([ends[:-1], ends[1:]], axis=1)[is_out]
    return float(near.mean()), float(spread / math.sqrt(len(near))), left_out


def _are_long(took: Floats) -> Any:
    return took > _LONG * np.median(took)


def _share_of_long(ends_s: Sequence[float], but_one: bool = False) -> float:
    """Of the time; but_one: without the longest, which may be an evaluation."""
    took = np.sort(np.diff(ends_s))
    is_long = _are_long(took)
    if but_one:
        took, is_long = took[:-1], is_long[:-1]
    return float(took[is_long].sum() / took.sum())


def is_enough(ends_s: Sequence[float]) -> bool:
    """Whether these steps show their time: it takes more of ones that differ much."""
    count = len(ends_s) - 1
    if count < LEAST_STEPS or ends_s[-1] - ends_s[0] < LEAST_S:
        return False
    if (is_odd := _share_of_long(ends_s) > 1 / 2) and count < _MOST_STEPS:
        return False
    time_s, error_s, _ = step_time(ends_s)
    return error_s < _ERROR * time_s or count >= (_MOST_ODD_STEPS if is_odd else _MOST_STEPS)


def mean_power_w(rows: Samples, left_out: Floats) -> float:
    """Of samples outside what is left out, by the energy counter if there is one.

    Raises InputError if no sensor shows power.
    """
    times = np.array([seconds for seconds, _ in rows])
    joules = np.array([sample.get(ENERGY, math.nan) for _, sample in rows])
    if np.isnan(joules).any():
        watts = np.array([one.get(POWER, one.get(MEAN_POWER, math.nan)) for _, one in rows])
        joules = np.append(0.0, np.cumsum((watts[1:] + watts[:-1]) / 2 * np.diff(times)))
    away = np.clip(left_out, times[0], times[-1])
    seconds = np.ptp(times) - np.diff(away).sum()
    power_w = float((np.ptp(joules) - np.diff(np.interp(away, times, joules)).sum()) / seconds)
    if not 0 < power_w < math.inf:
        raise InputError("no sensor shows its power")
    return power_w


def mean_engine_mhz(rows: Samples) -> float:
    """The engine clock while the GPU worked; NaN if no sensor shows it."""
    told = [sample[ENGINE] for _, sample in at_work(rows) or rows if ENGINE in sample]
    return sum(told) / len(told) if told else math.nan


class Machine:
    """The GPUs that this process uses, a clock for its steps, and samples of the first GPU."""

    def __init__(self, gpu: int | str | None) -> None:
        self._gpu, self._stack = gpu, ExitStack()

    def now_s(self) -> float:
        """A time, of which differences count [s]."""
        return time.monotonic()

    def boards(self, is_rank: bool) -> Sequence[GpuBoard]:
        """The GPUs; of one process among several the one that it computes on."""
        torch, names = sys.modules.get("torch"), [] if self._gpu is None else [str(self._gpu)]
        is_open = is_rank or not any(os.environ.get(name) for name in VISIBLE)
        if not names and torch and is_open and torch.cuda.is_initialized():
            here = torch.cuda.get_device_properties(torch.cuda.current_device())
            names = [f"GPU-{here.uuid}"]
        return boards_at_hand(names)

    def watch(self, board: GpuBoard) -> None:
        """Sample from now on."""
        self.stop()
        self._recorder, self._epoch_s = Recorder([board]), time.time() - time.monotonic()
        self._stack.enter_context(self._recorder)

    def samples(self, begun_s: float, ended_s: float) -> Samples:
        """Those between two times."""
        [rows] = self._recorder.rows.values()
        timed = [(seconds - self._epoch_s, sample) for seconds, sample in [*rows]]
        return [row for row in timed if begun_s <= row[0] <= ended_s]

    def stop(self) -> None:
        """Sample no more."""
        self._stack.close()


def _caught_elsewhere() -> set[int]:
    """Signals with a handler that Python does not know, as by faulthandler.register."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # another system
        return set()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    numbers = {number for number in signal.valid_signals() if caught >> number - 1 & 1}
    return {number for number in numbers if signal.getsignal(number) is signal.SIG_DFL}


class ClockGuard:
    """Lets boards be set, and puts them back whatever ends this process.

    After SIGKILL the next mlscale does.
    """

    def __init__(self) -> None:
        self._stack, self._process = ExitStack(), os.getpid()
        self._handlers: dict[int, Any] = {}
        self._is_busy, self._waiting = False, 0

    def open(self, boards: Sequence[GpuBoard]) -> None:
        """Let the boards be set. Raises InputError where they may not be."""
        if threading.current_thread() is threading.main_thread():
            for number in {*ending_signals()} - _caught_elsewhere():
                self._handlers[number] = signal.signal(number, self._received)
        atexit.register(self.close)
        with self._undisturbed():
            for board in boards:
                self._stack.enter_context(given_back(board, sets_board=True))

    def close(self) -> None:
        """Put the clocks back. Raises InputError where that fails, with what to type."""
        if os.getpid() != self._process:  # a worker that was forked
            return
        try:
            with self._undisturbed():
                self._stack.close()
        finally:
            atexit.unregister(self.close)
            is_main = threading.current_thread() is threading.main_thread()
            for number, before in self._handlers.items() if is_main else ():
                if signal.getsignal(number) == self._received:
                    signal.signal(number, before)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """In the block a signal waits for its end."""
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy, number, self._waiting = False, self._waiting, 0
            if number:
                signal.raise_signal(number)

    def _received(self, number: int, frame: Any) -> None:
        if self._is_busy:
            self._waiting = number
        elif callable(before := self._handlers[number]):  # KeyboardInterrupt, which ends the loop
            before(number, frame)
        else:
            with suppress(InputError):
                self.close()
            signal.signal(number, before)
            signal.raise_signal(number)
