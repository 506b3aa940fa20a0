"""Tokens per joule over clock and number of clients, from readings of several numbers of clients.

At each clock a step's time is linear in the batch between two numbers that were run, and power in
the log of the number; nothing is said beyond them. DeepSeek-R1 on 8 GPUs, run at a quarter of the
clients and at the whole, was off by 6 % between (reproduction/servers.py, `loads`).
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from math import ceil, exp, hypot, log, log2

import numpy as np

from mlscale.advice.server import Estimate, LoadCell, ServerAdvice, ServerClock
from mlscale.advice.server_readings import ServerReading

BETWEEN_WIDTH = 18.0  # half of a 90 % interval midway between clients and OFFERED times as many [%]
OFFERED = 4.0


def by_clients(readings: Sequence[ServerReading]) -> list[list[ServerReading]]:
    """Readings of each number of clients, those of the first one first.

    All in one where requests come at a rate, or a number of clients was run once.
    """

    def number(reading: ServerReading) -> float:
        return reading.result.clients or 0.0

    groups = [list(group) for _, group in groupby(sorted(readings, key=number), number)]
    if any(one.result.load != "closed" for one in readings) or min(map(len, groups)) == 1:
        return [list(readings)]
    return sorted(groups, key=lambda group: readings[0] not in group)


def load_cells(answers: Sequence[ServerAdvice]) -> tuple[LoadCell, ...]:
    """The cells of all numbers of clients, rising, at clocks within the readings of all."""
    ordered = sorted(answers, key=lambda advice: advice.base.result.clients or 0.0)
    shared = set.intersection(*({c.engine_mhz for c in advice.clocks} for advice in ordered))
    found = []
    for mhz in sorted(shared, reverse=True):
        run = [_cell(advice.base.result.clients or 0.0, advice.at(mhz)) for advice in ordered]
        for fewer, more in pairwise(run):
            count = max(1, ceil(log2(more.clients / fewer.clients)))
            between = [round(fewer.clients * 2**step) for step in range(1, count)]
            found += [fewer, *(interpolated(fewer, more, clients) for clients in between)]
        found.append(run[-1])
    return tuple(found)


def _cell(clients: float, at: ServerClock) -> LoadCell:
    """A clock of a server's advice."""
    told = (at.output_per_s, at.power_w, at.tokens_per_joule)
    return LoadCell(clients, at.engine_mhz, at.is_measured, *told)


def interpolated(fewer: LoadCell, more: LoadCell, clients: float) -> LoadCell:
    """What a number of clients between two would bring, at their clock."""
    ends = (fewer, more)
    linear = (clients - fewer.clients) / (more.clients - fewer.clients)
    along = log(clients / fewer.clients) / log(more.clients / fewer.clients)
    step_s = [cell.clients / cell.output_per_s.value for cell in ends]
    rate = clients / (step_s[0] + linear * (step_s[1] - step_s[0]))
    power_w = float(np.interp(along, [0, 1], [cell.power_w.value for cell in ends]))
    apart = log(more.clients / fewer.clients) / log(OFFERED)
    midway = BETWEEN_WIDTH / 100 * max(1.0, apart) ** 0.5 * (4 * along * (1 - along)) ** 0.5

    def estimate(value: float, sides: Sequence[Estimate]) -> Estimate:
        wide = max((log(side.high / side.value) for side in sides if side.high), default=0.0)
        size = exp(hypot(wide, midway))
        return Estimate(value, value / size, value * size)

    return LoadCell(
        float(clients),
        fewer.engine_mhz,
        is_measured=False,
        output_per_s=estimate(rate, [cell.output_per_s for cell in ends]),
        power_w=estimate(power_w, [cell.power_w for cell in ends]),
        tokens_per_joule=estimate(rate / power_w, [cell.tokens_per_joule for cell in ends]),
    )
