"""Messages that name options of the command line, in the words of a call from Python."""

import functools
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mlscale.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

_CALLED = {  # options whose keyword has another name
    "power-cap": "caps",
    "time": "time_ms",
    "interval": "interval_s",
    "map": "columns",
    "repetitions": "aggregate",
}
_SWITCHES = ("extrapolate", "force", "profiled-only", "skip-untimed")
_OPTIONS = (
    *("also", "at", "base", "capacity", "clusters", "counters", "device", "features", "gpu"),
    *("incomplete", "lever", "max-power", "max-slowdown", "max-time", "minimize", "model", "notes"),
    *("peaks", "power", "predictor", "rate", "slo", "snap-clocks", "static-power", "weights"),
    *(*_CALLED, *_SWITCHES),
)
_BOTH = re.compile(r"(\b[a-z_]+=(?:True)?) \(--[^()]*\)")  # a keyword, and its option beside it
_SETTING = r"(?:cu|engine|memory)=[^\s;),]+"
_OPTION = re.compile(
    rf"--({'|'.join(_OPTIONS)})(?![\w-])"
    rf"(?: ({_SETTING}(?:,{_SETTING})*|(?:drop|keep|bottleneck)\b|[A-Z]+\b|\d[\w.]*))?"
)


def in_python(text: str) -> str:
    """The message with keywords in place of options.

    Example:
        >>> in_python("if set to another, give --base engine=1980, or --force")
        "if set to another, give base='engine=1980', or force=True"
    """

    def keyword(option: re.Match[str]) -> str:
        name, value = option[1], option[2] or ""
        if name == "notes":
            return ".notes"
        written = _CALLED.get(name, name).replace("-", "_")
        if name in _SWITCHES:
            return f"{written}=True"
        return f"{written}='{value}'" if value[:1].islower() else f"{written}={value}"

    return _OPTION.sub(keyword, _BOTH.sub(r"\1", text))


def speaks_python(function: Callable[P, T]) -> Callable[P, T]:
    """The function, its errors in Python's words."""

    @functools.wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        except InputError as error:
            error.args = (in_python(str(error)), *error.args[1:])
            raise

    return called
