"""A log's columns by our names: what each title says, and what the values say against it.

Titles are read by `mlscale.data.column_names`; names of DCGM and dmon, which are no words, by a
list. Values decide last, and only whether a time is a moment, or to ask: a unit that they
contradict is refused, never believed.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.checks import check
from mlscale.data.column_names import UNITS, Title, may_be_power, read_title, unread
from mlscale.data.logs import SHARES
from mlscale.errors import InputError
from mlscale.readers.columns import Block, labels
from mlscale.readers.files import is_table_of_runs
from mlscale.readers.registry import KIND_OF_TABLES, Kind

_BLANK = 0x7FFFFFF0  # and all above: DCGM's missing values, of its dcgm_structs.h
_LATEST_S = 1e10  # since 1970, in the year 2286
_EPOCHS = {1e17: "ns", 1e14: "us", 1e11: "ms"}  # above it a number is since 1970
_STEPS_S = (1e-3, 20.0)  # between two samples; others are hardly seconds
_PART = re.compile(r"(?<=gfx_)\d+|(?<=mem_)\d+")  # the number of a die, in the titles of its clocks
_HOSTS = {"host", "hostname", "node", "nodename", "instance"}
_FAR = 10.0  # the rank from which a title has words that say nothing of a GPU
_MOST_W, _MOST_MHZ, _LEAST_MHZ, _LEAST_MW, _LEAST_CAP_W = 3000.0, 20_000.0, 60.0, 2000.0, 2.0

# fmt: off
# By our name the columns of nvidia-smi dmon (with --gpm-metrics), dcgmi and dcgm-exporter.
_MARKS = {
    "power_w": "pwr POWER POWINST POWR DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_POWER_USAGE_INSTANT",
    "power_cap_w": "EPLMT DCGM_FI_DEV_ENFORCED_POWER_LIMIT DCGM_FI_DEV_POWER_MGMT_LIMIT",
    "power_limit_w": "DCGM_FI_DEV_POWER_MGMT_LIMIT",
    "engine_mhz": "pclk SMCLK DCGM_FI_DEV_SM_CLOCK",
    "memory_mhz": "mclk MMCLK DCGM_FI_DEV_MEM_CLOCK",
    "engine_mhz_requested": "SACLK DCGM_FI_DEV_APP_SM_CLOCK",
    "gr_engine_active": "gract GRACT DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "sm_active": "smutil SMACT DCGM_FI_PROF_SM_ACTIVE",
    "sm_occupancy": "smocc SMOCC DCGM_FI_PROF_SM_OCCUPANCY",
    "tensor_active": "mmaact TENSO DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "dram_active": "dram DRAMA DCGM_FI_PROF_DRAM_ACTIVE",
    "fp64_active": "fp64 FP64A DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    "fp32_active": "fp32 FP32A DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "fp16_active": "fp16 FP16A DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    "gpu_utilisation": "sm GPUTL DCGM_FI_DEV_GPU_UTIL",
    "memory_copy_utilisation": "mem MCUTL DCGM_FI_DEV_MEM_COPY_UTIL",
}
_PERCENT = {*_MARKS["gpu_utilisation"].split(), *_MARKS["memory_copy_utilisation"].split(),
            "gract", "smutil", "smocc", "mmaact", "dram", "fp64", "fp32", "fp16"}
METRICS = {n for names in _MARKS.values() for n in names.split() if n.startswith("DCGM_FI_")}
# By our name the quantity, and its unit where none is said.
_OURS = {"power_w": ("power", "W"), "power_cap_w": ("power", "W"), "energy_j": ("energy", "J"),
         "engine_mhz": ("clock", "MHz"), "memory_mhz": ("clock", "MHz"),
         "engine_mhz_requested": ("clock", "MHz"), "gpu_utilisation": ("share", "%"),
         "memory_copy_utilisation": ("share", "%")}
# fmt: on
_CELL_UNIT = re.compile(r"\s*([mk]?W|%|[MkG][Hh]z)(?:atts?)?$")
_INDEX = re.compile(r"(?i:card|gpu|nvidia|cuda:)?\s?\d+|[\w:.-]*[-:][\w:.-]+|")
_NUMBER = re.compile(r"\d{1,30}(\.\d*)?([eE][+-]?\d{1,3})?")
_DAY_FIRST = re.compile(r"(\d{1,2})[-.](\d{1,2})[-.](\d{4})(.*)")


@dataclass
class LogColumns:
    """A block of samples, column by column (R,).

    values: by the number of the GPU in the titles ('' of none) and by our names; seconds: when [s];
    index: the GPU of each row; names: columns that may name it; hosts: those of its machine; taken:
    by meaning the title that was used; left: which were not, and why.
    """

    block: Block
    values: dict[str, dict[str, Floats]] = field(default_factory=dict)
    seconds: Floats | None = None
    index: list[str] | None = None
    names: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def merge(self, gpu: str, ours: str, read: Floats) -> None:
        """Take values for those that are missing."""
        found = self.values.setdefault(gpu, {})
        best = found.setdefault(ours, read)
        found[ours] = np.where(np.isnan(best), read, best)


def columns_of_marks(block: Block, kind: Kind) -> LogColumns:
    """The columns of a tool whose names are no words. Raises InputError."""
    log = LogColumns(block)
    index = next((name for name in ("index", "gpu", "Entity") if name in block), None)
    log.index = block.cells(index) if index else None
    log.names = ["name"] if "name" in block else []
    _take_marks(log, kind)
    return log


def _take_marks(log: LogColumns, kind: Kind) -> None:
    block, is_dmon = log.block, kind.title == "nvidia-smi dmon"  # whose 'sm', 'mem' are activities
    for ours, names in _MARKS.items():
        for name in (
            n for n in names.split() if n in block and (is_dmon or n not in ("sm", "mem"))
        ):
            read = block.numbers(name, _reading)
            if kind.tool == "dcgm":
                read = np.where(read < _BLANK, read, math.nan)
            read = read * (0.01 if name in _PERCENT else 1.0)
            log.merge("", ours, _checked_share(block, ours, name, read))
    found = log.values.pop("", {})
    log.values[""] = {ours: found[ours] for ours in ("energy_j", *_MARKS) if ours in found}


def columns_of_words(block: Block, kind: Kind) -> LogColumns:
    """The columns of a table whose titles are words. Raises InputError, which names columns."""
    log = LogColumns(block, hosts=[n for n in block.columns if n.casefold() in _HOSTS])
    titles = [t for text in block.columns if (t := _title(text))]
    log.seconds = _moments(log, titles)
    _set_index(log, titles)
    for gpu, what in dict.fromkeys((title.gpu, title.what) for title in titles):
        several = [title for title in titles if (title.gpu, title.what) == (gpu, what)]
        if what == "energy_j" and {*several[0].words} != {"total", "energy"}:
            continue  # no counter
        read = block.numbers(several[0].text, _reading) if what == "watts" else np.zeros(0)
        if np.nanmax(read, initial=0.0) > 100:
            log.merge(gpu, "power_w", read)  # GPU0, GPU1: above any share
            log.taken[f"power_w of GPU {gpu}"] = several[0].text
        ranks = sorted({title.rank for title in several}) if what in _OURS else []
        if what == "power_cap_w" and (set_w := [title for title in several if title.rank == 1]):
            log.merge(gpu, "power_limit_w", _numbers(log, what, set_w[0]))
        for rank in [rank for rank in ranks if rank < _FAR] or ranks[:1]:
            _take_rank(log, gpu, what, [title for title in several if title.rank == rank])
    if kind is not KIND_OF_TABLES:
        _take_marks(log, kind)
    if not any("power_w" in found for found in log.values.values()):
        log.left += [f"'{name}' (whose power?)" for name in block.columns if may_be_power(name)]
    if question := unread(block.columns, {what for found in log.values.values() for what in found}):
        raise InputError(f"{block.path}: {question}")
    return log


def _title(text: str) -> Title | None:
    """A title's meaning; a date for a title, as Afterburner has it, heads a column of moments."""
    return (
        read_title(text) if text.isdigit() or math.isnan(_date_s(text)) else Title(text, "moment")
    )


