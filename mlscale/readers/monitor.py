"""Monitors' logs, sampled while a program runs: nvidia-smi, DCGM, rocm-smi, amd-smi, own scripts.

Written by `nvidia-smi --query-gpu=timestamp,index,power.draw,... --format=csv -lms 100`,
`nvidia-smi dmon -o DT`, `dcgmi dmon -e ...`, a range query of Prometheus for dcgm-exporter's
metrics, `rocm-smi --csv`, `amd-smi metric --csv`, `amd-smi monitor --csv`, or a script of one's own
with their names for its columns (docs/howto/nvidia-smi.md).

To watch for: several GPUs in turn, told apart by an index; parts of a GPU (MIG, partitions), which
have the whole one's clock and power, and are passed over; shares in percent or from 0 to 1; headers
that come again; logs without time stamps.

Sources of names and units: nvidia-smi's manual page and --help-query-gpu; DCGM's dcgm_fields.h; the
HTTP API of Prometheus (range queries); logs that rocm-smi and amd-smi wrote.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.checks import check
from mlscale.data.devices import find_device
from mlscale.data.logs import RATED_UNITS, SHARES
from mlscale.errors import InputError, warn
from mlscale.files import parse_json_object, read_bytes
from mlscale.readers.columns import Block, Labels, labels
from mlscale.readers.files import Sheet, open_file
from mlscale.readers.registry import Kind

FACTS = "# mlscale measure: "  # begins the line of `mlscale measure` above its header, in JSON
_BLANK = 0x7FFFFFF0  # and all above: DCGM's missing values, of its dcgm_structs.h
_LATEST_S = 1e10  # since 1970, in the year 2286
_ONE_GPU = 0.1  # of the usual time between samples; GPUs of one tick follow each other closer

# fmt: off
# By our name those of all tools: nvidia-smi's query and dmon (with --gpm-metrics), dcgmi's and
# dcgm-exporter's, rocm-smi's, amd-smi's metric and monitor. The first that is not missing counts.
_NAMES = {
    "power_w": ("power.draw.instant", "power.draw", "power.draw.average", "pwr", "POWER", "POWINST",
                "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE_INSTANT",
                "Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)",
                "socket_power", "power_usage"),
    "energy_j": ("total_energy",),
    "power_cap_w": ("enforced.power.limit", "power.limit", "power_limit", "EPLMT",
                    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT",
                    "Max Graphics Package Power (W)"),
    "power_limit_w": ("power.limit", "DCGM_FI_DEV_POWER_MGMT_LIMIT"),
    "engine_mhz": ("clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr", "pclk",
                   "SMCLK", "DCGM_FI_DEV_SM_CLOCK", "sclk clock speed:", "gfx_clk"),
    "memory_mhz": ("clocks.current.memory", "clocks.mem", "mclk", "MMCLK", "DCGM_FI_DEV_MEM_CLOCK",
                   "mclk clock speed:", "mem_0_clk", "mem_clock"),
    "engine_mhz_requested": ("clocks.applications.graphics", "clocks.applications.gr", "SACLK",
                             "DCGM_FI_DEV_APP_SM_CLOCK"),
    "gr_engine_active": ("gract", "GRACT", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
    "sm_active": ("smutil", "SMACT", "DCGM_FI_PROF_SM_ACTIVE"),
    "sm_occupancy": ("smocc", "SMOCC", "DCGM_FI_PROF_SM_OCCUPANCY"),
    "tensor_active": ("mmaact", "TENSO", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    "dram_active": ("dram", "DRAMA", "DCGM_FI_PROF_DRAM_ACTIVE"),
    "fp64_active": ("fp64", "FP64A", "DCGM_FI_PROF_PIPE_FP64_ACTIVE"),
    "fp32_active": ("fp32", "FP32A", "DCGM_FI_PROF_PIPE_FP32_ACTIVE"),
    "fp16_active": ("fp16", "FP16A", "DCGM_FI_PROF_PIPE_FP16_ACTIVE"),
    "gpu_utilisation": ("utilization.gpu", "sm", "GPUTL", "DCGM_FI_DEV_GPU_UTIL", "GPU use (%)",
                        "gfx_activity", "gfx"),
    "memory_copy_utilisation": ("utilization.memory", "mem", "MCUTL", "DCGM_FI_DEV_MEM_COPY_UTIL",
                                "GPU Memory Read/Write Activity (%)", "GPU memory use (%)",
                                "umc_activity"),
}
_PERCENT = {*_NAMES["gpu_utilisation"], *_NAMES["memory_copy_utilisation"],
            "gract", "smutil", "smocc", "mmaact", "dram", "fp64", "fp32", "fp16"}
_READ = {"timestamp", "epoch", *(name for names in _NAMES.values() for name in names)}
_METRICS = {name for names in _NAMES.values() for name in names if name.startswith("DCGM_FI_")}
_INDEX = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "gpu", "device", "Entity")
_GPU_NAMES = ("name", "gpu_name", "Device Name", "Card Series", "Card series", "Card Model",
              "Card model")
# fmt: on
_UNIT = re.compile(r"\s*(W|%|M[Hh]z)$")


@dataclass(frozen=True, eq=False)
class Samples:
    """All samples of one GPU in one log.

    Attributes:
        source: the file.
        kind: what it is.
        gpu: the index of the GPU, as the log has it.
        name: of the GPU; '' where the log does not say.
        seconds: (S,) when each sample was taken [s], ascending; None without time stamps.
        columns: (S,) each, NaN where missing, none missing throughout: power_w, power_cap_w (the
            board's limit, as it is enforced), power_limit_w (as it was set) [W], energy_j (a
            counter) [J], engine_mhz, memory_mhz, engine_mhz_requested [MHz], and shares
            from 0 to 1 by the names of SHARES.
        facts: what `mlscale measure` says of the run, numbers by name: engine_mhz that it set,
            power_limit_w, skip_s that it left out at the beginning, work_per_s of a program that
            goes on, log_time_sd between repeated runs.
    """

    source: str
    kind: Kind
    gpu: str
    name: str
    seconds: Floats | None
    columns: dict[str, Floats]
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def time_ms(self) -> float | None:
        """The time of RATED_UNITS of work, where the log says how much is done in a second."""
        rate = self.facts.get("work_per_s")
        return 1e3 * RATED_UNITS / rate if rate else None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __str__(self) -> str:
        return f"{self.source}, GPU {self.gpu}"


def read_log(path: Path) -> list[Samples]:
    """The samples of each GPU in a log. Raises InputError."""
    sheet = open_file(path)
    if sheet is None or not sheet.kind.is_log:
        raise InputError(
            f"{path}: is no monitor's log that mlscale knows; 'mlscale import --help' has commands "
            "that write one, and a CSV of your own needs nvidia-smi's names of columns"
        )
    return read(sheet)


def read(sheet: Sheet) -> list[Samples]:
    """The samples of each GPU in a log. Raises InputError."""
    if sheet.kind.json:
        return _read_prometheus(sheet)
    if sheet.kind.title == "dcgmi dmon":
        return _samples(sheet, _rows(sheet, _dcgmi_cells), None)
    if sheet.kind.title == "nvidia-smi dmon":
        block = _rows(sheet, _dmon_cells)
        return _samples(sheet, block, _dmon_seconds(block) if "Time" in block else None)
    block = _rows(sheet, _csv_cells)
    stamp = next((name for name in ("timestamp", "epoch") if name in block), "")
    seconds = block.parsed(stamp, _moment) if stamp else None
    if seconds is not None and len(block) > 3 and not any(name in block for name in _INDEX):
        short_s, usual_s = np.quantile(np.diff(seconds), (0.4, 0.9))
        if short_s < _ONE_GPU * usual_s:
            raise InputError(
                f"{sheet.path}: is of several GPUs that cannot be told apart, or its time stamps "
                "are too coarse; record again with 'index' and times in milliseconds"
            )
    if seconds is None and len(block) > 1 and not any(name in block for name in _INDEX):
        warn(
            "M01",
            f"{sheet.path}: has neither 'index' nor times: all rows count as samples of one GPU; "
            "if there are more, record again with both",
        )
    return _samples(sheet, block, seconds)


def _dmon_seconds(block: Block) -> Floats:
    """The times of dmon's rows. -o T has no date: past midnight a time is before the last one."""
    times = block.cells("Time")
    days = block.cells("Date") if "Date" in block else ["19700101"] * len(times)
    stamps = [
        f"{day[:4]}-{day[4:6]}-{day[6:]} {time}" for day, time in zip(days, times, strict=True)
    ]
    stamped = Block(block.path, block.lines, {"Time": labels(stamps)})
    seconds = stamped.parsed("Time", _moment)
    return seconds + 86400.0 * np.cumsum(np.diff(seconds, prepend=seconds[:1]) < 0)


