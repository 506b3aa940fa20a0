"""The verdict: sentences for advice whose numbers are set by hand."""

import math
from dataclasses import replace

import pytest
from synthetic import frugal

from mlscale import HardwareConfig, train
from mlscale.advice.advise import advise
from mlscale.advice.caps import OPEN_INTERVAL, CapAdvice, CappedRun, CapPoint
from mlscale.advice.objectives import Limits
from mlscale.advice.search import Advice, OperatingPoint, Recommendation, Run
from mlscale.advice.verdict import cap_verdict, verdict

BASE = HardwareConfig(8, 800.0, 700.0)
BEST = HardwareConfig(8, 600.0, 700.0)


def recommendation(best: HardwareConfig = BEST, kernel: str | None = "k") -> Recommendation:
    return Recommendation(
        kernel=kernel,
        best=OperatingPoint(best, 2.0, 50.0, 100.0),
        base=OperatingPoint(BASE, 1.8, 70.0, 126.0),
        saving_percent=20.6,
        saving_range=(12.0, 28.0),
        slowdown_percent=11.1,
        slowdown_range=(-1.5, 14.0),
        front=(),
        flags=(),
    )


def advice(objective: str, best: HardwareConfig = BEST, limits: Limits | None = None) -> Advice:
    return Advice(
        objective=objective,
        limits=limits or Limits(),
        static_power_w=None,
        kernels=(recommendation(best),),
        whole_run=recommendation(best, kernel=None),
        run=Run(1, launches=None, counters_cover_percent=100.0),
        tried_mhz=(500.0, 550.0, 600.0, 800.0),
        warnings=(),
    )


class TestSentences:
    """Expected: the numbers of `recommendation`, in words by hand."""

    def test_of_energy_with_both_intervals(self) -> None:
        assert verdict(advice("energy")) == (
            "Set the engine clock to 600 MHz (of 800): 11 % slower (90 %: 1.5 % faster to 14 % "
            "slower), 21 % less energy (12 to 28)."
        )

    def test_of_the_lowest_clock_with_its_limit(self) -> None:
        assert verdict(advice("clock", limits=Limits(max_slowdown_percent=12))) == (
            "Set the engine clock to 600 MHz (of 800): 11 % slower (90 %: 1.5 % faster to 14 % "
            "slower); of the clocks tried no lower one keeps a slowdown of at most 12 % (the next "
            "is 550 MHz)."
        )

    @pytest.mark.parametrize("objective", ["clock", "energy"])
    def test_the_lowest_that_was_tried_is_told(self, objective: str) -> None:
        limits = Limits(max_slowdown_percent=12)
        text = verdict(replace(advice(objective, limits=limits), tried_mhz=(600.0, 800.0)))
        assert text.endswith("; no lower engine clock was tried.")
        assert "keeps" not in text

    def test_every_axis_that_changes_is_named(self) -> None:
        text = verdict(advice("time", HardwareConfig(16, 1000.0, 900.0)))
        assert text.startswith(
            "Set 16 CUs (up from 8) and the engine clock to 1000 MHz (up from 800) and the memory "
            "clock to 900 MHz (up from 700): "
        )

    @pytest.mark.parametrize(
        ("objective", "reason"),
        [
            ("energy", "nothing is predicted to need less energy"),
            ("edp", "nothing is predicted to need less energy x time"),
            ("time", "nothing is faster"),
        ],
    )
    def test_the_base_is_best(self, objective: str, reason: str) -> None:
        text = verdict(advice(objective, BASE))
        assert text == f"Stay at the base, cu=8,engine=800,memory=700: {reason}."

    def test_the_base_is_the_lowest_clock_that_serves(self) -> None:
        text = verdict(advice("clock", BASE, Limits(max_slowdown_percent=5)))
        assert text == (
            "Stay at the base, cu=8,engine=800,memory=700: of the clocks tried no lower one keeps "
            "a slowdown of at most 5 % (the next is 600 MHz)."
        )

    @pytest.mark.parametrize(
        ("limits", "told"),
        [
            (Limits(max_slowdown_percent=5), " (the next lower engine clock tried is 600 MHz)."),
            (Limits(max_time_ms=1.9), " (the next lower engine clock tried is 600 MHz)."),
            (Limits(max_power_w=300), " under a power of at most 300 W."),
        ],
    )
    def test_a_limit_of_time_may_allow_a_clock_that_was_not_tried(
        self, limits: Limits, told: str
    ) -> None:
        text = verdict(advice("energy", BASE, limits))
        assert text.endswith(told)
        assert "the next" not in verdict(advice("time", BASE, limits))

    def test_without_intervals_none_is_named(self) -> None:
        plain = replace(recommendation(), saving_range=None, slowdown_range=None)
        assert verdict(replace(advice("energy"), whole_run=plain)) == (
            "Set the engine clock to 600 MHz (of 800): 11 % slower, 21 % less energy."
        )

    def test_two_digits_of_a_percentage(self) -> None:
        run = replace(
            recommendation(),
            slowdown_percent=3.84,
            slowdown_range=(1.94, 9.96),
            saving_percent=-0.04,
            saving_range=(-9.94, -0.04),
        )
        assert verdict(replace(advice("energy"), whole_run=run)) == (
            "Set the engine clock to 600 MHz (of 800): 3.8 % slower (90 %: 1.9 to 10), 0.0 % more "
            "energy (0.0 to 9.9)."
        )


