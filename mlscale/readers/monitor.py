"""Monitors' logs, sampled while a program runs: nvidia-smi, DCGM, rocm-smi, amd-smi, own scripts.

Written by `nvidia-smi --query-gpu=timestamp,index,power.draw,... --format=csv -lms 100`,
`nvidia-smi dmon -o DT`, `dcgmi dmon -e ...`, a range query of Prometheus for dcgm-exporter's
metrics, `rocm-smi --csv`, `amd-smi metric --csv`, `amd-smi monitor --csv`, or a script of your own
with their names for its columns (docs/howto/nvidia-smi.md).

To watch for: several GPUs in turn, told apart by an index; parts of a GPU (MIG, partitions), which
have the whole one's clock and power, and are skipped; shares in percent or from 0 to 1; repeated
headers; logs without time stamps.

Sources of names and units: nvidia-smi's manual page and --help-query-gpu; DCGM's dcgm_fields.h; the
HTTP API of Prometheus (range queries); logs that rocm-smi and amd-smi wrote.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats, Mask, quantile
from mlscale.data.column_names import RATED_UNITS, read_title
from mlscale.data.devices import find_device
from mlscale.errors import InputError, warn
from mlscale.files import HeldFile, hold, parse_json_object
from mlscale.readers.columns import Block, Labels, labels
from mlscale.readers.files import Sheet, open_file, why_no_log
from mlscale.readers.log_columns import (
    METRICS,
    LogColumns,
    columns_of_marks,
    columns_of_words,
    moment_s,
)
from mlscale.readers.registry import KIND_OF_TABLES, Kind
from mlscale.text import shortened

FACTS = "# mlscale measure: "  # begins the line of `mlscale measure` above its header, in JSON
_DEAD_W, _DEAD_RISE = 50.0, 2.0  # power, and its rise, with which no GPU is idle throughout
_SET_BACK_S = 60.0
_QUERIED = re.compile(r"[a-z_]+(\.[a-z_]+)+( \[|$)")  # names of nvidia-smi --query-gpu
_MOST = 1e300  # a fact is smaller; JSON has whole numbers that no float holds
_ONE_GPU = 0.1  # share of the usual time between samples: GPUs of one tick follow closer


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
        facts: what `mlscale measure` says about the run, numbers by name: engine_mhz that it set,
            power_limit_w, skip_s that it left out at the beginning, work_per_s of a program that
            does not end, log_time_sd between repeated runs.
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
        """The time of RATED_UNITS of work, if the log says how much is done per second."""
        rate = self.facts.get("work_per_s")
        return 1e3 * RATED_UNITS / rate if rate else None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __str__(self) -> str:
        return f"{self.source}, GPU {self.gpu}"


def read_log(file: Path | HeldFile) -> list[Samples]:
    """The samples of each GPU in a log. Raises InputError."""
    held = hold(file)
    return read(held, open_file(held))


def read(file: HeldFile, sheet: Sheet | None) -> list[Samples]:
    """The samples of each GPU in an open log. Raises InputError if it is not a log."""
    if sheet is None or not sheet.kind.is_log:
        raise InputError(f"{file}: {why_no_log(file)}")
    if sheet.kind.json:
        return (_read_prometheus if sheet.kind.tool == "dcgm" else _read_json)(sheet)
    if sheet.kind.title == "dcgmi dmon":
        return _samples(sheet, columns_of_marks(_rows(sheet, _dcgmi_cells), sheet.kind))
    if sheet.kind.title == "nvidia-smi dmon":
        block = _rows(sheet, _dmon_cells)
        log = columns_of_marks(block, sheet.kind)
        log.seconds = _dmon_seconds(block) if "Time" in block else None
        return _samples(sheet, log)
    return _samples(sheet, _told(sheet, columns_of_words(_rows(sheet, sheet.cells), sheet.kind)))


def _told(sheet: Sheet, log: LogColumns) -> LogColumns:
    """The same log; warns where its GPUs may be several, and of how titles were taken."""
    seconds, rows = log.seconds, len(log.block)
    if seconds is not None and rows > 3 and log.index is None:
        short_s, usual_s = (quantile(np.diff(seconds), share) for share in (0.4, 0.9))
        if short_s < _ONE_GPU * usual_s:
            raise InputError(
                f"{sheet.path}: has several GPUs with nothing to distinguish them, or its time "
                "stamps are too coarse; title the column that distinguishes them 'index', or "
                "record again with 'index' and times in milliseconds"
            )
    if seconds is None and rows > 1 and log.index is None:
        warn(
            "M01",
            f"{sheet.path}: has neither 'index' nor times: all rows count as samples of one GPU; "
            "if there are more, record again with both",
        )
    told = log.taken if sheet.kind.tool in (KIND_OF_TABLES.tool, "wandb") else {}
    if sheet.kind.tool == "nvidia-smi":  # beside its names
        told = {w: t for w, t in log.taken.items() if w != "time" and not _QUERIED.match(t)}
    if told or log.left:
        taken = ", ".join(f"{what} is '{title}'" for what, title in told.items())
        left = f"; left out: {', '.join(log.left)}" if log.left else ""
        warn("T05", f"{sheet.path}: {taken}{left}", "note")
    return log


def _dmon_seconds(block: Block) -> Floats:
    """The times of dmon's rows. -o T has no date: past midnight a time is before the last one."""
    times = block.cells("Time")
    days = block.cells("Date") if "Date" in block else ["19700101"] * len(times)
    stamps = [
        f"{day[:4]}-{day[4:6]}-{day[6:]} {time}" for day, time in zip(days, times, strict=True)
    ]
    stamped = Block(block.path, block.lines, {"Time": labels(stamps)})
    seconds = stamped.parsed("Time", moment_s)
    return seconds + 86400.0 * np.cumsum(np.diff(seconds, prepend=seconds[:1]) < 0)


