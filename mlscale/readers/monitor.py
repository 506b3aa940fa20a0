"""Monitors' logs, sampled while a program runs: nvidia-smi, DCGM, rocm-smi, amd-smi, own scripts.

`read_log` gives the samples of each GPU. `busy_span` cuts the idle head and tail, and
`samples_to_table` averages the rest into a row of a profile table for each GPU and log.

Sources of names and units: nvidia-smi's manual page and --help-query-gpu; DCGM's dcgm_fields.h; the
HTTP API of Prometheus (range queries); logs that rocm-smi and amd-smi wrote.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.checks import check_board, check_unit
from mlscale.data.devices import LARGEST_SHARE, facts_to_carry, find_device
from mlscale.data.grid import AXES
from mlscale.data.logs import PROFILE_KIND, SHARES
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.files import parse_json_object, read_bytes
from mlscale.readers.files import Block, Form, Labels, Sheet, counter, open_file
from mlscale.readers.given import Given
from mlscale.readers.run import set_up

_IDLE = 0.02  # activity at or below which a GPU is idle throughout
_POWER_RISE = 1.25  # of the highest over the lowest power, without which power tells nothing
_LONG = 10  # periods, beyond which a gap inside the span is told, or all pauses together
_PAUSES = 0.1  # of the span, which pauses that are told are too
_SAME_CLOCK = 0.01  # by which the sampled clock may differ from the one that was set
_STEADY = 1.05  # of the highest over the lowest clock in four of five samples
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
_UNITS = {"timestamp": "s", "epoch": "s"} | {
    name: "W" if ours == "power_w" else "%" if ours in SHARES else "MHz"
    for ours, names in _NAMES.items() for name in names
}
_METRICS = {name for names in _NAMES.values() for name in names if name.startswith("DCGM_FI_")}
_ACTIVITIES = ("gr_engine_active", "sm_active", "gpu_utilisation", "power_w")  # the first counts
_INDEX = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "gpu", "device", "Entity")
_PARTS = ("mig.mode.current", "mig", "xcp")  # nvidia-smi's query and dmon, amd-smi's monitor
_GPU_NAMES = ("name", "gpu_name", "Device Name", "Card Series", "Card series", "Card Model",
              "Card model")
# fmt: on
_UNIT = re.compile(r"\s*(W|%|M[Hh]z)$")


@dataclass(frozen=True, eq=False)
class Samples:
    """All samples of one GPU in one log.

    Attributes:
        source: the file.
        form: what it is.
        gpu: the index of the GPU, as the log has it.
        name: of the GPU; '' where the log does not say.
        seconds: (S,) when each sample was taken [s], ascending; None without time stamps.
        columns: (S,) each, NaN where missing, none missing throughout: power_w [W], engine_mhz,
            memory_mhz, engine_mhz_requested [MHz], and shares from 0 to 1 by the names of SHARES.
    """

    source: str
    form: Form
    gpu: str
    name: str
    seconds: Floats | None
    columns: dict[str, Floats]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __str__(self) -> str:
        return f"{self.source}, GPU {self.gpu}"


def read_log(path: Path) -> list[Samples]:
    """The samples of each GPU in a log. Raises InputError."""
    if (sheet := open_file(path, FORMS)) is None:
        raise InputError(
            f"{path}: is no monitor's log that mlscale knows; docs/sampled-logs.md has the "
            "commands that write one, and the columns that a CSV of your own needs"
        )
    samples: list[Samples] = sheet.form.read(sheet) if sheet.form.read else []
    return samples


def read_csv(sheet: Sheet) -> list[Samples]:
    """CSV with known columns: of nvidia-smi (with units or not), rocm-smi, amd-smi, a script."""
    block = _rows(sheet, _csv_cells)
    stamp = next((name for name in ("timestamp", "epoch") if name in block), "")
    seconds = block.numbers(stamp, _moment) if stamp else None
    if seconds is not None and (late := np.flatnonzero(seconds >= _LATEST_S)).size:
        raise InputError(
            f"{block.where(int(late[0]), stamp)}: {seconds[late[0]]:.0f} s are centuries from now; "
            "give seconds (milliseconds divided by 1000)"
        )
    is_numbered = any(name in block for name in _INDEX)
    if not is_numbered and seconds is not None and len(block) > 3:
        short_s, usual_s = np.quantile(np.diff(seconds), (0.4, 0.9))
        if short_s < _ONE_GPU * usual_s:
            raise InputError(
                f"{sheet.path}: is of several GPUs that cannot be told apart, or its time stamps "
                "are too coarse to tell that it is of one; record again with 'index' among "
                "--query-gpu's names, or one GPU alone with --id and times in milliseconds"
            )
    if not is_numbered and seconds is None and len(block) > 1:
        warn(
            f"{sheet.path}: has neither 'index' nor times, so all rows are taken for one GPU's; if "
            "they are of several, record again with 'index' among --query-gpu's names"
        )
    dies = [name for name in block.columns if re.fullmatch(r"gfx_\d+_clk", name)]
    if dies:  # amd-smi's, whose mean is the GPU's
        clocks = np.array([block.numbers(die, _reading) for die in dies])
        known = ~np.isnan(clocks)
        means = np.nansum(clocks, axis=0) / np.maximum(known.sum(axis=0), 1)
        means[~known.any(axis=0)] = np.nan
        return _of_each_gpu(sheet, block, seconds, engine_mhz=means)
    return _of_each_gpu(sheet, block, seconds)


def read_dmon(sheet: Sheet) -> list[Samples]:
    """`nvidia-smi dmon`, also as CSV, with times where -o T or DT asked for them."""
    block, seconds = _rows(sheet, _dmon_cells), None
    if "Time" in block:
        times = block.text("Time").cells()
        days = block.text("Date").cells() if "Date" in block else ["19700101"] * len(times)
        stamps = [
            f"{day[:4]}-{day[4:6]}-{day[6:]} {time}" for day, time in zip(days, times, strict=True)
        ]
        seconds = replace(block, columns={"Time": Labels.of(stamps)}).numbers("Time", _moment)
        # -o T has no date: past midnight
        seconds += 86400 * np.cumsum(np.diff(seconds, prepend=seconds[:1]) < 0)
    return _of_each_gpu(sheet, block, seconds)


def read_dcgmi(sheet: Sheet) -> list[Samples]:
    """`dcgmi dmon`. MIG instances are passed over: they have the whole GPU's clock and power."""
    return _of_each_gpu(sheet, _rows(sheet, _dcgmi_cells), None)


