"""mlscale measure: run a program, and log what its GPU's sensors say meanwhile."""

import argparse
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from statistics import stdev

from mlscale.cli import options
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import print_line, si
from mlscale.data.points import SECOND_CLOCK
from mlscale.errors import DataWarning, InputError, UsageError, warn
from mlscale.files import is_stream
from mlscale.sensors.boards import (
    BUSY,
    ENGINE,
    MEAN_POWER,
    POWER,
    VISIBLE,
    GpuBoard,
    SettingError,
    boards_at_hand,
)
from mlscale.sensors.clocks import given_back, set_board
from mlscale.sensors.log import Measured, PartialLog, at_work, kept, measured, warn_of_run
from mlscale.sensors.program import Signals, Work
from mlscale.sensors.recorder import USUAL_HZ, Recorder
from mlscale.text import printable, shell_line

_LONGEST_NAME = 60
_EXAMPLES = """\
examples:
  mlscale measure -- python train.py --steps 200
  sudo mlscale measure --two-clocks --max-slowdown 5 -- ./app
  mlscale measure --for 60s --rate 2400 --gpu 0      (a server: tokens per second)
"""


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "%(prog)s [options] -- CMD ...\n       %(prog)s [options] --for SECONDS"
    parser.epilog = _EXAMPLES
    add = parser.add
    what = "the program and its arguments; its exit status is passed on"
    add("program_words", nargs="*", metavar="CMD", help=what)
    what = "log of the run (default: named after program and clock)"
    add("-o", "--output", metavar="LOG", help=what)
    clocks = parser.add_mutually_exclusive_group()
    what = "lock the engine clock at MHZ for the run (root), and always reset it"
    add("--at", type=options.clock_mhz, metavar="MHZ", help=what, group=clocks)
    what = "measure at the current clock, then at 0.6 of it (root), and advise"
    add("--two-clocks", action="store_true", help=what, group=clocks)
    what = "with --two-clocks: how much longer the run may take, in %%"
    add("--max-slowdown", type=options.slowdown_percent, metavar="PCT", help=what)
    what = "measure what is already running (no CMD) for this time, e.g. 60s"
    add("--for", dest="seconds", type=options.seconds, metavar="SECONDS", help=what)
    what = "work done per second, e.g. tokens; the time is then 1/rate"
    add("--rate", type=options.positive_number, metavar="N", help=what)
    what = "run it this many times, and keep the log of the median run (default: 1)"
    add("--repeat", type=options.whole_number, default=1, metavar="N", help=what)
    what = "leave out the first seconds, while it loads or warms up"
    add("--skip", type=options.seconds, default=0.0, metavar="SECONDS", help=what)
    what = "GPU numbers, as in nvidia-smi (default: CUDA_VISIBLE_DEVICES, else the first)"
    add("--gpu", type=options.names, default=(), metavar="N,...", help=what)
    what = "samples per second (default: %(default)g)"
    parser.add_more("--hz", type=options.positive_number, default=USUAL_HZ, metavar="N", help=what)


@dataclass(frozen=True)
class _Task:
    """What is measured.

    Attributes:
        arguments: of the command; boards: the GPUs; signals: that come meanwhile.
        held: by a board's index the engine clock that was set [MHz].
        partial: the logs of all runs as they were sampled.
    """

    arguments: argparse.Namespace
    boards: Sequence[GpuBoard]
    signals: Signals
    held: dict[str, int] = field(default_factory=dict)
    partial: list[PartialLog] = field(default_factory=list)

    def close(self) -> None:
        """Close the partial logs, which stay."""
        for log in self.partial:
            log.close()

    def remove_partial(self, boards: Sequence[GpuBoard]) -> None:
        """Delete the partial logs of these boards."""
        for log in self.partial:
            if log.board in boards:
                log.remove()


@dataclass(frozen=True)
class Outcome:
    """One run: its exit status, what was sampled, and if it was repeated the times of all [s]."""

    status: int
    recorder: Recorder
    times_s: tuple[float, ...] = ()


