"""Counts what a predictor is asked for, to show that every surface is predicted once."""

from typing import Any

import pytest

from mlscale.predictors.base import Predictor

Call = tuple[str, str, float | None]


def counted(monkeypatch: pytest.MonkeyPatch, predictor: type[Predictor]) -> list[Call]:
    """The calls of a class's predict and predict_interval from now on, as they come.

    Each is the method, the quantity and the coverage. Calls from one method to another are the
    predictor's own matter and are left out.
    """
    calls: list[Call] = []
    inside = False

    def wrap(method: str) -> None:
        plain = getattr(predictor, method)

        def wrapped(self: Any, profiles: Any, *given: Any, **named: Any) -> Any:
            nonlocal inside
            if inside:
                return plain(self, profiles, *given, **named)
            interval = method == "predict_interval"
            coverage = (given[0] if given else named.get("coverage")) if interval else None
            calls.append((method, self.quantity, coverage))
            inside = True
            try:
                return plain(self, profiles, *given, **named)
            finally:
                inside = False

        monkeypatch.setattr(predictor, method, wrapped)

    for method in ("predict", "predict_interval"):
        if hasattr(predictor, method):
            wrap(method)
    return calls
