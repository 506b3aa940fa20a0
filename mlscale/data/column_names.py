"""What a column's title says, and columns under other names: what a user says of them, their units.

People title one quantity in a hundred ways: power.draw [W], gpu0_power_w, system.gpu.0.powerWatts,
Board Power Draw [W]. Titles are cut into words, and words and unit tell whose it is (of the GPU, a
part of it, or another device) and what: a draw or a limit, a moment or a length of time.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError

# By quantity its units, and how many of the first each is.
UNITS: Mapping[str, Mapping[str, float]] = {
    "power": {"W": 1.0, "mW": 1e-3, "kW": 1e3},
    "clock": {"MHz": 1.0, "kHz": 1e-3, "GHz": 1e3, "Hz": 1e-6},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "energy": {"J": 1.0, "mJ": 1e-3, "kJ": 1e3, "Wh": 3.6e3, "kWh": 3.6e6},
    "share": {"%": 0.01},
}
# fmt: off
_SPELT = {"W": "watt watts", "mW": "milliwatt milliwatts", "ms": "msec", "us": "usec",
          "J": "joule joules", "s": "sec secs second seconds", "%": "pct perc percent percentage",
          "-": "c v mv b kb mb gb tb kib mib gib rpm fps celsius bytes megabytes"}
_SAME = {  # one word, or two, for those that mean the same
    "clock": "clk clocks freq freqs frequency dvfs", "power": "pwr", "mem": "memory hbm",
    "util": "utilization utilisation utilizations utils", "load": "activity busy", "usage": "used",
    "gpu": "igpu dgpu cuda", "all": "gpus", "gfx": "graphics gr", "limit": "cap tdp",
    "avg": "average mean",
    "now": "current instant instantaneous actual measured achieved", "run": "exec execution",
    "set": "app application applications applied target requested",
    "stamp": "timestamp ts epoch unix", "latency": "duration runtime makespan",
    "gfx clock": "sclk pclk gclk gfxclk", "mem clock": "mclk memclk", "gpu util": "gr3d",
    "mem util": "emc umc controller",
}

def _word_set(words: str) -> set[str]:
    return set(words.split())


_GPU = _word_set("gpu gfx sm #")  # '#' stands for a GPU with its number
_GPU_ALONE = _word_set("core socket board card nvidia smi nvml dcgm")  # unless another is named
_OTHERS = _word_set(
    "cpu processor system sys ram vram swap fan pcie pci disk ssd host proc process node pck "
    "module soc fclk socclk vclk dclk dram ring uncore network wifi battery psu wall meter ape "
    "dla pva package")
_PARTS = _word_set(
    "video media vid fb bus vr enc dec encoder decoder jpeg ofa nvdec nvenc nvlink vcn render "
    "compute input output pin chip slot src mvdd vddci copy")
_SPOILT = _word_set(  # a statistic that is no mean, or what was not measured
    "min minimum max maximum peak best worst cold norm normalized normalised n predicted pred "
    "locked deep sleep idle static dynamic baseline violation throttle throttling shutdown per "
    "slowdown governor default std stdev var reason reasons state status management supported "
    "saving savings delta margin level voltage rated nominal budget ceiling headroom remaining "
    "available allowed reserved boost turbo base sum combined estimated cache kv bandwidth "
    "occupancy cpu processor fan")
_USES = _word_set("util load use usage")
_FILLING = _GPU | _GPU_ALONE | _USES | _word_set(
    "system mem clock power set now draw avg total of the all engines engine speed value sensor "
    "w consumption reading median device dev fi rate")
_MOMENT = _word_set("time stamp date elapsed monotonic utc local query relative since start t")
_LENGTHS = _word_set("run total taken")
_INDEX = ("index", "uuid", "pcibusid", "busid", "gpu", "device", "deviceid", "card", "entity")
_NAMES = ("name", "devicename", "cardseries", "cardmodel")
_MARKS = {"gfx": "gpu_utilisation", "EMC": "memory_copy_utilisation"}  # whole titles of tools
# fmt: on
_UNITS = {unit.casefold(): unit for units in UNITS.values() for unit in units}
_UNITS |= {word: unit for unit, words in _SPELT.items() for word in words.split()}
_WORDS = {word: same.split() for same, words in _SAME.items() for word in words.split()}
_TOKEN = re.compile(
    r"GR3D|[KMGT]i?B(?![a-z])|[mkMG]?(?:Wh|W|J|Hz)(?![A-Za-z])"
    r"|m[SC](?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|%|[^\W\d_A-Za-z]+"
)
_PAIR = re.compile(
    r"(mem|memory|core|sm|gpu|gfx|avg|run|elapsed|app|time|date|power)"
    r"(clock|clk|freq|frequency|f|power|pwr|util|time|index|name|id|stamp|cap|limit|draw)"
)
_NUMBERED = ("gpu", "card", "device", "nvidia", "cuda")  # one of them before a GPU's number
_LONGEST = 200  # characters of a title
_RATE = re.compile(r"(per_?|[a-z]/)s(ec|econd)?\b|\btps\b", re.IGNORECASE)


@dataclass(frozen=True)
class Title:
    """The meaning of a title.

    what: our name of the quantity, as 'power_w'; 'time_ms' is how long, 'moment' when, 'time' one
    of both, 'gpu' an index, 'watts' a GPU's number alone. unit: of UNITS, '' without; gpu: the
    number in it, '' without. rank: of several titles of one quantity the lowest wins.
    """

    text: str
    what: str
    unit: str = ""
    gpu: str = ""
    rank: float = 0.0
    words: tuple[str, ...] = ()


@cache
def read_title(text: str) -> Title | None:
    """The meaning of a title; None if not of a GPU's power, clocks, use or time."""
    label, plain = re.search(r'gpu="(\d+)"', text), re.sub(r"\{.*\}", "", text).strip()
    if len(plain) > _LONGEST:
        return None
    if plain == "_runtime":  # W&B counts it from the beginning of the run
        return Title(text, "moment", "s", rank=1.0, words=("time",))
    words, unit = _words(plain.replace("µ", "u").replace("μ", "u"))
    gpu = label[1] if label else ""
    for place in range(len(words) - 1, 0, -1):
        if re.fullmatch(r"\d{1,3}", words[place]) and words[place - 1] in (*_NUMBERED, "core"):
            is_gpu = words[place - 1] != "core"
            gpu = gpu or (words[place] if is_gpu else "")
            words[place - 1 : place + 1] = ["#" if is_gpu else "cpu"]
            break
    words = [word for word in words if not word.isdigit()]
    meant = (_MARKS[plain], 0.0) if plain in _MARKS else None
    meant = meant or (None if unit else _identity(words, plain)) or _quantity(words, unit)
    if meant is None and _RATE.search(plain) and unit != "-" and not {*words} & _PARTS - {"output"}:
        meant = "rate", 0.0
    return Title(text, meant[0], unit, gpu, meant[1], tuple(words)) if meant else None


