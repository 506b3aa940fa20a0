"""amd-smi's logs: CSV, text and JSON of `metric`, CSV, the table and JSON of `monitor`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.errors import InputError
from mlscale.profilers.sampled.log import (
    Lines,
    Sample,
    csv_cells,
    json_documents,
    number,
    rows,
    values_of,
)

_CSV = {  # of metric, then of monitor
    **dict.fromkeys(("socket_power", "power_usage"), "power_w"),
    "gfx_clk": "engine_mhz",
    **dict.fromkeys(("mem_0_clk", "mem_clock"), "memory_mhz"),
    **dict.fromkeys(("gfx_activity", "gfx"), "gpu_utilisation"),
    **dict.fromkeys(("umc_activity", "mem"), "memory_copy_utilisation"),
}
_MONITOR = {
    "POWER": "power_w",
    **dict.fromkeys(("GFX_CLK", "GFX_CLOCK"), "engine_mhz"),
    "MEM_CLOCK": "memory_mhz",
    **dict.fromkeys(("GFX%", "GFX_UTIL"), "gpu_utilisation"),
    **dict.fromkeys(("MEM%", "MEM_UTIL"), "memory_copy_utilisation"),
}
_DIE_CLOCK = re.compile(r"gfx_\d+_clk")
# A cell of monitor: N/A, or a number (or used/total) with its unit a blank away.
_CELL = re.compile(r"N/A|[\d.]+(?:\s*/\s*[\d.]+)?(?:\s*(?:W|°C|MHz|%|GB|MB|[MG]b/s)(?=\s|$))?")
_READINGS = ("usage", "power")  # sections of metric whose names are those of its CSV
_ITEM = re.compile(r"(\s*)([^\s:][^:]*):(?:\s+(.*?))?\s*$")  # of metric as text
TEXT_HEADER = re.compile(r"\s*GPU: (\d+)\s*$")


def read_csv(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU; where the clocks of its dies are there, their mean counts.

    Raises InputError.
    """
    header = csv_cells(lines[0][1])
    for where, row in rows(path, lines, csv_cells, lambda cells: cells == header):
        yield _sample(row["gpu"], row, row.get("timestamp"), where)


def _sample(gpu: str, cells: Mapping[str, str], timestamp: str | None, where: str) -> Sample:
    """Of cells by the names of the CSV. Raises InputError."""
    values = values_of(cells, _CSV, where)
    dies = [name for name in cells if _DIE_CLOCK.fullmatch(name)]
    clocks = [values_of(cells, {die: "engine_mhz"}, where)["engine_mhz"] for die in dies]
    if not np.isnan(clocks).all():
        values["engine_mhz"] = float(np.nanmean(clocks))
    return Sample(gpu, None, number(timestamp, where) if timestamp else None, values)


def read_text(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each GPU of metric's text, in which deeper lines belong to the line above.

    Raises InputError.
    """
    gpu, where, cells = "", "", dict[str, str]()
    above: list[tuple[int, str]] = []
    for line, text in lines:
        if begin := TEXT_HEADER.match(text):
            if cells:
                yield _sample(gpu, cells, None, where)
            gpu, where, cells, above = begin[1], f"{path}: row {line}", {}, []
        elif item := _ITEM.match(text):
            depth, name, value = len(item[1]), item[2].strip().lower(), item[3]
            above = [one for one in above if one[0] < depth]
            if value is None:
                above.append((depth, name))
            elif key := _name_in_csv((*(section for _, section in above), name)):
                cells[key] = value
    if cells:
        yield _sample(gpu, cells, None, where)


def _name_in_csv(path: tuple[str, ...]) -> str | None:
    """What the CSV calls a reading that stands below those sections; None of another one."""
    match path:
        case (section, name) if section in _READINGS:
            return name
        case ("clock", domain, "clk"):
            return f"{domain}_clk"
    return None


def read_json(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each GPU of one document, or of several one after the other.

    Raises InputError.
    """
    for where, document in json_documents(path, lines):
        gpus = document.get("gpu_data") if isinstance(document, dict) else document
        if not isinstance(gpus, list) or not all(
            isinstance(of_gpu, dict) and "gpu" in of_gpu for of_gpu in gpus
        ):
            raise InputError(f"{where}: must hold a list of GPUs, each with its 'gpu'")
        for of_gpu in gpus:
            place = f"{where}, GPU {of_gpu['gpu']}"
            cells = dict(_cells_of(of_gpu))
            yield _sample(str(of_gpu["gpu"]), cells, cells.pop("timestamp", None), place)


def _cells_of(of_gpu: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Readings by the names of the CSV: of metric in sections, of monitor without."""
    for section, facts in of_gpu.items():
        if section in _READINGS and isinstance(facts, dict):
            yield from ((name, _text(value)) for name, value in facts.items())
        elif section == "clock" and isinstance(facts, dict):
            for domain, of_domain in facts.items():
                if isinstance(of_domain, dict) and "clk" in of_domain:
                    yield f"{domain}_clk", _text(of_domain["clk"])
        else:
            yield section, _text(facts)


def _text(value: Any) -> str:
    """A reading without its unit, which stands beside it."""
    return str(value["value"] if isinstance(value, dict) and "value" in value else value)


def read_monitor(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU, with times where --watch gave them. Raises InputError."""
    for where, row in rows(path, lines, _monitor_cells, _names_gpu):
        if not row["GPU"].isdecimal():
            raise InputError(f"{where}, column 'GPU': '{row['GPU']}' is no index")
        time_s = number(row["TIMESTAMP"], where) if "TIMESTAMP" in row else None
        yield Sample(row["GPU"], None, time_s, values_of(row, _MONITOR, where))


def _monitor_cells(text: str) -> list[str]:
    words = text.split()
    return words if _names_gpu(words) else _CELL.findall(text)


def _names_gpu(words: list[str]) -> bool:
    return "GPU" in words[:2]
