"""The verdict: the advice in one sentence, the way one engineer would tell it to another."""

import math
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from mlscale.advice.commands import levers_of
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Interval, Row, Setting
from mlscale.data.devices import known_device
from mlscale.data.grid import HardwareConfig
from mlscale.model.predictions import COVERAGE
from mlscale.text import counted, percent_in_words, rounded, time_in_words

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice, CapPoint

SAVED = {"energy": "energy", "edp": "energy x time", "ed2p": "energy x time^2", "power": "power"}
Words = tuple[str, str]  # of a negative and of a positive change

_COVERAGE = f"{100 * COVERAGE:g} %: "
_BOUNDS = (
    "One engine clock alone does not tell how time follows it: it is between unchanged and in "
    "proportion{}. A second run at another clock tells."
)
_PLACES = {
    "cu_count": "{:g} CUs",
    "engine_mhz": "{:g} MHz",
    "memory_mhz": "memory at {:g} MHz",
}
_AXES = {
    "cu_count": "{:g} CUs",
    "engine_mhz": "the engine clock to {:g} MHz",
    "memory_mhz": "the memory clock to {:g} MHz",
}


def run_document(advice: Advice) -> Row:
    """The advice for the whole run as JSON values, with its verdict."""
    base = advice.whole_run.base.config.as_dict()
    return {
        "device": advice.device,
        "base": base,
        "verdict": verdict(advice),
        **advice.document(),
    }


def verdict(advice: Advice) -> str:
    """Say what to set for the whole run, what it costs and what it saves, with the intervals.

    Example:
        >>> print(verdict(mlscale.advise(model, profiles)))  # doctest: +SKIP
        Set the engine clock to 1410 MHz (of 1980): 3.8 % slower (90 %: 1.9 to 6.0), 21 % less
        energy (14 to 27), for the run of 66.1 ms (1 203 launches of 14 kernels); counters cover
        94 % of it.

    A second line says what is expected to keep a limit of time, where that is another setting.
    """
    run = advice.whole_run
    best, base = run.best.config, run.base.config
    if best == base:
        if advice.objective == "clock":
            nothing = _no_lower(advice)
        else:
            nothing = _nothing_better(advice.objective, advice.limits, advice.is_bounded)
            if run.expected is not None:
                nothing = _nothing_sure(advice.objective, advice.limits)
            nothing += _next_tried(advice)
        text = f"Stay at the base, {base}: {nothing}{_workload(advice)}.{_bounds(advice, '')}"
        return text + _expected(advice)
    effects = _effects(run.best, advice.objective, advice.is_bounded)
    text = f"Set {_settings(best, base)}: {effects}{_workload(advice)}"
    is_lowest = best.engine_mhz == advice.tried_mhz[0] < base.engine_mhz
    if is_lowest or advice.objective == "clock":
        text += f"; {_no_lower(advice)}"
    limits = replace(advice.limits, max_power_w=None).words()
    kept = f", so that {' and '.join(limits)} is kept in any case" if limits else ""
    return f"{text}.{_bounds(advice, kept)}{_expected(advice)}"


def cap_verdict(caps: "CapAdvice", advice: Advice | None = None) -> str:
    """Say which power cap to set for the whole run, as `verdict` says which clocks.

    And the cap that is expected to just keep a limit of time, and where a locked clock is better.
    advice: for the same run; None of capped readings, of which no more is known.

    Example:
        >>> print(cap_verdict(caps, advice))  # doctest: +SKIP
        Set the power cap to 300 W (of 400): 2.6 % slower (90 %: 0.4 to 5.1), 9.1 % less energy
        (4.0 to 14), for the run of 66.1 ms (1 203 launches of 14 kernels).
    """
    best, workload = caps.best, "" if advice is None else _workload(advice)
    if best is None or best.run is None:
        if all(point.too_low for point in caps.points):
            return f"No power cap of these can be judged: all are below {caps.bottom}."
        if not any(point.can_be_set for point in caps.points):
            return "No power cap of these can be set on this GPU."
        surely = "" if caps.expected is None else "surely "
        limits = " and ".join(caps.limits.words())
        return f"No power cap of these {surely}keeps {limits}.{_expected_cap(caps)}"
    if not caps.helps:
        is_default = caps.default_w is not None and not caps.binds
        present = f"at {caps.default_w:.0f} W" if is_default else "as it is"
        nothing = _nothing_better(caps.objective, caps.limits)
        if caps.expected is not None and caps.objective in SAVED:
            nothing = _nothing_sure(caps.objective, caps.limits)
        return f"Leave the power cap {present}: {nothing}{workload}.{_expected_cap(caps)}"
    former = "" if caps.default_w is None else f" (of {caps.default_w:.0f})"
    effects = _effects(best.run, caps.objective)
    from mlscale.advice.caps import OPEN_INTERVAL

    open_end = f"; {OPEN_INTERVAL}" if OPEN_INTERVAL in best.flags else ""
    text = f"Set the power cap to {best.cap_w:g} W{former}: {effects}{workload}{open_end}."
    return f"{text}{_better_lock(caps, best)}{_expected_cap(caps)}"


