"""Reports on made kernels of known laws, read back, for the tests of the page."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from html_page import Node, parse
from synthetic import kernels as made

from mlscale import ConfigGrid, Model, Profiles, train
from mlscale.report.page import Source, page

MID = made.GRID.mid  # cu=8, engine=800, memory=700
SMALL = ConfigGrid((8,), (400.0, 800.0), (500.0, 700.0))
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
    """What the heat maps of a quantity show: by configuration the number and the marks.

    That cells stand at their clocks is tested with the pictures; here their order is enough.
    """
    found = {}
    for figure in root.all("figure"):
        title = figure.one("svg").all("title")[0].text
        if title.startswith(f"{quantity} ["):
            cu = float(figure.one("figcaption").text.split()[0])
            place = [(e, m) for m in made.GRID.memory_mhz[::-1] for e in made.GRID.engine_mhz]
            for (engine, memory), cell in zip(place, figure.all("g", "cell"), strict=True):
                marks = [kind for kind in cell.kinds if kind != "cell"]
                found[cu, engine, memory] = (cell.texts("text")[0], marks)
    return found


def marked(root: Node, quantity: str, mark: str) -> list[tuple[float, float, float]]:
    """The configurations with that mark."""
    return [config for config, (_, marks) in cells(root, quantity).items() if mark in marks]


def section(root: Node, heading: str) -> list[Node]:
    """What stands between a heading of a kernel's section and the next one."""
    (kernel,) = root.all("section", "kernel")
    children = [child for child in kernel.content if isinstance(child, Node)]
    start = next(i for i, c in enumerate(children) if c.tag == "h3" and c.text == heading)
    rest = children[start + 1 :]
    end = next((i for i, c in enumerate(rest) if c.tag in ("h3", "details")), len(rest))
    return rest[:end]


def text_of(nodes: Sequence[Node]) -> str:
    return " ".join(node.text for node in nodes)
