"""Rows appended to an imported table: those of a further import, of the same GPU and profiler."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mlscale.data.grid import AXES
from mlscale.data.table import Table
from mlscale.errors import InputError

_FROM_BEST = ("exact", "nearest", "missing")  # statuses of a feature
_BY_KERNEL = ("launches", "busy_spans", "sample_ms", "working_ms", "open_ends")


def append(table: Table, new: Table, source: str) -> Table:
    """Both tables' rows; a counter that one of them lacks is missing in its rows.

    source: what messages call the table. Raises InputError where the tables are of different
    devices or profilers.
    """
    _check_alike(table, new, source)
    numbers = {
        name: np.concatenate(
            [part.numbers.get(name, np.full(len(part), np.nan)) for part in (table, new)]
        )
        for name in dict.fromkeys([*table.numbers, *new.numbers])
    }
    text = {name: [*table.text[name], *new.text[name]] for name in new.text}
    return Table(source, text, numbers, _metadata(table, new))


def _check_alike(table: Table, new: Table, source: str) -> None:
    """Raise InputError where the tables are of different devices or profilers."""
    for name, cells in new.text.items():
        if name not in table.text:
            raise InputError(f"{source}: has no column '{name}'; it is no imported table")
        if name == "device" and set(cells) != set(table.text[name]):
            raise InputError(
                f"{source}: is of '{table.text[name][0]}', the new rows are of '{cells[0]}'"
            )
    before, tool = table.metadata.get("counter_tool"), new.metadata["counter_tool"]
    if before != tool:
        raise InputError(
            f"{source}: its counters are of {before or 'an unknown tool'}, the "
            f"new ones of {tool}; one table has counters of one tool"
        )


def _metadata(table: Table, new: Table) -> dict[str, Any]:
    """What is said of both tables' rows: the new table's word, joined to the old one's."""
    old, added = table.metadata, new.metadata
    metadata = {**old, **{name: value for name, value in added.items() if name != "clocks"}}
    metadata["source"] = _each_once([old.get("source", ""), added["source"]])
    sources = [old.get("utilisation_sources", {}), added["utilisation_sources"]]
    metadata["utilisation_sources"] = {
        name: _each_once(
            text for said in sources if name in said for text in said[name].split("; ")
        )
        for name in {**sources[0], **sources[1]}
    }
    statuses = old.get("feature_status", {})
    metadata["feature_status"] = {
        name: max(status, statuses.get(name, status), key=_FROM_BEST.index)
        for name, status in added["feature_status"].items()
    }
    for name in _BY_KERNEL:
        if of_kernels := {**old.get(name, {}), **added.get(name, {})}:
            metadata[name] = of_kernels
    is_further = not set(new.text["application"]) <= set(table.text["application"])
    for name in ("idle_ms", "hidden_exchange_ms"):  # constants of each application
        if said := [of[name] for of in (old, added) if name in of]:
            metadata[name] = sum(said) if is_further else said[0]
    for name in ("gpus", "profiled_gpus"):
        if gpus := [*old.get(name, []), *added.get(name, [])]:
            metadata[name] = list(dict.fromkeys(gpus))
    return metadata


def _each_once(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def repeated_rows(table: Table, new: Table) -> int:
    """How many of the new rows are of a kernel and configuration that the table has already."""
    known = set(_keys(table))
    return sum(key in known for key in _keys(new))


def _keys(table: Table) -> list[tuple[str | float, ...]]:
    """What each row is of: application, kernel and configuration."""
    settings = [table.numbers[axis].tolist() for axis in AXES]
    return [*zip(table.text["application"], table.text["kernel"], *settings, strict=True)]
