"""Intervals near the base: bounds by hand, what is measured near the base, a GPU's next clock."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from public_tables import measured

import mlscale
from mlscale import ConfigGrid
from mlscale.advice.advise import advise
from mlscale.data.datasets import path
from mlscale.data.grid import HardwareConfig
from mlscale.data.surfaces import Surfaces
from mlscale.model.shipped import model_for, shipped_model
from mlscale.predictors.intervals import NOISE, one_sided_reach, reach, within_reach
from mlscale.readers.reading import import_profile

GRID = ConfigGrid((16, 32), (500.0, 1000.0), (1000.0, 1100.0))
BASE = HardwareConfig(32, 1000.0, 1000.0)
STEEPEST = 1.1  # rise of log time over the log clock: as some GPUs were measured to have
MEASURED = ("gtx980-low", "gtx980-high", "gtx1080ti", "a100", "rtx8000")


def test_reach_by_hand() -> None:
    """ln 2 for half the clock, 1.1 times that of time and 3 of power by the engine clock.

    CUs have no bound.
    """
    two, memory = np.log(2), np.log(1.1)
    of_time, of_power = reach("time", GRID, BASE), reach("power", GRID, BASE)
    assert of_time[1, 1, 0] == of_power[1, 1, 0] == 0
    assert of_time[1, 0, 1] == pytest.approx(STEEPEST * two + memory + NOISE)
    assert of_power[1, 0, 1] == pytest.approx(3 * two + memory + NOISE)
    assert np.isinf(of_time[0]).all()
    assert np.isinf(of_power[0]).all()


def test_one_sided_reach_by_hand() -> None:
    """At half the engine clock: time 1 to 2^1.1 times as long, power an eighth to all of it.

    Nothing is known of another CU count or memory clock; at the base there is the noise.
    """
    for quantity, farthest in (("time", STEEPEST * np.log(2)), ("power", -np.log(8))):
        least, most = one_sided_reach(quantity, GRID, BASE)
        assert least[1, 0, 0] == pytest.approx(min(farthest, 0) - NOISE), quantity
        assert most[1, 0, 0] == pytest.approx(max(farthest, 0) + NOISE), quantity
        assert (least[1, 1, 0], most[1, 1, 0]) == (-NOISE, NOISE)
        assert np.isinf(least[0]).all()
        assert np.isinf(most[0]).all()
        assert np.isinf(least[:, :, 1]).all()
        assert np.isinf(most[:, :, 1]).all()


def test_one_sided_reach_of_time_at_lower_memory_clocks_by_hand() -> None:
    """Half the engine clock and 10/11 of memory's: from 5 % less to twice as long and 10 % more.

    Those two are BEYOND_MEMORY, in logarithms; power keeps to neither side there.
    """
    base = HardwareConfig(32, 1000.0, 1100.0)
    least, most = one_sided_reach("time", GRID, base)
    assert least[1, :, 0].tolist() == [-0.05, -0.05]
    assert most[1, :, 0] == pytest.approx([np.log(2) + 0.1, np.log(1.1) + 0.1])
    assert np.isinf(one_sided_reach("power", GRID, base)[1][1, :, 0]).all()


@pytest.mark.parametrize(
    ("quantity", "value", "ends"),
    [
        ("time", 1.5, (np.exp(-NOISE), 2**STEEPEST * np.exp(NOISE))),
        ("time", 2.5, (2.5 / 2**STEEPEST / np.exp(NOISE), 2.5 * 2**STEEPEST * np.exp(NOISE))),
        ("power", 0.5, (np.exp(-NOISE) / 8, np.exp(NOISE))),
        ("power", 1.1, (1.1 / 8 / np.exp(NOISE), 1.1 * 8 * np.exp(NOISE))),
    ],
)
def test_ends_at_half_the_engine_clock_by_hand(
    quantity: str, value: float, ends: tuple[float, float]
) -> None:
    """A wide interval ends at the law's sides; of a value beyond these, at the reach around it."""
    values = np.full((1, *GRID.shape), value)
    wide = Surfaces(GRID, BASE, values, (), values / 100, values * 100)
    bound = within_reach(wide, quantity)
    assert bound.low is not None
    assert bound.high is not None
    assert (bound.low[0, 1, 0, 0], bound.high[0, 1, 0, 0]) == pytest.approx(ends)


