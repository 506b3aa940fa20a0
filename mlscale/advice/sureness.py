"""How sure an answer is: the table of reasons, each under a code, and those that an answer has.

The level of an answer is the lowest of its reasons'.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mlscale.data.devices import known_device

LEVELS = ("low", "medium", "high")


@dataclass(frozen=True)
class Reason:
    """What makes an answer as sure as a level of LEVELS, in words."""

    level: str
    words: str


REASONS = {
    "S01": Reason("high", "The run was measured at two settings or more"),
    "S02": Reason("high", "The model learnt from this GPU"),
    "S03": Reason("medium", "The model did not learn from this GPU"),
    "S04": Reason("low", "The model learnt only from GPUs unlike this one"),
    "S08": Reason("medium", "The files have no clock: caps follow from power alone"),
    "S09": Reason("medium", "The server's capacity was not measured"),
    "S10": Reason("low", "The server seems near its capacity"),
    "S05": Reason("low", "Power was measured at one setting: energy is uncertain"),
    "S06": Reason("low", "Time was measured at one clock: only its bounds are known"),
    "S07": Reason("low", "The answer lies beyond the trained settings"),
}


@dataclass(frozen=True)
class Grounds:
    """What an answer rests on.

    is_learnt: whether the model learnt from the GPU. readings, power_readings: at how many settings
    time and power were read. needs_power: whether the answer is of power or energy. is_bounded:
    whether times are bounds. is_beyond: whether the answer lies beyond the trained settings.
    has_clock: whether the files tell the clocks. is_simulated: whether the model learnt from data
    that were not measured.
    """

    device: str
    is_learnt: bool
    readings: int = 1
    power_readings: int = 1
    needs_power: bool = False
    is_bounded: bool = False
    is_beyond: bool = False
    has_clock: bool = True
    is_simulated: bool = False


def reasons(grounds: Grounds) -> tuple[str, ...]:
    """The codes of the reasons that hold, the least sure first."""
    is_read_twice, device = grounds.readings > 1, known_device(grounds.device)
    is_alike = device is not None and device.vendor == "NVIDIA" and not device.is_jetson
    is_alike = is_alike and not grounds.is_simulated
    is_new = not grounds.is_learnt
    holds = {
        "S01": is_read_twice,
        "S02": grounds.is_learnt,
        "S03": is_new and is_alike and not is_read_twice and not grounds.is_bounded,
        "S04": is_new and not is_alike and grounds.has_clock,
        "S05": is_new and grounds.needs_power and grounds.power_readings == 1,
        "S06": grounds.is_bounded,
        "S07": grounds.is_beyond,
        "S08": not grounds.has_clock,
    }
    codes = [code for code, is_so in holds.items() if is_so]
    return tuple(sorted(codes, key=lambda code: LEVELS.index(REASONS[code].level)))


def level(codes: Sequence[str]) -> str:
    """How sure an answer is, by the codes of its reasons: 'low', 'medium' or 'high'."""
    return min((REASONS[code].level for code in codes), key=LEVELS.index, default="low")


def in_words(codes: Sequence[str]) -> str:
    """The reasons that hold an answer at its level, in sentences.

    Example:
        >>> level(["S05", "S03"]), in_words(["S05", "S03"])
        ('low', 'Power was measured at one setting: energy is uncertain.')
    """
    lowest = level(codes)
    return " ".join(f"{REASONS[c].words}." for c in codes if REASONS[c].level == lowest)
