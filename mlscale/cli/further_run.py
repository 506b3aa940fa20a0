"""The second or third run that an advice asks for, and how to give it."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.advice.commands import Commands, commands_for_further_run
from mlscale.advice.recommendation import Advice, Setting
from mlscale.cli.subject import is_log, tells_engine_clock
from mlscale.counters.kernel_use import (
    DESCRIBED,
    half_of_traffic,
    lack_of_peaks,
    traffic_needed,
)
from mlscale.data.grid import SHORT_NAMES
from mlscale.data.logs import SHARES, is_sampled
from mlscale.data.points import second_clock_mhz, third_clock_mhz
from mlscale.data.profiles import Profiles
from mlscale.data.table_files import is_tidy
from mlscale.model.unprofiled import kernels_of_most
from mlscale.notes import Note

_TIME = "MS"  # stands for what the user alone knows of the further run
_PUT_TIME = f"# in place of {_TIME} put the time of that run, in ms"


@dataclass(frozen=True)
class FurtherRun:
    """Where to run the same work again, what sets that clock, and the command with all runs.

    why: in words. file: of the run, as the commands call it. imported: the command that gives it
    its own time, where the first was told one. instead: what makes one run enough, if anything.
    """

    why: str
    engine_mhz: int
    file: str
    commands: Commands
    imported: str | None
    advise: str
    instead: str | None

    def document(self) -> dict[str, Any]:
        """What JSON has of it."""
        return {
            "engine_mhz": self.engine_mhz,
            "set": self.commands.to_set,
            "reset": self.commands.to_reset,
            "import": self.imported,
            "advise": self.advise,
            "notes": self.commands.notes,
            "instead": self.instead,
        }

    def text(self) -> str:
        """What a terminal shows of it."""
        how = "" if self.commands.to_set else "locked or by a low power cap, "
        lines = [
            *self.commands.to_set,
            f"# run the same work again, {how}recorded as before, into {self.file}",
            *self.commands.to_reset,
            *([_PUT_TIME, self.imported] if self.imported else []),
            self.advise,
        ]
        text = f"{self.why}:\n" + "".join(f"  {line}\n" for line in lines)
        text += "".join(f"note: {note}\n" for note in self.commands.notes)
        return text + (f"One run is enough with {self.instead}\n" if self.instead else "")

    def warning(self) -> Note:
        """What is told of it beside a result that has no place for it."""
        return Note("R07", f"{self.why}: {self.advise}")


def further_run(
    arguments: argparse.Namespace,
    first: Path,
    profiles: Profiles,
    advice: Advice,
    best: Setting | None,
) -> FurtherRun | None:
    """The run that an advice asks for, if any; first: the file of the first one.

    best: the run as advised, under a cap at its mean clock; None where no cap is.
    """
    if advice.is_bounded:
        engine_mhz = second_clock_mhz(profiles)
        return replace(_run_at(engine_mhz, arguments, first, profiles), instead=_instead(profiles))
    advised_mhz = np.inf if best is None else best.config.engine_mhz
    third_mhz = third_clock_mhz(profiles, advised_mhz)
    if third_mhz is None:
        return None
    why = (
        f"{advised_mhz:.0f} MHz is below all clocks that were run, where predictions are "
        f"less sure; a further run at about {third_mhz} MHz tells more"
    )
    return replace(_run_at(third_mhz, arguments, first, profiles), why=why)


def _run_at(
    engine_mhz: int, arguments: argparse.Namespace, first: Path, profiles: Profiles
) -> FurtherRun:
    """A second run at that engine clock."""
    commands = commands_for_further_run(profiles, engine_mhz)
    stem, dot, ending = first.name.partition(".")
    file = f"{stem}-{engine_mhz}{dot}{ending}"
    is_table = is_tidy(first, arguments.map)
    is_of_monitor = not is_table and is_log(first)
    has_clock = is_table or (is_of_monitor and tells_engine_clock(first))
    also, imported = file if has_clock else f"{file}@engine={engine_mhz}", None
    if is_of_monitor and arguments.time is not None:
        also = f"{stem}-{engine_mhz}-table.csv"
        given = _import_options(arguments, None if has_clock else engine_mhz)
        name = ["--application", profiles.applications[0]]
        words = ["mlscale", "import", file, *given, *name, "--time", _TIME, "-o", also]
        imported = shlex.join(words)
    advise = shlex.join(["mlscale", *arguments.words, "--also", also])
    why = f"To find out, run it at about {engine_mhz} MHz too"
    return FurtherRun(why, engine_mhz, file, commands, imported, advise, None)


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


def _instead(profiles: Profiles) -> str | None:
    """What the profiles lack for a prediction from one run; None of averages, which never do."""
    if is_sampled(profiles.metadata):
        return None
    if profiles.are_times_alone:
        largest = kernels_of_most(profiles, profiles.run_times_ms)
        return f"a profile of the kernels of most time too: {largest}"
    if set(profiles.counter_names) <= set(SHARES):
        return None
    if lack_of_peaks(profiles.device):
        return f"--device and a name of 'mlscale devices list', or a file: {DESCRIBED}"
    tool = str(profiles.metadata.get("counter_tool"))
    return traffic_needed(tool) + half_of_traffic(profiles)
