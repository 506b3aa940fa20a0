"""`runs`: its laws by hand, made runs of a known truth, properties, and real GPUs left out.

Numbers of the laws are worked out by hand beside them; made runs follow `synthetic.made_runs`.
Bounds on real GPUs are just above what was measured when they were written: regression only.
"""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_predictions import by_law, outcome
from run_tables import tables
from synthetic import made_runs as made
from synthetic.tidy import refused, same_bits

import mlscale
from mlscale import ConfigGrid, HardwareConfig, Measurements, Profiles, Surfaces
from mlscale.advice.advise import advise
from mlscale.arrays import Floats
from mlscale.data.datasets import path
from mlscale.data.points import SECOND_CLOCK
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.surfaces import BOUNDED, by_power_laws
from mlscale.model.model import NO_POWER_THERE
from mlscale.model.shipped import model_for
from mlscale.pages.measured import against_measured
from mlscale.predictors.conditioning import RATIO_NOISE
from mlscale.predictors.runs import Runs, pooled, without_crossings
from mlscale.predictors.runs_law import Population, Sweeps, highest_clock, log_powers, log_times

CLOCKS = made.CLOCKS
LAST = len(CLOCKS) - 1  # the step of the highest
AWAY = np.arange(len(CLOCKS)) < LAST


def gpu(seed: int, noise: float = 0.01, device: str = "") -> Measurements:
    """Made runs of one GPU."""
    return made.measurements(device or f"gpu{seed}", seed, noise)


def fitted(quantity: str, count: int = 4) -> Runs:
    """Learnt from so many made GPUs."""
    return Runs(quantity=quantity).fit([gpu(k) for k in range(count)], [made.TOP] * count)


TIME, POWER = fitted("time"), fitted("power")
OTHER = gpu(9, 0.0, "a100-sxm4-80gb")  # rated lower than its 1500 MHz here


def with_readings(table: Measurements, base: int, *steps: int) -> Profiles:
    """The runs at one step of the clocks, with further readings at others."""
    readings = [table.profiles(made.GRID.config((0, step, 0))) for step in (base, *steps)]
    points = tuple(MeasuredPoint(one.base, one.time_ms, one.power_w) for one in readings[1:])
    return replace(readings[0], points=points)


def test_readings_that_cross_become_the_mean_of_their_logs() -> None:
    """By hand: 8 and 2 cross, so both are 4, not 5; the 32 behind them stays, as NaN does."""
    values = np.array([[8.0, 1.0], [2.0, np.nan], [32.0, 1.0]])
    np.testing.assert_allclose(pooled(values), [[4.0, 1.0], [4.0, np.nan], [32.0, 1.0]], rtol=1e-12)
    # Of 27, 8, 1 the last two are sqrt(8), below 27, so all three are the cube root of 216, 6.
    np.testing.assert_allclose(pooled(np.array([[27.0], [8.0], [1.0]])), np.full((3, 1), 6.0))


def test_of_a_run_times_that_rise_with_the_clock_are_one() -> None:
    """By hand: 9 ms at the highest clock and 4 ms below are 6 ms at both; 100 and 100 W stay."""
    run = with_readings(OTHER, LAST, 0).select([0])
    [point] = run.points
    nine, four, watts = (np.array([number]) for number in (9.0, 4.0, 100.0))
    crossed = replace(
        run, time_ms=nine, power_w=watts, points=(replace(point, time_ms=four, power_w=watts),)
    )
    found = without_crossings(crossed)
    assert found.time_ms.tolist() == found.points[0].time_ms.tolist() == pytest.approx([6.0])
    assert found.power_w is not None
    assert found.power_w.tolist() == [100.0]


def powers(profiles: Profiles, coverage: float = 0.9) -> Surfaces:
    """Power with the times that are predicted of the same readings."""
    times = TIME.predict_interval(profiles, coverage, made.GRID)
    return POWER.with_times(times).predict_interval(profiles, coverage, made.GRID)


def log_odds(share: float) -> float:
    return float(np.log(share / (1 - share))) if share < 1 else 50.0


