"""The verdict: sentences for advice whose numbers are set by hand."""

from dataclasses import replace

import pytest
from synthetic import frugal

from mlscale import HardwareConfig, train
from mlscale.advice.advise import Advice, OperatingPoint, Recommendation, advise
from mlscale.advice.objectives import Limits
from mlscale.advice.verdict import verdict

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
        lowest_mhz=500.0,
        warnings=(),
    )


class TestSentences:
    """Expected: the numbers of `recommendation`, in words by hand."""

    def test_of_energy_with_both_intervals(self) -> None:
        assert verdict(advice("energy")) == (
            "Set the engine clock to 600 MHz: 20.6 % less energy (90 % interval 12.0 to 28.0 %) "
            "and 11.1 % slower (90 % interval 1.5 % faster to 14.0 % slower) than at the base, "
            "cu=8,engine=800,memory=700."
        )

    def test_of_the_lowest_clock_with_its_limit(self) -> None:
        assert verdict(advice("clock", limits=Limits(max_slowdown_percent=12))) == (
            "Set the engine clock to 600 MHz: 11.1 % slower (90 % interval 1.5 % faster to 14.0 % "
            "slower) than at the base, cu=8,engine=800,memory=700; no lower engine clock keeps a "
            "slowdown of at most 12 %."
        )

    @pytest.mark.parametrize("objective", ["clock", "energy"])
    def test_the_lowest_that_was_tried_is_told(self, objective: str) -> None:
        limits = Limits(max_slowdown_percent=12)
        text = verdict(replace(advice(objective, limits=limits), lowest_mhz=600.0))
        assert text.endswith(
            "than at the base, cu=8,engine=800,memory=700; no lower engine clock was tried."
        )

    def test_every_axis_that_changes_is_named(self) -> None:
        text = verdict(advice("time", HardwareConfig(16, 1000.0, 900.0)))
        assert text.startswith(
            "Set 16 CUs and the engine clock to 1000 MHz and the memory clock to 900 MHz: "
        )

    @pytest.mark.parametrize(
        ("objective", "reason"),
        [
            ("energy", "nothing is predicted to need less energy"),
            ("edp", "nothing is predicted to need less energy x time"),
            ("time", "nothing is faster"),
            ("clock", "no lower engine clock is predicted to do"),
        ],
    )
    def test_the_base_is_best(self, objective: str, reason: str) -> None:
        text = verdict(advice(objective, BASE))
        assert text == f"Stay at the base, cu=8,engine=800,memory=700: {reason}."

    def test_without_intervals_none_is_named(self) -> None:
        plain = replace(recommendation(), saving_range=None, slowdown_range=None)
        assert verdict(replace(advice("energy"), whole_run=plain)) == (
            "Set the engine clock to 600 MHz: 20.6 % less energy and 11.1 % slower than at the "
            "base, cu=8,engine=800,memory=700."
        )


class TestSeveralKernels:
    def test_it_is_of_all_of_them(self) -> None:
        # By hand (synthetic.frugal): together 16 CUs, 400 MHz, 1000 MHz need 4.8 ms x 34.48 W,
        # the base 6 ms x 65.84 W, which is 58.1 % more than the former's share of it.
        model = train(frugal.measurements(), BASE, "nearest")
        profiles = frugal.measurements(per_group=1).profiles(BASE)
        profiles = replace(profiles, time_ms=profiles.time_ms * 0 + [2.0, 4.0])
        text = verdict(advise(model, profiles))
        saving = 100 * (1 - 4.8 * 34.48 / (6 * 65.84))
        assert text.startswith("For the 2 kernels, each run once: Set 16 CUs and the engine clock")
        assert f"{saving:.1f} % less energy and 20.0 % faster" in text

    def test_none_for_all_is_said(self) -> None:
        two = replace(advice("time", limits=Limits(max_time_ms=1)), whole_run=None)
        assert verdict(two) == (
            "No single configuration serves every kernel, under a time of at most 1 ms; see each."
        )
