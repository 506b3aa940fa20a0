"""Rows of a further run put below those of a table."""

import numpy as np

from mlscale.data.table import Table
from mlscale.errors import InputError


def append(table: Table, new: Table, source: str) -> Table:
    """Both tables' rows; a counter that one of them lacks is missing in its rows.

    source: what messages call the table. Raises InputError where the tables are of different
    devices or profilers.
    """
    for name, cells in new.text.items():
        if name not in table.text:
            raise InputError(f"{source}: has no column '{name}'; it is no imported table")
        if name == "device" and set(cells) != set(table.text[name]):
            raise InputError(
                f"{source}: is of '{table.text[name][0]}', the new rows are of '{cells[0]}'"
            )
    old, tool = table.metadata, new.metadata["counter_tool"]
    if old.get("counter_tool") != tool:
        raise InputError(
            f"{source}: its counters are of {old.get('counter_tool') or 'an unknown tool'}, the "
            f"new ones of {tool}; one table has counters of one tool"
        )
    numbers = {
        name: np.concatenate(
            [part.numbers.get(name, np.full(len(part), np.nan)) for part in (table, new)]
        )
        for name in dict.fromkeys([*table.numbers, *new.numbers])
    }
    rank = ("exact", "nearest", "missing")
    statuses, sources = old.get("feature_status", {}), old.get("utilisation_sources", {})
    sources = {name: text.split("; ") for name, text in sources.items()}
    for name, text in new.metadata["utilisation_sources"].items():
        sources[name] = [*sources.get(name, []), *text.split("; ")]
    metadata = {
        **old,
        **{name: value for name, value in new.metadata.items() if name != "clocks"},
        "source": "; ".join(dict.fromkeys([old.get("source", ""), new.metadata["source"]])),
        "utilisation_sources": {n: "; ".join(dict.fromkeys(t)) for n, t in sources.items()},
        "launches": {**old.get("launches", {}), **new.metadata["launches"]},
        "busy_spans": {**old.get("busy_spans", {}), **new.metadata.get("busy_spans", {})},
        "feature_status": {
            name: max(status, statuses.get(name, status), key=rank.index)
            for name, status in new.metadata["feature_status"].items()
        },
    }
    idle_ms = [of["idle_ms"] for of in (old, new.metadata) if "idle_ms" in of]
    if idle_ms:  # a constant of each application, whatever its clocks
        is_further = not set(new.text["application"]) <= set(table.text["application"])
        metadata["idle_ms"] = sum(idle_ms) if is_further else idle_ms[0]
    if not metadata["busy_spans"]:  # a profiler's export has none
        del metadata["busy_spans"]
    text = {name: [*table.text[name], *new.text[name]] for name in new.text}
    return Table(source, text, numbers, metadata)
