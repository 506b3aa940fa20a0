"""`sampled` on made kernels whose truth is known; what it refuses, flags, and stores."""

from dataclasses import replace

import numpy as np
import pytest
from prediction_errors import mean_error, percentage_error
from synthetic import sampled_kernels as made
from synthetic.tidy import refused, same_bits

from mlscale import (
    ConfigGrid,
    DataWarning,
    HardwareConfig,
    Measurements,
    Profiles,
)
from mlscale.data.profiles import MeasuredPoint
from mlscale.predictors import create, default_predictor
from mlscale.predictors.base import Explains, GivesIntervals, HasFeatures, UsesMeasuredPoints
from mlscale.predictors.sampled.estimator import Sampled

BASES = (made.TOP, made.MIDDLE)


@pytest.fixture(scope="module")
def trained() -> dict[str, Sampled]:
    """Of each quantity, on 60 kernels without noise, at the highest clock."""
    table = made.measurements()
    return {q: Sampled(quantity=q).fit(table, made.TOP) for q in ("time", "power")}


def new_kernels(noise: float = 0.0) -> Measurements:
    """Kernels that no training has seen."""
    return made.measurements(count=45, seed=7, noise=noise)


class TestKnownTruth:
    """60 kernels whose latents are smooth in the inputs: bounds are a tenth of what scales."""

    @pytest.mark.parametrize("base", BASES)
    @pytest.mark.parametrize(("quantity", "bound"), [("time", 1.0), ("power", 1.5)])
    def test_new_kernels_are_predicted(
        self, trained: dict[str, Sampled], base: HardwareConfig, quantity: str, bound: float
    ) -> None:
        new = new_kernels()
        assert mean_error(trained[quantity], new.profiles(base), new) < bound

    def test_sharpness_is_recovered(self, trained: dict[str, Sampled]) -> None:
        # The truth is 2.5. To within half of the prior's standard deviation, 0.3 of the log: the
        # prior's median, 2, is farther off than that.
        for fit in trained["time"].bases_[-1].time.fits:
            assert fit.numbers[0] == pytest.approx(np.log(made.P), abs=0.15)

    def test_shape_of_the_voltage_is_recovered(self, trained: dict[str, Sampled]) -> None:
        # Flat to 0.7 of the highest clock, V^2 1.69 times as high there; nodes stand at 0.72
        # and 0.86, so that the bend is rounded. What leaks into constant watts takes the rest.
        power = trained["power"].bases_[-1].power
        assert power is not None
        for fit in power.fits:
            steps = np.log1p(np.exp(fit.numbers))
            assert steps[1:3].sum() < 0.1
            assert steps[3:].sum() == pytest.approx(2 * np.log(1.3), rel=0.2)

    def test_what_a_clock_does_to_all_kernels_is_learnt(self) -> None:
        # 5 % longer at 900 MHz, which no p-norm gives.
        def slower(table: Measurements) -> Measurements:
            samples = table.time_samples.copy()
            samples[:, :, :, 2] *= 1.05
            return replace(table, time_samples=samples)

        new = slower(new_kernels())
        predictor = Sampled(bases=0).fit(slower(made.measurements()), made.TOP)
        values = predictor.predict(new.profiles(made.TOP)).values
        ratio = values / new.relative("time", made.TOP)
        assert 100 * np.abs(ratio - 1).mean() < 1.2
        assert np.median(ratio[:, :, 2]) == pytest.approx(1, abs=0.005)
        # Without the trees too: the curve alone takes the 5 % over from the residual.
        opinions, _ = predictor.bases_[-1].opinions(new.profiles(made.TOP))
        of_curve = np.exp(opinions.by_curve) / new.relative("time", made.TOP)[:, 0, :, 0]
        assert np.median(of_curve[:, 2]) == pytest.approx(1, abs=0.01)

    def test_one_more_point_helps_where_inputs_do_not_tell(self) -> None:
        # Without DRAM's true share in the inputs, the share of the clock is unknown.
        random = np.random.default_rng(5)

        def blind(table: Measurements) -> Measurements:
            samples = table.counter_samples.copy()
            samples[..., 1] = random.uniform(0, 0.9, samples.shape[1])[None, :, None, None, None]
            return replace(table, counter_samples=samples, power_samples=None)

        predictor = Sampled(bases=0).fit(blind(made.measurements(count=90)), made.TOP)
        new = blind(new_kernels())
        profiles, lowest = new.profiles(made.TOP), new.grid.config((0, 0, 0))
        point = MeasuredPoint(lowest, new.profiles(lowest).time_ms, None)
        truth = new.relative("time", made.TOP)
        once = np.abs(predictor.predict(profiles).values / truth - 1).mean()
        twice = np.abs(
            predictor.predict(replace(profiles, points=(point,))).values / truth - 1
        ).mean()
        assert twice < once / 3


