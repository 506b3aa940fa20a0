"""Sections that a decision needs: the Pareto front, and the best configurations."""

import numpy as np

from mlscale.advice.objectives import objective_values, pareto_front, saving_percent
from mlscale.report.blocks import line, spoken, table
from mlscale.report.charts import scatter
from mlscale.report.kernel_report import UNITS, Facts
from mlscale.report.markup import Child, Markup, element, joined
from mlscale.report.numbers import number, percent

_NAMES = {
    "time": "shortest time",
    "energy": "lowest energy",
    "edp": "lowest energy x delay (EDP)",
    "ed2p": "lowest energy x delay^2 (ED2P)",
    "power": "lowest power",
}


def pareto(facts: Facts) -> Markup:
    """Time against energy, and the configurations that no other beats in both."""
    heading = element("h3", "Time against energy")
    if facts.what_lacks:
        return joined(heading, line(facts.what_lacks))
    time, energy = (facts.quantities[q].ravel() for q in ("time", "energy"))
    front = pareto_front(time, energy)
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
    needed = {"time": "time", "power": "power"}
    possible = [name for name in _NAMES if needed.get(name, "energy") in facts.quantities]
    rows = [_best(facts, objective) for objective in possible]
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
        line(facts.what_lacks) if facts.what_lacks else None,
    )


def _best(facts: Facts, objective: str) -> list[Child]:
    """One row: the configuration, the saving, and the quantities there."""
    index = facts.best(objective)
    values = objective_values(objective, facts.quantities["time"], facts.quantities.get("power"))
    there = spoken(facts.config(index)) + (" (base)" if index == facts.base else "")
    saving = float(saving_percent(values[index], values[facts.base]))
    quantities = [number(values[index]) for values in facts.quantities.values()]
    return [_NAMES[objective], there, f"{saving:.1f} %", *quantities]
