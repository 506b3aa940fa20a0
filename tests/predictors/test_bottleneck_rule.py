"""Wang and Chu's rule beside the bottleneck curve: kernels whose counters it cannot use."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from synthetic import bottleneck_kernels as made
from synthetic.profiled import some_of

from mlscale import Measurements, Profiles
from mlscale.predictors.bottleneck import fit as bottleneck_fit
from mlscale.predictors.bottleneck import training
from mlscale.predictors.bottleneck.estimator import Bottleneck

MID = made.CLOCKS.mid
LEFT_OUT = "Wang and Chu's rule left out: its counters lack or contradict"
FURTHER = {
    "warps": 1e4,
    "achieved_occupancy": 0.5,
    "inst_per_warp": 1000.0,
    "l2_read_transactions": 1e7,
    "l2_write_transactions": 1e7,
    "shared_load_transactions": 0.0,
    "shared_store_transactions": 0.0,
}


def with_all_counters(kernels: int, seed: int = 0) -> Measurements:
    """Made kernels with every counter of the rule, of which all but the traffic are alike."""
    table = made.measurements(kernels, seed=seed)
    shape = (*table.counter_samples.shape[:-1], len(FURTHER))
    more = np.broadcast_to(list(FURTHER.values()), shape)
    return replace(
        table,
        counter_names=(*table.counter_names, *FURTHER),
        counter_samples=np.concatenate([table.counter_samples, more], axis=-1),
    )


def changed(table: Any, kernel: int, counter: str, value: float) -> Any:
    """Measurements or profiles with one counter of one kernel changed."""
    at = table.counter_names.index(counter)
    if isinstance(table, Profiles):
        counters = table.counters.copy()
        counters[kernel, at] = value
        return replace(table, counters=counters)
    counters = table.counter_samples.copy()
    counters[:, kernel, ..., at] = value
    return replace(table, counter_samples=counters)


@pytest.fixture(scope="module")
def trained() -> Bottleneck:
    return Bottleneck(intervals=False).fit(with_all_counters(8), MID)


@pytest.mark.parametrize(
    ("counter", "value"), [("inst_per_warp", np.nan), ("achieved_occupancy", 1.5)]
)
def test_it_is_left_out_for_that_kernel_alone(
    trained: Bottleneck, counter: str, value: float
) -> None:
    """Missing or contradictory: flagged; another kernel is predicted as before, to the bit."""
    assert trained.time_.uses_other
    usual = with_all_counters(3, seed=1).profiles(MID)
    found, before = trained.predict(changed(usual, 1, counter, value)), trained.predict(usual)
    assert [LEFT_OUT in flags for flags in found.flags] == [False, True, False]
    assert (found.values[[0, 2]] == before.values[[0, 2]]).all()
    assert np.isfinite(found.values).all()
    assert (found.values[1] != before.values[1]).any()


def test_without_the_column_it_is_left_out_for_all(trained: Bottleneck) -> None:
    usual = with_all_counters(3, seed=1).profiles(MID)
    kept = [f for f, name in enumerate(usual.counter_names) if name != "warps"]
    names = tuple(usual.counter_names[f] for f in kept)
    found = trained.predict(replace(usual, counter_names=names, counters=usual.counters[:, kept]))
    assert all(LEFT_OUT in flags for flags in found.flags)


def test_a_training_kernel_may_lack_its_counters() -> None:
    """Its time is learnt by the curve alone, and the rule stays for the others."""
    table = changed(with_all_counters(8), 2, "inst_per_warp", np.nan)
    model = Bottleneck().fit(table, MID)
    assert model.time_.uses_other
    profiles = table.profiles(MID)
    flags = model.predict(profiles).flags
    assert [LEFT_OUT in own for own in flags] == [k == 2 for k in range(8)]
    alone = model.predict(some_of(profiles, [2])).values[0]
    assert alone == pytest.approx(model.predict(profiles).values[2], rel=1e-12)


def test_gradient_with_such_a_kernel() -> None:
    """Against finite differences, away from the start."""
    table = changed(with_all_counters(5), 2, "inst_per_warp", np.nan)
    _, data, _ = bottleneck_fit._time_data(table, MID, uses_other=True)
    assert data.other is not None
    assert np.isnan(data.other).all(axis=1).tolist() == [False, False, True, False, False]
    layout = training.layout([data], 5, 1)
    objective = training.Objective([data], np.eye(5) + 0.1, layout, 1, 0.25)
    start, sd = training.priors(layout, 1, 1)
    x = start + 0.3 * sd * np.random.default_rng(1).normal(size=len(start))
    numeric = approx_fprime(x, lambda v: objective(v)[0], 1e-7)
    assert objective(x)[1] == pytest.approx(numeric, rel=1e-3, abs=2e-2)
