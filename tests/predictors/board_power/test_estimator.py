"""`board-power` on made GPUs with known watts and voltages, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import sampled_kernels as made
from synthetic.tidy import refused, same_bits

import mlscale
from mlscale import ConfigGrid, HardwareConfig, Measurements, Profiles, Surfaces
from mlscale.data.profiles import MeasuredPoint
from mlscale.predictors.base import NO_INTERVALS, predict_surfaces
from mlscale.predictors.board_power.estimator import MEMORY_CLOCKS, OWN_TIMES, BoardPower
from mlscale.predictors.board_power.inputs import shares
from mlscale.predictors.board_power.model import FurtherPower, highest_clock, is_listed
from mlscale.predictors.conditioning import MeasuredRatios
from mlscale.predictors.sampled.curves import PowerCurve

CLOCKS = np.array(made.CLOCKS)
G = CLOCKS / 1500 * (made.VOLTAGE / made.VOLTAGE[-1]) ** 2  # V^2 f relative to the top clock

ASSUMED = (
    "power from one clock alone, by the voltage curve learnt on rtx8000, not on h100-sxm5: "
    "power at a second clock (--also) tells more"
)


def gpu(device: str, seed: int, **changes: float) -> Measurements:
    """Made kernels of a GPU of that name."""
    return replace(made.measurements(seed=seed, **changes), device=device)


@pytest.fixture(scope="module")
def trained() -> BoardPower:
    """Learnt from two made GPUs."""
    return BoardPower().fit([gpu("one", 0), gpu("two", 1)], [made.TOP, made.TOP])


@pytest.fixture(scope="module")
def other() -> Measurements:
    """A third, with other kernels."""
    return gpu("three", 2)


def ready(predictor: BoardPower, other: Measurements) -> BoardPower:
    """The predictor with the limits of the other GPU and its kernels' measured times."""
    own = BoardPower(**predictor.get_params()).restore(predictor.state())
    own.learn_peaks(other.profiles(made.TOP), made.GRID)
    return own.with_times(times(other.relative("time", made.TOP)))


def times(values: np.ndarray) -> Surfaces:
    return Surfaces(made.GRID, made.TOP, values)


class TestKnownTruth:
    def test_power_of_another_gpu(self, trained: BoardPower, other: Measurements) -> None:
        # No noise: what is left is that its highest watts differ, and the prior of the latents.
        surfaces = ready(trained, other).predict(other.profiles(made.TOP), made.GRID)
        errors = np.abs(surfaces.values / other.relative("power", made.TOP) - 1)
        assert errors.mean() < 0.01
        assert np.quantile(errors, 0.95) < 0.03

    def test_the_three_parts(self, trained: BoardPower, other: Measurements) -> None:
        # Twice the time at every clock takes w2 T_base / (2 T) away; w1 follows from the rest.
        own, profiles = ready(trained, other), other.profiles(made.TOP)
        true = other.relative("time", made.TOP)
        power, slower = (
            own.with_times(times(factor * true)).predict(profiles, made.GRID).values[:, 0, 0, 0]
            for factor in (1, 2)
        )
        rate = 1 / true[:, 0, 0, 0]
        w2 = (power - slower) / (rate / 2)
        w1 = (power - w2 * rate - (1 - w2)) / (G[0] - 1)
        watts = made.truth(seed=2)["watts"]
        shares = watts / watts.sum(axis=0)
        assert np.abs(w1 - shares[1]).mean() < 0.03
        assert np.abs(w2 - shares[2]).mean() < 0.03
        assert np.abs(1 - w1 - w2 - shares[0]).mean() < 0.03

    def test_the_voltage_over_the_clock(self, trained: BoardPower) -> None:
        kernels = len(trained.model_.inputs.points)
        log_clock = np.log(CLOCKS / 1500)
        curve = PowerCurve(log_clock, 1.0, np.zeros((kernels, len(CLOCKS))))
        truth = 2 * np.log(made.VOLTAGE / made.VOLTAGE[-1])
        for fit in trained.model_.power:
            assert np.abs(curve.log_voltage(fit.numbers) - truth).max() < 0.05

    def test_another_base(self, other: Measurements) -> None:
        # One table may come with several bases; the truth is relative to whichever is asked.
        tables = [gpu("one", 0), gpu("one", 0), gpu("two", 1), gpu("two", 1)]
        bases = [made.TOP, made.MIDDLE] * 2
        own = BoardPower().fit(tables, bases).learn_peaks(other.profiles(made.TOP), made.GRID)
        at = made.GRID.config((0, 4, 0))
        own = own.with_times(Surfaces(made.GRID, at, other.relative("time", at)))
        values = own.predict(other.profiles(at), made.GRID).values
        assert np.abs(values / other.relative("power", at) - 1).mean() < 0.03


