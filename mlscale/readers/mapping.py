"""From each tool's counters to the features of Table II: exact, nearest or missing.

mapping.json holds formulas for each tool and feature, in a small language of arithmetic on
counters, which is evaluated here without running code. They are from the tools' documentation and
source code.
"""

import ast
import functools
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.counters.features import TABLE_2
from mlscale.data.measurements import Measurements
from mlscale.data.table import OF_LAUNCH
from mlscale.errors import InputError
from mlscale.files import shipped_json

COUNTING_TOOLS = ("ncu", "rocprof", "rocprofv3")
CYCLES = "GRBM_GUI_ACTIVE"  # a counter of AMD's, summed over a GPU's dies
# From this time of a kernel on its cycles are its own, to 2 %: the count begins before it and ends
# after it, 6 to 10 µs in public files of an MI200, an MI300X and a Radeon 8060S.
CYCLES_FROM_S = 5e-4
_COUNTER = re.compile(r"\{([^{}]+)\}")
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b if b else math.nan,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "optional": lambda value: 0.0 if math.isnan(value) else value,
    "minimum": lambda one, other: float(np.minimum(one, other)),
    "above": lambda value, floor: math.nan if value <= floor else value,
}


@dataclass(frozen=True)
class Feature:
    """A feature of Table II of one kernel: None where it is missing.

    status: 'exact', 'nearest' or 'missing'; formula: what gave it; note: what it is, in words.
    """

    value: float | None
    status: str
    formula: str = ""
    note: str = ""


@dataclass(frozen=True)
class Share:
    """A share of peak of one kernel; source: from what, in words, and by which formula."""

    value: float
    source: str


