"""How a file is recognised."""

from mlscale.profilers.exports.layouts import layout_of


def test_a_header_is_known_by_its_names() -> None:
    assert layout_of(["ID", "name"]) is None
    assert layout_of([]) is None
