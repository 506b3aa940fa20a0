"""tegrastats, the monitor of NVIDIA's Jetson modules: a line for each sample of the one GPU.

What a line holds differs by module and release, and what it lacks is missing. Its powers are those
of supply rails: the rail that feeds least beside the GPU is taken, never the whole module's.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from mlscale.errors import warn
from mlscale.profilers.sampled.log import Lines, Sample, values_of

LINE = re.compile(r"\s*(?:(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) )?RAM \d+/\d+MB\b")
# '45%', '45%@1300', '99%@[1300,1300]' with a clock for each cluster of SMs, '@[314,314,314]'.
_GPU = re.compile(r"\bGR3D_FREQ (?:(\d{1,3})%)?(?:@\[?([\d,]+))?")
_MEMORY = re.compile(r"\bEMC_FREQ (?:(\d{1,3})%)?(?:@(\d{1,5}))?")  # '61%@3199', '61%', '@4266'
_RAILS = {  # by what they feed, the GPU alone first
    **dict.fromkeys(("VDD_GPU", "GPU", "VDD_SYS_GPU", "POM_5V_GPU"), "the GPU"),
    "VDD_GPU_SOC": "GPU and SoC",
    "VDD_CPU_GPU_CV": "CPU, GPU and CV",
}
_RAIL = re.compile(rf"(?<!\S)({'|'.join(_RAILS)}) (-?\d{{1,7}})(?:mW)?/")  # now/on average, in mW
_NAME = re.compile(r"\b[A-Za-z]\w*")
_EPOCH = datetime(1970, 1, 1)
_COLUMNS = {
    "GR3D_FREQ": "gpu_utilisation",
    "clock of GR3D_FREQ": "engine_mhz",
    "EMC_FREQ": "memory_copy_utilisation",
    "clock of EMC_FREQ": "memory_mhz",
}


def read_lines(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each line, with times where each line has another second.

    A last line that is cut off is left out. Raises InputError on a value that cannot be.
    """
    found = [(line, text, match) for line, text in lines if (match := LINE.match(text))]
    if len(found) > 1 and _is_cut_off(found[-2][1], found[-1][1]):
        warn(f"{path}: row {found[-1][0]}: the last line is cut off and left out")
        found.pop()
    times = [_seconds(match[1]) for *_, match in found]
    stamps = [time for time in times if time is not None]
    is_timed = len(stamps) == len(times) and all(a < b for a, b in pairwise(stamps))
    powers = [dict(_RAIL.findall(text)) for _, text, _ in found]
    rail = next((name for name in _RAILS if any(name in of for of in powers)), None)
    power_of = f"the rail {rail} ({_RAILS[rail]})" if rail else None
    cells = [_cells(text) for _, text, _ in found]
    memory = {cell for of in cells for name, cell in of.items() if "EMC" in name}
    if not any(cell.strip("0") for cell in memory):  # 0% throughout: it may not be read
        cells = [{name: cell for name, cell in of.items() if "EMC" not in name} for of in cells]
    for (line, *_), of_line, time, of in zip(found, cells, times, powers, strict=True):
        values = values_of(of_line, _COLUMNS, f"{path}: row {line}")
        if rail in of:
            values["power_w"] = int(of[rail]) / 1000
        yield Sample("0", None, time if is_timed else None, values, power_of)


def _is_cut_off(before: str, last: str) -> bool:
    """Whether a line lacks what the one before it ends with."""
    return _NAME.findall(before)[-1] not in _NAME.findall(last)


def _seconds(stamp: str | None) -> float | None:
    """When a sample was taken, in whole seconds; None without a date, or with none that can be."""
    try:
        return (datetime.strptime(stamp or "", "%m-%d-%Y %H:%M:%S") - _EPOCH).total_seconds()
    except ValueError:
        return None


def _cells(text: str) -> dict[str, str]:
    """What a line says of GPU and memory.

    A cluster without a clock is switched off; a memory with a clock of 0 is not observed.
    """
    cells: dict[str, str] = {}
    if gpu := _GPU.search(text):
        clocks = [int(mhz) for mhz in (gpu[2] or "").split(",") if mhz.strip("0")]
        if gpu[1]:
            cells["GR3D_FREQ"] = gpu[1]
        if clocks:
            cells["clock of GR3D_FREQ"] = f"{sum(clocks) / len(clocks):.10g}"
    memory = _MEMORY.search(text)
    if memory and (memory[2] is None or memory[2].strip("0")):
        if memory[1]:
            cells["EMC_FREQ"] = memory[1]
        if memory[2]:
            cells["clock of EMC_FREQ"] = memory[2]
    return cells