class TestOfTheRun:
    """Expected: the numbers of `recommendation` and of the run, in words by hand."""

    @pytest.mark.parametrize(
        ("time_ms", "launches", "said"),
        [
            (66.123, 1203.0, "66.1 ms (1203 launches of 1 kernel)"),
            (1234.0, 1234567.0, "1.23 s (1 234 567 launches of 1 kernel)"),
            (12345678.0, 2.0, "12 346 s (2 launches of 1 kernel)"),
        ],
    )
    def test_its_time_and_launches(self, time_ms: float, launches: float, said: str) -> None:
        told = advice("energy")
        base = replace(told.whole_run.base, time_ms=time_ms)
        told = replace(
            told,
            whole_run=replace(told.whole_run, base=base),
            run=Run(1, launches, counters_cover_percent=100.0),
        )
        assert verdict(told).endswith(f"less energy (12 to 28), for the run of {said}.")

    def test_of_several_gpus_it_is_gpu_time(self) -> None:
        """Four GPUs side by side do not take four times as long."""
        run = Run(4, None, counters_cover_percent=100.0, is_sampled=True)
        told = replace(advice("energy"), run=run)
        assert verdict(told).endswith("less energy (12 to 28), for 1.8 ms of GPU time (4 runs).")

    def test_how_much_counters_cover(self) -> None:
        run = Run(2, 20.0, counters_cover_percent=93.7)
        kernels = (recommendation(),) * 2
        told = replace(advice("clock"), run=run, kernels=kernels)
        assert "1.8 ms (20 launches of 2 kernels); counters cover 93 % of it; of the" in verdict(
            told
        )
        stay = replace(advice("energy", BASE), run=run, kernels=kernels)
        assert verdict(stay) == (
            "Stay at the base, cu=8,engine=800,memory=700: nothing is predicted to need less "
            "energy, for the run of 1.8 ms (20 launches of 2 kernels); counters cover 93 % of it."
        )

    @pytest.mark.parametrize(("percent", "said"), [(99.93, "99"), (50.0, "50"), (99.4, "99")])
    def test_what_counters_cover_is_rounded_down(self, percent: float, said: str) -> None:
        run = Run(2, 20.0, counters_cover_percent=percent)
        told = replace(advice("energy"), run=run, kernels=(recommendation(),) * 2)
        assert f"; counters cover {said} % of it" in verdict(told)


class TestSeveralKernels:
    def test_it_is_of_all_of_them(self) -> None:
        # By hand (synthetic.frugal): together 16 CUs, 400 MHz, 1000 MHz need 4.8 ms x 34.48 W,
        # the base 6 ms x 65.84 W, which is 58.1 % more than the former's share of it.
        model = train(frugal.measurements(), BASE, "nearest")
        profiles = frugal.measurements(per_group=1).profiles(BASE)
        profiles = replace(profiles, time_ms=profiles.time_ms * 0 + [2.0, 4.0])
        text = verdict(advise(model, profiles))
        saving = 100 * (1 - 4.8 * 34.48 / (6 * 65.84))
        assert text.startswith("Set 16 CUs (up from 8) and the engine clock to 400 MHz (of 800)")
        assert f": 20 % faster, {saving:.0f} % less energy, for the run of 6 ms" in text
        assert "(2 kernels, each run once); no lower engine clock was tried." in text