def run(arguments: argparse.Namespace) -> int:
    """Measure, write the log, report it; the exit status is the program's. Raises InputError."""
    _check(arguments)
    boards = boards_at_hand(arguments.gpu)
    if arguments.two_clocks:
        return _two_clocks(arguments, boards)
    with ExitStack() as stack:
        signals = stack.enter_context(Signals())
        for board in boards:
            _hold(stack, arguments, board)
        held = {board.index: _set(board, arguments.at) for board in boards if arguments.at}
        task = _Task(arguments, boards, signals, held)
        stack.callback(task.close)
        # Before the clocks are put back, which may fail.
        return _write_and_tell(task, _repeated(task))


def _write_and_tell(task: _Task, outcome: Outcome) -> int:
    """Write a log for each GPU, say what it tells, and what is next; the exit status."""
    told, errors = [], []
    for board in task.boards:
        try:
            path = _logged(task, board, outcome)
        except InputError as error:
            errors.append(error)
            continue
        try:
            told.append((board, measured(path)))
        except InputError as error:
            warn("M02", f"{error}; if another GPU did the work, name it: --gpu")
    for board, found in told:
        tell(line(found, board.index in task.held, task.arguments.rate))
    for said in errors:
        print_line(f"mlscale: error: {said}")
    for board, found in told[: not errors]:
        _tell_next(task.arguments, board, found, board.index in task.held)
    return outcome.status or 2 * bool(errors)


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError on options that do not suit each other."""
    if bool(arguments.program_words) == bool(arguments.seconds):
        raise UsageError("give a program after '--', or --for SECONDS if it already runs")
    if arguments.two_clocks and (arguments.seconds or arguments.rate):
        raise UsageError(
            "--two-clocks does not work with --for or --rate; measure one clock at a time: --at"
        )
    if arguments.max_slowdown is not None and not arguments.two_clocks:
        raise UsageError("--max-slowdown needs --two-clocks")
    if arguments.repeat > 1 and arguments.seconds:
        raise UsageError("--repeat needs a program to run, not --for")
    asked = Path(arguments.output or "run.csv")
    is_folder = os.path.basename(arguments.output or "run.csv") in ("", ".", "..")  # noqa: PTH119
    if is_folder or (asked.suffix and os.path.isdir(asked)):  # noqa: PTH112
        raise UsageError(f"-o {arguments.output}: is a folder; give the name of a file to write")
    if asked.suffix.lower() == ".parquet":  # by its name it would be read as one
        raise UsageError(f"-o {arguments.output}: a log is CSV; name it *.csv")


def _hold(stack: ExitStack, arguments: argparse.Namespace, board: GpuBoard) -> None:
    """Let the board be set till the end of the stack. Raises InputError: how to do without."""
    try:
        stack.enter_context(given_back(board, bool(arguments.at or arguments.two_clocks)))
    except SettingError as error:
        how = f"To measure without it, and what to type for the second clock: {_command(arguments)}"
        if arguments.at:
            to_set, to_reset = board.commands(board.nearest_mhz(arguments.at))
            how = f"By hand: sudo {to_set}; {_command(arguments)}; sudo {to_reset}"
        raise InputError(f"{error}. {how}") from None


def _set(board: GpuBoard, engine_mhz: float) -> int:
    """Hold an engine clock; the clock [MHz]. Raises InputError."""
    nearest_mhz = board.nearest_mhz(engine_mhz)
    if abs(nearest_mhz - engine_mhz) > 0.02 * engine_mhz:
        raise InputError(
            f"GPU {board.index} has no clock near {engine_mhz:g} MHz; the nearest is {nearest_mhz}"
        )
    set_board(board, {"engine_mhz": nearest_mhz})
    return nearest_mhz


def _command(arguments: argparse.Namespace, at_mhz: int | None = None) -> str:
    """This command again: as it is, or as root at another clock, for the same GPUs."""
    seen = [f"{name}={os.environ[name]}" for name in VISIBLE if os.environ.get(name)]
    given = {
        "--at": str(at_mhz or ""),
        "--gpu": ",".join(arguments.gpu),
        "--for": f"{arguments.seconds:g}s" if arguments.seconds else "",
        "--skip": f"{arguments.skip:g}s" if arguments.skip else "",
        "--repeat": str(arguments.repeat) if arguments.repeat > 1 else "",
        "--rate": "RATE" if at_mhz and arguments.seconds else "",
    }
    words = ["sudo", *seen] if at_mhz else []  # sudo forgets what is set in a shell
    words += ["mlscale", "measure"]
    words += [word for name, value in given.items() if value for word in (name, value)]
    return shell_line(
        [*words, *(["--"] if arguments.program_words else []), *arguments.program_words]
    )


# A run.


def _repeated(task: _Task) -> Outcome:
    """The run in the middle of all that were asked for, by the time that the first GPU worked.

    One that fails or is ended, or in which a GPU is lost, is the last. Raises InputError.
    """
    arguments, outcomes = task.arguments, list[tuple[float, Outcome]]()
    for _ in range(arguments.repeat):
        outcome = _once(task)
        is_last = outcome.status or task.signals.last or outcome.recorder.lost
        if arguments.repeat == 1 or is_last:
            return outcome
        working = at_work(kept(outcome.recorder, task.boards[0], arguments.skip))
        took_s = working[-1][0] - working[0][0] if working else 0.0
        outcomes.append((took_s + 1 / arguments.hz, outcome))
    outcomes.sort(key=lambda one: one[0])
    _, middle = outcomes[(len(outcomes) - 1) // 2]
    return replace(middle, times_s=tuple(seconds for seconds, _ in outcomes))


def _once(task: _Task) -> Outcome:
    """One run. Raises InputError where it cannot be logged or started, and KeyboardInterrupt."""
    sys.stdout.flush()
    arguments, words = task.arguments, task.arguments.program_words
    logs: dict[str, PartialLog] = {}
    try:
        for board in task.boards:
            facts = {"command": shlex.join(words), "engine_mhz": task.held.get(board.index)}
            facts["work_per_s"] = arguments.rate
            facts = {name: fact for name, fact in facts.items() if fact}
            logs[board.index] = log = PartialLog(_path(task, board, 0), board, facts)
            task.partial.append(log)
        with Recorder(
            task.boards, arguments.hz, lambda b, rows: logs[b.index].add(rows)
        ) as recorder:
            work = Work(words, arguments.seconds or 0.0, task.signals)
            while (status := work.status()) is None:
                show_live(recorder)
            show_live(None)
            is_at_work = words and not task.signals.last and not recorder.await_idle()
    except (InputError, KeyboardInterrupt):
        task.remove_partial(task.boards)
        raise
    if is_at_work and not any(recorder.others.values()):
        told = "the GPU was busy when last seen after the program, so the log lacks the rest; if "
        warn("M02", f"{told}something still runs in the background, wait for it, or use --for")
    return Outcome(status, recorder)


def _logged(task: _Task, board: GpuBoard, outcome: Outcome) -> Path:
    """Write the log of one GPU, and warn of what it does not tell. Raises InputError."""
    arguments, recorder, times_s = task.arguments, outcome.recorder, outcome.times_s
    try:
        rows = kept(recorder, board, arguments.skip)
    except InputError:
        task.remove_partial([board])
        raise
    clocks = [sample[ENGINE] for _, sample in at_work(rows) if ENGINE in sample]
    mhz = task.held.get(board.index) or (round(sum(clocks) / len(clocks)) if clocks else 0)
    path = _path(task, board, mhz)
    log = next(log for log in reversed(task.partial) if log.board is board)
    facts = {
        **log.facts,
        "skip_s": arguments.skip,
        "times_s": [round(seconds, 3) for seconds in times_s],
        "log_time_sd": stdev(map(math.log, times_s)) if times_s else None,
    }
    if path.exists() and not is_stream(path):
        tell(f"{path}: already existed and is replaced")
    log.save(path, rows, {name: fact for name, fact in facts.items() if fact})
    task.remove_partial([board])
    if why := recorder.lost.get(board.index):
        raise InputError(f"GPU {board.index} no longer answers ({why}): {path} ends there")
    warn_of_run(recorder, board, bool(arguments.seconds))
    if outcome.status:
        what = "the program" if arguments.program_words else "measuring"
        warn("M02", f"{path}: {what} ended with {outcome.status}: it may have done less work")
    if times_s:
        low, high = (si(seconds, "s") for seconds in (times_s[0], times_s[-1]))
        tell(f"{len(times_s)} runs were busy for {low} to {high}")
    return path


def _path(task: _Task, board: GpuBoard, mhz: int) -> Path:
    """The file of a log. One without a name of the user's replaces no other."""
    arguments, words = task.arguments, task.arguments.program_words or ["gpu"]
    script = next((word for word in words if re.fullmatch(r"[\w./+-]+\.(py|sh)", word)), words[0])
    stem = re.sub(r"[^\w.+-]+", "-", Path(script).stem).strip("-.")[:_LONGEST_NAME] or "program"
    part = f"-gpu{board.index}" if len(task.boards) > 1 else ""
    clock = f"-{mhz}" if mhz else ""
    if arguments.output:
        asked = Path(arguments.output)
        if is_stream(asked) and not os.path.isdir(asked):  # noqa: PTH112
            if asked.is_fifo():
                raise UsageError(f"-o {asked}: is a pipe, and the log is read again; name a file")
            return asked
        more = part + (clock if arguments.two_clocks else "")
        return asked.with_name(f"{asked.stem}{more}{asked.suffix or '.csv'}")
    path, number = Path(f"{stem}{part}{clock}.csv"), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}{part}{clock}-{number}.csv")
    return path


