"""Quantities as people write them: '1.2GHz', '0.5 kW', '66 ms', '5 %'."""

import re
from collections.abc import Sequence

from mlscale.errors import InputError
from mlscale.text import plain_number

# By the unit that a number alone has: the units of its kind, and how many of it each is.
UNITS = {
    "MHz": {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6},
    "W": {"W": 1.0, "kW": 1e3},  # not mW: in small letters a MW is one too
    "ms": {"ms": 1.0, "s": 1e3, "us": 1e-3, "ns": 1e-6, "min": 6e4},
    "s": {"s": 1.0, "ms": 1e-3, "min": 60.0},
    "%": {"%": 1.0},
    "": {"": 1.0},
}
_NAMES = {name.casefold() for names in UNITS.values() for name in names if name}
_DECIMALS = 9  # to which a quantity in another unit is read: 1.005 GHz is 1005 MHz


def number_and_unit(text: str) -> tuple[float, str] | None:
    """A number and its unit, '' without one; None if the text is neither."""
    parts = re.fullmatch(r"\s*(\S*?[\d.])\s*([^\W\d_]+|%)\s*", text)
    try:
        return (plain_number(parts[1]), parts[2]) if parts else (plain_number(text), "")
    except ValueError:
        return None


def quantity(text: str, unit: str) -> float:
    """The number in that unit, a key of UNITS, from a text that may use another unit.

    Case does not matter. Raises InputError if it is not a number, and on a wrong unit.

    Example:
        >>> quantity("1.2GHz", "MHz"), quantity("1200", "MHz"), quantity("0.5 kW", "W")
        (1200.0, 1200.0, 500.0)
    """
    read = number_and_unit(text)
    if read is None:
        raise InputError(f"'{text}' is not a number")
    number, said = read
    units = {name.casefold(): factor for name, factor in UNITS[unit].items()}
    if not said or said == unit:
        return number
    if said.casefold() not in units:
        *others, last = UNITS[unit]
        right = f"{', '.join(others)} or {last}" if others else last
        instead = right if unit else "a plain number"
        raise InputError(f"'{text}' has the unit '{said}'; give {instead}")
    return round(number * units[said.casefold()], _DECIMALS)


def with_units(words: Sequence[str]) -> list[str]:
    """The words of a command, each unit that stands apart, as in `5 %`, joined to its number.

    Words behind '--' stay: they are another program's.
    """
    joined: list[str] = []
    end = words.index("--") if "--" in words else len(words)
    for word in words[:end]:
        before = number_and_unit(joined[-1]) if joined and word.casefold() in _NAMES else None
        if before and not before[1]:
            joined[-1] += word
        else:
            joined.append(word)
    return [*joined, *words[end:]]
