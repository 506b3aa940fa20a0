"""A job finds its clock inside its loop: `mlscale.tune`.

A `Tuner` is told when each step ended. Its plan is a generator, of which a `yield` is a step: warm
up, measure windows of steps at clocks, ask `advise`, check, hold.
"""

import logging
import math
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

import numpy as np

from mlscale.advice.objectives import DELAYS
from mlscale.api import Answer, advise
from mlscale.data.devices import find_device
from mlscale.data.points import SECOND_CLOCK
from mlscale.errors import InputError, kept_notes
from mlscale.files import write_text
from mlscale.quantities import quantity
from mlscale.sensors.boards import MEMORY, GpuBoard
from mlscale.sensors.steps import (
    LEAST_S,
    LEAST_STEPS,
    ClockGuard,
    Machine,
    is_enough,
    mean_engine_mhz,
    mean_power_w,
    step_time,
)

State = Literal["warming", "measuring", "checking", "set", "stayed", "off"]
Steps = Generator[None, None, None]

_LOG = logging.getLogger(__name__)
_TURN = threading.RLock()  # steps of several threads go one after the other
_FREE = 0  # in place of a clock [MHz]: as the driver has it
_WARM_STEPS, _MOST_WARM_STEPS, _STEADY = 5, 200, 0.03
_SETTLE_STEPS, _SETTLE_S = 3, 2.0
_ALIKE, _STANDARD_ERRORS, _ROUNDS, _TRIES, _WINDOWS = 0.02, 3.0, 3, 3, 5.5
_SOME_MEMORY_MHZ = 1000.0  # where no sensor tells; it stays as it is
_LOCK_KEPT, _AS_FREE, _SAME = 1.03, 0.995, 0.01  # times a clock
_MOST_SLOWED, _OTHER_S = 1.02, 60.0  # over the ratio of the clocks; how long to wait then
# Shares of a limit and of the free step's time, beyond which it starts anew.
_OVER, _CHANGED = 0.005, 0.1
_LONG_SEARCH_S, _STAYS = 600.0, 2  # times that a search may end in the free clock
_MEETING_STEPS, _MEETING_S = 20, 300.0
_MEASURING = ("warming", "measuring", "checking")


def tune(
    steps: Iterable[Any] | None = None,
    *,
    max_slowdown: float | str | None = 5.0,
    minimize: str = "energy",
    gpu: int | str | None = None,
    cautious: bool = False,
    recheck: float | None = 30.0,
    log: str | Path | None = None,
) -> "Tuner":
    """Find the clock of a job while it runs, and hold it; to set clocks needs root.

    steps: what the loop goes over; without, call `step` where each step ends. max_slowdown: how
    many percent longer a step may take than at the free clock, None for any. minimize: 'energy',
    'edp', 'ed2p' or 'power'. gpu: its index or UUID; by default what this process uses. cautious:
    a clock that surely keeps the limit, which saves less. recheck [min]: after which the clocks
    are measured again, None for never. log: a table to write of what was measured, which `advise`
    reads. Raises InputError on what cannot be asked. Whatever goes wrong in the loop puts the
    clock back, is told once, and the loop goes on.

    Example::

        for batch in mlscale.tune(loader, max_slowdown=5):
            train_step(batch)
    """
    percent = quantity(max_slowdown, "%") if isinstance(max_slowdown, str) else max_slowdown
    if percent is not None and not 0 <= percent < math.inf:
        raise InputError(f"max_slowdown must be 0 or more, or None, not {max_slowdown}")
    if minimize not in DELAYS:
        raise InputError(f"minimize is one of {', '.join(DELAYS)}, not {minimize!r}")
    if recheck is not None and not (isinstance(recheck, int | float) and recheck > 0):
        raise InputError(f"recheck is in minutes, or None for never, not {recheck}")
    recheck_s = math.inf if recheck is None else 60 * recheck
    goal = TuningGoal(percent, minimize, cautious, recheck_s, None if log is None else Path(log))
    return Tuner(steps, goal, Machine(gpu))


