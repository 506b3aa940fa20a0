"""The advice study: known regrets, no leakage, limits, and the rows by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from regret_study import regret_of, spoilt
from synthetic import frugal
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import Measurements
from mlscale.advice.objectives import Limits
from mlscale.studies import regret
from mlscale.studies.base import Part
from mlscale.studies.candidates import Candidate

MID = made.GRID.mid  # cu=8, engine=800, memory=700
PROTOCOL = "leave-one-application-out"
DATA = frugal.measurements()

Row = dict[str, Any]


def planned(data: Measurements = DATA, **options: Any) -> regret.RegretStudy:
    return regret_of(data, **options)


def choices_and_rows(data: Measurements = DATA, **options: Any) -> tuple[list[Row], dict[str, Row]]:
    """The choices, and the figures by advisor (of the first objective)."""
    advised = planned(data, **options)
    results = advised.results()
    return advised.choices(results), {row["advisor"]: row for row in advised.rows(results)}


# Closed forms of tests/synthetic/frugal.py. Best: 45.12 / (0.6 x 16) of a compute kernel,
# 34.48 / 1000 of a bandwidth kernel. One configuration for all: 16 CUs, 400 MHz, 1000 MHz whoever
# is held out, where a compute kernel needs 86.2 / 75.2 of its best.
COMPUTE = {
    "highest-clocks": 100 / 75.2,
    "stay-at-base": (65.84 / (0.8 * 8)) / (45.12 / (0.6 * 16)),
    "best-fixed": 86.2 / 75.2,
    "nearest": 1.0,
}
BANDWIDTH = {
    "highest-clocks": 100 / 34.48,
    "stay-at-base": (65.84 / 700) / (34.48 / 1000),
    "best-fixed": 1.0,
    "nearest": 1.0,
}


class TestKnownTruth:
    def test_regrets_by_closed_form(self) -> None:
        choices, _ = choices_and_rows()
        for row in choices:
            known = COMPUTE if row["kernel"].startswith("compute") else BANDWIDTH
            expected = 100 * (known[row["advisor"]] - 1)
            assert row["regret_percent"] == pytest.approx(expected, abs=1e-9)
        assert len(choices) == 4 * 6

    def test_rows_sum_up_the_kernels(self) -> None:
        # Three kernels of each kind: the 90th percentile of six is between the 5th and 6th.
        _, rows = choices_and_rows()
        highest = rows["highest-clocks"]
        of_compute, of_bandwidth = (
            100 * (known["highest-clocks"] - 1) for known in (COMPUTE, BANDWIDTH)
        )
        assert highest["regret_mean"] == pytest.approx((of_compute + of_bandwidth) / 2)
        assert highest["regret_median"] == pytest.approx((of_compute + of_bandwidth) / 2)
        assert highest["regret_p90"] == pytest.approx(of_bandwidth)
        assert highest["worst_regret"] == pytest.approx(of_bandwidth)
        assert highest["worst_kernel"].startswith("bandwidth")
        assert (highest["n_kernels"], highest["n_beyond_limits"]) == (6, 0)

    def test_savings_are_of_the_measured_surfaces(self) -> None:
        _, rows = choices_and_rows()
        best = [100 * (1 - 1 / known["stay-at-base"]) for known in (COMPUTE, BANDWIDTH)]
        for row in rows.values():
            assert row["best_saving_mean"] == pytest.approx(np.mean(best))
        assert rows["nearest"]["saving_mean"] == pytest.approx(np.mean(best))
        assert rows["stay-at-base"]["saving_mean"] == 0
        # Highest clocks: 8 x 800 / (16 x 1000) of the compute, 700 / 1000 of the other time.
        assert rows["highest-clocks"]["slowdown_mean"] == pytest.approx(-(60 + 30) / 2)

    def test_static_power_changes_what_is_best(self) -> None:
        # With 1000 W beside dynamic power the quickest is best for compute: no regret, as of a
        # predictor that is exact.
        data = frugal.measurements(power_kind="dynamic")
        choices, _ = choices_and_rows(data, static_power_w=1000.0)
        for advisor in ("highest-clocks", "nearest"):
            of_compute = [
                row["regret_percent"]
                for row in choices
                if row["advisor"] == advisor and row["kernel"].startswith("compute")
            ]
            assert of_compute == pytest.approx([0, 0, 0], abs=1e-9)


class TestLeakage:
    @pytest.mark.parametrize("advisor", ["nearest", "mean-surface", "best-fixed"])
    def test_a_choice_sees_only_the_kernels_own_base(self, advisor: str) -> None:
        """All that was measured of one kernel away from the base is made nonsense."""
        k = 1
        goal = regret.Goal(MID, ("energy", "edp"), Limits(max_slowdown_percent=20))
        candidate = Candidate(advisor)
        if advisor not in regret.STRATEGIES:
            features = "raw" if advisor == "nearest" else None
            candidate = Candidate.from_predictor(advisor, features)
        part = Part("made", candidate, PROTOCOL, 0, MID)
        honest, other = (regret.part_choices(part, d, goal) for d in (DATA, spoilt(DATA, MID, k)))
        where = regret.mixes_to_advise(part, DATA, 0).index(regret.single_kernel(k))
        for objective in goal.objectives:
            assert honest[objective][where] == other[objective][where]


class TestLimits:
    def test_what_breaks_a_limit_is_counted_and_not_compared(self) -> None:
        # 50 W allows 400 and 600 MHz; base (65.84 W) and highest (100 W) break it always.
        choices, rows = choices_and_rows(limits=Limits(max_power_w=50))
        for advisor in ("highest-clocks", "stay-at-base"):
            assert rows[advisor]["breaks_limits_percent"] == 100
            assert rows[advisor]["regret_mean"] is None
            assert rows[advisor]["worst_kernel"] is None
        assert rows["nearest"]["breaks_limits_percent"] == 0
        assert rows["nearest"]["worst_regret"] == pytest.approx(0, abs=1e-9)
        assert all((row["regret_percent"] is None) == row["breaks_limits"] for row in choices)

    def test_regret_is_against_what_keeps_the_limits(self) -> None:
        # No slowdown: a bandwidth kernel's best keeps 700 MHz and more, so nothing changes; a
        # compute kernel's best is 600 MHz at 16 CUs, 1.5 times as quick as the base. The highest
        # clocks regret what they do without the limit.
        _, free = choices_and_rows()
        _, kept = choices_and_rows(limits=Limits(max_slowdown_percent=0))
        assert kept["highest-clocks"]["regret_mean"] == free["highest-clocks"]["regret_mean"]
        # At most 40 % of base time: only 16 CUs at 1000 MHz keep it for compute kernels (0.4).
        quick = Limits(max_time_ms=0.4 * float(DATA.profiles(MID).time_ms[0]))
        choices, _ = choices_and_rows(limits=quick)
        first = [row for row in choices if row["kernel"] == DATA.kernels[0]]
        by_advisor = {row["advisor"]: row for row in first}
        assert by_advisor["highest-clocks"]["regret_percent"] == 0
        assert by_advisor["stay-at-base"]["breaks_limits"]

    def test_kernels_beyond_the_limits_are_left_out_and_counted(self) -> None:
        shortest = DATA.time_ms.min(axis=(1, 2, 3))
        limit = float(np.sort(shortest)[2]) * 1.0001  # three kernels can keep it
        _, rows = choices_and_rows(limits=Limits(max_time_ms=limit))
        assert (rows["nearest"]["n_kernels"], rows["nearest"]["n_beyond_limits"]) == (3, 3)

    def test_where_nothing_keeps_the_limits_the_least_breach_is_chosen(self) -> None:
        costs = regret.MixCosts(np.array([[[4.0, 2.0, 3.0]]]), None, None)
        goal = regret.Goal(MID, ("time",), Limits(max_time_ms=1))
        assert goal.best("time", costs, (0, 0, 0)) == (0, 0, 1)


class TestAsking:
    def test_objectives_by_default(self) -> None:
        bare = replace(DATA, power_samples=None)
        assert planned(objectives=()).goals["made"].objectives == regret.ENERGY_OBJECTIVES
        assert planned(bare, objectives=()).goals["made"].objectives == ("time",)

    @pytest.mark.parametrize(
        ("kind", "objectives", "limits", "static_w", "problem"),
        [
            (None, ("edp",), {}, 5.0, None),
            ("dynamic", ("power", "time"), {}, None, None),
            ("dynamic", ("energy",), {}, None, "power_w is dynamic power; give the rest as"),
            ("dynamic", ("time",), {"max_power_w": 9.0}, None, "power_w is dynamic power"),
            ("board", ("energy",), {}, 5.0, "power_w is board power, static power included"),
        ],
    )
    def test_kinds_of_power(
        self,
        kind: str | None,
        objectives: tuple[str, ...],
        limits: dict[str, float],
        static_w: float | None,
        problem: str | None,
    ) -> None:
        data = frugal.measurements(power_kind=kind)
        options = {"objectives": objectives, "limits": Limits(**limits), "static_power_w": static_w}
        if problem is None:
            assert planned(data, **options).goals["made"].static_power_w == (static_w or 0)
            return
        with refused(f"'made': {problem}"):
            _ = planned(data, **options).goals

    @pytest.mark.parametrize(
        ("objective", "limits", "what"),
        [
            ("edp", Limits(), "the objective 'edp'"),
            ("time", Limits(max_power_w=5), "a limit of power"),
        ],
    )
    def test_no_power(self, objective: str, limits: Limits, what: str) -> None:
        bare = replace(DATA, power_samples=None)
        with refused(f"{what} needs power; 'made' has no column 'power_w'"):
            _ = planned(bare, objectives=(objective,), limits=limits).goals

    def test_a_predictor_without_power_stands_where_time_is_asked(self) -> None:
        both = {"predictors": ["wang-chu", "nearest"], "seeds": 3}
        study = planned(objectives=("time", "energy"), **both)
        predictors = [part.candidate for part in study.parts if part.candidate.predictor]
        found = [(one.name, study.goals["made"].known_to(one)) for one in predictors]
        assert sorted(found) == [("nearest", ("time", "energy")), ("wang-chu", ("time",))]
        capped = planned(objectives=("time",), limits=Limits(max_power_w=90), **both)
        names = [part.candidate.name for part in capped.parts if part.candidate.predictor]
        assert names == ["nearest"]

    def test_who_learns_stands_by_default(self) -> None:
        names = list(dict.fromkeys(part.candidate.name for part in planned(predictors=()).parts))
        assert names[:3] == ["highest-clocks", "stay-at-base", "best-fixed"]
        assert {"nearest", "extra-trees", "wu"} <= set(names)
        assert set(names).isdisjoint({"no-scaling", "engine-bound", "wu-oracle", "wang-chu"})
