"""The report of `bottleneck`, the default predictor: what it has, and what it must not claim."""

from functools import cache

import numpy as np
import pytest
from predictor_calls import counted
from report_pages import report, section, text_of
from synthetic import bottleneck_kernels as made

from mlscale import Model, Profiles, train

MID = made.CLOCKS.mid

SHARES = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.7, 0.9])


@cache
def model() -> Model:
    return train(made.with_occupancy(made.measurements(8), SHARES), MID, "bottleneck")


def profiles(share: float) -> Profiles:
    """One kernel, with that occupancy."""
    data = made.with_occupancy(made.measurements(4, seed=1), np.full(4, share))
    return data.profiles(MID)


def test_it_has_every_section_with_numbers() -> None:
    page = report(model(), profiles(0.5))
    headings = [node.text for node in page.all("h3")]
    for heading in (
        "Surfaces", "Along each axis through the base", "Time against energy",
        "Best configurations", "Counters", "What is extrapolated",
    ):  # fmt: skip
        assert heading in headings
    assert "90 % intervals" in page.text
    assert page.all("g", "band")  # the intervals along the axes


def test_counters_are_told_apart_by_whether_it_looks_at_them() -> None:
    *_, counters = section(report(model(), profiles(0.5)), "Counters")
    looked_at = {row[0]: row[3] for row in counters.rows()}
    assert looked_at == {
        "dram_read_transactions": "yes",
        "dram_write_transactions": "yes",
        "achieved_occupancy": "not as it is",
    }


def test_outside_the_range_it_is_flagged_and_does_not_claim_the_nearest_trained_value() -> None:
    """It goes on to three standard deviations (predictors/bottleneck_surface.py)."""
    page = report(model(), profiles(0.95))
    assert "occupancy 95 % above trained" in text_of(section(page, "What is extrapolated"))
    assert "nearest value" not in page.text


def test_every_surface_is_predicted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, type(model().predictors["time"]))
    report(model(), profiles(0.5))
    assert [quantity for _, quantity, _ in calls] == ["time", "power"]
