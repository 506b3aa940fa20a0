"""Objectives, limits, the best configuration and the Pareto front: by hand, and by property.

By hand: one CU count, two engine clocks and two memory clocks, of energies 40, 40, 36 and 60 mJ.
"""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from synthetic.tidy import refused

from mlscale.advice import objectives
from mlscale.advice.objectives import (
    COSTS,
    OBJECTIVES,
    Limits,
    best_index,
    feasible,
    least_indices,
    limit_ratio,
    objective_values,
    pareto_front,
    saving_percent,
)

SCHEMA = Path(objectives.__file__).with_name("schema.json")

TIME = np.array([[[4.0, 2.0], [3.0, 1.0]]])
POWER = np.array([[[10.0, 20.0], [12.0, 60.0]]])
BASE_MS = 2.0

SHAPE = (2, 3, 2)
GRIDS = arrays.arrays(np.float64, SHAPE, elements=st.sampled_from([0.5, 1.0, 2.0, 3.0, 5.0, 7.0]))


@pytest.mark.parametrize(
    ("objective", "by_hand"),
    [
        ("energy", [40.0, 40.0, 36.0, 60.0]),
        ("edp", [160.0, 80.0, 108.0, 60.0]),
        ("ed2p", [640.0, 160.0, 324.0, 60.0]),
        ("time", [4.0, 2.0, 3.0, 1.0]),
        ("power", [10.0, 20.0, 12.0, 60.0]),
        ("clock", [500.0, 500.0, 900.0, 900.0]),
    ],
)
def test_objectives(objective: str, by_hand: list[float]) -> None:
    values = objective_values(objective, TIME, POWER, np.array([[500.0], [900.0]]))
    assert values.ravel().tolist() == by_hand


def test_saving() -> None:
    assert saving_percent(np.array([30.0, 50.0]), 40.0).tolist() == [25.0, -25.0]


class TestLimits:
    def test_ratio(self) -> None:
        # Power / 20 W and time / (2 ms x 1.5): the larger of 0.5 and 4/3, 1 and 2/3, ...
        limits = Limits(max_power_w=20, max_slowdown_percent=50)
        found = limit_ratio(limits, TIME, POWER, BASE_MS)
        assert found.ravel() == pytest.approx([4 / 3, 1.0, 1.0, 3.0], rel=1e-15)
        kept = feasible(limits, TIME, POWER, BASE_MS)
        assert kept.ravel().tolist() == [False, True, True, False]

    def test_no_slowdown_lets_the_base_through(self) -> None:
        kept = feasible(Limits(max_slowdown_percent=0), TIME, None, BASE_MS)
        assert kept.ravel().tolist() == [False, True, False, True]

    @pytest.mark.parametrize(
        ("limits", "quantity", "keeps"),
        [
            (Limits(), "time", False),
            (Limits(), "power", True),
            (Limits(max_power_w=99), "power", False),
        ],
    )
    def test_what_is_missing_keeps_no_limit(
        self, limits: Limits, quantity: str, keeps: bool
    ) -> None:
        """Power that is not known keeps limits of time."""
        values = {"time": TIME.copy(), "power": POWER.copy()}
        values[quantity][0, 0, 0] = np.nan
        kept = feasible(limits, values["time"], values["power"], BASE_MS)
        assert kept.ravel().tolist() == [keeps, True, True, True]

    def test_an_objective_that_is_not_known_is_the_least_of_none(self) -> None:
        values, allowed = np.array([[np.nan, 2.0, 1.0]]), np.array([[True, True, True]])
        assert least_indices([values], allowed).tolist() == [2]
        assert least_indices([values, -values], np.array([[True, False, False]])).tolist() == [0]


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
        ("limits", "said"),
        [
            (
                Limits(max_power_w=5),
                "^no configuration keeps a power of at most 5 W; the least is power 10 W$",
            ),
            (
                Limits(max_slowdown_percent=10, max_time_ms=0.5),
                "the least is time 1 ms with the other limits kept, or slowdown -50 %$",
            ),
        ],
    )
    def test_what_cannot_be_kept_is_said_with_the_nearest(self, limits: Limits, said: str) -> None:
        with refused(said):
            best_index("time", TIME, POWER, BASE_MS, limits)

    @given(
        time=GRIDS,
        power=GRIDS,
        objective=st.sampled_from(sorted(COSTS)),
        cell=st.integers(0, 11),
        slack=st.sampled_from([1.0, 1.2]),
    )
    @settings(max_examples=60)
    def test_it_keeps_the_limits_and_nothing_that_does_is_better(
        self, time: np.ndarray, power: np.ndarray, objective: str, cell: int, slack: float
    ) -> None:
        # Limits drawn around one cell, so that they can be kept. Compared by plain loops.
        most_w, most_ms = float(power.ravel()[cell]) * slack, float(time.ravel()[cell])
        limits = Limits(max_power_w=most_w, max_time_ms=most_ms)
        best = best_index(objective, time, power, 1.0, limits)
        delay = {"power": 0, "energy": 1, "edp": 2, "ed2p": 3}

        def value(at: tuple[int, ...]) -> float:
            if objective == "time":
                return float(time[at])
            return float(power[at]) * float(time[at]) ** delay[objective]

        keeping = [
            at
            for at in itertools.product(*map(range, SHAPE))
            if power[at] <= most_w and time[at] <= most_ms
        ]
        assert best in keeping
        assert all(value(best) <= value(at) * (1 + 1e-9) for at in keeping)

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
        limits, base = Limits(max_slowdown_percent=40), float(time.min())
        scaled = time * scales[0], power * scales[1], base * scales[0]
        in_other_units = best_index(objective, *scaled, limits)
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

    @given(time=GRIDS, power=GRIDS, most=st.sampled_from([0.0, 10.0, 100.0]))
    @settings(max_examples=30)
    def test_the_best_of_time_and_of_every_energy_is_on_it(
        self, time: np.ndarray, power: np.ndarray, most: float
    ) -> None:
        # Each of these rises with time and energy, and a limit of time cuts off one end only.
        limits, base = Limits(max_slowdown_percent=most), float(time.min())
        on_front = pareto_front(time, time * power) & feasible(limits, time, power, base)
        for objective in ("time", "energy", "edp", "ed2p"):
            best = best_index(objective, time, power, base, limits)
            values = objective_values(objective, time, power)
            assert values[best] == pytest.approx(values[on_front].min(), rel=1e-9)


@pytest.mark.parametrize("limit", [{"max_slowdown_percent": -5}, {"max_time_ms": 0}])
def test_a_senseless_limit_is_refused(limit: dict[str, float]) -> None:
    [name] = limit
    with refused(f"{name} must be finite and (at least 0|positive, not 0)"):
        Limits(**limit)


def test_the_schema_has_each_objective() -> None:
    """Regression only: an objective stands in both."""
    told = json.loads(SCHEMA.read_text("utf-8"))["properties"]["objective"]["enum"]
    assert set(told) == OBJECTIVES.keys()
