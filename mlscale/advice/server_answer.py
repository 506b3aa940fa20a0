"""The answer on an LLM server, and tokens per joule over clock and number of clients.

At each clock a step's time is linear in the batch between two numbers that were run, and power in
the log of the number; nothing is said beyond them. DeepSeek-R1 on 8 GPUs, run at a quarter of the
clients and at the whole, was off by 6 % between (reproduction/servers.py, `loads`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from math import ceil, exp, hypot, log, log2

import numpy as np

from mlscale.advice.answer import MODEL_SUFFIX, Lever, NextStep, PlainAnswer
from mlscale.advice.commands import commands_for_further_run, commands_for_server_cap
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Workload
from mlscale.advice.server import (
    Estimate,
    LoadCell,
    ServerAdvice,
    ServerClock,
    advise_server,
    read_slos,
)
from mlscale.advice.server_caps import advise_server_caps
from mlscale.advice.server_readings import (
    ServerReading,
    base_of,
    in_order,
    read_readings,
    require_same_server,
)
from mlscale.advice.sureness import Grounds, reasons
from mlscale.data.supply import limit_notes
from mlscale.errors import InputError
from mlscale.model.model import load
from mlscale.model.shipped import RUNS
from mlscale.notes import merged
from mlscale.parameters import parameter
from mlscale.readers.given import Given
from mlscale.readers.serving import read_result
from mlscale.readers.source import Source

BETWEEN_WIDTH = 18.0  # half of a 90 % interval midway between clients and OFFERED times as many [%]
OFFERED = 4.0


def answer_on_server(
    files: Sequence[Source],
    given: Given,
    slo: str | Mapping[str, str] = "",
    pool: str | None = None,
    capacity: Sequence[Source] = (),
    has_commands: bool = True,
    lever: Lever = "clock",
) -> PlainAnswer:
    """The answer on a server. Raises InputError.

    files: a result, its log, and so on; a log without clocks as LOG@engine=MHZ, or for a cap.
    """
    slos, results = read_slos(slo), [read_result(file.file) for file in capacity]
    is_of_caps = lever == "cap"
    each = read_readings(files, given, is_of_caps)
    readings, *others = map(in_order, [each] if is_of_caps else by_clients(each))
    base = base_of(readings, files[0].path, given.base)
    if is_of_caps:
        server = advise_server_caps(readings, slos, pool)
    else:
        server = advise_server(load(RUNS), readings, slos, pool, results, base)
    if others:
        require_same_server([readings, *others])
        beside = [advise_server(load(RUNS), other, (), pool) for other in others]
        if not (loads := load_cells([server, *beside])):
            raise InputError(
                f"{others[0][0].result.source}: was not run between the clocks of "
                f"{readings[0].result.source}; run each number of clients at the same two clocks"
            )
        server = replace(server, loads=loads)
    best, expected, now = server.best(is_sure=True), server.best(), server.choice(server.now)
    if best and expected and expected.setting >= best.setting:
        expected = None  # the best was measured, and is nearer the limits
    commands = None
    if has_commands and best:
        command = commands_for_server_cap if is_of_caps else commands_for_further_run
        commands = command(base.log, best.setting)
    step = None
    if (further_mhz := server.further_mhz) and not server.withheld:
        told = (
            f"To know more between these clocks, run it at about {further_mhz} MHz too: "
            f"{parameter('also', 'RESULT LOG')}."
        )
        step = NextStep(told, further_mhz)
    held = [note for one in readings if not is_of_caps for note in limit_notes(one.log)]
    lacks_capacity = server.is_open and server.now.capacity_share is None
    grounds = Grounds(base.log.device, is_law=not is_of_caps, power_readings=2)
    grounds = replace(grounds, has_clock=not is_of_caps)
    why = ("S10",) * bool(server.withheld) + ("S09",) * lacks_capacity
    return PlainAnswer(
        device=base.log.device,
        base=now,
        objective="energy",
        limits=Limits(),
        workload=Workload(1, None, 100.0, gpu_count=base.log.gpu_count),
        best=server.choice(best) if best else None,
        model=None if is_of_caps else RUNS.removesuffix(MODEL_SUFFIX),
        lever=lever,
        expected=server.choice(expected) if expected else None,
        sure_why=why + reasons(grounds),
        notes=merged([*held, *server.notes]),
        commands=commands,
        next_step=step,
        measured=tuple(server.choice(clock) for clock in server.clocks if clock.is_measured),
        server=server,
        files=tuple(files),
    )


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
