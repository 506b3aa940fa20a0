"""The charts of pages are drawn once for the same numbers, however many pages show them."""

import charts_once
import pytest


@pytest.fixture(autouse=True)
def charts_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    charts_once.use(monkeypatch)