def _read_prometheus(sheet: Sheet) -> list[Samples]:
    """Prometheus' answer to a query of dcgm-exporter's metrics over a range of time.

    Series of one GPU and metric, as of several pods, are one; those of MIG instances are passed
    over. Raises InputError where the series are of several hosts.
    """
    answer = parse_json_object(read_bytes(sheet.path), str(sheet.path))
    moments: dict[tuple[str, float], dict[str, str]] = {}
    hosts: dict[str, None] = {}
    try:
        for one in answer["data"]["result"]:
            series = one["metric"]
            metric = series.get("__name__")
            if metric not in _METRICS or series.get("GPU_I_ID"):
                continue
            hosts[str(series.get("Hostname") or series.get("instance", ""))] = None
            gpu = str(series.get("gpu") or series.get("UUID", "0"))
            name = str(series.get("modelName", ""))
            for seconds, text in one["values"] if "values" in one else [one["value"]]:
                cells = moments.setdefault((gpu, float(seconds)), {"index": gpu, "name": name})
                cells.setdefault(metric, str(text))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{sheet.path}: is no answer of Prometheus to a query: data.result is not a list of "
            "{'metric': {…}, 'values': [[time, 'value'], …]}"
        ) from None
    if len(hosts) > 1:
        raise InputError(f"{sheet.path}: is of the hosts {', '.join(hosts)}; ask for one of them")
    columns = {
        name: labels([cells.get(name, "") for cells in moments.values()])
        for name in dict.fromkeys(name for cells in moments.values() for name in cells)
    }
    block = Block(sheet.path, np.arange(1, 1 + len(moments)), columns)
    return _samples(sheet, block, np.array([seconds for _, seconds in moments]))


