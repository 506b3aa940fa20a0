"""The verdict: sentences for advice whose numbers are set by hand."""

import math
from dataclasses import replace

import pytest

from mlscale import HardwareConfig
from mlscale.advice.caps import OPEN_INTERVAL, CapAdvice, CapPoint
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Recommendation, Setting, Workload
from mlscale.advice.verdict import cap_verdict, verdict

BASE = HardwareConfig(8, 800.0, 700.0)
LOWER = HardwareConfig(8, 600.0, 700.0)
AT_BASE = Setting(BASE, 1.8, 70.0, 126.0, 0.0, 0.0)
SET = "Set the engine clock to 600 MHz (of 800): "
EFFECTS = "11 % slower (90 %: 1.5 % faster to 14 % slower), 21 % less energy (12 to 28)"
ONE_LAUNCH = Workload(1, launches=None, counters_cover_percent=100.0)


def advice(
    objective: str = "energy",
    best: HardwareConfig = LOWER,
    limits: Limits | None = None,
    workload: Workload = ONE_LAUNCH,
    base: Setting = AT_BASE,
    tried_mhz: tuple[float, ...] = (500.0, 550.0, 600.0, 800.0),
    is_bounded: bool = False,
    **numbers: object,
) -> Advice:
    """Advice for one run, by default of 11.1 % more time and 20.6 % less energy."""
    at_best = Setting(best, 2.0, 50.0, 100.0, 11.1, 20.6, (-1.5, 14.0), (12.0, 28.0))
    at_best = replace(at_best, **numbers)  # type: ignore[arg-type]
    run = Recommendation(None, at_best, base, ())
    limits = limits or Limits()
    return Advice(
        *("made-gpu", objective, limits, None, workload, run),
        tried_mhz=tried_mhz,
        is_bounded=is_bounded,
    )


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (advice(), f"{SET}{EFFECTS}."),
        (
            advice("clock", limits=Limits(max_slowdown_percent=12)),
            (
                f"{SET}11 % slower (90 %: 1.5 % faster to 14 % slower); "
                "of the clocks tried no lower one keeps a slowdown of at most 12 % (the next "
                "is 550 MHz)."
            ),
        ),
        (
            advice(tried_mhz=(600.0, 800.0), limits=Limits(max_slowdown_percent=12)),
            (f"{SET}{EFFECTS}; no lower engine clock was tried."),
        ),
        (
            advice("time", HardwareConfig(16, 1000.0, 900.0), slowdown_range=None),
            (
                "Set 16 CUs (up from 8) and the engine clock to 1000 MHz (up from 800) and the "
                "memory clock to 900 MHz (up from 700): 11 % slower."
            ),
        ),
        (
            advice(slowdown_range=None, saving_range=None),
            f"{SET}11 % slower, 21 % less energy.",
        ),
        (
            advice(
                slowdown_percent=3.84,
                slowdown_range=(1.94, 9.96),
                saving_percent=-0.04,
                saving_range=(-9.94, -0.04),
            ),
            (f"{SET}3.8 % slower (90 %: 1.9 to 10), 0.0 % more energy (0.0 to 9.9)."),
        ),
        (
            advice(
                slowdown_range=(0.0, 11.1), is_bounded=True, limits=Limits(max_slowdown_percent=12)
            ),
            (
                f"{SET}at most 11 % slower, 12 to 28 % less energy "
                "(power: 90 %). One engine clock alone does not tell how time follows it: it is "
                "between unchanged and in proportion, so that a slowdown of at most 12 % is kept "
                "in any case. A second run at another clock tells."
            ),
        ),
    ],
)
def test_what_to_set(told: Advice, sentence: str) -> None:
    assert verdict(told) == sentence


@pytest.mark.parametrize(
    ("objective", "limits", "reason"),
    [
        ("energy", Limits(), "nothing is predicted to need less energy"),
        ("edp", Limits(), "nothing is predicted to need less energy x time"),
        ("time", Limits(), "nothing is faster"),
        (
            "clock",
            Limits(max_slowdown_percent=5),
            (
                "of the clocks tried no lower one keeps a slowdown of at most 5 % (the next is 600 "
                "MHz)"
            ),
        ),
        # A limit of time may allow a clock that was not tried.
        (
            "energy",
            Limits(max_time_ms=1.9),
            (
                "nothing is predicted to need less energy under a time of at most 1.9 ms (the next "
                "lower engine clock tried is 600 MHz)"
            ),
        ),
        (
            "energy",
            Limits(max_power_w=300),
            "nothing is predicted to need less energy under a power of at most 300 W",
        ),
        ("time", Limits(max_time_ms=2), "nothing is faster under a time of at most 2 ms"),
    ],
)
def test_the_base_is_best(objective: str, limits: Limits, reason: str) -> None:
    text = verdict(advice(objective, BASE, limits))
    assert text == f"Stay at the base, cu=8,engine=800,memory=700: {reason}."


