"""The answer, one frozen value for the terminal, CSV, JSON, the page and Python alike.

A run read at clocks, a run read under caps and an LLM server differ in the fields that they have.
`document` writes it as JSON, `verdict` tells it in words.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from mlscale.advice.advise import advise
from mlscale.advice.objectives import WITHOUT_POWER, Limits
from mlscale.advice.recommendation import Advice, Choice, Recommendation, Workload
from mlscale.advice.sureness import Grounds, doubted, level, reasons
from mlscale.counters.kernel_use import DESCRIBED, half_of_traffic, lack_of_peaks, traffic_needed
from mlscale.data.column_names import RATED
from mlscale.data.logs import SHARES, is_sampled
from mlscale.data.points import second_clock_mhz, third_clock_mhz
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import BOUNDS
from mlscale.model.model import Model
from mlscale.model.unprofiled import kernels_of_most
from mlscale.notes import Note, merged, notes_by_kernel
from mlscale.parameters import parameter
from mlscale.readers.source import Source
from mlscale.subject import Subject
from mlscale.text import counted

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice
    from mlscale.advice.commands import Commands
    from mlscale.advice.server import ServerAdvice

MODEL_SUFFIX = ".mlscale"
Lever = Literal["clock", "cap"]


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
    lever: Lever = "clock"
    caps_w: tuple[float, ...] | None = None


@dataclass(frozen=True)
class NextStep:
    """What would make an answer surer: a line of text, and the commands of a further run, if any.

    engine_mhz: of that run, where commands can tell how to make it.
    """

    text: str
    engine_mhz: int | None = None
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class PlainAnswer:
    """What to set, what becomes of the run there, how sure that is, and what to know of it.

    base: the run, or the server, as it is now, to which every change is relative; of a server time
    and energy are of RATED_UNITS output tokens. best: what to set; None where nothing will do.
    expected: what is expected to just keep a limit of time, None where that is the best. menu: the
    best under each limit of slowdown [%], None for any time. lever: what is set. sure_why: the
    codes of `sureness`. notes: each once, warnings first. next_step: what would make it surer.
    kernels: those of most time first. front, measured: as of an `Advice`. caps: the run under power
    caps. server: its clocks.

    What it rests on: advice and subject, of a run whose clock is known; files.
    """

    device: str | None
    base: Choice
    objective: str
    limits: Limits
    workload: Workload
    best: Choice | None
    model: str | None = None
    lever: Lever = "clock"
    expected: Choice | None = None
    menu: Mapping[float | None, Choice] = field(default_factory=dict)
    sure_why: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    next_step: NextStep | None = None
    commands: "Commands | None" = None
    kernels: tuple[Recommendation, ...] = ()
    front: tuple[Choice, ...] = ()
    measured: tuple[Choice, ...] = ()
    is_bounded: bool = False
    caps: "CapAdvice | None" = None
    server: "ServerAdvice | None" = None
    advice: Advice | None = None
    subject: Subject | None = None
    files: tuple[Source, ...] = ()

    def with_notes(self, notes: Iterable[Note]) -> "PlainAnswer":
        """The answer with notes on its files, or on the choice of the model, before its own."""
        told = merged([*notes, *self.notes])
        is_by_law = self.subject and self.subject.model.is_law_of_runs
        why = doubted(self.sure_why, told) if is_by_law else self.sure_why
        return replace(self, notes=told, sure_why=why)

    @property
    def name(self) -> str:
        """What the run is called: its files, without their folders."""
        return ", ".join(file.path.name for file in self.files) or "data from Python"

    @property
    def work(self) -> str:
        """What its times and energies are of: the whole run, or so many units of work."""
        gpus = self.workload.gpu_count
        is_rated = any(note.code == "M02" and RATED in note.text for note in self.notes)
        return RATED if is_rated else f"whole run{f' of {gpus} GPUs' * (gpus > 1)}"

    @property
    def what_ran(self) -> str:
        """How many kernels, or runs: of logs, and of times under caps."""
        is_run = self.subject is None or is_sampled(self.subject.profiles.metadata)
        return counted(self.workload.kernels, "run" if is_run else "kernel")

    @property
    def sure(self) -> str:
        """How sure it is: 'high', 'medium' or 'low'."""
        return level(self.sure_why)

    @property
    def longest_percent(self) -> float:
        """The slowdown that the limits allow [%], infinite without a limit of time."""
        return self.limits.longest_percent(self.base.time_ms)

    @property
    def now_w(self) -> float | None:
        """The power cap that is set now [W], where the answer is a cap and that is known."""
        if self.server and self.lever == "cap":
            return self.server.base.setting
        return self.caps.runs.now_w if self.caps and self.lever == "cap" else None


# Of a run.


def answer_on_run(found: Subject, goal: RunGoal, has_commands: bool) -> PlainAnswer:
    """The answer on a run, without what its files were warned of. Raises InputError."""
    advice, caps = _advised(found.model, found.profiles, goal)
    name, metadata = found.model_name.removesuffix(MODEL_SUFFIX), found.profiles.metadata
    commands = None
    if has_commands:
        from mlscale.advice.commands import commands_for_cap, commands_for_clocks

        if caps is not None and goal.lever == "cap":
            commands = commands_for_cap(caps, metadata)
        else:
            commands = commands_for_clocks(advice, metadata)
    step = next_step(found, goal.lever, advice, caps)
    answer = answer_by(advice, name, caps, goal.lever).with_notes(found.notes)
    return replace(answer, commands=commands, next_step=step, subject=found, files=found.files)


def _advised(model: Model, profiles: Profiles, goal: RunGoal) -> tuple[Advice, "CapAdvice | None"]:
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


def answer_by(
    advice: Advice, model: str, caps: "CapAdvice | None" = None, lever: Lever = "clock"
) -> PlainAnswer:
    """The answer by an advice; model: its name. caps: the run under power caps.

    lever: 'clock', or 'cap' where the answer is the best of the caps.
    """
    run = advice.whole_run
    kernels = sorted(advice.kernels, key=lambda one: one.share_percent or 0.0, reverse=True)
    flags = {k.name: [flag for flag in k.flags if flag not in BOUNDS] for k in kernels}
    told = [*advice.warnings, *run.flags, *_cap_notes(caps), *notes_by_kernel(flags)]
    answer = PlainAnswer(
        device=advice.device,
        base=run.base,
        objective=advice.objective,
        limits=advice.limits,
        workload=advice.workload,
        best=run.best,
        model=model,
        expected=run.expected,
        menu=advice.menu,
        sure_why=advice.sure_why,
        notes=merged(told),
        kernels=tuple(kernels),
        front=run.front,
        measured=advice.measured,
        is_bounded=advice.is_bounded,
        caps=caps,
        advice=advice,
    )
    if lever == "clock" or caps is None:
        return answer
    return replace(under_caps(answer, caps), sure_why=advice.sure_why_cap, kernels=())


def under_caps(answer: PlainAnswer, caps: "CapAdvice") -> PlainAnswer:
    """The answer where a cap is set: the best, or the base where none helps."""
    stay, best = caps.runs.base, caps.best.run if caps.best else None
    return replace(
        answer,
        objective=caps.objective,
        limits=caps.limits,
        lever="cap",
        best=stay if best and not caps.helps else best,
        expected=caps.expected.run if caps.expected else None,
        menu={most: (point and point.run) or stay for most, point in caps.menu},
        caps=caps,
    )


def answer_by_caps(caps: "CapAdvice") -> PlainAnswer:
    """The answer on runs that were read under caps, of whose clocks nothing is known."""
    answer = PlainAnswer(
        device=caps.runs.device or None,
        base=caps.runs.base,
        objective=caps.objective,
        limits=caps.limits,
        workload=Workload(1, None, 100.0, gpu_count=caps.runs.supply.gpu_count),
        best=None,
        sure_why=reasons(Grounds(caps.runs.device, power_readings=2, has_clock=False)),
        notes=merged(_cap_notes(caps)),
    )
    return under_caps(answer, caps)


def _cap_notes(caps: "CapAdvice | None") -> list[Note]:
    """What to know of the caps, and of the best one."""
    if caps is None:
        return []
    from mlscale.advice.caps import BELOW_READINGS

    notes, best = [], caps.best if caps.helps else None
    point = best or caps.expected
    if point and BELOW_READINGS in point.flags:
        told = (
            f"a cap of {point.cap_w:g} W is {BELOW_READINGS}, {caps.runs.supply.least_w:.0f} W: "
            f"less is known there; measure the run under this cap: {parameter('also', 'FILE')}"
        )
        notes.append(Note("P03", told, "warning"))
    if best and best.steep and caps.lock_mhz is None:
        notes.append(Note("P03", f"at this cap {best.steep}"))
    elif best and best.steep:
        told = f"better lock the engine clock at {caps.lock_mhz:g} MHz instead: at this cap "
        notes.append(Note("P03", told + best.steep, "warning"))
    return [*notes, *caps.warnings]


def next_step(
    found: Subject, lever: Lever, advice: Advice, caps: "CapAdvice | None"
) -> NextStep | None:
    """What would make an answer surer, or give energy too, if anything."""
    model, profiles = found.model, found.profiles
    also = parameter("also", "FILE")
    if advice.is_bounded:
        mhz = second_clock_mhz(profiles)
        instead = _instead(profiles)
        enough = f" One run is enough with {instead}" if instead else ""
        return NextStep(f"To be sure, run it at about {mhz} MHz too: {also}.{enough}", mhz)
    if model.lead.name == "runs":
        best: Choice | None = advice.whole_run.best
        if lever == "cap":
            best = caps.best.run if caps and caps.best else None  # at its mean clock
        return _further_reading(profiles, best)
    if profiles.power_w is None and advice.no_energy and model.untrained:
        watts, log = parameter("power", "WATTS"), parameter("power", "LOG")
        return NextStep(f"Energy is not known: add {watts}, or {log} of nvidia-smi.")
    if model.untrained and not profiles.points and advice.objective not in WITHOUT_POWER:
        mhz = second_clock_mhz(profiles)
        return NextStep(f"To be surer, run it at about {mhz} MHz too: {also}.")
    return None


def _further_reading(profiles: Profiles, best: Choice | None) -> NextStep | None:
    """The reading that would tell most of a run: power that one lacks, or another clock."""
    if lacking_mhz := _without_power_mhz(profiles):
        told = f"The run at {lacking_mhz:g} MHz shows no power: for energy, log it there again."
        return NextStep(told)
    third = third_clock_mhz(profiles, best.config.engine_mhz if best else math.inf)
    if third is None:
        return None
    mhz, told = third
    also = parameter("also", "FILE")
    return NextStep(f"To know more {told}, run it at about {mhz} MHz too: {also}.", mhz)


def _without_power_mhz(profiles: Profiles) -> float | None:
    """The clock of a reading without power, where another has it [MHz]; None where all or none."""
    readings = [
        (profiles.base, profiles.power_w),
        *((p.config, p.power_w) for p in profiles.points),
    ]
    clocks = [at.engine_mhz for at, watts in readings if watts is None or np.isnan(watts).all()]
    return clocks[0] if 0 < len(clocks) < len(readings) else None


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
        named = parameter("device", "NAME")
        return f"{named} ('mlscale devices list'), or a file in place of NAME: {DESCRIBED}"
    tool = str(profiles.metadata.get("counter_tool"))
    return traffic_needed(tool) + half_of_traffic(profiles)
