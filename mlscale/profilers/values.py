"""A profiler's cell as a number: thousands commas, units, what stands for 'missing'."""

import math
import re

from mlscale.errors import InputError

_MISSING = {
    *("", "n/a", "na", "nan", "-nan", "nan(ind)", "-nan(ind)", "inf", "-inf", "infinity"),
    *("null", "none", "<overflow>", "overflow", "-"),
}
# At most 400 digits: without a bound the first pattern backtracks over all of a long cell.
_PLAIN = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,9})?", re.ASCII)
_PLAIN_DECIMAL = re.compile(r"\d{1,18}\.\d{1,18}", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_DOTS = re.compile(r"[+-]?\d{1,3}(\.\d{3}){2,}(,\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)

_NVIDIA_UNITS: dict[str, tuple[str, float]] = {}
for _prefix, _scale in (("", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
    # Decimal prefixes: 393.22 Kbyte are 393216 bytes (design page, 1.1).
    _NVIDIA_UNITS[f"{_prefix}byte"] = ("byte", _scale)
    for _rate in ("byte/second", "byte/s"):
        _NVIDIA_UNITS[f"{_prefix}{_rate}"] = ("byte/s", _scale)
    _NVIDIA_UNITS[f"{_prefix}hz"] = ("hz", _scale)
    _NVIDIA_UNITS[f"{_prefix}cycle/second"] = ("hz", _scale)
for _names, _scale in (
    (("ns", "nsecond"), 1e-9), (("us", "usecond"), 1e-6),
    (("ms", "msecond"), 1e-3), (("s", "second", "sec"), 1.0),
):  # fmt: skip
    for _name in _names:
        _NVIDIA_UNITS[_name] = ("s", _scale)
        _NVIDIA_UNITS[f"cycle/{_name}"] = ("hz", 1 / _scale)
_NVIDIA_UNITS["%"] = ("%", 1.0)
_NVIDIA_UNITS_FOLDED = {unit.casefold(): entry for unit, entry in _NVIDIA_UNITS.items()}

_NVPROF_PREFIX = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NVPROF_GLUED = re.compile(r"(?P<number>[^A-Za-z%]+?)(?P<unit>[KMGT]?B/s|[KMGT]?B|%)", re.ASCII)
_NVPROF_LEVEL = re.compile(r"(Idle|Low|Mid|High|Max) \((?P<level>\d+)\)", re.ASCII)
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def quick_number(text: str) -> float | None:
    """A plain number that is not negative, at little cost; None for anything else."""
    if is_whole(text):
        return float(text)
    return float(text) if _PLAIN_DECIMAL.fullmatch(text) else None


def parse_number(text: str, where: str, semicolons: bool = False) -> float:
    """A number; NaN where the cell says that there is none, and for what is not finite.

    semicolons: the file's separator is a semicolon, so that a comma may be a decimal comma.
    Raises InputError, beginning with `where`, on anything ambiguous or not a number.
    """
    cell = text.strip().strip("'")
    if _PLAIN.fullmatch(cell):
        if _DOTS.fullmatch(cell):
            raise InputError(f"{where}: '{text}' is ambiguous: {_MEND}")
        value = float(cell)
        return value if math.isfinite(value) else math.nan
    if cell.casefold() in _MISSING:
        return math.nan
    if _DOTS.fullmatch(cell):
        raise InputError(f"{where}: '{text}' is ambiguous: {_MEND}")
    if semicolons:
        if _DECIMAL_COMMA.fullmatch(cell) and len(cell.partition(",")[2]) != 3:
            return float(cell.replace(",", "."))
        if "," in cell:
            raise InputError(f"{where}: '{text}' is ambiguous: {_MEND}")
    if _THOUSANDS.fullmatch(cell):
        return float(cell.replace(",", ""))
    if _DECIMAL_COMMA.fullmatch(cell):
        raise InputError(f"{where}: '{text}' has a decimal comma: {_MEND}")
    raise InputError(f"{where}: '{text[:40]}' is not a number")


_MEND = "export with LC_ALL=C, so that numbers are written with a decimal point"


def parse_counter(text: str, where: str, semicolons: bool = False) -> float:
    """As parse_number, and not negative: a counter counts. Raises InputError."""
    value = parse_number(text, where, semicolons)
    if value < 0:
        raise InputError(f"{where}: '{text}' is negative; a counter cannot be")
    return value


def nvidia_unit(unit: str) -> tuple[str, float] | None:
    """Dimension ('s', 'byte', 'byte/s', 'hz', '%', '1') and scale of an ncu unit.

    None for a scaled unit that is not known, so that nothing is read at a wrong scale.
    """
    name = unit.strip()
    known = _NVIDIA_UNITS.get(name) or _NVIDIA_UNITS_FOLDED.get(name.casefold())
    if known:
        return known
    if name.startswith(("byte/", "register/")) or name.casefold() in _COUNTED:
        return "1", 1.0
    return None


_COUNTED = {
    *("", "inst", "cycle", "sector", "warp", "block", "sm", "thread", "request", "pass"),
    *("inst/cycle", "warp/cycle", "cluster", "register", "ratio", "thread/inst", "inst/warp"),
    *("cycle/instruction", "sector/request", "inst/block", "wave", "register/thread"),
}


def parse_nvprof(text: str, where: str) -> tuple[float, str]:
    """Value and unit ('', '%', 'B', 'B/s', 'level') of an nvprof cell; prefixes are binary.

    976.5625KB/s is 1e6 B/s (design page, 1.3). Raises InputError.
    """
    cell = text.strip()
    if level := _NVPROF_LEVEL.fullmatch(cell):
        return float(level["level"]), "level"
    if glued := _NVPROF_GLUED.fullmatch(cell):
        value = parse_counter(glued["number"], where)
        unit = glued["unit"]
        if unit == "%":
            return value, "%"
        prefix, bare = (unit[0], unit[1:]) if unit[0] in "KMGT" else ("", unit)
        return value * _NVPROF_PREFIX[prefix], bare
    return parse_counter(cell, where), ""


def is_whole(text: str) -> bool:
    """Whether a cell is a whole number of at most 18 ASCII digits."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def parse_timestamp(text: str, where: str) -> int | None:
    """Nanoseconds; None where not given. Raises InputError on what a spreadsheet rounded."""
    cell = text.strip()
    if not cell or cell.casefold() in _MISSING:
        return None
    if re.fullmatch(r"[0-9]{1,20}", cell):
        return int(cell)
    if re.fullmatch(r"[0-9]{1,20}\.0+", cell):
        return int(cell.partition(".")[0])
    if "e" in cell.casefold() and _PLAIN.fullmatch(cell):
        raise InputError(
            f"{where}: the timestamp '{cell}' was rounded, by a spreadsheet; use the file as the "
            "profiler wrote it"
        )
    raise InputError(f"{where}: '{cell[:40]}' is not a timestamp in nanoseconds")


def parse_triple(text: str, where: str) -> tuple[int, int, int]:
    """Three sizes of '(98, 1, 1)' or '{1024 1 1}'; what is not given is 1. Raises InputError."""
    match = re.fullmatch(r"\s*[({]\s*([0-9]{1,10}(?:[\s,;]+[0-9]{1,10}){0,2})\s*[)}]\s*", text)
    if match is None:
        raise InputError(f"{where}: '{text[:40]}' is not a size such as (98, 1, 1)")
    sizes = [int(size) for size in re.split(r"[\s,;]+", match[1].strip())]
    if min(sizes) < 1:
        raise InputError(f"{where}: '{text[:40]}' has a size of 0")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
