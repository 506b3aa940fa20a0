"""What a model of the literature cannot see is unknown, not absent."""

import numpy as np
import pytest
from synthetic.profiled import profiles

from mlscale.papers.wang_chu_inputs import nvprof_counters, uses_texture_path


@pytest.mark.parametrize(
    ("counters", "expected"),
    [  # by hand: more than 1.05 texture transactions per global load
        ({"tex_cache_transactions": 106.0, "gld_transactions": 100.0}, 1.0),
        ({"tex_cache_transactions": 104.0, "gld_transactions": 100.0}, 0.0),
        ({"tex_cache_transactions": 106.0}, np.nan),
        ({"tex_cache_transactions": 0.0}, 0.0),
        ({"gld_transactions": 100.0}, np.nan),
    ],
)
def test_texture_use_is_unknown_without_both_counters(
    counters: dict[str, float], expected: float
) -> None:
    run = nvprof_counters(profiles({name: [value] for name, value in counters.items()}))
    np.testing.assert_array_equal(uses_texture_path(run), [expected])


def test_the_columns_that_requests_lack_are_named() -> None:
    run = nvprof_counters(
        profiles({"gld_transactions": [1.0], "gld_transactions_per_request": [1.0]})
    )
    assert run.lacking_for_requests(("gld_transactions", "gst_transactions")) == [
        "gst_transactions",
        "gst_transactions_per_request",
    ]
