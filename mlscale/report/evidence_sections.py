"""Sections on what a prediction rests on: features, neighbours, clusters, what is unusual."""

from collections.abc import Mapping

import numpy as np

from mlscale.counters.kernel_use import MEANINGS
from mlscale.predictors.explanation import Explanation
from mlscale.report.blocks import bullets, line, name, names, table
from mlscale.report.kernel_report import Facts
from mlscale.report.markup import Child, Markup, element, joined
from mlscale.report.numbers import number
from mlscale.report.range_bar import strip

_NEIGHBOURS = 5
_MEMBERS = 6


def features(facts: Facts, status: Mapping[str, object], others: list[str]) -> Markup:
    """The kernel's features against the training range.

    status: how the profiler gives a feature, 'exact', 'nearest' or 'missing', where that is
    known; others: the profile's counters that no feature is.
    """
    heading = element("h3", "Counters against the training range")
    explanation = facts.explanations.get("time")
    if explanation is None:
        return joined(heading, line("This predictor looks at no counters, or does not say which."))
    rows = [
        _feature(explanation, f, facts.position, str(status.get(feature, "")))
        for f, feature in enumerate(explanation.names)
    ]
    missing = [
        feature
        for f, feature in enumerate(explanation.names)
        if np.isnan(explanation.values[facts.position, f])
    ]
    looked_at = [counter for counter in others if counter in facts.looked_at]
    unused = [counter for counter in others if counter not in facts.looked_at]
    headers = ["feature", "in the range", "this kernel", "lowest trained", "highest trained"]
    headers.append("note")
    return joined(
        heading,
        line(
            f"{len(rows)} features of the kind '{explanation.kind}', computed from the profile. "
            "The bar is the range over the training kernels, the dot this kernel; an arrow: "
            "outside the range, where no training kernel tells what happens.",
            kind="soft",
        ),
        table(headers, rows, words=(0, 1, 5)),
        _named("Missing: ", missing),
        _named("Counters that the model looks at beside them: ", looked_at),
        _named("In the profile, but not used as they are: ", unused),
    )


def _named(text: str, counters: list[str]) -> Markup | None:
    return line(text, names(counters, len(counters)), ".") if counters else None


def _feature(explanation: Explanation, f: int, kernel: int, status: str) -> list[Child]:
    value = float(explanation.values[kernel, f])
    low, high = float(explanation.minimum[f]), float(explanation.maximum[f])
    notes = [] if status in ("", "exact") else [f"{status} by the profiler"]
    share = None
    if np.isnan(value):
        stand_in = low + explanation.points[kernel, f] * (high - low)
        notes.insert(0, f"missing, taken as {stand_in:.4g}")
    elif low == high:
        share = 0.5 if value == low else float(np.copysign(2, value - low))
        notes += [] if value == low else ["differs from the one trained value"]
    else:
        share = (value - low) / (high - low)
        if not 0 <= share <= 1:
            side, over = ("below", -share) if share < 0 else ("above", share - 1)
            notes.insert(0, f"{side} the range by {100 * over:.3g} % of it")
    feature = explanation.names[f]
    if feature in MEANINGS:
        notes.append(MEANINGS[feature])
    shown = "missing" if np.isnan(value) else f"{value:.4g}"
    return [
        name(feature),
        strip(feature, share),
        shown,
        f"{low:.4g}",
        f"{high:.4g}",
        "; ".join(notes),
    ]


def neighbours(facts: Facts) -> Markup:
    """The nearest training kernels, and the clusters that were chosen."""
    explanation = facts.explanations.get("time")
    clusters = any(each.choices for each in facts.explanations.values())
    heading = element("h3", "Nearest training kernels" + (" and clusters" if clusters else ""))
    if explanation is None:
        return joined(heading, line("This predictor has none to show."))
    parts: list[Child] = [heading]
    near = explanation.nearest(facts.position, _NEIGHBOURS)
    if near:
        usual = explanation.usual_distance()
        beside = ""
        if usual is not None:
            beside = (
                f" Between training kernels the nearest other is {number(usual, 3)} away (median)."
            )
        parts += [
            line(
                "Distance in the features above, each scaled to 0 to 1 by its training range."
                + beside,
                kind="soft",
            ),
            table(
                ["training kernel", "distance"],
                [[name(kernel), number(distance, 3)] for kernel, distance in near],
            ),
        ]
    else:
        parts.append(
            line(
                "The model file does not keep the training kernels' features, so the nearest "
                "ones cannot be named; a model trained with this version keeps them."
            )
        )
    if not clusters:
        parts.append(line("This predictor sorts kernels into no clusters."))
    for quantity, each in facts.explanations.items():
        if each.choices:
            parts += [
                element("h4", f"Clusters chosen for {quantity}"),
                table(
                    ["region", "cluster", "training kernels that are given the same cluster"],
                    [_choice(each, s, facts.position) for s in range(len(each.choices))],
                    words=(0, 1, 2),
                    long=2,
                ),
            ]
    return joined(*parts)


def _choice(explanation: Explanation, s: int, kernel: int) -> list[Child]:
    choice = explanation.choices[s]
    chosen = int(choice.chosen[kernel])
    same: Child = "not kept in the model file"
    if choice.training is not None and explanation.training is not None:
        positions = np.flatnonzero(choice.training == chosen)
        kernels = [explanation.training.kernels[n] for n in positions]
        same = names(kernels, _MEMBERS) if kernels else "none"
    return [choice.region, f"{chosen + 1} of {choice.count}", same]


def extrapolation(facts: Facts) -> Markup:
    """What lies outside the training data, and the flags that `predict` prints."""
    flags: list[Child] = list(facts.flags)
    parts: list[Child] = [element("h3", "What is extrapolated")]
    if flags:
        parts += [line("Flags, as predict prints them:"), bullets(flags)]
    else:
        inside = "every feature lies inside the training range" if facts.explanations else "none"
        parts.append(line(f"Flags: {inside}."))
    parts.append(
        line(
            f"All {facts.grid.size} configurations shown are steps of the model's grid; none is "
            "interpolated or outside it."
        )
    )
    if facts.was_trained_on:
        parts.append(line("A kernel of this name is among the training kernels."))
    return joined(*parts)
