"""The report of `bottleneck`, the default predictor: what it has, and what it must not claim.

Made kernels; a training occupancy of 90 % at most, so that 95 % is outside.
"""

import numpy as np
from report_pages import report, section, text_of
from synthetic import bottleneck_kernels as made

from mlscale import train

SHARES = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.7, 0.9])


def test_it_has_every_section_and_says_what_it_looks_at_and_extrapolates() -> None:
    """It goes on to three standard deviations (predictors/bottleneck), not to the nearest value."""
    training = made.with_occupancy(made.measurements(8), SHARES)
    model = train(training, made.CLOCKS.mid, "bottleneck")
    outside = made.with_occupancy(made.measurements(4, seed=1), np.full(4, 0.95))
    page = report(model, outside.profiles(made.CLOCKS.mid))
    headings = [node.text for node in page.all("h3")]
    for heading in (
        "Surfaces", "Along each axis through the base", "Time against energy",
        "Best configurations", "Counters", "What is extrapolated",
    ):  # fmt: skip
        assert heading in headings
    assert "90 % intervals" in page.text
    assert page.all("g", "band")  # the intervals along the axes
    *_, counters = section(page, "Counters")
    assert {row[0]: row[3] for row in counters.rows()} == {
        "dram_read_transactions": "yes",
        "dram_write_transactions": "yes",
        "achieved_occupancy": "not as it is",
    }
    assert "occupancy 95 % above trained" in text_of(section(page, "What is extrapolated"))
    assert "nearest value" not in page.text