class TestLaws:
    @pytest.mark.parametrize(
        ("share", "p", "times"),
        [
            (1.0, 1.0, [2, 1.25, 1]),  # all of it follows the clock
            (0.5, 1.0, [1.5, 1.125, 1]),  # two parts one after the other
            (0.75, 2.0, [3.25**0.5, (0.25 + 0.75 / 0.64) ** 0.5, 1]),
        ],
    )
    def test_time(self, share: float, p: float, times: list[float]) -> None:
        unknowns = np.array([[log_odds(share)], [np.log(p)]])
        assert np.exp(log_times(np.log([0.5, 0.8, 1]), unknowns))[0] == pytest.approx(times)

    @pytest.mark.parametrize(
        ("odds", "floor", "slope", "watts"),
        [
            (2.0, 3.0, 1.0, [2 / 3, 0.84, 1]),  # one voltage, and 2/3 follow the rate of work
            (0.0, 0.0, 2.0, [np.exp(-1), np.exp(-0.4), 1]),  # V^2 alone, far above its floor
            (0.0, 0.5, 1.0, [2**0.08 / np.exp(0.5), np.exp(-0.2), 1]),  # at the floor's bend
        ],
    )
    def test_power(self, odds: float, floor: float, slope: float, watts: list[float]) -> None:
        """Times are 2, 1 / 0.76 and 1 at clocks of 0.5, 0.8 and 1 of the highest."""
        unknowns = np.array([[np.log(odds) if odds else -50.0], [floor], [np.log(slope)]])
        times = np.log([[2, 1 / 0.76, 1]])
        found = np.exp(log_powers(np.array([0.5, 0.8, 1]), 1.0, times, unknowns))[0]
        assert found == pytest.approx(watts, rel=0.005)

    def test_the_highest_clock_is_the_rated_or_a_measured_one(self) -> None:
        """An RTX 3090 is rated 1695 MHz; nobody knows 'mine'."""
        assert highest_clock("rtx3090", [1000.0, 1500.0]) == 1695
        assert highest_clock("rtx3090", [1000.0, 1900.0]) == 1900
        assert highest_clock("mine", [1000.0, 1900.0]) == 1900


class TestLearning:
    def test_the_truth_of_made_runs(self) -> None:
        """Means over 150 runs, to a third of their spread or so; what is left is the noise."""
        sweeps = Sweeps.joined([Sweeps.from_table(gpu(k), made.TOP) for k in range(5)])
        time, power = (Population.learn(sweeps, quantity) for quantity in ("time", "power"))
        means = np.concatenate([time.mean, power.mean])
        bound = 0.35 * made.SPREADS + [0.2, 0.1, 0, 0.02, 0.1]
        assert (np.abs(means - made.MEANS) < bound).all(), means
        assert max(time.drift, power.drift) < 0.03

    def test_each_gpu_weighs_the_same(self) -> None:
        """One GPU's runs given three times are one GPU's runs."""
        one, two = (Sweeps.from_table(gpu(k), made.TOP) for k in range(2))
        few = two.select(np.arange(len(two.time)) < 12)
        parts = [[one] * times + [few] for times in (1, 3)]
        once, thrice = (Population.learn(Sweeps.joined(part), "time") for part in parts)
        assert thrice.mean == pytest.approx(once.mean, rel=1e-9)
        assert thrice.covariance == pytest.approx(once.covariance, rel=1e-9)
        assert thrice.drift == pytest.approx(once.drift, rel=1e-9)

    def test_clocks_that_were_not_kept_are_left_out(self) -> None:
        """At 600 MHz the GPU ran at 400: 1.5 times the time, more than the clock explains."""
        table = gpu(0)
        lost = table.time_samples * np.where(CLOCKS == 600, 1.5, 1.0)[:, None]
        sweeps = Sweeps.from_table(replace(table, time_samples=lost), made.TOP)
        kept = sweeps.log_clock[0][sweeps.away[0]]
        np.testing.assert_allclose(kept, np.log(CLOCKS[1:-1] / 1500))

    def test_gpus_left_out_are_counted(self) -> None:
        held = [TIME.held_["two"], POWER.held_["two"], POWER.held_["energy"]]
        assert set(held) <= {(3, 4), (4, 4)}
        alone = fitted("time", count=1)
        assert alone.held_["two"] == (0, 0)
        assert alone.predict_interval(with_readings(OTHER, LAST, 0), 0.9, made.GRID).low is None


