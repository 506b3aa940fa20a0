"""A further configuration beside what a table holds already."""

import numpy as np

from mlscale.data.tables import Table
from mlscale.errors import InputError

_RANK = {"exact": 0, "nearest": 1, "missing": 2}


def appended(table: Table, new: Table, source: str) -> Table:
    """Both tables' rows; a counter that one of them lacks is missing in its rows.

    Raises InputError where they are of different devices or profilers.
    """
    for name, rows in new.text.items():
        if name not in table.text:
            raise InputError(f"{source}: has no column '{name}'; it is no imported table")
        if name == "device" and set(rows) != set(table.text[name]):
            raise InputError(
                f"{source}: is of '{table.text[name][0]}', the new rows are of '{rows[0]}'"
            )
    old_tool = table.metadata.get("counter_tool")
    if old_tool != new.metadata["counter_tool"]:
        raise InputError(
            f"{source}: its counters are of {old_tool or 'an unknown tool'}, the new ones of "
            f"{new.metadata['counter_tool']}; one table has counters of one tool"
        )

    def column(part: Table, name: str) -> np.ndarray:
        return part.numbers.get(name, np.full(len(part), np.nan))

    numbers = {
        name: np.concatenate([column(table, name), column(new, name)])
        for name in dict.fromkeys([*table.numbers, *new.numbers])
    }
    text = {name: [*table.text[name], *new.text[name]] for name in new.text}
    metadata = {**table.metadata, **{k: v for k, v in new.metadata.items() if k != "clocks"}}
    metadata["source"] = "; ".join(
        dict.fromkeys([table.metadata.get("source", ""), new.metadata["source"]])
    )
    metadata["launches"] = {**table.metadata.get("launches", {}), **new.metadata["launches"]}
    old = table.metadata.get("feature_status", {})
    metadata["feature_status"] = {
        name: max(status, old.get(name, status), key=lambda s: _RANK.get(s, 2))
        for name, status in new.metadata["feature_status"].items()
    }
    return Table(source, text, numbers, metadata)