def read_prometheus(sheet: Sheet) -> list[Samples]:
    """Prometheus' answer to a query of dcgm-exporter's metrics over a range of time.

    Series of one GPU and metric, as of several pods, are one; those of MIG instances are passed
    over. Raises InputError where the series are of several hosts.
    """
    answer = parse_json_object(read_bytes(sheet.path), str(sheet.path))
    moments: dict[tuple[str, float], dict[str, str]] = {}
    hosts: dict[str, None] = {}
    try:
        for one in answer["data"]["result"]:
            labels = one["metric"]
            metric = labels.get("__name__")
            if metric not in _METRICS or labels.get("GPU_I_ID"):
                continue
            hosts[str(labels.get("Hostname") or labels.get("instance", ""))] = None
            gpu = str(labels.get("gpu") or labels.get("UUID", "0"))
            name = str(labels.get("modelName", ""))
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
        name: Labels.of([cells.get(name, "") for cells in moments.values()])
        for name in dict.fromkeys(name for cells in moments.values() for name in cells)
    }
    block = Block(sheet.path, np.arange(1, 1 + len(moments)), columns)
    return _of_each_gpu(sheet, block, np.array([seconds for _, seconds in moments]))


def _rows(sheet: Sheet, cells_of: Callable[[str], list[str] | None]) -> Block:
    """All rows by the names of the header, without units; the header may come again.

    cells_of: the cells of a line; None of one that is no row. Lines of one cell, as a tool's
    warnings, and a last line that is cut off are left out. Raises InputError on another row that is
    not as long as the header, and on a unit in it that is not read.
    """
    texts = [(line, text) for line, text in sheet.lines() if text.strip()]
    header, *rows = [(line, cells) for line, text in texts if (cells := cells_of(text)) is not None]
    width = len(header[1])
    rows = [
        (n, cells) for n, cells in rows if cells != header[1] and (len(cells) > 1 or width == 1)
    ]
    if rows and rows[-1][0] == texts[-1][0] and len(rows[-1][1]) != width:
        line, _ = rows.pop()
        warn(f"{sheet.path}: row {line}: the last line is cut off and left out")
    for line, cells in rows:
        if len(cells) != width:
            raise InputError(
                f"{sheet.path}: row {line}: has {len(cells)} fields, the header has {width}; it "
                f"says '{' '.join(cells)[:60]}': take it out if it is no sample"
            )
    columns = zip(*(cells for _, cells in rows), strict=True) if rows else ((),) * width
    names = [name.partition("[")[0].strip() for name in header[1]]
    for name, full in zip(names, header[1], strict=True):
        said = re.search(r"\[(.*)\]$", full)
        if said and name in _UNITS and said[1].casefold() != _UNITS[name].casefold():
            raise InputError(
                f"{sheet.path}: row {header[0]}: '{full}' is not in {_UNITS[name]}; convert it"
            )
    of_names = {name: Labels.of(cells) for name, cells in zip(names, columns, strict=True)}
    return Block(sheet.path, np.array([line for line, _ in rows], np.intp), of_names)


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


