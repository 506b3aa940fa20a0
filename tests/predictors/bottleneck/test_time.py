"""The model of time: what CU counts do before any training, and max-overlap beside the curve."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made
from synthetic.profiled import some_of

from mlscale import ConfigGrid
from mlscale.arrays import Floats
from mlscale.counters.kernel_use import KernelUse
from mlscale.predictors.bottleneck.curve import (
    BottleneckCurve,
    GpuPeaks,
    GridRatios,
    KernelLoad,
    KernelTraits,
    curve_priors,
)
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.bottleneck.model import TimeModel

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


GRID = ConfigGrid((8, 16), (700.0, 1400.0), (700.0,))
BASE = GRID.config((1, 1, 0))
PLENTY = 1e6


def by_prior(**numbers: float) -> Floats:
    """Factors of time (C, F) of a kernel before any training, by the means of the priors."""
    names = KernelUse.__dataclass_fields__
    known = {"memory": 0.0, "waves_per_workgroup": 8.0, "resident_waves": 64.0, **numbers}
    use = KernelUse(**{name: np.array([known.get(name, np.nan)]) for name in names})
    load = KernelLoad.of(use, GpuPeaks("gpu", GRID, BASE, 1.0, 1.0), np.array(GRID.cu_count, float))
    priors = curve_priors([GRID], shares=2)
    values = {name: np.full(prior.shape, prior.mean) for name, prior in priors.items()}
    curve = BottleneckCurve.of(np, values, 0, load, GridRatios.of(GRID, BASE))
    return np.asarray(np.exp(curve.log_time(np.zeros((3, 1)))).reshape(2, 2))


@pytest.mark.parametrize("unit", [0.0, 0.3, 1.0])
def test_half_the_cus_take_twice_the_time_where_no_cu_waits_for_another(unit: float) -> None:
    """Closed form: workgroups are dealt to half as many CUs, whatever binds them inside a CU.

    A pipe that no counter shows (0), one in part (0.3), one that is always busy (1). Half the clock
    takes twice the time again. 0.2 % is the share that use of no DRAM leaves to DRAM.
    """
    found = by_prior(unit=unit, issue=0.05, workgroups=PLENTY)
    assert found == pytest.approx(np.array([[4, 2], [2, 1]]), rel=2e-3)


def test_cus_without_work_make_no_difference() -> None:
    """4 workgroups run on 4 CUs, of 8 or of 16."""
    at_8, at_16 = by_prior(unit=0.2, issue=0.05, workgroups=4)
    assert at_8 == pytest.approx(at_16, rel=1e-12)


def test_waiting_waves_that_a_cu_can_still_take_in_make_no_difference() -> None:
    """64 workgroups of 8 waves: 32 waves on each of 16 CUs, or 64 on each of 8, which fit.

    0.1 % is the share that next to no issue leaves to the core: 1.007^(1/3).
    """
    at_8, at_16 = by_prior(issue=0.01, workgroups=64)
    assert at_8 == pytest.approx(at_16, rel=3e-3)


def test_dram_that_is_always_busy_is_busy_for_half_the_cus_too() -> None:
    """The 2 % that its log odds leave to the rest: (0.98 + 0.02 x 2^3)^(1/3) is 1.05 at most."""
    found = by_prior(memory=1.0, issue=0.01, workgroups=PLENTY)
    assert 1 < found[0, 1] < 1.05


def test_an_older_file_with_a_cu_axis_is_refused() -> None:
    """Its exponent was of another law. Without a CU axis none acts, and older files load."""
    several, one = (
        Bottleneck(intervals=False).fit(table, table.grid.mid).time_.state()
        for table in (made.with_cu_axis(8), made.measurements(8))
    )
    for state in (several, one):
        del state["values"]["turning"]
        for part in state["parts"]:
            del part["values"]["turning"]
    with pytest.raises(KeyError, match="turning"):
        TimeModel.restore(several)
    assert TimeModel.restore(one).shares == 1
