"""Nsight Compute: the pages `details` and `raw` of its CSV, and the text that it prints without.

Written by `ncu --csv --page raw ...` or `--page details` (the default); a report is turned into one
by `ncu --import REPORT --page raw --csv`. The details page has a row for each launch and metric,
the raw page one for each launch and its units in the row below the header. In the text a launch
begins with a line of its own, and its sections are tables whose borders are rows of dashes.

To watch for: prefixes of units are decimal (393216 bytes are 393.22 Kbyte) and differ row by row
without --print-units base; what sections show by another name gets the raw name of the formulas,
unless the file has that too; ncu sets its own clock unless --clock-control none is given.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.errors import InputError
from mlscale.readers.columns import Block, labels, product
from mlscale.readers.files import Sheet
from mlscale.readers.launches import Facts, Launches

_TIME = "gpu__time_duration.sum"
_NAME = "device__attribute_display_name"
# SpeedOfLight's "SM Frequency" has other raw names in other versions.
_ENGINES = tuple(f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "gpc", "smsp"))
_MEMORY = "dram__cycles_elapsed.avg.per_second"
_MEMORY_LIMITS_KHZ = tuple(
    f"device__attribute_{what}" for what in ("memory_clock_rate", "max_mem_frequency_khz")
)
_CYCLES = ("gpc__cycles_elapsed.max", "sm__cycles_elapsed.max", "sm__cycles_elapsed.avg")
_SM_COUNTS = ("device__attribute_multiprocessor_count", "launch__sm_count")
_DIMENSIONS = {_TIME: "s", **dict.fromkeys((*_ENGINES, _MEMORY), "hz")}
_SIZES = {"Grid Size": "launch__grid_size", "Block Size": "launch__block_size"}
_ALWAYS = {
    *(_TIME, *_ENGINES, _MEMORY, *_MEMORY_LIMITS_KHZ, *_CYCLES, *_SM_COUNTS, *_SIZES.values())
}
_ELAPSED, _ACTIVE = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
# Raw names by the names that sections show, of old versions and new, and the unit's dimension.
_SHOWN = {
    ("Duration", "s"): _TIME,
    ("SM Frequency", "hz"): _ENGINES[0],
    ("DRAM Frequency", "hz"): _MEMORY,
    ("# SMs", "1"): "launch__sm_count",
    ("Grid Size", "1"): "launch__grid_size",
    ("Block Size", "1"): "launch__block_size",
    ("Elapsed Cycles", "1"): "gpc__cycles_elapsed.max",
    ("SM Active Cycles", "1"): "sm__cycles_active.avg",
    ("Total SM Elapsed Cycles", "1"): "sm__cycles_elapsed.sum",
    ("DRAM Throughput", "%"): f"gpu__dram_throughput{_ELAPSED}",
    ("SOL DRAM", "%"): f"gpu__dram_throughput{_ELAPSED}",
    ("Memory Throughput", "byte/s"): "dram__bytes.sum.per_second",
    ("Memory Throughput", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("Memory [%]", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("Compute (SM) Throughput", "%"): f"sm__throughput{_ELAPSED}",
    ("Compute (SM) [%]", "%"): f"sm__throughput{_ELAPSED}",
    ("SM [%]", "%"): f"sm__throughput{_ELAPSED}",
    ("L1/TEX Cache Throughput", "%"): f"l1tex__throughput{_ACTIVE}",
    ("SOL L1/TEX Cache", "%"): f"l1tex__throughput{_ACTIVE}",
    ("L2 Cache Throughput", "%"): f"lts__throughput{_ELAPSED}",
    ("SOL L2 Cache", "%"): f"lts__throughput{_ELAPSED}",
    ("L2 Hit Rate", "%"): "lts__t_sector_hit_rate.pct",
    ("Executed Ipc Elapsed", "1"): "sm__inst_executed.avg.per_cycle_elapsed",
    ("Executed Ipc Active", "1"): "sm__inst_executed.avg.per_cycle_active",
    ("Issued Ipc Active", "1"): "sm__inst_issued.avg.per_cycle_active",
    ("Issue Slots Busy", "%"): f"sm__inst_issued{_ACTIVE}",
    ("Issued Warp Per Scheduler", "1"): "smsp__issue_active.avg.per_cycle_active",
    ("Eligible Warps Per Scheduler", "1"): "smsp__warps_eligible.avg.per_cycle_active",
    ("Theoretical Occupancy", "%"): "sm__maximum_warps_per_active_cycle_pct",
    ("Achieved Occupancy", "%"): f"sm__warps_active{_ACTIVE}",
}
_COUNTS = {
    *("", "inst", "cycle", "sector", "warp", "block", "sm", "thread", "request", "pass"),
    *("inst/cycle", "warp/cycle", "cluster", "register", "ratio", "thread/inst", "inst/warp"),
    *("cycle/instruction", "sector/request", "inst/block", "wave", "register/thread"),
}
_UNITS = {"%": ("%", 1.0)} | dict.fromkeys(_COUNTS, ("1", 1.0))
for _prefix, _size in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12)):
    _UNITS[f"{_prefix}byte"] = ("byte", _size)
    _UNITS[f"{_prefix}byte/second"] = _UNITS[f"{_prefix}byte/s"] = ("byte/s", _size)
    _UNITS[f"{_prefix}hz"] = _UNITS[f"{_prefix}cycle/second"] = ("hz", _size)
for _long, _short, _seconds in (
    ("nsecond", "ns", 1e-9), ("usecond", "us", 1e-6), ("msecond", "ms", 1e-3), ("second", "s", 1.0),
):  # fmt: skip
    _UNITS[_long] = _UNITS[_short] = ("s", _seconds)
    _UNITS[f"cycle/{_long}"] = _UNITS[f"cycle/{_short}"] = ("hz", 1 / _seconds)

_LAUNCH = ("Process ID", "ID", "Kernel Name", "Grid Size", "Block Size")
_IDENTITY = (*_LAUNCH, "Process Name", "Device")
_METRIC = ("Metric Name", "Metric Unit", "Metric Value")
_PROGRAM = re.compile(r"\s*\[(?P<process>\d+)\] (?P<program>.+)@\S+\s*$")
# Who pastes a text may lose the blanks before its first line, or gain some before each.
_HEADING = re.compile(
    r"\s*(?P<kernel>\S.*?)"
    r"( (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\))|, \d{4}-[A-Z][a-z]{2}-\d\d [\d:]+)"
    r"(, (Context|Stream|CC) [\d.]+|, Device (?P<gpu>\d+))*(, (?P<summed>Invocations \d+))?\s*$"
)
_DASHES = re.compile(r" *-+ +-+ +-+ *")
_AT_ONCE = 10_000  # rows of a text


def read(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """The launches of a page or a text, with the needed counters. Raises InputError."""
    facts.complaint = sheet.complaint
    if "Kernel Name" not in sheet.header:
        blocks = _text_blocks(sheet, facts)
    elif "Metric Name" in sheet.header:
        sheet.require(*_METRIC)
        kinds = dict.fromkeys([*_IDENTITY, *_METRIC], str) | {"Metric Value": float}
        least = sheet.header.index("Metric Value") + 1  # rules stand behind it
        blocks = sheet.blocks(kinds, together=_LAUNCH, least=least)
    else:
        yield from _raw_launches(sheet, facts, needed)
        return
    seen: set[str] = set()
    for block in blocks:
        yield _launches_of_rows(block, facts, needed, seen)


def _raw_launches(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each row of the raw page, scaled by its row of units."""
    names = [name for name in sheet.header if name in {*needed, *_ALWAYS}]
    first = next(sheet.blocks(dict.fromkeys([*_LAUNCH, *names], str)), None)
    if first is None:
        return
    cells = {name: first.cells(name)[0] for name in first.columns}
    if cells["ID"] or cells["Kernel Name"]:
        raise InputError(
            f"{first.where(0)}: the row of units is missing below the header; use the file as ncu "
            "--page raw --csv writes it"
        )
    scales = {name: _scale(name, cells[name]) for name in names}
    kinds: dict[str, type] = {**dict.fromkeys([*_IDENTITY, _NAME], str), "ID": int}
    kinds |= dict.fromkeys(names, float)
    seen: set[str] = set()
    for block in sheet.blocks(kinds, skipped=1):
        if _NAME in block:
            facts.note("device_name", block.cells(_NAME))
        metrics = {name: _scaled(block, name, scale) for name, scale in scales.items()}
        yield _launches(block, metrics, np.ones(len(block), np.bool_), facts, seen)