class TestAnyBase:
    """Five of the seven clocks are trained as bases, 600, 750, 1050, 1200 and 1500 MHz."""

    @pytest.mark.parametrize("clock", [2, 5])
    @pytest.mark.parametrize(("quantity", "bound"), [("time", 1.0), ("power", 1.5)])
    def test_bases_between_the_trained_are_as_good(
        self, trained: dict[str, Sampled], clock: int, quantity: str, bound: float
    ) -> None:
        # The bounds are those of a trained base, see TestKnownTruth.
        new, base = new_kernels(), made.GRID.config((0, clock, 0))
        surfaces = trained[quantity].predict_interval(new.profiles(base))
        assert percentage_error(surfaces.values, new.relative(quantity, base)) < bound
        assert surfaces.low is not None
        np.testing.assert_allclose(surfaces.low[:, 0, clock, 0], 1)

    def test_a_clock_that_is_no_step_joins_the_grid(self, trained: dict[str, Sampled]) -> None:
        profiles = new_kernels().profiles(made.TOP)
        near = replace(profiles, base=HardwareConfig(40, 1499.9, 1005.0))
        surfaces = trained["power"].predict(near)
        assert surfaces.grid == ConfigGrid((40,), (*made.CLOCKS[:-1], 1499.9, 1500.0), (1005.0,))
        np.testing.assert_allclose(surfaces.values[:, 0, -2, 0], 1)
        # 0.1 MHz of 300 between two bases: what the nearest says, to a thousandth.
        at_top = trained["power"].predict(profiles).values
        np.testing.assert_allclose(np.delete(surfaces.values, 6, axis=2), at_top, rtol=2e-3)

    def test_further_points_narrow_it_there_too(self, trained: dict[str, Sampled]) -> None:
        new, base, lowest = new_kernels(), made.GRID.config((0, 5, 0)), made.GRID.config((0, 0, 0))
        point = MeasuredPoint(lowest, new.profiles(lowest).time_ms, None)
        profiles = replace(new.profiles(base), points=(point,))
        truth = new.relative("time", base)
        once, twice = (
            np.abs(trained["time"].predict(own).values / truth - 1)[:, 0, 0].mean()
            for own in (new.profiles(base), profiles)
        )
        assert twice < once
        narrower, wide = (
            trained["time"].widths_ahead(own)[0] for own in (profiles, new.profiles(base))
        )
        assert (narrower < wide).all()

    def test_profiles_at_one_base_alone_train_that_base(self) -> None:
        table = made.measurements(count=12)
        counters = table.counter_samples.copy()
        counters[:, :, :, :6] = np.nan
        predictor = Sampled().fit(replace(table, counter_samples=counters), made.TOP)
        assert [own.engine_mhz for own in predictor.bases_] == [1500.0]
        with refused("and an engine clock from 1500 to 1500 MHz"):
            predictor.predict(table.profiles(made.MIDDLE))


class TestOtherBoards:
    def test_of_the_same_chip_are_flagged(self) -> None:
        table = replace(made.measurements(count=12), device="a100-sxm4-80gb")
        predictor = Sampled(bases=0).fit(table, made.TOP)
        board = replace(
            table.profiles(made.TOP),
            device="a100-sxm4-40gb",
            base=replace(made.TOP, memory_mhz=1215.0),
        )
        surfaces = predictor.predict(board)
        assert surfaces.grid.memory_mhz == (1215.0,)
        assert all(
            "learnt on a100-sxm4-80gb, another board of the same chip" in flags
            for flags in surfaces.flags
        )
        with refused("how times scale on another GPU does not"):
            predictor.predict(replace(board, device="h100-sxm5"))


class TestIntervals:
    @pytest.mark.parametrize("quantity", ["time", "power"])
    def test_hold_what_they_promise_on_known_noise(self, quantity: str) -> None:
        # 2 % noise on every number; 45 kernels x 6 clocks. Within 7 points of 90 %.
        table = made.measurements(noise=0.02, count=90)
        predictor = Sampled(quantity=quantity, bases=0).fit(table, made.TOP)
        new = new_kernels(noise=0.02)
        surfaces = predictor.predict_interval(new.profiles(made.TOP), 0.9)
        truth = new.relative(quantity, made.TOP)
        assert surfaces.low is not None
        assert surfaces.high is not None
        held = (surfaces.low <= truth) & (truth <= surfaces.high)
        assert 83 <= 100 * held[:, :, :-1].mean() <= 97

    def test_are_wider_for_more_coverage_and_hold_the_prediction(
        self, trained: dict[str, Sampled]
    ) -> None:
        profiles = new_kernels().profiles(made.TOP)
        narrow, wide = (trained["time"].predict_interval(profiles, c) for c in (0.5, 0.95))
        assert narrow.low is not None
        assert narrow.high is not None
        assert wide.low is not None
        assert wide.high is not None
        assert (wide.low <= narrow.low).all()
        assert (narrow.low <= narrow.values).all()
        assert (narrow.high <= wide.high).all()
        np.testing.assert_allclose(wide.low[:, 0, -1, 0], 1)

    def test_are_not_there_with_two_applications(self) -> None:
        table = made.measurements(count=8, per_application=4)
        predictor = Sampled(bases=0).fit(table, made.TOP)
        assert predictor.predict_interval(table.profiles(made.TOP)).low is None

    def test_narrow_with_a_further_point(self, trained: dict[str, Sampled]) -> None:
        profiles = new_kernels().profiles(made.TOP)
        now, ahead = trained["time"].widths_ahead(profiles)
        assert now.shape == (45,)
        assert ahead.shape == (45, 7)
        assert (ahead <= now[:, None] + 1e-12).all()
        assert (ahead.min(axis=1) < now).all()


