"""Regret of whole runs: how they are drawn, closed forms, brute force, and no leakage."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from regret_study import regret_of, spoilt
from synthetic import frugal
from synthetic import kernels as made

from mlscale import ConfigGrid, Measurements, Profiles, Surfaces
from mlscale.advice.objectives import Limits
from mlscale.predictors.baselines import Nearest
from mlscale.studies import regret
from mlscale.studies.base import Part
from mlscale.studies.candidates import Candidate
from mlscale.studies.regret import LaunchMix, MixCosts, mix_costs, random_runs

MID = made.GRID.mid  # cu=8, engine=800, memory=700
DATA = frugal.measurements(per_group=10).in_order  # so that every training has both kinds
RUNS = 60
MANY = [f"app{n}" for n in range(27)]
POWER_W = {400: 34.48, 600: 45.12, 800: 65.84, 1000: 100.0}  # from tests/synthetic/frugal.py


def planned(data: Measurements = DATA, **options: Any) -> regret.RegretStudy:
    return regret_of(data, **{"runs": RUNS, **options})


def energies(run: LaunchMix) -> dict[int, float]:
    """By engine clock the run's energy [mJ] at 16 CUs and 1000 MHz of memory, by the two laws.

    From the base, the time of compute goes with 8 x 800 / (16 x engine), of the others with 0.7.
    """
    base_ms = DATA.profiles(MID).time_ms
    of_compute = [DATA.kernels[k].startswith("compute") for k in run.kernels]
    times = np.array(run.launches) * base_ms[list(run.kernels)]
    compute, bandwidth = times[of_compute].sum(), times[np.invert(of_compute)].sum()
    return {
        mhz: watts * (compute * 8 * 800 / (16 * mhz) + bandwidth * 0.7)
        for mhz, watts in POWER_W.items()
    }


def at_base(run: LaunchMix) -> float:
    """The run's energy at the base [mJ]."""
    base_ms = DATA.profiles(MID).time_ms[list(run.kernels)]
    return float(65.84 * np.array(run.launches) @ base_ms)


def best_fixed_mhz(run: LaunchMix) -> int:
    """400 MHz costs a compute kernel 86.2 / 75.2 of its best, 600 a bandwidth one 45.12 / 34.48."""
    rest = [name for k, name in enumerate(DATA.kernels) if k not in run.kernels]
    compute = sum(name.startswith("compute") for name in rest)
    at_400 = compute * (86.2 / 75.2 - 1)
    at_600 = (len(rest) - compute) * (45.12 / 34.48 - 1)
    return 400 if at_400 < at_600 else 600


class TestRandomRuns:
    @given(st.lists(st.sampled_from("abcdefghijkl"), min_size=2).filter(lambda x: len(set(x)) > 1))
    def test_whole_applications_and_one_left_out(self, applications: list[str]) -> None:
        """What is promised: all kernels of 1 to 8 applications, never of all of them."""
        for run in random_runs(applications, 20):
            chosen = {applications[k] for k in run.kernels}
            assert 1 <= len(chosen) <= min(8, len(set(applications)) - 1)
            assert list(run.kernels) == [k for k, a in enumerate(applications) if a in chosen]
            assert len(run.launches) == len(run.kernels)
            assert all(launches > 0 for launches in run.launches)

    def test_the_first_of_many_are_those_of_few(self) -> None:
        runs = random_runs(MANY, 30)
        assert random_runs(MANY, 7) == runs[:7]
        assert [run.number for run in runs] == list(range(1, 31))
        assert len(set(runs)) == 30

    def test_sizes_are_as_likely_and_launches_log_normal(self) -> None:
        """4000 / 8 = 500 of each number of applications; the standard deviation of a count is 21.

        Logarithms have mean 0 and standard deviation 2; 90 % of them lie within 3.29 of 0.
        """
        runs = random_runs(MANY, 4000)
        sizes = Counter(len(run.kernels) for run in runs)
        assert sorted(sizes) == list(range(1, 9))
        assert all(abs(count - 500) < 100 for count in sizes.values())
        logs = np.log([n for run in runs for n in run.launches])
        assert abs(logs.mean()) < 0.05
        assert abs(logs.std() - 2) < 0.05
        assert abs((np.abs(logs) < 3.29).mean() - 0.9) < 0.01