def _take_rank(log: LogColumns, gpu: str, what: str, titles: Sequence[Title]) -> None:
    """Take titles that are as good as each other. Raises InputError where they differ.

    The clocks of its dies, gfx_0_clk and so on, are parts of one GPU, whose mean counts.
    """
    if not np.isnan(log.values.get(gpu, {}).get(what, np.full(1, np.nan))).any():
        return
    each = np.array([_numbers(log, what, title) for title in titles])
    known = ~np.isnan(each)
    each, known = each[known.any(axis=1)], known[known.any(axis=1)]
    if not len(each) or (titles[0].rank >= 9 and what == "power_cap_w" and np.ptp(each) > 0):
        return  # a highest power that changes is no limit
    are_parts = len({_PART.sub("", title.text) for title in titles}) == 1
    if not are_parts and not all(np.array_equal(each[0], one, equal_nan=True) for one in each):
        names = " and ".join(f"'{title.text}'" for title in titles)
        told = f"{names} may each be {what}; delete all but one of these columns, or title those"
        told += f" of several GPUs gpu0_{what} and gpu1_{what}"
        raise InputError(f"{log.block.path}: {told}")
    means = np.nansum(each, axis=0) / np.maximum(known.sum(axis=0), 1)
    doubtful = " (a guess)" if titles[0].rank >= _FAR else ""
    whose = f" of GPU {gpu}" if gpu else ""
    log.taken.setdefault(f"{what}{whose}{doubtful}", titles[0].text)
    log.merge(gpu, what, np.where(known.any(axis=0), means, np.nan))