def _tell_next(
    arguments: argparse.Namespace, board: GpuBoard, found: Measured, was_set: bool
) -> None:
    """What makes an answer of it: the same at another clock, or both logs."""
    if was_set:
        tell(board.takes_away)
        log = shell_line([str(found.path)])
        told = f"with the LOG of the run without a lock: mlscale advise LOG --also {log}"
        if arguments.seconds and not arguments.rate:
            told = f"with a benchmark's RESULTs: mlscale advise RESULT LOG --also RESULT {log}"
        tell(f"For the answer, {told}")
        return
    if math.isnan(found.engine_mhz):
        return
    if arguments.seconds:
        tell("For an answer, measure again at 0.6 of the clock, with the --rate there")
        if not arguments.rate:
            tell("(this log has no rate: measure it again with --rate, the work per second,")
            tell("or give a benchmark's results: mlscale advise RESULT LOG --also RESULT LOG)")
    else:
        tell("For an answer, measure again at 0.6 of the clock (needs root):")
    mhz = board.nearest_mhz(SECOND_CLOCK * found.engine_mhz)
    tell(f"  {_command(arguments, mhz)}")


# Two clocks, and the advice.


def _two_clocks(arguments: argparse.Namespace, boards: Sequence[GpuBoard]) -> int:
    """Measure as it is and at 0.6 of that clock, then advise. Raises InputError."""
    [board, *others] = boards
    if others:
        raise UsageError("--two-clocks measures one GPU; name it with --gpu")
    logs: list[Measured] = []
    with ExitStack() as stack:
        task = _Task(arguments, boards, stack.enter_context(Signals()))
        stack.callback(task.close)
        _hold(stack, arguments, board)
        for number in (1, 2):
            if logs:
                if math.isnan(logs[0].engine_mhz):
                    raise InputError(f"{logs[0].path}: has no engine clock; give it: --at MHZ")
                mhz = board.nearest_mhz(SECOND_CLOCK * logs[0].engine_mhz)
                task.held[board.index] = _set(board, mhz)
            outcome = _repeated(task)
            if outcome.status or task.signals.last:
                _write_and_tell(task, outcome)
                break
            path = _logged(task, board, outcome)
            with warnings.catch_warnings(action="ignore", category=DataWarning):
                logs.append(measured(path))  # the advice warns of it
            tell(numbered_line(number, task.held.get(board.index), logs[-1]))
    if len(logs) < 2:
        print_line(f"mlscale: the clock is reset; the program ended with {outcome.status}")
        return outcome.status
    tell(board.takes_away)
    return _advise(arguments, [str(log.path) for log in logs])


