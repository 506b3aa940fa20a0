"""Whether a hyper-parameter is of the type with which its predictor declares it."""

from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral, Real
from os import PathLike
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

import numpy as np

from mlscale.errors import InputError

_KINDS: dict[Any, tuple[Any, str]] = {  # by declared type what may stand for it, and in words
    str: ((str, PathLike, list, np.ndarray), "text"),  # a list of one name, as out of a data frame
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: ((bool, np.bool_), "True or False"),
    NoneType: (NoneType, "None"),
    Sequence[str]: ((Sequence, np.ndarray), "a list of names"),
}


def require_declared_type(owner: type, name: str, value: object) -> None:
    """Raise InputError on a value of another type than the class declares under that name.

    A predictor of one's own may declare nothing, or any other type: then every value passes.
    """
    hints: dict[str, Any] = {}
    with suppress(Exception):  # whatever its annotations are
        hints = get_type_hints(owner)
    declared = hints.get(name)
    members = get_args(declared) if isinstance(declared, UnionType) else (declared,)
    kinds = [_KINDS[member] for member in members if member in _KINDS]
    if len(kinds) < len(members):
        return
    if isinstance(value, bool):
        is_declared = bool in members
    else:
        is_declared = any(isinstance(value, kind) for kind, _ in kinds)
    if not is_declared:
        words = " or ".join(word for _, word in kinds)
        raise InputError(f"{name} must be {words}, not {type(value).__name__}")