def _text_blocks(sheet: Sheet, facts: Facts) -> Iterator[Block]:
    """The launches that a text names as rows of the details page."""
    rows: list[tuple[int, tuple[str, ...]]] = []
    for line, row in _text_rows(sheet, facts):
        if not row[-1] and len(rows) > _AT_ONCE:
            yield _block(sheet, rows)
            rows = []
        rows.append((line, row))
    if rows:
        yield _block(sheet, rows)


def _text_rows(sheet: Sheet, facts: Facts) -> Iterator[tuple[int, tuple[str, ...]]]:
    """A launch's row without a metric, then one for each of its metrics, with their lines.

    Rows of dashes stand around a section's table and below its header; text below it is a rule's.
    """
    process, count = "", 0
    cells: list[slice] = []
    launch: tuple[str, ...] = ()
    for line, text in sheet.lines():
        if match := _PROGRAM.match(text):
            process, facts.application = match["process"], facts.application or match["program"]
        elif match := _HEADING.match(text):
            if match["summed"]:
                raise InputError(
                    f"{sheet.path}: row {line}: a summary of kernels is not read; export the "
                    "launches: ncu --import REPORT --page raw --csv > run.csv"
                )
            sizes = (match["grid"] or "", match["block"] or "")
            launch = (process, str(count), match["kernel"], *sizes, match["gpu"] or "")
            count, cells = count + 1, []
            yield line, (*launch, "", "", "")
        elif _DASHES.fullmatch(text):
            cells = [slice(*border.span()) for border in re.finditer("-+", text)]
        elif not text.strip() or text.lstrip().startswith("Section: "):
            cells = []
        elif launch and cells:
            name, unit, value = (text[cell].strip() for cell in cells)
            if name:
                yield line, (*launch, name, unit, value)