def _numbers(log: LogColumns, what: str, title: Title) -> Floats:
    """A column in our unit. Raises InputError where the values contradict the unit."""
    block, (quantity, unit) = log.block, _OURS[what]
    read = block.numbers(title.text, _reading)
    if title.text.startswith("DCGM_FI_"):
        read = np.where(read < _BLANK, read, math.nan)
    cells = (_CELL_UNIT.search(cell) for cell in block.text(title.text).texts)
    in_cells = sorted({cell[1].replace("hz", "Hz") for cell in cells if cell})
    if len(in_cells) > 1 or not UNITS[quantity].keys() >= {*in_cells}:
        told = f"is in {' and in '.join(in_cells)}; give all its cells in one unit, such as {unit}"
        raise InputError(f"{block.path}: column '{title.text}' {told}")
    said, most = title.unit or next(iter(in_cells), ""), float(np.nanmax(read, initial=0.0))
    is_of_one = quantity == "share" and not said and most <= 1 and bool((read % 1 > 0).any())
    factor = 1.0 if is_of_one else UNITS[quantity][said or unit]
    ours, asked = read * factor, ""
    least_mhz = _LEAST_MHZ if said not in ("", "MHz") else 10.0
    is_clock_of_none = not least_mhz <= most * factor <= _MOST_MHZ and most > 0
    if quantity == "power" and most * factor > _MOST_W:
        asked = f"{most:g} {said or 'W'} is more than a GPU draws: is it in mW, or of several GPUs?"
    elif "vdd" in title.words and not said:
        asked = "a rail's power, in W or in mW?"
    elif said == "mW" and 0 < most < _LEAST_MW and title.rank < _FAR:
        may = "draws" if what == "power_w" else "may draw"
        asked = f"{most:g} mW is less than a GPU {may}: is it in W?"
    elif quantity == "clock" and is_clock_of_none:
        asked = f"{most:g} {said or 'MHz'} is not a GPU's clock: which unit is it in?"
    if what == "power_cap_w" and not said and (asked or most < _LEAST_CAP_W):
        if (left := f"'{title.text}' (no power limit in W)") not in log.left:
            log.left.append(left)
        return np.full(len(block), np.nan)
    if asked and not (what == "power_cap_w" and most * factor > _MOST_W):  # `limit_w` refuses that
        ends = "[W] or [mW]" if quantity == "power" else "[MHz], [GHz] or [kHz]"
        told = f"{asked} End its title with the true unit, {ends}"
        raise InputError(f"{block.path}: column '{title.text}': {told}")
    return _checked_share(block, what, title.text, ours)


def _checked_share(block: Block, ours: str, name: str, read: Floats) -> Floats:
    if ours in SHARES and not np.isnan(read).all():
        largest = int(np.nanargmax(read))
        check("value", block.where(largest, name), None, "share", read[largest])
    return read


def _set_index(log: LogColumns, titles: Sequence[Title]) -> None:
    """The column that says of which GPU each row is; one that counts the rows is none."""
    block, told = log.block, {title.what for title in titles}
    log.names = [title.text for title in titles if title.what == "name"]
    is_in_turn = log.seconds is not None and bool((np.diff(log.seconds) > 0).all())
    for title in sorted((t for t in titles if t.what == "gpu"), key=lambda title: title.rank):
        cells = block.cells(title.text)
        is_load = title.text == "GPU" and "memory_copy_utilisation" in told
        if title.rank == 0 and is_in_turn and len({*cells}) == len(cells) > 1:
            continue
        if not any(_INDEX.fullmatch(cell) for cell in {*cells}):
            is_name = not any(re.fullmatch(r"[\d.]+", cell) for cell in {*cells})
            log.names += [title.text] if is_name else []
        elif is_load and "gpu_utilisation" not in told:  # jtop's, beside EMC
            log.merge("", "gpu_utilisation", 0.01 * block.numbers(title.text))
        elif log.index is None:
            log.index = cells


