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
        return _server_lines(document)
    lines = [_answer(document)]
    if document["expected"]:
        lines.append(_expected(document))
    if document["run"]["is_bounded"]:
        kept = f", so {limit} is kept in any case" if (limit := _limit(document)) else ""
        lines.append(f"{_BOUNDS}{kept}.")
    return tuple(lines)


def places(setting: Row, base: Row) -> str:
    """What is set, briefly: '1830 MHz'; 'as it is' where nothing is."""
    words = [_named(axis, base)[1].format(value) for axis, value in setting.items()]
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
        if not any(cap["time_ms"] for cap in document["caps"]):
            return f"No power cap of these can be judged: {document['caps'][0]['flags'][-1]}."
        sure = "surely " if document["expected"] else ""
        said = _limit(document) or "the limits"
        return f"No power cap of these can be set and {sure}keeps {said}."
    if not answer["set"]:
        if "power_cap_w" in base:
            return f"Leave the power cap as it is: {_nothing(document)}."
        return f"Stay at {_base(base)}: {_nothing(document)}."
    named = []
    for axis, value in answer["set"].items():
        now = "" if base[axis] is None else f" (now {base[axis]:g})"
        named.append(_named(axis, base)[0].format(value) + now)
    said = effects(answer, document["objective"], document["run"]["is_bounded"])
    return f"Set {' and '.join(named)}: {said}."


def _server_lines(document: Row) -> tuple[str, ...]:
    """What a server's clock does to its limits, which clock surely keeps them, and the load."""
    server, answer = document["server"], document["answer"]
    clocks, limits, surely = server["clocks"], server["limits"], server["surely_mhz"]
    top, lowest = clocks[0], clocks[-1]
    at = next((c for c in clocks if answer and c["engine_mhz"] == answer["at"]["engine_mhz"]), top)
    ends = {limit["latency"]: at["latency_ms"][limit["latency"]] for limit in limits}
    kept = ", ".join(
        f"{limit['latency']} {ends[limit['latency']][0]:.3g} ms (limit {limit['limit_ms']:.4g})"
        for limit in limits
    )
    saved = 100 * (at["tokens_per_joule"] / top["tokens_per_joule"] - 1)
    tokens = f"{at['tokens_per_joule']:.3g} output tokens/J ({saved:+.0f} %)"
    where = f"Set the engine clock to {at['engine_mhz']:g} MHz (now {top['engine_mhz']:g})"
    where = where if at is not top else f"Stay at {top['engine_mhz']:g} MHz"
    lines = [f"{where}: {kept}{'; ' * bool(kept)}{tokens}."]
    if server["withheld"]:
        lines = [f"No clock is advised, the server seems near its capacity: {server['withheld']}."]
    elif answer is None:
        lines = [f"No clock between those run keeps the limits; at {top['engine_mhz']:g}: {kept}."]
    elif limits and surely != at["engine_mhz"]:
        within = ", ".join(
            f"{name} {v[1]:.3g} to {v[2]:.3g} ms" for name, v in ends.items() if v[1]
        )
        sure = "no clock" if surely is None else f"{surely:g} MHz"
        within = f"90 % intervals there: {within}. " * bool(within)
        lines.append(f"{within}By their upper ends {sure} keeps all limits.")
    load = f"{server['rate_per_s'] or server['request_per_s']:.3g} requests/s"
    if server["load"] == "closed" and server["clients"]:
        load = f"{server['clients']:g} clients"
    load += f", the same {server['requests']:g} requests at each clock"
    if (share := lowest["capacity_share"]) is not None:
        load += f"; {100 * share:.0f} % of the capacity at {lowest['engine_mhz']:g} MHz"
    return (*lines, f"{server['load'].capitalize()} load, {load}.")


def _base(base: Row) -> str:
    at = {axis: base[axis] for axis in ("cu_count", "engine_mhz", "memory_mhz")}
    return f"the base, {places(at, base)}"


def _nothing(document: Row) -> str:
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
    return f"{said}, and above {limit} {_how_often(document)}."


def _limit(document: Row) -> str:
    """The limits of time: '5 %'; '' without any."""
    return Limits(**document["limits"]).time_in_words()


def _how_often(document: Row) -> str:
    """How often the limit of time is passed there, if the interval is of normal errors."""
    value, _, high = document["expected"]["slowdown_percent"]
    most = Limits(**document["limits"]).longest_percent(document["run"]["time_ms"])
    deviation = ((high or value) - value) / NormalDist().inv_cdf((1 + document["coverage"]) / 2)
    if deviation <= 0:
        return "never"
    share = 1 - NormalDist().cdf((most - value) / deviation)
    return "about every second time" if share > 0.4 else f"about one time in {1 / share:.0f}"