class TestKnownTruth:
    @pytest.mark.parametrize(
        ("steps", "time", "power"),
        # Mean errors [%]: a law fits runs without noise the better, the more of it is read.
        [((4,), 1.0, 2.0), ((6, 3), 0.5, 1.0)],
    )
    def test_readings_tell_the_other_clocks(
        self, steps: tuple[int, ...], time: float, power: float
    ) -> None:
        profiles = with_readings(OTHER, LAST, *steps)
        found = TIME.predict(profiles, made.GRID), powers(profiles)
        for surfaces, quantity, bound in zip(found, ("time", "power"), (time, power), strict=True):
            error = np.abs(surfaces.values / OTHER.relative(quantity, made.TOP) - 1)
            assert 100 * error.mean() < bound

    def test_intervals_hold_what_they_promise(self) -> None:
        """Of two GPUs not learnt from, with their noise; 97 % where they are twice as wide."""
        for quantity in ("time", "power"):
            held = []
            for seed in (11, 12):
                table = gpu(seed)
                profiles = with_readings(table, LAST, 4)
                times = TIME.predict_interval(profiles, 0.9, made.GRID)
                found = times if quantity == "time" else powers(profiles)
                new = np.isin(np.arange(len(CLOCKS)), (4, 9), invert=True)
                held.append(found.holds(table.relative(quantity, made.TOP))[:, 0, new].mean())
            assert 0.82 < np.mean(held) <= 1

    def test_one_reading_gives_bounds_of_time(self) -> None:
        """By hand: from 1200 MHz a run takes 4/5 to 1 times as long at 1500 and 1 to 2 at 600."""
        step = int(np.flatnonzero(CLOCKS == 1200)[0])
        found = TIME.predict_interval(with_readings(OTHER, step), 0.9, made.GRID)
        for mhz, least, most in ((600, 1, 2), (1200, 1, 1), (1500, 0.8, 1)):
            at = (slice(None), 0, CLOCKS.tolist().index(mhz), 0)
            assert found.low[at] == pytest.approx(least)
            assert found.high[at] == pytest.approx(most)
        assert found.flags == ((BOUNDED,),) * len(OTHER.kernels)
        assert found.holds(OTHER.relative("time", made.GRID.config((0, step, 0)))).all()


