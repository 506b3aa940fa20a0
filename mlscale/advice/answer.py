"""The answer for a run: advice, power caps, what sets them and what to do next, as one document."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mlscale.advice.advise import advise
from mlscale.advice.document import NextStep, document
from mlscale.advice.objectives import WITHOUT_POWER, Limits
from mlscale.advice.recommendation import Advice, Row, Setting
from mlscale.counters.kernel_use import DESCRIBED, half_of_traffic, lack_of_peaks, traffic_needed
from mlscale.data.logs import SHARES, is_sampled
from mlscale.data.points import second_clock_mhz, third_clock_mhz
from mlscale.data.profiles import Profiles
from mlscale.model.model import Model
from mlscale.model.unprofiled import kernels_of_most
from mlscale.notes import Note
from mlscale.subject import Subject

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice

MODEL_SUFFIX = ".mlscale"


@dataclass(frozen=True)
class RunGoal:
    """What is asked of advice on a run.

    objective, limits, static_power_w [W]: as for `advise`. lever: what is to be set, 'clock', or
    'cap', for which caps_w must be told. caps_w [W]: power caps to tell the run under, empty for
    those that the GPU takes, None for none.
    """

    objective: str | None = None
    limits: Limits = field(default_factory=Limits)
    static_power_w: float | None = None
    lever: Literal["clock", "cap"] = "clock"
    caps_w: tuple[float, ...] | None = None


def advised(model: Model, profiles: Profiles, goal: RunGoal) -> tuple[Advice, "CapAdvice | None"]:
    """The advice on a run, and the run under the caps that are asked for. Raises InputError."""
    if goal.lever == "cap":
        from mlscale.advice.caps import require_other_clock

        require_other_clock(profiles)
    advice = advise(model, profiles, goal.objective, goal.limits, goal.static_power_w)
    if goal.caps_w is None:
        return advice, None
    from mlscale.advice.caps import advise_caps

    is_of_clocks = goal.objective == "clock" and goal.lever == "clock"  # says nothing of caps
    objective = None if is_of_clocks else goal.objective
    given = (goal.limits, advice.static_power_w, advice.surfaces)
    return advice, advise_caps(model, profiles, goal.caps_w, objective, *given)


def document_of_run(
    found: Subject,
    goal: RunGoal,
    advice: Advice,
    caps: "CapAdvice | None",
    notes: Iterable[Note],
    step: NextStep | None,
    has_commands: bool,
) -> Row:
    """The answer's document. notes: on the files. step: what to do next."""
    commands = None
    if has_commands:
        from mlscale.advice.commands import commands_for_cap, commands_for_clocks

        metadata = found.profiles.metadata
        if caps is not None and goal.lever == "cap":
            commands = commands_for_cap(caps, metadata)
        else:
            commands = commands_for_clocks(advice, metadata)
    name = found.model_name.removesuffix(MODEL_SUFFIX)
    return document(advice, name, caps, goal.lever, [*notes, *found.notes], commands, step)


def next_step(
    found: Subject, goal: RunGoal, advice: Advice, caps: "CapAdvice | None"
) -> NextStep | None:
    """What would make an answer surer, or tell energy too, if anything."""
    model, profiles = found.model, found.profiles
    if advice.is_bounded:
        mhz = second_clock_mhz(profiles)
        instead = _instead(profiles)
        enough = f" One run is enough with {instead}" if instead else ""
        return NextStep(f"To be sure, run it at about {mhz} MHz too: --also FILE.{enough}", mhz)
    if model.lead.name == "board":
        best: Setting | None = advice.whole_run.best
        if goal.lever == "cap":
            best = caps.best.run if caps and caps.best else None  # at its mean clock
        third = third_clock_mhz(profiles, best.config.engine_mhz if best else math.inf)
        if third is None:
            return None
        mhz, told = third
        return NextStep(f"To know more {told}, run it at about {mhz} MHz too: --also FILE.", mhz)
    if profiles.power_w is None and advice.no_energy and model.untrained:
        return NextStep("Energy is not known: add --power WATTS, or --power LOG of nvidia-smi.")
    if model.untrained and not profiles.points and advice.objective not in WITHOUT_POWER:
        mhz = second_clock_mhz(profiles)
        return NextStep(f"To be surer, run it at about {mhz} MHz too: --also FILE.")
    return None


def _instead(profiles: Profiles) -> str | None:
    """What the profiles lack for a prediction from one run; None of averages, which never do."""
    if is_sampled(profiles.metadata):
        return None
    if profiles.are_times_alone:
        largest = kernels_of_most(profiles, profiles.run_times_ms)
        return f"a profile of the kernels that take most time: {largest}"
    if set(profiles.counter_names) <= set(SHARES):
        return None
    if lack_of_peaks(profiles.device):
        return f"--device and a name from 'mlscale devices list', or a file: {DESCRIBED}"
    tool = str(profiles.metadata.get("counter_tool"))
    return traffic_needed(tool) + half_of_traffic(profiles)
