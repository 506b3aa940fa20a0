"""How sure an answer is: the table of reasons, each under a code, and those that an answer has.

The level of an answer is the lowest of its reasons'.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlscale.arrays import Floats, Mask, quantile
from mlscale.data.devices import CDNA, known_device
from mlscale.notes import Note

LEVELS = ("low", "medium", "high")
DRAWS = 400  # how often a run's energy is drawn
HIGH = 0.0075  # the surest answer costs at most this share of energy, by its draws


@dataclass(frozen=True)
class Reason:
    """What makes an answer as sure as a level of LEVELS, in words."""

    level: str
    words: str


REASONS = {
    "S01": Reason(
        "high",
        "In nine of ten runs on unseen GPUs, no clock whose interval keeps the limits needs over "
        "2 % less energy",
    ),
    "S02": Reason("medium", "The model was trained on this GPU, but not tested on this program"),
    "S03": Reason("medium", "The model was not trained on this GPU"),
    "S11": Reason("medium", "Another clock may need over 2 % less energy"),
    "S12": Reason("medium", "Answers of this kind were not tested on unseen GPUs"),
    "S13": Reason("medium", "A run was under 2 s or had few samples, so it is known only roughly"),
    "S14": Reason("medium", "A run was at its power limit, which set its clock"),
    "S15": Reason("medium", "The files show the requested clocks, not the actual ones"),
    "S08": Reason("medium", "The files have no clock: caps follow from power only"),
    "S09": Reason("medium", "The server's capacity was not measured"),
    "S17": Reason("medium", "A warning says that a reading may mislead"),
    "S10": Reason("low", "The server seems near its capacity"),
    "S04": Reason("low", "The model was trained only on GPUs unlike this one"),
    "S05": Reason("low", "Power was measured at one setting: energy is uncertain"),
    "S06": Reason("low", "Time was measured at one clock: only its bounds are known"),
    "S07": Reason("low", "The answer lies beyond the trained settings"),
    "S16": Reason("low", "A run seems not to have kept its clock"),
    "S18": Reason("low", "The model gives no intervals, so no clock is certain to keep a limit"),
    "S19": Reason("low", "The counters of most of the run are all 0"),
}
_DOUBTS = {  # by the code of a warning of a run's readings
    "L04": "S16", "G02": "S17", "M02": "S17", "R02": "S17", "T02": "S17", "T06": "S17",
}  # fmt: skip


@dataclass(frozen=True)
class Grounds:
    """What an answer rests on.

    is_learnt: whether the model learnt from the GPU. is_law: whether it is by the law of runs from
    readings at two clocks or more. regret: see `regret_told`; None where it is not told.
    power_readings: at how many settings power was read. needs_power: whether the answer is of power
    or energy. is_bounded: whether times are bounds. is_beyond: whether the answer lies beyond the
    trained settings. has_clock: whether the files have the clocks. is_simulated: whether the model
    learnt from data that were not measured. has_intervals: whether times have them, if a limit
    needs them. is_short, is_at_limit, is_clock_asked, is_clock_doubted and is_uncounted: what is
    wrong with a reading.
    """

    device: str
    is_learnt: bool = False
    is_law: bool = False
    regret: float | None = None
    power_readings: int = 1
    needs_power: bool = False
    is_bounded: bool = False
    is_beyond: bool = False
    has_clock: bool = True
    is_simulated: bool = False
    is_short: bool = False
    is_at_limit: bool = False
    is_clock_asked: bool = False
    is_clock_doubted: bool = False
    has_intervals: bool = True
    is_uncounted: bool = False


def regret_told(energies: Floats, advised: int, may_be_advised: Mask) -> float:
    """How much more energy than the best clock the advised one takes at most, in nine of ten draws.

    A share of it. energies (D, N): draws of what is believed of the run's energy at N clocks;
    may_be_advised (N,).
    """
    least = energies[:, may_be_advised].min(axis=1)
    return quantile(energies[:, advised] / least, 0.9) - 1


def reasons(grounds: Grounds) -> tuple[str, ...]:
    """The codes of the reasons that hold, the least sure first."""
    device, is_new = known_device(grounds.device), not grounds.is_learnt
    lacks_clock = not grounds.has_clock
    is_tried_kind = device is not None and device.vendor == "NVIDIA" and not device.is_jetson
    is_cdna = grounds.is_law and device is not None and device.architecture.startswith(CDNA)
    is_alike = (is_tried_kind or is_cdna) and not grounds.is_simulated
    is_tried = grounds.regret is not None and is_tried_kind
    holds = {
        "S02": grounds.is_learnt and not grounds.is_law,
        "S03": is_new and is_alike and not (grounds.is_law or grounds.is_bounded or lacks_clock),
        "S04": is_new and not is_alike and not lacks_clock,
        "S05": is_new and grounds.needs_power and grounds.power_readings == 1,
        "S06": grounds.is_bounded,
        "S07": grounds.is_beyond,
        "S08": lacks_clock,
        "S11": grounds.regret is not None and not grounds.regret <= HIGH,
        "S12": grounds.is_law and not is_tried and not grounds.is_bounded,
        "S13": grounds.is_law and grounds.is_short,
        "S14": grounds.is_at_limit,
        "S15": grounds.is_law and grounds.is_clock_asked,
        "S16": grounds.is_clock_doubted,
        "S18": not grounds.has_intervals,
        "S19": grounds.is_uncounted,
    }
    holds["S01"] = is_tried and not any(holds.values())
    return _in_order(code for code, is_so in holds.items() if is_so)


def _in_order(codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(codes, key=lambda code: LEVELS.index(REASONS[code].level)))


def doubted(codes: Sequence[str], notes: Iterable[Note]) -> tuple[str, ...]:
    """The codes of an answer from a run's readings, with what warnings of these say against it."""
    told = [_DOUBTS[n.code] for n in notes if n.severity == "warning" and n.code in _DOUBTS]
    kept = [code for code in codes if code != "S01" or not told]
    return _in_order(dict.fromkeys([*kept, *told]))


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