def _words(text: str) -> tuple[list[str], str]:
    """The words of a title without its unit, and the unit: in brackets, or the last word."""
    unit = ""
    for inside in re.findall(r"[\[(]([^\[\]()]*)[\])]", text):
        found = [_UNITS[t.casefold()] for t in _TOKEN.findall(inside) if t.casefold() in _UNITS]
        if found:
            unit = "" if _RATE.search(inside) else "%" if "%" in found else found[0]
            text = text.replace(inside, " ", 1)
    words: list[str] = []
    for token in map(str.casefold, _TOKEN.findall(text)):
        pair = _PAIR.fullmatch(token)
        for part in pair.groups() if pair else [token]:
            is_clock = part == "f" and (pair or words[-1:] in (["core"], ["mem"]))  # coreF, memf
            words += ["clock"] if is_clock else _WORDS.get(part, [part])
    last = len(words) - 1
    while last >= 0 and (words[last] in ("avg", "median") or words[last].isdigit()):
        last -= 1
    if not unit and last >= 0 and words[last] in _UNITS and (last or len(words[0]) > 1):
        unit = _UNITS[words.pop(last)]
    return [word for word in words if word != "%"], unit or ("%" if "%" in words else "")


def is_unit(text: str) -> bool:
    """Whether a cell is a unit, as below the titles of some logs."""
    return text.casefold() in _UNITS


