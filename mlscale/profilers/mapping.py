"""From each tool's counters to the features of Table II: exact, nearest or missing.

The mapping is data: mapping.json holds a formula for each tool and feature, in a small language of
arithmetic on counters that is evaluated here without running code. Its sources are the tools'
documentation and source code.
"""

import ast
import functools
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.counters.features import TABLE_2
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import OF_LAUNCH
from mlscale.errors import InputError
from mlscale.files import shipped_json

CYCLES = "GRBM_GUI_ACTIVE"  # of AMD's GPUs, of all dies
# A kernel's time from which on its cycles of GRBM_GUI_ACTIVE are its own, to 2 %: the count begins
# before it and ends after it, which in public files of an MI200, an MI300X and a Radeon 8060S adds
# 6 to 10 µs, and of an MI300A under rocprofv2 40.
CYCLES_FROM_S = 5e-4
_COUNTER = re.compile(r"\{([^{}]+)\}")
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b if b else math.nan,
}


@dataclass(frozen=True)
class TableFeature:
    """A feature of Table II for one kernel: its value, its status, and the formula that gave it.

    status: 'exact', 'nearest' or 'missing'; a missing feature has no value.
    """

    value: float | None
    status: str
    formula: str
    note: str = ""


@dataclass(frozen=True)
class Share:
    """A share of peak of one kernel; source: from what, in words, and by which formula."""

    value: float
    source: str


