"""The second run that an advice from one engine clock alone asks for, and how to give it."""

import argparse
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlscale.advice.commands import Commands, commands_for_second_run
from mlscale.cli.options import is_log
from mlscale.counters.kernel_use import lack_of_peaks, traffic_needed
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import is_sampled
from mlscale.data.table_files import is_tidy
from mlscale.unprofiled import kernels_of_most


@dataclass(frozen=True)
class SecondRun:
    """Where to run the same work again, what sets that clock, and the command with both runs.

    file: of the second run, as the command calls it. instead: what makes one run enough, if
    anything does.
    """

    engine_mhz: int
    file: str
    commands: Commands
    advise: str
    instead: str | None

    def document(self) -> dict[str, Any]:
        """What JSON has of it."""
        return {
            "engine_mhz": self.engine_mhz,
            "set": self.commands.to_set,
            "reset": self.commands.to_reset,
            "advise": self.advise,
            "notes": self.commands.notes,
            "instead": self.instead,
        }

    def text(self) -> str:
        """What a terminal shows of it."""
        how = "" if self.commands.to_set else ", locked or by a low power cap"
        lines = [
            *self.commands.to_set,
            f"# run the same work again, recorded as before, into {self.file}{how}",
            *self.commands.to_reset,
            self.advise,
        ]
        text = f"To find out, run it at about {self.engine_mhz} MHz too:\n"
        text += "".join(f"  {line}\n" for line in lines)
        return text + (f"One run is enough with {self.instead}\n" if self.instead else "")


def second_run(arguments: argparse.Namespace, first: Path, profiles: Profiles) -> SecondRun:
    """The second run for an advice; first: the file of the first one."""
    engine_mhz, commands = commands_for_second_run(profiles)
    stem, dot, ending = first.name.partition(".")
    file = f"{stem}-{engine_mhz}{dot}{ending}"
    names_its_clock = is_tidy(first) or is_log(first)
    also = file if names_its_clock else f"{file}@engine={engine_mhz}"
    words = ["mlscale", *arguments.words, "--also", also]
    return SecondRun(engine_mhz, file, commands, shlex.join(words), _instead(profiles))


def _instead(profiles: Profiles) -> str | None:
    """What the profiles lack for a prediction from one run; None of averages, which never do."""
    if is_sampled(profiles.metadata):
        return None
    if profiles.are_times_alone:
        largest = kernels_of_most(profiles, profiles.run_times_ms)
        return f"a profile of the kernels of most time too (docs/profiling.md): {largest}"
    if lack := lack_of_peaks(profiles.device):
        return f"a GPU whose peaks are known: {lack}"
    return traffic_needed(str(profiles.metadata.get("counter_tool")))
