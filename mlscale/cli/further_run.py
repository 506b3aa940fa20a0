"""What to do next: the further run that would make an answer surer, and how to give it."""

import argparse
import math
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from mlscale.advice.commands import commands_at
from mlscale.advice.document import NextStep
from mlscale.advice.objectives import WITHOUT_POWER
from mlscale.advice.recommendation import Advice, Setting
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
from mlscale.model.model import Model
from mlscale.model.unprofiled import kernels_of_most
from mlscale.subject import is_log, tells_engine_clock

_TIME = "MS"  # stands for what the user alone knows of the further run
_PUT_TIME = f"# in place of {_TIME} put the time of that run, in ms"


def next_step(
    arguments: argparse.Namespace | None,
    files: Sequence[Path],
    model: Model,
    profiles: Profiles,
    advice: Advice,
    best: Setting | None,
) -> NextStep | None:
    """What would make an answer surer, or tell energy too, if anything.

    arguments: None of a call from Python, which gets no commands. files: of the run. best: the run
    as advised, under a cap at its mean clock; None where no cap is.
    """
    if advice.is_bounded:
        engine_mhz = second_clock_mhz(profiles)
        instead = _instead(profiles)
        enough = f" One run is enough with {instead}" if instead else ""
        text = f"To be sure, run it at about {engine_mhz} MHz too: --also FILE.{enough}"
        return NextStep(text, _commands_at(engine_mhz, arguments, files, profiles))
    if model.lead.name == "board":
        advised_mhz = math.inf if best is None else best.config.engine_mhz
        third_mhz = third_clock_mhz(profiles, advised_mhz)
        if third_mhz is None:
            return None
        text = (
            f"To be surer below the clocks run, run it at about {third_mhz} MHz too: --also FILE."
        )
        return NextStep(text, _commands_at(third_mhz, arguments, files, profiles))
    if profiles.power_w is None and advice.no_energy and model.untrained:
        return NextStep("Energy is not known: add --power WATTS, or --power LOG of nvidia-smi.")
    if model.untrained and not profiles.points and advice.objective not in WITHOUT_POWER:
        engine_mhz = second_clock_mhz(profiles)
        return NextStep(f"To be surer, run it at about {engine_mhz} MHz too: --also FILE.")
    return None


def _commands_at(
    engine_mhz: int,
    arguments: argparse.Namespace | None,
    files: Sequence[Path],
    profiles: Profiles,
) -> tuple[str, ...]:
    """What sets that clock for the same work again, resets it, and advises with both runs."""
    if arguments is None:
        return ()
    commands, first = commands_at(profiles, engine_mhz), files[0]
    stem, dot, ending = first.name.partition(".")
    file = f"{stem}-{engine_mhz}{dot}{ending}"
    is_table = is_tidy(first, arguments.map)
    is_of_monitor = not is_table and is_log(first)
    has_clock = is_table or (is_of_monitor and tells_engine_clock(first))
    also = file if has_clock else f"{file}@engine={engine_mhz}"
    imported: list[str] = []
    if is_of_monitor and arguments.time is not None:
        also = f"{stem}-{engine_mhz}-table.csv"
        given = _import_options(arguments, None if has_clock else engine_mhz)
        name = ["--application", profiles.applications[0]]
        words = ["mlscale", "import", file, *given, *name, "--time", _TIME, "-o", also]
        imported = [_PUT_TIME, shlex.join(words)]
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