def _advise(arguments: argparse.Namespace, logs: Sequence[str]) -> int:
    """The answer of `advise` with both logs."""
    from mlscale.cli import advise

    parser = Parser(prog="mlscale advise")
    advise.add_arguments(parser)
    words = [logs[0], "--also", logs[1]]
    if arguments.max_slowdown is not None:
        words += ["--max-slowdown", f"{arguments.max_slowdown:g}"]
    tell("The clock is reset. The answer of:")
    tell("  " + shell_line(["mlscale", "advise", *words]))
    asked = parser.parse_args(words)
    asked.words = ["advise", *words]
    advise.run(asked)
    return 0


def tell(line: str) -> None:
    """Print a line, unless it is empty, to standard error: standard output is the program's."""
    _print(f"  {printable(line)}\n" * bool(line))


def _print(text: str) -> None:
    with suppress(OSError):  # nobody reads it: no log is lost of that
        print(text, end="", file=sys.stderr, flush=True)


def show_live(recorder: Recorder | None) -> None:
    """Show on a terminal the sensors and the energy so far in the line that moves; None: clear."""
    if sys.stderr.isatty():
        told = [_now(recorder, board) for board in recorder.boards] if recorder else []
        _print(f"\r\x1b[K{'  ' * bool(told)}{'; '.join(told)}")


