"""The model of time: a common slowing by CU count, and max-overlap beside the curve."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made
from synthetic.profiled import some_of

from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.bottleneck.kernels import KernelTraits

MID = made.CLOCKS.mid
LEFT_OUT = "max-overlap left out: its counters lack or contradict"


@pytest.fixture(scope="module")
def trained() -> Bottleneck:
    return Bottleneck(intervals=False).fit(made.with_all_counters(8), MID)


@pytest.mark.parametrize(
    ("counter", "value"), [("inst_per_warp", np.nan), ("achieved_occupancy", 1.5)]
)
def test_it_is_left_out_for_that_kernel_alone(
    trained: Bottleneck, counter: str, value: float
) -> None:
    """Missing or contradictory: flagged; another kernel is predicted as before, to the bit."""
    assert trained.time_.uses_rule
    usual = made.with_all_counters(3, seed=1).profiles(MID)
    found, before = trained.predict(made.changed(usual, 1, counter, value)), trained.predict(usual)
    assert [LEFT_OUT in flags for flags in found.flags] == [False, True, False]
    assert (found.values[[0, 2]] == before.values[[0, 2]]).all()
    assert np.isfinite(found.values).all()
    assert (found.values[1] != before.values[1]).any()


def test_it_is_a_quarter_of_the_log_time(trained: Bottleneck) -> None:
    """The weight of decision 0008, beside three quarters of the curve."""
    profiles = made.with_all_counters(3, seed=1).profiles(MID)
    kernels, model = KernelTraits.of(profiles, made.CLOCKS, with_rule=True), trained.time_
    bare = model.alone
    both, curve = (
        one.prior(kernels, model.gpus[0], 0).predicted()
        for one in (bare, replace(bare, uses_rule=False))
    )
    assert kernels.rule is not None
    rule = kernels.rule - kernels.rule[:, [made.CLOCKS.size // 2 + 2]]
    assert both == pytest.approx(0.75 * curve + 0.25 * rule, abs=1e-12)


def test_without_the_column_it_is_left_out_for_all(trained: Bottleneck) -> None:
    usual = made.with_all_counters(3, seed=1).profiles(MID)
    kept = [f for f, name in enumerate(usual.counter_names) if name != "warps"]
    names = tuple(usual.counter_names[f] for f in kept)
    found = trained.predict(replace(usual, counter_names=names, counters=usual.counters[:, kept]))
    assert all(LEFT_OUT in flags for flags in found.flags)


def test_a_training_kernel_may_lack_its_counters() -> None:
    """Its time is learnt by the curve alone, and the rule stays for the others."""
    table = made.changed(made.with_all_counters(8), 2, "inst_per_warp", np.nan)
    model = Bottleneck().fit(table, MID)
    assert model.time_.uses_rule
    profiles = table.profiles(MID)
    flags = model.predict(profiles).flags
    assert [LEFT_OUT in own for own in flags] == [k == 2 for k in range(8)]
    alone = model.predict(some_of(profiles, [2])).values[0]
    assert alone == pytest.approx(model.predict(profiles).values[2], rel=1e-12)


def test_a_common_slowing_by_cu_count() -> None:
    """Closed form: an exponent larger by 0.2 makes each kernel's time (CUs / base CUs)^0.2 longer.

    Whatever the kernel, and at every clock. Fitting alone would not tell: numbers that each CU
    count has of its own can stand in for the exponent on the grid that was trained.
    """
    table = made.with_cu_axis(8)
    model = Bottleneck(intervals=False).fit(table, table.grid.mid).time_
    kernels = KernelTraits.of(table.profiles(table.grid.mid), table.grid, with_rule=False)
    slower = replace(model, values=model.values | {"slowing": model.values["slowing"] + 0.2})
    usual, slowed = (
        one.alone.prior(kernels, one.gpus[0], 0).predicted() for one in (model, slower)
    )
    by_cu = 0.2 * np.log(table.grid.settings()["cu_count"] / table.grid.mid.cu_count)
    np.testing.assert_allclose(slowed - usual, np.tile(by_cu, (8, 1)), atol=1e-12)