@given(st.floats(0, 3), st.floats(-3, 3))
def test_ends_only_come_nearer_and_hold_the_value(half_width: float, log_value: float) -> None:
    values = np.full((1, *GRID.shape), np.exp(log_value))
    low, high = values * np.exp(-half_width), values * np.exp(half_width)
    bound = within_reach(Surfaces(GRID, BASE, values, (), low, high), "power")
    assert bound.low is not None
    assert bound.high is not None
    assert (bound.low >= low).all()
    assert (bound.high <= high).all()
    assert (bound.low <= values).all()
    assert (bound.high >= values).all()
    within = np.log(bound.high / values) <= reach("power", GRID, BASE) + 1e-9
    assert within.all()
    assert (bound.low[:, 0] == low[:, 0]).all()  # as it was, at another CU count
    assert (bound.high[:, 0] == high[:, 0]).all()


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("base", ["mid", "highest"])
def test_measured_changes_stay_within_it(data_folder: Path, name: str, base: str) -> None:
    """Of what is measured within 15 % of the base at least 95 % is no further off than that."""
    table = measured(data_folder, name)
    at = table.grid.config(base)
    settings, at_base = table.grid.settings(), at.as_dict()
    distance = sum(np.abs(np.log(settings[axis] / at_base[axis])) for axis in settings)
    near = (distance > 0) & (distance < 0.15)
    for quantity in ("time", "power"):
        change = np.abs(np.log(table.relative(quantity, at))).reshape(len(table.kernels), -1)
        within = change <= reach(quantity, table.grid, at).ravel()
        assert within[:, near].mean() >= 0.95, quantity


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("base", ["mid", "highest"])
def test_measured_changes_stay_on_their_side(data_folder: Path, name: str, base: str) -> None:
    """Where the engine clock alone changes 96 % of what is measured is between its ends at least.

    The A100's times are those of whole programs, with the host: 97 %; of all others 98 or more.
    """
    table = measured(data_folder, name)
    at = table.grid.config(base)
    for quantity in ("time", "power"):
        least, most = one_sided_reach(quantity, table.grid, at)
        change = np.log(table.relative(quantity, at))
        within = (least <= change) & (change <= most)
        changes = np.isfinite(least)
        changes[table.grid.index(at)] = False
        assert within[:, changes].mean() >= 0.96, quantity


def test_beyond_the_trained_clocks_it_is_kept_too() -> None:
    """By hand: at 1500 of 800 MHz time falls to (8/15)^1.1 at most, less the noise.

    1000 MHz was trained.
    """
    model = mlscale.load(path("simulated-gcn3.mlscale"))
    profiles = mlscale.read_profiles(path("simulated-gcn3-profile.csv"), model.base, model.device)
    beyond = replace(model.base, engine_mhz=1500.0)
    surfaces = model.extrapolating([beyond]).predict(profiles, coverage=0.99)["time"]
    assert surfaces.low is not None
    [low] = surfaces.low[:, *surfaces.grid.index(beyond)]
    assert low == pytest.approx((8 / 15) ** STEEPEST * np.exp(-NOISE))


def test_the_next_clock_of_a_gpu_without_training_data() -> None:
    """1965 of 1980 MHz: times within 2.9 %, powers within 4.4 % of what is predicted, by hand."""
    clocks = {"engine_mhz": 1980, "memory_mhz": 2619}
    export = path("h100-by-hand.csv")
    profiles = import_profile(export, device="h100-sxm5", base=clocks, power=520)
    _, model = shipped_model(profiles)
    advice = advise(model_for(model, profiles), profiles, "energy")
    for quantity, percent in (("time", 2.9), ("power", 4.4)):
        surfaces = advice.surfaces[quantity]
        assert surfaces.high is not None
        next_clock = surfaces.grid.index(HardwareConfig(132, 1965, 2619))
        most = 100 * (surfaces.high / surfaces.values - 1)[:, *next_clock]
        assert (most > 1).all()
        assert (most <= percent).all()
