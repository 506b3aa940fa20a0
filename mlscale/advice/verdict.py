"""The answer in a few sentences: what to set, and what it costs."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlscale.advice.answer import PlainAnswer
from mlscale.advice.objectives import objective_name
from mlscale.advice.recommendation import Choice
from mlscale.model.predictions import NORMAL_SCORE
from mlscale.parameters import parameter
from mlscale.text import number, percent_in_words, rounded

if TYPE_CHECKING:
    from mlscale.advice.server import Estimate, ServerAdvice, ServerClock

Words = tuple[str, str]  # for a negative and a positive change

_TIME: Words = ("faster", "slower")
_AXES = {
    "cu_count": ("the CU count to {:g}", "{:g} CUs"),
    "engine_mhz": ("the engine clock to {:g} MHz", "{:g} MHz"),
    "memory_mhz": ("the memory clock to {:g} MHz", "memory {:g} MHz"),
    "power_cap_w": ("the power cap to {:g} W", "{:g} W"),
}
_BOUNDS = "One clock does not show how time follows it: these are bounds"


def answer_lines(answer: PlainAnswer) -> tuple[str, ...]:
    """The answer, and what else there is to choose or to know, a sentence or two each.

    Example:
        >>> answer_lines(answer)  # doctest: +SKIP
        ('Set the engine clock to 1905 MHz (now 1980): 2.4 % slower.',
         '1830 MHz would be 4.9 % slower, with a 50 % chance of exceeding 5 %.')
    """
    if answer.server:
        lines = _server_lines(answer, answer.server)
    else:
        lines = [_best(answer)]
        if answer.expected:
            lines.append(_expected(answer, answer.expected))
        if answer.is_bounded:
            limit = answer.limits.time_in_words()
            kept = f", so {limit} is kept in any case" if limit else ""
            lines.append(f"{_BOUNDS}{kept}.")
    return (*lines, *_gpu_lines(answer))


def _gpu_lines(answer: PlainAnswer) -> list[str]:
    """That power and energy are of several GPUs side by side."""
    count = answer.workload.gpu_count
    said = f"On {count} GPUs side by side: power and energy are of all of them"
    cap = ", a power cap is of each" if answer.caps or answer.lever == "cap" else ""
    return [f"{said}{cap}."] if count > 1 else []


def places(setting: Mapping[str, float | None], cu_axis: str = "") -> str:
    """What is set, briefly: '1830 MHz', '700 W, unlocked'; 'as it is' where nothing is.

    cu_axis: what stands for compute units, if anything else does.
    """
    words = [
        "unlocked" if value is None else _named(axis, cu_axis)[1].format(value)
        for axis, value in setting.items()
    ]
    return ", ".join(words) or "as it is"


def _named(axis: str, cu_axis: str) -> tuple[str, str]:
    """How the value of an axis is set, and how it is told, in a format of Python's."""
    if cu_axis and axis == "cu_count":
        return f"{cu_axis} to {{:g}}", f"{cu_axis} {{:g}}"
    return _AXES[axis]


def effects(choice: Choice, objective: str, is_bounded: bool = False) -> str:
    """What becomes of time, and of energy or power where that is known: '2.4 % slower, …'."""
    time, ends = choice.slowdown_percent, choice.slowdown_range
    words = [side(time, _TIME)]
    if is_bounded and ends is not None:
        words = [f"at most {side(max(time, *ends, key=abs), _TIME)}"]
    name = "power" if objective == "power" else "energy"
    saved = choice.power_percent if objective == "power" else choice.energy_percent
    if saved is not None and objective != "time":
        words.append(side(saved, (f"less {name}", f"more {name}")))
    return ", ".join(words)


def side(percent: float, words: Words) -> str:
    """'3.9 % slower'."""
    return f"{percent_in_words(percent)} % {words[percent >= 0]}"


def _best(answer: PlainAnswer) -> str:
    best, base = answer.best, answer.base.config
    if best is None:
        return _no_cap(answer)
    if not best.set and answer.lever == "cap":
        return f"Leave the power cap as it is: {nothing_better(answer)}."
    if not best.set:
        return (
            f"Stay at the base, {places(base.as_dict(), base.cu_axis)}: {nothing_better(answer)}."
        )
    now = {**base.as_dict(), "power_cap_w": answer.now_w}
    named = []
    for axis, value in best.set.items():
        if value is not None:
            before = "" if now[axis] is None else f" (now {now[axis]:g})"
            named.append(_named(axis, base.cu_axis)[0].format(value) + before)
    said = effects(best, answer.objective, answer.is_bounded)
    if None not in best.set.values():
        return f"Set {' and '.join(named)}: {said}."
    is_kept = best.set["power_cap_w"] == answer.now_w
    cap = f"leave the power cap at {answer.now_w:g} W" if is_kept else f"set {' and '.join(named)}"
    return f"Unlock the engine clock (now {base.engine_mhz:g} MHz) and {cap}: {said}."


def _no_cap(answer: PlainAnswer) -> str:
    """Why no power cap is advised."""
    points = answer.caps.points if answer.caps else ()
    judged = [point for point in points if point.run]
    if not any(point.can_be_set for point in judged):
        why = judged[0].flags[0] if judged else points[0].flags[-1]
        return f"None of these power caps can be {'set' if judged else 'judged'}: {why}."
    keeps = "is certain to keep" if answer.expected else "keeps"
    said = answer.limits.time_in_words() or "the limits"
    return f"None of the power caps that can be set {keeps} {said}."


