"""Elements of HTML and SVG. All text is escaped where an element is made, and nowhere else."""

import html

_VOID = frozenset({"meta", "br", "hr"})


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
    """Markup as it is, a number in six significant digits, any other text made inert."""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return Markup(html.escape(visible(child)))
    return Markup(f"{child:.6g}")


def visible(text: str) -> str:
    r"""Text with what cannot be printed by its code: a control character as \x07, a mark that
    turns the direction of writing as \u202e, half of a surrogate pair as \ud800.
    """  # noqa: D205
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, longest: int) -> str:
    """Text of at most that many characters, the middle left out with an ellipsis."""
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - longest :]}"


def style_sheet(css: str) -> Markup:
    """A style element. The text is our own: a style element's content cannot be escaped."""
    return Markup(f"<style>{css}</style>")


def document(*parts: Markup) -> str:
    """A whole HTML document in English from its head and its body."""
    return f"<!DOCTYPE html>\n{element('html', *parts, lang='en')}\n"