class TestOfTheRun:
    @pytest.mark.parametrize(
        ("time_ms", "launches", "said"),
        [
            (66.123, 1203.0, "the run of 66.1 ms (1203 launches of 1 kernel)"),
            (1234.0, 1234567.0, "the run of 1.23 s (1 234 567 launches of 1 kernel)"),
            (12345678.0, 2.0, "the run of 12 346 s (2 launches of 1 kernel)"),
        ],
    )
    def test_its_time_and_launches(self, time_ms: float, launches: float, said: str) -> None:
        workload = replace(ONE_LAUNCH, launches=launches)
        told = advice(workload=workload, base=replace(AT_BASE, time_ms=time_ms))
        assert verdict(told).endswith(f"{EFFECTS}, for {said}.")

    def test_of_several_gpus_it_is_gpu_time(self) -> None:
        """Four GPUs side by side do not take four times as long."""
        runs = Workload(4, None, counters_cover_percent=100.0, is_sampled=True)
        said = verdict(advice(workload=runs))
        assert said.endswith("less energy (12 to 28), for 1.8 ms of GPU time (4 runs).")

    @pytest.mark.parametrize(("percent", "said"), [(93.7, "93"), (99.93, "99"), (50.0, "50")])
    def test_what_counters_cover_is_rounded_down(self, percent: float, said: str) -> None:
        workload = Workload(2, 20.0, counters_cover_percent=percent)
        for best in (LOWER, BASE):
            text = verdict(advice(best=best, workload=workload))
            covered = f"1.8 ms (20 launches of 2 kernels); counters cover {said} % of it"
            assert covered in text


RUN = Setting(LOWER, 2.0, 290.0, 580.0, 3.14, 10.04, (-0.5, 5.0), (4.0, 14.2))


def capped(run: Setting = RUN, flags: tuple[str, ...] = (), **known: object) -> CapAdvice:
    """A best cap of 300 W, of a GPU of 400 W."""
    best = CapPoint(300.0, run, 0, flags)
    caps = CapAdvice(
        device="made-gpu",
        objective="energy",
        limits=Limits(),
        at_base=replace(AT_BASE, time_ms=1.94),
        points=(best,),
        best=best,
        binds=True,
        helps=True,
        default_w=400.0,
        warnings=(),
    )
    return replace(caps, **known)  # type: ignore[arg-type]


LIMITED = Limits(max_slowdown_percent=2)
SLOWER = "3.1 % slower (90 %: 0.5 % faster to 5.0 % slower)"
NOTHING = "nothing is predicted to need less energy."


@pytest.mark.parametrize(
    ("caps", "sentence"),
    [
        (capped(), f"Set the power cap to 300 W (of 400): {SLOWER}, 10 % less energy (4.0 to 14)."),
        (
            capped(default_w=None),
            f"Set the power cap to 300 W: {SLOWER}, 10 % less energy (4.0 to 14).",
        ),
        (capped(binds=False, helps=False), f"Leave the power cap at 400 W: {NOTHING}"),
        (capped(helps=False), f"Leave the power cap as it is: {NOTHING}"),
        (
            capped(best=None, limits=LIMITED),
            "No power cap of these keeps a slowdown of at most 2 %.",
        ),
        (
            capped(best=None, points=(CapPoint(90.0, None, 1, ()),)),
            "No power cap of these can be judged: all are below the clocks tried.",
        ),
        (
            capped(best=None, points=(CapPoint(90.0, None, 0, (), can_be_set=False),)),
            "No power cap of these can be set on this GPU.",
        ),
    ],
)
def test_of_a_cap(caps: CapAdvice, sentence: str) -> None:
    assert cap_verdict(caps, advice()) == sentence


@pytest.mark.parametrize(
    ("slowest", "saved", "said"),
    [
        (0.5, 14.0, "3.1 % slower (90 %: at least 0.5), 10 % less energy (at most 14)"),
        (-0.5, 14.0, "(90 %: at most 0.5 % faster), 10 % less energy (at most 14)"),
    ],
)
def test_an_end_that_is_not_known_is_said(slowest: float, saved: float, said: str) -> None:
    ends = {"slowdown_range": (slowest, math.inf), "saving_range": (-math.inf, saved)}
    text = cap_verdict(capped(replace(RUN, **ends), flags=(OPEN_INTERVAL,)), advice())
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
    saved: tuple[float, float], said: str
) -> None:
    """What is below 0.05 % is 0.0 in the sentence's digits."""
    assert said in cap_verdict(capped(replace(RUN, saving_range=saved)), advice())