def _reading(text: str, where: str) -> float:
    """A cell such as '24.53 W', '(300Mhz)' or '12'; NaN of '[N/A]' and the like."""
    cell = text.strip("() +")
    # '[Not Supported]'; 'N/A (Secondary die)' of an MI250; DCGM's blank of 64 bits
    if cell.startswith(("[", "N/A", "92233720368547757")):
        return math.nan
    return counter(_UNIT.sub("", cell), where)


def _moment(text: str, where: str) -> float:
    """Seconds since 1970, of nvidia-smi's own form or ISO 8601."""
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(
            f"{where}: '{text[:40]}' is no time such as 2024/03/29 11:16:49.355, nor seconds"
        ) from None


def _of_each_gpu(
    sheet: Sheet, block: Block, seconds: Floats | None, **values: Floats
) -> list[Samples]:
    """The samples of each GPU, in the order of their time. Raises InputError without any.

    values: columns by our names, computed from others.
    """
    indices = next((block.text(name).cells() for name in _INDEX if name in block), None)
    gpus = np.array([cell.removeprefix("card") for cell in indices or ["0"] * len(block)], np.str_)
    is_whole = _are_of_whole_gpus(block, gpus.tolist())
    if not is_whole.any():
        raise InputError(
            f"{sheet.path}: is of {sheet.form.title} but has no samples of a whole GPU; MIG "
            "instances are not read, nor are other parts, nor metrics without their names"
        )
    for ours, names in _NAMES.items():
        for theirs in (name for name in names if name in block):
            read = block.numbers(theirs, _reading)
            if sheet.form.tool == "dcgm":
                read = np.where(read < _BLANK, read, math.nan)
            read = read * (0.01 if theirs in _PERCENT else 1.0)
            if ours in SHARES and (above := np.flatnonzero(read > LARGEST_SHARE)).size:
                whole = "100 %" if theirs in _PERCENT else "1, not in percent"
                raise InputError(
                    f"{block.where(int(above[0]), theirs)}: {ours} is {read[above[0]]:.4g} of the "
                    f"whole, which cannot be; the whole is {whole}"
                )
            best = values.setdefault(ours, read)
            values[ours] = np.where(np.isnan(best), read, best)
    logs = []
    for gpu in sorted(set(gpus[is_whole].tolist()), key=lambda gpu: (len(gpu), gpu)):
        rows = np.flatnonzero(is_whole & (gpus == gpu))
        times = None
        if seconds is not None:
            rows = rows[np.argsort(seconds[rows], kind="stable")]
            times = seconds[rows]
            times = None if len(times) > 1 and times[0] == times[-1] else times
        labels = [block.text(name) for name in _GPU_NAMES if name in block]
        named = [texts[codes[rows[0]]] for codes, texts in labels]
        name = next(filter(find_device, named), next(filter(None, named), ""))
        columns = {ours: column[rows] for ours, column in values.items()}
        columns = {ours: column for ours, column in columns.items() if not np.isnan(column).all()}
        logs.append(Samples(str(sheet.path), sheet.form, gpu, name, times, columns))
    return logs