class TestProperties:
    def test_the_order_of_readings_changes_nothing(self) -> None:
        """Bit for bit; with another of them as the base, but for the rounding of its division."""
        one, other = (with_readings(OTHER, LAST, *steps) for steps in ((2, 6), (6, 2)))
        for predict in (powers, lambda p: TIME.predict_interval(p, 0.9, made.GRID)):
            first, second = predict(one), predict(other)
            third = predict(with_readings(OTHER, 2, 6, LAST))
            for side in ("values", "low", "high"):
                assert same_bits(getattr(first, side), getattr(second, side))
            ratios = first.values / third.values
            assert ratios == pytest.approx(np.broadcast_to(ratios[:, :, :1], ratios.shape))

    def test_power_changes_nothing_about_time(self) -> None:
        both = with_readings(OTHER, LAST, 4)
        (point,) = both.points
        without = replace(both, power_w=None, points=(replace(point, power_w=None),))
        one, other = (TIME.predict_interval(p, 0.9, made.GRID) for p in (both, without))
        for side in ("values", "low", "high"):
            assert same_bits(getattr(one, side), getattr(other, side))

    @settings(max_examples=30, deadline=None)
    @given(st.floats(1, 2.4), st.floats(0.2, 1.0), st.integers(0, 8))
    def test_of_any_two_readings(self, slowdown: float, watts: float, step: int) -> None:
        """Power never falls as the clock rises, nor does time rise; what is read is met."""
        one = with_readings(OTHER, LAST).select([0])
        config = made.GRID.config((0, step, 0))
        slowdown = min(slowdown, 1500 / config.engine_mhz)
        point = MeasuredPoint(config, one.time_ms * slowdown, one.quantity("power") * watts)
        profiles = replace(one, points=(point,))
        times = TIME.predict_interval(profiles, 0.9, made.GRID)
        power = POWER.with_times(times).predict_interval(profiles, 0.9, made.GRID)
        for surfaces, sign in ((times, -1), (power, 1)):
            for values in (surfaces.low, surfaces.values, surfaces.high):
                assert (sign * np.diff(values[0, 0, :, 0]) >= 0).all()
            assert (surfaces.low <= surfaces.values).all()
            assert (surfaces.values <= surfaces.high).all()
        assert times.values[0, 0, step, 0] == pytest.approx(slowdown, rel=5 * RATIO_NOISE)

    def test_a_reading_is_met(self) -> None:
        """Those of a made GPU, to the noise of a reading; a kernel without one keeps its values."""
        both, truth = with_readings(OTHER, LAST, 4), OTHER.relative("power", made.TOP)
        (point,) = both.points
        some = np.where(np.arange(len(truth)) == 0, point.power_w, np.nan)
        found = powers(replace(both, points=(replace(point, power_w=some),))).values
        without = powers(replace(both, points=(replace(point, power_w=None),))).values
        assert found[0, 0, 4, 0] == pytest.approx(truth[0, 0, 4, 0], rel=RATIO_NOISE)
        assert found[1:] == pytest.approx(without[1:], rel=1e-9)

    @pytest.mark.parametrize("at_base", [False, True])
    def test_repeated_runs_that_spread_widen_time_and_energy(self, at_base: bool) -> None:
        """Below and above the second reading; by less than a reading's usual noise not at all."""

        def found(sd: float | None) -> list[Surfaces]:
            read = with_readings(OTHER, LAST, 4)
            spread = None if sd is None else np.full(len(read.kernels), sd)
            if at_base:
                read = replace(read, log_time_sd=spread)
            else:
                read = replace(read, points=(replace(read.points[0], log_time_sd=spread),))
            times = TIME.predict_interval(read, 0.9, made.GRID)
            return [times, POWER.with_times(times).predict_energy(read, 0.9, made.GRID)]

        once, alike, some, much = map(found, (None, RATIO_NOISE, 0.03, 0.1))
        for place in (0, 1):
            for side in ("values", "low", "high"):
                assert same_bits(getattr(once[place], side), getattr(alike[place], side))
            widths = [np.log(one[place].high / one[place].low)[:, 0] for one in (once, some, much)]
            assert (np.diff(widths, axis=0) > -1e-9).all()
            below, above = (np.mean(widths, axis=1)[:, part, 0] for part in (np.s_[:4], np.s_[5:8]))
            assert (np.diff(below, axis=0) > 0.003).all()
            assert (np.diff(above, axis=0) > 0).all()

    def test_unsure_times_widen_power_and_energy_is_their_product(self) -> None:
        profiles, true = with_readings(OTHER, LAST, 4), OTHER.relative("time", made.TOP)
        exact = Surfaces(made.GRID, made.TOP, true)
        unsure = replace(exact, low=true / 1.2, high=true * 1.2)
        sure, wide = (
            POWER.with_times(times).predict_interval(profiles, 0.9, made.GRID)
            for times in (exact, unsure)
        )
        assert same_bits(sure.values, wide.values)
        assert (wide.high >= sure.high).all()  # alike where a reading is the bound of both
        assert (wide.low <= sure.low).all()
        assert (wide.high / wide.low > sure.high / sure.low)[:, 0, AWAY].mean() > 0.8
        energy = POWER.with_times(unsure).predict_energy(profiles, 0.9, made.GRID)
        assert energy.values == pytest.approx(true * wide.values)

    def test_a_listed_clock_that_is_asked_for_changes_none_of_the_others(self) -> None:
        profiles = replace(with_readings(OTHER, LAST, 4), device="rtx3090")
        few, more = (
            replace(made.GRID, engine_mhz=(900.0, 1000.0, 1500.0, *beyond))
            for beyond in ((), (2100.0,))
        )
        found = [POWER.predict(profiles, grid).values for grid in (few, more)]
        assert found[1][:, :, :3] == pytest.approx(found[0], rel=1e-12)