def nothing_better(answer: PlainAnswer) -> str:
    """Why nothing is better than the base."""
    objective, limits = answer.objective, answer.limits.words()
    verb = "is certain to keep" if answer.expected else "keeps"
    keeps = f" {verb} {' and '.join(limits)}" if limits else ""
    if objective == "clock":
        return f"no lower clock{keeps}"
    saved = "power" if objective == "power" else "energy"
    better = "is faster" if objective == "time" else f"needs less {saved}"
    if objective.startswith("ed"):
        better = f"has a lower {objective_name(objective)}"
    return f"no setting that {better}{keeps}" if limits else f"no setting {better}"


def _expected(answer: PlainAnswer, expected: Choice) -> str:
    """What is expected to just keep the limit of time, and how likely it fails."""
    limit, often = answer.limits.time_in_words(), _how_often(answer, expected)
    where = places(expected.set, answer.base.config.cu_axis)
    said = f"{where} would be {effects(expected, answer.objective)}"
    return f"{said}, {often} {limit}." if often else f"{said}, and may exceed {limit}."


def _how_often(answer: PlainAnswer, expected: Choice) -> str:
    """How likely it is to exceed the limit of time, if the interval is of normal errors.

    '' where its upper end is not known.
    """
    value, (_, high) = expected.slowdown_percent, expected.slowdown_range or (math.nan, math.nan)
    if not math.isfinite(high):
        return ""
    deviation = (high - value) / NORMAL_SCORE
    if deviation <= 0:
        return "and never exceeds"
    share = math.erfc((answer.longest_percent - value) / deviation / math.sqrt(2)) / 2
    chance = round(100 * share, -1 if share > 0.1 else 0)
    return f"with a {chance:.0f} % chance of exceeding"


def _server_lines(answer: PlainAnswer, server: "ServerAdvice") -> list[str]:
    """What the answer does to a server's limits, what is expected to just keep them, the load."""
    highest, lowest = server.clocks[0].setting, server.clocks[-1].setting
    lever, unit = ("power cap", "W") if server.is_of_caps else ("engine clock", "MHz")
    now, best, just = server.now, answer.best, answer.expected
    if server.withheld:
        lines = _withheld(server.withheld, highest, lowest)
    elif best is None:
        told = f"at {now.setting:g} {unit}: {_told_of(server, now)}"
        what = lever.split()[1]
        lines = [f"No {what} from {highest:g} to {lowest:g} {unit} keeps the limits; {told}."]
    else:
        at = server.chosen(best)
        where = f"Set the {lever} to {at.setting:g} {unit} (now {now.setting:g})"
        where = where if best.set else f"Stay at {now.setting:g} {unit}"
        lines = [f"{where}: {_told_of(server, at)}."]
    if just:
        told = _told_of(server, server.chosen(just), has_ends=False)
        lines.append(
            f"{server.chosen(just).setting:g} {unit} is expected to just keep them: {told}."
        )
    load = load_in_words(server)
    lines.append(f"{load[0].upper()}{load[1:]}; latencies in ms.")
    if not server.limits:
        mend = f" To limit one: {parameter('slo', limit)}." if (limit := server.a_limit) else ""
        lines.append(f"No latency is limited.{mend}")
    return lines


def _withheld(why: str, highest_mhz: float, lowest_mhz: float) -> list[str]:
    """Why no clock is advised, and what to do."""
    if " clients limit the rate " in why:
        return [f"No clock is advised: {why}."]
    if why.startswith("overloaded"):
        mend = "Lower the benchmark's rate, or limit its clients: --max-concurrency."
        return [f"No clock is advised: the server is {why}.", mend]
    return [
        f"The server seems near its capacity; no clock is advised: {why}.",
        f"Lower the rate, or run at 0.75 to 0.8 of {highest_mhz:g} MHz, not {lowest_mhz:g}.",
    ]


def load_in_words(server: "ServerAdvice") -> str:
    """What load the server was under: 'open load: 6.3 requests/s, the same 800 requests each'."""
    result, lowest = server.base.result, server.clocks[-1]
    kind, load = "open", f"{server.rate_per_s or result.request_per_s:.3g} requests/s"
    if not server.is_open:
        kind, load = "closed", f"{result.clients:g} clients" if result.clients else load
    load += f", the same {result.completed:g} requests each"
    if lowest.capacity_share is not None:
        share = f"{100 * lowest.capacity_share:.0f} %"
        load += f"; {share} of the capacity at {lowest.engine_mhz:g} MHz"
    return f"{kind} load: {load}"


def _told_of(server: "ServerAdvice", clock: "ServerClock", has_ends: bool = True) -> str:
    """The limited latencies at a clock with their 90 % intervals, and tokens per joule.

    Of a closed load tokens per second too, which a rate of requests sets.
    """

    def told(one: "Estimate", unit: str, *beside: str) -> str:
        ends = f"{number(one.low, 3)} to {number(one.high, 3)}" if one.ends and has_ends else ""
        within = ", ".join(filter(None, (ends, *beside)))
        return f"{number(one.value, 3)} {unit}" + f" ({within})" * bool(within)

    said = [
        f"{slo.name} {told(clock.latency_ms[slo.name], 'ms', f'limit {rounded(limit_ms)}')}"
        for slo, limit_ms in server.limits
    ]
    whole = [] if server.is_open else [told(clock.output_per_s, "tokens/s")]
    tokens, now = clock.tokens_per_joule, server.now.tokens_per_joule.value
    more = "" if tokens.value == now else f"{100 * (tokens.value / now - 1):+.0f} %"
    whole.append(told(tokens, "tokens/J", more))
    return "; ".join(filter(None, (", ".join(said), ", ".join(whole))))
