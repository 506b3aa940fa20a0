"""A chart of the report is drawn once for the same numbers, for the tests of what is around it."""

import pickle
from typing import Any

import pytest

from mlscale.report import charts, levers, sections, whole_run
from mlscale.report.markup import Markup

_drawn: dict[object, Markup] = {}
_draw = charts.svg


class _Chart:
    """What a chart is drawn of, until it is asked for."""

    def __init__(self, kind: str, arguments: tuple[Any, ...]) -> None:
        self.kind, self.arguments = kind, arguments


def _svg(chart: _Chart, title: str, salt: str) -> Markup:
    key = chart.kind, pickle.dumps(chart.arguments), title, salt
    if key not in _drawn:
        figure = getattr(charts, chart.kind)(*chart.arguments)
        _drawn[key] = _draw(figure, title, salt)
    return _drawn[key]


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of this test take their charts from those that were drawn before."""
    monkeypatch.setattr(charts, "svg", _svg)
    for module in (sections, whole_run, levers):
        for kind in ("axis_chart", "front_chart", "roofline_chart"):
            if hasattr(module, kind):
                monkeypatch.setattr(module, kind, lambda *given, kind=kind: _Chart(kind, given))


def forget() -> None:
    """Draw every chart anew."""
    _drawn.clear()