def _identity(words: Sequence[str], text: str) -> tuple[str, float] | None:
    """Whether a title is of the GPU's index, its name, or a number of a GPU alone."""
    folded = re.sub(r"[\W_]", "", text.casefold())
    short = folded.removeprefix("gpu")
    if "#" in words:
        return ("watts", 0.0) if list(words) == ["#"] else None
    for name in (folded, short):
        if name in _INDEX or (name == "id" != folded):
            return "gpu", float(_INDEX.index(name)) if name in _INDEX else 3.5
    return ("name", 0.0) if folded in _NAMES or short in _NAMES else None


def _quantity(words: Sequence[str], unit: str) -> tuple[str, float] | None:  # noqa: PLR0911
    """Our name of what was measured, and its rank among several of one name; None of others."""
    said, quantity = set(words), next((what for what, units in UNITS.items() if unit in units), "")
    if unit == "-" or (said & _OTHERS and not said & _GPU):
        return None
    if quantity == "power" or ("power" in said and not unit):
        return _power(said)
    if quantity == "energy" or ("energy" in said and not unit):
        return None if said & {*_SPOILT, "all"} else ("energy_j", 1.0 - ("total" in said))
    if quantity in ("time", "") and not said & ({"clock"} | _USES):
        return _time(said) or _wandb_share(said)
    strange = said - _FILLING
    if said & (_SPOILT | _PARTS) or (strange and not said & (_GPU | _GPU_ALONE)):
        return None
    far = 10.0 * bool(strange) + 0.25 * (not said & _GPU)  # 'Core Clocks' may be a CPU's
    if quantity == "clock" or ("clock" in said and not unit):
        if strange and "clock" not in said:  # a word of another tongue may be the memory
            return None
        if "mem" in said:
            return None if "set" in said else ("memory_mhz", ("now" not in said) + far)
        places = ("sm", "gfx", "gpu #", "core", "")
        rank = next(n for n, names in enumerate(places) if said & {*names.split()} or not names)
        what = "engine_mhz_requested" if "set" in said else "engine_mhz"
        return what, rank + 0.5 * ("now" not in said) + far
    if "mem" in said:  # how busy; how full it is, is neither
        is_busy = said & {"util", "load"} or (said == {"gpu", "mem", "use"} and unit)
        return ("memory_copy_utilisation", ("use" in said) + far) if is_busy else None
    is_use = said & _USES or (said and said <= {"gpu", "gfx"})
    is_plain = not strange and "util" in said and "sm" not in said
    is_use = is_use and quantity in ("share", "") and (is_plain or said & {"gpu", "gfx", "#"})
    return ("gpu_utilisation", ("util" not in said) + far) if is_use else None


def _power(said: set[str]) -> tuple[str, float] | None:
    """A draw, a limit, or none of a whole GPU."""
    strange, is_of_gpu = said - _FILLING, bool(said & (_GPU | _GPU_ALONE))
    if said & {*_PARTS, "all", "mem"} or ("total" in said and not is_of_gpu):
        return None
    if said & _SPOILT:
        is_limit = strange == {"max"} and "power" in said  # where it never changes
        return ("power_cap_w", 9.0) if is_limit else None
    if "limit" in said:
        return "power_cap_w", 1.0 - ("enforced" in said)
    if strange and not (is_of_gpu and said & {"power", "vdd"}):  # a Jetson's rail
        return None
    steps = (("board", 0.0), ("avg", 3.0), ("now", 1.0))
    rank = next((step for word, step in steps if word in said), 2.0)
    return "power_w", rank + 0.5 * (not said & _GPU) + 10.0 * bool(strange)


