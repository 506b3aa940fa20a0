"""The trivial baselines against closed forms, and the two that learn from neighbours and trees."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parameters import own
from synthetic import kernels as made
from synthetic.profiled import BASE, profiles, some_of
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig, Measurements, Profiles, create
from mlscale.notes import Note

MID = made.GRID.mid
GRID = ConfigGrid((8, 16), (500.0, 1000.0), (250.0, 1000.0, 4000.0))  # BASE is 16, 1000, 1000
RATE_BOUND = ("no-scaling", "engine-bound", "core-bound", "memory-bound")

# Time relative to BASE on GRID, by hand: half the engine clock, twice the time, and so on.
ENGINE = np.array([[[2.0] * 3, [1.0] * 3]] * 2)
CORE = np.array([[[4.0] * 3, [2.0] * 3], [[2.0] * 3, [1.0] * 3]])
MEMORY = np.array([[[4.0, 1.0, 0.25]] * 2] * 2)
TIMES = {
    "no-scaling": np.ones((2, 2, 3)),
    "engine-bound": ENGINE,
    "core-bound": CORE,
    "memory-bound": MEMORY,
}


def two_kernels(second: float = 4.0, wide: tuple[float, float] = (0.0, 0.0)) -> Measurements:
    """Two kernels on 1 x 2 x 1 configurations: 8 ms then 2 ms, and 2 ms then 2 x second ms.

    Counters: busy is 0 and 1; wide is as given.
    """
    counters = np.array([[0.0, wide[0]], [1.0, wide[1]]])
    time = np.array([[8.0, 2.0], [2.0, 2.0 * second]]).reshape(1, 2, 1, 2, 1)
    return Measurements(
        device="made-gpu",
        grid=ConfigGrid((4,), (500.0, 1000.0), (700.0,)),
        kernels=("falls", "rises"),
        applications=("falls", "rises"),
        time_samples=time,
        power_samples=1000.0 / time,
        counter_names=("busy", "wide"),
        counter_samples=counters.reshape(1, 2, 1, 1, 1, 2).repeat(2, axis=3),
    )


def at_500_mhz(kernels: Measurements, counters: list[list[float]]) -> Profiles:
    """Profiles of the first of these kernels, with counters of their own."""
    first = some_of(kernels.profiles(kernels.grid.config((0, 0, 0))), range(len(counters)))
    return replace(first, counters=np.array(counters))


class TestRateBound:
    @pytest.mark.parametrize("name", RATE_BOUND)
    def test_time_by_hand(self, name: str) -> None:
        kernels = profiles({"busy": [1.0, 2.0]})
        surfaces = create(name).fit([], []).predict(kernels, GRID)
        np.testing.assert_allclose(surfaces.values, [TIMES[name]] * 2, rtol=1e-12)
        assert surfaces.grid == GRID
        assert surfaces.base == BASE

    @pytest.mark.parametrize("name", RATE_BOUND)
    def test_power_by_hand(self, name: str) -> None:
        # The energy of the work stays, so power is the inverse of time (decision 0006).
        kernels = profiles({"busy": [1.0]})
        surfaces = create(name, quantity="power").fit([], []).predict(kernels, GRID)
        np.testing.assert_allclose(surfaces.values, [1 / TIMES[name]], rtol=1e-12)

    @pytest.mark.parametrize("name", RATE_BOUND)
    def test_its_grid_is_that_of_a_table_unless_given(self, name: str) -> None:
        kernels, measurements = profiles({"busy": [1.0]}), made.measurements()
        with refused(f"'{name}' learnt no grid, so predict must be given one"):
            create(name).fit([], []).predict(kernels)
        predictor = create(name).fit(measurements, MID)
        assert predictor.predict(measurements.profiles(MID)).grid == made.GRID
        assert predictor.predict(measurements.profiles(MID), GRID).grid == GRID


@pytest.mark.parametrize("name", ["mean-surface", "nearest", "extra-trees", "wu"])
def test_tables_that_are_not_one_or_tell_nothing(name: str) -> None:
    table = made.measurements()
    for tables, count in (([], 0), ([table, table], 2)):
        with refused(f"'{name}' learns from one GPU at a time, not from {count} tables"):
            create(name).fit(tables, [MID] * count)
    with refused(f"^'{name}' needs kernels at two settings or more; "):
        create(name).fit(made.measurements(grid=ConfigGrid.spanning([MID])), MID)


class TestMeanSurface:
    def test_by_hand(self) -> None:
        # From 500 MHz the two go to 1/4 and 4, whose geometric mean is 1 (the arithmetic, 2.125).
        kernels = two_kernels()
        base = HardwareConfig(4, 500.0, 700.0)
        surfaces = create("mean-surface").fit(kernels, base).predict(kernels.profiles(base))
        np.testing.assert_allclose(surfaces.values[:, 0, :, 0], [[1.0, 1.0]] * 2, rtol=1e-12)
        assert surfaces.flags == ((), ())


class TestNearest:
    def test_one_neighbour_gives_that_kernels_own_surface(self) -> None:
        # The truth: new kernels lie next to kernels of their group, whose law is known.
        training, new = made.measurements(), made.measurements(per_group=5, seed=1)
        predictor = create("nearest", neighbours=1).fit(training, MID)
        values = predictor.predict(new.profiles(MID)).values
        np.testing.assert_allclose(values, new.time_ms / new.time_ms[:, 1:2, 2:3, 1:2], rtol=1e-9)

    @pytest.mark.parametrize(("busy", "factor"), [(0.1, 0.25), (0.4, 0.25), (0.6, 4.0)])
    def test_by_hand(self, busy: float, factor: float) -> None:
        # 'falls' (a quarter of the time) has the counter 0, 'rises' (four times) has 1.
        kernels = two_kernels()
        predictor = create("nearest", neighbours=1).fit(kernels, (0, 0, 0))
        new = at_500_mhz(kernels, [[busy, 0.0]])
        values = predictor.predict(new).values[0, 0, :, 0]
        np.testing.assert_allclose(values, [1.0, factor], rtol=1e-12)

    def test_distance_is_in_units_of_the_trained_range(self) -> None:
        # By hand: 'wide' runs from 0 to 300. In plain numbers the kernel lies 290 from the first
        # and 10 from the second; in ranges 0.97 from the first and 1.0 from the second.
        kernels = two_kernels(wide=(0.0, 300.0))
        predictor = create("nearest", neighbours=1).fit(kernels, (0, 0, 0))
        values = predictor.predict(at_500_mhz(kernels, [[0.0, 290.0]])).values
        np.testing.assert_allclose(values[0, 0, :, 0], [1.0, 0.25], rtol=1e-12)

    @settings(max_examples=15)
    @given(st.integers(12, 20), st.integers(0, 9))
    def test_all_neighbours_give_the_mean_surface(self, neighbours: int, seed: int) -> None:
        training, new = made.measurements(seed=seed), made.measurements(seed=seed + 1)
        nearest = create("nearest", neighbours=neighbours).fit(training, MID)
        mean = create("mean-surface").fit(training, MID)
        at_base = new.profiles(MID)
        np.testing.assert_allclose(
            nearest.predict(at_base).values, mean.predict(at_base).values, rtol=1e-12
        )

    def test_flags_what_lies_outside_the_training_range(self) -> None:
        kernels = two_kernels()
        predictor = create("nearest").fit(kernels, (0, 0, 0))
        outside = at_500_mhz(kernels, [[1.5, 0.0], [0.5, 0.0]])
        told = Note("P02", "busy 1.5 is above 1, the highest in training")
        assert predictor.predict(outside).flags == ((told,), ())


class TestExtraTrees:
    @pytest.mark.parametrize("quantity", ["time", "power"])
    def test_learns_made_groups(self, quantity: str) -> None:
        # The truth is the law. Bound: 10 % at every configuration, where the mean surface is off
        # by more than half; some trees put a kernel into a leaf of another group.
        training, new = made.measurements(per_group=6), made.measurements(per_group=3, seed=1)
        values = new.quantity(quantity)
        true = np.log(values / values[:, 1:2, 2:3, 1:2])
        at_base = new.profiles(MID)
        worst = {}
        for name in ("extra-trees", "mean-surface"):
            predictor = create(name, quantity=quantity, **own(name, trees=50)).fit(training, MID)
            worst[name] = np.abs(np.log(predictor.predict(at_base).values) - true).max()
        assert worst["extra-trees"] < math.log(1.1)
        assert worst["mean-surface"] > math.log(1.5)
