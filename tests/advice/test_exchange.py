"""How much of a run's time exchanges data between GPUs; numbers by hand."""

from mlscale.advice.search import Exchanges


def test_parts_add_up_under_the_first_name() -> None:
    both = Exchanges(10.0, 0.0) + Exchanges(5.0, 3.0, "one") + Exchanges(5.0, 2.0, "other")
    assert both == Exchanges(20.0, 5.0, "one")
    assert both.warnings[0].startswith("25.0 % of the run's time is in kernels that exchange data")
