"""What sets an advice: the clocks or a power cap, and the commands of the GPU's vendor."""

import argparse
from dataclasses import dataclass

from mlscale.advice.cap_advice import CapAdvice, CapPoint, caps_of_run
from mlscale.advice.commands import Commands, commands_for_cap, commands_for_clocks
from mlscale.advice.objectives import objective_name
from mlscale.advice.recommendation import Advice, Row
from mlscale.advice.verdict import cap_verdict
from mlscale.cli import goal
from mlscale.cli.advice_table import MOST_KERNELS, flags_of_kernels
from mlscale.cli.text import columns, flag_lines, interval_cell, warning_lines, without_empty
from mlscale.data.profiles import Profiles
from mlscale.model import Model
from mlscale.predictions import INTERVAL
from mlscale.text import number


@dataclass(frozen=True)
class Levers:
    """What the user asked for beside the clocks; None for what was not asked for."""

    lever: str
    caps: CapAdvice | None
    commands: Commands | None

    @property
    def is_cap(self) -> bool:
        """Whether the verdict is about a power cap."""
        return self.lever == "cap"

    def document(self, advice: Advice) -> Row:
        """Return what JSON has of it, with the verdict of a cap in place of the clocks'."""
        document: Row = {"lever": self.lever}
        if self.caps:
            best = self.caps.best
            document["power_caps"] = [point.row() for point in self.caps.points]
            document["best_power_cap"] = best and best.row()
            document["power_caps_save"] = self.caps.saved
            document["warnings"] = [*advice.warnings, *self.caps.warnings]
            if self.is_cap:
                document["verdict"] = cap_verdict(self.caps, advice)
        if self.commands:
            named = {"set": self.commands.to_set, "reset": self.commands.to_reset}
            document["commands"] = {**named, "notes": self.commands.notes}
        return document

    def text(self, advice: Advice) -> str:
        """Return what a terminal shows of it, with the verdict of a cap first."""
        parts = []
        if self.caps:
            if self.is_cap:
                parts.append(f"{cap_verdict(self.caps, advice)}\n")
            if self.caps.warnings:
                parts.append("".join(warning_lines(self.caps.warnings)))
            parts.append(_cap_table(self.caps))
            if self.is_cap:
                flags = flags_of_kernels(advice)
                notes = "".join(flag_lines(flags, MOST_KERNELS) + warning_lines(advice.warnings))
                parts += [notes] if notes else []
        if self.commands:
            parts.append(_commands_text(self.commands))
        return "\n".join(parts)


def read(arguments: argparse.Namespace, model: Model, profiles: Profiles, advice: Advice) -> Levers:
    """What the options ask for, of the run that the advice is for. Raises InputError."""
    lever, caps, commands = arguments.lever, None, None
    if (cap_w := goal.caps_asked(arguments)) is not None:
        caps = caps_of_run(model, profiles, advice, cap_w, arguments.minimize, lever == "cap")
    if arguments.commands:
        if lever == "cap" and caps:
            commands = commands_for_cap(caps, model.device, profiles.metadata)
        else:
            commands = commands_for_clocks(advice, model.device, profiles.metadata)
    return Levers(lever, caps, commands)


def _cap_table(caps: CapAdvice) -> str:
    """Return the run under each cap for a terminal."""
    headers = ["cap W", "engine MHz", "time ms", "power W", "energy mJ", "time %", INTERVAL]
    headers += ["saves %", INTERVAL, ""]
    lines = [_cells(point, point == caps.best) for point in caps.points]
    table = columns(*without_empty(headers, lines))
    text = f"The run under power caps{caps.limits.under()}:\n{table}\n"
    saved = objective_name(caps.saved)
    return text + f"\nsaves % is of {saved}; engine MHz and power W are means over the run\n"


def _cells(point: CapPoint, is_best: bool) -> list[str]:
    notes = ", ".join(["best", *point.flags] if is_best else point.flags)
    run = point.run
    if run is None:
        return [f"{point.cap_w:g}", *["-"] * 5, "", "-", "", notes]
    return [
        f"{point.cap_w:g}",
        f"{run.engine_mhz:.0f}",
        *map(number, (run.time_ms, run.power_w, run.energy_mj)),
        f"{run.slowdown_percent:+z.1f}",
        interval_cell(run.slowdown_range),
        f"{run.saving_percent:z.1f}",
        interval_cell(run.saving_range),
        notes,
    ]


def _commands_text(commands: Commands) -> str:
    """Return the commands for a terminal."""
    parts = []
    for title, lines in (("To set it:", commands.to_set), ("To reset it:", commands.to_reset)):
        if lines:
            parts.append("\n".join([title, *(f"  {line}" for line in lines)]))
    return "\n".join([*parts, *(f"note: {note}" for note in commands.notes)]) + "\n"
