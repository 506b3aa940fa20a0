"""What holds of any prediction, whatever the counters: of every predictor and shipped model.

Ends in order, factors of exactly 1 at the base, energy as time x power, and more clocks never
slower where the predictor's law is so. That more power cap is never slower: advice/test_caps.py.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_files import trained
from synthetic import profiled

from mlscale import HardwareConfig, Model, Profiles, read
from mlscale.data.datasets import path
from mlscale.model.model import load
from mlscale.model.shipped import model_for
from mlscale.predictors import PREDICTORS

H100 = HardwareConfig(132, 1755.0, 2619.0)
SHIPPED = {
    "simulated-gcn3": ("simulated-gcn3", HardwareConfig(16, 800.0, 700.0)),
    "kernels": ("h100-sxm5", H100),
    "runs": ("h100-sxm5", H100),
}
NEVER_SLOWER = (
    *("no-scaling", "engine-bound", "core-bound", "memory-bound", "max-overlap"),
    "runs",
)
factors = st.lists(st.floats(0.25, 4), min_size=3, max_size=3)


@cache
def case(name: str) -> tuple[Model, Profiles]:
    """A model and profiles to ask it: a small one of a predictor's, or a shipped one."""
    if name not in SHIPPED:
        return trained(name)
    device, base = SHIPPED[name]
    model = load(path(f"{name}.mlscale"))
    if name == "simulated-gcn3":
        return model, read(path("simulated-gcn3.parquet")).profiles(base)
    is_sampled = name != "kernels"
    shares = (
        {"sm_active": 0.7, "dram_active": 0.4, "gpu_utilisation": 0.9}
        if is_sampled
        else {"dram_utilisation": 0.4, "core_utilisation": 0.5}
    )
    profiles = profiled.profiles(
        {name: [value, value / 2] for name, value in shares.items()}, [1.0, 20.0], base, device,
        power_w=np.array([150.0, 220.0]),
        metadata={"profile_kind": "sampled"} if is_sampled else {},
    )  # fmt: skip
    return model_for(model, profiles), profiles


def changed(profiles: Profiles, times: list[float]) -> Profiles:
    """The profiles with other times and powers, and counters that are no higher."""
    counters = profiles.counters * min(times[0], 1)
    power_w = None if profiles.power_w is None else profiles.power_w * times[1]
    return replace(
        profiles, time_ms=profiles.time_ms * times[2], power_w=power_w, counters=counters
    )


@pytest.mark.parametrize("name", [*PREDICTORS, *SHIPPED])
@settings(max_examples=8)
@given(times=factors)
def test_ends_base_and_energy(name: str, times: list[float]) -> None:
    model, profiles = case(name)
    profiles = changed(profiles, times)
    predictions = model.predict(profiles, 0.9)
    base = predictions.grid.index(profiles.base)
    for surfaces in predictions.surfaces.values():
        np.testing.assert_allclose(surfaces.values[(slice(None), *base)], 1, rtol=1e-15)
        if surfaces.low is not None and surfaces.high is not None:
            known = ~np.isnan(surfaces.values)  # power at another memory clock is not
            assert known[..., base[2]].all()
            low, value, high = (
                ends[known] for ends in (surfaces.low, surfaces.values, surfaces.high)
            )
            assert (low > 0).all()
            assert (low <= value).all()
            assert (value <= high).all()
            assert np.isfinite(high).all()
    columns = predictions.columns(list(predictions.grid))
    if "energy_mj" in columns:
        np.testing.assert_allclose(
            columns["energy_mj"], columns["time_ms"] * columns["power_w"], rtol=1e-12
        )


@pytest.mark.parametrize("name", NEVER_SLOWER)
@settings(max_examples=8)
@given(times=factors)
def test_more_clocks_are_never_slower(name: str, times: list[float]) -> None:
    model, profiles = case(name)
    values = model.predict(changed(profiles, times))["time"].values
    for axis in (2, 3):
        assert (np.diff(values, axis=axis) <= 1e-12).all()