class TestMemoryClocks:
    """Of kernels whose time is known at all memory clocks, power is known at the base's alone."""

    def test_power_is_given_at_the_bases_and_where_it_was_measured(self) -> None:
        fast, slow = (HardwareConfig(132, 1980, memory_mhz) for memory_mhz in (2619, 1593))
        profiles = mlscale.import_profile(
            path("h100-by-hand.csv"), device="h100-sxm5", base=fast.as_dict()
        )
        profiles = replace(profiles, power_w=np.full(2, 300.0), metadata={"power_kind": "board"})
        model = model_for(mlscale.load(path("kernels.mlscale")), profiles)
        alone = model.predict(profiles, 0.9)
        point = MeasuredPoint(slow, profiles.time_ms * 1.5, np.array([200.0, np.nan]))
        read = model.predict(replace(profiles, points=(point,)), 0.9)
        m = [step == 1593 for step in model.grid.memory_mhz]
        for found in (alone, read):
            assert np.isfinite(found.time_ms).all()
            assert [str(note) for note in found.warnings].count(str(NO_POWER_THERE)) == 1
            for side in ("values", "low", "high"):
                watts = getattr(found["power"], side)
                assert np.isfinite(watts[..., ~np.array(m)]).all()
                unknown = np.isnan(watts[..., m])
                assert unknown.sum() == unknown.size - (found is read)
        assert read.rows([slow])[0]["power_w"] == 200
        assert [row["energy_mj"] for row in alone.rows([slow])] == [None, None]
        advice = advise(model, replace(profiles, points=(point,)), "time")
        told = against_measured(advice, profiles, point)
        assert told["predicted"]["time_ms"][0] > 0
        assert told["predicted"]["power_w"] is told["predicted"]["energy_mj"] is None

    def test_between_two_engine_clocks_it_is_given(self) -> None:
        """NaN of a memory clock that has no part in it changes nothing: halfway in the log."""
        grid = ConfigGrid((1,), (100.0, 400.0), (5.0, 10.0))
        values = np.array([[[[np.nan, 1.0], [np.nan, 4.0]]]])
        surfaces = Surfaces(grid, HardwareConfig(1, 100, 10), values)
        assert surfaces.at(HardwareConfig(1, 200, 10)) == (pytest.approx([2.0]), True)
        assert np.isnan(surfaces.at(HardwareConfig(1, 200, 7))[0]).all()
        wider = by_power_laws(surfaces, replace(grid, engine_mhz=(100.0, 200.0)))
        assert wider.values[0, 0, 1] == pytest.approx([np.nan, 2.0], nan_ok=True)


class TestRefusals:
    @pytest.mark.parametrize(
        ("predictor", "grid", "device", "message"),
        [
            (
                TIME,
                replace(made.GRID, memory_mhz=(500.0, 1000.0)),
                "rtx3090",
                "'runs' predicts at one memory clock, that of the run: give readings",
            ),
            (
                POWER,
                replace(made.GRID, cu_count=(20, 40)),
                "rtx3090",
                "power at other CU counts is not predicted",
            ),
            (POWER, made.GRID, "mine", "power of 'mine' is not predicted: 'mine' is not in"),
        ],
    )
    def test_of_a_grid_or_gpu(
        self, predictor: Runs, grid: ConfigGrid, device: str, message: str
    ) -> None:
        with refused(message):
            predictor.predict(replace(with_readings(OTHER, LAST), device=device), grid)

    def test_of_times_on_another_grid(self) -> None:
        grid = ConfigGrid((40,), (750.0, 1500.0), (1000.0,))
        power = POWER.with_times(Surfaces(made.GRID, made.TOP, OTHER.relative("time", made.TOP)))
        with refused("only on the grid and base of its times"):
            power.predict(with_readings(OTHER, LAST, 4), grid)

    def test_of_a_table_of_two_clocks(self) -> None:
        few = gpu(0).at_steps("engine_mhz", slice(-2, None))
        with refused("3 engine clocks or more; the table of 'gpu0' has 30 kernels, 1 CU count,"):
            Runs().fit(few, few.grid.highest)

    def test_what_is_assumed_of_other_gpus(self) -> None:
        learnt = Runs(quantity="power").fit(gpu(0, device="rtx8000"), made.TOP)
        one, two = (with_readings(OTHER, LAST, *steps).select([0, 1]) for steps in ((), (4,)))
        (point,) = two.points
        assert point.power_w is not None
        half = replace(two, points=(replace(point, power_w=np.array([100.0, np.nan])),))
        other = replace(point, config=replace(point.config, memory_mhz=500.0))
        alone = (
            "power is known at one clock only{}, its law trained on 1 other GPU; a second reading"
        )
        for profiles, device, begins in (
            (one, "rtx8000", None),
            (one, "h100-sxm5", alone.format("")),
            (half, "h100-sxm5", alone.format(" for 1 kernel (run1)")),
            (replace(two, points=(other,)), "h100-sxm5", alone.format("")),
            (two, "h100-sxm5", "the law of power was trained on 1 other GPU"),
            (two, "mi300x", "the law of power was trained on 1 other GPU, none of them of AMD"),
        ):
            said = learnt.assumption(replace(profiles, device=device))
            assert said is None if begins is None else str(said).startswith(begins)


