"""HTML read back strictly: every tag closed in order, no attribute twice; then asked by name."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr"}


@dataclass
class Node:
    """An element: its attributes and what is in it, in order."""

    tag: str
    attributes: dict[str, str]
    content: list["Node | str"] = field(default_factory=list)

    def nodes(self) -> Iterator["Node"]:
        """This element and all below it, in document order."""
        yield self
        for child in self.content:
            if isinstance(child, Node):
                yield from child.nodes()

    def all(self, tag: str, kind: str | None = None) -> list["Node"]:
        """Every element of that tag below, of that class if one is given."""
        return [
            node
            for node in self.nodes()
            if node.tag == tag and (kind is None or kind in node.kinds)
        ]

    def one(self, tag: str, kind: str | None = None) -> "Node":
        """The only such element."""
        (found,) = self.all(tag, kind)
        return found

    @property
    def kinds(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        """All text inside."""
        return "".join(child if isinstance(child, str) else child.text for child in self.content)

    def texts(self, tag: str, kind: str | None = None) -> list[str]:
        """The text of every such element."""
        return [node.text for node in self.all(tag, kind)]

    def rows(self) -> list[list[str]]:
        """The cells of a table's body."""
        return [row.texts("td") for row in self.one("tbody").all("tr")]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        assert all(value is not None for _, value in attrs), (tag, attrs)
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].content.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open[-1].tag, (tag, self.open[-1].tag)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].content.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def parse(text: str) -> Node:
    """The root of what is parsed; fails on a tag that is not closed in its turn."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root
