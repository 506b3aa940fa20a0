"""The bottleneck predictor: recovery of a known truth, predictions, files, errors."""

from dataclasses import replace

import numpy as np
import pytest
from prediction_errors import mean_error, percentage_error
from synthetic import bottleneck_kernels as made
from synthetic.profiled import some_of
from synthetic.tidy import refused

from mlscale import ConfigGrid, DataWarning, HardwareConfig, MeasuredPoint, Measurements
from mlscale.predictors.bottleneck import training
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.predictors.bottleneck.model import waiting_note

MID = made.CLOCKS.mid
GRID = ConfigGrid((16, 32), (700.0,), (700.0,))


def quick(quantity: str = "time") -> Bottleneck:
    return Bottleneck(quantity=quantity, intervals=False)


def error_at(base: HardwareConfig, predictor: Bottleneck, truth: Measurements) -> float:
    return mean_error(predictor, truth.profiles(base), truth)


class TestRecovery:
    def test_kernels_of_the_curve_itself(self) -> None:
        """Held-out kernels of the same law, and the sharpness that made them: 4.

        The odds of a use of 1 are capped in the model, so not exact.
        """
        model = quick().fit(made.measurements(24, seed=0), MID)
        assert error_at(MID, model, made.measurements(9, seed=1)) < 1
        values = model.time_.values
        assert np.exp(values["sharpness"] + values["gpu_sharpness"]) == pytest.approx(4, rel=0.05)

    def test_kernels_of_the_cu_axis(self) -> None:
        table = made.with_cu_axis(24)
        model = quick().fit(table, table.grid.mid)
        assert error_at(table.grid.mid, model, made.with_cu_axis(9, seed=1)) < 2

    @pytest.mark.slow
    def test_the_amplitude_is_that_of_the_least_error_held_out(self) -> None:
        table = made.with_cu_axis(12)
        errors = {}
        for amplitude in training.AMPLITUDES:
            job = training.Job([(table, table.grid.mid)], "time", False, amplitude)
            plan = training.plan_time(job, with_scores=False)
            errors[amplitude] = training.trained_time(plan, training.fit_curves(plan.fits())).error
        model = quick().fit(table, table.grid.mid)
        assert model.time_.process.amplitude == min(errors, key=lambda tried: errors[tried])
        assert len(set(errors.values())) == len(errors)

    def test_power(self) -> None:
        model = quick("power").fit(made.measurements(24, seed=0), MID)
        assert error_at(MID, model, made.measurements(9, seed=1)) < 1

    def test_two_gpus_at_once(self) -> None:
        other = replace(made.measurements(12, seed=3), device="gtx1080ti")
        model = quick().fit([made.measurements(12), other], [MID, MID])
        assert error_at(MID, model, made.measurements(9, seed=1)) < 1

    @pytest.mark.slow
    @pytest.mark.parametrize("first", [0, 1])
    def test_one_gpu_of_several_cu_counts(self, first: int) -> None:
        """With intervals: the GPU of one CU count alone cannot tell how far off the other is."""
        pair = [(made.measurements(6), MID), (made.with_cu_axis(6), made.with_cu_axis(6).grid.mid)]
        tables, bases = zip(pair[first], pair[1 - first], strict=True)
        model = Bottleneck(amplitude=1.0).fit(tables, bases)
        surfaces = model.predict_interval(tables[0].profiles(bases[0]), 0.9)
        assert surfaces.low is not None
        assert (surfaces.low <= surfaces.values).all()

    def test_a_gpu_without_training_data(self) -> None:
        """Peaks from profiles whose times at other clocks nobody looks at."""
        model = quick().fit(replace(made.measurements(24), device="titanx"), MID)
        new = made.measurements(9, seed=1)
        model.learn_peaks(new.profiles(MID), new.grid)
        surfaces = model.predict(new.profiles(MID), new.grid)
        actual = new.time_ms / new.time_ms[:, :1, 2:3, 2:3]
        assert percentage_error(surfaces.values, actual) < 2
        assert all("no training data of gtx980" in flags[0].text for flags in surfaces.flags)

    def test_a_kernel_that_uses_no_unit_is_told_on_another_gpu_alone(self) -> None:
        """The second kernel uses 4.5 % of DRAM and 10 % of the core, the first 90 % of DRAM."""
        new = made.measurements(9, seed=1).profiles(MID)
        names = (*new.counter_names, "core_utilisation")
        counters = np.column_stack([new.counters, np.full(len(new.kernels), 0.1)])
        new = replace(new, counter_names=names, counters=counters)
        other = Bottleneck(amplitude=1.0).fit(replace(made.measurements(24), device="titanx"), MID)
        other.learn_peaks(new, made.CLOCKS)
        surfaces = other.predict_interval(new, 0.9, made.CLOCKS)
        assert [waiting_note() in own for own in surfaces.flags[:2]] == [False, True]
        assert surfaces.high is not None
        lowest = made.CLOCKS.engine_mhz[0]
        assert surfaces.high[1, 0, 0, 0] >= MID.engine_mhz / lowest
        known = Bottleneck(amplitude=1.0).fit(made.measurements(24), MID)
        assert waiting_note() not in known.predict_interval(new).flags[1]

    def test_a_trained_gpu_on_another_grid(self, trained: Bottleneck) -> None:
        """Its clock tables stay: on a part of the grid the curve is the same to the bit."""
        few = ConfigGrid((16,), (500.0, 900.0), (2000.0, 3000.0))
        profiles = made.measurements(5, seed=2).profiles(MID)
        values = trained.time_.values
        for name in ("engine0", "memory0"):
            assert np.abs(values[name]).max() > 1e-4
        whole = trained.predict(profiles).values[:, :, [0, 2]][..., [1, 2]]
        assert trained.predict(profiles, few).values == pytest.approx(whole, rel=1e-12)

    def test_peaks_without_issue_counters_are_the_trained_gpus(self) -> None:
        """Not none at all, which would make every kernel wait for the CUs."""
        table = made.with_cu_axis(8)
        model = Bottleneck(intervals=False, amplitude=1.0).fit(table, table.grid.mid)
        new = replace(made.with_cu_axis(4, seed=1), device="r9nano").profiles(table.grid.mid)
        kept = [f for f, name in enumerate(new.counter_names) if name != "V_IPC"]
        names = tuple(new.counter_names[f] for f in kept)
        model.learn_peaks(replace(new, counter_names=names, counters=new.counters[:, kept]), GRID)
        assert model.others_[0].issue_peak == model.time_.gpus[0].issue_peak


