"""The report of `bottleneck`, the default predictor: what it has, and what it must not claim."""

from functools import cache

import numpy as np
import pytest
from html_page import Node
from predictor_calls import counted
from report_pages import report, section, text_of
from synthetic import bottleneck_kernels as made

from mlscale import Model, Profiles, train
from mlscale.counters.words import INPUTS, meaning

MID = made.CLOCKS.mid
EVIDENCE = "Counters against the training range"


SHARES = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.7, 0.9])


@cache
def model() -> Model:
    return train(made.with_occupancy(made.measurements(8), SHARES), MID, "bottleneck")


def profiles(share: float) -> Profiles:
    """One kernel, with that occupancy."""
    data = made.with_occupancy(made.measurements(4, seed=1), np.full(4, share))
    return data.profiles(MID)


def feature(page: Node, name: str) -> list[str]:
    rows = section(page, EVIDENCE)[1].rows()
    return next(row for row in rows if row[0] == name)


def test_it_has_every_section_with_numbers() -> None:
    page = report(model(), profiles(0.5))
    headings = [node.text for node in page.all("h3")]
    for heading in (
        "Surfaces", "Along each axis through the base", "Time against energy",
        "Best configurations", EVIDENCE, "Nearest training kernels", "What is extrapolated",
    ):  # fmt: skip
        assert heading in headings
    assert "90 % intervals" in page.text
    assert page.all("g", "band")  # the intervals along the axes
    assert len(section(page, "Nearest training kernels")[1].rows()) == 5


def test_it_has_no_clusters_and_says_so() -> None:
    page = report(model(), profiles(0.5))
    assert "no clusters" in text_of(section(page, "Nearest training kernels"))
    assert "cluster" not in page.text.replace("sorts kernels into no clusters", "")


def test_its_features_are_explained() -> None:
    rows = section(report(model(), profiles(0.5)), EVIDENCE)[1].rows()
    assert {row[0] for row in rows} <= INPUTS.keys()
    assert all(str(meaning(row[0])) in row[5] for row in rows)


def test_counters_are_told_apart_by_whether_it_looks_at_them() -> None:
    *_, counters = section(report(model(), profiles(0.5)), EVIDENCE)
    looked_at = {row[0]: row[3] for row in counters.rows()}
    assert looked_at == {
        "dram_read_transactions": "yes",
        "dram_write_transactions": "yes",
        "achieved_occupancy": "not as it is",
    }


def test_a_missing_feature_is_taken_at_the_mean_of_training() -> None:
    """Of these shares the mean is 0.6 and the median 0.55."""
    skewed = SHARES.copy()
    skewed[-1] = 1.3
    other = train(made.with_occupancy(made.measurements(8), skewed), MID, "bottleneck")
    note = feature(report(other, profiles(np.nan)), "occupancy")[5]
    assert "missing, taken as 60 %" in note


def test_outside_the_range_it_does_not_claim_the_nearest_trained_value() -> None:
    """It goes on to three standard deviations (predictors/bottleneck_surface.py)."""
    page = report(model(), profiles(0.95))
    assert "above the range" in feature(page, "occupancy")[5]
    assert "nearest value" not in page.text


def test_every_surface_is_predicted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, type(model().predictors["time"]))
    report(model(), profiles(0.5))
    assert [quantity for _, quantity, _ in calls] == ["time", "power"]
