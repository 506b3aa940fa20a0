"""Nsight Compute: its CSV pages, details and raw, and the text that it prints without --csv.

The details page has a row for each launch and metric, the raw page one for each launch and its
units in the row below the header. In the text a launch begins with a line of its own, and its
sections are tables whose borders are rows of dashes. Metrics go by raw names, as the formulas do:
what sections show by another name gets its raw one, unless the file has that too.
"""

import math
import re
from collections.abc import Collection, Iterator
from functools import partial

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.errors import InputError
from mlscale.readers.files import Block, Form, Labels, Sheet, counter, product
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
    *(_TIME, *_ENGINES, _MEMORY, *_MEMORY_LIMITS_KHZ, *_CYCLES, *_SM_COUNTS, *_SIZES.values()),
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
for _prefix, _scale in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12)):
    # Prefixes are decimal: ncu shows 393216 bytes as 393.22 Kbyte.
    _UNITS[f"{_prefix}byte"] = ("byte", _scale)
    _UNITS[f"{_prefix}byte/second"] = _UNITS[f"{_prefix}byte/s"] = ("byte/s", _scale)
    _UNITS[f"{_prefix}hz"] = _UNITS[f"{_prefix}cycle/second"] = ("hz", _scale)
for _long, _short, _scale in (
    ("nsecond", "ns", 1e-9), ("usecond", "us", 1e-6), ("msecond", "ms", 1e-3), ("second", "s", 1.0),
):  # fmt: skip
    _UNITS[_long] = _UNITS[_short] = ("s", _scale)
    _UNITS[f"cycle/{_long}"] = _UNITS[f"cycle/{_short}"] = ("hz", 1 / _scale)

_LAUNCH = ("Process ID", "ID", "Kernel Name", "Grid Size", "Block Size")
_OF_LAUNCH = (*_LAUNCH, "Process Name", "Device")
_METRIC = ("Metric Name", "Metric Unit", "Metric Value")
_SUMMARY = "is not read; export the launches: ncu --import REPORT --page raw --csv > run.csv"
_PROGRAM = re.compile(r"\s*\[(?P<process>\d+)\] (?P<program>.+)@\S+\s*$")
# Who pastes a text may lose the blanks before its first line, or gain some before each.
_HEADING = re.compile(
    r"\s*(?P<kernel>\S.*?)"
    r"( (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\))|, \d{4}-[A-Z][a-z]{2}-\d\d [\d:]+)"
    r"(, (Context|Stream|CC) [\d.]+|, Device (?P<gpu>\d+))*(, (?P<summed>Invocations \d+))?\s*$"
)
_DASHES = re.compile(r" *-+ +-+ +-+ *")
_AT_ONCE = 10_000  # rows of a text


