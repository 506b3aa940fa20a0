"""Sections that a decision needs: the Pareto front, and the best configurations."""

import numpy as np
from numpy.typing import NDArray

from mlscale.advice import pareto_front
from mlscale.report.numbers import number, percent
from mlscale.report.page.blocks import line, spoken, table
from mlscale.report.page.charts import scatter
from mlscale.report.page.facts import UNITS, Facts, index_of
from mlscale.report.page.markup import Child, Markup, element, joined

Floats = NDArray[np.float64]

OBJECTIVES = {
    "time": "shortest time",
    "energy": "lowest energy",
    "edp": "lowest energy x delay (EDP)",
    "ed2p": "lowest energy x delay^2 (ED2P)",
    "power": "lowest power",
}


def pareto(facts: Facts) -> Markup:
    """Time against energy, and the configurations that no other beats in both."""
    heading = element("h3", "Time against energy")
    if facts.why_no_energy:
        return joined(heading, line(f"Energy is {facts.why_no_energy}."))
    time, energy = (facts.quantities[q].ravel() for q in ("time", "energy"))
    front = np.asarray(pareto_front(time, energy))
    base = int(np.ravel_multi_index(facts.base, facts.grid.shape))
    configs = list(facts.grid)
    order = np.flatnonzero(front)[np.argsort(time[front], kind="stable")]
    rows: list[list[Child]] = [
        [
            spoken(configs[i]) + (" (base)" if i == base else ""),
            number(time[i]),
            percent(time[i] / time[base] - 1),
            number(energy[i]),
            percent(energy[i] / energy[base] - 1),
        ]
        for i in order
    ]
    title = "energy against time of every configuration, with the Pareto front"
    chart = scatter(title, time, energy, front, base)
    caption = element(
        "figcaption",
        "Every configuration; the line joins the Pareto front, the diamond is the base",
    )
    headers = ["on the Pareto front", "time ms", "to base", "energy mJ", "to base"]
    return joined(
        heading,
        line(
            f"{len(order)} of {len(configs)} configurations are on the front: no other is both "
            "as quick and as frugal. The base is "
            + ("one of them." if front[base] else "not one of them."),
        ),
        element(
            "div",
            element("figure", caption, chart, class_="chart plot"),
            table(headers, rows),
            class_="row",
        ),
    )


def best(facts: Facts) -> Markup:
    """The best configuration under each objective, and what it saves against the base."""
    rows = [_best(facts, objective, values) for objective, values in _objectives(facts).items()]
    headers = ["objective", "best configuration", "saving"]
    headers += [f"{quantity} {UNITS[quantity]}" for quantity in facts.quantities]
    return joined(
        element("h3", "Best configurations"),
        line(
            "Over the whole grid, without limits; mlscale advise takes limits on time and power. "
            "The saving is in the objective itself, against the base.",
            kind="soft",
        ),
        table(headers, rows, words=(0, 1)),
        line(f"Power and energy are {facts.why_no_energy}.") if facts.why_no_energy else None,
    )


def _objectives(facts: Facts) -> dict[str, Floats]:
    """Each objective at every configuration, (C, E, M), as far as it can be given."""
    time, energy = facts.quantities["time"], facts.quantities.get("energy")
    if energy is None:
        return {"time": time}
    return {
        "time": time,
        "energy": energy,
        "edp": energy * time,
        "ed2p": energy * time**2,
        "power": facts.quantities["power"],
    }


def _best(facts: Facts, objective: str, values: Floats) -> list[Child]:
    """One row: the configuration, the saving, and the quantities there."""
    index = index_of(values)
    there = spoken(facts.config(index)) + (" (base)" if index == facts.base else "")
    saving = f"{100 * (1 - values[index] / values[facts.base]):.1f} %"
    return [
        OBJECTIVES[objective],
        there,
        saving,
        *(number(q[index]) for q in facts.quantities.values()),
    ]
