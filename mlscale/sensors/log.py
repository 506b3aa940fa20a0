"""A run's log in the names of nvidia-smi, below one line of what does not change; and what it says.

What a log says is read from the file by `mlscale.readers`, as by `advise`. `Meter` is all of it for
a block of Python.
"""

import csv
import io
import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp, mkstemp
from typing import Any, Self

from mlscale.errors import InputError, warn
from mlscale.files import is_stream, only_writer, write_text
from mlscale.parameters import parameter
from mlscale.readers.monitor import FACTS, read_log
from mlscale.sensors.boards import BUSY, REASONS, GpuBoard, LostError, Sample, boards_at_hand
from mlscale.sensors.clocks import given_back
from mlscale.sensors.recorder import IDLE_PERCENT, Recorder

Samples = Sequence[tuple[float, Sample]]

# Bits of NVML's clocks event reasons: what lowered the clock, and the code under which it is told.
_CAP, _HEAT = 0x4 | 0x80, 0x8 | 0x20 | 0x40
_OFTEN = 0.05  # a share of the samples at work that is told
_PART = ".part.csv"  # ends the names of logs while they are sampled


@dataclass(frozen=True)
class Measured:
    """What a log says of the work on one GPU.

    Attributes:
        path: the log; gpu: its index; name: of the GPU.
        time_s: how long the GPU worked, or the time of so much work [s]; total_s: from the first
            sample to the last.
        engine_mhz: mean while it worked; NaN if no sensor shows it.
        mean_w: mean power [W] in that time, and energy_j its energy [J]; NaN if no sensor does.
    """

    path: Path
    gpu: str
    name: str
    time_s: float
    total_s: float
    engine_mhz: float
    mean_w: float
    energy_j: float


class PartialLog:
    """The log of a board on the disk while it is sampled, which stays where a process is killed.

    Attributes:
        facts: what it says above its header.
    """

    def __init__(self, log: Path, board: GpuBoard, facts: Mapping[str, Any]) -> None:
        """log: beside which it stands; facts: beside the board's. Raises InputError.

        Partial logs that no process holds any more are told of.
        """
        self.board, self.facts, self._headings = board, {**facts}, list[str]()
        try:
            folder = Path() if is_stream(log) else log.parent
            handle, name = mkstemp(_PART, f"{log.stem}-", folder)
        except OSError as error:  # told before the run, which may take hours
            raise InputError(
                f"{log.parent.resolve()}: no log can be written there ({error.strerror}); "
                f"give {parameter('log', 'FILE')} elsewhere"
            ) from None
        self._path, self._stack = Path(name), ExitStack()
        os.umask(umask := os.umask(0))
        with suppress(OSError):  # as of a FAT stick
            self._path.chmod(0o666 & ~umask)
        self._file = self._stack.enter_context(os.fdopen(handle, "w", encoding="utf-8"))
        self._stack.enter_context(only_writer(self._path))
        for path in sorted(folder.glob(f"*{_PART}")):
            with suppress(InputError, OSError), only_writer(path):  # nobody holds it
                warn("M02", f"{path}: is from a run that was killed; rename or delete it")

    def add(self, rows: Samples) -> None:
        """Write the last of all samples; with a heading that is new, all of them anew."""
        if not self._headings:
            self.facts = self.board.facts() | self.facts
        is_new = not rows[-1][1].keys() <= {*self._headings}
        with suppress(OSError):  # as of a full disk: the samples are in memory too
            if is_new:
                self._headings = _headings(rows)
                self._file.seek(0)
                self._file.truncate()
            more = rows if is_new else rows[-1:]
            self._file.write(
                _text(self.board, more, self._headings, self.facts if is_new else None)
            )
            self._file.flush()

    def save(self, path: Path, rows: Samples, facts: Mapping[str, Any]) -> None:
        """Give it its name, or write what it lacks, whole or not at all. Raises InputError.

        facts: what does not change. Where nothing can be written a copy is elsewhere, and named.
        """
        text = _text(self.board, rows, _headings(rows), facts)
        with suppress(OSError, UnicodeDecodeError):  # what is there needs no more of a full disk
            if not is_stream(path) and self._path.read_text(encoding="utf-8") == text:
                self._path.replace(path.resolve())
                return
        try:
            write_text(path, text)
        except InputError as error:  # as of a full disk: the run may have taken hours
            with suppress(OSError):
                elsewhere = Path(mkdtemp(prefix="mlscale-")) / path.name
                elsewhere.write_text(text, encoding="utf-8")
                self.remove()
                raise InputError(f"{error}; the log is in {elsewhere}") from None
            raise

    def close(self) -> None:
        """Leave it as it is, no longer held by a process."""
        with suppress(OSError):  # what a full disk did not take is in memory too
            self._stack.close()

    def remove(self) -> None:
        """Delete it: the log is complete, or there is nothing to keep."""
        self.close()
        self._path.unlink(missing_ok=True)


