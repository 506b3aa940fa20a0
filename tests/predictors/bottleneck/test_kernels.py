"""What kernels ask of a GPU before any model, by hand: waves, the issue of busy CUs, peaks."""

import numpy as np
import pytest

from mlscale import ConfigGrid
from mlscale.counters.kernel_use import KernelUse
from mlscale.predictors.bottleneck.curve import (
    LEAST_PEAK,
    TYPICAL_SOFTNESS,
    GpuPeaks,
    KernelLoad,
    KernelTraits,
    active_issue,
    waves_per_simd,
)

GRID = ConfigGrid((8, 16), (500.0, 1000.0), (700.0,))
BASE = GRID.highest
NAN = float("nan")


def use(**numbers: list[float]) -> KernelUse:
    """Kernels of which the rest is not known."""
    count = len(next(iter(numbers.values())))
    names = KernelUse.__dataclass_fields__
    return KernelUse(**{name: np.array(numbers.get(name, [NAN] * count)) for name in names})


def traits(of: KernelUse) -> KernelTraits:
    """Those of kernels whose requests in flight are not known."""
    return KernelTraits(of, np.full(len(of.memory), NAN))


def test_waves_of_a_simd_are_those_of_the_fullest_cu() -> None:
    """Of four SIMDs: 160 workgroups of 8 waves are 10 on each of 16 CUs, 4 leave most CUs idle."""
    of_three = use(workgroups=[160.0, 4.0, 16.0], waves_per_workgroup=[8.0, 8.0, NAN])
    waves = waves_per_simd(of_three, np.array([8.0, 16.0]))
    assert waves.tolist() == [[40, 20], [2, 2], [1, 1]]


def test_the_issue_is_that_of_the_cus_that_have_work() -> None:
    """4 workgroups keep 4 of 16 CUs busy: a tenth of all that can be issued is 0.4 of theirs."""
    of_four = use(issue=[0.1, 0.1, 0.1, NAN], workgroups=[4.0, 160.0, NAN, 4.0])
    assert active_issue(of_four, 16) == pytest.approx([0.4, 0.1, 0.1, 0])


def test_peaks_are_the_means_of_the_three_largest() -> None:
    """Of the issue that very many waves would reach: here 20 on each SIMD, but 2 of the last."""
    of_four = use(
        memory=[0.2, 0.5, 0.6, 0.7],
        issue=[0.4, 0.3, 0.2, 0.15],
        workgroups=[160.0, 160.0, 160.0, 4.0],
        waves_per_workgroup=[8.0] * 4,
    )
    gpu = GpuPeaks.from_use("gpu", GRID, BASE, of_four)
    assert gpu.memory_peak == pytest.approx(0.6)
    many, few = (1 + TYPICAL_SOFTNESS / waves for waves in (20, 2))
    assert gpu.issue_peak == pytest.approx((0.4 / many + 0.3 / many + 0.6 / few) / 3)
    assert GpuPeaks.from_use("gpu", GRID, BASE, use(memory=[0.5])).issue_peak == LEAST_PEAK


def test_the_load_is_relative_to_the_peaks() -> None:
    gpu = GpuPeaks("gpu", GRID, BASE, 0.8, 0.5)
    one = use(memory=[0.4], issue=[0.1], workgroups=[4.0], waves_per_workgroup=[8.0])
    load = KernelLoad.from_traits(traits(one), gpu, np.array([8.0, 16.0]), 2)
    assert (load.memory.tolist(), load.issue.tolist()) == ([0.5], pytest.approx([0.8]))
    assert (load.waves_at_base.tolist(), load.waves.tolist()) == ([2], [[2, 2]])


def test_waves_that_a_cu_cannot_hold_take_turns() -> None:
    """A CU holds 64 waves, of 8 in a workgroup: 8 workgroups.

    1600 on 16 CUs fill each 12.5 times, on 8 CUs 25 times; 128 once and twice; 96 fill 16 CUs for
    three quarters, 8 CUs 1.5 times; 64 fill 8 CUs once, and 4 leave most of them idle.
    """
    gpu = GpuPeaks("gpu", GRID, BASE, 0.8, 0.5)
    of_five = use(
        workgroups=[1600.0, 128.0, 96.0, 64.0, 4.0],
        waves_per_workgroup=[8.0] * 5,
        resident_waves=[64.0] * 5,
    )
    turns = KernelLoad.from_traits(traits(of_five), gpu, np.array([8.0, 16.0]), 2).turns
    assert np.exp(turns[:, 0]) == pytest.approx([2, 2, 1.5, 1, 1])
    assert (turns[:, 1] == 0).all()


def test_a_cu_holds_one_workgroup_at_least() -> None:
    """32 workgroups of 8 waves, of which a CU is said to hold 4: two turns each, or four."""
    gpu = GpuPeaks("gpu", GRID, BASE, 0.8, 0.5)
    one = use(workgroups=[32.0], waves_per_workgroup=[8.0], resident_waves=[4.0])
    turns = KernelLoad.from_traits(traits(one), gpu, np.array([4.0, 8.0, 32.0]), 2).turns
    assert np.exp(turns) == pytest.approx(np.array([[4, 2, 0.5]]))


def test_the_unit_is_that_of_the_cus_that_have_work() -> None:
    """4 workgroups on 16 CUs: a fifth of all tensor cores is four fifths of those of 4 CUs."""
    gpu = GpuPeaks("gpu", GRID, BASE, 0.8, 0.5)
    of_three = use(unit=[0.2, 0.2, NAN], workgroups=[4.0, 160.0, 160.0])
    load = KernelLoad.from_traits(traits(of_three), gpu, np.array([8.0, 16.0]), 2)
    assert load.unit == pytest.approx([0.8, 0.2, 0])
