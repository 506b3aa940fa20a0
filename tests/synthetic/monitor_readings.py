"""Readings of a GPU's monitor whose means are known, for logs in each tool's form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MEMORY_MHZ = 1215


@dataclass(frozen=True)
class Reading:
    """One reading of one GPU; what is None is blank in the log."""

    activity: float | None  # 0 to 1
    power_w: float | None
    engine_mhz: float | None
    gpu: int = 0


Ticks = Sequence[Sequence[Reading]]  # one reading a GPU at each tick


def block(
    head: int, busy: int, tail: int, power_w: float = 200, engine_mhz: float = 1410, gpu: int = 0
) -> list[list[Reading]]:
    """A constant busy block between idle samples, of one GPU."""
    idle = Reading(0.0, 50.0, 210.0, gpu)
    work = Reading(0.8, power_w, engine_mhz, gpu)
    return [[idle]] * head + [[work]] * busy + [[idle]] * tail


def text(value: float | None, blank: str, factor: float = 1) -> str:
    return blank if value is None else f"{value * factor:g}"


def flat(ticks: Ticks) -> Iterable[tuple[int, Reading]]:
    return ((n, reading) for n, tick in enumerate(ticks) for reading in tick)
