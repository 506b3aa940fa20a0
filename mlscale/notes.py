"""Notes: what a reader should know of an answer, each under a code. NOTES is the table of codes.

A code keeps its meaning for ever: G is for the GPU and its settings, L for a profiler's launches, M
for a monitor's log and files of several GPUs, T for tables and profiles, R for readings of a run at
several clocks, and P for predictions and advice.
"""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["refused", "warning", "note"]


@dataclass(frozen=True)
class Note:
    """What one answer says under a code: a line of plain English; kernels: whom it is about."""

    code: str
    text: str
    severity: Severity = "note"
    kernels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Meaning:
    """What a code stands for: a title of at most 70 characters, and an explanation."""

    title: str
    explanation: str


NOTES: dict[str, Meaning] = {}