@dataclass(frozen=True)
class TuningGoal:
    """What is asked of a tuner; None for no limit and no log."""

    max_slowdown_percent: float | None = 5.0
    minimize: str = "energy"
    is_cautious: bool = False
    recheck_s: float = math.inf
    log: Path | None = None

    @property
    def limit(self) -> float:
        """The share that a step may take longer."""
        most = self.max_slowdown_percent
        return math.inf if most is None else most / 100


@dataclass(frozen=True)
class StepReading:
    """Steps at one clock: its mean, time of a step with its standard error, mean power."""

    engine_mhz: float
    time_s: float
    error_s: float
    power_w: float

    def cost(self, minimize: str) -> float:
        """What is to become least."""
        return float(self.power_w * self.time_s ** DELAYS[minimize])


class Ranks:
    """The processes of a job under torch.distributed, which meet every so many steps."""

    def __init__(self, torch: Any) -> None:
        self._torch, self._dist = torch, torch.distributed
        most = timedelta(seconds=_MEETING_S)
        try:
            self._group = self._dist.new_group(backend="gloo", timeout=most)
        except RuntimeError as error:  # each rank takes part in making it
            raise InputError(f"every rank needs a tuner, and one has none ({error})") from None
        self.rank = self._dist.get_rank()

    @classmethod
    def at_hand(cls) -> "Ranks | None":
        """Those of this job; None where it is one process."""
        torch: Any = sys.modules.get("torch")
        is_one = not torch or not torch.distributed.is_available()
        is_one = is_one or not torch.distributed.is_initialized()
        return None if is_one or torch.distributed.get_world_size() == 1 else cls(torch)

    def meet(self, is_off: bool, mean_mhz: float, told: tuple[int, int]) -> tuple[float, int, int]:
        """The slowest's clock [MHz] and what rank 0 tells. Raises InputError where one is off."""
        least = self._torch.tensor([not is_off, mean_mhz], dtype=self._torch.float64)
        self._dist.all_reduce(least, op=self._dist.ReduceOp.MIN, group=self._group)
        tells = self._torch.tensor(told, dtype=self._torch.int64)
        self._dist.broadcast(tells, src=0, group=self._group)
        if not least[0]:
            raise InputError("another rank may not set its clock, or met an error")
        return float(least[1]), *tells.tolist()


# The tuner.


