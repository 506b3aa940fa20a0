"""Prediction rows: units, factors, energy, flags, and what cannot be given.

Expected: by hand, from a model that says time ~ 1 / (CUs x engine clock), or in closed form.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Cli
from hypothesis import given, settings
from hypothesis import strategies as st
from parameters import own
from synthetic import bottleneck_kernels as blocks
from synthetic import frugal
from synthetic import kernels as made
from synthetic.profiled import profiles
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig, Model, Profiles, train
from mlscale.data.supply import UNLIMITED
from mlscale.data.surfaces import Surfaces
from mlscale.model.predictions import COLUMNS, COVERAGE, Predictions
from mlscale.predictors.base import GivesIntervals

MID = made.GRID.mid  # cu=8, engine=800, memory=700


def core_bound(power: bool = True, grid: ConfigGrid = made.GRID) -> Model:
    """A model that says time ~ 1 / (CUs x engine clock), and power the inverse."""
    return train(made.measurements(grid=grid, power=power), MID, "core-bound")


def two_kernels(power: bool = True) -> Profiles:
    """2 ms and 50 W; 0.5 ms and 80 W."""
    busy = {f"busy_{law}": [law == "compute", law == "bandwidth"] for law in made.LAWS}
    powers = np.array([50.0, 80.0]) if power else None
    return profiles(busy, [2.0, 0.5], MID, kernels=("slow", "quick"), power_w=powers)


MODEL = core_bound()
SIDES = ("low", "high")
BOTTLENECK_MID = blocks.CLOCKS.mid


class TestRows:
    def test_by_hand(self) -> None:
        # Half the CUs and half the clock: four times the time, a quarter of the power, and the
        # energy of the base, 2 ms x 50 W = 100 mJ and 0.5 ms x 80 W = 40 mJ.
        predictions = MODEL.predict(two_kernels())
        assert predictions.energy_mj is not None
        np.testing.assert_allclose(predictions.energy_mj.reshape(2, -1).T, [[100, 40]] * 36)
        rows = predictions.rows([HardwareConfig(4, 400.0, 1000.0)])
        at = ["slow", 4, 400.0, 1000.0]
        no_intervals = [None] * 4
        assert [list(row.values()) for row in rows] == [
            [*at, 8.0, 4.0, 12.5, 0.25, 100.0, *no_intervals, []],
            ["quick", *at[1:], 2.0, 4.0, 20.0, 0.25, 40.0, *no_intervals, []],
        ]

    def test_have_the_documented_keys_and_are_json(self) -> None:
        # docs/reference/files.md, Predictions.
        documented = (
            "kernel cu_count engine_mhz memory_mhz time_ms time_factor power_w power_factor "
            "energy_mj time_ms_low time_ms_high power_w_low power_w_high flags"
        )
        assert " ".join(COLUMNS) == documented
        rows = MODEL.predict(two_kernels()).rows()
        assert len(rows) == 2 * made.GRID.size
        assert all(tuple(row) == COLUMNS for row in rows)
        assert json.loads(json.dumps(rows)) == rows

    def test_come_in_the_order_of_the_targets(self) -> None:
        targets = [made.GRID.config(i) for i in ((2, 0, 0), (0, 1, 2), (2, 0, 0))]
        rows = MODEL.predict(two_kernels()).rows(targets)
        assert [row["cu_count"] for row in rows] == [16, 4, 16] * 2
        assert MODEL.predict(two_kernels()).rows([]) == []

    def test_the_base_is_what_was_profiled(self) -> None:
        rows = train(made.measurements(), MID, clusters=4).predict(two_kernels()).rows([MID])
        assert [(r["time_ms"], r["power_w"]) for r in rows] == [(2.0, 50.0), (0.5, 80.0)]
        assert [(r["time_factor"], r["power_factor"]) for r in rows] == [(1.0, 1.0)] * 2

    @pytest.mark.parametrize(("trained", "profiled"), [(False, True), (True, False)])
    def test_without_power(self, trained: bool, profiled: bool) -> None:
        predictions = core_bound(power=trained).predict(two_kernels(power=profiled))
        for row in predictions.rows():
            assert row["power_w"] is row["power_factor"] is row["energy_mj"] is None
            assert row["time_ms"] > 0
        run = predictions.whole_run([MID])
        assert run["time_ms"].tolist() == [2.5]
        assert all(np.isnan(run[name]).all() for name in ("power_w", "power_factor", "energy_mj"))


class TestWholeRun:
    """3 launches of the slow kernel and 10 of the quick one: 6 ms and 5 ms at the base."""

    RUN = replace(two_kernels(), launches=np.array([3.0, 10.0]))
    AT = HardwareConfig(4, 400.0, 1000.0)

    def test_by_hand(self) -> None:
        # Four times the time: 24 + 20 = 44 ms; the energy of the base, 3 x 100 + 10 x 40 = 700 mJ.
        run = MODEL.predict(self.RUN).whole_run([self.AT, MID])
        assert run["time_ms"].tolist() == pytest.approx([44, 11])
        assert run["energy_mj"].tolist() == pytest.approx([700, 700])
        assert run["power_w"].tolist() == pytest.approx([700 / 44, 700 / 11])
        assert run["time_factor"].tolist() == pytest.approx([4, 1])
        assert run["power_factor"].tolist() == pytest.approx([0.25, 1])
        assert run["engine_mhz"].tolist() == [400, 800]
        assert np.isnan(run["time_ms_low"]).all()

    def test_ends_of_intervals_are_summed(self) -> None:
        # By hand: half and twice 24 + 20 ms; half and twice the mean of 12.5 and 20 W over them.
        predictions = MODEL.predict(self.RUN)
        ends = {
            quantity: replace(own, low=own.values / 2, high=own.values * 2)
            for quantity, own in predictions.surfaces.items()
        }
        run = replace(predictions, surfaces=ends).whole_run([self.AT])
        assert [*run["time_ms_low"], *run["time_ms_high"]] == pytest.approx([22, 88])
        assert [*run["power_w_low"], *run["power_w_high"]] == pytest.approx([350 / 44, 1400 / 44])

    def test_power_that_is_sure_stays_so_where_a_time_is_not(self) -> None:
        # Closed form: the high ends of time alone would weigh the slow kernel's 12.5 W twice.
        predictions = MODEL.predict(self.RUN)
        time, power = predictions["time"], predictions["power"]
        unsure = np.array([2.0, 1.0]).reshape(2, 1, 1, 1)
        ends = {
            "time": replace(time, low=time.values / unsure, high=time.values * unsure),
            "power": replace(power, low=power.values, high=power.values),
        }
        run = replace(predictions, surfaces=ends).whole_run([self.AT])
        assert [*run["time_ms_low"], *run["time_ms_high"]] == pytest.approx([32, 68])
        assert [*run["power_w_low"], *run["power_w_high"]] == pytest.approx([700 / 44] * 2)

    def test_is_marked_as_its_kernels_are(self) -> None:
        run = MODEL.predict(self.RUN).whole_run([MID, HardwareConfig(8, 810.0, 700.0)])
        assert run["flags"].tolist() == ["", "interpolated"]


class TestHeldToTheBoardsLimit:
    """A kernel of an H100, whose board supplies 700 W: by hand.

    At 400 MHz 2 ms (to 2.2) and 350 W exactly, at 800 MHz 1 ms (to 1.1) and 525 W (to 2800).
    """

    def predictions(self) -> Predictions:
        base = HardwareConfig(8, 400.0, 700.0)
        grid = ConfigGrid((8,), (400.0, 800.0), (700.0,))
        one = replace(two_kernels().select([0]), device="h100-sxm5", base=base)
        profiles = replace(one, time_ms=np.array([2.0]), power_w=np.array([350.0]))
        surfaces = {
            quantity: Surfaces(
                grid,
                base,
                np.reshape(value, (1, 1, 2, 1)),
                ((),),
                *(np.reshape(of, (1, 1, 2, 1)) for of in (value, high)),
            )
            for quantity, value, high in (
                ("time", [1.0, 0.5], [1.1, 0.55]),
                ("power", [1.0, 1.5], [1.0, 8.0]),
            )
        }
        return Predictions(profiles, surfaces, COVERAGE)

    def test_on_the_grid(self) -> None:
        # Held to 700 W it runs a share s of the time at 800 MHz: 350 (1 - s) + 2800 s = 700.
        share, predictions = 350 / 2450, self.predictions()
        for table in (predictions.columns(), predictions.columns([*predictions.grid])):
            assert table["power_w_high"].tolist() == pytest.approx([350, 700])
            held_ms = 1 / (share / 1.1 + (1 - share) / 2.2)
            assert table["time_ms_high"].tolist() == pytest.approx([2.2, held_ms])
        assert predictions["power"].high is not None
        assert predictions["power"].high.ravel().tolist() == [1.0, 8.0]

    def test_between_its_steps(self) -> None:
        # At the geometric middle of the clocks to 350 sqrt(8) W and 2.2 / sqrt(2) ms.
        middle = HardwareConfig(8, 400 * 2**0.5, 700.0)
        table = self.predictions().columns([middle])
        share = 350 / (350 * 8**0.5 - 350)
        assert table["power_w_high"].tolist() == pytest.approx([700])
        held_ms = 1 / (share * 2**0.5 / 2.2 + (1 - share) / 2.2)
        assert table["time_ms_high"].tolist() == pytest.approx([held_ms])


class TestBetweenTheSteps:
    @settings(max_examples=40)
    @given(
        st.integers(4, 16),
        st.floats(400, 1000).map(lambda x: round(x, 1)),
        st.floats(400, 1000).map(lambda x: round(x, 1)),
    )
    def test_a_power_law_is_met_and_the_row_says_interpolated(
        self, cu: int, engine: float, memory: float
    ) -> None:
        # Closed form: 2 ms at 8 CUs and 800 MHz, in inverse proportion to both.
        target = HardwareConfig(cu, engine, memory)
        row = MODEL.predict(two_kernels()).rows([target])[0]
        assert row["time_ms"] == pytest.approx(2.0 * (8 / cu) * (800 / engine), rel=1e-9)
        assert row["power_w"] == pytest.approx(50.0 * (cu / 8) * (engine / 800), rel=1e-9)
        assert row["energy_mj"] == pytest.approx(100.0, rel=1e-9)
        on_grid = (
            cu in made.GRID.cu_count
            and engine in made.GRID.engine_mhz
            and memory in made.GRID.memory_mhz
        )
        assert row["flags"] == ([] if on_grid else ["interpolated"])

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            (HardwareConfig(32, 800.0, 700.0), r"cu_count 32 is outside the grid \(4, 8, 16\)"),
            (HardwareConfig(8, 399.0, 700.0), "engine_mhz 399 is outside the grid"),
            (HardwareConfig(8, 800.0, 1000.5), "memory_mhz 1000.5 is outside the grid"),
        ],
    )
    def test_outside_the_grid_is_refused(self, target: HardwareConfig, message: str) -> None:
        with refused(f"{message}.*does not extrapolate"):
            MODEL.predict(two_kernels()).rows([MID, target])


class TestFlags:
    @pytest.mark.parametrize("name", ["wu", "nearest"])
    def test_name_the_counter_once_for_time_and_power(self, name: str) -> None:
        # By hand: trained on counters from 0 to 1 and asked with 1.25.
        measurements = made.measurements(per_group=2)
        measurements.counter_samples[:] = measurements.counter_samples.round()
        model = train(measurements, MID, name, **own(name, clusters=4))
        outside = replace(
            two_kernels(), counters=np.array([[1.25, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
        )
        rows = model.predict(outside).rows([HardwareConfig(8, 800.0, 800.0), MID])
        flag = "busy_compute 1.25 is above 1, the highest in training"
        assert [row["flags"] for row in rows] == [
            ["interpolated", flag],
            [flag],
            ["interpolated"],
            [],
        ]


@pytest.fixture(scope="module")
def bottleneck() -> Model:
    return train(blocks.measurements(12), BOTTLENECK_MID, "bottleneck")


class TestIntervals:
    def test_rows_have_the_predictors_own(self, bottleneck: Model) -> None:
        """Expected: base value x the surfaces of predict_interval."""
        profiles = blocks.measurements(3, seed=1).profiles(BOTTLENECK_MID)
        rows = bottleneck.predict(profiles, COVERAGE).rows()
        for quantity, name in (("time", "time_ms"), ("power", "power_w")):
            predictor = bottleneck.predictors[quantity]
            assert isinstance(predictor, GivesIntervals)
            surfaces = predictor.predict_interval(profiles, COVERAGE)
            at_base = profiles.quantity(quantity)
            for side in SIDES:
                found = np.array([row[f"{name}_{side}"] for row in rows]).reshape(3, -1)
                expected = at_base[:, None] * getattr(surfaces, side).reshape(3, -1)
                np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_hold_the_value_and_close_at_the_base(self, bottleneck: Model) -> None:
        profiles = blocks.measurements(3, seed=1).profiles(BOTTLENECK_MID)
        between = HardwareConfig(16, 600.0, 1500.0)
        for row in bottleneck.predict(profiles, COVERAGE).rows([BOTTLENECK_MID, between]):
            for name in ("time_ms", "power_w"):
                low, value, high = row[f"{name}_low"], row[name], row[f"{name}_high"]
                if row["engine_mhz"] == BOTTLENECK_MID.engine_mhz:
                    assert low == value == high
                else:
                    assert low < value < high


class TestAboveTheLimit:
    """An H100 may be set to 700 W; power goes with CUs x engine clock, 400 and 640 W at the base.

    At 8 CUs and 1000 MHz that is 500 and 800 W.
    """

    MODEL = replace(core_bound(), device="h100-sxm5")
    AT = (HardwareConfig(8, 600.0, 700.0), HardwareConfig(8, 1000.0, 700.0))

    def profiles(self) -> Profiles:
        both = two_kernels()
        assert both.power_w is not None
        return replace(both, device="h100-sxm5", power_w=8 * both.power_w)

    def test_the_flag_stands_first(self) -> None:
        """Between the grid's 800 and 1000 MHz, in a table as in rows."""
        at = [HardwareConfig(8, 999.0, 700.0)]
        predictions = self.MODEL.predict(self.profiles())
        marked = ["interpolated", "above power limit; interpolated"]
        assert predictions.columns(at)["flags"].tolist() == marked
        assert ["; ".join(row["flags"]) for row in predictions.rows(at)] == marked

    def test_without_a_known_limit_none_is(self) -> None:
        unknown = replace(self.profiles(), device="made-gpu")
        predictions = replace(self.MODEL, device="made-gpu").predict(unknown)
        assert predictions.supply == UNLIMITED
        assert set(predictions.columns(self.AT)["flags"]) == {""}

    def test_what_was_drawn_is_possible(self) -> None:
        # 16 times the power: 1280 W were measured at the base, 1600 W are predicted above it.
        more = replace(self.profiles(), power_w=np.array([800.0, 1280.0]))
        columns = self.MODEL.predict(more).columns(self.AT)
        assert columns["flags"].tolist() == ["", "", "", "above power limit"]
        lower = self.MODEL.predict(more).columns([HardwareConfig(8, 800.0, 1000.0)])
        assert lower["flags"].tolist() == ["", ""]

    def test_the_command_says_what_the_gpu_does(self, tmp_path: Path, cli: Cli) -> None:
        model, profile = frugal.files(tmp_path, "h100-sxm5", power=8)
        for mhz, is_above in ((1000, True), (800, False)):
            at = f"cu=8,engine={mhz},memory=700"
            out, err = cli.both("predict", model, profile, "--at", at, "--notes")
            words = "rows marked 'above power limit' exceed 700 W"
            assert (words in err, "  ! above power limit\n" in out) == (is_above, is_above)
