"""Reports on made kernels of known laws, read back, for the tests of the page."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from html_page import Node, parse
from parameters import own
from synthetic import kernels as made

from mlscale import ConfigGrid, Model, Profiles, train
from mlscale.report.page import Source, page

MID = made.GRID.mid  # cu=8, engine=800, memory=700
SMALL = ConfigGrid((8,), (400.0, 800.0), (500.0, 700.0))
SOURCE = Source("model.mlscale", "profile.csv", "mlscale report model.mlscale profile.csv")
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section"),
    *("h1", "h2", "h3", "h4", "p", "a", "ul", "li", "dl", "dt", "dd", "div", "span", "pre"),
    *("table", "thead", "tbody", "tfoot", "tr", "th", "td", "small", "figure", "figcaption"),
    *("details", "summary", "svg", "g", "text", "path", "defs", "use"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "id", "class", "href", "rel", "scope"),
    *("role", "aria-label", "title", "colspan", "rowspan", "style"),
    *("viewbox", "width", "height", "x", "y", "d", "transform", "xlink:href"),
}
# Of HTML: a cell's two colours, a scale of colours. Of SVG: as matplotlib
# writes it, with colours of the style sheet.
STYLES = re.compile(
    r"background:#[0-9a-f]{6};color:#[0-9a-f]{6}"
    r"|background:linear-gradient\(to right(,#[0-9a-f]{6})+\)"
)
SVG_STYLES = re.compile(
    r"((fill|stroke|opacity|font|text)(-[a-z]+)?(-[a-z]+)?: "
    r"(var\(--[a-z]+(-\d)?\)|[a-zA-Z]+|[\d.,]+(px)?)(; |$))*"
)


def harmless_styles(root: Node) -> bool:
    """Whether every style attribute sets colours, places and fonts only, and loads nothing."""
    drawn = {id(node) for svg in root.all("svg") for node in svg.nodes()}
    return all(
        (SVG_STYLES if id(node) in drawn else STYLES).fullmatch(node.attributes["style"])
        for node in root.nodes()
        if "style" in node.attributes
    )


@cache
def trained(name: str = "nearest", power: bool = True) -> Model:
    """Of kernels that scale by known laws; the nearest kernel is of the same law, exactly."""
    return train(made.measurements(power=power), MID, name, **own(name, neighbours=1, clusters=4))


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
    if model is None and profiles is None and source is SOURCE:
        return _of_new_profiles(tuple(kernels))
    return parse(page(model or trained(), profiles or new_profiles(), kernels, source))


@cache
def _of_new_profiles(kernels: tuple[int, ...]) -> Node:
    return parse(page(trained(), new_profiles(), kernels, SOURCE))


def map_cells(table: Node) -> list[Node]:
    """The cells of a heat map, from the top left."""
    return [cell for cell in table.all("td") if cell.all("small")]


def cells(root: Node, quantity: str) -> dict[tuple[float, float, float], tuple[str, list[str]]]:
    """What the heat maps of a quantity show: by configuration the number and the marks.

    That cells stand at their clocks is tested with the pictures; here their order is enough.
    """
    shown = {}
    for figure in root.all("figure"):
        for table in figure.all("table", "map"):
            if not table.attributes["aria-label"].startswith(f"{quantity} ["):
                continue
            cu = float(figure.one("figcaption").text.split()[0])
            place = [(e, m) for m in made.GRID.memory_mhz[::-1] for e in made.GRID.engine_mhz]
            for (engine, memory), cell in zip(place, map_cells(table), strict=True):
                number = cell.text.removesuffix(cell.one("small").text)
                shown[cu, engine, memory] = (number, cell.kinds)
    return shown


def marked(root: Node, quantity: str, mark: str) -> list[tuple[float, float, float]]:
    """The configurations with that mark."""
    return [config for config, (_, marks) in cells(root, quantity).items() if mark in marks]


def section(root: Node, heading: str) -> list[Node]:
    """What stands below a heading in its block of a kernel's section."""
    (kernel,) = root.all("section", "kernel")
    for block in kernel.all("div", "block"):
        first, *rest = (child for child in block.content if isinstance(child, Node))
        if first.tag == "h3" and first.text == heading:
            return rest
    raise AssertionError(heading)


def text_of(nodes: Sequence[Node]) -> str:
    return " ".join(node.text for node in nodes)