class TestKnownTruth:
    def test_regret_of_every_run_by_closed_form(self) -> None:
        study = planned()
        choices = study.choices(study.results())
        assert len(choices) == 4 * RUNS
        seen = set()
        for row in choices:
            run = random_runs(DATA.applications, RUNS)[row["run"] - 1]
            energy = energies(run)
            cost = {
                "highest-clocks": energy[1000],
                "stay-at-base": at_base(run),
                "best-fixed": energy[best_fixed_mhz(run)],
                "nearest": min(energy.values()),
            }[row["advisor"]]
            expected = 100 * (cost / min(energy.values()) - 1)
            assert row["regret_percent"] == pytest.approx(expected, abs=1e-6)
            saved = 100 * (1 - min(energy.values()) / at_base(run))
            assert row["best_saving_percent"] == pytest.approx(saved)
            assert row["applications"] == ", ".join(DATA.applications[k] for k in run.kernels)
            seen.add(min(energy, key=lambda mhz: energy[mhz]))
        assert seen == {400, 600}  # mixes of either best clock were drawn

    def test_rows_sum_up_the_runs(self) -> None:
        study = planned()
        results = study.results()
        choices = study.choices(results)
        for row in study.rows(results):
            same = [c for c in choices if c["advisor"] == row["advisor"]]
            regrets = np.array([c["regret_percent"] for c in same])
            assert row["n_runs"] == RUNS
            assert row["n_beyond_limits"] == 0
            assert row["regret_mean"] == pytest.approx(regrets.mean())
            error = np.sqrt(((regrets - regrets.mean()) ** 2).sum() / (RUNS - 1) / RUNS)
            assert row["regret_standard_error"] == pytest.approx(error)
            assert row["regret_median"] == pytest.approx(np.median(regrets))
            assert row["worst_regret"] == pytest.approx(regrets.max())
            assert same[row["worst_run"] - 1]["regret_percent"] == row["worst_regret"]
            assert row["worst_run_applications"] == same[row["worst_run"] - 1]["applications"]

    def test_launches_are_written_as_drawn(self) -> None:
        study = planned(runs=5)
        written = study.files(study.results())["runs"]
        runs = random_runs(DATA.applications, 5)
        assert [row["launches"] for row in written] == [n for run in runs for n in run.launches]
        assert [row["run"] for row in written] == [run.number for run in runs for _ in run.kernels]

    def test_a_limit_of_power_holds_for_every_kernel_of_a_run(self) -> None:
        # 50 W leaves 400 and 600 MHz, at 16 CUs and 1000 MHz as good as without; so the fixed
        # and the advised choice keep it, base (65.84 W) and highest clocks (100 W) never do.
        study = planned(limits=Limits(max_power_w=50))
        rows = {row["advisor"]: row for row in study.rows(study.results())}
        broken = {name: row["breaks_limits_percent"] for name, row in rows.items()}
        assert broken == {
            "highest-clocks": 100, "stay-at-base": 100, "best-fixed": 0, "nearest": 0,
        }  # fmt: skip
        assert rows["nearest"]["worst_regret"] == pytest.approx(0, abs=1e-9)

    @pytest.mark.parametrize(("share", "keeps"), [(0.29, True), (0.31, False)])
    def test_a_limit_of_time_holds_for_the_run(self, share: float, keeps: bool) -> None:
        # At 8 CUs, 400 and 1000 MHz compute takes twice its time, the others 0.7 of theirs; so
        # nothing is lost while compute has at most 0.3 of the others' time at the base.
        names = [name.startswith("compute") for name in DATA.kernels]
        pair = [names.index(True), names.index(False)]
        goal = regret.Goal(MID, ("energy",), Limits(max_slowdown_percent=0))
        base = DATA.grid.index(MID)
        launches = np.array([share, 1.0]) / DATA.time_ms[pair][:, *base]
        mix = LaunchMix(1, tuple(pair), tuple(launches))
        assert goal.keeps(mix_costs(DATA.time_ms, DATA.power_w, mix), base)[1, 0, -1] == keeps


@dataclass
class Certain(Nearest):
    """`nearest`, which is exact on these data, with intervals of 4 % around so many times that."""

    name = "certain"
    factor: ClassVar[float] = 1.0

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        assert coverage == 0.95  # time's and power's, so that both hold 90 times in 100
        surfaces = self.predict(profiles, grid)
        return replace(surfaces, low=surfaces.values * 0.96, high=surfaces.values * 1.04)


class Missing(Certain):
    """Its time is 20 % too long wherever it is not at the base."""

    name = "missing"

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        surfaces = super().predict(profiles, grid)
        if self.quantity == "power":
            return surfaces
        values = 1.2 * surfaces.values
        values[:, *surfaces.grid.index(surfaces.base)] = 1.0
        return replace(surfaces, values=values)