def _moments(log: LogColumns, titles: Sequence[Title]) -> Floats | None:
    """When each sample was taken [s], by the column that says it; None without. InputError."""
    block = log.block
    stamps = sorted((t for t in titles if t.what == "moment"), key=lambda title: title.rank)
    times = [title for title in titles if title.what == "time"]
    dates = [t for t in stamps if t.words == ("date",)]
    clocks = [t for t in times if t.words == ("time",)]
    if dates and clocks:
        both = zip(block.cells(dates[0].text), block.cells(clocks[0].text), strict=True)
        log.taken["time"] = name = f"{dates[0].text} and {clocks[0].text}"
        return Block(block.path, block.lines, {name: labels([" ".join(b) for b in both])}).parsed(
            name, moment_s
        )
    for title in (*stamps, *times):
        seconds = _since(block, title)
        is_training = title.text.casefold() == "epoch" and seconds.max(initial=0.0) < 1e9
        is_date = any(":" in cell for cell in block.text(title.text).texts)
        is_date = is_date or (bool(len(seconds)) and seconds.min() > 1e8)
        is_late = not is_date and len(seconds) > 1 and seconds[0] > np.ptp(seconds)
        is_of_runs = len(seconds) == 1 or is_late or bool((np.diff(seconds) < 0).any())
        if title.what == "time" and is_of_runs:
            if {one.what for one in titles} & {"engine_mhz", "power_cap_w"}:
                told = f"if this is a log, title the column '{title.text}' 'timestamp'"
                raise InputError(f"{block.path}: {is_table_of_runs(block.columns)}; {told}")
            log.left.append(f"'{title.text}' (may be how long, not when)")
        elif not is_training:
            _check_steps(block, title, seconds)
            log.taken["time"] = title.text
            return seconds
    return None


def _check_steps(block: Block, title: Title, seconds: Floats) -> None:
    """Raise InputError on numbers, not since 1970, that are hardly seconds, or of their unit."""
    steps_s = np.diff(seconds)
    steps_s = steps_s[steps_s > 0]
    if not len(steps_s) or seconds.min() > 1e8 or ":" in block.cells(title.text)[0]:
        return
    longest = math.inf if title.unit else _STEPS_S[1]
    if not _STEPS_S[0] <= (usual := float(np.median(steps_s))) <= longest:
        asked = f"a sample every {usual:.4g}, in what? End its title with its unit,"
        if title.unit:
            asked = f"no log has a sample every {usual * 1e3:.4g} ms; title it 'time' and its unit,"
        told = f"column '{title.text}': {asked} [s] or [ms] or [us] or [ns]"
        raise InputError(f"{block.path}: {told}")


def _since(block: Block, title: Title) -> Floats:
    """A column of moments [s]: dates, times of a day, or numbers.

    The title says the unit, else the size of the largest number, if it is since 1970.
    """
    texts = block.text(title.text).texts
    if not all(re.fullmatch(r"\d{1,2}:\d\d:[\d.]+", text) for text in texts):
        largest = max((float(text) for text in texts if _NUMBER.fullmatch(text)), default=0.0)
        unit = title.unit or next((u for above, u in _EPOCHS.items() if largest > above), "s")
        return block.parsed(title.text, lambda cell: moment_s(cell, unit))
    seconds = block.parsed(title.text, lambda cell: moment_s(f"1970-01-01 {cell}"))
    return seconds + 86_400.0 * np.cumsum(np.diff(seconds, prepend=seconds[:1]) < -43_200)


def moment_s(text: str, unit: str = "s") -> float:
    """Seconds since 1970, or since a start, of a number, nvidia-smi's own form or ISO 8601.

    unit: of numbers. Raises InputError.
    """
    try:
        seconds = float(text) * UNITS["time"].get(unit, 1.0)
    except ValueError:
        seconds = _date_s(text)
    if not 0 <= seconds < _LATEST_S:
        raise InputError(f"'{text[:40]}' is not a time such as 2024/03/29 11:16:49.355, or seconds")
    return seconds


def _date_s(text: str) -> float:
    """Seconds since 1970 of a date; NaN of another text. 3.4.2024 is in April, 3.14. in March."""
    text = text.strip().replace("/", "-")
    if parts := _DAY_FIRST.fullmatch(text):
        day, month = (parts[1], parts[2]) if int(parts[2]) <= 12 else (parts[2], parts[1])
        text = f"{parts[3]}-{month:0>2}-{day:0>2}{parts[4]}"
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def _reading(text: str) -> str:
    """The number in a cell such as '24.53 W', '(300Mhz)' or '12'; '' of '[N/A]' and the like."""
    cell = text.strip("() +")
    # '[Not Supported]'; 'N/A (Secondary die)' of an MI250; DCGM's blank of 64 bits
    is_missing = cell.startswith(("[", "N/A", "92233720368547757"))
    return "" if is_missing else _CELL_UNIT.sub("", cell)
