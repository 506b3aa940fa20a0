"""The advice study: known regrets, no leakage, limits, and the rows by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from synthetic import frugal
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import Measurements
from mlscale.advice.objectives import Limits
from mlscale.studies import advice, regret
from mlscale.studies.candidates import Contender

MID = made.GRID.mid  # cu=8, engine=800, memory=700
PROTOCOL = "leave-one-application-out"
DATA = frugal.measurements()

Row = dict[str, Any]


def study(
    data: Measurements = DATA,
    predictors: tuple[str, ...] = ("nearest",),
    objectives: tuple[str, ...] = ("energy",),
    limits: Limits = Limits(),  # noqa: B008
    static_power_w: float | None = None,
) -> tuple[list[Row], dict[str, Row]]:
    """The choices, and the figures by advisor (of the first objective)."""
    tables = {"made": (data, advice.ask("made", data, MID, objectives, limits, static_power_w))}
    advisors = {"made": advice.advisors(predictors, ("raw",), data)}
    units = advice.plan(tables, advisors, 2, PROTOCOL, 1)
    choices = regret.choices(advice.run(units, tables), tables)
    return choices, {row["advisor"]: row for row in regret.rows(choices, tables, 1)}


# Closed forms of tests/frugal.py. Best: 45.12 / (0.6 x 16) of a compute, 34.48 / 1000 of a
# bandwidth kernel. One configuration for all: 16 CUs, 400 MHz, 1000 MHz whoever is held out,
# where a compute kernel needs 86.2 / 75.2 of its best.
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
        choices, _ = study()
        for row in choices:
            known = COMPUTE if row["kernel"].startswith("compute") else BANDWIDTH
            expected = 100 * (known[row["advisor"]] - 1)
            assert row["regret_percent"] == pytest.approx(expected, abs=1e-9)
        assert len(choices) == 4 * 6

    def test_rows_sum_up_the_kernels(self) -> None:
        # Three kernels of each kind: the 90th percentile of six is between the 5th and 6th.
        _, rows = study()
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
        _, rows = study()
        best = [100 * (1 - 1 / known["stay-at-base"]) for known in (COMPUTE, BANDWIDTH)]
        for row in rows.values():
            assert row["best_saving_mean"] == pytest.approx(np.mean(best))
        assert rows["nearest"]["saving_mean"] == pytest.approx(np.mean(best))
        assert rows["stay-at-base"]["saving_mean"] == 0
        # Highest clocks: 8 x 800 / (16 x 1000) of the compute, 700 / 1000 of the other time.
        assert rows["highest-clocks"]["slowdown_mean"] == pytest.approx(-(60 + 30) / 2)

    def test_wu_knows_the_two_kinds(self) -> None:
        # Two clusters of two laws: the advice is the optimum.
        _, rows = study(predictors=("wu",))
        assert rows["wu"]["worst_regret"] == pytest.approx(0, abs=1e-9)

    def test_static_power_changes_what_is_best(self) -> None:
        # With 1000 W beside dynamic power the quickest is best for compute: no regret.
        data = frugal.measurements(power_kind="dynamic")
        choices, _ = study(data, static_power_w=1000.0)
        for row in choices:
            if row["advisor"] == "highest-clocks" and row["kernel"].startswith("compute"):
                assert row["regret_percent"] == 0


class TestLeakage:
    @pytest.mark.parametrize("advisor", ["nearest", "mean-surface", "best-fixed"])
    def test_a_choice_sees_only_the_kernels_own_base(self, advisor: str) -> None:
        # All that was measured of one kernel away from the base is made nonsense.
        k, at = 1, DATA.grid.index(MID)
        random = np.random.default_rng(0)
        time, power = DATA.time_samples.copy(), DATA.power_samples
        assert power is not None
        power = power.copy()
        elsewhere = np.ones(DATA.grid.shape, dtype=bool)
        elsewhere[at] = False
        for samples in (time, power):
            samples[0, k][elsewhere] = random.uniform(1, 100, elsewhere.sum())
        spoilt = replace(DATA, time_samples=time, power_samples=power)
        asked = advice.Asked(MID, ("energy", "edp"), Limits(max_slowdown_percent=20), 0.0)
        kind = "raw" if advisor == "nearest" else None
        unit = advice.Unit("made", Contender(advisor, kind), asked.objectives, 2, PROTOCOL, 0)
        honest, other = (advice.run_unit(unit, data, asked) for data in (DATA, spoilt))
        where = honest.kernels.index(k)
        for objective in asked.objectives:
            assert honest.indices[objective][where] == other.indices[objective][where]


class TestLimits:
    def test_what_breaks_a_limit_is_counted_and_not_compared(self) -> None:
        # 50 W allows 400 and 600 MHz; base (65.84 W) and highest (100 W) break it always.
        choices, rows = study(limits=Limits(max_power_w=50))
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
        _, free = study()
        _, kept = study(limits=Limits(max_slowdown_percent=0))
        assert kept["highest-clocks"]["regret_mean"] == free["highest-clocks"]["regret_mean"]
        # At most 40 % of base time: only 16 CUs at 1000 MHz keep it for compute kernels (0.4).
        quick = Limits(max_time_ms=0.4 * float(DATA.profiles(MID).time_ms[0]))
        choices, _ = study(limits=quick)
        first = [row for row in choices if row["kernel"] == DATA.kernels[0]]
        by_advisor = {row["advisor"]: row for row in first}
        assert by_advisor["highest-clocks"]["regret_percent"] == 0
        assert by_advisor["stay-at-base"]["breaks_limits"]

    def test_the_fixed_configuration_keeps_the_limits_of_most(self) -> None:
        # No slowdown: of those that all training kernels keep, the least energy.
        _, rows = study(limits=Limits(max_slowdown_percent=0))
        assert rows["best-fixed"]["breaks_limits_percent"] == 0

    def test_kernels_beyond_the_limits_are_left_out_and_counted(self) -> None:
        shortest = DATA.time_ms.min(axis=(1, 2, 3))
        limit = float(np.sort(shortest)[2]) * 1.0001  # three kernels can keep it
        _, rows = study(limits=Limits(max_time_ms=limit))
        assert (rows["nearest"]["n_kernels"], rows["nearest"]["n_beyond_limits"]) == (3, 3)

    def test_where_nothing_keeps_the_limits_the_least_breach_is_chosen(self) -> None:
        time = np.array([[[4.0, 2.0, 3.0]]])
        chosen = advice.choose("time", time, None, (0, 0, 0), Limits(max_time_ms=1))
        assert chosen == (0, 0, 1)


class TestAsking:
    def test_objectives_by_default(self) -> None:
        bare = replace(DATA, power_samples=None)
        assert advice.ask("t", DATA, MID, (), Limits(), None).objectives == advice.OF_ENERGY
        assert advice.ask("t", bare, MID, (), Limits(), None).objectives == ("time",)

    @pytest.mark.parametrize(
        ("kind", "objectives", "limits", "static", "match"),
        [
            (None, ("edp",), {}, 5.0, None),
            ("dynamic", ("power", "time"), {}, None, None),
            ("dynamic", ("energy",), {}, None, "'t': power_w is dynamic power; give the rest as"),
            ("dynamic", ("time",), {"max_power_w": 9.0}, None, "'t': power_w is dynamic power"),
            ("board", ("energy",), {}, 5.0, "'t': power_w is board power, static power included"),
        ],
    )
    def test_kinds_of_power(
        self,
        kind: str | None,
        objectives: tuple[str, ...],
        limits: dict[str, float],
        static: float | None,
        match: str | None,
    ) -> None:
        data = frugal.measurements(power_kind=kind)
        if match is None:
            asked = advice.ask("t", data, MID, objectives, Limits(**limits), static)
            assert asked.static_power_w == (static or 0)
            return
        with refused(match):
            advice.ask("t", data, MID, objectives, Limits(**limits), static)

    def test_no_power(self) -> None:
        bare = replace(DATA, power_samples=None)
        with refused("the objective 'edp' needs power; 't' has no column 'power_w'"):
            advice.ask("t", bare, MID, ("edp",), Limits(), None)
        with refused("a limit of power needs power; 't' has no column 'power_w'"):
            advice.ask("t", bare, MID, ("time",), Limits(max_power_w=5), None)

    def test_a_predictor_without_power_stands_where_time_is_asked(self) -> None:
        tables = {"made": (DATA, advice.ask("made", DATA, MID, ("time", "energy"), Limits(), None))}
        advisors = {"made": [Contender("wang-chu", None), Contender("nearest", "raw")]}
        units = advice.plan(tables, advisors, 2, PROTOCOL, 3)
        assert [(u.advisor.predictor, u.objectives, u.seed) for u in units] == [
            ("wang-chu", ("time",), 0),
            ("nearest", ("time", "energy"), 0),
        ]
        capped = advice.ask("made", DATA, MID, ("time",), Limits(max_power_w=90), None)
        units = advice.plan({"made": (DATA, capped)}, advisors, 2, PROTOCOL, 3)
        assert [u.advisor.predictor for u in units] == ["nearest"]

    def test_who_learns_stands_by_default(self) -> None:
        names = [contender.predictor for contender in advice.advisors((), ("raw",), DATA)]
        assert names[:3] == ["highest-clocks", "stay-at-base", "best-fixed"]
        assert {"nearest", "extra-trees", "wu"} <= set(names)
        assert set(names).isdisjoint({"no-scaling", "engine-bound", "wu-oracle", "wang-chu"})