def _read_prometheus(sheet: Sheet) -> list[Samples]:
    """Prometheus' answer to a query of dcgm-exporter's metrics over a range of time.

    Series of one GPU and metric, as of several pods, are one; those of MIG instances are passed
    over. Raises InputError where the series are of several hosts.
    """
    answer = parse_json_object(sheet.file.content(), str(sheet.path))
    moments: dict[tuple[str, float], dict[str, str]] = {}
    hosts: dict[str, None] = {}
    unnamed = Counter[str]()
    try:
        for one in answer["data"]["result"]:
            series = one["metric"]
            metric = series.get("__name__")
            if metric not in METRICS or series.get("GPU_I_ID"):
                continue
            hosts[str(series.get("Hostname") or series.get("instance", ""))] = None
            gpu = str(series.get("gpu") or series.get("UUID", "0"))
            name = str(series.get("modelName", ""))
            unnamed[metric] += not (series.get("gpu") or series.get("UUID"))
            for stamp, text in one["values"] if "values" in one else [one["value"]]:
                seconds = moment_s(str(stamp))
                cells = moments.setdefault((gpu, seconds), {"index": gpu, "name": name})
                cells.setdefault(metric, str(text))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{sheet.path}: is not an answer of Prometheus to a query: data.result is not a list "
            "of {'metric': {…}, 'values': [[time, 'value'], …]}"
        ) from None
    if max(unnamed.values(), default=0) > 1:
        told = "has several series of one metric without the label 'gpu' or 'UUID'"
        raise InputError(f"{sheet.path}: {told}; query one GPU, or include the labels")
    if len(hosts) > 1:
        raise InputError(f"{sheet.path}: has the hosts {', '.join(hosts)}; query one of them")
    columns = {
        name: labels([cells.get(name, "") for cells in moments.values()])
        for name in dict.fromkeys(name for cells in moments.values() for name in cells)
    }
    block = Block(sheet.path, np.arange(1, 1 + len(moments)), columns)
    log = columns_of_marks(block, sheet.kind)
    log.seconds = np.array([seconds for _, seconds in moments])
    return _samples(sheet, log)