def _better_lock(caps: "CapAdvice", best: "CapPoint") -> str:
    """That a locked clock is better than the best cap, and why; nothing where it is not.

    Where no clock is known, how steep the run is there.
    """
    if not best.steep:
        return ""
    if caps.lock_mhz is None:
        return f" There {best.steep}."
    device = known_device(caps.device)
    lever = levers_of(device).get("engine", "") if device else ""
    how = f" ({lever})" if lever.startswith("-") else ""
    clock = f"the engine clock at {caps.lock_mhz:g} MHz"
    return f" Better lock {clock} in its place{how}: there {best.steep}."


def _expected_cap(caps: "CapAdvice") -> str:
    """The second line: the cap whose predicted time keeps the limit, and how often it fails."""
    expected = caps.expected
    if expected is None or expected.run is None:
        return ""
    base_ms = caps.at_base.time_ms
    return _would_be(f"{expected.cap_w:g} W", expected.run, caps.saved, caps.limits, base_ms)


def _effects(at: Setting, objective: str, is_bounded: bool = False) -> str:
    """What becomes of time, and of the objective where it is something to save."""
    change = _bounded_change if is_bounded else _change
    effects = [change(at.slowdown_percent, at.slowdown_range, ("faster", "slower"), _COVERAGE)]
    if objective in SAVED:
        words = (f"more {SAVED[objective]}", f"less {SAVED[objective]}")
        effects.append(change(at.saving_percent, at.saving_range, words))
        if is_bounded:
            effects[-1] += f" ({'' if objective == 'power' else 'power: '}{100 * COVERAGE:g} %)"
    return ", ".join(effects)


def _expected(advice: Advice) -> str:
    """The second line: what is expected to just keep the limit of time, and how often it fails."""
    at, base = advice.whole_run.expected, advice.whole_run.base
    if at is None:
        return ""
    what = " and ".join(
        _PLACES[axis].format(value)
        for axis, value in at.config.as_dict().items()
        if value != base.config.as_dict()[axis]
    )
    return _would_be(what, at, advice.objective, advice.limits, base.time_ms)


def _would_be(what: str, at: Setting, objective: str, limits: Limits, base_ms: float) -> str:
    """What another setting is expected to do, and how often it passes the limit of time.

    Its interval passes the limit; errors are taken to be normal.
    """
    effects = _side(at.slowdown_percent, ("faster", "slower"))
    if saved := SAVED.get(objective):
        effects += f" and {_side(at.saving_percent, (f'more {saved}', f'less {saved}'))}"
    text, limit = f"\n{what} would be {effects}", limits.time_in_words()
    _, high = at.slowdown_range or (0.0, math.inf)
    if math.isinf(high):
        return f"{text}; how often it passes {limit} is not known."
    deviation = (high - at.slowdown_percent) / NormalDist().inv_cdf((1 + COVERAGE) / 2)
    share = NormalDist().cdf((at.slowdown_percent - limits.longest_percent(base_ms)) / deviation)
    often = "every second time" if share > 0.4 else f"one time in {1 / share:.0f}"
    return f"{text}, and passes {limit} about {often}."


def _bounds(advice: Advice, kept: str) -> str:
    """What is known of time, where that is bounds; kept: that a limit is kept even so."""
    return f" {_BOUNDS.format(kept)}" if advice.is_bounded else ""


def _workload(advice: Advice) -> str:
    """What the run is, and how much of it was profiled; nothing for one launch of one kernel."""
    run = advice.workload
    if run.is_one_launch:
        return ""
    if run.is_sampled and run.launches is None:
        time = time_in_words(advice.whole_run.base.time_ms)
        return f", for {time} of GPU time ({run.kernels} runs)"
    what = counted(run.kernels, "kernel")
    if run.launches is None:
        what += ", each run once"
    else:
        what = f"{rounded(run.launches)} launches of {what}"
    text = f", for the run of {time_in_words(advice.whole_run.base.time_ms)} ({what})"
    if run.counters_cover_percent < 100:
        text += f"; counters cover {math.floor(run.counters_cover_percent)} % of it"
    return text