class Tuner:
    """Finds and holds a clock while a loop runs; `tune` makes it.

    An iterable of the steps, a context manager with `step`, and callbacks of trainers. The logger
    mlscale.tuning tells what it does.

    Attributes:
        state: 'warming', 'measuring', 'checking', 'set', 'stayed' at the free clock, or 'off'.
        answer: the last of `advise`; None before.
        engine_mhz: what is set [MHz], 0 for the free clock.
        readings: of the free clock, and of others that were measured.
    """

    def __init__(self, steps: Iterable[Any] | None, goal: TuningGoal, machine: Machine) -> None:
        self.state: State = "warming"
        self.answer: Answer | None = None
        self.engine_mhz = self._asked_mhz = _FREE
        self._choice_mhz: int | None = None  # until a search has ended
        self.readings: list[StepReading] = []
        self._steps, self._goal, self._machine = steps, goal, machine
        self._guard = ClockGuard()
        self._ranks: Ranks | None = None
        self._boards: Sequence[GpuBoard] = ()
        self._plan: Steps | None = None
        self._is_open = self._syncs = self._has_met = False
        self._count, self._now_s, self._met_s = 0, 0.0, 0.0
        self._slowest_mhz, self._memory_mhz = math.inf, _SOME_MEMORY_MHZ

    def __iter__(self) -> Iterator[Any]:
        if self._steps is None:
            raise InputError("there are no steps: write tune(loader), or call step() in your loop")
        with nullcontext() if self._is_open else self:
            for one in self._steps:
                yield one
                self.step()

    def __len__(self) -> int:
        return len(self._steps)  # type: ignore[arg-type]  # an error where that has none

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        if self.state != "off" and not self._is_open:
            self._is_open, self._guard = True, ClockGuard()
            self._attempt(self._open)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.state in _MEASURING and self._choice_mhz is None:
            _warn_once(
                "mlscale: the loop ended before a clock was found; if epochs are short, use one "
                "tuner for all of them: write 'with mlscale.tune(...) as tuner:' around them"
            )
        self.close()

    def step(self, sync: bool = False) -> None:
        """Say that a step ended; it raises nothing. sync: wait for the GPU while measuring."""
        if self._plan is not None:
            self._syncs = sync
            self._attempt(self._go_on)
        elif not self._count and self.state != "off":
            _warn_once(
                "mlscale: step() does nothing yet: write 'with mlscale.tune(...) as tuner:' around "
                "the loop"
            )

    def close(self) -> None:
        """Put the clock back."""
        with _TURN:
            was_open, self._is_open, self._plan = self._is_open, False, None
            self._put_back()
        if was_open and self.state != "off":
            self._tell_end()

    def hf(self) -> "StepCallback":
        """A callback for the Trainer of Hugging Face's transformers."""
        return StepCallback(self)

    def lightning(self) -> "StepCallback":
        """A callback for Lightning's Trainer."""
        return StepCallback(self)

    # What must not harm the job.

    def _attempt(self, function: Callable[[], object]) -> None:
        with _TURN:
            try:
                function()
            except BaseException as error:
                was_off, self.state = self.state == "off", "off"
                self._plan = _wait() if self._ranks else None  # to tell the others
                self._put_back()
                if not isinstance(error, Exception):  # as KeyboardInterrupt
                    raise
                if not was_off:
                    why = str(error) or type(error).__name__
                    _warn_once(f"mlscale sets no clock, and the job goes on: {why}")

    def _put_back(self) -> None:
        self.engine_mhz = self._asked_mhz = _FREE
        for end in (self._guard.close, self._machine.stop):
            try:
                end()
            except Exception as error:
                _LOG.warning("mlscale: %s", error)

    def _open(self) -> None:
        self._ranks = self._ranks or Ranks.at_hand()
        self._boards = self._machine.boards(self._ranks is not None)
        with kept_notes() as notes:
            self._guard.open(self._boards)
        for told in filter(None, [*(note.text for note in notes), self._boards[0].takes_away]):
            _LOG.info("mlscale: %s", told)
        self._before = [board.settings() for board in self._boards]
        self._machine.watch(self._boards[0])
        self._now_s = self._met_s = self._machine.now_s()
        self._plan = self._lead() if not self._ranks or self._ranks.rank == 0 else _wait()

    def _go_on(self) -> None:
        self._now_s = self._machine.now_s()
        self._count += 1
        self._has_met = self._ranks is not None and self._count % _MEETING_STEPS == 0
        if self._ranks and self._has_met:
            ranks, self._ranks = self._ranks, None
            self._meet(ranks)
            self._ranks = ranks
        if self._plan is not None:
            next(self._plan)

    def _meet(self, ranks: Ranks) -> None:
        """All ranks set what rank 0 tells at the same step. Raises InputError where one is off."""
        is_off, was_measuring = self.state == "off", self.state in _MEASURING
        mean_mhz = math.inf
        if was_measuring:
            rows = self._machine.samples((self._met_s + self._now_s) / 2, self._now_s)
            mean_mhz = mean_engine_mhz(rows)
        told = self._asked_mhz, int(was_measuring)
        self._slowest_mhz, mhz, is_measuring = ranks.meet(is_off, mean_mhz, told)
        self._met_s = self._now_s
        if mhz != self.engine_mhz:
            self._set(mhz)
        if ranks.rank and is_measuring and not was_measuring:
            self._machine.watch(self._boards[0])
        if ranks.rank:
            self.state = "measuring" if is_measuring else "set" if mhz else "stayed"
            self._choice_mhz = self._choice_mhz if is_measuring else mhz

    def _set(self, engine_mhz: int) -> None:
        for board, before in zip(self._boards, self._before, strict=True):
            if engine_mhz:
                board.hold({"engine_mhz": engine_mhz})
            else:
                board.put_back(before)
        self.engine_mhz = engine_mhz

    # The plan.

    def _lead(self) -> Steps:
        if self._choice_mhz is not None:  # chosen in an earlier epoch
            yield from self._hold(self._choice_mhz)
            self._end_search()
        else:
            yield from self._warm_up()
            yield from self._search()
        stayed = 0
        while (stayed := 0 if self._choice_mhz else stayed + 1) < _STAYS:
            yield from self._until(self._now_s + self._goal.recheck_s)
            yield from self._look_again()
        yield from _wait()

    def _warm_up(self) -> Steps:
        """Until two windows of steps take alike."""
        yield
        ends_s, medians_s = [self._now_s], [math.inf]
        while len(ends_s) <= _MOST_WARM_STEPS and not _are_steady(medians_s):
            for _ in range(_WARM_STEPS):
                yield
                ends_s.append(self._now_s)
            medians_s.append(float(np.median(np.diff(ends_s[-_WARM_STEPS - 1 :]))))
        last = ends_s[-2 * _WARM_STEPS - 1 :]
        step_s = (last[-1] - last[0]) / (len(last) - 1)
        window_s = max(_SETTLE_STEPS * step_s, _SETTLE_S) + max(LEAST_STEPS * step_s, LEAST_S)
        search_s = _WINDOWS * window_s
        level = logging.WARNING if search_s > _LONG_SEARCH_S else logging.INFO
        told = "mlscale: steps take %.3g s; to find a clock takes about %.3g min, some of it slower"
        _LOG.log(level, told, step_s, search_s / 60)

    def _window(self, engine_mhz: int) -> Generator[None, None, StepReading]:
        """Set a clock, let it settle, and measure steps at it. Raises InputError."""
        yield from self._hold(engine_mhz)
        until_s, least = self._now_s + _SETTLE_S, self._count + _SETTLE_STEPS
        while self._count < least or self._now_s < until_s:
            yield
        ends_s = [self._synced_s()]
        while not (is_enough(ends_s) and (self._has_met or not self._ranks)):
            yield
            ends_s.append(self._synced_s())
        return self._reading(ends_s)

    def _synced_s(self) -> float:
        """The time now; where that is asked for, once the GPU has done what it was given."""
        torch = sys.modules.get("torch")
        if self._syncs and torch and torch.cuda.is_initialized():
            torch.cuda.synchronize()
            self._now_s = self._machine.now_s()
        return self._now_s

    def _reading(self, ends_s: list[float]) -> StepReading:
        time_s, error_s, left_out = step_time(ends_s)
        rows = self._machine.samples(ends_s[0], ends_s[-1])
        if len(rows) < 2 or rows[-1][0] - rows[0][0] < (ends_s[-1] - ends_s[0]) / 2:
            raise InputError(f"GPU {self._boards[0].index} does not answer")
        mean_mhz = mean_engine_mhz(rows)
        memories = [sample[MEMORY] for _, sample in rows if MEMORY in sample]
        self._memory_mhz = float(np.median(memories)) if memories else _SOME_MEMORY_MHZ
        if self.engine_mhz and mean_mhz > _LOCK_KEPT * self.engine_mhz:
            raise InputError(f"set to {self.engine_mhz} MHz, the GPU runs at {mean_mhz:.0f}")
        if self._ranks and not self.engine_mhz:
            mean_mhz = min(mean_mhz, self._slowest_mhz)
        return StepReading(mean_mhz, time_s, error_s, mean_power_w(rows, left_out))

    def _search(self) -> Steps:
        """Measure free, at 0.6 of it and free again; then try what `advise` expects."""
        self.state, self._choice_mhz = "measuring", None
        free = yield from self._window(_FREE)
        for _ in range(_ROUNDS):
            slow = yield from self._window(self._nearest_mhz(SECOND_CLOCK * free.engine_mhz))
            first, free = free, (yield from self._window(_FREE))
            error_s = math.hypot(first.error_s, free.error_s)
            alike_s = max(_ALIKE * first.time_s, _STANDARD_ERRORS * error_s)
            if abs(free.time_s - first.time_s) > alike_s:
                continue
            if not _is_disturbed(slow, free):
                break
            yield from self._until(self._now_s + _OTHER_S)
        else:
            raise InputError("step times vary too much at one clock to compare clocks")
        time_s, power_w = (first.time_s + free.time_s) / 2, (first.power_w + free.power_w) / 2
        self.readings = [replace(free, time_s=time_s, power_w=power_w), slow]
        self.state = "checking"
        self._choice_mhz = yield from self._checked()
        yield from self._hold(self._choice_mhz)
        self._end_search()

    def _checked(self) -> Generator[None, None, int]:
        """The clock that advice names and a window confirms [MHz]."""
        free, refused = self.readings[0], list[StepReading]()
        for _ in range(2 * _TRIES):
            try:
                mhz = self._advised_mhz()
            except InputError:  # as of readings that contradict each other
                if len(self.readings) == 2:
                    raise
                self.readings.pop()
                mhz = self._advised_mhz()
            if any(abs(mhz / one.engine_mhz - 1) < _SAME for one in refused):
                mhz = self._nearest_mhz(1.02 * mhz)
            if mhz > _AS_FREE * free.engine_mhz:
                return _FREE
            found = yield from self._window(mhz)
            if _is_disturbed(found, free):
                yield from self._hold(_FREE)
                yield from self._until(self._now_s + _OTHER_S)
                continue
            others = [one for one in self.readings if abs(one.engine_mhz / mhz - 1) > _SAME]
            self.readings = [*others, found]
            if self._is_good(found):
                good = filter(self._is_good, self.readings[1:])
                best = min(good, key=lambda one: one.cost(self._goal.minimize))
                return self._nearest_mhz(best.engine_mhz)
            refused.append(found)
            if len(refused) == _TRIES:
                break
        return self._above(refused)

    def _above(self, refused: Sequence[StepReading]) -> int:
        """The clock above what was refused, by a line in 1 / clock at 0.8 of the limit [MHz]."""
        free = self.readings[0]
        if not refused:
            return _FREE
        nearest = max(refused, key=lambda one: one.engine_mhz)
        slowdown = nearest.time_s / free.time_s - 1
        if slowdown <= self._goal.limit:  # but it costs more
            return _FREE
        share = 0.8 * self._goal.limit / slowdown  # how far along in 1 / clock
        return self._nearest_mhz(1 / ((1 - share) / free.engine_mhz + share / nearest.engine_mhz))

    def _is_good(self, found: StepReading, more: float = 0.0) -> bool:
        free, minimize = self.readings[0], self._goal.minimize
        is_in_time = found.time_s / free.time_s - 1 <= self._goal.limit + more
        return is_in_time and found.cost(minimize) < free.cost(minimize)

    def _hold(self, engine_mhz: int) -> Steps:
        self._asked_mhz = engine_mhz
        if not self._ranks and engine_mhz != self.engine_mhz:
            self._set(engine_mhz)
        while self.engine_mhz != engine_mhz:  # till ranks meet
            yield

    def _until(self, until_s: float) -> Steps:
        while self._now_s < until_s:
            yield

    def _end_search(self) -> None:
        self._machine.stop()
        self.state = "set" if self._choice_mhz else "stayed"
        if self._goal.log:
            try:
                write_text(self._goal.log, self._table())
            except InputError as error:
                _LOG.warning("mlscale: %s", error)

    def _look_again(self) -> Steps:
        """Measure the free clock and the one that is set; start anew where they have changed."""
        before, self.state = self.readings[0], "checking"
        self._machine.watch(self._boards[0])
        if self._choice_mhz:
            free = self.readings[0] = yield from self._window(_FREE)
            found = yield from self._window(self._choice_mhz)
            is_as_before = abs(free.time_s / before.time_s - 1) < _CHANGED
            if is_as_before and self._is_good(found, _OVER):
                self._end_search()
                return
        yield from self._search()

    # Advice.

    def _nearest_mhz(self, engine_mhz: float) -> int:
        return self._boards[0].nearest_mhz(engine_mhz)

    def _advised_mhz(self) -> int:
        """The clock that is expected to keep the limit at least cost."""
        limit = self._goal.max_slowdown_percent
        with TemporaryDirectory() as folder:
            table = Path(folder) / "steps.csv"
            write_text(table, self._table())
            self.answer = advise(table, minimize=self._goal.minimize, max_slowdown=limit)
        chosen = self.answer.best
        if limit is None and self.answer.menu:
            chosen = self.answer.menu[None]
        elif not self._goal.is_cautious:
            chosen = self.answer.expected or chosen
        return self._nearest_mhz(chosen.engine_mhz)

    def _table(self) -> str:
        """The readings of 1,000 steps each, as a table for `advise`."""
        device = find_device(name := self._boards[0].name)
        gpu = f"{device.key},run,{device.cu_count}" if device else f"{name or 'GPU'},run,100"
        lines = ["device,kernel,cu_count,memory_mhz,engine_mhz,time_ms,power_w"]
        for one in self.readings:
            values = self._memory_mhz, one.engine_mhz, 1e6 * one.time_s, one.power_w
            lines.append(f"{gpu},{','.join(f'{value:.9g}' for value in values)}")
        return "\n".join(lines) + "\n"

    def _tell_end(self) -> None:
        _LOG.info("mlscale: %d steps, %s; the clock is reset", self._count, self.state)
        for one in self.readings[:1] + self.readings[-1:]:
            told = one.engine_mhz, one.time_s, one.power_w
            _LOG.info("mlscale: at %.0f MHz a step takes %.4g s at %.0f W", *told)


