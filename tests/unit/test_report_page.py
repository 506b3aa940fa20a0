"""The report as a page: its parts, known truth in them, and nothing but text from outside."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import made
import numpy as np
import pytest
from html_page import Node, parse
from hypothesis import given, settings
from hypothesis import strategies as st
from tidy import refused

from mlscale import ConfigGrid, Model, Profiles, Surfaces, train
from mlscale.predictors import Predictor
from mlscale.report.page.document import Source, page
from mlscale.report.page.markup import visible

MID = made.GRID.mid  # cu=8, engine=800, memory=700
SOURCE = Source("model.mlscale", "profile.csv", "mlscale report model.mlscale profile.csv")
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section"),
    *("h1", "h2", "h3", "h4", "p", "a", "ul", "li", "dl", "dt", "dd", "div", "span", "pre"),
    *("table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary"),
    *("svg", "g", "rect", "text", "line", "circle", "polyline", "polygon"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "id", "class", "href", "rel", "scope"),
    *("role", "aria-label", "viewbox", "width", "height", "x", "y", "rx", "cx", "cy", "r"),
    *("x1", "y1", "x2", "y2", "points", "fill", "stroke", "stroke-width", "stroke-dasharray"),
    *("text-anchor", "transform"),
}


@cache
def trained(name: str = "nearest", power: bool = True) -> Model:
    """Of kernels that scale by known laws; the nearest kernel is of the same law, exactly."""
    return train(made.measurements(power=power), MID, name, neighbours=1, clusters=4)


def new_profiles(power: bool = True, grid: ConfigGrid = made.GRID) -> Profiles:
    """A kernel of each law that the model has not seen: compute0, bandwidth0, …"""
    found = made.measurements(per_group=1, grid=grid, power=power, seed=1).profiles(grid.mid)
    return replace(found, kernels=tuple(f"new {name}" for name in found.kernels))


def report(
    model: Model | None = None,
    profiles: Profiles | None = None,
    kernels: Sequence[int] = (0,),
    source: Source = SOURCE,
) -> Node:
    return parse(page(model or trained(), profiles or new_profiles(), kernels, source))


def cells(root: Node, quantity: str) -> dict[tuple[float, float, float], tuple[str, list[str]]]:
    """What the heat maps of a quantity show: by configuration the number and the marks."""
    found = {}
    for svg in root.all("svg"):
        title = svg.all("title")[0].text
        if not (title.startswith(quantity) and "compute units, " in title):
            continue
        cu = float(title.split(" compute units")[0].rpartition(" ")[2])
        labels = [t for t in svg.all("text") if t not in svg.one_level_texts()]
        rects = {id(c): c.all("rect")[0].attributes for c in svg.all("g", "cell")}
        engines = {float(t.attributes["x"]): t.text for t in labels}
        for cell in svg.all("g", "cell"):
            rect = rects[id(cell)]
            middle = float(rect["x"]) + float(rect["width"]) / 2
            memory = next(
                t.text
                for t in labels
                if t.attributes["text-anchor"] == "end"
                and 0 < float(t.attributes["y"]) - float(rect["y"]) < 40
            )
            key = (cu, float(engines[middle]), float(memory))
            found[key] = (cell.texts("text")[0], [k for k in cell.kinds if k != "cell"])
    return found