def _rows(sheet: Sheet, cells_of: Callable[[str], list[str] | None]) -> Block:
    """All rows by the names of the header, without units; the header may come again.

    cells_of: the cells of a line; None of one that is no row. Lines of one cell, as a tool's
    warnings, and a last line that is cut off are left out. Raises InputError on another row that is
    not as long as the header.
    """
    texts = [(line, text) for line, text in sheet.lines() if text.strip()]
    (_, header), *rows = [
        (line, cells) for line, text in texts if (cells := cells_of(text)) is not None
    ]
    width = len(header)
    rows = [(line, row) for line, row in rows if row != header and (len(row) > 1 or width == 1)]
    if rows and rows[-1][0] == texts[-1][0] and len(rows[-1][1]) < width:
        line, _ = rows.pop()
        warn("T09", f"{sheet.path}: row {line}: the last line is cut off and left out")
    for line, row in rows:
        if len(row) != width:
            raise InputError(
                f"{sheet.path}: row {line}: has {len(row)} fields, the header has {width}; it says "
                f"'{' '.join(row)[:60]}': take it out if it is no sample"
            )
    columns: dict[str, Labels] = {}
    for place, title in enumerate(header):
        name, _, unit = title.partition("[")
        if name.strip() in _READ and unit.lower() not in ("", "w]", "mhz]", "%]", "s]", "j]"):
            raise InputError(f"{sheet.path}: '{title}' is not in W, MHz, % or s; convert it")
        column = labels([row[place] for _, row in rows])
        same = columns.setdefault(name.strip(), column)
        if name.strip() in _READ and same.cells() != column.cells():
            raise InputError(
                f"{sheet.path}: column '{title}' is there twice, with other values; keep one"
            )
    return Block(sheet.path, np.array([line for line, _ in rows], np.intp), columns)


def _csv_cells(text: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([text], skipinitialspace=True))]
    except csv.Error:  # a field longer than any
        return []


def _dmon_cells(text: str) -> list[str] | None:
    """The names behind '#', or the values; None of the line of units. CSV has commas between."""
    words = text.replace("#", " ").replace(",", " ").split()
    return None if text.lstrip().startswith("#") and "gpu" not in words else words


def _dcgmi_cells(text: str) -> list[str] | None:
    """The names from '#Entity' on, and the values of 'GPU 0', each with the entity as one cell."""
    words = text.replace("#", " ", 1).split()
    is_of_gpu = re.match(r"\s*GPU +\d", text)
    return words if words[0] == "Entity" else words[1:] if is_of_gpu else None


def _reading(text: str) -> str:
    """The number in a cell such as '24.53 W', '(300Mhz)' or '12'; '' of '[N/A]' and the like."""
    cell = text.strip("() +")
    # '[Not Supported]'; 'N/A (Secondary die)' of an MI250; DCGM's blank of 64 bits
    is_missing = cell.startswith(("[", "N/A", "92233720368547757"))
    return "" if is_missing else _UNIT.sub("", cell)