@cache
def _warn_once(text: str) -> None:
    """Once in a process, as each epoch may have a tuner of its own."""
    _LOG.warning("%s", text)


def _is_disturbed(found: StepReading, free: StepReading) -> bool:
    """Whether steps slowed more than their clock did: something else ran."""
    return found.time_s > _MOST_SLOWED * free.time_s * free.engine_mhz / found.engine_mhz


def _are_steady(medians_s: Sequence[float]) -> bool:
    return len(medians_s) > 1 and abs(medians_s[-1] / medians_s[-2] - 1) < _STEADY


def _wait() -> Steps:
    """The plan where nothing is left to do, and of ranks that do as the first tells."""
    while True:
        yield


class StepCallback:
    """Tells a tuner of the steps of a trainer, Hugging Face's or Lightning's.

    It has what both call that matters; the rest does nothing.
    """

    state_key = _legacy_state_key = "mlscale"  # under which Lightning looks into checkpoints

    def __init__(self, tuner: Tuner) -> None:
        self._tuner = tuner

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("on_") and name not in ("setup", "state_dict", "load_state_dict"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def on_train_begin(self, *_: object, **__: object) -> None:
        """Begin."""
        self._tuner.__enter__()

    def on_step_end(self, *_: object, **__: object) -> None:
        """A step ended."""
        self._tuner.step()

    def on_train_end(self, *_: object, **__: object) -> None:
        """Put the clock back."""
        self._tuner.close()

    on_train_start, on_train_batch_end = on_train_begin, on_step_end
    on_exception = teardown = on_train_end