class FormulaScope:
    """What the names of formulas stand for, for one kernel.

    counters: means over launches, in base units; cycles: GRBM_GUI_ACTIVE by the counter of its
    pass; facts: time_s, workgroups, cu_count, …, None or NaN where not known; quantities: formulas
    by name.
    """

    def __init__(
        self,
        counters: Mapping[str, float],
        cycles: Mapping[str, float],
        facts: Mapping[str, float | None],
        quantities: Mapping[str, list[str]],
    ) -> None:
        self._counters, self._cycles = counters, cycles
        self._facts, self._quantities = facts, quantities

    @classmethod
    def of(
        cls,
        tool: str,
        counters: Mapping[str, float],
        cycles: Mapping[str, float],
        facts: Mapping[str, float | None],
    ) -> Self:
        """The scope of the formulas of a tool."""
        return cls(counters, cycles, facts, _tool(tool)["quantities"])

    def value(self, formula: str) -> float:
        """The value of a formula; NaN where a counter or a fact is missing, and of x / 0."""
        value = self._evaluate(_parse(formula))
        return value if math.isfinite(value) else math.nan

    def first(self, formulas: Iterable[str]) -> tuple[float, int]:
        """The value of the first formula that has one, and its position; NaN and -1 without."""
        for position, formula in enumerate(formulas):
            if not math.isnan(value := self.value(formula)):
                return value, position
        return math.nan, -1

    def _evaluate(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.BinOp(left=left, op=operation, right=right):
                return _OPERATIONS[type(operation)](self._evaluate(left), self._evaluate(right))
            case ast.Name(id=name):
                return self._name(name)
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._call(function, arguments)
        raise ValueError(f"mapping.json: {ast.dump(node)} is not part of the language")

    def _call(self, function: str, arguments: list[ast.expr]) -> float:
        match function, arguments:
            case "counter", [ast.Constant(value=str() as name)]:
                return self._counters.get(name, math.nan)
            case "cycles", [ast.Call(args=[ast.Constant(value=str() as name)])]:
                cycles = self._cycles.get(name, self._counters.get(CYCLES, math.nan))
                cycles /= self._name("xcd_count")
                if (time_s := self._name("time_s")) < CYCLES_FROM_S:  # a NaN stays, on the left
                    cycles = min(cycles, time_s * self._name("engine_hz"))
                return cycles
            case "optional", [argument]:
                value = self._evaluate(argument)
                return 0.0 if math.isnan(value) else value
            case "minimum", [one, other]:
                return float(np.minimum(self._evaluate(one), self._evaluate(other)))
            case "above", [one, floor]:
                value = self._evaluate(one)
                return math.nan if value <= self._evaluate(floor) else value
            case "equals", [one, other]:
                difference = self._evaluate(one) - self._evaluate(other)
                return math.nan if math.isnan(difference) else float(difference == 0)
        raise ValueError(f"mapping.json: {function} is not part of the language")

    def _name(self, name: str) -> float:
        """The first formula of a quantity that has a value, or a fact."""
        for formula in self._quantities.get(name, []):
            value = self._evaluate(_parse(formula))
            if not math.isnan(value):
                return value
        fact = self._facts.get(name)
        return math.nan if fact is None else fact


@functools.cache
def _parse(formula: str) -> ast.expr:
    return ast.parse(_COUNTER.sub(lambda m: f"counter({m[1]!r})", formula), mode="eval").body


def counters_of(formula: str) -> set[str]:
    """The counters that a formula names."""
    return set(_COUNTER.findall(formula))


@functools.cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = shipped_json(__file__, "mapping.json")
    return document


def _tool(tool: str) -> dict[str, Any]:
    entry: dict[str, Any] = _document()["tools"][tool]
    return _tool(entry["same_as"]) if "same_as" in entry else entry


def needed_counters(tool: str) -> frozenset[str]:
    """Every counter that the mapping of a tool names, and the cycles that ratios need."""
    entry = _tool(tool)
    formulas = [f for several in entry["quantities"].values() for f in several]
    for part in ("features", "shares"):
        formulas += [a["formula"] for several in entry[part].values() for a in several]
    for counters in entry.get("nvprof_counters", {}).values():
        formulas += [f for several in counters.values() for f in several]
    names = frozenset().union(*map(counters_of, formulas))
    return names | ({CYCLES, "SQ_WAVES"} if "SQ_INSTS_VALU" in names else set())


def obtainable_features(tool: str) -> tuple[str, ...]:
    """The features of Table II that a tool can give at all, in the table's order."""
    features = _tool(tool)["features"]
    return tuple(name for name in TABLE_2 if features[name])


def with_obtainable(measurements: Measurements, tool: str, source: str) -> Measurements:
    """Measurements as if by a tool: without what it cannot give, and without others' counters.

    source: what messages call them. Raises InputError where no feature of Table II is there.
    """
    if not set(TABLE_2) & set(measurements.counter_names):
        raise InputError(f"{source}: has no feature of Table II")
    lost = set(TABLE_2) - set(obtainable_features(tool))
    if measurements.metadata.get("counter_tool") != tool:
        lost |= set(measurements.counter_names) - {*TABLE_2, *OF_LAUNCH}
    return measurements.without_counters(lost)


def table_features(tool: str, scope: FormulaScope) -> dict[str, TableFeature]:
    """Every feature of Table II for one kernel.

    facts: time_s, workgroups, cu_count, engine_hz, peak_bytes_per_s, xcd_count, se_count.
    """
    features = {}
    for name in TABLE_2:
        alternatives = _tool(tool)["features"][name]
        value, n = scope.first(one["formula"] for one in alternatives)
        has_one = not math.isnan(value)
        features[name] = (
            TableFeature(value, **alternatives[n]) if has_one else TableFeature(None, "missing", "")
        )
    return features


def peak_shares(tool: str, scope: FormulaScope) -> dict[str, Share]:
    """The shares of peak that a kernel's counters give, each from the first source that is there.

    facts: those of `table_features`, and the features that it gave.
    """
    shares: dict[str, Share] = {}
    for name, alternatives in _tool(tool)["shares"].items():
        value, n = scope.first(one["formula"] for one in alternatives)
        if not math.isnan(value):
            source = f"{alternatives[n]['source']} = {alternatives[n]['formula']}"
            shares[name] = Share(value, source)
    return shares


def nvprof_counters(tool: str, scope: FormulaScope) -> dict[str, float]:
    """One kernel's counters by nvprof's names, which the models of the papers read, from another's.

    NVIDIA's own table of the two tools' names gives the formulas; without a request a number per
    request is missing. None at all where one that Wang and Chu's model needs lacks. facts: those of
    `table_features`, and the warps of a launch.
    """
    parts = {
        part: {name: scope.first(formulas)[0] for name, formulas in several.items()}
        for part, several in _tool(tool).get("nvprof_counters", {}).items()
    }
    if not parts or any(map(math.isnan, parts["needed"].values())):
        return {}
    return parts["needed"] | parts["more"]


def lacking_for_nvprof(tool: str, present: Collection[str]) -> dict[str, str]:
    """What a tool must count for the nvprof counters that Wang and Chu's model needs, by these.

    Only what the counters that are present do not give; of several ways the first. Empty where a
    tool has no such counters at all.
    """
    scope = FormulaScope.of(tool, dict.fromkeys(present, 1.0), {}, {"warps": 1.0})
    return {
        name: ", ".join(sorted(counters_of(formulas[0])))
        for name, formulas in _tool(tool).get("nvprof_counters", {}).get("needed", {}).items()
        if math.isnan(scope.first(formulas)[0])
    }
