"""The answer in one or two sentences, from its document: what to set, and what it costs."""

from statistics import NormalDist
from typing import Any

from mlscale.advice.objectives import Limits
from mlscale.text import percent_in_words

Row = dict[str, Any]
Words = tuple[str, str]  # of a negative and of a positive change

_TIME: Words = ("faster", "slower")
_AXES = {
    "cu_count": ("the CU count to {:g}", "{:g} CUs"),
    "engine_mhz": ("the engine clock to {:g} MHz", "{:g} MHz"),
    "memory_mhz": ("the memory clock to {:g} MHz", "memory {:g} MHz"),
    "power_cap_w": ("the power cap to {:g} W", "{:g} W"),
}
_BOUNDS = "One clock does not show how time follows it: these are bounds"


def answer_lines(document: Row) -> tuple[str, ...]:
    """The answer, and what else there is to choose or to know, a sentence or two each.

    Example:
        >>> answer_lines(document)  # doctest: +SKIP
        ('Set the engine clock to 1905 MHz (now 1980): 2.4 % slower.',
         '1830 MHz would be 4.9 % slower, and above 5 % about every second time.')
    """
    if document.get("server"):
        from mlscale.advice.server_verdict import server_lines

        return (*server_lines(document), *_gpu_lines(document))
    lines = [_answer(document)]
    if document["expected"]:
        lines.append(_expected(document))
    if document["run"]["is_bounded"]:
        kept = f", so {limit} is kept in any case" if (limit := _limit(document)) else ""
        lines.append(f"{_BOUNDS}{kept}.")
    return (*lines, *_gpu_lines(document))


def _gpu_lines(document: Row) -> list[str]:
    """That power and energy are of several GPUs side by side."""
    count = document["run"]["gpu_count"]
    said = f"On {count} GPUs side by side: power and energy are of all of them"
    cap = ", a power cap is of each" if document["caps"] else ""
    return [f"{said}{cap}."] if count > 1 else []


def places(setting: Row, base: Row) -> str:
    """What is set, briefly: '1830 MHz', '700 W, unlocked'; 'as it is' where nothing is."""
    words = [
        "unlocked" if value is None else _named(axis, base)[1].format(value)
        for axis, value in setting.items()
    ]
    return ", ".join(words) or "as it is"


def _named(axis: str, base: Row) -> tuple[str, str]:
    """How the value of an axis is set, and how it is told, in a format of Python's."""
    cu_axis = base.get("cu_axis")
    return (
        (f"{cu_axis} to {{:g}}", f"{cu_axis} {{:g}}")
        if cu_axis and axis == "cu_count"
        else _AXES[axis]
    )


def effects(at: Row, objective: str, is_bounded: bool = False) -> str:
    """What becomes of time, and of energy or power where that is known: '2.4 % slower, …'."""
    time, energy, power = at["slowdown_percent"], at["energy_percent"], at["power_percent"]
    if is_bounded and time[2] is not None:
        words = [f"at most {side(max(time, key=abs), _TIME)}"]
    else:
        words = [side(time[0], _TIME)]
    saved = ("power", power) if objective == "power" else ("energy", energy)
    if saved[1] and objective != "time":
        words.append(side(saved[1][0], (f"less {saved[0]}", f"more {saved[0]}")))
    return ", ".join(words)


def side(percent: float, words: Words) -> str:
    """'3.9 % slower'."""
    return f"{percent_in_words(percent)} % {words[percent >= 0]}"


def _answer(document: Row) -> str:
    answer, base = document["answer"], document["base"]
    if answer is None:
        judged = [cap for cap in document["caps"] if cap["time_ms"]]
        if not any(cap["can_be_set"] for cap in judged):
            why = (judged or document["caps"])[0]["flags"][0 if judged else -1]
            return f"None of these power caps can be {'set' if judged else 'judged'}: {why}."
        sure = "surely " if document["expected"] else ""
        said = _limit(document) or "the limits"
        return f"None of these power caps can be set and {sure}keeps {said}."
    if not answer["set"]:
        if "power_cap_w" in base:
            return f"Leave the power cap as it is: {nothing_better(document)}."
        return f"Stay at {_base(base)}: {nothing_better(document)}."
    named = []
    for axis, value in answer["set"].items():
        if value is not None:
            now = "" if base[axis] is None else f" (now {base[axis]:g})"
            named.append(_named(axis, base)[0].format(value) + now)
    said = effects(answer, document["objective"], document["run"]["is_bounded"])
    if None in answer["set"].values():
        unlock, cap_w = (
            f"Unlock the engine clock (now {base['engine_mhz']:g} MHz)",
            base["power_cap_w"],
        )
        is_kept = answer["set"]["power_cap_w"] == cap_w
        cap = f"leave the power cap at {cap_w:g} W" if is_kept else f"set {' and '.join(named)}"
        return f"{unlock} and {cap}: {said}."
    return f"Set {' and '.join(named)}: {said}."


def _base(base: Row) -> str:
    at = {axis: base[axis] for axis in ("cu_count", "engine_mhz", "memory_mhz")}
    return f"the base, {places(at, base)}"


def nothing_better(document: Row) -> str:
    """Why nothing is better than the base."""
    objective, limits = document["objective"], Limits(**document["limits"]).words()
    sure = "surely " if document["expected"] else ""
    keeps = f" {sure}keeps {' and '.join(limits)}" if limits else ""
    if objective == "clock":
        return f"no lower clock{keeps}"
    saved = "power" if objective == "power" else "energy"
    better = "is faster" if objective == "time" else f"needs less {saved}"
    return f"nothing that {better}{keeps}" if limits else f"nothing {better}"


def _expected(document: Row) -> str:
    """What is expected to just keep the limit of time, and how often it fails."""
    at, limit = document["expected"], _limit(document)
    said = f"{places(at['set'], document['base'])} would be {effects(at, document['objective'])}"
    often = _how_often(document)
    return f"{said}, and above {limit} {often}." if often else f"{said}, and may be above {limit}."


def _limit(document: Row) -> str:
    """The limits of time: '5 %'; '' without any."""
    return Limits(**document["limits"]).time_in_words()


def _how_often(document: Row) -> str:
    """How often the limit of time is passed there, if the interval is of normal errors.

    '' where its upper end is not known.
    """
    value, _, high = document["expected"]["slowdown_percent"]
    most = Limits(**document["limits"]).longest_percent(document["run"]["time_ms"])
    if high is None:
        return ""
    deviation = (high - value) / NormalDist().inv_cdf((1 + document["coverage"]) / 2)
    if deviation <= 0:
        return "never"
    share = 1 - NormalDist().cdf((most - value) / deviation)
    return "about every second time" if share > 0.4 else f"about one time in {1 / share:.0f}"