def _wandb_share(said: set[str]) -> tuple[str, float] | None:
    """Its system.gpu.0.gpu and system.gpu.0.memory are shares of time."""
    if not {"#", "system"} < said <= {"#", "system", "gpu", "mem"}:
        return None
    return ("memory_copy_utilisation" if "mem" in said else "gpu_utilisation"), 1.0


def _time(said: set[str]) -> tuple[str, float] | None:
    """A moment, or how long something took; 'time' alone is either."""
    if {"time", "per"} <= said:
        return "time_ms", 1.0
    if "stamp" in said and not said & {*_SPOILT, "avg"}:
        return "moment", 0.0
    if said in ({"monotonic"}, {"perf", "counter"}):  # Python's, from no start known
        return "moment", 2.0
    if said and said <= _MOMENT and ("start" not in said or "since" in said):
        return ("moment", 1.0) if "date" in said else ("time", 2.0)
    is_long = "latency" in said or said == {"render"} or ("time" in said and said & _LENGTHS)
    is_whole = said <= {*_LENGTHS, "time", "latency", "render", "avg"}
    return ("time_ms", 0.0) if is_long and is_whole else None


_ASKED = {"power_w": ("power", "'GPU power [{0}]'"),
          "engine_mhz": ("clock", "'GPU clock [{0}]' or 'memory clock [{0}]'")}  # fmt: skip


def unread(names: Iterable[str], told: Collection[str]) -> str:
    """What to ask about a title in words that are not known, of a GPU and in a unit of what lacks.

    told: our names of what other titles say. '' where there is none.
    """
    for name in names:
        what, unit = _unread(name)
        if what and what not in told:
            quantity, titles = _ASKED[what]
            asked = f"column '{name}' may be its {quantity}, in words that are not recognised"
            return f"{asked}; title it {titles.format(unit)}, or delete it"
    return ""


def may_be_power(text: str) -> bool:
    """Whether a title that is not understood is of a power, by its unit or its words."""
    words, unit = _words_of_unread(text)
    return unit in UNITS["power"] or ("power" in words and not unit)


def _words_of_unread(text: str) -> tuple[list[str], str]:
    """The words and the unit of a title that is not understood; none of another."""
    return _words(text) if len(text) <= _LONGEST and not read_title(text) else ([], "")


@cache
def _unread(text: str) -> tuple[str, str]:
    """Our name of what a title in words that are not known may be of a GPU, and its unit."""
    words, unit = _words_of_unread(text)
    said = {word for word in words if not word.isdigit()}
    is_of_gpu = said & _GPU and said - _FILLING and not said & (_SPOILT | _PARTS | _OTHERS)
    told = (what for what, (quantity, _) in _ASKED.items() if unit in UNITS[quantity])
    return (next(told, "") if is_of_gpu else ""), unit


Columns = Mapping[str, str | float]  # by our name what a file calls a column, see `table.mapped`
NO_COLUMNS: Columns = {}
RATE = "1/s"  # how often in a second: its reciprocal is a time
RATED_UNITS = 1e6  # units of work, such as tokens, that the times and energies of rates stand for
RATED = f"{RATED_UNITS:,.0f} units of work"
# By the unit at the end of a column's name, how many of each unit are one of it.
_OF_COLUMNS = {
    "_ms": {"s": 1e-3, "ms": 1.0, "us": 1e3, "ns": 1e6, RATE: 1e3},
    "_mhz": {"Hz": 1e6, "kHz": 1e3, "MHz": 1.0, "GHz": 1e-3},
    "_w": {"W": 1.0, "mW": 1e3, "kW": 1e-3},
}
# What others call those of our columns that no unit tells, in small letters without marks.
_USUAL = {
    "device": "gpu gpuname devicename",
    "application": "app appname benchmark program workload",
    "kernel": "kernelname",
    "cu_count": "numsms numsm sms smcount numcus cus cu",
}
# And titles of these, as they are read; a clock that was set stands for one that is not told.
_TITLES = {
    "engine_mhz": ("engine_mhz", "engine_mhz_requested"),
    "memory_mhz": ("memory_mhz",),
    "time_ms": ("time_ms", "time"),
    "power_w": ("power_w",),
    "power_cap_w": ("power_cap_w",),
}
# What a column is of that says what may be, and not what was.
_OF_LIMITS = re.compile(r"limit|cap(?![a-z])|max|peak|tdp")


