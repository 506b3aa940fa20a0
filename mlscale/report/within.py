"""What the answer is within other limits of slowdown, for the page: as `advise` decides it there.

So nothing is decided by the page's script.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np

from mlscale.advice.costs import Costs, Terms
from mlscale.advice.document import cap_answer, choice
from mlscale.advice.recommendation import Advice, Row
from mlscale.advice.search import best_of_run, settings_at
from mlscale.errors import InputError
from mlscale.model.model import Model

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice


def clocks_within(
    document: Row, advice: Advice, model: Model, percents: Sequence[float | None]
) -> list[Row]:
    """The document with the answer within each of these limits of slowdown [%], None for none.

    The answer is None where no clock keeps a limit.
    """
    run = advice.costs and advice.costs.summed()
    return [_clock_within(document, advice, model, run, most) for most in percents] if run else []


def _clock_within(
    document: Row, advice: Advice, model: Model, run: Costs, percent: float | None
) -> Row:
    limits = replace(advice.limits, max_slowdown_percent=percent, max_time_ms=None)
    terms = Terms(
        objective=document["objective"],
        limits=limits,
        no_energy=advice.no_energy,
        keeps_memory=advice.keeps_memory,
        unmeasured=model.unmeasured,
    )
    row = {**document, "limits": asdict(limits), "answer": None, "expected": None}
    try:
        places = best_of_run(run, terms)
    except InputError:
        return row
    rows, base = np.zeros(2, dtype=int), advice.whole_run.base
    best, expected = (choice(one, base) for one in settings_at(run, terms, rows, np.array(places)))
    return row | {"answer": best, "expected": expected if places[0] != places[1] else None}


def caps_within(document: Row, caps: "CapAdvice", percents: Sequence[float | None]) -> list[Row]:
    """As `clocks_within`, of a document whose answer is a power cap."""
    from mlscale.advice.caps import choose_cap

    found: list[Row] = []
    base = {axis: step for axis, step in document["base"].items() if axis != "power_cap_w"}
    for percent in percents:
        limits = replace(caps.limits, max_slowdown_percent=percent, max_time_ms=None)
        best = choose_cap(caps.runs, caps.objective, limits)
        offers = dict(best.menu)
        if percent is None and None in offers:  # else the usual limit would hold
            offer = offers[None]
            best = replace(best, best=offer or best.best, helps=offer is not None, expected=None)
        found.append({**document, "limits": asdict(limits), **cap_answer(best, base)})
    return found