class TestFurtherPower:
    """One kernel's power at a second clock, 1000 of 1500 MHz, tells its weights."""

    def point(self, other: Measurements, log_off: float) -> MeasuredPoint:
        at = int(np.abs(CLOCKS - 1000).argmin())
        power_w = np.full(len(other.kernels), np.nan)
        power_w[0] = other.quantity("power")[0, 0, at, 0] * np.exp(log_off)
        return MeasuredPoint(made.GRID.config((0, at, 0)), np.full(len(power_w), np.nan), power_w)

    def test_weights_by_hand(self, trained: BoardPower, other: Measurements) -> None:
        """Weights unlike the training's: power is met, and on both sides nearer than by a slope."""
        own = shares(other.profiles(made.TOP), trained.limits_["one"])
        log_clock = np.log(CLOCKS / 1500)
        curve = PowerCurve(log_clock, 1.0, np.log(other.relative("time", made.TOP)[:, 0, :, 0]))
        truth = np.log(0.6 + 0.3 * G + 0.1 * np.exp(-curve.log_time))
        second = [int(np.abs(CLOCKS - 1000).argmin())]
        before = trained.model_.log_power(own, curve)
        measured = MeasuredRatios(np.eye(len(CLOCKS))[second], truth[:, second])
        further = FurtherPower.of(measured, log_clock, 0 * log_clock)
        after = trained.model_.log_power(own, curve, further)
        by_slope = before + (truth - before)[:, second] * log_clock / log_clock[second]
        assert np.abs(after - truth)[:, second].max() < 0.01
        # What is left: one reading does not tell constant watts from DRAM's.
        assert np.abs(after - truth).mean() < 0.03
        assert np.abs(after - truth).mean() < 0.7 * np.abs(by_slope - truth).mean()

    def test_the_kernel_alone_moves(self, trained: BoardPower, other: Measurements) -> None:
        profiles = other.profiles(made.TOP)
        point = self.point(other, -0.2)
        own = ready(trained, other)
        surfaces = [
            own.predict_interval(one, 0.9, made.GRID)
            for one in (profiles, replace(profiles, points=(point,)))
        ]
        without, with_point = (one.values for one in surfaces)
        assert point.power_w is not None
        ratio = point.power_w[0] / profiles.base_power_w[0]
        at = made.GRID.index(point.config)
        assert with_point[(0, *at)] == pytest.approx(ratio, rel=0.01)
        assert with_point[1:] == pytest.approx(without[1:])
        ends = [np.array([one.low, one.high]) for one in surfaces]
        assert ends[1][:, 1:] == pytest.approx(ends[0][:, 1:])
        # A constant part of its own, as power never falls below it: the lowest clock moves less.
        low = np.log(with_point / without)[0, 0, 0, 0]
        assert -0.4 < low < -0.05