def _headings(rows: Samples) -> list[str]:
    return list(dict.fromkeys(name for _, sample in rows for name in sample))


def _text(
    board: GpuBoard, rows: Samples, headings: Sequence[str], facts: Mapping[str, Any] | None
) -> str:
    """Samples as CSV; below the line of facts and a header where there are facts."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if facts is not None:
        head = json.dumps({"gpu": board.name, "uuid": board.uuid, **facts})
        text.write(f"{FACTS}{head}\n")
        writer.writerow(["timestamp", "index", "name", *headings])
    for seconds, sample in rows:
        cells = [_cell(name, sample.get(name)) for name in headings]
        writer.writerow([f"{seconds:.3f}", board.index, board.name, *cells])
    return text.getvalue()


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "[N/A]"
    return f"{int(value):#018x}" if name == REASONS else f"{value:.10g}"


def kept(recorder: Recorder, board: GpuBoard, skip_s: float = 0.0) -> Samples:
    """The samples of a board without those of the first seconds; all if that leaves none.

    Raises InputError without any.
    """
    gpu, rows = f"GPU {board.index}", recorder.rows[board.index]
    if len(rows) < 2:
        why = recorder.lost.get(board.index)
        told = f" no longer answers ({why})" if why else ": the run was too short to be sampled"
        raise InputError(f"{gpu}{told}; no log is written")
    left = [row for row in rows if row[0] >= rows[0][0] + skip_s]
    if len(left) < 2:
        warn("M02", f"{gpu}: no samples after the first {skip_s:g} s, so none is left out")
    return left if len(left) > 1 else rows


def at_work(rows: Samples) -> Samples:
    """The samples at which the GPU is not idle."""
    return [row for row in rows if row[1].get(BUSY, 100) > IDLE_PERCENT]


def measured(path: Path) -> Measured:
    """What a log says. Raises InputError, also if the GPU was idle; warns of odd clocks."""
    from mlscale.data.devices import find_device
    from mlscale.readers.busy_span import busy_span, mean_power
    from mlscale.readers.log_table import mean_clocks

    [log] = read_log(path)
    span, device = busy_span(log), find_device(log.name)
    clocks = mean_clocks(log, span, {}, device)
    seconds = [] if log.seconds is None else log.seconds.tolist()
    time_ms = log.time_ms or span.time_ms or 0.0
    mean_w = mean_power(log, span)
    return Measured(
        path,
        log.gpu,
        device.name if device else log.name,
        time_ms / 1e3,
        seconds[-1] - seconds[0] if seconds else 0.0,
        clocks.get("engine_mhz", math.nan),
        mean_w,
        mean_w * time_ms / 1e3,
    )


def warn_of_run(recorder: Recorder, board: GpuBoard, ran_before: bool = False) -> None:
    """Warn of what was amiss while a GPU was measured, and no log tells: caps, heat, others.

    ran_before: what is measured was on the GPU before, so that it is no other program.
    """
    rows, gpu = at_work(recorder.rows[board.index]), f"GPU {board.index}"
    told = [int(sample[REASONS]) for _, sample in rows if REASONS in sample]
    for code, bits, what in (("P03", _CAP, "the power limit"), ("L04", _HEAT, "heat")):
        share = sum(bool(one & bits) for one in told) / max(1, len(told))
        if share > _OFTEN:
            warn(
                code, f"{gpu}: {what} lowered its clock in {100 * share:.0f} % of the busy samples"
            )
    others = {**recorder.others.get(board.index, {})}
    others.pop(os.getpid(), None)
    if others and not ran_before:
        names = ", ".join(f"{name or 'process'} {n}" for n, name in others.items())
        warn("G02", f"{gpu}: another program ran on it already: {names}; power and time include it")


class Meter:
    """Samples a GPU while a block runs, and writes its log if the block succeeds.

    An existing log is then replaced, with a warning. Until then the samples are in a file next to
    it, which is kept if the block raises.

    Attributes:
        path: the log.
        time_s: that the GPU worked [s]; with a rate that of a million units of work.
        engine_mhz, mean_w: mean clock [MHz] and power [W] in that time; energy_j: its energy [J].
            NaN until the block has ended, and if no sensor shows it.
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
        self._partial.save(self.path, kept(recorder, board), self._partial.facts)
        self._partial.remove()
        warn_of_run(recorder, board)
        if why := recorder.lost.get(board.index):
            raise LostError(f"GPU {board.index} no longer answers ({why}): {self.path} ends there")
        found = measured(self.path)
        self.time_s, self.engine_mhz = found.time_s, found.engine_mhz
        self.mean_w, self.energy_j = found.mean_w, found.energy_j