def _are_of_whole_gpus(block: Block, gpus: Sequence[str]) -> Mask:
    """Which rows are not of a part of a GPU, as MIG (NVIDIA) or a partition (AMD) makes them."""
    cells = {name: block.text(name).cells() for name in _PARTS if name in block}
    are_whole = np.ones(len(block), np.bool_)
    if "mig.mode.current" in cells:
        are_whole &= [mode != "Enabled" for mode in cells["mig.mode.current"]]
    if "mig" in cells:
        are_whole &= [not instance.isdigit() for instance in cells["mig"]]
    if "xcp" in cells:
        parts = Counter(gpu for gpu, _ in {*zip(gpus, cells["xcp"], strict=True)})
        are_whole &= [parts[gpu] == 1 for gpu in gpus]
    return are_whole


_QUERIED = [name for names in _NAMES.values() for name in names if "." in name]
_WITH_UNITS = "|".join(f"{name} [{unit}]" for name in _QUERIED for unit in ("W", "MHz", "%"))
FORMS = (
    Form("nvidia-smi", "nvidia-smi --query-gpu", read_csv, (_WITH_UNITS,)),
    Form("nvidia-smi", "a script of your own (nvidia-smi's names)", read_csv,
         ("|".join(_QUERIED),)),
    Form("nvidia-smi", "nvidia-smi dmon", read_dmon,
         line=re.compile(r"\s*#\s*(Date,?\s+)?(Time,?\s+)?gpu[,\s](?!.*\bpid\b)")),
    Form("dcgm", "dcgmi dmon", read_dcgmi, line=re.compile(r"\s*#\s*Entity\s")),
    Form("dcgm", "Prometheus", read_prometheus, json="resultType"),
    Form("rocm-smi", "rocm-smi --csv", read_csv,
         ("device", "sclk clock speed:|Average Graphics Package Power (W)|GPU use (%)")),
    Form("amd-smi", "amd-smi metric --csv", read_csv, ("gpu", "socket_power")),
    Form("amd-smi", "amd-smi monitor --csv", read_csv, ("gpu", "power_usage|gfx_clk")),
)  # fmt: skip


