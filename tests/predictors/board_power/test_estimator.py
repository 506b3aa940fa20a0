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
from mlscale.predictors.board_population import highest_clock, is_listed
from mlscale.predictors.board_power import MEMORY_CLOCKS, OWN_TIMES, BoardPower
from mlscale.predictors.conditioning import RATIO_NOISE

CLOCKS = np.array(made.CLOCKS)
G = CLOCKS / 1500 * (made.VOLTAGE / made.VOLTAGE[-1]) ** 2  # V^2 f relative to the top clock

ASSUMED = (
    "power from one clock alone, learnt on 1 other GPU: power at a second clock (--also) tells more"
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
    """Of kernels whose parts follow from DRAM's share, which the predictor does not look at."""

    def test_power_of_another_gpu(self, trained: BoardPower, other: Measurements) -> None:
        # What is left is what power's share does not tell of where it goes.
        surfaces = ready(trained, other).predict(other.profiles(made.TOP), made.GRID)
        errors = np.abs(surfaces.values / other.relative("power", made.TOP) - 1)
        assert errors.mean() < 0.045

    def test_power_at_two_more_clocks_tells_the_three_parts(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        at = [made.GRID.config((0, step, 0)) for step in (0, 3)]
        points = tuple(
            MeasuredPoint(config, own.time_ms, own.power_w)
            for config, own in ((config, other.profiles(config)) for config in at)
        )
        profiles = replace(other.profiles(made.TOP), points=points)
        surfaces = ready(trained, other).predict(profiles, made.GRID)
        errors = np.abs(surfaces.values / other.relative("power", made.TOP) - 1)
        assert errors.mean() < 0.015

    def test_another_base(self, other: Measurements) -> None:
        # One table may come with several bases; the truth is relative to whichever is asked.
        tables = [gpu("one", 0), gpu("one", 0), gpu("two", 1), gpu("two", 1)]
        bases = [made.TOP, made.MIDDLE] * 2
        own = BoardPower().fit(tables, bases).learn_peaks(other.profiles(made.TOP), made.GRID)
        at = made.GRID.config((0, 4, 0))
        own = own.with_times(Surfaces(made.GRID, at, other.relative("time", at)))
        values = own.predict(other.profiles(at), made.GRID).values
        assert np.abs(values / other.relative("power", at) - 1).mean() < 0.04


class TestFurtherPower:
    """One kernel's power at a second clock, 1000 of 1500 MHz, tells its weights."""

    def point(self, other: Measurements, log_off: float) -> MeasuredPoint:
        at = int(np.abs(CLOCKS - 1000).argmin())
        power_w = np.full(len(other.kernels), np.nan)
        power_w[0] = other.quantity("power")[0, 0, at, 0] * np.exp(log_off)
        return MeasuredPoint(made.GRID.config((0, at, 0)), np.full(len(power_w), np.nan), power_w)

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
        assert with_point[(0, *at)] == pytest.approx(ratio, rel=RATIO_NOISE)
        assert with_point[1:] == pytest.approx(without[1:])
        ends = [np.array([one.low, one.high]) for one in surfaces]
        assert ends[1][:, 1:] == pytest.approx(ends[0][:, 1:])
        # A constant part of its own, as power never falls below it: the lowest clock moves less.
        low = np.log(with_point / without)[0, 0, 0, 0]
        assert -0.4 < low < -0.05

    def test_at_another_memory_clock_alone_it_narrows_no_other(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        """What a second engine clock would be worth is set to nothing."""
        grid = ConfigGrid((40,), (750.0, 1500.0), (500.0, 1000.0))
        power_w = 0.8 * other.profiles(made.TOP).base_power_w
        nothing = np.full(len(power_w), np.nan)
        point = MeasuredPoint(HardwareConfig(40, 1500.0, 500.0), nothing, power_w)
        profiles = replace(other.profiles(made.TOP), points=(point,))
        flat = Surfaces(grid, made.TOP, np.ones((len(power_w), *grid.shape)))
        own = ready(trained, other).with_times(flat)
        own.further_scores_ = np.zeros_like(own.further_scores_)
        surfaces = own.predict_interval(profiles, 0.9, grid)
        assert surfaces.high is not None
        assert (surfaces.high[:, 0, 0, 1] > 1.02 * surfaces.values[:, 0, 0, 1]).all()


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
        assert errors.mean() < 0.06

    def test_the_times_intervals_widen_those_of_power(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        true, profiles = other.relative("time", made.TOP), other.profiles(made.TOP)
        sure = ready(trained, other).predict_interval(profiles, 0.9, made.GRID)
        unsure = replace(times(true), low=true / 1.2, high=true * 1.2)
        wide = ready(trained, other).with_times(unsure).predict_interval(profiles, 0.9, made.GRID)
        assert same_bits(sure.values, wide.values)
        away = np.arange(len(CLOCKS)) < len(CLOCKS) - 1
        assert (wide.high > sure.high)[:, 0, away].all()
        assert (wide.low < sure.low)[:, 0, away].all()
        assert wide.high[:, 0, ~away] == pytest.approx(1)  # there power is measured

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

    def test_other_memory_clocks_change_nothing_at_the_bases(
        self, trained: BoardPower, other: Measurements
    ) -> None:
        """Times are twice as long at half the memory clock."""
        at_base = other.relative("time", made.TOP)
        both = replace(made.GRID, memory_mhz=(500.0, 1000.0))
        slower = Surfaces(both, made.TOP, np.concatenate([2 * at_base, at_base], axis=3))
        own, profiles = ready(trained, other), other.profiles(made.TOP)
        alone = own.predict(profiles, made.GRID).values
        values = own.with_times(slower).predict(profiles, both).values
        assert values[..., 1:] == pytest.approx(alone)

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
    def test_there_are_none_after_one_gpu_and_a_flag_says_so(self) -> None:
        own, profiles = ready(TRAINED, THIRD), THIRD.profiles(made.TOP)
        asked = predict_surfaces(own, profiles, made.GRID, 0.9)
        assert asked.low is None
        note = NO_INTERVALS.format("power")
        assert all(flags[0] == note for flags in asked.flags)
        not_asked = predict_surfaces(own, profiles, made.GRID)
        assert not any(note in flags for flags in not_asked.flags)


class TestRefusals:
    def test_what_is_assumed_of_other_gpus(self) -> None:
        nvidia = replace(made.measurements(), device="rtx8000")
        own = BoardPower().fit(nvidia, made.TOP)
        run = made.measurements(count=1).profiles(made.TOP)
        of_amd, of_nvidia = (replace(run, device=key) for key in ("mi300x", "h100-sxm5"))
        assert own.refusal(of_amd) is own.refusal(of_nvidia) is None
        assert own.assumption(replace(run, device="rtx8000")) is None
        assert own.assumption(of_nvidia) == ASSUMED
        point = MeasuredPoint(made.MIDDLE, run.time_ms, run.power_w)
        learnt = "power learnt on 1 other GPU"
        assert own.assumption(replace(of_nvidia, points=(point,))) == learnt
        two = made.measurements(count=2).profiles(made.TOP)
        of_first = MeasuredPoint(made.MIDDLE, two.time_ms, np.array([100.0, np.nan]))
        assert own.assumption(replace(two, device="h100-sxm5", points=(of_first,))) == (
            ASSUMED.replace("alone,", f"alone for 1 kernel ({two.kernels[1]}),")
        )
        of_another_vendor = f"{learnt}, none of them of AMD"
        assert own.assumption(replace(of_amd, points=(point,))) == of_another_vendor

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

    def test_of_a_table_at_low_clocks(self) -> None:
        """The data sheet says that an RTX 8000 reaches 1770 MHz, 40 % of which are 708."""
        low = replace(made.GRID, engine_mhz=(400.0, 450.0, 500.0, 550.0, 600.0, 650.0, 700.0))
        table = replace(gpu("rtx8000", 0), grid=low)
        what = "3 engine clocks or more at 40% of the GPU's highest, 1770 MHz, or above; the table"
        with refused(
            f"{what} of 'rtx8000' has 1, its base 600 MHz included: measure higher clocks"
        ):
            BoardPower().fit(table, low.config((0, 4, 0)))

    def test_of_a_model_of_power_alone(self) -> None:
        with refused("'board-power' predicts power alone"):
            mlscale.train(made.measurements(), made.TOP, "board-power")


class TestModel:
    def test_saved_and_loaded_it_says_the_same(self, tmp_path: Path, other: Measurements) -> None:
        power = BoardPower().fit([gpu("one", 0), gpu("two", 1)], ["mid"] * 2)
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
        predictions = model.for_gpu("h100-sxm5", grid, at, force=True).predict(h100)
        assert predictions.energy_mj is not None
        assert ASSUMED in predictions.warnings
        amd = replace(profile(), device="mi300x", base=at)
        predictions = model.for_gpu("mi300x", grid, at, force=True).predict(amd)
        assert predictions.energy_mj is not None
        assert any("none of them of AMD" in warning for warning in predictions.warnings)


def profile() -> Profiles:
    """One made kernel."""
    return made.measurements().profiles(made.TOP).select([0])
