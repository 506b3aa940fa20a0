"""The curve of time: what CU counts do before any training."""

import numpy as np
import pytest

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

GRID = ConfigGrid((8, 16), (700.0, 1400.0), (700.0,))
BASE = GRID.config((1, 1, 0))
PLENTY = 1e6


def by_prior(**numbers: float) -> Floats:
    """Factors of time (C, F) of a kernel before any training, by the means of the priors."""
    names = KernelUse.__dataclass_fields__
    known = {"memory": 0.0, "waves_per_workgroup": 8.0, "resident_waves": 64.0, **numbers}
    use = KernelUse(**{name: np.array([known.get(name, np.nan)]) for name in names})
    traits = KernelTraits(use, np.array([np.nan]))
    gpu = GpuPeaks("gpu", GRID, BASE, 1.0, 1.0)
    load = KernelLoad.from_traits(traits, gpu, np.array(GRID.cu_count, float), 2)
    priors = curve_priors([GRID], shares=2)
    values = {name: np.full(prior.shape, prior.mean) for name, prior in priors.items()}
    curve = BottleneckCurve.from_values(np, values, 0, load, GridRatios.from_grid(GRID, BASE))
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