def _moment(text: str) -> float:
    """Seconds since 1970, of a number, nvidia-smi's own form or ISO 8601."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text.replace("/", "-"))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            seconds = math.nan
    if not 0 <= seconds < _LATEST_S:
        raise InputError(f"'{text[:40]}' is no time such as 2024/03/29 11:16:49.355, nor seconds")
    return seconds


def _samples(sheet: Sheet, block: Block, seconds: Floats | None) -> list[Samples]:
    """The samples of each GPU, in the order of their time. Raises InputError without any."""
    indices = next((block.cells(name) for name in _INDEX if name in block), ["0"] * len(block))
    gpus = np.array([cell.removeprefix("card") for cell in indices], np.str_)
    is_whole = _are_whole_gpus(block, gpus.tolist())
    if not is_whole.any():
        raise InputError(
            f"{sheet.path}: is of {sheet.kind.title} but has no samples of a whole GPU; MIG "
            "instances are not read, nor are other parts, nor metrics without their names"
        )
    values, facts = _readings(sheet, block), _facts(sheet)
    logs = []
    for gpu in sorted(set(gpus[is_whole].tolist()), key=lambda gpu: (len(gpu), gpu)):
        rows = np.flatnonzero(is_whole & (gpus == gpu))
        times = None
        if seconds is not None:
            rows = rows[np.argsort(seconds[rows], kind="stable")]
            times = seconds[rows]
            times = None if len(times) > 1 and times[0] == times[-1] else times
        named = [block.cells(name)[rows[0]] for name in _GPU_NAMES if name in block]
        name = next(filter(find_device, named), next(filter(None, named), ""))
        columns = {ours: column[rows] for ours, column in values.items()}
        columns = {ours: column for ours, column in columns.items() if not np.isnan(column).all()}
        logs.append(Samples(str(sheet.path), sheet.kind, gpu, name, times, columns, facts))
    return logs


def _facts(sheet: Sheet) -> dict[str, float]:
    """The numbers in the line of `mlscale measure` above a header. Raises InputError."""
    if sheet.header_line == 1:
        return {}
    with sheet.path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    if not first.startswith(FACTS):
        return {}
    told = parse_json_object(first.removeprefix(FACTS), f"{sheet.path}: row 1")
    numbers = {name: fact for name, fact in told.items() if isinstance(fact, int | float)}
    return {name: float(fact) for name, fact in numbers.items() if 0 < fact < math.inf}


def _readings(sheet: Sheet, block: Block) -> dict[str, Floats]:
    """The columns by our names, of several names the first that is not missing."""
    values: dict[str, Floats] = {}
    dies = [name for name in block.columns if re.fullmatch(r"gfx_\d+_clk", name)]
    if dies:  # amd-smi's, whose mean is the GPU's
        clocks = np.array([block.numbers(die, _reading) for die in dies])
        known = ~np.isnan(clocks)
        means = np.nansum(clocks, axis=0) / np.maximum(known.sum(axis=0), 1)
        values["engine_mhz"] = np.where(known.any(axis=0), means, np.nan)
    for ours, names in _NAMES.items():
        for theirs in (name for name in names if name in block):
            read = block.numbers(theirs, _reading)
            if sheet.kind.tool == "dcgm":
                read = np.where(read < _BLANK, read, math.nan)
            read = read * (0.01 if theirs in _PERCENT else 1.0)
            if ours in SHARES and not np.isnan(read).all():
                largest = int(np.nanargmax(read))
                check("value", block.where(largest, theirs), None, "share", read[largest])
            best = values.setdefault(ours, read)
            values[ours] = np.where(np.isnan(best), read, best)
    return values


def _are_whole_gpus(block: Block, gpus: Sequence[str]) -> Mask:
    """Which rows are not of a part of a GPU, as MIG (NVIDIA) or a partition (AMD) makes them."""
    are_whole = np.ones(len(block), np.bool_)
    if "mig.mode.current" in block:  # nvidia-smi's query
        are_whole &= [mode != "Enabled" for mode in block.cells("mig.mode.current")]
    if "mig" in block:  # its dmon
        are_whole &= [not instance.isdigit() for instance in block.cells("mig")]
    if "xcp" in block:  # amd-smi's monitor
        parts = Counter(gpu for gpu, _ in {*zip(gpus, block.cells("xcp"), strict=True)})
        are_whole &= [parts[gpu] == 1 for gpu in gpus]
    return are_whole
