"""Advice on power caps: a known optimum, limits, intervals, and what is refused.

The kernels of synthetic.frugal at the base, 8 CUs and 700 MHz of memory: a compute kernel of 4,
2.667, 2 and 1.6 ms at 400, 600, 800 and 1000 MHz and a bandwidth kernel of 4 ms at each, both of
34.48, 45.12, 65.84 and 100 W.
"""

from dataclasses import replace
from math import exp

import pytest
from synthetic import frugal
from synthetic import kernels as made
from synthetic.frugal import new_kernels

from mlscale import train
from mlscale.advice.caps import OPEN_INTERVAL, CappedRun, CapPoint, advise_caps, cap_sweep
from mlscale.advice.objectives import Limits
from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.predictors.baselines import Nearest
from mlscale.predictors.intervals import NOISE

MID = made.GRID.mid  # cu=8, engine=800, memory=700
INF = float("inf")
MODEL = train(frugal.measurements(), MID, "nearest")


def run_of(point: CapPoint) -> CappedRun:
    assert point.run is not None
    return point.run


class TestKnownTruth:
    def test_a_run_under_a_cap(self) -> None:
        # 80 W: a share (80 - 65.84) / (100 - 65.84) of the time at 1000 MHz, the rest at 800.
        share = (80 - 65.84) / (100 - 65.84)
        compute_ms = 1 / ((1 - share) / 2 + share / 1.6)
        advice = advise_caps(MODEL, new_kernels((3.0, 1.0)), [80])
        [point] = advice.points
        run = run_of(point)
        run_ms = 3 * compute_ms + 4
        assert run.time_ms == pytest.approx(run_ms, rel=1e-9)
        assert run.power_w == pytest.approx(80, rel=1e-9)
        assert run.energy_mj == pytest.approx(80 * run_ms, rel=1e-9)
        assert run.engine_mhz == pytest.approx(800 + 200 * share, rel=1e-9)
        assert run.slowdown_percent == pytest.approx(100 * (run_ms / 10 - 1), rel=1e-9)
        saving = 100 * (1 - 80 * run_ms / (10 * 65.84))
        assert run.saving_percent == pytest.approx(saving, rel=1e-9)
        assert advice.at_base.time_ms == pytest.approx(10, rel=1e-9)
        assert advice.at_base.energy_mj == pytest.approx(658.4, rel=1e-9)
        assert (point.flags, point.too_low) == ((), 0)

    @pytest.mark.parametrize(
        ("objective", "limits", "cap_w"),
        [
            # The bandwidth kernel has energy to save down to the lowest clock.
            ("energy", None, 34.48),
            # The run takes 6 ms at the base, 6.667 ms at 600 MHz and 8 ms at 400 MHz.
            ("energy", Limits(max_slowdown_percent=34), 34.48),
            ("energy", Limits(max_slowdown_percent=12), 45.12),
            ("energy", Limits(max_slowdown_percent=11), 65.84),
            ("time", None, 100.0),
            ("power", Limits(max_slowdown_percent=0), 65.84),
            ("energy", Limits(max_slowdown_percent=0, max_power_w=50), None),
        ],
    )
    def test_the_best_cap(self, objective: str, limits: Limits | None, cap_w: float | None) -> None:
        caps = [34.48, 45.12, 65.84, 100, 120]
        advice = advise_caps(MODEL, new_kernels(), caps, objective, limits)
        assert (advice.best and advice.best.cap_w) == cap_w
        assert advice.binds == (cap_w not in (None, 100.0))
        assert advice.helps == (cap_w in (34.48, 45.12))  # at 65.84 W it is the base

    @pytest.mark.parametrize(("max_time_ms", "helps"), [(6.1, False), (5.95, True)])
    def test_a_cap_that_costs_energy_helps_where_the_base_is_too_slow(
        self, max_time_ms: float, helps: bool
    ) -> None:
        """6 ms at the base; at 80 W 4 ms and 1.81 ms by the formula above, 465 mJ for 395 mJ."""
        advice = advise_caps(MODEL, new_kernels(), [80], None, Limits(max_time_ms=max_time_ms))
        assert advice.best is not None
        assert run_of(advice.best).energy_mj > advice.at_base.energy_mj
        assert (advice.binds, advice.helps) == (True, helps)

    def test_a_limit_of_power_holds_for_every_kernel(self) -> None:
        # One kernel of 65.84 W at the base, one of half as much, which draws 50 W at most; under a
        # cap of 65.84 W the mean over 2 and 4 ms is 55.28 W, within the limit.
        profiles = new_kernels()
        assert profiles.power_w is not None
        profiles = replace(profiles, power_w=profiles.power_w * [1, 0.5])
        advice = advise_caps(MODEL, profiles, [45.12, 65.84], "time", Limits(max_power_w=60))
        assert (advice.best and advice.best.cap_w) == 45.12

    def test_where_time_is_the_objective_the_saving_is_of_energy(self) -> None:
        # 5.6 ms at 100 W against 6 ms at 65.84 W.
        [point] = advise_caps(MODEL, new_kernels(), [100], "time").points
        assert run_of(point).saving_percent == pytest.approx(100 * (1 - 560 / 395.04), rel=1e-9)

    def test_below_the_trained_clocks_is_flagged(self) -> None:
        profiles = new_kernels()
        assert profiles.power_w is not None
        profiles = replace(profiles, power_w=profiles.power_w * [1, 2])
        low, high = advise_caps(MODEL, profiles, [200, 50]).points
        assert (low.cap_w, low.too_low, low.run) == (50, 1, None)
        assert low.flags == ("below the clocks tried: 1 of 2 kernels",)
        [alone] = advise_caps(MODEL, profiles.select([1]), [50]).points
        assert alone.flags == ("below the clocks tried",)
        assert high.too_low == 0
        advice = advise_caps(MODEL, profiles, [20, 30])
        assert advice.best is None

    def test_static_power_counts_against_the_cap(self) -> None:
        model = train(frugal.measurements(power_kind="dynamic"), MID, "nearest")
        [point] = advise_caps(model, new_kernels(), [165.84], static_power_w=100.0).points
        run = run_of(point)
        assert run.engine_mhz == pytest.approx(800, rel=1e-9)


