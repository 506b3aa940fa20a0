"""The page's HTML: elements, in which all text is escaped, blocks of sections, and changes."""

from collections.abc import Collection, Sequence
from math import isfinite

from mlscale.data.grid import HardwareConfig
from mlscale.text import counted, number, shortened

LONGEST_NAME = 90
_VOID = frozenset({"meta", "br", "hr"})
# From which value on a cost is divided by what, and is then in which unit.
_SCALES = {
    "time_ms": ((1e4, 1e3, "s"), (0, 1, "ms")),
    "power_w": ((0, 1, "W"),),
    "energy_mj": ((1e10, 1e9, "MJ"), (1e7, 1e6, "kJ"), (1e4, 1e3, "J"), (0, 1, "mJ")),
}


class Markup(str):
    """Text that is markup already. Only this module makes it."""

    __slots__ = ()


Child = str | float | None
Attribute = str | float | None


def element(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element with its children; a child that is not Markup is escaped, None is left out.

    Underscores in the names of attributes stand for hyphens, one at the end for nothing
    (`class_`); an attribute that is None is left out. Numbers take six significant digits.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child, between: str = "") -> Markup:
    """Children one after the other, escaped as in an element."""
    return Markup(escaped(between).join(escaped(child) for child in children if child is not None))


def escaped(child: str | float) -> Markup:
    """Return markup as it is, a number in six significant digits, any other text made inert."""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        from html import escape

        return Markup(escape(visible(child)))
    return Markup(f"{child:.6g}")


def visible(text: str) -> str:
    r"""Text with what cannot be printed by its code: a control character as \x07, a mark that
    turns the direction of writing as \u202e, half of a surrogate pair as \ud800.
    """  # noqa: D205
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def style_sheet(css: str) -> Markup:
    """Return a style element. The text is our own: a style element's content cannot be escaped."""
    return Markup(f"<style>{css}</style>")


def picture(svg_content: str, title: str, width: float, height: float) -> Markup:
    """An SVG picture with its name, from content that matplotlib drew of our own words only."""
    return element(
        "svg",
        element("title", title),
        Markup(svg_content),
        role="img",
        aria_label=title,
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
    )


def document(*parts: Markup) -> str:
    """Return a whole HTML document in English from its head and its body."""
    return f"<!DOCTYPE html>\n{element('html', *parts, lang='en')}\n"


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[Child]],
    words: Collection[int] = (0,),
    long: int | None = None,
    sums: Sequence[Sequence[Child]] = (),
) -> Markup:
    """A table that scrolls by itself; columns are numbers but for those of words, one is long.

    sums: rows below all others.
    """
    kinds = ["long" if i == long else None if i in words else "number" for i in range(len(headers))]
    head = [
        element("th", h, class_=kind, scope="col") for h, kind in zip(headers, kinds, strict=True)
    ]

    def lines(rows: Sequence[Sequence[Child]]) -> list[Markup]:
        return [
            element(
                "tr", *(element("td", c, class_=kind) for c, kind in zip(row, kinds, strict=True))
            )
            for row in rows
        ]

    foot = element("tfoot", *lines(sums)) if sums else None
    body = element("tbody", *lines(rows))
    whole = element("table", element("thead", element("tr", *head)), body, foot)
    return element("div", whole, class_="scroll")


def block(*children: Child, is_wide: bool = False) -> Markup:
    """Return what stands in one of two columns on a wide screen, or over both."""
    return element("div", *children, class_="block wide" if is_wide else "block")


def part(heading: str, *children: Child) -> Markup:
    """Return what stands under a heading within a section."""
    return joined(element("h3", heading), *children)


def row(*children: Child) -> Markup:
    """Return what stands side by side as far as the width allows."""
    return element("div", *children, class_="row")


def folded(summary: str, content: Markup) -> Markup:
    """Return what a reader opens by its summary."""
    return element("details", element("summary", summary), content)


def paragraph(*children: Child, kind: str | None = None) -> Markup:
    """Return a paragraph, of a class if one is given."""
    return element("p", *children, class_=kind)


def soft(text: str) -> Markup:
    """Return a paragraph that says how to read what follows."""
    return paragraph(text, kind="soft")


def bullets(items: Sequence[Child]) -> Markup:
    """Return a list."""
    return element("ul", *(element("li", item) for item in items))


def terms(pairs: Sequence[tuple[str, Child]]) -> Markup:
    """Return terms and what they are."""
    return element("dl", *(joined(element("dt", t), element("dd", d)) for t, d in pairs))


def name(text: str, longest: int | None = LONGEST_NAME) -> Markup:
    """A name that somebody else gave, set apart so that its writing direction stays its own.

    longest: the most characters that are shown; None shows all.
    """
    shown = visible(text) if longest is None else shortened(visible(text), longest)
    return element("span", shown, class_="name")


def names(texts: Sequence[str], most: int) -> Markup:
    """Names one after the other, and how many more there are."""
    shown = joined(*(name(text) for text in texts[:most]), between=", ")
    more = len(texts) - most
    return joined(shown, f" and {more} more" if more > 0 else None)


def config_in_words(config: HardwareConfig) -> str:
    """Return a configuration for a reader: '8 compute units, 800 / 700 MHz'."""
    return f"{cu_in_words(config)}, {config.engine_mhz:g} / {config.memory_mhz:g} MHz"


def cu_in_words(config: HardwareConfig) -> str:
    """'1 compute unit', '8 compute units'; of what stands for them 'l2_size 8'."""
    if config.cu_axis:
        return f"{config.cu_axis} {config.cu_count}"
    return counted(config.cu_count, "compute unit")


def times(factor: float) -> str:
    """Return a factor, three significant digits behind the sign of multiplication."""
    return f"\N{MULTIPLICATION SIGN}{number(factor, 3)}"


def percent(share: float) -> str:
    """Return a share as a percentage with its sign, to a tenth: '-12.3 %', '+4.0 %', '0.0 %'."""
    rounded = round(100 * share, 1)
    return f"{rounded:+.1f} %" if rounded else "0.0 %"


def range_in_words(percents: tuple[float, float]) -> str:
    """The ends of an interval of changes [%]."""
    ends = sorted(percents)
    return " to ".join(percent(end / 100) if isfinite(end) else "not known" for end in ends)


def scale_and_unit(value: float, cost: str) -> tuple[float, str]:
    """By what to divide a run's time_ms, power_w or energy_mj for a reader, and its unit then."""
    return next((scale, unit) for least, scale, unit in _SCALES[cost] if value >= least)
