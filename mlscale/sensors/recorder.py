"""Samples of GPUs, taken by a thread while work runs beside it."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from mlscale.sensors.boards import BUSY, MEAN_POWER, POWER, GpuBoard, Sample

USUAL_HZ = 10.0
IDLE_PERCENT = 2.0  # up to this utilisation a GPU is idle
_LAG_S = 1.5  # utilisation is of the last second or less, by NVML's reference
_TURN_S = 0.5  # for which work waits at most for the first sample


class Recorder(threading.Thread):
    """Samples boards from its start to its end; a context manager.

    Attributes:
        rows: by a board's index its samples, each with the seconds since 1970.
        lost: by index why there are no more of a board.
        others: by index the processes that computed there before.
    """

    def __init__(
        self,
        boards: Sequence[GpuBoard],
        hz: float = USUAL_HZ,
        sampled: Callable[[GpuBoard, list[tuple[float, Sample]]], object] = lambda *_: None,
    ) -> None:
        """sampled: is called with all samples of a board after each."""
        super().__init__(daemon=True)
        self._sampled = sampled
        self.boards, self._period_s = tuple(boards), 1 / hz
        self.rows: dict[str, list[tuple[float, Sample]]] = {one.index: [] for one in boards}
        self.lost: dict[str, str] = {}
        self.others: dict[str, Mapping[int, str]] = {}
        self._sum_w = dict.fromkeys(self.rows, 0.0)
        self._ended, self._began = threading.Event(), threading.Event()
        self._epoch_s = time.time() - time.monotonic()

    def run(self) -> None:
        """Sample all boards again and again, once more after the end."""
        due_s, is_last = time.monotonic(), False
        while not is_last:
            self._sample()
            self._began.set()
            due_s = max(due_s + self._period_s, time.monotonic())
            is_last = self._ended.wait(due_s - time.monotonic())
        self._sample()

    def _sample(self) -> None:
        for board in self.boards:
            if board.index not in self.lost:
                self._ask(self._read, board)

    def _ask(self, function: Callable[[GpuBoard], object], board: GpuBoard) -> None:
        """Ask a board; whatever goes wrong, it is lost, and the others are not."""
        try:
            function(board)
        except BaseException as error:  # whatever a driver raises
            self.lost[board.index] = str(error) or type(error).__name__

    def _read(self, board: GpuBoard) -> None:
        sample = board.read()
        self._sum_w[board.index] += sample.get(POWER, sample.get(MEAN_POWER, 0.0))
        self.rows[board.index].append((self._epoch_s + time.monotonic(), sample))
        self._sampled(board, self.rows[board.index])

    def __enter__(self) -> Self:
        for board in self.boards:
            self._ask(lambda one: self.others.update({one.index: one.processes()}), board)
        self.start()
        self._began.wait(_TURN_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def await_idle(self) -> bool:
        """Wait until the GPUs are seen to be idle again, but not for ones that never are.

        Whether they are.
        """
        until_s = time.monotonic() + _LAG_S
        while any(map(self._is_busy, self.rows)) and time.monotonic() < until_s:
            time.sleep(min(self._period_s, _LAG_S / 10))
        return not any(map(self._is_busy, self.rows))

    def _is_busy(self, index: str) -> bool:
        told = (sample[BUSY] for _, sample in reversed(self.rows[index]) if BUSY in sample)
        return index not in self.lost and next(told, 0) > IDLE_PERCENT

    def energy_j(self, index: str) -> float:
        """Of a board until now, by its power [J]."""
        rows = self.rows[index]
        return (rows[-1][0] - rows[0][0]) * self._sum_w[index] / len(rows) if rows else 0.0