class TestBeyondTheCurve:
    def test_a_measured_point_tells_what_training_kernels_miss_together(self) -> None:
        """The signs are drawn: one point tells the sign, and so most of the other clocks."""
        signs = np.random.default_rng(5).choice([-0.1, 0.1], 40)
        model = quick().fit(made.checkered(made.measurements(31), signs[:31]), MID)
        new = made.checkered(made.measurements(9, seed=1), signs[31:])
        profiles, config = new.profiles(MID), new.grid.config((0, 1, 1))
        point = MeasuredPoint(config, new.profiles(config).time_ms, None)
        without, given = (
            mean_error(model, one, new) for one in (profiles, replace(profiles, points=(point,)))
        )
        assert without > 8
        assert given < 3


@pytest.fixture(scope="module")
def trained() -> Bottleneck:
    return Bottleneck().fit(made.measurements(16), MID)


class TestPredictions:
    def test_a_use_beyond_the_trained_is_flagged_and_wider(self, trained: Bottleneck) -> None:
        usual = some_of(made.measurements(8, seed=2).profiles(MID), [0])
        strange = replace(usual, counters=usual.counters * np.array([0.0, 3.0]))
        flags = trained.predict(strange).flags[0]
        assert any(flag.text.startswith("write share 100 % is above ") for flag in flags)
        same_traffic = usual.counters.sum() / strange.counters.sum()
        strange = replace(strange, counters=strange.counters * same_traffic)
        widths = []
        for profile in (usual, strange):
            surfaces = trained.predict_interval(profile)
            assert surfaces is not None
            widths.append(np.log(surfaces.high / surfaces.low).mean())
        assert widths[1] > widths[0]

    def test_intervals_hold_the_prediction_and_widen_with_coverage(
        self, trained: Bottleneck
    ) -> None:
        several = made.measurements(8, seed=2).profiles(MID)
        half, most = (trained.predict_interval(several, c) for c in (0.5, 0.95))
        assert half is not None
        assert most is not None
        assert (most.low <= half.low).all()
        assert (half.low <= half.values).all()
        assert (half.values <= half.high).all()
        assert (half.high <= most.high).all()
        assert (most.low[:, 0, 2, 2] == most.high[:, 0, 2, 2]).all()
        assert (most.low < most.high).any()

    def test_a_table_of_one_kernel_beside_another_gets_intervals(self) -> None:
        other = replace(made.measurements(5, seed=3), device="gtx1080ti")
        model = Bottleneck().fit([made.measurements(4).select([0]), other], [MID, MID])
        found = model.predict_interval(made.measurements(4).profiles(MID))
        assert found is not None
        assert (found.low <= found.values).all()
        assert (found.values <= found.high).all()

    def test_a_base_at_the_edge_and_two_configurations(self) -> None:
        table = made.measurements(8, grid=ConfigGrid((16,), (500.0, 1000.0), (3000.0,)))
        base = made.edge(table.grid)
        assert error_at(base, quick().fit(table, base), table) < 3


class TestBadInput:
    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (made.measurements(4).select([0]), "two training kernels"),
            (made.measurements(4, grid=ConfigGrid((16,), (500.0,), (3000.0,))), "configurations"),
        ],
    )
    def test_tables_that_tell_nothing(self, table: Measurements, message: str) -> None:
        with refused(f"^'bottleneck' needs .*{message}"):
            quick().fit(table, table.grid.mid)

    def test_traffic_in_gigabytes(self) -> None:
        """A billionth of what the kernels move; by the whole of it they train, above."""
        table = made.measurements(4)
        tiny = replace(table, counter_samples=1e-9 * table.counter_samples)
        with refused("no kernel of 'gtx980' uses more than .*e-10 of .* in bytes/s"):
            quick().fit(tiny, MID)

    def test_power_of_another_gpu_than_the_first(self) -> None:
        own, other = made.measurements(4), replace(made.measurements(4), device="gtx1080ti")
        model = quick("power").fit([own, other], [MID, MID])
        with refused("the model predicts power only of 'gtx980'"):
            model.predict(other.profiles(MID))

    def test_another_base(self, trained: Bottleneck) -> None:
        with refused("no training table is of 'gtx980' at cu=16"):
            trained.predict(made.measurements(4).profiles(made.edge(made.CLOCKS)))


def test_an_older_model_with_a_correction_says_that_it_is_left_out(trained: Bottleneck) -> None:
    state = trained.state()
    state["time"]["corrections"] = [None]
    with pytest.warns(DataWarning, match="of an older mlscale: .* train it again"):
        older = Bottleneck().restore(state)
    profiles = made.measurements(3, seed=2).profiles(MID)
    assert (older.predict(profiles).values == trained.predict(profiles).values).all()
