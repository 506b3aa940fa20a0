"""AMD's logs: CSV of amd-smi's `metric` and `monitor`, the latter's table, and rocm-smi's output.

rocm-smi prints CSV or JSON: one snapshot of all cards, or several after each other.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mlscale.errors import InputError
from mlscale.profilers.sampled.log import Lines, Sample, csv_cells, number, rows, values_of

_AMD_SMI_CSV = {  # of metric, then of monitor
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
_ROCM_SMI = {
    "Current Socket Graphics Package Power (W)": "power_w",
    "Average Graphics Package Power (W)": "power_w",
    "sclk clock speed:": "engine_mhz",
    "mclk clock speed:": "memory_mhz",
    "GPU use (%)": "gpu_utilisation",
    "GPU Memory Read/Write Activity (%)": "memory_copy_utilisation",
    "GPU memory use (%)": "memory_copy_utilisation",
}
_NAMES = ("Device Name", "Card Series", "Card series")
_CARD = re.compile(r"card(\d+)")
_BLANK = re.compile(r"\s*")


def read_amd_smi_csv(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU; where the clocks of its dies are there, their mean counts.

    Raises InputError.
    """
    header = csv_cells(lines[0][1])
    dies = [name for name in header if _DIE_CLOCK.fullmatch(name)]
    for where, row in rows(path, lines, csv_cells, lambda cells: cells == header):
        time_s = number(row["timestamp"], where) if "timestamp" in row else None
        values = values_of(row, _AMD_SMI_CSV, where)
        clocks = [values_of(row, {die: "engine_mhz"}, where)["engine_mhz"] for die in dies]
        if not np.isnan(clocks).all():
            values["engine_mhz"] = float(np.nanmean(clocks))
        yield Sample(row["gpu"], None, time_s, values)


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


def read_csv(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a card; the header may come again. Raises InputError."""
    for where, row in rows(path, lines, _card_cells, lambda cells: cells[0] == "device"):
        yield _sample(row["device"], row, where)


def _card_cells(text: str) -> list[str] | None:
    cells = csv_cells(text)
    return cells if cells[0] == "device" or _CARD.fullmatch(cells[0]) else None


def read_json(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each card of one JSON object, or of several one after the other.

    Raises InputError.
    """
    text = "\n".join(text for _, text in lines)
    decoder, at = json.JSONDecoder(), 0
    while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        where = f"{path}: row {text.count(chr(10), 0, at) + lines[0][0]}"
        try:
            snapshot, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: is not valid JSON: {error}") from None
        if not isinstance(snapshot, dict):
            raise InputError(f"{where}: must hold a JSON object of cards")
        for card, facts in snapshot.items():
            if _CARD.fullmatch(card) and isinstance(facts, dict):
                cells = {name: str(value) for name, value in facts.items()}
                yield _sample(card, cells, f"{where}, {card}")


def _sample(card: str, cells: Mapping[str, str], where: str) -> Sample:
    name = next((cells[name] for name in _NAMES if name in cells), None)
    return Sample(card.removeprefix("card"), name, None, values_of(cells, _ROCM_SMI, where))