def _block(sheet: Sheet, rows: Sequence[tuple[int, tuple[str, ...]]]) -> Block:
    lines, cells = zip(*rows, strict=True)
    columns = zip((*_LAUNCH, "Device", *_METRIC), zip(*cells, strict=True), strict=True)
    return Block(
        sheet.path, np.array(lines, np.intp), {name: labels(column) for name, column in columns}
    )


def _launches_of_rows(
    block: Block, facts: Facts, needed: Collection[str], seen: set[str]
) -> Launches:
    """Launches of which each has a row for every metric, one below the other."""
    first, runs = block.first_of_runs(*(name for name in _LAUNCH if name in block))
    names, units = block.text("Metric Name"), block.text("Metric Unit")
    pairs, pair_of_row = np.unique(
        names.codes * len(units.texts) + units.codes, return_inverse=True
    )
    read: list[tuple[bool, str, Indices, float]] = []  # for each pair of a name and a unit
    for n, pair in enumerate(pairs.tolist()):
        name, unit = names.texts[pair // len(units.texts)], units.texts[pair % len(units.texts)]
        is_shown = name not in needed and name not in _ALWAYS
        metric = _SHOWN.get((name, _unit(unit)[0])) if is_shown else name
        if metric or name == _NAME:
            read.append((is_shown, metric or _NAME, np.flatnonzero(pair_of_row == n),
                         _scale(name, unit)))  # fmt: skip
    metrics: dict[str, Floats] = {}
    has_rows = np.zeros(len(first), np.bool_)
    for _, metric, at, scale in sorted(read, key=lambda one: one[0]):
        rows = block.take(at)
        if metric == _NAME:
            facts.note("device_name", rows.cells("Metric Value"))
            continue
        values = _scaled(rows, "Metric Value", scale)
        has_rows[runs[at]] = True
        column = metrics.setdefault(metric, np.full(len(first), math.nan))
        new = np.flatnonzero(~np.isnan(values) & np.isnan(column[runs[at]]))[::-1]
        column[runs[at[new]]] = values[new]  # the first of several rows counts
    return _launches(block.take(first), metrics, has_rows, facts, seen)


def _launches(
    block: Block, metrics: dict[str, Floats], has_rows: Mask, facts: Facts, seen: set[str]
) -> Launches:
    """Launches, a row each, with their metrics.

    has_rows: which of them have metrics at all. A launch whose metrics all are missing has failed,
    and its time is 0. seen: the launches that came before.
    """
    ids = _new_ids(block, seen)
    unknown = np.full(len(block), math.nan)
    has_failed = has_rows & np.all([np.isnan(one) for one in metrics.values()], axis=0)
    time_s = metrics.pop(_TIME, unknown)
    ran = np.flatnonzero(~has_failed)
    sizes = []
    for column, metric in _SIZES.items():
        size = metrics.get(metric, unknown).copy()
        if column in block:
            read = block.take(ran).parsed(column, product)
            size[ran] = np.where(np.isnan(read), size[ran], read)
        sizes.append(size)
    cycles = _first(metrics, _CYCLES, unknown)
    engine_hz = _first({**metrics, "": cycles / time_s}, (*_ENGINES, ""), unknown)
    facts.note("engine_mhz", np.round(engine_hz / 1e6, 3))
    facts.note("memory_mhz", np.round(metrics.get(_MEMORY, unknown) / 1e6, 3))
    facts.note("memory_limit_mhz", _first(metrics, _MEMORY_LIMITS_KHZ, unknown) / 1e3)
    facts.note("cu_count", _first(metrics, _SM_COUNTS, unknown))
    if "Process Name" in block and not facts.application and len(block):
        facts.application = block.cells("Process Name")[0]
    return Launches(
        block.lines,
        block.text("Kernel Name"),
        np.where(has_failed, 0.0, time_s),
        sizes[0],
        sizes[1],
        metrics,
        gpus=block.text("Device") if "Device" in block else None,
        ids=ids,
    )


def _new_ids(block: Block, seen: set[str]) -> list[str]:
    """A name of each launch. Raises InputError where one came before: its rows stand apart."""
    numbers = zip(block.cells("Process ID"), block.whole_numbers("ID"), strict=True)
    ids = [f"{process}:{number}" for process, number in numbers]
    new = set(ids)
    if len(new) < len(ids) or not seen.isdisjoint(new):
        row = next(n for n, launch in enumerate(ids) if launch in seen or launch in ids[:n])
        raise InputError(
            f"{block.where(row)}: launch {ids[row].partition(':')[2]} appears twice; give "
            "the page of one report as ncu writes it, unsorted, one report per file"
        )
    seen |= new
    return ids


def _scaled(block: Block, column: str, scale: float) -> Floats:
    """A column of metrics in seconds, bytes, hertz, percent or counts; NaN where one is missing.

    scale: NaN where the unit is not known.
    """
    values = block.numbers(column, _metric)
    is_known = ~np.isnan(values)
    if math.isnan(scale) and is_known.any():
        raise InputError(
            f"{block.where(int(np.argmax(is_known)), column)}: has an unrecognised unit; "
            "export with --print-units base"
        )
    return values * scale


def _metric(text: str) -> str:
    """A value: '(!) nan' of a failed launch; behind 'value (a; b; c)' stand its instances."""
    return text.removeprefix("(!)").strip().partition(" (")[0]


def _unit(unit: str) -> tuple[str, float]:
    """Dimension ('s', 'byte', 'byte/s', 'hz', '%', '1') and scale of a unit; NaN if not known."""
    is_ratio = unit.startswith(("byte/", "register/"))
    return _UNITS.get(unit.casefold(), ("1", 1.0) if is_ratio else ("", math.nan))


def _scale(metric: str, unit: str) -> float:
    """Scale of a metric's unit; NaN if that is not known, or a time or clock has another's."""
    dimension, scale = _unit(unit)
    return scale if dimension == _DIMENSIONS.get(metric, dimension) else math.nan


def _first(metrics: dict[str, Floats], names: tuple[str, ...], unknown: Floats) -> Floats:
    """The first of some metrics that a launch has and that is positive; NaN without any."""
    first = unknown
    for name in reversed(names):
        if name in metrics:
            first = np.where(metrics[name] > 0, metrics[name], first)
    return first