class TestIntervals:
    @pytest.mark.parametrize(("predictor", "percent"), [(Certain, 100.0), (Missing, 0.0)])
    def test_how_often_they_hold_the_runs_saving(
        self, predictor: type[Nearest], percent: float
    ) -> None:
        """By definition; every run's best is not the base."""
        study = planned(predictors=[predictor(features="raw")], features=())
        rows = {row["advisor"]: row for row in study.rows(study.results())}
        assert rows[predictor.name]["interval_holds_percent"] == percent
        assert rows["best-fixed"]["interval_holds_percent"] is None

    def test_of_a_saving_by_hand(self) -> None:
        """Of 8 ms x 10 W = 80 mJ: a choice of 40 mJ, 20 to 160 at the ends."""
        goal = regret.Goal(MID, ("energy",), Limits())
        time_ms, power_w = np.array([[[8.0], [4.0]]]), np.array([[[10.0], [10.0]]])
        sides = [MixCosts(time_ms * f, power_w * f, None) for f in (1.0, 0.5**0.5, 2.0)]
        assert goal.saving_range("energy", sides, (0, 1, 0), (0, 0, 0)) == pytest.approx((-100, 75))
        assert goal.saving_range("energy", sides, (0, 0, 0), (0, 0, 0)) is None
        none = MixCosts(time_ms * np.nan, power_w, None)
        assert goal.saving_range("energy", [*sides, none], (0, 1, 0), (0, 0, 0)) is None


class TestGoal:
    @given(
        arrays(float, (3, 1, 4, 2), elements=st.floats(0.1, 10)),
        arrays(float, (3, 1, 4, 2), elements=st.floats(10, 300)),
        arrays(float, 3, elements=st.floats(0.01, 100)),
        st.sampled_from([0, 1, 2]),
    )
    def test_best_of_a_run_by_brute_force(
        self, time_ms: np.ndarray, power_w: np.ndarray, launches: np.ndarray, delays: int
    ) -> None:
        """Energy and time of the run summed launch by launch."""
        goal = regret.Goal(MID, (), Limits())
        objective = ("energy", "edp", "ed2p")[delays]
        mix = LaunchMix(1, (0, 1, 2), tuple(launches))
        c, e, m = goal.best(objective, mix_costs(time_ms, power_w, mix), (0, 0, 0))
        costs = np.zeros((4, 2))
        for at in np.ndindex(4, 2):
            energy = sum(n * t[0][at] * p[0][at] for n, t, p in zip(launches, time_ms, power_w))  # noqa: B905
            time = sum(n * t[0][at] for n, t in zip(launches, time_ms))  # noqa: B905
            costs[at] = energy * time**delays
        assert c == 0
        assert costs[e, m] == pytest.approx(costs.min(), rel=1e-8)

    def test_the_best_fixed_one_breaks_the_fewest_limits(self) -> None:
        """By hand: at half the clock the first takes twice as long, which is not allowed.

        There both need a half and a fourth of the energy, so that without the first it is the best.
        """
        grid = ConfigGrid((4,), (500.0, 1000.0), (700.0,))
        times_ms = np.array([[2.0, 1.0], [1.0, 1.0]]).reshape(1, 2, 1, 2, 1)
        powers_w = np.array([[10.0, 40.0], [10.0, 40.0]]).reshape(1, 2, 1, 2, 1)
        nothing = np.empty((1, 2, 1, 2, 1, 0))
        data = Measurements("gpu", grid, ("a", "b"), ("a", "b"), times_ms, powers_w, (), nothing)
        goal = regret.Goal(grid.highest, ("energy",), Limits(max_slowdown_percent=10))
        assert goal.best_fixed("energy", data, [[0, 1], [1]]) == [(0, 1, 0), (0, 0, 0)]


class TestLeakage:
    def changed(self, advisor: str, k: int) -> set[int]:
        """The numbers of the runs whose choice a kernel's measurements change."""
        candidate = Candidate(advisor)
        if advisor not in regret.STRATEGIES:
            candidate = Candidate.from_predictor(advisor, "raw")
        part = Part("made", candidate, "leave-one-application-out", 0, MID)
        goal = regret.Goal(MID, ("energy",), Limits())
        honest, other = (
            regret.part_choices(part, data, goal, RUNS)["energy"]
            for data in (DATA, spoilt(DATA, MID, k))
        )
        pairs = zip(honest, other, strict=True)
        return {number for number, (one, two) in enumerate(pairs, 1) if one != two}

    def test_the_fixed_configuration_is_learnt_without_the_run(self) -> None:
        k = 1
        having = {run.number for run in random_runs(DATA.applications, RUNS) if k in run.kernels}
        changed = self.changed("best-fixed", k)
        assert changed  # other runs do learn from it
        assert not changed & having

    def test_a_kernel_is_predicted_without_itself(self) -> None:
        runs = random_runs(DATA.applications, RUNS)
        number, [k] = next((run.number, run.kernels) for run in runs if len(run.kernels) == 1)
        changed = self.changed("nearest", k)
        assert changed  # runs that others belong to, which are predicted from it
        assert number not in changed


def test_held_out_kernels_alone_can_be_beyond_the_limits() -> None:
    """One split of twenty applications holds out four; the other sixteen are not asked about."""
    study = planned(runs=0, protocol="holdout")
    rows = study.rows(study.results())
    assert {(row["n_kernels"], row["n_beyond_limits"]) for row in rows} == {(4, 0)}