class TestPredictions:
    @pytest.mark.parametrize("quantity", ["time", "power"])
    def test_are_1_at_the_base(self, trained: dict[str, Sampled], quantity: str) -> None:
        surfaces = trained[quantity].predict(new_kernels().profiles(made.TOP))
        assert surfaces.values.shape == (45, 1, 7, 1)
        np.testing.assert_allclose(surfaces.values[:, 0, -1, 0], 1, rtol=1e-12)

    def test_do_not_depend_on_the_other_kernels(self, trained: dict[str, Sampled]) -> None:
        profiles = new_kernels().profiles(made.TOP)
        together = trained["power"].predict(profiles)
        for k in (0, 17):
            alone = trained["power"].predict(profiles.select([k]))
            np.testing.assert_allclose(alone.values[0], together.values[k], rtol=1e-12)
            assert alone.flags[0] == together.flags[k]

    def test_between_clocks_are_interpolated(self, trained: dict[str, Sampled]) -> None:
        profiles = new_kernels().profiles(made.TOP)
        between = ConfigGrid((40,), (600.0, 670.0, 750.0, 1500.0), (1000.0,))
        on_grid = trained["time"].predict(profiles).values[:, 0, :, 0]
        values = trained["time"].predict(profiles, between).values[:, 0, :, 0]
        np.testing.assert_allclose(values[:, [0, 2, 3]], on_grid[:, [0, 1, 6]])
        weight = np.log(670 / 600) / np.log(750 / 600)  # geometric, as everywhere in mlscale
        np.testing.assert_allclose(
            values[:, 1], on_grid[:, 0] ** (1 - weight) * on_grid[:, 1] ** weight
        )

    def test_outside_the_trained_range_are_flagged(self, trained: dict[str, Sampled]) -> None:
        profiles = new_kernels().profiles(made.TOP).select([0])
        assert profiles.power_w is not None
        counters = profiles.counters.copy()
        counters[0, 0] = 0.2  # SMs active 60 to 100 % of the time in training
        strange = replace(profiles, counters=counters, power_w=profiles.power_w * 0 + 20)
        [flags] = trained["time"].predict(strange).flags
        assert [flag.rsplit(" ", 1)[0] for flag in flags] == [
            "sm_active 0.2 below trained", "power_w 20 below trained",
        ]  # fmt: skip

    def test_without_power_or_sm_active_are_flagged(self, trained: dict[str, Sampled]) -> None:
        profiles = without(new_kernels().profiles(made.TOP).select([0]), "sm_active")
        [flags] = trained["time"].predict(replace(profiles, power_w=None)).flags
        assert flags == ("missing: sm_active, power_w",)

    def test_of_a_point_unlike_all_kernels_are_flagged(self, trained: dict[str, Sampled]) -> None:
        profiles = new_kernels().profiles(made.TOP).select([0])
        point = MeasuredPoint(made.GRID.config((0, 0, 0)), 9 * profiles.time_ms, None)
        [flags] = trained["time"].predict(replace(profiles, points=(point,))).flags
        assert "not like the training kernels" in flags[-1]


def without(profiles: Profiles, name: str) -> Profiles:
    """The profiles without a counter."""
    others = [n for n in profiles.counter_names if n != name]
    columns = [profiles.counter_names.index(n) for n in others]
    return replace(profiles, counter_names=tuple(others), counters=profiles.counters[:, columns])