class TestState:
    """What was learnt, as the shipped model's file holds it."""

    SHIPPED = mlscale.load(path("runs.mlscale")).predictors

    @pytest.mark.parametrize("quantity", ["time", "power"])
    def test_it_comes_back_as_it_was(self, quantity: str) -> None:
        learnt = self.SHIPPED[quantity]
        assert isinstance(learnt, Runs)
        held = Runs(quantity).restore(learnt.state()).held_
        assert {type(counts) for counts in held.values()} == {tuple}
        assert {type(count) for counts in held.values() for count in counts} == {int}
        assert held == learnt.held_

    @pytest.mark.parametrize(
        ("damage", "said"),
        [
            ({"held": {"two": [3]}}, None),
            ({"held": {"two": [9, 2]}}, None),
            ({"held": {"two": ["x", 2]}}, None),
            ({"held": {"two": 2}}, None),
            ({"trained": []}, None),
            ({"laws": {}}, None),
            ({"laws": "those of power"}, "the law of time has other unknowns"),
        ],
    )
    def test_a_damaged_one_is_refused(self, damage: dict[str, Any], said: str | None) -> None:
        learnt = self.SHIPPED["power"]
        assert isinstance(learnt, Runs)
        state = copy.deepcopy(learnt.state())
        if said:
            damage = {"laws": dict.fromkeys(("time", "power"), state["laws"]["power"])}
        with pytest.raises((KeyError, TypeError, ValueError), match=said):
            Runs("power").restore({**state, **damage})


class TestRealGpus:
    @pytest.mark.slow
    @pytest.mark.usefixtures("data_folder")
    def test_one_left_out_is_as_far_off_as_the_card_says(self) -> None:
        """tests/test_shipped.py has the bounds of the card."""
        device = "rtx5060ti-16gb"
        found = outcome(tables()[device], by_law, (SECOND_CLOCK,))
        card = mlscale.load(path("runs.mlscale")).card["errors_on_gpus_left_out"][device]
        assert set(card) == {"time", "power", "energy"}
        for quantity, figures in card.items():
            mean = found.errors[quantity].mean()
            assert mean == pytest.approx(figures["mean_error_percent"], abs=0.5)

    @pytest.mark.parametrize(
        ("device", "file", "bound", "held"),
        [
            ("rx580", "rx580-power-microv3", 4.6, 84),
            ("titanv", "titanv-power-micro", 4.2, 78),
            ("titanxp", "titanxp-power-micro", 3.5, 95),
        ],
    )
    def test_power_of_micro_kernels(
        self, data_folder: Path, device: str, file: str, bound: float, held: float
    ) -> None:
        """Mean error [%] from 0.6 of the highest clock, and share held at 0.45 of it or above.

        These tables have no times: power goes with those of training runs on average. Power, not
        learnt from them, is at the highest memory clock; an RX 580 is AMD's.
        """
        clocks, watts = power_clocks(data_folder / "power-clocks" / f"{file}.csv")
        grid = ConfigGrid((36,), tuple(clocks.tolist()), (2000.0,))
        names = tuple(f"k{k}" for k in range(len(watts)))
        step = int(np.abs(clocks / clocks[-1] - 0.6).argmin())
        no_times = np.full(len(watts), np.nan)
        profiles = Profiles(
            device, grid.highest, names, names, np.ones(len(watts)),
            power_w=watts[:, -1], counter_names=(), counters=np.empty((len(watts), 0)),
            points=(MeasuredPoint(grid.config((0, step, 0)), no_times, watts[:, step]),),
        )  # fmt: skip
        power = mlscale.load(path("runs.mlscale")).predictors["power"]
        found = power.predict_interval(profiles, 0.9, grid)
        truth = (watts / watts[:, -1:])[:, None, :, None]
        new = np.isin(np.arange(len(clocks)), (step, len(clocks) - 1), invert=True)
        assert 100 * np.abs(found.values / truth - 1)[:, 0, new].mean() < bound
        assert 100 * found.holds(truth)[:, 0, new].mean() > held


def power_clocks(file: Path) -> tuple[Floats, Floats]:
    """The engine clocks (N,) and watts (K, N) of gpupowermodel at its highest memory clock."""
    rows = np.loadtxt(file, delimiter=",", skiprows=4, usecols=(0, 1, 2))
    rows = rows[(rows[:, 2] == rows[:, 2].max()) & (rows[:, 1] >= 0.45 * rows[:, 1].max())]
    clocks = np.unique(rows[:, 1])
    return clocks, np.array([rows[rows[:, 1] == mhz, 0] for mhz in clocks]).T