class Unsure(frugal.Unsure, Nearest):
    name = "unsure"


UNSURE = frugal.model_of(Unsure)


class TestIntervals:
    def test_the_ends_are_of_time_and_power_together(self) -> None:
        # Not capped (150 W) the run takes 1.6 + 4 ms at 1000 MHz, and 100 W, 90 to 120. At this
        # higher clock the compute kernel's 1.6 ms can be no less than that but for the noise, and
        # the bandwidth kernel's 4 ms no more. At the base 6 ms and 65.84 W.
        [point] = advise_caps(UNSURE, new_kernels(), [150]).points
        run = run_of(point)
        shortest, longest = 1.6 / exp(NOISE) + 0.9 * 4, 1.2 * 1.6 + 4 * exp(NOISE)
        slower = [100 * (time_ms / 6 - 1) for time_ms in (shortest, longest)]
        assert run.slowdown_range == pytest.approx(tuple(slower), rel=1e-9)
        at_base = 6 * 65.84
        ends = [100 * (1 - energy / at_base) for energy in (120 * longest, 90 * shortest)]
        assert run.saving_range == pytest.approx(tuple(ends), rel=1e-9)

    def test_an_upper_end_below_the_trained_clocks_leaves_the_other_end(self) -> None:
        # 40 W is above the 34.48 W of 400 MHz, and below 1.2 times that. At the low ends, 0.9 of
        # time and of power, 40 W is 44.44 W of these, which dithers near 600 MHz; but at a lower
        # clock the bandwidth kernel's 4 ms get no shorter than by the noise.
        [point] = advise_caps(UNSURE, new_kernels(), [40]).points
        [low] = advise_caps(UNSURE, new_kernels(), [40 / 0.9]).points
        run, at_low = run_of(point), run_of(low)
        assert point.too_low == 0
        shortest = 0.9 * (at_low.time_ms - 4) + 4 / exp(NOISE)
        assert run.slowdown_range == pytest.approx((100 * (shortest / 6 - 1), INF))
        least_energy = 40 * shortest / (6 * 65.84)
        assert run.saving_range == pytest.approx((-INF, 100 * (1 - least_energy)))
        assert point.flags == (OPEN_INTERVAL,)


