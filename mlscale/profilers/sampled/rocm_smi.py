"""rocm-smi's output, as CSV or JSON: one snapshot of all cards, or several after each other."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mlscale.errors import InputError
from mlscale.profilers.sampled.log import Lines, Sample, is_whole_row, values_of

_COLUMNS = {
    "Current Socket Graphics Package Power (W)": ("power_w", 1.0),
    "Average Graphics Package Power (W)": ("power_w", 1.0),
    "sclk clock speed:": ("engine_mhz", 1.0),
    "mclk clock speed:": ("memory_mhz", 1.0),
    "GPU use (%)": ("gpu_utilisation", 0.01),
    "GPU Memory Read/Write Activity (%)": ("memory_copy_utilisation", 0.01),
    "GPU memory use (%)": ("memory_copy_utilisation", 0.01),
}
_NAMES = ("Device Name", "Card Series", "Card series")
_CARD = re.compile(r"card(\d+)")
_BLANK = re.compile(r"\s*")


def read_csv(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a card; the header may come again. Raises InputError."""
    header: list[str] = []
    for line, text in lines:
        cells = [cell.strip() for cell in next(csv.reader([text]), [])]
        if cells[:1] == ["device"]:
            header = cells
        elif cells and _CARD.fullmatch(cells[0]):
            where = f"{path}: row {line}"
            if is_whole_row(cells, header, where, is_last=line == lines[-1][0]):
                yield _sample(cells[0], dict(zip(header, cells, strict=True)), where)


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
    return Sample(card.removeprefix("card"), name, None, values_of(cells, _COLUMNS, where))