def _nothing_sure(objective: str, limits: Limits) -> str:
    """That the base is best, though something else is expected to keep the limits."""
    better = "faster" if objective == "time" else f"that needs less {SAVED[objective]}"
    return f"nothing {better} surely keeps {' and '.join(limits.words())}"


def _nothing_better(objective: str, limits: Limits, is_bounded: bool = False) -> str:
    """That the base is best; is_bounded: judged by the longest time that each may take."""
    under = limits.under().removeprefix(", ")
    if objective == "time":
        return f"nothing is {'surely ' * is_bounded}faster {under}".rstrip()
    at = " at the longest time that it may take" if is_bounded and objective != "power" else ""
    return f"nothing is predicted to need less {SAVED[objective]}{at} {under}".rstrip()


def _no_lower(advice: Advice) -> str:
    """Why the engine clock goes no lower than at the best: none was tried, or none will do."""
    lower = _lower_mhz(advice)
    if not lower:
        return "no lower engine clock was tried"
    limits = " and ".join(advice.limits.words())
    keeps = "surely keeps" if advice.whole_run.expected else "keeps"
    return f"of the clocks tried no lower one {keeps} {limits} (the next is {lower[-1]:g} MHz)"


def _next_tried(advice: Advice) -> str:
    """The next lower clock that was tried, where a limit of time may allow one between."""
    limits, lower = advice.limits, _lower_mhz(advice)
    if advice.objective == "time" or not (limits.has_time and lower):
        return ""
    return f" (the next lower engine clock tried is {lower[-1]:g} MHz)"


def _lower_mhz(advice: Advice) -> list[float]:
    """The engine clocks tried below the best."""
    return [mhz for mhz in advice.tried_mhz if mhz < advice.whole_run.best.config.engine_mhz]


def _settings(best: HardwareConfig, base: HardwareConfig) -> str:
    """The settings that differ from the base, with what they are there."""
    former = base.as_dict()
    words = {**_AXES, "cu_count": "{1} to {0:g}" if best.cu_axis else _AXES["cu_count"]}
    return " and ".join(
        f"{words[axis].format(value, best.cu_axis)} "
        f"({'of' if value < former[axis] else 'up from'} {former[axis]:g})"
        for axis, value in best.as_dict().items()
        if value != former[axis]
    )


def _bounded_change(percent: float, ends: Interval, words: Words, coverage: str = "") -> str:
    """A change [%] by its ends alone, of which none is likelier: 'at most 4.5 % slower'."""
    if ends is None:
        return _change(percent, ends, words, coverage)
    low, high = ends
    if low * high < 0:
        return _both_sides(low, high, words)
    near, far = sorted(ends, key=abs)
    if percent_in_words(near) == percent_in_words(0):
        return f"at most {_side(far, words)}"
    return f"{percent_in_words(near)} to {_side(far, words)}"


def _change(percent: float, ends: Interval, words: Words, coverage: str = "") -> str:
    """A change [%] in words, with its interval: '3.9 % slower (90 %: 2.1 to 6.0)'."""
    text = _side(percent, words)
    if ends is None or ends[0] == ends[1]:  # as where it was measured
        return text
    low, high = ends
    if math.isinf(low) or math.isinf(high):
        known = low if math.isinf(high) else high
        bound = "at least" if math.isinf(high) == (known >= 0) else "at most"
        is_same_side = (known < 0) == (percent < 0)
        end = percent_in_words(known) if is_same_side else _side(known, words)
        return f"{text} ({coverage}{bound} {end})"
    near, far = sorted(ends, key=abs)
    if low * high >= 0:
        return f"{text} ({coverage}{percent_in_words(near)} to {percent_in_words(far)})"
    if percent_in_words(near) == percent_in_words(0):
        return f"{text} ({coverage}up to {_side(far, words)})"
    return f"{text} ({coverage}{_both_sides(low, high, words)})"


def _side(percent: float, words: Words) -> str:
    """'3.9 % slower'."""
    return f"{percent_in_words(percent)} % {words[percent >= 0]}"


def _both_sides(low: float, high: float, words: Words) -> str:
    """'1.5 % faster to 14 % slower'."""
    return f"{_side(low, words)} to {_side(high, words)}"
