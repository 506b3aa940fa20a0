"""Messages that name options, in the words of a call from Python."""

import functools
import re
import warnings
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from mlscale.errors import DataWarning, InputError, warn

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
    *("also", "at", "base", "capacity", "clusters", "counters", "device", "features", "folds"),
    *("gpu", "incomplete", "lever", "max-power", "max-slowdown", "max-time", "minimize", "model"),
    *("notes", "peaks", "power", "predictor", "quantity", "rate", "slo", "snap-clocks"),
    *("static-power", "weights", *_CALLED, *_SWITCHES),
)
_SETTING = r"\w+=[^\s;),']+"
_OPTION = re.compile(
    rf"--({'|'.join(_OPTIONS)})(?![\w-])"
    rf"(?: ({_SETTING}(?:,{_SETTING})*|'[^']+'|[A-Z]+\b|\d[\w.]*|"
    r"(?:drop(?:-settings)?|keep|bottleneck|time)\b))?"
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
        if name == "map":
            pairs = (pair.split("=") for pair in value.strip("'").split(","))
            return f"{written}={dict(pairs)}" if value else f"{written}={{…}}"
        return f"{written}='{value}'" if value[:1].islower() else f"{written}={value}"

    return _OPTION.sub(keyword, text)


def _tell_in_python(told: Iterable[warnings.WarningMessage]) -> None:
    """Warn again of what was told, of data in Python's words."""
    for one in told:
        if isinstance(one.message, DataWarning):
            note = one.message.note
            warn(note.code, in_python(note.text), note.severity, note.kernels)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def speaks_python(function: Callable[P, T]) -> Callable[P, T]:
    """The function, its errors and warnings in Python's words."""

    @functools.wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> T:
        told: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                return function(*args, **options)
        except InputError as error:
            error.args = (in_python(str(error)), *error.args[1:])
            raise
        finally:
            _tell_in_python(told)

    return called
