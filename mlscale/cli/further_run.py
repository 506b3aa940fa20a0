"""How to make the further run that an answer asks for, and to give it, in commands."""

import argparse
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from mlscale.advice.commands import commands_for_further_run
from mlscale.data.grid import SHORT_NAMES
from mlscale.data.profiles import Profiles
from mlscale.data.table_files import is_tidy
from mlscale.subject import is_log, tells_engine_clock

# What the user alone knows of the further run: by the option a word that stands for it.
_KNOWN_TO_USER = {
    "time": ("MS", "the time of that run, in ms"),
    "power": ("W", "the board's power in that run, or a log"),
}


def commands_at(
    engine_mhz: int, arguments: argparse.Namespace, files: Sequence[Path], profiles: Profiles
) -> tuple[str, ...]:
    """What sets that clock for the same work again, resets it, and advises with both runs.

    files: of the first run.
    """
    commands, first = commands_for_further_run(profiles, engine_mhz), files[0]
    stem, dot, ending = first.name.partition(".")
    file = f"{stem}-{engine_mhz}{dot}{ending}"
    is_table = is_tidy(first, arguments.map)
    is_of_monitor = not is_table and is_log(first)
    has_clock = is_table or (is_of_monitor and tells_engine_clock(first))
    also = file if has_clock else f"{file}@engine={engine_mhz}"
    imported: list[str] = []
    lacking = [name for name in _KNOWN_TO_USER if getattr(arguments, name) is not None]
    if is_of_monitor and lacking:
        also = f"{stem}-{engine_mhz}-table.csv"
        given = _import_options(arguments, None if has_clock else engine_mhz)
        name = ["--application", profiles.applications[0]]
        stands = [word for one in lacking for word in (f"--{one}", _KNOWN_TO_USER[one][0])]
        imported = ["# replace {} with {}".format(*_KNOWN_TO_USER[one]) for one in lacking]
        words = ["mlscale", "import", file, *given, *name, *stands, "-o", also]
        imported.append(shlex.join(words))
    how = "" if commands.to_set else "locked or by a low power cap, "
    return (
        *commands.to_set,
        f"# run the same work again, {how}recorded as before, into {file}",
        *commands.to_reset,
        *imported,
        shlex.join(["mlscale", *arguments.words, "--also", also]),
    )


def _import_options(arguments: argparse.Namespace, engine_mhz: int | None) -> list[str]:
    """What the further log does not say either, as options of `import`; engine_mhz: if it must."""
    base = {axis: step for axis, step in (arguments.base or {}).items() if axis != "engine_mhz"}
    base |= {} if engine_mhz is None else {"engine_mhz": engine_mhz}
    told = {
        "--device": _as_given(arguments.words, "--device") or arguments.device,
        "--base": ",".join(f"{SHORT_NAMES[axis]}={step:.15g}" for axis, step in base.items()),
        "--gpu": arguments.gpu,
        "--interval": arguments.interval and f"{arguments.interval:.15g}",
    }
    return [word for option, value in told.items() if value for word in (option, value)]


def _as_given(words: Sequence[str], option: str) -> str | None:
    """The value of an option on the command line, such as a device's file; None where not whole."""
    for word, after in pairwise([*words, ""]):
        name, has_value, value = word.partition("=")
        if name == option:
            return value if has_value else after
    return None