class TestTheGpusLimits:
    def test_the_sweep_goes_from_the_lowest_limit_to_the_highest(self) -> None:
        # From the device table: 200 to 700 W in 20 steps of 25 W; 200 to 1000 W in 20 of 40 W;
        # 60 to 70 W in one; the highest of an A100 is its default.
        assert cap_sweep(load_device("h100-sxm5")).tolist() == [*range(200, 701, 25)]
        assert cap_sweep(load_device("b200")).tolist() == [*range(200, 1001, 40)]
        assert cap_sweep(load_device("t4")).tolist() == [60, 70]
        assert cap_sweep(load_device("a100-sxm4-80gb")).tolist() == [*range(100, 401, 25)]

    def test_a_cap_outside_them_is_flagged_and_the_own_one_known(self) -> None:
        model = replace(MODEL, device="h100-sxm5")
        advice = advise_caps(model, replace(new_kernels(), device="h100-sxm5"), [150, 800])
        assert [point.flags for point in advice.points] == [
            ("below the GPU's lowest power limit, 200 W",),
            ("above the GPU's highest known power limit, 700 W",),
        ]
        assert advice.default_w == 700
        outside, clocks = advice.warnings
        assert outside == (
            "150 W, 800 W cannot be set: h100-sxm5 is known to take power caps of at least 200 W "
            "and at most 700 W; others are predicted, and never advised"
        )
        assert clocks == (
            "under a power cap h100-sxm5 is taken to run at 1000 MHz at most, the highest "
            "clock tried, not at 1980 MHz"
        )

    @pytest.mark.parametrize(
        ("device", "times", "own_w"),
        [("rx7900xtx", 1.0, 333), ("t4", 1.0, 70), ("t4", 2.0, 70)],
    )
    def test_the_own_cap_can_be_set_whatever_was_measured(
        self, device: str, times: float, own_w: float
    ) -> None:
        """An RX 7900 XTX has 355 W by its sheet, and takes caps up to 333; a T4 has 70 W.

        Twice the power is 131.68 W: as a monitor shows of a board that passes its cap for moments.
        """
        profiles = replace(new_kernels(), device=device)
        profiles = replace(profiles, power_w=times * profiles.quantity("power"))
        caps = advise_caps(replace(MODEL, device=device), profiles, [60])
        assert caps.default_w == own_w

    @pytest.mark.parametrize(("device", "warned"), [("a100-sxm4-80gb", True), ("hd7970", False)])
    def test_a_clock_above_those_tried_is_warned_of(self, device: str, warned: bool) -> None:
        # By the device table an A100 goes up to 1410 MHz; of an HD 7970 it knows none.
        of_device = replace(new_kernels(), device=device)
        warnings = advise_caps(replace(MODEL, device=device), of_device, [120]).warnings
        assert any(text.endswith("not at 1410 MHz") for text in warnings) == warned

    @pytest.mark.parametrize(
        ("caps", "told"), [([40, 80], "under 80 W the engine clock is 883 MHz"), ([40, 65], "")]
    )
    def test_a_clock_that_a_cap_alone_lets_rise_is_warned_of(
        self, caps: list[float], told: str
    ) -> None:
        # As in TestKnownTruth: 800 + 200 (80 - 65.84) / (100 - 65.84) = 882.9 MHz at 80 W.
        warnings = advise_caps(MODEL, new_kernels((3.0, 1.0)), caps).warnings
        assert [text.split(", at the base 800: caps")[0] for text in warnings] == [told] * bool(
            told
        )

    def test_a_cap_that_the_gpu_refuses_is_not_advised(self) -> None:
        # At 8 times the power the kernels draw 275.8, 361, 526.7 and 800 W. An H100 may be set to
        # 200 to 700 W.
        profiles = new_kernels()
        assert profiles.power_w is not None
        profiles = replace(profiles, power_w=8 * profiles.power_w)
        asked = [270.0, 280.0, 400.0, 526.72, 800.0]
        free = advise_caps(MODEL, profiles, asked, "time")
        assert (free.best and free.best.cap_w) == 800
        model, profiles = replace(MODEL, device="h100-sxm5"), replace(profiles, device="h100-sxm5")
        held = advise_caps(model, profiles, asked, "time")
        assert (held.best and held.best.cap_w) == 526.72
        assert [point.can_be_set for point in held.points] == [True] * 4 + [False]
        assert advise_caps(model, profiles, [150.0, 800.0], "time").best is None


class TestRefused:
    def test_without_whole_power(self) -> None:
        with pytest.raises(InputError, match="a power cap needs the whole power: the profile"):
            advise_caps(MODEL, new_kernels(power=False), [80])
        dynamic = train(frugal.measurements(power_kind="dynamic"), MID, "nearest")
        with pytest.raises(InputError, match="power_w is dynamic power; give what the board"):
            advise_caps(dynamic, new_kernels(), [80])

    def test_what_says_nothing_of_caps(self) -> None:
        with pytest.raises(InputError, match="the objective 'clock' says nothing of power caps"):
            advise_caps(MODEL, new_kernels(), [80], "clock")
        with pytest.raises(InputError, match="power limits of this GPU are not known; name the"):
            advise_caps(MODEL, new_kernels())
        with pytest.raises(InputError, match="power limits of hd7970 are not known"):
            cap_sweep(load_device("hd7970"))


class TestTheGpusOwnCap:
    def test_a_cap_at_the_default_limit_changes_nothing(self) -> None:
        # An H20 ships with 400 W. 5 times the power is 500 W at 1000 MHz, 329 at the base: its own
        # cap holds the run already, so 400 W is no news; 450 W, which has to be set, is faster.
        model = replace(MODEL, device="h20")
        profiles = replace(new_kernels(), device="h20")
        assert profiles.power_w is not None
        profiles = replace(profiles, power_w=5 * profiles.power_w)
        own = advise_caps(model, profiles, [350, 400], "time")
        assert own.best is not None
        assert (own.best.cap_w, own.binds, own.helps) == (400, False, False)
        raised = advise_caps(model, profiles, [350, 400, 450], "time")
        assert raised.best is not None
        assert (raised.best.cap_w, raised.binds, raised.helps) == (450, True, True)

    def test_of_dynamic_power_the_rest_counts(self) -> None:
        # 329.2 W of dynamic power and 100 beside it are 429.2 W at the base: more than the H20's
        # 400, so that the board has no lower cap of its own, and 429.2 W change nothing.
        trained = train(frugal.measurements(power_kind="dynamic"), frugal.MID, "nearest")
        model = replace(trained, device="h20")
        profiles = replace(new_kernels(), device="h20")
        assert profiles.power_w is not None
        profiles = replace(profiles, power_w=5 * profiles.power_w)
        own = advise_caps(model, profiles, [429.2], "time", static_power_w=100.0)
        assert own.best is not None
        assert (own.best.cap_w, own.binds) == (429.2, False)
