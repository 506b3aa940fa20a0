"""Regret of whole runs: closed forms, brute force, and nothing learnt from the run itself."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from regret_study import regret_of
from synthetic import frugal
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, Measurements, Profiles, Surfaces
from mlscale.advice.objectives import Limits
from mlscale.predictors.baselines import Nearest
from mlscale.studies import regret
from mlscale.studies.candidates import Candidate
from mlscale.studies.crossval import Part
from mlscale.studies.regret import LaunchMix, random_runs

MID = made.GRID.mid  # cu=8, engine=800, memory=700
DATA = frugal.measurements(per_group=10).in_order  # so that every training has both kinds
RUNS = 60
POWER_W = {400: 34.48, 600: 45.12, 800: 65.84, 1000: 100.0}  # of tests/synthetic/frugal.py


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


class TestKnownTruth:
    def test_regret_of_every_run_by_closed_form(self) -> None:
        of = planned()
        choices = of.choices(of.results())
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
        of = planned()
        results = of.results()
        choices = of.choices(results)
        for row in of.rows(results):
            own = [c for c in choices if c["advisor"] == row["advisor"]]
            regrets = np.array([c["regret_percent"] for c in own])
            assert row["n_runs"] == RUNS
            assert row["n_beyond_limits"] == 0
            assert row["regret_mean"] == pytest.approx(regrets.mean())
            error = np.sqrt(((regrets - regrets.mean()) ** 2).sum() / (RUNS - 1) / RUNS)
            assert row["regret_standard_error"] == pytest.approx(error)
            assert row["regret_median"] == pytest.approx(np.median(regrets))
            assert row["worst_regret"] == pytest.approx(regrets.max())
            assert own[row["worst_run"] - 1]["regret_percent"] == row["worst_regret"]
            assert row["worst_run_applications"] == own[row["worst_run"] - 1]["applications"]

    def test_launches_are_written_as_drawn(self) -> None:
        of = planned(runs=5)
        written = of.files(of.results())["runs"]
        runs = random_runs(DATA.applications, 5)
        assert [row["launches"] for row in written] == [n for run in runs for n in run.launches]
        assert [row["run"] for row in written] == [run.number for run in runs for _ in run.kernels]

    def test_a_limit_of_power_holds_for_every_kernel_of_a_run(self) -> None:
        # 50 W leaves 400 and 600 MHz, at 16 CUs and 1000 MHz as good as without; so the fixed
        # and the advised choice keep it, base (65.84 W) and highest clocks (100 W) never do.
        of = planned(limits=Limits(max_power_w=50))
        rows = {row["advisor"]: row for row in of.rows(of.results())}
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
        time_ms, power_w = DATA.time_ms[pair], DATA.power_w[pair]  # type: ignore[index]
        launches = np.array([share, 1.0]) / time_ms[:, *base]
        assert goal.keeps(time_ms, power_w, launches, base)[1, 0, -1] == keeps


@dataclass
class Certain(Nearest):
    """`nearest`, which is exact on these data, with intervals of 4 % around so many times that."""

    name = "certain"
    factor: ClassVar[float] = 1.0

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        assert coverage == 0.95  # of time and of power, so that both hold 90 times in 100
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
        of = planned(predictors=[predictor(features="raw")], features=())
        rows = {row["advisor"]: row for row in of.rows(of.results())}
        assert rows[predictor.name]["interval_holds_percent"] == percent
        assert rows["best-fixed"]["interval_holds_percent"] is None

    def test_of_a_saving_by_hand(self) -> None:
        """Of 3 x 2 ms x 10 W + 4 ms x 5 W = 80 mJ: a choice of 40 mJ, 20 to 160 at the ends."""
        goal = regret.Goal(MID, ("energy",), Limits())
        time_ms = np.array([[2.0, 1.0], [4.0, 2.0]])[:, None, :, None]
        power_w = np.array([10.0, 5.0])[:, None, None, None] * np.ones_like(time_ms)
        launches = np.array([3.0, 1.0])
        ends = [(time_ms * f, power_w * f, launches) for f in (1.0, 0.5**0.5, 2.0)]
        assert goal.saving_range("energy", ends, (0, 1, 0), (0, 0, 0)) == pytest.approx((-100, 75))
        assert goal.saving_range("energy", ends, (0, 0, 0), (0, 0, 0)) is None
        none = [(time_ms * np.nan, power_w, launches)]
        assert goal.saving_range("energy", ends + none, (0, 1, 0), (0, 0, 0)) is None


class TestBruteForce:
    @given(
        arrays(float, (3, 1, 4, 2), elements=st.floats(0.1, 10)),
        arrays(float, (3, 1, 4, 2), elements=st.floats(10, 300)),
        arrays(float, 3, elements=st.floats(0.01, 100)),
        st.sampled_from([0, 1, 2]),
    )
    def test_best_of_a_run(
        self, time_ms: np.ndarray, power_w: np.ndarray, launches: np.ndarray, delays: int
    ) -> None:
        # Energy and time of the run summed launch by launch.
        goal = regret.Goal(MID, (), Limits())
        objective = ("energy", "edp", "ed2p")[delays]
        c, e, m = goal.best(objective, time_ms, power_w, launches, (0, 0, 0))
        costs = np.zeros((4, 2))
        for at in np.ndindex(4, 2):
            energy = sum(n * t[0][at] * p[0][at] for n, t, p in zip(launches, time_ms, power_w))  # noqa: B905
            time = sum(n * t[0][at] for n, t in zip(launches, time_ms))  # noqa: B905
            costs[at] = energy * time**delays
        assert c == 0
        assert costs[e, m] == pytest.approx(costs.min(), rel=1e-8)


class TestLeakage:
    def spoilt(self, k: int) -> Measurements:
        """All that was measured of one kernel away from the base made nonsense."""
        random = np.random.default_rng(0)
        time, power = DATA.time_samples.copy(), DATA.power_samples
        assert power is not None
        power = power.copy()
        elsewhere = np.ones(DATA.grid.shape, dtype=bool)
        elsewhere[DATA.grid.index(MID)] = False
        for samples in (time, power):
            samples[0, k][elsewhere] = random.uniform(1, 100, elsewhere.sum())
        return replace(DATA, time_samples=time, power_samples=power)

    def changed(self, advisor: str, k: int) -> set[int]:
        """The numbers of the runs whose choice a kernel's measurements change."""
        candidate = Candidate(advisor)
        if advisor not in regret.STRATEGIES:
            candidate = Candidate.of(advisor, "raw")
        part = Part("made", candidate, "leave-one-application-out", 0, MID)
        goal = regret.Goal(MID, ("energy",), Limits())
        honest, other = (
            regret.part_choices(part, data, goal, RUNS)["energy"] for data in (DATA, self.spoilt(k))
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


class TestAsking:
    @pytest.mark.parametrize("protocol", ["k-fold", "holdout"])
    def test_another_protocol_is_refused(self, protocol: str) -> None:
        with refused("runs are drawn where the protocol is 'leave-one-application-out'"):
            _ = planned(split=protocol).parts

    def test_held_out_kernels_alone_can_be_beyond_the_limits(self) -> None:
        # One split of twenty applications holds out four; the other sixteen are not asked about.
        of = planned(runs=0, split="holdout")
        rows = of.rows(of.results())
        assert {(row["n_kernels"], row["n_beyond_limits"]) for row in rows} == {(4, 0)}