class TestOfCaps:
    """Expected: the numbers of `capped`, in words by hand."""

    def capped(
        self, default_w: float | None = 400.0, binds: bool = True, helps: bool = True
    ) -> CapAdvice:
        run = CappedRun(1100.0, 2.0, 290.0, 580.0, 3.14, (-0.5, 5.0), 10.04, (4.0, 14.2))
        best = CapPoint(300.0, run, 0, ())
        return CapAdvice(
            objective="energy",
            limits=Limits(),
            kernels=1,
            at_base=OperatingPoint(BASE, 1.94, 332.0, 644.0),
            points=(best,),
            best=best,
            binds=binds,
            helps=binds and helps,
            default_w=default_w,
            warnings=(),
        )

    def test_of_energy(self) -> None:
        effects = "3.1 % slower (90 %: 0.5 % faster to 5.0 % slower), 10 % less energy (4.0 to 14)"
        said = cap_verdict(self.capped(), advice("energy"))
        assert said == f"Set the power cap to 300 W (of 400): {effects}."
        said = cap_verdict(self.capped(default_w=None), advice("energy"))
        assert said == f"Set the power cap to 300 W: {effects}."

    @pytest.mark.parametrize(
        ("slowest", "saved", "said"),
        [
            (0.5, 14.0, "3.1 % slower (90 %: at least 0.5), 10 % less energy (at most 14)"),
            (-0.5, 14.0, "(90 %: at most 0.5 % faster), 10 % less energy (at most 14)"),
        ],
    )
    def test_an_end_that_is_not_known_is_said(
        self, slowest: float, saved: float, said: str
    ) -> None:
        caps = self.capped()
        assert caps.best is not None
        assert caps.best.run is not None
        run = replace(
            caps.best.run,
            slowdown_range=(slowest, math.inf),
            saving_range=(-math.inf, saved),
        )
        best = replace(caps.best, run=run, flags=(OPEN_INTERVAL,))
        text = cap_verdict(replace(caps, best=best), advice("energy"))
        assert said in text
        assert text.endswith(f"; {OPEN_INTERVAL}.")

    @pytest.mark.parametrize(
        ("saved", "said"),
        [
            ((-0.04, 19.2), "10 % less energy (up to 19 % less energy)"),
            ((-19.2, 0.04), "10 % less energy (up to 19 % more energy)"),
            ((-0.06, 19.2), "10 % less energy (0.1 % more energy to 19 % less energy)"),
        ],
    )
    def test_an_end_that_is_nothing_is_not_told_as_a_side(
        self, saved: tuple[float, float], said: str
    ) -> None:
        """Expected: by hand; what is below 0.05 % is 0.0 in the sentence's digits."""
        caps = self.capped()
        assert caps.best is not None
        assert caps.best.run is not None
        best = replace(caps.best, run=replace(caps.best.run, saving_range=saved))
        assert said in cap_verdict(replace(caps, best=best), advice("energy"))

    def test_a_cap_that_changes_nothing(self) -> None:
        said = cap_verdict(self.capped(binds=False), advice("energy"))
        assert said == "Leave the power cap at 400 W: nothing is predicted to need less energy."
        said = cap_verdict(self.capped(default_w=None, binds=False), advice("energy"))
        assert said.startswith("Leave the power cap as it is: ")
        said = cap_verdict(self.capped(helps=False), advice("energy"))
        assert said == "Leave the power cap as it is: nothing is predicted to need less energy."

    def test_no_cap_to_advise(self) -> None:
        limited = replace(self.capped(), best=None, limits=Limits(max_slowdown_percent=2))
        assert cap_verdict(limited, advice("energy")) == (
            "No power cap of these keeps a slowdown of at most 2 %."
        )
        too_low = replace(limited, points=(CapPoint(90.0, None, 1, ()),))
        assert cap_verdict(too_low, advice("energy")) == (
            "No power cap of these can be judged: all are below the clocks tried."
        )
        refused = replace(
            limited, points=(replace(too_low.points[0], too_low=0, can_be_set=False),)
        )
        assert cap_verdict(refused, advice("energy")) == (
            "No power cap of these can be set on this GPU."
        )