@dataclass(frozen=True)
class Scope:
    """What the names of a tool's formulas stand for, for one kernel.

    Attributes:
        tool: whose formulas.
        counters: by name, means over launches in base units.
        cycles: GRBM_GUI_ACTIVE by the counter of its pass.
        facts: time_s, workgroups, cu_count, engine_hz, peak_bytes_per_s, xcd_count, se_count,
            warps and features, as far as they are known; None and NaN where not.
    """

    tool: str
    counters: Mapping[str, float]
    cycles: Mapping[str, float]
    facts: Mapping[str, float | None]

    def first(self, formulas: Iterable[str]) -> tuple[float, int]:
        """The value of the first formula that has one, and its position; NaN and -1 without."""
        for position, formula in enumerate(formulas):
            if math.isfinite(value := self._value(_parsed(formula))):
                return value, position
        return math.nan, -1

    def _value(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.BinOp(left=left, op=operation, right=right):
                return _OPERATIONS[type(operation)](self._value(left), self._value(right))
            case ast.Name(id=name):
                return self._quantity(name)
            case ast.Call(func=ast.Name(id="counter"), args=[ast.Constant(value=name)]):
                return self.counters.get(str(name), math.nan)
            case ast.Call(func=ast.Name(id="cycles"), args=[ast.Call(args=[ast.Constant(name)])]):
                return self._cycles(str(name))
            case ast.Call(func=ast.Name(id=function), args=arguments) if function in _FUNCTIONS:
                return _FUNCTIONS[function](*map(self._value, arguments))
        raise ValueError(f"mapping.json: {ast.dump(node)} is not part of the language")

    def _cycles(self, counter: str) -> float:
        cycles = self.cycles.get(counter, self.counters.get(CYCLES, math.nan))
        cycles /= self._quantity("xcd_count")
        if (time_s := self._quantity("time_s")) < CYCLES_FROM_S:  # a NaN of cycles stays
            return min(cycles, time_s * self._quantity("engine_hz"))
        return cycles

    def _quantity(self, name: str) -> float:
        """The first formula of a quantity that has a value, else the fact of that name."""
        for formula in _tool(self.tool)["quantities"].get(name, ()):
            if not math.isnan(value := self._value(_parsed(formula))):
                return value
        fact = self.facts.get(name)
        return math.nan if fact is None else fact


@functools.cache
def _parsed(formula: str) -> ast.expr:
    return ast.parse(_COUNTER.sub(lambda m: f"counter({m[1]!r})", formula), mode="eval").body


@functools.cache
def _tool(tool: str) -> dict[str, Any]:
    """A tool's formulas; of one that has none, as it counts nothing, those of traces."""
    tools = shipped_json(__file__, "mapping.json")["tools"]
    entry: dict[str, Any] = tools.get(tool, tools["traces"])
    return _tool(entry["same_as"]) if "same_as" in entry else entry


@functools.cache
def needed_counters(tool: str) -> frozenset[str]:
    """Every counter that the formulas of a tool name, and the cycles that their ratios need."""
    names = frozenset(_COUNTER.findall("\n".join(_texts(_tool(tool)))))
    return names | {CYCLES, "SQ_WAVES"} if "SQ_INSTS_VALU" in names else names


def _texts(entry: Any) -> Iterable[str]:
    """Every text of a JSON value."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, Mapping | list):
        for part in entry.values() if isinstance(entry, Mapping) else entry:
            yield from _texts(part)


def with_obtainable(measurements: Measurements, tool: str, source: str) -> Measurements:
    """Measurements as if by a tool: without what it cannot give, and without others' counters.

    source: what messages call them. Raises InputError where no feature of Table II is there.
    """
    if not set(TABLE_2) & set(measurements.counter_names):
        raise InputError(f"{source}: has none of the counters of Table II")
    lost = {name for name in TABLE_2 if not _tool(tool)["features"][name]}
    if measurements.metadata.get("counter_tool") != tool:
        lost |= set(measurements.counter_names) - {*TABLE_2, *OF_LAUNCH}
    return measurements.without_counters(lost)


def table_features(scope: Scope) -> dict[str, Feature]:
    """Every feature of Table II of one kernel."""
    features = {}
    for name in TABLE_2:
        alternatives = _tool(scope.tool)["features"][name]
        value, n = scope.first(one["formula"] for one in alternatives)
        features[name] = Feature(None, "missing") if n < 0 else Feature(value, **alternatives[n])
    return features


def peak_shares(scope: Scope) -> dict[str, Share]:
    """The shares of peak that a kernel's counters give, each from the first source that is there.

    The scope's facts: besides, the features that `table_features` gave.
    """
    shares = {}
    for name, alternatives in _tool(scope.tool)["shares"].items():
        value, n = scope.first(one["formula"] for one in alternatives)
        if n >= 0:
            source = f"{alternatives[n]['source']} = {alternatives[n]['formula']}"
            shares[name] = Share(value, source)
    return shares


def nvprof_counters(scope: Scope) -> dict[str, float]:
    """One kernel's counters by nvprof's names, which the models of the papers read, from another's.

    NVIDIA's own table of the two tools' names gives the formulas; without a request a number per
    request is NaN. None at all where one that Wang and Chu's model needs lacks.
    """
    parts = {
        part: {name: scope.first(formulas)[0] for name, formulas in several.items()}
        for part, several in _tool(scope.tool).get("nvprof_counters", {}).items()
    }
    if not parts or any(map(math.isnan, parts["needed"].values())):
        return {}
    return parts["needed"] | parts["more"]


def lacking_for_nvprof(tool: str, present: Collection[str]) -> dict[str, str]:
    """What a tool must count for the nvprof counters that Wang and Chu's model needs, by these.

    Only what the counters that are present do not give; of several ways the first.
    """
    scope = Scope(tool, dict.fromkeys(present, 1.0), {}, {"warps": 1.0})
    return {
        name: ", ".join(sorted(set(_COUNTER.findall(formulas[0]))))
        for name, formulas in _tool(tool).get("nvprof_counters", {}).get("needed", {}).items()
        if scope.first(formulas)[1] < 0
    }