class TestRefusals:
    def test_another_gpu(self, trained: dict[str, Sampled]) -> None:
        profiles = replace(new_kernels().profiles(made.TOP), device="other-gpu")
        with refused("'sampled' learnt 'made-gpu', and how times scale on another GPU does not"):
            trained["time"].predict(profiles)

    @pytest.mark.parametrize(
        "base", [replace(made.TOP, engine_mhz=590.0), replace(made.TOP, memory_mhz=1011.0)]
    )
    def test_bases_beyond_the_trained(
        self, trained: dict[str, Sampled], base: HardwareConfig
    ) -> None:
        with refused("predicts from cu=40, memory=1000 and an engine clock from 600 to 1500 MHz"):
            trained["time"].predict(replace(new_kernels().profiles(made.TOP), base=base))

    def test_clocks_beyond_the_trained(self, trained: dict[str, Sampled]) -> None:
        grid = ConfigGrid((40,), (500.0, 1500.0), (1000.0,))
        with refused("engine_mhz 500 is outside the trained 600 to 1500"):
            trained["time"].predict(new_kernels().profiles(made.TOP), grid)

    def test_other_memory_clocks(self, trained: dict[str, Sampled]) -> None:
        grid = ConfigGrid((40,), made.CLOCKS, (500.0,))
        with refused("predicts other engine clocks alone, at cu=40,memory=1000"):
            trained["time"].predict(new_kernels().profiles(made.TOP), grid)

    def test_profiles_without_dram(self, trained: dict[str, Sampled]) -> None:
        profiles = without(new_kernels().profiles(made.TOP), "dram_active")
        with refused("kernel 'kernel0' has no value for 'dram_active', which the model needs"):
            trained["time"].predict(profiles)

    def test_training_without_dram(self) -> None:
        with refused("no training kernel has a value for 'dram_active' or 'memory_copy_utilis"):
            Sampled().fit(made.measurements().without_counters(["dram_active"]), made.TOP)

    def test_training_on_one_kernel(self) -> None:
        with refused("needs two training kernels$"):
            Sampled().fit(made.measurements(count=1), made.TOP)

    def test_training_on_two_memory_clocks(self) -> None:
        table = made.measurements()
        time, power, counters = (
            np.repeat(own, 2, axis=4)
            for own in (table.time_samples, table.power_samples, table.counter_samples)
        )
        twice = replace(
            table,
            grid=ConfigGrid((40,), made.CLOCKS, (500.0, 1000.0)),
            time_samples=time,
            power_samples=power,
            counter_samples=counters,
        )
        with refused("'sampled' learns from kernels at one CU count, one memory clock and 2"):
            Sampled().fit(twice, HardwareConfig(40, made.CLOCKS[-1], 1000.0))

    def test_power_without_power(self) -> None:
        table = replace(made.measurements(), power_samples=None)
        with refused("have no column 'power_w'"):
            Sampled(quantity="power").fit(table, made.TOP)


def test_kernels_with_faulty_power_are_not_trained_on() -> None:
    table = made.measurements()
    assert table.power_samples is not None
    power = table.power_samples.copy()
    power[0, 4, 0, 3] *= 0.5
    with pytest.warns(DataWarning, match="not trained on.*: kernel4$"):
        predictor = Sampled(bases=0).fit(replace(table, power_samples=power), made.TOP)
    others = Sampled(bases=0).fit(table.select([k for k in range(60) if k != 4]), made.TOP)
    profiles = new_kernels().profiles(made.TOP)
    assert same_bits(predictor.predict(profiles).values, others.predict(profiles).values)


def test_is_the_default_for_sampled_tables_alone() -> None:
    table = made.measurements()
    assert default_predictor(table) == "sampled"
    assert default_predictor(replace(table, metadata={})) != "sampled"
    assert isinstance(create("sampled"), GivesIntervals)
    assert isinstance(create("sampled"), UsesMeasuredPoints)
    assert isinstance(create("sampled"), HasFeatures)
    assert isinstance(create("sampled"), Explains)


def test_explains_by_what_was_measured(trained: dict[str, Sampled]) -> None:
    profiles = new_kernels().profiles(made.TOP)
    explanation = trained["time"].explain(profiles)
    assert explanation.names == ("sm_active", "dram_active", "power_w")
    assert same_bits(explanation.values[:, 1], profiles.counter("dram_active"))
    assert ((explanation.points >= 0) & (explanation.points <= 1)).all()


class TestFile:
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("tree_weight", 1.5, "weight of the trees"),
            ("scores", np.array([1.0, 0.5]), "do not rise"),
            ("misfit", np.zeros((1, 3)), "shape"),
            ("power", {}, "power model"),
            ("engine_mhz", 601.0, "none of the trained clocks"),
            ("engine_mhz", 600.0, "do not rise"),
        ],
    )
    def test_damaged_states_are_refused(
        self, trained: dict[str, Sampled], name: str, value: object, message: str
    ) -> None:
        state = trained["time"].state()
        state["bases"] = [*state["bases"][:-1], {**state["bases"][-1], name: value}]
        with pytest.raises(ValueError, match=message):
            Sampled().restore(state)
