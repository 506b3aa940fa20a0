"""The answer on an LLM server in a few sentences."""

from mlscale.advice.recommendation import Row
from mlscale.text import number, rounded


def server_lines(document: Row) -> tuple[str, ...]:
    """What the answer does to a server's limits, what is expected to just keep them, the load."""
    server = document["server"]
    clocks = {clock["engine_mhz"]: clock for clock in server["clocks"]}
    (highest, *_, lowest), base = clocks, document["base"]["engine_mhz"]
    now = clocks[base]
    best, just = (
        document[name] and document[name]["at"]["engine_mhz"] for name in ("answer", "expected")
    )
    if server["withheld"]:
        why = server["withheld"]
        lines = [f"The server seems near its capacity; no clock is advised: {why}."]
        lines.append(f"Lower the rate, or run at 0.75 to 0.8 of {highest:g} MHz, not {lowest:g}.")
        if " clients limit the rate " in why:
            lines = [f"No clock is advised: {why}."]
        if why.startswith("overloaded"):
            lines = [f"No clock is advised: the server is {why}."]
            lines.append("Lower the benchmark's rate, or limit its clients: --max-concurrency.")
    elif best is None:
        told = f"at {base:g} MHz: {_told_of(server, now, now)}"
        lines = [f"No clock from {highest:g} to {lowest:g} MHz keeps the limits; {told}."]
    else:
        where = f"Set the engine clock to {best:g} MHz (now {base:g})"
        where = f"Stay at {base:g} MHz" if best == base else where
        lines = [f"{where}: {_told_of(server, clocks[best], now)}."]
    if just:
        told = _told_of(server, clocks[just], now, has_ends=False)
        lines.append(f"{just:g} MHz is expected to just keep them: {told}.")
    load = f"{server['rate_per_s'] or server['request_per_s']:.3g} requests/s"
    if server["load"] == "closed" and server["clients"]:
        load = f"{server['clients']:g} clients"
    load += f", the same {server['requests']:g} requests each"
    if (share := clocks[lowest]["capacity_share"]) is not None:
        load += f"; {100 * share:.0f} % of the capacity at {lowest:g} MHz"
    lines.append(f"{server['load'].capitalize()} load: {load}; latencies in ms.")
    if not server["limits"]:
        lines.append("No latency is limited. To limit one: --slo ttft=500ms@p90.")
    return tuple(lines)


def _told_of(server: Row, clock: Row, now: Row, has_ends: bool = True) -> str:
    """The limited latencies at a clock with their 90 % intervals, and tokens per joule."""
    said = []
    for limit in server["limits"]:
        value, low, high = clock["latency_ms"][limit["latency"]]
        within = f"{number(low, 3)} to {number(high, 3)}, " if low and has_ends else ""
        most = rounded(limit["limit_ms"])
        said.append(f"{limit['latency']} {number(value, 3)} ms ({within}limit {most})")
    tokens, base = (one["tokens_per_joule"][0] for one in (clock, now))
    more = "" if tokens == base else f" ({100 * (tokens / base - 1):+.0f} %)"
    return "; ".join(filter(None, (", ".join(said), f"{number(tokens, 3)} tokens/J{more}")))
