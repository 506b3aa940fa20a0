"""Blocks that several sections use: tables, lists, names."""

from collections.abc import Collection, Sequence

from mlscale.data.grid import HardwareConfig
from mlscale.report.markup import Child, Markup, element, joined, shortened

LONGEST_NAME = 90


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[Child]],
    words: Collection[int] = (0,),
    long: int | None = None,
) -> Markup:
    """A table that scrolls by itself; columns are numbers but for those of words, one is long."""
    kinds = ["long" if i == long else None if i in words else "number" for i in range(len(headers))]
    head = [
        element("th", h, class_=kind, scope="col") for h, kind in zip(headers, kinds, strict=True)
    ]
    body = [
        element("tr", *(element("td", c, class_=kind) for c, kind in zip(row, kinds, strict=True)))
        for row in rows
    ]
    whole = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", whole, class_="scroll")


def name(text: str) -> Markup:
    """A name that somebody else gave, set apart so that its writing direction stays its own."""
    return element("span", shortened(text, LONGEST_NAME), class_="name")


def whole_name(text: str) -> Markup:
    """The same, however long it is."""
    return element("span", text, class_="name")


def facts_list(pairs: Sequence[tuple[str, Child]]) -> Markup:
    """Terms and what they are."""
    return element("dl", *(joined(element("dt", t), element("dd", d)) for t, d in pairs))


def bullets(items: Sequence[Child]) -> Markup:
    """A list."""
    return element("ul", *(element("li", item) for item in items))


def line(*children: Child, kind: str | None = None) -> Markup:
    """A paragraph."""
    return element("p", *children, class_=kind)


def spoken(config: HardwareConfig) -> str:
    """A configuration as a reader says it."""
    units = "compute unit" if config.cu_count == 1 else "compute units"
    return f"{config.cu_count} {units}, {config.engine_mhz:g} / {config.memory_mhz:g} MHz"


def names(texts: Sequence[str], most: int) -> Markup:
    """Names one after the other, and how many more there are."""
    shown = joined(*(name(text) for text in texts[:most]), between=", ")
    more = len(texts) - most
    return joined(shown, f" and {more} more" if more > 0 else None)
