"""Readings of Wang and Chu's print where it contradicts itself or the measurements.

docs/equations.md, section 1.3, has the places and the reasons.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from mlscale.errors import InputError


@dataclass(frozen=True)
class Reading:
    """One way to read the print; the defaults are the settled reading, which is used elsewhere.

    Attributes:
        place: the equation or table of the paper that is read, for people.
        what: how it is read, for people.
        printed_conditions: (10b) and (12b) as they stand, with #Aw - 1; settled: exchanged, #Aw.
        latency: of DRAM in (5a). 'once': (4), which has the ratio of the clocks in it; 'twice':
            (5a) multiplies it by the ratio again; 'equal clocks': (4) at equal clocks times the
            ratio; 'Table II': its column, of an engine at 400 MHz, times the ratio.
        delay_ratio: whether (5b) multiplies Table III's delay by the ratio of the clocks.
        issue_cycles: inst_cycle of (7b) [cycles]; None for the GPU's, 32 / lanes of a CU.
        transactions_per_period: 32-byte transactions of one period; None for a memory instruction.
        charges_shared: whether shared memory occupies the CU outside (16) to (21) too.
        whole_rounds: whether (6) counts whole rounds of resident warps.
    """

    place: str = ""
    what: str = "the settled reading"
    printed_conditions: bool = False
    latency: Literal["once", "twice", "equal clocks", "Table II"] = "once"
    delay_ratio: bool = True
    issue_cycles: float | None = None
    transactions_per_period: float | None = None
    charges_shared: bool = True
    whole_rounds: bool = False


SETTLED = Reading()

READINGS: Mapping[str, Reading] = MappingProxyType(
    {
        "settled": SETTLED,
        "conditions": Reading("10b, 12b", "as printed", printed_conditions=True),
        "latency-twice": Reading("5a", "as printed: (4) times the ratio again", latency="twice"),
        "latency-equal": Reading(
            "5a, IV-C", "(4) at equal clocks, times the ratio", latency="equal clocks"
        ),
        "latency-table-2": Reading(
            "5a, Table II", "the table's column, times the ratio", latency="Table II"
        ),
        "delay-constant": Reading("5b", "Table III without the ratio", delay_ratio=False),
        "issue-4": Reading("7b", "inst_cycle as a latency: 4 cycles", issue_cycles=4.0),
        "issue-0.5": Reading("7b", "half the lanes: 0.5 cycles", issue_cycles=0.5),
        "period-1": Reading("7a", "as printed: one transaction", transactions_per_period=1.0),
        "period-2": Reading("7a", "two transactions", transactions_per_period=2.0),
        "period-8": Reading("7a", "eight transactions", transactions_per_period=8.0),
        "shared-free": Reading("16 to 21", "as printed: only there", charges_shared=False),
        "whole-rounds": Reading("6", "rounds rounded up", whole_rounds=True),
        "printed": Reading(
            "all",
            "all that is printed, together",
            printed_conditions=True,
            latency="twice",
            transactions_per_period=1.0,
            charges_shared=False,
        ),
    }
)


def find_reading(reading: Reading | str) -> Reading:
    """Return a reading, or the one of that name. Raises InputError where there is none.

    >>> find_reading("issue-4").issue_cycles
    4.0
    """
    if isinstance(reading, Reading):
        return reading
    if reading not in READINGS:
        raise InputError(f"there is no reading '{reading}'; one of {', '.join(READINGS)}")
    return READINGS[reading]
