"""The small language of mapping.json: arithmetic on counters, evaluated without running code."""

import ast
import math
import re
from collections.abc import Callable, Mapping
from functools import cache

_COUNTER = re.compile(r"\{([^{}]+)\}")
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


class MissingError(Exception):
    """A formula needs a counter, or a fact of the device, that is not there."""


def counters_of(formula: str) -> set[str]:
    """The counters that a formula names."""
    return set(_COUNTER.findall(formula))


@cache
def _parsed(formula: str) -> ast.expr:
    return ast.parse(_COUNTER.sub(lambda m: f"counter({m[1]!r})", formula), mode="eval").body


class Scope:
    """What the names of formulas stand for, for one kernel.

    counters: means over launches; cycles: GRBM_GUI_ACTIVE by the counter of its pass; facts:
    time_s, workgroups, cu_count, …, None or NaN where not known; quantities: formulas by name.
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

    def value(self, formula: str) -> float:
        """The value of a formula. Raises MissingError; a division by 0 is missing too."""
        try:
            value = self._evaluate(_parsed(formula))
        except ZeroDivisionError:
            raise MissingError("0") from None
        if not math.isfinite(value):
            raise MissingError(formula)
        return value

    def _evaluate(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.BinOp(left=left, op=operation, right=right):
                return _OPERATIONS[type(operation)](self._evaluate(left), self._evaluate(right))
            case ast.Name(id=name):
                return self._named(name)
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._call(function, arguments)
        raise ValueError(f"mapping.json: {ast.dump(node)} is not part of the language")

    def _call(self, function: str, arguments: list[ast.expr]) -> float:
        match function, arguments:
            case "counter", [ast.Constant(value=str() as name)]:
                return _there(self._counters.get(name), name)
            case "cycles", [ast.Call(args=[ast.Constant(value=str() as name)])]:
                cycles = self._cycles.get(name, self._counters.get("GRBM_GUI_ACTIVE"))
                return _there(cycles, "GRBM_GUI_ACTIVE") / self._named("xcd_count")
            case "optional", [argument]:
                try:
                    return self._evaluate(argument)
                except MissingError:
                    return 0.0
            case "minimum", [one, other]:
                return min(self._evaluate(one), self._evaluate(other))
            case "equals", [one, other]:
                return float(self._evaluate(one) == self._evaluate(other))
        raise ValueError(f"mapping.json: {function} is not part of the language")

    def _named(self, name: str) -> float:
        for formula in self._quantities.get(name, []):
            try:
                return self._evaluate(_parsed(formula))
            except MissingError:
                continue
        return _there(self._facts.get(name), name)


def _there(value: float | None, name: str) -> float:
    if value is None or math.isnan(value):
        raise MissingError(name)
    return value
