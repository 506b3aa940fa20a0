"""Somebody else's text: names made fit for a terminal, and cells as numbers."""

import re

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor: CSI
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles: OSC
    r"|\x1b[ -/]*[0-~]"
)
_BLANKS = re.compile(r"[\t-\r\x1c-\x1e\x85\u2028\u2029]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DIRECTIONS = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str) -> str:
    """Text without escape sequences and control characters; ends of lines are blanks."""
    if text.isprintable():
        return text
    return _CONTROLS.sub("", _BLANKS.sub(" ", _ESCAPES.sub("", text)))


def plain_number(text: str) -> float:
    """Return a number in ASCII as float does, but not `1_0`, which only Python reads as 10.

    Raises ValueError on anything else.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"'{text}' is not a number")
    return float(text)


def printable(text: str) -> str:
    """Text for a terminal: besides, without marks that turn the direction of writing."""
    return _DIRECTIONS.sub("", without_controls(text))


def shortened(text: str, longest: int = 60) -> str:
    """Printable text of at most that many characters, the middle left out with an ellipsis."""
    text = printable(text)
    if len(text) <= longest:
        return text
    head = max(0, min(longest * 2 // 3, longest - 2))
    return f"{text[:head]}…{text[head + 1 - longest :]}"
