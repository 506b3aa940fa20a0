"""Names that users of other libraries guess in the Python API, and what to use instead.

guesses.json has, by kind of object, what it is called with the default advice, and by guesses
what to use instead.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mlscale.errors import InputError
from mlscale.files import shipped_json
from mlscale.text import did_you_mean


def instead(kind: str, name: str, names: Iterable[str] = (), default: str = "") -> str:
    """The end of a message on an unknown name: what to use instead, or what may be meant."""
    guesses = shipped_json(__file__, "guesses.json")[kind].items()
    does = next((f"; {what}" for words, what in guesses if name in words.split()), "")
    parameter = does.removeprefix("; write ")
    if kind == "predictor" and parameter.endswith("=") and parameter[:-1] not in names:
        does = ""  # a hyper-parameter that only other predictors have
    return does or did_you_mean(name, names) or default


def no_such(kind: str, name: str, names: Iterable[str]) -> str:
    """The message on an unknown attribute."""
    called, _, default = shipped_json(__file__, "guesses.json")[kind][""].partition("|")
    return f"{called} no '{name}'{instead(kind, name, names, f'; {default}')}"


SAVED_PLOT = ".plot().savefig('x.png')"
P = ParamSpec("P")
R = TypeVar("R")


def written(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a call whose arguments do not fit an InputError, with what to write."""

    def guided(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            try:
                signature(function).bind(*args, **named)
            except TypeError as error:
                raise InputError(f"{function.__name__}: {error}; write {example}") from None
            return function(*args, **named)

        return call

    return guided


class Guided:
    """On an unknown attribute it says what to use instead."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            names = [one for one in dir(self) if one[0] != "_"]
            raise AttributeError(no_such(type(self).__name__, name, names))