class TestHighestClock:
    """By hand: an RTX 3090 is rated 1695 MHz and lists 2100; nobody knows 'mine'."""

    def test_is_the_rated_or_a_measured_one(self) -> None:
        assert highest_clock("rtx3090", [1000.0, 1500.0]) == 1695
        assert highest_clock("rtx3090", [1000.0, 1900.0]) == 1900
        assert highest_clock("mine", [1000.0, 1900.0]) == 1900

    def test_listed_clocks(self) -> None:
        assert is_listed("rtx3090", 2100.0)
        assert not is_listed("rtx3090", 2115.0)
        assert not is_listed("mine", 1000.0)

    def test_of_a_gpu_not_learnt_from_a_listed_clock_that_is_asked_for_is_none(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        """What is asked for beside it changes no power at the others."""
        profiles = replace(other.profiles(made.TOP), device="rtx3090")
        few, more = (
            replace(made.GRID, engine_mhz=(1200.0, 1500.0, *beyond)) for beyond in ((), (2100.0,))
        )
        of_few, of_more = (
            trained.learn_peaks(profiles, grid).predict(profiles, grid).values
            for grid in (few, more)
        )
        assert of_more[:, :, :2] == pytest.approx(of_few, rel=1e-12)


class TestSurfaces:
    def test_one_at_the_base(self, trained: BoardPower, other: Measurements) -> None:
        surfaces = ready(trained, other).predict_interval(other.profiles(made.TOP), 0.9, made.GRID)
        at = (slice(None), *made.GRID.index(made.TOP))
        for values in (surfaces.values, surfaces.low, surfaces.high):
            assert values is not None
            assert values[at] == pytest.approx(1)

    @given(st.integers(0, 59), st.floats(0.3, 3))
    def test_more_clock_is_never_less_power_at_fixed_times(self, k: int, factor: float) -> None:
        fixed = times(np.full((1, *made.GRID.shape), factor))
        profiles = THIRD.profiles(made.TOP).select([k])
        values = ready(TRAINED, THIRD).with_times(fixed).predict(profiles, made.GRID).values
        assert (np.diff(values[0, 0, :, 0]) >= 0).all()

    def test_own_times_where_none_are_given(self, trained: BoardPower, other: Measurements) -> None:
        own = BoardPower().restore(trained.state())
        own.learn_peaks(other.profiles(made.TOP), made.GRID)
        surfaces = own.predict(other.profiles(made.TOP), made.GRID)
        assert all(OWN_TIMES in flags for flags in surfaces.flags)
        errors = np.abs(surfaces.values / other.relative("power", made.TOP) - 1)
        assert errors.mean() < 0.02

    def test_the_times_intervals_widen_those_of_power(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        true, profiles = other.relative("time", made.TOP), other.profiles(made.TOP)
        sure = ready(trained, other).predict_interval(profiles, 0.9, made.GRID)
        unsure = replace(times(true), low=true / 1.2, high=true * 1.2)
        wide = ready(trained, other).with_times(unsure).predict_interval(profiles, 0.9, made.GRID)
        assert same_bits(sure.values, wide.values)
        assert (wide.high > sure.high).all()
        assert (wide.low < sure.low).all()

    def test_memory_clocks_are_flagged_and_wider(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        grid = ConfigGrid((40,), (750.0, 1500.0), (500.0, 1000.0))
        flat = Surfaces(grid, made.TOP, np.ones((60, *grid.shape)))
        own = ready(trained, other).with_times(flat)
        surfaces = own.predict_interval(other.profiles(made.TOP), 0.9, grid)
        assert all(MEMORY_CLOCKS in flags for flags in surfaces.flags)
        assert surfaces.low is not None
        width = -np.log(surfaces.low / surfaces.values)
        assert (width[..., 0] > width[..., 1] + 0.1).all()

    def test_a_share_outside_the_range_is_flagged(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        profiles = other.profiles(made.TOP)
        low = replace(profiles, power_w=profiles.quantity("power") / 20)
        flags = ready(trained, other).predict(low, made.GRID).flags
        assert all(any(f.startswith("power share") for f in own) for own in flags)


TRAINED = BoardPower().fit(gpu("one", 0, count=20), made.TOP)
THIRD = gpu("three", 2)


class TestIntervals:
    def test_hold_what_they_promise_of_a_gpu_held_out(self) -> None:
        tables = [gpu(name, seed, noise=0.02) for seed, name in enumerate(("one", "two", "three"))]
        *two, last = tables
        own = ready(BoardPower().fit(two, [made.TOP] * 2), last)
        surfaces = own.predict_interval(last.profiles(made.TOP), 0.9, made.GRID)
        truth = last.relative("power", made.TOP)
        inside = (surfaces.low <= truth) & (truth <= surfaces.high)
        assert 0.83 < inside[:, 0, :-1].mean() < 0.97  # 360 values, the GPU's own noise

    def test_are_in_proportion_to_a_constant_and_the_log_clock(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        # By hand: 0.04 + 0.04 ln 2 at half of the clock is 1 + ln 2 times the 0.04 near the base.
        grid = ConfigGrid((40,), (750.0, 1500.0 * (1 - 1e-9), 1500.0), (1000.0,))
        flat = Surfaces(grid, made.TOP, np.ones((60, *grid.shape)))
        own = ready(trained, other).with_times(flat)
        surfaces = own.predict_interval(other.profiles(made.TOP), 0.9, grid)
        assert surfaces.low is not None
        width = np.log(surfaces.values / surfaces.low)[:, 0, :, 0]
        assert np.allclose(width[:, 0] / width[:, 1], 1 + np.log(2), rtol=1e-6)
        assert np.allclose(width[:, 2], 0)

    def test_there_are_none_after_one_gpu_and_a_flag_says_so(self) -> None:
        own, profiles = ready(TRAINED, THIRD), THIRD.profiles(made.TOP)
        asked = predict_surfaces(own, profiles, made.GRID, 0.9)
        assert asked.low is None
        note = NO_INTERVALS.format("power")
        assert all(flags[0] == note for flags in asked.flags)
        not_asked = predict_surfaces(own, profiles, made.GRID)
        assert not any(note in flags for flags in not_asked.flags)

    def test_a_gpu_in_spread_from_widens_and_is_not_learnt(self, trained: BoardPower) -> None:
        strange = gpu("strange", 3)
        power = strange.power_samples
        assert power is not None
        steeper = power * (CLOCKS / 1500).reshape(1, 1, 1, -1, 1) ** 0.5
        strange = replace(strange, power_samples=steeper)
        tables = [gpu("one", 0), gpu("two", 1), strange]
        own = BoardPower(spread_from=("strange",)).fit(tables, [made.TOP] * 3)
        assert own.trained_devices() == ("one", "two")
        assert same_bits(own.model_.inputs.points, trained.model_.inputs.points)
        assert own.scores_[900] > 2 * trained.scores_[900]


class TestRefusals:
    def test_of_amd(self) -> None:
        nvidia = replace(made.measurements(), device="rtx8000")
        own = BoardPower().fit(nvidia, made.TOP)
        run = made.measurements(count=1).profiles(made.TOP)
        of_amd, of_nvidia = (replace(run, device=key) for key in ("mi300x", "h100-sxm5"))
        assert own.refusal(of_amd) == "power was learnt on NVIDIA GPUs, not on AMD's"
        assert own.refusal(of_nvidia) is None
        assert own.assumption(replace(run, device="rtx8000")) is None
        assert own.assumption(of_nvidia) == ASSUMED
        point = MeasuredPoint(made.MIDDLE, run.time_ms, run.power_w)
        learnt = "power by the voltage curve learnt on rtx8000, not on h100-sxm5"
        assert own.assumption(replace(of_nvidia, points=(point,))) == learnt

    def test_of_an_unknown_gpu(self, trained: BoardPower, other: Measurements) -> None:
        with refused("power of 'three' is not predicted: 'three' is not in the device table"):
            trained.predict(other.profiles(made.TOP), made.GRID)

    def test_of_other_cu_counts(self, trained: BoardPower, other: Measurements) -> None:
        grid = ConfigGrid((20, 40), made.CLOCKS, (1000.0,))
        with refused("predict at the profile's, cu=40"):
            ready(trained, other).predict(other.profiles(made.TOP), grid)

    def test_of_times_on_another_grid(self, trained: BoardPower, other: Measurements) -> None:
        grid = ConfigGrid((40,), (750.0, 1500.0), (1000.0,))
        with refused("on the grid and base of its times alone"):
            ready(trained, other).predict(other.profiles(made.TOP), grid)

    def test_of_a_model_of_power_alone(self) -> None:
        with refused("'board-power' predicts power alone"):
            mlscale.train(made.measurements(), made.TOP, "board-power")


class TestModel:
    def test_saved_and_loaded_it_says_the_same(self, tmp_path: Path, other: Measurements) -> None:
        power = BoardPower(spread_from=("none",)).fit([gpu("one", 0), gpu("two", 1)], ["mid"] * 2)
        model = mlscale.train(gpu("one", 0), made.MIDDLE, "engine-bound")
        model = replace(model, predictors={**model.predictors, "power": power})
        model.save(tmp_path / "m.mlscale")
        loaded = mlscale.load(tmp_path / "m.mlscale")
        profiles = replace(other.profiles(made.MIDDLE), device="one")
        before, after = (m.predict(profiles, 0.9)["power"] for m in (model, loaded))
        for side in ("values", "low", "high"):
            assert same_bits(getattr(before, side), getattr(after, side))
        assert before.flags == after.flags

    def test_turned_to_another_gpu_it_keeps_power(self) -> None:
        power = BoardPower().fit(replace(made.measurements(), device="rtx8000"), made.TOP)
        model = mlscale.train(gpu("one", 0), made.TOP, "engine-bound")
        model = replace(model, predictors={**model.predictors, "power": power})
        at = HardwareConfig(132, 1980.0, 2619.0)
        grid = ConfigGrid((132,), (990.0, 1980.0), (2619.0,))
        h100 = replace(profile(), device="h100-sxm5", base=at)
        predictions = model.for_gpu("h100-sxm5", grid, at).predict(h100)
        assert predictions.energy_mj is not None
        assert ASSUMED in predictions.warnings
        amd = replace(profile(), device="mi300x", base=at)
        predictions = model.for_gpu("mi300x", grid, at).predict(amd)
        assert predictions.energy_mj is None
        [why] = [w for w in predictions.warnings if "power_w" in w]
        assert why.startswith("power was learnt on NVIDIA GPUs, not on AMD's: power_w and")


def profile() -> Profiles:
    """One made kernel."""
    return made.measurements().profiles(made.TOP).select([0])