def _read_json(sheet: Sheet) -> list[Samples]:
    """What gpustat wrote again and again, with nvidia-smi's names, or W&B's rows. InputError."""
    text, at, cells = sheet.file.content().decode(errors="replace").strip(), 0, []
    try:
        while at < len(text):
            said, at = json.JSONDecoder().raw_decode(text, at)
            at += len(text[at:]) - len(text[at:].lstrip())
            for moment in said if isinstance(said, list) else [said]:
                if sheet.kind.tool == "wandb":
                    cells.append({**moment})
                    continue
                once = {"timestamp": moment["query_time"], "host": moment.get("hostname")}
                cells += [{**once, **gpu} for gpu in moment["gpus"]]
        names = dict.fromkeys(name for row in cells for name in row)
        columns = {
            n: labels(["" if row.get(n) is None else str(row[n]) for row in cells]) for n in names
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{sheet.path}: is not JSON of {sheet.kind.title}: {error}") from None
    block = Block(sheet.path, np.arange(1, 1 + len(cells)), columns)
    return _samples(sheet, _told(sheet, columns_of_words(block, sheet.kind)))


def _rows(sheet: Sheet, cells_of: Callable[[str], list[str] | None]) -> Block:
    """All rows by the names of the header, without units; the header may be repeated.

    cells_of: the cells of a line; None of one that is no row. Lines of one cell, as a tool's
    warnings, and a last line that is cut off are left out. Raises InputError on another row that is
    not as long as the header.
    """
    texts = [(line, text) for line, text in sheet.lines() if text.strip()]
    (_, header), *rows = [
        (line, cells) for line, text in texts if (cells := cells_of(text)) is not None
    ]
    width = len(header) - (header.count("gpu") > 1 and not header[-1])
    rows = [(line, row) for line, row in rows if row != header and (len(row) > 1 or width == 1)]
    rows = [
        (line, row[:-1] if len(row) == width + 1 and not row[-1] else row) for line, row in rows
    ]
    if rows and rows[-1][0] == texts[-1][0] and len(rows[-1][1]) < width:
        line, _ = rows.pop()
        warn("T09", f"{sheet.path}: row {line}: the last line is cut off and left out")
    for line, row in rows:
        if len(row) != width:
            raise InputError(
                f"{sheet.path}: row {line}: has {len(row)} fields, the header has {width}; it says "
                f"'{' '.join(row)[:60]}': delete the line if it is not a sample"
            )
    columns: dict[str, Labels] = {}
    titles = sheet.table.names if sheet.table else header
    if header.count("gpu") > 1:
        titles, rows = _below_each_other(sheet.path, header, rows)
    for place, title in enumerate(titles):
        column = labels([row[place] for _, row in rows])
        same = columns.setdefault(title.strip(), column)
        if title and same.cells() != column.cells() and read_title(title):
            raise InputError(
                f"{sheet.path}: column '{title}' appears twice, with different values; keep one"
            )
    return Block(sheet.path, np.array([line for line, _ in rows], np.intp), columns)


def _below_each_other(
    path: Path, header: list[str], rows: list[tuple[int, list[str]]]
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The titles of one GPU, and a row for each GPU, of several whose titles stand side by side.

    Those of each begin with 'gpu'. Raises InputError where they are not alike.
    """
    begins = [place for place, title in enumerate(header) if title == "gpu"]
    first, end = begins[:2]
    if any(header[at : at + end - first] != header[first:end] for at in begins):
        raise InputError(f"{path}: column 'gpu' appears twice, with different columns; keep one")
    apart = [
        (line, row[:first] + row[at : at + end - first]) for line, row in rows for at in begins
    ]
    return header[:end], apart


def _dmon_cells(text: str) -> list[str] | None:
    """The names behind '#', or the values; None of the line of units. CSV has commas between."""
    words = text.replace("#", " ").replace(",", " ").split()
    return None if text.lstrip().startswith("#") and "gpu" not in words else words


def _dcgmi_cells(text: str) -> list[str] | None:
    """The names from '#Entity' on, and the values of 'GPU 0', each with the entity as one cell."""
    words = text.replace("#", " ", 1).split()
    is_of_gpu = re.match(r"\s*GPU +\d", text)
    return words if words[0] == "Entity" else words[1:] if is_of_gpu else None


def _samples(sheet: Sheet, log: LogColumns) -> list[Samples]:
    """The samples of each GPU, in the order of their time. Raises InputError without any."""
    block, facts = log.block, _facts(sheet)
    short = {cell: shortened(cell.removeprefix("card")) for cell in {*(log.index or ())}}
    gpus = np.array([short[c] for c in log.index] if log.index else ["0"] * len(block), np.str_)
    is_whole = _are_whole_gpus(block, gpus.tolist())
    if not is_whole.any():
        raise InputError(
            f"{sheet.path}: is of {sheet.kind.title} but has no samples of a whole GPU; MIG "
            "instances, other parts, and metrics without names are not read"
        )
    beside = log.values.pop("", {})
    each = [
        (gpu, np.flatnonzero(is_whole & (gpus == gpu)), beside)
        for gpu in sorted(set(gpus[is_whole].tolist()), key=lambda gpu: (len(gpu), gpu))
    ]
    if log.values:  # side by side, each in separate columns
        each = [(g, np.flatnonzero(is_whole), beside | alone) for g, alone in log.values.items()]
    logs = []
    for gpu, taken, values in each:
        rows, times = taken, None
        if log.seconds is not None:
            steps_s = np.diff(log.seconds[rows], prepend=log.seconds[rows[:1]])
            if not sheet.kind.json and steps_s.min(initial=0.0) < -_SET_BACK_S:
                raise InputError(
                    f"{block.where(int(rows[steps_s.argmin()]))}: is {-steps_s.min():.0f} s before "
                    "the sample above: the clock was set back; keep the rows before or after"
                )
            rows = rows[np.argsort(log.seconds[rows], kind="stable")]
            times = log.seconds[rows]
            times = None if len(times) > 1 and times[0] == times[-1] else times
        named = [
            dict.fromkeys(block.cells(title)[row] for row in rows)
            for title in (*log.names, *log.hosts)
        ]
        if twice := next((names for names in named if len(names.keys() - {""}) > 1), None):
            are = " and ".join(shortened(name) for name in [*twice][:3])
            told = f"{sheet.path}: GPU {gpu} is named {are}"
            raise InputError(f"{told}; put the samples of each GPU into a separate file")
        firsts = [next(iter(names)) for names in named[: len(log.names)]]
        name = next(filter(find_device, firsts), next(filter(None, firsts), ""))
        columns = {ours: column[rows] for ours, column in values.items()}
        columns = {ours: column for ours, column in columns.items() if not np.isnan(column).all()}
        watts = columns.get("power_w", np.zeros(1))
        if np.nanmax(watts) > max(_DEAD_W, _DEAD_RISE * np.nanmin(watts)) and not np.nanmax(
            columns.get("gpu_utilisation", np.ones(1))
        ):
            dead = f"its utilisation is 0 throughout, though it draws {np.nanmax(watts):.0f} W"
            warn("T09", f"{sheet.path}, GPU {gpu}: {dead}: power shows when it is busy")
            del columns["gpu_utilisation"]
        logs.append(Samples(str(sheet.path), sheet.kind, gpu, name, times, columns, facts))
    return logs


def _facts(sheet: Sheet) -> dict[str, float]:
    """The numbers in the line of `mlscale measure` above a header. Raises InputError."""
    if sheet.header_line == 1:
        return {}
    first = sheet.file.head.partition(b"\n")[0].decode(errors="replace")
    if not first.startswith(FACTS):
        return {}
    told = parse_json_object(first.removeprefix(FACTS), f"{sheet.path}: row 1")
    numbers = {name: fact for name, fact in told.items() if isinstance(fact, int | float)}
    return {name: float(fact) for name, fact in numbers.items() if 0 < fact < _MOST}


def _are_whole_gpus(block: Block, gpus: Sequence[str]) -> Mask:
    """Which rows are not of a part of a GPU, as MIG (NVIDIA) or a partition (AMD) makes them."""
    are_whole = np.ones(len(block), np.bool_)
    if "mig.mode.current" in block:  # nvidia-smi's query
        are_whole &= np.array(block.cells("mig.mode.current"), np.str_) != "Enabled"
    if "mig" in block:  # its dmon
        are_whole &= [not instance.isdigit() for instance in block.cells("mig")]
    if "xcp" in block:  # amd-smi's monitor
        parts = Counter(gpu for gpu, _ in {*zip(gpus, block.cells("xcp"), strict=True)})
        are_whole &= [parts[gpu] == 1 for gpu in gpus]
    return are_whole
