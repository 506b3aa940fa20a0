"""From each tool's counters to the features of Table II: exact, nearest or missing.

The mapping is data, mapping.json; its sources are the tools' documentation and source code.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlscale.counters.features import TABLE_2
from mlscale.profilers.formulas import MissingError, Scope, counters_of

STATUSES = ("exact", "nearest", "missing")


@dataclass(frozen=True)
class Feature:
    """One feature of one kernel: its value, how near to Table II's meaning, and by what formula."""

    value: float | None
    status: str
    formula: str
    note: str = ""


@functools.cache
def _document() -> dict[str, Any]:
    text = Path(__file__).with_name("mapping.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _tool(tool: str) -> dict[str, Any]:
    entry: dict[str, Any] = _document()["tools"][tool]
    return _tool(entry["same_as"]) if "same_as" in entry else entry


def needed_counters(tool: str) -> frozenset[str]:
    """Every counter that the mapping of a tool names, and the cycles that ratios need."""
    entry = _tool(tool)
    formulas = [f for several in entry["quantities"].values() for f in several]
    formulas += [a["formula"] for several in entry["features"].values() for a in several]
    named = frozenset().union(*map(counters_of, formulas))
    return named | ({"GRBM_GUI_ACTIVE", "SQ_WAVES"} if "SQ_INSTS_VALU" in named else set())


def obtainable_features(tool: str) -> tuple[str, ...]:
    """The features of Table II that a tool can give at all, in the table's order."""
    features = _tool(tool)["features"]
    return tuple(name for name in TABLE_2 if features[name])


def table_features(
    tool: str,
    counters: Mapping[str, float],
    cycles: Mapping[str, float],
    facts: Mapping[str, float | None],
) -> dict[str, Feature]:
    """Every feature of Table II for one kernel; a missing one has no value.

    counters: means over launches, in base units; cycles: GRBM_GUI_ACTIVE by the counter of its
    pass; facts: time_s, workgroups, cu_count, engine_hz, peak_bytes_per_s, xcd_count, se_count.
    """
    entry = _tool(tool)
    scope = Scope(counters, cycles, facts, entry["quantities"])
    return {name: _first(scope, entry["features"][name]) for name in TABLE_2}


def _first(scope: Scope, alternatives: list[dict[str, str]]) -> Feature:
    for alternative in alternatives:
        try:
            value = scope.value(alternative["formula"])
        except MissingError:
            continue
        return Feature(
            value, alternative["status"], alternative["formula"], alternative.get("note", "")
        )
    return Feature(None, "missing", "")


def device_key(name: str) -> str | None:
    """The key of the device table for a name as a profiler prints it; None if it has none."""
    names: dict[str, str] = _document()["device_names"]
    return names.get(name.removeprefix("NVIDIA ").strip())


def amd_die(device: str) -> dict[str, int]:
    """cu_count, xcd_count and se_count of an AMD part; empty for one that is not known."""
    die: dict[str, int] = _document()["amd_dies"].get(device, {})
    return die
