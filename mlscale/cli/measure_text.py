"""What `mlscale measure` says: one line that moves, one for each log, and what is next."""

import os
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from math import isnan

from mlscale.cli.terminal import si
from mlscale.sensors.board import BUSY, ENGINE, MEAN_POWER, POWER
from mlscale.sensors.boards import GpuBoard
from mlscale.sensors.log import Measured
from mlscale.sensors.recorder import Recorder
from mlscale.text import printable


def tell(line: str) -> None:
    """Print a line, unless it is empty, to standard error: standard output is the program's."""
    _print(f"  {printable(line)}\n" * bool(line))


def _print(text: str) -> None:
    with suppress(OSError):  # nobody reads it: no log is lost of that
        print(text, end="", file=sys.stderr, flush=True)


def shell_line(words: Iterable[str]) -> str:
    """Words as one line to paste into a shell; controls as bash and zsh write them."""
    return " ".join(
        shlex.quote(word) if printable(word) == word else f"$'{''.join(map(_escaped, word))}'"
        for word in words
    )


def _escaped(letter: str) -> str:
    if not letter.isprintable():
        return "".join(f"\\x{byte:02x}" for byte in os.fsencode(letter))
    return f"\\{letter}" if letter in "\\'" else letter


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