@dataclass(frozen=True)
class BusySpan:
    """Samples `first` to `last` of a log, both busy, and by what rule.

    samples: how many the log has; rule: in words; idle: how many inside are below it; working: the
    indices of those inside, but for the idle ones where an activity tells them (at little power a
    GPU may work); time_ms: from before the first to the last [ms], None without time stamps;
    period_s: the usual time between two samples [s]; head_s and tail_s: what is cut before and
    after [s]; gap_s: the longest time between two samples inside [s].
    """

    first: int
    last: int
    samples: int
    rule: str
    idle: int
    working: Indices = field(repr=False, compare=False)
    time_ms: float | None = None
    period_s: float = 0.0
    head_s: float = math.nan
    tail_s: float = math.nan
    gap_s: float = 0.0

    @property
    def inside(self) -> slice:
        """All its samples."""
        return slice(self.first, self.last + 1)

    @property
    def open_ends(self) -> tuple[str, ...]:
        """'first' and 'last', as far as the log begins or ends amid the run."""
        return ("first",) * (self.head_s == 0) + ("last",) * (self.tail_s == 0)

    def __str__(self) -> str:
        if self.samples == 1:
            return "one sample, taken for the mean of the whole run"
        first, last = self.first + 1, self.last + 1
        text = f"busy from sample {first} to {last} of {self.samples}: {self.rule}"
        if not self.period_s:
            return text
        return (
            f"{text}; {self.head_s:.4g} s before and {self.tail_s:.4g} s after are cut; "
            f"a sample every {self.period_s:.4g} s"
        )


