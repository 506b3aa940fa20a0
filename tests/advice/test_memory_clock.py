"""The memory clock that is left as it is.

Of a GPU that changes it only as its driver is loaded anew (nvidia-smi(1)), and with a lowest clock.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic import frugal

from mlscale import HardwareConfig, Limits, Measurements, Profiles, advise, train
from mlscale.advice.search import Advice
from mlscale.data.datasets import path
from mlscale.data.profiles import MeasuredPoint
from mlscale.model.shipped import model_for, shipped_model
from mlscale.readers.reading import import_profile

KEPT = (
    "the memory clock is left as it is: h100-sxm5 takes another only when its driver is loaded "
    "anew, and what that saves was measured on other GPUs alone"
)


def gemm() -> Profiles:
    """A kernel of 7.5 % of the peak DRAM bandwidth, counted, at 520 W; made by hand."""
    clocks = {"engine_mhz": 1980, "memory_mhz": 2619}
    both = import_profile(path("h100-by-hand.csv"), device="h100-sxm5", base=clocks)
    return replace(both.select([1]), power_w=np.array([520.0]))


def advised(profiles: Profiles, objective: str | None = None) -> Advice:
    return advise(model_for(shipped_model(profiles)[1], profiles), profiles, objective)


@pytest.mark.parametrize("objective", ["energy", "edp", "power"])
def test_is_left_where_nothing_was_learnt_of_the_gpu(objective: str) -> None:
    """Its least energy is predicted at 1593 MHz, by a law of two boards with another memory."""
    advice = advised(gemm(), objective)
    one = advice.kernels[0]
    assert {point.config.memory_mhz for point in (one.best, *one.front)} == {2619}
    assert KEPT in advice.warnings


def test_is_not_told_where_no_other_is_sought() -> None:
    assert KEPT not in advised(gemm(), "clock").warnings


def test_changes_after_a_run_at_another() -> None:
    profiles = gemm()
    config = replace(profiles.base, memory_mhz=1593.0)
    point = MeasuredPoint(config, profiles.time_ms * 1.01, np.array([480.0]))
    advice = advised(replace(profiles, points=(point,)))
    assert KEPT not in advice.warnings
    assert advice.whole_run.best.config.memory_mhz == 1593


def test_changes_by_a_model_of_the_gpu_itself() -> None:
    base = frugal.MID
    model = replace(train(frugal.measurements(), base, "nearest"), device="h100-sxm5")
    advice = advise(model, replace(frugal.new_kernels(), device="h100-sxm5"), "energy")
    assert not advice.keeps_memory
    assert advice.whole_run.best.config.memory_mhz != base.memory_mhz


def test_other_gpus_are_offered_theirs() -> None:
    """An RTX 3090 lists 5001, 9251 and 9501 MHz, which -lmc sets."""
    clocks = {"engine_mhz": 1695.0, "memory_mhz": 9501.0}
    base = replace(gemm().base, cu_count=82, **clocks)
    profiles = replace(gemm(), device="rtx3090", base=base, power_w=np.array([300.0]))
    assert not advised(profiles).keeps_memory


def test_a_lowest_clock_is_sought_at_the_base_of_a_kernel_that_is_too_slow_too() -> None:
    """Hand: of 2.0 ms 1.9 are allowed. k2 follows the engine clock, 0.8 ms at 1000 MHz.

    k1 stays at 1 ms at all engine clocks, of which the lowest is shown; with the other memory clock
    or two CUs it would take 0.8.
    """
    table = [
        {"application": kernel, "kernel": kernel, "cu_count": cus, "engine_mhz": engine}
        | {"memory_mhz": memory, "loads": follows}
        | {"time_ms": 800 / engine if follows else 0.8 if (cus, memory) != (1, 800) else 1}
        for kernel, follows in (("k1", 0.0), ("k2", 1.0))
        for cus in (1, 2)
        for engine in (500.0, 800.0, 1000.0)
        for memory in (800.0, 1000.0)
    ]
    measured = Measurements.from_frame(pd.DataFrame(table), device="gtx980")
    base = HardwareConfig(1, 800, 800)
    model = train(measured, base, "nearest", neighbours=1)
    advice = advise(model, measured.profiles(base), "clock", Limits(max_time_ms=1.9))
    best = [str(of.best.config) for of in (advice.whole_run, *advice.kernels)]
    at = "cu=1,engine={},memory=800"
    assert best == [at.format(1000), at.format(500), at.format(1000)]
    assert "cannot keep its part of the limit" in advice.kernels[0].flags[-1]
