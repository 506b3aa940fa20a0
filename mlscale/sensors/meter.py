"""The work of a block of Python, measured."""

import math
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from mlscale.errors import InputError
from mlscale.sensors.board import LostError
from mlscale.sensors.boards import boards_at_hand
from mlscale.sensors.clocks import given_back
from mlscale.sensors.log import PartialLog, kept, measured, warn_of_run, write_log
from mlscale.sensors.recorder import Recorder


class Meter:
    """Samples a GPU while a block runs, and writes its log where the block ends well.

    A log that is there is replaced then, as by `mlscale measure -o`; a warning says so. Until then
    what is sampled is in a file beside it, which stays where the block does not end well.

    Attributes:
        path: the log.
        time_s: that the GPU worked [s]; with a rate that of a million units of work.
        engine_mhz, mean_w: mean clock [MHz] and power [W] in that time; energy_j: its energy [J].
            NaN until the block has ended, and where no sensor tells.
    """

    time_s = engine_mhz = mean_w = energy_j = math.nan

    def __init__(self, log: str | Path, gpu: int | str | None, rate: float | None) -> None:
        self.path = Path(log)
        self._facts = {} if rate is None else {"work_per_s": rate}
        [self._board, *others] = boards_at_hand([] if gpu is None else [str(gpu)])
        if others:
            raise InputError("several GPUs are visible; name one: gpu=0")
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self.path.exists():
            warnings.warn(f"{self.path}: exists, and is replaced", stacklevel=2)
        self._stack.enter_context(given_back(self._board, sets_board=False))
        self._partial = partial = PartialLog(self.path, self._board, self._facts)
        self._recorder = Recorder([self._board], sampled=lambda _, rows: partial.add(rows))
        self._stack.enter_context(self._recorder)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self._recorder.await_idle()
        self._stack.close()
        if error is not None:
            self._partial.close()
            return
        recorder, board = self._recorder, self._board
        write_log(self.path, board, kept(recorder, board), self._partial.facts)
        self._partial.remove()
        warn_of_run(recorder, board)
        if why := recorder.lost.get(board.index):
            raise LostError(f"GPU {board.index} no longer answers ({why}): {self.path} ends there")
        found = measured(self.path)
        self.time_s, self.engine_mhz = found.time_s, found.engine_mhz
        self.mean_w, self.energy_j = found.mean_w, found.energy_j
