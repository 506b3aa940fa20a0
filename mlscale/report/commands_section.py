"""What sets and resets the advised clocks, and the best power cap, on the page; nothing is run."""

from mlscale.advice.cap_advice import CapAdvice
from mlscale.advice.commands import Commands, cap_commands, clock_commands
from mlscale.advice.recommendation import Advice
from mlscale.data.devices import known_device
from mlscale.report.markup import Markup, bullets, element, joined, paragraph


def commands_section(device: str, advice: Advice | None, caps: CapAdvice | None) -> Markup:
    """The commands for the clocks of the whole run and, where one is best, for a power cap.

    advice: None where clocks are not to be set.
    """
    gpu, parts = known_device(device), []
    if advice is not None:
        run = advice.whole_run
        parts.append(_shown("The clocks", clock_commands(gpu, run.best.config, run.base.config)))
    if caps is not None and caps.best is not None and caps.binds:
        of_cap = f"{'Or a' if parts else 'A'} power cap of {caps.best.cap_w:g} W"
        parts.append(_shown(of_cap, cap_commands(gpu, caps.best.cap_w)))
    if not parts:
        parts.append(paragraph("Nothing to set: the power cap stays as it is."))
    return joined(element("h3", "Commands"), *parts)


def _shown(what: str, commands: Commands) -> Markup:
    """Commands to copy, and what to know of them."""
    lines = [*commands.to_set, "# to undo it", *commands.to_reset] if commands.to_set else []
    return joined(
        paragraph(f"{what}; mlscale runs none of it, and tried none of it on a GPU:"),
        element("pre", joined(*lines, between=Markup("\n"))) if lines else None,
        bullets(commands.notes) if commands.notes else None,
    )
