"""Objectives, limits, the best configuration and the Pareto front, by hand and by property."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from synthetic.tidy import refused

from mlscale.advice.objectives import (
    COSTS,
    Limits,
    best_index,
    feasible,
    limit_ratio,
    objective_values,
    pareto_front,
    saving_percent,
)
from mlscale.data.surfaces import run_in_sequence

# One CU count, two engine clocks, two memory clocks; energies 40, 40, 36, 60 mJ.
TIME = np.array([[[4.0, 2.0], [3.0, 1.0]]])
POWER = np.array([[[10.0, 20.0], [12.0, 60.0]]])
BASE_MS = 2.0

SHAPE = (2, 3, 2)
CELLS = st.sampled_from([0.5, 1.0, 2.0, 3.0, 5.0, 7.0])
GRIDS = arrays.arrays(np.float64, SHAPE, elements=CELLS)


class TestObjectives:
    @pytest.mark.parametrize(
        ("objective", "by_hand"),
        [
            ("energy", [40.0, 40.0, 36.0, 60.0]),
            ("edp", [160.0, 80.0, 108.0, 60.0]),
            ("ed2p", [640.0, 160.0, 324.0, 60.0]),
            ("time", [4.0, 2.0, 3.0, 1.0]),
            ("power", [10.0, 20.0, 12.0, 60.0]),
        ],
    )
    def test_by_hand(self, objective: str, by_hand: list[float]) -> None:
        assert objective_values(objective, TIME, POWER).ravel().tolist() == by_hand

    def test_clock_is_the_engine_clock_everywhere(self) -> None:
        # By hand: the steps of the axis before the last, whatever time and power.
        values = objective_values("clock", TIME, None, engine_mhz=(500.0, 900.0))
        assert values.tolist() == [[[500.0, 500.0], [900.0, 900.0]]]
        with refused("the objective 'clock' needs the engine clocks"):
            objective_values("clock", TIME, None)

    def test_without_power_only_time_is_left(self) -> None:
        assert objective_values("time", TIME, None).tolist() == TIME.tolist()
        for objective in set(COSTS) - {"time"}:
            with refused(f"the objective '{objective}' needs power"):
                objective_values(objective, TIME, None)

    def test_an_unknown_one_is_refused(self) -> None:
        with refused("there is no objective 'joy'; one of energy, edp, ed2p, time, power, clock"):
            objective_values("joy", TIME, POWER)


class TestLimits:
    def test_load_by_hand(self) -> None:
        # Power / 20 W and time / (2 ms x 1.5): the larger of 0.5 and 4/3, 1 and 2/3, ...
        limits = Limits(max_power_w=20, max_slowdown_percent=50)
        found = limit_ratio(limits, TIME, POWER, BASE_MS)
        assert found.ravel() == pytest.approx([4 / 3, 1.0, 1.0, 3.0], rel=1e-15)
        kept = feasible(limits, TIME, POWER, BASE_MS)
        assert kept.ravel().tolist() == [False, True, True, False]

    def test_no_slowdown_lets_the_base_through(self) -> None:
        kept = feasible(Limits(max_slowdown_percent=0), TIME, None, BASE_MS)
        assert kept.ravel().tolist() == [False, True, False, True]

    def test_what_is_missing_keeps_no_limit(self) -> None:
        power = POWER.copy()
        power[0, 0, 0] = np.nan
        assert not feasible(Limits(), TIME, power, BASE_MS)[0, 0, 0]
        assert feasible(Limits(), TIME, power, BASE_MS).sum() == 3

    @pytest.mark.parametrize(
        ("limits", "match"),
        [
            ({"max_power_w": 0.0}, "max_power_w must be positive, not 0"),
            ({"max_time_ms": float("nan")}, "max_time_ms must be positive, not nan"),
            ({"max_power_w": float("inf")}, "max_power_w must be positive, not inf"),
            (
                {"max_slowdown_percent": -1.0},
                "max_slowdown_percent must be finite and at least 0, not -1",
            ),
            ({"max_power_w": "300"}, "max_power_w must be positive, not 300"),
        ],
    )
    def test_senseless_ones_are_refused(self, limits: dict[str, Any], match: str) -> None:
        with refused(match):
            Limits(**limits)

    def test_a_limit_of_power_needs_power(self) -> None:
        with refused("a limit of power needs power"):
            limit_ratio(Limits(max_power_w=10), TIME, None, BASE_MS)


class TestBest:
    @pytest.mark.parametrize(
        ("objective", "limits", "by_hand"),
        [
            ("energy", Limits(), (0, 1, 0)),
            ("edp", Limits(), (0, 1, 1)),
            ("energy", Limits(max_time_ms=2.5), (0, 0, 1)),
            ("time", Limits(max_power_w=20), (0, 0, 1)),
            ("time", Limits(max_power_w=19), (0, 1, 0)),
            ("power", Limits(max_slowdown_percent=50), (0, 1, 0)),
            ("energy", Limits(max_slowdown_percent=0), (0, 0, 1)),
        ],
    )
    def test_by_hand(self, objective: str, limits: Limits, by_hand: tuple[int, int, int]) -> None:
        assert best_index(objective, TIME, POWER, BASE_MS, limits) == by_hand

    def test_ties_go_to_less_time_then_less_power_then_the_first(self) -> None:
        # Energies 12 everywhere: the quickest. Times 2 everywhere: least power, then the first.
        time = np.array([[[4.0, 2.0, 3.0]]])
        assert best_index("energy", time, 12 / time, 1.0) == (0, 0, 1)
        even = np.full((1, 1, 3), 2.0)
        assert best_index("time", even, np.array([[[9.0, 7.0, 7.0]]]), 1.0) == (0, 0, 1)
        assert best_index("time", even, None, 1.0) == (0, 0, 0)

    def test_rounding_breaks_no_tie(self) -> None:
        # 0.1 + 0.2 is above 0.3 in the last bit only, so they tie and the lower power is taken.
        time = np.array([[[0.3, 0.1 + 0.2]]])
        assert best_index("time", time, np.array([[[5.0, 4.0]]]), 1.0) == (0, 0, 1)

    @pytest.mark.parametrize(
        ("limits", "match"),
        [
            (
                Limits(max_power_w=5),
                "^no configuration keeps a power of at most 5 W; the least is power 10 W$",
            ),
            (
                Limits(max_slowdown_percent=10, max_time_ms=0.5),
                "the least is time 1 ms with the other limits kept, or slowdown -50 %$",
            ),
            (
                Limits(max_power_w=15, max_time_ms=1.5),
                "1.5 ms; the least is power 60 W with the other limits kept, or time 3 ms with the",
            ),
        ],
    )
    def test_what_cannot_be_kept_is_said_with_the_nearest(self, limits: Limits, match: str) -> None:
        with refused(match):
            best_index("time", TIME, POWER, BASE_MS, limits)

    def test_nothing_known_is_refused(self) -> None:
        with refused("no configuration has all its values"):
            best_index("time", np.full_like(TIME, np.nan), None, 1.0)

    def test_a_limit_without_a_name_is_refused(self) -> None:
        """Hand: of three limits, in three units, none is the first by right."""
        with pytest.raises(TypeError):
            Limits(5)  # type: ignore[misc]

    @given(
        time=GRIDS,
        power=GRIDS,
        objective=st.sampled_from(sorted(COSTS)),
        cell=st.integers(0, 11),
        slack=st.sampled_from([1.0, 1.2]),
    )
    @settings(max_examples=60)
    def test_the_best_keeps_the_limits_and_nothing_that_does_is_better(
        self, time: np.ndarray, power: np.ndarray, objective: str, cell: int, slack: float
    ) -> None:
        # Limits drawn around one cell, so that they can be kept. Compared by plain loops.
        limits = Limits(
            max_power_w=float(power.ravel()[cell]) * slack, max_time_ms=float(time.ravel()[cell])
        )
        best = best_index(objective, time, power, 1.0, limits)
        delay = {"power": 0, "energy": 1, "edp": 2, "ed2p": 3}

        def value(at: tuple[int, ...]) -> float:
            if objective == "time":
                return float(time[at])
            return float(power[at]) * float(time[at]) ** delay[objective]

        def keeps(at: tuple[int, ...]) -> bool:
            return bool(power[at] <= power.ravel()[cell] * slack and time[at] <= time.ravel()[cell])

        assert keeps(best)
        for at in itertools.product(*map(range, SHAPE)):
            if keeps(at):
                assert value(best) <= value(at) * (1 + 1e-9)

    @given(
        time=GRIDS,
        power=GRIDS,
        objective=st.sampled_from(sorted(COSTS)),
        scales=st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)),
    )
    @settings(max_examples=40)
    def test_units_do_not_matter(
        self, time: np.ndarray, power: np.ndarray, objective: str, scales: tuple[float, float]
    ) -> None:
        limits = Limits(max_slowdown_percent=40)
        base = float(time.min())
        in_other_units = best_index(
            objective, time * scales[0], power * scales[1], base * scales[0], limits
        )
        assert in_other_units == best_index(objective, time, power, base, limits)


class TestParetoFront:
    def test_by_hand(self) -> None:
        # (1, 60), (2, 40) and (3, 36) are on the front; (4, 40) is slower and no better.
        front = pareto_front(TIME, TIME * POWER)
        assert front.tolist() == [[[False, True], [True, True]]]

    def test_equal_points_stand_together_and_equal_times_keep_the_cheapest(self) -> None:
        time = np.array([1.0, 1.0, 1.0, 2.0, 2.0])
        energy = np.array([5.0, 5.0, 6.0, 5.0, 4.0])
        assert pareto_front(time, energy).tolist() == [True, True, False, False, True]

    def test_what_is_missing_is_never_on_it(self) -> None:
        time = np.array([np.nan, 1.0, 2.0, 0.5])
        energy = np.array([1.0, 3.0, np.nan, np.inf])
        assert pareto_front(time, energy).tolist() == [False, True, False, False]
        assert not pareto_front(np.full(3, np.nan), np.ones(3)).any()

    @given(
        points=arrays.arrays(
            np.float64,
            st.tuples(st.integers(0, 12), st.just(2)),
            elements=st.sampled_from([1.0, 2.0, 3.0, 4.0, np.nan]),
        )
    )
    @settings(max_examples=150)
    def test_is_what_nothing_dominates_and_all_of_it(self, points: np.ndarray) -> None:
        front = pareto_front(points[:, 0], points[:, 1])
        for point, on_it in zip(points, front, strict=True):
            beaten = any((other <= point).all() and (other < point).any() for other in points)
            assert on_it == (not np.isnan(point).any() and not beaten)

    @given(time=GRIDS, power=GRIDS, limits=st.sampled_from([0.0, 10.0, 100.0]))
    @settings(max_examples=30)
    def test_the_best_of_time_and_of_every_energy_is_on_it(
        self, time: np.ndarray, power: np.ndarray, limits: float
    ) -> None:
        # Each of these rises with time and energy, and a limit of time cuts off one end only.
        front = pareto_front(time, time * power)
        slowest = Limits(max_slowdown_percent=limits)
        for objective in ("time", "energy", "edp", "ed2p"):
            best = best_index(objective, time, power, float(time.min()), slowest)
            values = objective_values(objective, time, power)
            on_front = front & feasible(slowest, time, power, float(time.min()))
            assert values[best] == pytest.approx(values[on_front].min(), rel=1e-9)


class TestSavingAndTogether:
    def test_saving_by_hand(self) -> None:
        assert saving_percent(np.array([30.0, 50.0]), 40.0).tolist() == [25.0, -25.0]

    def test_together_by_hand(self) -> None:
        # 1 ms at 10 W and 3 ms at 20 W: 4 ms, 70 mJ, so 17.5 W.
        time = np.array([1.0, 3.0]).reshape(2, 1, 1, 1)
        power = np.array([10.0, 20.0]).reshape(2, 1, 1, 1)
        total, mean_power = run_in_sequence(time, power, np.ones(2))
        assert mean_power is not None
        assert (total.item(), mean_power.item()) == (4.0, 17.5)
        assert run_in_sequence(time, None, np.ones(2))[1] is None

    def test_launches_weigh(self) -> None:
        # 7 x 1 ms at 10 W and 0.5 x 3 ms at 20 W: 8.5 ms, 100 mJ.
        time = np.array([1.0, 3.0]).reshape(2, 1, 1, 1)
        power = np.array([10.0, 20.0]).reshape(2, 1, 1, 1)
        total, mean_power = run_in_sequence(time, power, np.array([7.0, 0.5]))
        assert mean_power is not None
        assert total.item() == pytest.approx(8.5)
        assert total.item() * mean_power.item() == pytest.approx(100)