def _now(recorder: Recorder, board: GpuBoard) -> str:
    rows = recorder.rows[board.index]
    sample = rows[-1][1] if rows else {}
    watts = sample.get(POWER, sample.get(MEAN_POWER))
    told = [
        si(watts, "W"),
        f"{sample[ENGINE]:.0f} MHz" if ENGINE in sample else "",
        f"{sample[BUSY]:.0f} % busy" if BUSY in sample else "",
        f"{si(recorder.energy_j(board.index), 'J')} so far",
    ]
    return f"GPU {board.index}: {', '.join(filter(None, told))}"


def line(found: Measured, was_set: bool, rate: float | None) -> str:
    """What a log says: 'A100, GPU 0: 41.2 s busy of 43.0 s, 1395 MHz, 312 W mean, … -> FILE'."""
    if rate is None:
        time = f"{si(found.time_s, 's')} busy of {si(found.total_s, 's')}"
        energy = si(found.energy_j, "J")
    else:
        time = f"{si(found.total_s, 's')} at {rate:g}/s"
        energy = f"{si(found.mean_w / rate, 'J')} each"
    clock = "" if isnan(found.engine_mhz) else f"{found.engine_mhz:.0f} MHz"
    clock += " (set)" if was_set else ""
    told = [time, clock, "" if isnan(found.mean_w) else f"{si(found.mean_w, 'W')} mean, {energy}"]
    return f"{found.name}, GPU {found.gpu}: {', '.join(filter(None, told))} -> {found.path}"


def numbered_line(number: int, set_mhz: int | None, found: Measured) -> str:
    """One of the runs of --two-clocks, at the clock that was set, if any."""
    what = f"{set_mhz} MHz" if set_mhz else "free clock"
    told = f"{si(found.time_s, 's'):>7}, {found.engine_mhz:4.0f} MHz, {si(found.mean_w, 'W'):>6}"
    return f"{number}/2  {what:<11} {told} -> {found.path}"
