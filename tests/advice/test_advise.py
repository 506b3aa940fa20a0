"""Advice from a model and a profile: known optima, what is refused, intervals."""

import doctest
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from predictor_calls import counted
from synthetic import bottleneck_kernels, frugal
from synthetic import kernels as made
from synthetic.frugal import new_kernels
from synthetic.tidy import refused

from mlscale import HardwareConfig, Model, train
from mlscale.advice.advise import advise
from mlscale.advice.objectives import Limits, static_power
from mlscale.advice.search import TOO_SLOW

MID = made.GRID.mid  # cu=8, engine=800, memory=700
MODEL = train(frugal.measurements(), MID, "nearest")


def of_kind(kind: str | None) -> Model:
    return train(frugal.measurements(power_kind=kind), MID, "nearest")


def without_power() -> Model:
    return train(replace(frugal.measurements(), power_samples=None), MID, "nearest")


class TestKnownTruth:
    def test_the_most_frugal_clocks_are_found(self) -> None:
        # The compute kernel: at 16 CUs and 600 MHz 2 ms x 8/16 x 800/600 = 4/3 ms and 45.12 W,
        # where base needs 2 ms x 65.84 W. The bandwidth kernel: 4 ms x 700/1000 at 34.48 W; the
        # CU count changes nothing, so the fewest are taken.
        advice = advise(MODEL, new_kernels())
        assert advice.objective == "energy"
        compute, bandwidth = advice.kernels
        assert (compute.kernel, compute.best.config.engine_mhz) == ("compute0", 600)
        assert compute.best.config.cu_count == 16
        assert compute.best.time_ms == pytest.approx(4 / 3, rel=1e-9)
        assert compute.best.energy_mj == pytest.approx(4 / 3 * 45.12, rel=1e-9)
        assert compute.base.energy_mj == pytest.approx(2 * 65.84, rel=1e-9)
        assert compute.saving_percent == pytest.approx(
            100 * (1 - 4 / 3 * 45.12 / (2 * 65.84)), rel=1e-9
        )
        assert compute.slowdown_percent == pytest.approx(-100 / 3, rel=1e-9)
        assert bandwidth.best.config == HardwareConfig(4, 400.0, 1000.0)
        assert bandwidth.best.energy_mj == pytest.approx(4 * 0.7 * 34.48, rel=1e-9)

    def test_edp_asks_for_more_speed(self) -> None:
        # (30 + 70 x^3) / x^2 is least at 1000 MHz; of the bandwidth kernel still at 400.
        compute, bandwidth = advise(MODEL, new_kernels(), "edp").kernels
        assert compute.best.config.engine_mhz == 1000
        assert bandwidth.best.config.engine_mhz == 400

    def test_together_the_energies_are_added(self) -> None:
        # At 16 CUs and 1000 MHz memory, with g = 30 + 70 x^3: 2 ms x 8/16 x 0.8/x x g for the
        # compute kernel, 2.8 ms x g for the other; 165.5, 186.5, 250.2 and 360 mJ by x.
        whole_run = advise(MODEL, new_kernels()).whole_run
        assert whole_run.best.config == HardwareConfig(16, 400.0, 1000.0)
        assert whole_run.best.time_ms == pytest.approx(2.0 + 2.8, rel=1e-9)
        assert whole_run.best.energy_mj == pytest.approx(4.8 * 34.48, rel=1e-9)
        assert whole_run.best.power_w == pytest.approx(34.48, rel=1e-9)

    def test_in_one_line(self) -> None:
        """By hand, as above: 4.8 ms of 6, 4.8 x 34.48 mJ of 6 x 65.84; at 1000 MHz 0.8 + 2.8 ms."""
        assert repr(advise(MODEL, new_kernels())) == (
            "<Advice on energy for 2 kernels: cu=16,engine=400,memory=1000, time -20.0 %, energy "
            "-58.1 % against the base cu=8,engine=800,memory=700>"
        )
        assert "memory=1000, time -40.0 % against" in repr(advise(MODEL, new_kernels(), "time"))

    def test_a_slowdown_is_of_the_run(self) -> None:
        # At 8 CUs and 700 MHz the compute kernel takes 33 % more at 600 MHz and twice the time at
        # 400 MHz, the bandwidth kernel the same. Of 2 ms beside 4 ms: 11 % and 33 % of the run.
        profiles = new_kernels(power=False)
        for most, engine_mhz in ((11.0, 800), (11.2, 600), (33.4, 400)):
            advice = advise(MODEL, profiles, "clock", Limits(max_slowdown_percent=most))
            assert advice.whole_run.best.config == HardwareConfig(8, engine_mhz, 700.0)
        assert advice.kernels[0].slowdown_in_run_percent == pytest.approx(100)
        assert advice.kernels[1].slowdown_in_run_percent == pytest.approx(0, abs=1e-9)
        [flag] = advice.whole_run.flags
        assert flag == (
            "the limit of 33.4 % is of the run's time: 1 of 2 kernels, 33 % of it, get slower than "
            "that, at most +100.0 %"
        )
        # By itself it keeps the limit: 800 MHz.
        assert advice.kernels[0].best.config.engine_mhz == 600

    def test_a_limit_of_time_is_of_the_run(self) -> None:
        # 100 x 2 ms + 4 ms at the base; at 600 MHz 33 % more of the former: 270.67 ms.
        profiles = replace(new_kernels(power=False), launches=np.array([100.0, 1.0]))
        for most, engine_mhz in ((270.0, 800), (271.0, 600)):
            advice = advise(MODEL, profiles, "clock", Limits(max_time_ms=most))
            assert advice.whole_run.best.config.engine_mhz == engine_mhz

    def test_a_kernel_that_cannot_be_as_quick_as_the_run_is_told(self) -> None:
        # The compute kernel needs 0.8 ms at least, 40 % of the base's; the bandwidth kernel 2.8
        # ms, 70 %. A run of 3.6 ms of 6 ms, 60 %, is possible.
        advice = advise(MODEL, new_kernels(), limits=Limits(max_time_ms=3.7))
        compute, bandwidth = advice.kernels
        assert compute.best.time_ms <= 0.617 * 2 + 1e-3
        assert TOO_SLOW not in compute.flags
        assert bandwidth.best.time_ms == pytest.approx(2.8)
        assert TOO_SLOW in bandwidth.flags

    def test_power_is_of_every_kernel(self) -> None:
        # The bandwidth kernel draws twice the power of the other: 90.24 W at 600 MHz, 131.68 W
        # at 800 MHz. The mean over the run would allow more.
        profiles = replace(new_kernels(), power_w=np.array([65.84, 131.68]))
        profiles = replace(profiles, launches=np.array([1000.0, 1.0]))
        run = advise(MODEL, profiles, "time", Limits(max_power_w=100)).whole_run
        assert run.best.config.engine_mhz == 600
        assert run.best.power_w is not None
        assert run.best.power_w < 50
        # Alone the other is quickest at 1000 MHz, and within 70 W at 800.
        for most_w, engine_mhz in ((100, 1000), (70, 800)):
            of_compute, _ = advise(MODEL, profiles, "time", Limits(max_power_w=most_w)).kernels
            assert of_compute.best.config.engine_mhz == engine_mhz

    def test_shares_are_of_the_kernels_time(self) -> None:
        # 3 x 2 ms and 1 x 4 ms, of 10 ms.
        profiles = replace(new_kernels(), launches=np.array([3.0, 1.0]))
        shares = [kernel.share for kernel in advise(MODEL, profiles).kernels]
        assert [share and (share.launches, share.percent) for share in shares] == [
            (3.0, pytest.approx(60)),
            (1.0, pytest.approx(40)),
        ]

    def test_the_lowest_clock_within_a_slowdown(self) -> None:
        # At the base's 8 CUs the compute kernel takes 2 ms x 800 / engine: 33 % more at 600 MHz.
        # The bandwidth kernel does not know the engine clock. CUs and memory clock stay.
        profiles = new_kernels(power=False)
        advice = advise(MODEL, profiles, "clock", Limits(max_slowdown_percent=0))
        assert [choice.best.config for choice in advice.kernels] == [
            HardwareConfig(8, 800.0, 700.0),
            HardwareConfig(8, 400.0, 700.0),
        ]
        assert advice.kernels[1].saving_percent == pytest.approx(50)  # 400 MHz in place of 800
        assert advice.whole_run.best.config.engine_mhz == 800
        # 60 % allow 33 % more, and not twice the time at 400 MHz.
        slower = advise(MODEL, profiles, "clock", Limits(max_slowdown_percent=60))
        assert slower.kernels[0].best.config == HardwareConfig(8, 600.0, 700.0)
        # Beside 4 ms of the other kernel, 4 ms in place of 2 ms are 33 % of the run.
        assert slower.whole_run.best.config == HardwareConfig(8, 400.0, 700.0)
        # 2.67 ms at 600 MHz, 4 ms at 400 MHz: a limit of 3 ms leaves 600 MHz.
        limited = advise(MODEL, profiles.select([0]), "clock", Limits(max_time_ms=3))
        assert limited.kernels[0].best.config.engine_mhz == 600

    def test_nothing_for_the_run_is_refused(self) -> None:
        # The compute kernel makes 0.8 ms at 16 CUs and 1000 MHz only, with 100 W; the bandwidth
        # kernel, of twice the power, stays below 101 W up to 600 MHz (90.24 W) only.
        profiles = replace(
            new_kernels(), time_ms=np.array([2.0, 0.1]), power_w=np.array([65.84, 131.68])
        )
        with refused(
            "the whole run: no configuration keeps a power of at most 101 W and a time of at most "
            "0.88 ms; the least is"
        ):
            advise(MODEL, profiles, "time", Limits(max_time_ms=0.88, max_power_w=101))

    def test_one_launch_of_one_kernel_is_the_whole_run(self) -> None:
        one = frugal.measurements(per_group=1).select([0]).profiles(MID)
        advice = advise(MODEL, one)
        assert advice.whole_run.kernel is None
        assert advice.whole_run.best == advice.kernels[0].best
        assert advice.recommendations == advice.kernels  # not told twice
        advice = advise(MODEL, replace(one, launches=np.array([10.0])))
        assert advice.whole_run.base.time_ms == pytest.approx(10 * advice.kernels[0].base.time_ms)
        assert len(advice.recommendations) == 2

    def test_launches_say_which_kernel_decides(self) -> None:
        # With g = 30 + 70 x^3 at 16 CUs and 1000 MHz memory: the compute kernel needs 0.8/x x g,
        # least at 600 MHz (60.16 mJ; 68.96 at 400), the bandwidth kernel 2.8 x g, least at 400
        # (96.5 mJ; 126.3 at 600). 100 launches of the former and one of the latter: 6142 at
        # 600 MHz, 6993 at 400 MHz.
        profiles = replace(new_kernels(), launches=np.array([100.0, 1.0]))
        run = advise(MODEL, profiles).whole_run
        assert run.best.config == HardwareConfig(16, 600.0, 1000.0)
        assert run.best.time_ms == pytest.approx(100 * 4 / 3 + 2.8, rel=1e-9)
        assert run.best.energy_mj == pytest.approx((100 * 4 / 3 + 2.8) * 45.12, rel=1e-9)
        assert run.base.time_ms == pytest.approx(204)

    def test_the_front_runs_from_quick_to_frugal(self) -> None:
        # 16 CUs at 1000, 800 and 600 MHz: less energy at each step; 400 MHz needs more again. The
        # memory clock changes nothing, so the lowest stands for all.
        compute = advise(MODEL, new_kernels()).kernels[0]
        assert [point.config.engine_mhz for point in compute.front] == [1000, 800, 600]
        assert {point.config.memory_mhz for point in compute.front} == {400}
        assert compute.front[-1] == compute.best


