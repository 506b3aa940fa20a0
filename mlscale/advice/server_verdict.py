"""The answer on an LLM server in a few sentences."""

from mlscale.advice.recommendation import Row


def server_lines(document: Row) -> tuple[str, ...]:
    """What the answer does to a server's limits, what is expected to just keep them, the load."""
    server, base = document["server"], document["base"]["engine_mhz"]
    clocks = {clock["engine_mhz"]: clock for clock in server["clocks"]}
    best, just = (
        document[name] and document[name]["at"]["engine_mhz"] for name in ("answer", "expected")
    )
    if server["withheld"]:
        lines = [f"No clock is advised, the server seems near its capacity: {server['withheld']}."]
    elif best is None:
        told = _told_of(server, server["clocks"][0])
        lines = [f"No clock between those run surely keeps the limits; at {base:g} MHz: {told}."]
    else:
        where = f"Set the engine clock to {best:g} MHz (now {base:g})"
        where = f"Stay at {base:g} MHz" if best == base else where
        lines = [f"{where}: {_told_of(server, clocks[best])}."]
    if just:
        told = _told_of(server, clocks[just], has_ends=False)
        lines.append(f"{just:g} MHz is expected to just keep them: {told}.")
    load = f"{server['rate_per_s'] or server['request_per_s']:.3g} requests/s"
    if server["load"] == "closed" and server["clients"]:
        load = f"{server['clients']:g} clients"
    load += f", the same {server['requests']:g} requests at each clock"
    lowest = server["clocks"][-1]
    if (share := lowest["capacity_share"]) is not None:
        load += f"; {100 * share:.0f} % of the capacity at {lowest['engine_mhz']:g} MHz"
    return (*lines, f"{server['load'].capitalize()} load, {load}.")


def _told_of(server: Row, clock: Row, has_ends: bool = True) -> str:
    """The limited latencies at a clock with their 90 % intervals, and tokens per joule."""
    said = []
    for limit in server["limits"]:
        value, low, high = clock["latency_ms"][limit["latency"]]
        within = f"{low:.3g} to {high:.3g}, " if low and has_ends else ""
        said.append(f"{limit['latency']} {value:.3g} ms ({within}limit {limit['limit_ms']:.4g})")
    tokens, base = clock["tokens_per_joule"][0], server["clocks"][0]["tokens_per_joule"][0]
    per_joule = f"{tokens:.3g} output tokens/J ({100 * (tokens / base - 1):+.0f} %)"
    return "; ".join(filter(None, (", ".join(said), per_joule)))