def read_details(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each ID of the details page, whose rows stand together. Raises InputError."""
    facts.complaint = sheet.complaint
    seen: set[str] = set()
    for block in sheet.blocks([*_OF_LAUNCH, *_METRIC], together=_LAUNCH):
        first, _ = block.first_of_runs(*(name for name in _LAUNCH if name in block))
        _check_new(block.take(first), seen)
        yield _of_rows(block, facts, needed)


def read_raw(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each row of the raw page, scaled by its row of units. Raises InputError."""
    facts.complaint, units, seen = sheet.complaint, dict[str, str](), set[str]()
    names = [name for name in sheet.header if name in {*needed, *_ALWAYS}]
    for block in sheet.blocks([*_OF_LAUNCH, *names, _NAME]):
        launches = block
        if not units:
            first = {name: column[0] for name, column in block.take(slice(1)).cells().items()}
            if first["ID"] or first["Kernel Name"]:
                raise InputError(
                    f"{block.where(0)}: the row of units is missing below the header; use the "
                    "file as ncu --page raw --csv writes it"
                )
            units = first
            launches = block.take(slice(1, None))
        _check_new(launches, seen)
        if _NAME in launches:
            _note(facts, "device_name", launches.text(_NAME))
        metrics = {
            name: _scaled(launches, name, np.full(len(launches), _factor(name, units[name])))
            for name in names
        }
        yield _launches(launches, metrics, np.ones(len(launches), np.bool_), facts)


def read_text(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]:
    """A launch for each one that the text names. Raises InputError."""
    facts.complaint = sheet.complaint
    rows: list[tuple[int, tuple[str, ...]]] = []
    for line, row in _text_rows(sheet, facts):
        if not row[-1] and len(rows) > _AT_ONCE:
            yield _of_rows(_block(sheet, rows), facts, needed)
            rows = []
        rows.append((line, row))
    if rows:
        yield _of_rows(_block(sheet, rows), facts, needed)


def _text_rows(sheet: Sheet, facts: Facts) -> Iterator[tuple[int, tuple[str, ...]]]:
    """A launch's row without a metric, then one for each of its metrics, with their lines.

    Rows of dashes stand around a section's table and below its header; text below it is a rule's.
    """
    process, count = "", 0
    cells: list[slice] = []  # of the table that is being read
    launch: tuple[str, ...] = ()
    for line, text in sheet.lines():
        if match := _PROGRAM.match(text):
            process, facts.application = match["process"], facts.application or match["program"]
        elif match := _HEADING.match(text):
            if match["summed"]:
                raise InputError(f"{sheet.path}: row {line}: a summary of kernels {_SUMMARY}")
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


def _block(sheet: Sheet, rows: list[tuple[int, tuple[str, ...]]]) -> Block:
    """Rows of a text as those of the details page."""
    lines, cells = zip(*rows, strict=True)
    columns = zip((*_LAUNCH, "Device", *_METRIC), zip(*cells, strict=True), strict=True)
    of_names = {name: Labels.of(column) for name, column in columns}
    return Block(sheet.path, np.array(lines, np.intp), of_names)


def _of_rows(block: Block, facts: Facts, needed: Collection[str]) -> Launches:
    """Launches of which each has a row for every metric, one below the other. InputError."""
    first, runs = block.first_of_runs(*(name for name in _LAUNCH if name in block))
    names, units = block.text("Metric Name"), block.text("Metric Unit")
    pairs, pair_of_row = np.unique(
        names.codes * len(units.texts) + units.codes, return_inverse=True
    )
    wanted: list[tuple[str, bool]] = []  # of each pair of a name and a unit
    scales = []
    for pair in pairs.tolist():
        at_name, at_unit = divmod(pair, len(units.texts))
        name, unit = names.texts[at_name], units.texts[at_unit]
        is_raw = name in needed or name in _ALWAYS
        wanted.append((name if is_raw else _SHOWN.get((name, _unit(unit)[0]), ""), is_raw))
        scales.append(_factor(name, unit))
        if name == _NAME:
            rows = block.take(np.flatnonzero(pair_of_row == len(scales) - 1))
            _note(facts, "device_name", rows.text("Metric Value"))
    is_read = np.array([bool(name) for name, _ in wanted], np.bool_)[pair_of_row]
    rows = block.take(np.flatnonzero(is_read))
    pair_of_row, runs = pair_of_row[is_read], runs[is_read]
    values = _scaled(rows, "Metric Value", np.array(scales)[pair_of_row])
    metrics: dict[str, Floats] = {}
    for name, is_raw in sorted(set(wanted) - {("", False)}, key=lambda one: one[1]):
        is_one = np.array([one == (name, is_raw) for one in wanted], np.bool_)[pair_of_row]
        at = np.flatnonzero(is_one & ~np.isnan(values))[::-1]  # of several rows the first counts
        of_launches = metrics.setdefault(name, np.full(len(first), math.nan))
        of_launches[runs[at]] = values[at]
    has_rows = np.bincount(runs, minlength=len(first)) > 0
    return _launches(block.take(first), metrics, has_rows, facts)


def _launches(block: Block, metrics: dict[str, Floats], has_rows: Mask, facts: Facts) -> Launches:
    """Launches, a row each, with their metrics. Raises InputError.

    has_rows: which of them have metrics at all. A launch whose metrics all are missing has failed,
    and its time is 0.
    """
    unknown = np.full(len(block), math.nan)
    has_failed = has_rows & np.all([np.isnan(one) for one in metrics.values()], axis=0)
    time_s = metrics.pop(_TIME, unknown)
    sizes = []
    ran = np.flatnonzero(~has_failed)
    with_sizes = block if len(ran) == len(block) else block.take(ran)
    for column, metric in _SIZES.items():
        size = metrics.get(metric, unknown).copy()
        if column in block:
            of_column = with_sizes.numbers(column, product)
            size[ran] = np.where(np.isnan(of_column), size[ran], of_column)
        sizes.append(size)
    cycles = _first(metrics, _CYCLES, unknown)
    engine_hz = _first({**metrics, "": cycles / time_s}, (*_ENGINES, ""), unknown)
    _note_numbers(facts, "engine_mhz", np.round(engine_hz / 1e6, 3))
    _note_numbers(facts, "memory_mhz", np.round(metrics.get(_MEMORY, unknown) / 1e6, 3))
    _note_numbers(facts, "memory_limit_mhz", _first(metrics, _MEMORY_LIMITS_KHZ, unknown) / 1e3)
    _note_numbers(facts, "cu_count", _first(metrics, _SM_COUNTS, unknown))
    if "Process Name" in block and not facts.application and len(block):
        programs = block.text("Process Name")
        facts.application = programs.texts[programs.codes[0]]
    return Launches(
        block.lines,
        block.text("Kernel Name"),
        np.where(has_failed, 0.0, time_s),
        sizes[0],
        sizes[1],
        metrics,
        gpus=block.text("Device") if "Device" in block else None,
        ids=partial(_ids, block),
    )


def _ids(block: Block) -> list[str]:
    processes, numbers = (block.text(name).cells() for name in ("Process ID", "ID"))
    return [f"{process}:{number}" for process, number in zip(processes, numbers, strict=True)]


def _check_new(launches: Block, seen: set[str]) -> None:
    """Raise InputError where a launch came before, as its rows no longer stand together."""
    for row, launch in enumerate(_ids(launches)):
        if launch in seen:
            raise InputError(
                f"{launches.where(row)}: launch {launch.partition(':')[2]} comes again; give one "
                "report's page as ncu writes it, not sorted, and not several in one file"
            )
        seen.add(launch)


def _scaled(block: Block, column: str, scales: Floats) -> Floats:
    """A column of metrics in seconds, bytes, hertz, percent or counts; NaN where one is missing.

    scales: of each row, NaN where its unit is not known. Raises InputError.
    """
    values = block.numbers(column, _metric)
    is_unknown = np.isnan(scales) & ~np.isnan(values)
    if is_unknown.any():
        row = int(np.argmax(is_unknown))
        raise InputError(
            f"{block.where(row, column)}: has a unit that mlscale does not know; export with "
            "--print-units base"
        )
    return values * scales


def _metric(text: str, where: str) -> float:
    """A value: '(!) nan' of a failed launch; behind 'value (a; b; c)' stand its instances."""
    return counter(text.removeprefix("(!)").strip().partition(" (")[0], where)


def _unit(unit: str) -> tuple[str, float]:
    """Dimension ('s', 'byte', 'byte/s', 'hz', '%', '1') and scale of a unit; NaN if not known."""
    is_ratio = unit.startswith(("byte/", "register/"))
    return _UNITS.get(unit.casefold(), ("1", 1.0) if is_ratio else ("", math.nan))


def _factor(metric: str, unit: str) -> float:
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


def _note(facts: Facts, fact: str, labels: Labels) -> None:
    """Count texts in that the launches say."""
    facts.seen[fact].update(filter(None, labels.cells()))


def _note_numbers(facts: Facts, fact: str, values: Floats) -> None:
    """Count numbers in that the launches say."""
    distinct, counts = np.unique(values[values > 0], return_counts=True)
    for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        facts.seen[fact][value] += count


FORMS = (
    Form(
        "ncu", "Nsight Compute, details page", read_details, (*_LAUNCH[:3], *_METRIC),
        every_row_quoted=True, shortest="Metric Value",
    ),
    Form(
        "ncu", "Nsight Compute, raw page", read_raw, _LAUNCH[:3],
        lacks=("Metric Name",), every_row_quoted=True,
    ),
    Form("ncu", "Nsight Compute, text", read_text, line=re.compile(
        rf"{_PROGRAM.pattern}|\s*\S.* \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), (Context|Device) \d"
    )),
    Form(
        "ncu", "Nsight Compute's summary of kernels", None,
        ("Kernel Name", "Invocations", "Metric Name", "Average"), instead=_SUMMARY,
    ),
)  # fmt: skip