def test_the_example_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """The docstring's answer is that of the shipped model: regression only."""
    monkeypatch.chdir(Path(__file__).parents[2])
    (example,) = doctest.DocTestFinder().find(advise, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


class TestPowerKinds:
    def test_static_power_is_added(self) -> None:
        # With 1000 W beside it the quickest is the most frugal: 1 ms / 1.25 x 1100 W.
        compute = advise(of_kind("dynamic"), new_kernels(), static_power_w=1000.0).kernels[0]
        assert compute.best.config.engine_mhz == 1000
        assert compute.best.power_w == pytest.approx(1100, rel=1e-9)
        assert compute.best.energy_mj == pytest.approx(0.8 * 1100, rel=1e-9)

    def test_by_default_the_lowest_clock_where_energy_cannot_be_known(self) -> None:
        for model, profiles in (
            (without_power(), new_kernels()),
            (MODEL, new_kernels(power=False)),
            (of_kind("dynamic"), new_kernels()),
        ):
            advice = advise(model, profiles)
            assert advice.objective == "clock"
            assert advice.limits.max_slowdown_percent == 5
            assert advice.kernels[0].best.energy_mj is None
            assert advice.kernels[0].front == ()
            assert any(
                "the lowest clock is sought, not least energy" in text for text in advice.warnings
            )

    def test_unknown_power_is_taken_for_board_power_and_said(self) -> None:
        advice = advise(of_kind(None), new_kernels())
        assert advice.objective == "energy"
        (told,) = (text for text in advice.warnings if "board power" in text)
        assert told == (
            "power_w is taken for board power; the model does not say what it is: its training "
            "table's metadata may (power_kind, docs/file-formats.md)"
        )
        assert not advise(MODEL, new_kernels()).warnings

    @pytest.mark.parametrize(
        ("kind", "given", "added"),
        [("board", None, 0.0), (None, None, 0.0), ("dynamic", None, None), ("dynamic", 5.0, 5.0)],
    )
    def test_what_is_added(self, kind: str | None, given: float | None, added: float) -> None:
        assert static_power(kind, given) == added

    @pytest.mark.parametrize(
        ("kind", "given", "match"),
        [
            ("board", 5.0, "power_w is board power, static power included: leave"),
            ("dynamic", -1.0, "static power must be finite and at least 0 W, not -1"),
            ("dynamic", float("nan"), "must be finite and at least 0 W, not nan"),
            ("dynamic", "few", "must be finite and at least 0 W, not few"),
        ],
    )
    def test_senseless_static_power_is_refused(
        self, kind: str | None, given: Any, match: str
    ) -> None:
        with refused(match):
            static_power(kind, given)


class TestExchange:
    def test_kernels_that_wait_for_other_gpus_are_told(self) -> None:
        """By hand: 4 of 6 ms."""
        names = (
            "gemm",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        )
        [told] = [
            w for w in advise(MODEL, replace(new_kernels(), kernels=names)).warnings if "GPUs" in w
        ]
        assert told.startswith("66.7 % of the run's time is in kernels that exchange data between")
        assert "'ncclDevKernel_AllReduce_Sum_bf16" in told

    def test_others_are_not(self) -> None:
        run = replace(new_kernels(), kernels=("gemm", "pack_for_nccl"))
        assert not [w for w in advise(MODEL, run).warnings if "GPUs" in w]


class TestRefused:
    @pytest.mark.parametrize("objective", ["energy", "edp", "ed2p", "power"])
    def test_power_that_is_not_there(self, objective: str) -> None:
        what = f"the objective '{objective}' needs power: "
        with refused(what + "the model was trained without power"):
            advise(without_power(), new_kernels(), objective)
        with refused(what + "the profile has no power_w, which --power gives"):
            advise(MODEL, new_kernels(power=False), objective)

    def test_an_objective_that_there_is_not(self) -> None:
        with refused("there is no objective 'fastest'; one of energy, edp, ed2p, time, power"):
            advise(without_power(), new_kernels(), "fastest")

    def test_a_limit_of_power_that_is_not_there(self) -> None:
        with refused(
            "a limit of power needs power: the profile has no power_w, which --power gives"
        ):
            advise(MODEL, new_kernels(power=False), "time", Limits(max_power_w=50))
        with refused("static power is of no use: the profile has no power_w, which --power gives"):
            advise(MODEL, new_kernels(power=False), "time", static_power_w=50.0)

    @pytest.mark.parametrize(
        ("objective", "limits"),
        [("energy", {}), ("edp", {}), ("ed2p", {}), ("time", {"max_power_w": 50.0})],
    )
    def test_dynamic_power_for_what_needs_the_whole(
        self, objective: str, limits: dict[str, Any]
    ) -> None:
        with refused("needs the whole power: power_w is dynamic power; .* --static-power W"):
            advise(of_kind("dynamic"), new_kernels(), objective, Limits(**limits))

    def test_dynamic_power_is_least_where_board_power_is(self) -> None:
        compute = advise(of_kind("dynamic"), new_kernels(), "power").kernels[0]
        assert compute.best.config.engine_mhz == 400
        assert compute.best.energy_mj is None

    def test_two_kinds_of_power(self) -> None:
        profiles = replace(new_kernels(), metadata={"power_kind": "dynamic"})
        with refused("the model's power_w is board power, the profile's dynamic power"):
            advise(MODEL, profiles)

    @pytest.mark.parametrize(
        ("asked", "match"),
        [
            ({"limits": 5}, "limits are a mlscale.Limits, not 5"),
            ({"objective": ["energy"]}, "there is no objective"),
        ],
    )
    def test_what_is_of_another_type_is_refused(self, asked: dict[str, Any], match: str) -> None:
        with refused(match):
            advise(MODEL, new_kernels(), **asked)

    def test_limits_that_nothing_keeps_name_kernel_and_nearest(self) -> None:
        # The compute kernel's shortest: 2 ms x 8/16 x 800/1000; the bandwidth kernel's 2.8 ms.
        with refused("the whole run: no configuration keeps a time of at most 1.5 ms; .* 3.6 ms$"):
            advise(MODEL, new_kernels(), limits=Limits(max_time_ms=1.5))
        with refused("kernel 'compute0': .* the least is time 0.8 ms$"):
            advise(MODEL, new_kernels().select([0]), limits=Limits(max_time_ms=0.5))


@pytest.mark.parametrize("name", ["bottleneck", "nearest"])
def test_every_surface_is_predicted_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bottleneck_kernels.measurements(8)
    model = train(data, bottleneck_kernels.CLOCKS.mid, name)
    calls = counted(monkeypatch, type(model.predictors["time"]))
    advise(model, data.profiles(model.base))
    assert [quantity for _, quantity, _ in calls] == ["time", "power"]
