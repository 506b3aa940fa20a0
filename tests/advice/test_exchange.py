"""How much of a run's time exchanges data between GPUs; numbers by hand."""

import pytest

from mlscale.advice.exchange import Exchanges


@pytest.mark.parametrize(
    ("own_ms", "beside_ms", "hidden_percent"),
    [
        (3.0, 2.0, 20.0),
        (3.0, 5.0, 30.0),  # no more is hidden than there is
        (3.0, 0.1, 0.0),  # one hundredth is too little to tell
        (10.0, 10.0, 0.0),  # of a run that does nothing else, nothing is hidden
    ],
)
def test_what_other_kernels_hide(own_ms: float, beside_ms: float, hidden_percent: float) -> None:
    """Of a run of 10 ms."""
    found = Exchanges(10.0, own_ms, "ncclKernel", beside_ms).hidden_percent
    assert found == pytest.approx(hidden_percent)


def test_parts_add_up_under_the_first_name() -> None:
    both = Exchanges(10.0, 0.0) + Exchanges(5.0, 3.0, "one", 1.0) + Exchanges(5.0, 2.0, "other")
    assert both == Exchanges(20.0, 5.0, "one", 1.0)
    assert both.warnings[0].startswith("25.0 % of the run's time is in kernels that exchange data")
    assert both.warnings[0].endswith("; 1 ms of them run beside other kernels")