def mean_of(values: Floats) -> float:
    """The mean of those that are there; NaN of none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def busy_span(log: Samples) -> BusySpan:
    """Cut the idle head and tail; idle moments between two busy ones stay.

    A sample is busy from a tenth of the highest activity on; where a log has no activity but
    power, from the middle between its lowest and its highest power on, so that a smoothed power
    has the true length. Each sample stands for the time since the one before. Raises InputError
    where the GPU is idle throughout.
    """
    name = next((name for name in _ACTIVITIES if name in log.columns), None)
    if name is None:
        raise InputError(
            f"{log}: has neither activity nor power, no reading of them at all; record the GPU's "
            "utilisation, with DCGM GRACT or SMACT"
        )
    activity = log.columns[name]
    low, high = float(np.nanmin(activity)), float(np.nanmax(activity))
    if high <= (_POWER_RISE * low if name == "power_w" else _IDLE):
        why = "the GPU is idle"
        if name == "power_w":
            why = f"at least {low:.4g}, and nothing else tells; record the GPU's utilisation too"
        raise InputError(f"{log}: has no busy span: {name} is at most {high:.3g}, {why}")
    threshold = high / 10
    rule = f"{name} is {threshold:.3g} or more, a tenth of its highest"
    if name == "power_w":
        threshold = (low + high) / 2
        rule = f"power is {threshold:.4g} W or more, half way from lowest to highest"
    busy = np.flatnonzero(activity >= threshold)
    inside = np.arange(busy[0], busy[-1] + 1)
    not_idle = inside[~(activity[inside] < threshold)]
    span = BusySpan(
        int(busy[0]), int(busy[-1]), len(log), rule, len(inside) - len(not_idle),
        inside if name == "power_w" else not_idle,
    )  # fmt: skip
    known = ~np.isnan(activity)
    if log.seconds is None or known.sum() == 1:
        return span
    seconds, of_span = log.seconds[known], log.seconds[inside][known[inside]]
    period_s = float(np.median(np.diff(seconds)))
    if not period_s and seconds[-1] > seconds[0]:  # stamps coarser than the time between samples
        stamps, counts = np.unique(seconds, return_counts=True)
        period_s = float(np.median(np.diff(stamps) / counts[1:]))
    return replace(
        span,
        time_ms=1e3 * (float(of_span[-1] - of_span[0]) + period_s),
        period_s=period_s,
        head_s=float(of_span[0] - seconds[0]),
        tail_s=float(seconds[-1] - of_span[-1]),
        gap_s=float(np.diff(of_span).max(initial=0)),
    )


def warn_of_pauses(log: Samples, span: BusySpan) -> None:
    """Warn where the span is without samples, or idle, for so long that its time may mislead."""
    samples = span.last + 1 - span.first
    if span.gap_s > _LONG * span.period_s > 0:
        warn(f"{log}: has no sample for {span.gap_s:.4g} s of the busy span; the time counts them")
    elif span.idle > max(_LONG, _PAUSES * samples):
        warn(
            f"{log}: {span.idle} of {samples} samples of the busy span are idle (busy: {span.rule})"
            "; if these are two runs, give a log of each; if one that waits, for requests or the "
            "CPU, its time counts the pauses, and what runs between them slows by more than the "
            "whole: a log under a load that keeps the GPU busy tells by how much"
        )


def one_gpu(logs: Sequence[Samples], gpu: str | None) -> Samples:
    """The samples of a GPU in a log, or of the only one there is. Raises InputError."""
    indices = ", ".join(log.gpu for log in logs)
    if gpu is None and len(logs) > 1:
        raise InputError(f"{logs[0].source}: is of the GPUs {indices}; name one with --gpu")
    if chosen := [log for log in logs if gpu in (None, log.gpu)]:
        return chosen[0]
    raise InputError(f"{logs[0].source}: has no GPU {gpu}; it has {indices}")


def samples_to_table(samples: Sequence[Samples], given: Given) -> Table:
    """A row for each GPU of each log that is not idle throughout, averaged over its busy span.

    given: what the user says of the runs, as far as the logs do not. GPUs of a log that ran side by
    side at nearly one engine clock are at their mean. Raises InputError; warns of idle GPUs, of
    clocks that differ from those that were set, and of pauses.
    """
    busy = _busy_ones(samples, given)
    rows = [_row(log, span, given) for log, span in busy]
    side_by_side: dict[tuple[str, str], list[dict[str, float]]] = {}
    for (log, _), (device, numbers) in zip(busy, rows, strict=True):
        side_by_side.setdefault((log.source, device), []).append(numbers)
    for of_log in side_by_side.values():
        clocks = [numbers["engine_mhz"] for numbers in of_log]
        if min(clocks) < max(clocks) <= (1 + _SAME_CLOCK) * min(clocks):
            for numbers in of_log:
                numbers["engine_mhz"] = float(round(sum(clocks) / len(clocks)))
    of_file = Counter(log.source for log, _ in busy)
    applications = [given.application or Path(log.source).stem for log, _ in busy]
    kernels = [
        f"{name} [GPU {log.gpu}]" if of_file[log.source] > 1 else name
        for name, (log, _) in zip(applications, busy, strict=True)
    ]
    devices = [device for device, _ in rows]
    columns = {
        column: np.array([numbers.get(column, math.nan) for _, numbers in rows])
        for column in dict.fromkeys(column for _, numbers in rows for column in numbers)
    }
    text = {"device": devices, "application": applications, "kernel": kernels}
    metadata = facts_to_carry(devices[0]) | _metadata(busy, kernels, [*columns], given)
    return Table(busy[0][0].source, text, columns, metadata)


def _busy_ones(samples: Sequence[Samples], given: Given) -> list[tuple[Samples, BusySpan]]:
    """The logs of GPUs that work; the others are told. Raises InputError where none does."""
    if given.gpu is not None:
        sources = dict.fromkeys(log.source for log in samples)
        of_files = [[log for log in samples if log.source == source] for source in sources]
        samples = [one_gpu(logs, given.gpu) for logs in of_files]
    busy: list[tuple[Samples, BusySpan]] = []
    idle: list[InputError] = []
    for log in samples:
        timed = log
        if given.interval_s is not None and log.seconds is None:
            timed = replace(log, seconds=given.interval_s * np.arange(len(log), dtype=np.float64))
        try:
            busy.append((timed, busy_span(timed)))
        except InputError as error:
            idle.append(error)
    if not busy:
        raise idle[0]
    for reason in idle:
        warn(f"{reason}; it gets no row")
    return busy


def _row(log: Samples, span: BusySpan, given: Given) -> tuple[str, dict[str, float]]:
    """The device of a row, and its numbers. Raises InputError on what neither log nor user says."""
    device = find_device(log.name) or find_device(given.device or "")
    settings = {**given.base, **_clocks(log, span, given.base, device.key if device else "")}
    seen = {"device_name": Counter[str | float]([log.name])} if log.name else {}
    setup = set_up(log.source, seen, Given(given.device, settings))
    if (time_ms := given.time_ms or span.time_ms) is None:
        one = "--time MS (of the whole run: this log is one sample)"
        flag = one if len(log) == 1 else "--interval SECONDS (between two samples)"
        raise InputError(f"{log.source}: does not say how long the run took; give {flag}")
    warn_of_pauses(log, span)
    known = [name for name in ("power_w", *SHARES) if name in log.columns]
    means = {name: mean_of(log.columns[name][span.inside]) for name in known}
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if "power_w" in means:
        check_board(str(log), setup.device, means["power_w"])
    return setup.device, {**setup.config.as_dict(), "time_ms": time_ms, **means}


def _clocks(log: Samples, span: BusySpan, base: Mapping[str, float], key: str) -> dict[str, float]:
    """The mean clocks [MHz] while the GPU worked, or those that were set where both are one.

    Of the memory clock it is the median: a memory has few clocks, and none between two of them.
    """
    clocks = {}
    for axis in AXES[1:]:
        values = np.sort(log.columns[axis][span.working]) if axis in log.columns else np.empty(0)
        values = values[~np.isnan(values)]
        if not values.size:
            continue
        middle = float(values[(values.size - 1) // 2])
        mean = middle if axis == "memory_mhz" else float(values.mean())
        check_unit(f"{log}: {axis}", key, axis, mean)
        was_set = base.get(axis)
        if was_set is None and f"{axis}_requested" in log.columns:
            was_set = mean_of(log.columns[f"{axis}_requested"][span.working])
        # The middle four fifths, but for the ends, amid which a run may begin; of few none.
        out = max(1, round(0.1 * (values.size - 1)))
        low, high = (values[out], values[-1 - out]) if values.size >= 10 else (mean, mean)
        clocks[axis] = float(round(mean))
        if was_set is not None and abs(mean / was_set - 1) > _SAME_CLOCK:
            warn(
                f"{log}: {axis} was set to {was_set:g}, but ran at {mean:.0f} on average "
                f"({values[0]:g} to {values[-1]:g}); the row is at {mean:.0f}"
            )
            continue
        if high > _STEADY * low:
            warn(
                f"{log}: {axis} wanders, from {low:g} to {high:g} in four of five samples: a power "
                "or thermal limit, short pauses, or runs at several clocks, each of which needs a "
                f"log; the row is at {mean:.0f}; a locked clock tells more"
            )
        clocks[axis] = base.get(axis, clocks[axis])
    return clocks


def _metadata(
    busy: Sequence[tuple[Samples, BusySpan]], kernels: Sequence[str], columns: Sequence[str],
    given: Given,
) -> dict[str, Any]:  # fmt: skip
    titles = ", ".join(dict.fromkeys(log.form.title for log, _ in busy))
    names = [Path(log.source).name for log, _ in busy]
    spans = [(kernel, span) for kernel, (_, span) in zip(kernels, busy, strict=True)]
    timed = [(kernel, span) for kernel, span in spans if given.time_ms is None]
    return {
        "origin": "measured",
        "profile_kind": PROFILE_KIND,
        "counter_tool": busy[0][0].form.tool,
        "power_kind": "board" if "power_w" in columns else None,
        "gpus": [log.gpu for log, _ in busy],
        "source": ", ".join(dict.fromkeys(names)),
        "utilisation_sources": {name: f"mean of {titles}" for name in SHARES if name in columns},
        "busy_spans": {k: f"{n}: {span}" for n, (k, span) in zip(names, spans, strict=True)},
        "sample_ms": {k: round(1e3 * span.period_s, 3) for k, span in timed},
        "working_ms": {k: round(1e3 * span.period_s * len(span.working), 3) for k, span in timed},
        "open_ends": {k: list(span.open_ends) for k, span in timed if span.open_ends},
        "feature_status": {},
        "launches": {},
    }