def source_meant(name: str, present: Collection[str]) -> str | None:
    """What `columns` may say of a missing column, COLUMN or COLUMN:UNIT: a usual, or a near name.

    UNIT stands for that of a time which does not say it. A limit is meant by nothing.
    """
    from difflib import get_close_matches

    if name in _TITLES:
        said = [title for column in present if (title := read_title(column))]
        for what in _TITLES[name]:
            if near := sorted((t.rank, n) for n, t in enumerate(said) if t.what == what):
                is_one = len(near) == 1 or near[0][0] < near[1][0]
                return _with_unit(name, said[near[0][1]]) if is_one else None
        if len(unknown := [column for column in present if _unread(column)[0] == name]) == 1:
            return unknown[0]
    present = [column for column in present if not is_of_limits(column)]
    for column in present:
        if _folded(column) in _USUAL.get(name, "").split():
            return column
    left = [c for c in present if name not in _TITLES or not read_title(c)]
    by_folded = {_folded(column): column for column in left}
    close = get_close_matches(_folded(name), by_folded, n=1, cutoff=0.8)
    return by_folded[close[0]] if close else None


def column_meant(name: str, present: Collection[str]) -> str | None:
    """The column that may be meant by a missing one."""
    source = source_meant(name, present)
    return source if source is None or source in present else source.rpartition(":")[0]


def _with_unit(name: str, title: Title) -> str:
    """COLUMN, or COLUMN:UNIT where the unit is another than ours; of a time without one 'UNIT'."""
    unit = title.unit or ("UNIT" if name == "time_ms" else "")
    return title.text if not unit or _units(name).get(unit) == 1 else f"{title.text}:{unit}"


def is_of_limits(column: str) -> bool:
    """Whether a column is by its name a limit, such as a power cap."""
    return bool(_OF_LIMITS.search(column.casefold()))


def is_usual(name: str, column: str) -> bool:
    """Whether a column is by its name a usual spelling of that one of ours."""
    return column == name or source_meant(name, [column]) is not None


def split_source(name: str, source: str, present: Collection[str]) -> tuple[str, str]:
    """The column and the unit of COLUMN[:UNIT], which else the column's name may say.

    A column whose name is the whole comes first.

    Raises InputError on a unit that a column of this name cannot have.
    """
    column, colon, unit = source.rpartition(":")
    if not colon or source in present:
        title = read_title(source)
        return source, title.unit if title and title.unit in _units(name) else ""
    if unit not in (units := _units(name)):
        having = f"be one of {', '.join(units)}" if units else "be left out there"
        raise InputError(f"the mapping {name}={source}: the unit '{unit}' must {having}")
    return column, unit


def converted(name: str, values: Floats, unit: str) -> Floats:
    """Values converted to the unit of the column they become; clocks to the hertz."""
    per_unit = _units(name).get(unit, 1.0)
    with np.errstate(divide="ignore"):
        values = per_unit / values if unit == RATE else values / per_unit
    return np.round(values, 6) if name.endswith("_mhz") else values


def _units(name: str) -> Mapping[str, float]:
    return next((units for end, units in _OF_COLUMNS.items() if name.endswith(end)), {})


def _folded(name: str) -> str:
    return re.sub(r"\W|_", "", name.casefold())
