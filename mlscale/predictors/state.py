"""What fitting learnt as a document, and back: one rule for the fields of all classes.

A document holds arrays and what JSON knows. A dataclass or a NamedTuple is a dictionary of its
fields, but `grid` and `base` stand as `grid_state` gives them, and the fields of an INLINE one
among its owner's. `Annotated[Floats, "K F"]` tells the reader the axes of an array. A function that
is annotated is called with the value, a number as an array, and its name, and a class's own
`check_restored` when it has all its fields. What a file holds is taken as it was written: its zip
has checksums.
"""

from dataclasses import field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from mlscale.data.devices import Device
from mlscale.data.grid import grid_state, restore_grid

INLINE = object()
T = TypeVar("T")
State = dict[str, Any]


def learnt() -> Any:
    """Declare a field of a `Learner` that fitting sets; it is no hyper-parameter."""
    return field(init=False, repr=False, compare=False)


class Learner:
    """A predictor whose `learnt` fields, named with an underscore at the end, are its state."""

    def state(self) -> State:
        """Return what fitting learnt: nested dicts and lists of arrays and JSON values."""
        return dict(state_of(self))

    def restore(self, state: State) -> Self:
        """Take over what `state` gave."""
        for name, value in _values(type(self), state).items():
            setattr(self, f"{name}_", value)
        return _checked(self)


def state_of(value: Any) -> Any:
    """Return the document of a value: of a dataclass, numbers, texts, arrays, and any of these."""
    if isinstance(value, Device):
        return value.as_dict()
    if isinstance(value, dict):
        return {key: state_of(one) for key, one in value.items()}
    if not (is_dataclass(value) or hasattr(value, "_fields")):
        return [state_of(one) for one in value] if isinstance(value, tuple | list) else value
    end = "_" if isinstance(value, Learner) else ""
    state: State = {}
    for name, hint in _fields(cast("Any", type(value))).items():
        field_value = getattr(value, name + end)
        if name == "grid":
            state |= grid_state(field_value, getattr(value, f"base{end}"))
        elif name != "base":
            document = state_of(field_value)
            state |= document if _is_inline(hint) else {name: document}
    return state


def restored(kind: type[T], state: State) -> T:
    """Return the value of that class that a document describes."""
    return _checked(kind(**_values(kind, state)))


def _checked(value: T) -> T:
    getattr(value, "check_restored", lambda: None)()
    return value


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the annotations of what makes a class's state, by name in the document."""
    hints = get_type_hints(kind, include_extras=True)
    if not is_dataclass(kind):
        return hints
    is_learner = issubclass(cast("type", kind), Learner)
    kept = [field.name for field in fields(kind) if not (is_learner and field.init)]
    return {name.removesuffix("_"): hints[name] for name in kept}


def _is_inline(hint: Any) -> bool:
    return INLINE in getattr(hint, "__metadata__", ())


def _values(kind: Any, state: State) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if "grid" in _fields(kind):
        values["grid"], values["base"] = restore_grid(state)
    for name, hint in _fields(kind).items():
        if _is_inline(hint):
            inner = get_args(hint)[0]
            values[name] = _checked(inner(**_values(inner, state)))
        elif name not in values:
            values[name] = _value(hint, state[name], name)
    return values


def _value(hint: Any, saved: Any, name: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        value = _value(inner[0], saved, name)
        for rule in inner[1:]:
            if callable(rule):
                rule(np.asarray(value), name)
        return value
    if origin is UnionType:  # something or None
        return None if saved is None else _value(inner[0], saved, name)
    if origin is np.ndarray:
        return np.asarray(saved)
    if origin is tuple:
        return tuple(_value(inner[0], one, name) for one in saved)
    if origin is dict:
        return {key: _value(inner[1], one, name) for key, one in saved.items()}
    return _plain(hint, saved)


def _plain(hint: Any, saved: Any) -> Any:
    if hint is Device:
        return Device.from_dict(saved)
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return restored(hint, saved)
    return hint(saved)
