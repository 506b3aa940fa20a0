"""rocm-smi's output: CSV, JSON, text and the table of a call without options.

Each call prints a snapshot of all cards, and a log holds several after each other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from mlscale.data.device_table import find_device
from mlscale.errors import InputError
from mlscale.profilers.sampled.log import (
    Lines,
    Sample,
    csv_cells,
    json_documents,
    rows,
    values_of,
)

_VALUES = {
    "Current Socket Graphics Package Power (W)": "power_w",
    "Average Graphics Package Power (W)": "power_w",
    "sclk clock speed:": "engine_mhz",
    "mclk clock speed:": "memory_mhz",
    "GPU use (%)": "gpu_utilisation",
    "GPU Memory Read/Write Activity (%)": "memory_copy_utilisation",
    "GPU memory use (%)": "memory_copy_utilisation",
}
_NAMES = (  # of the product, then its PCI number, which some releases have as a model
    *("Device Name", "Card Series", "Card series", "Device ID", "GPU ID"),
    *("Card Model", "Card model"),
)
_PCI = re.compile(r"0x([0-9a-f]{4}),?", re.IGNORECASE)
_SECONDARY = "N/A (Secondary die)"  # the package's power is that of the die beside it
_CARD = re.compile(r"card(\d+)")
TEXT_LINE = re.compile(r"\s*GPU\[(\d+)\]\s*: ([^:]+):\s*(.*?)\s*$")
_LEVEL = re.compile(r"([sm]clk) clock level", re.IGNORECASE)
_CLOCK = re.compile(r"\((\d+Mhz)\)$")  # of '1: (1259Mhz)', '1 (1259Mhz)'
TABLE_HEADER = re.compile(r"\s*(GPU|Device)\s.*\bSCLK\s+MCLK\b.*\bGPU%")
_ROW = re.compile(r"\s*(\d+) ")
_COLUMNS = {  # of the table
    **dict.fromkeys(("AvgPwr", "Power"), "power_w"),
    "SCLK": "engine_mhz",
    "MCLK": "memory_mhz",
    "GPU%": "gpu_utilisation",
}
_FORMS = {
    **dict.fromkeys(("AvgPwr", "Power"), re.compile(r"[\d.]+W")),
    **dict.fromkeys(("SCLK", "MCLK"), re.compile(r"\d+Mhz")),
    "GPU%": re.compile(r"[\d.]+%"),
}
_UNKNOWN = re.compile(r"N/A|n/a|None|Unsup\.|[Uu]n(known|supported)")


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
    for where, snapshot in json_documents(path, lines):
        if not isinstance(snapshot, dict):
            raise InputError(f"{where}: must hold a JSON object of cards")
        for card, facts in snapshot.items():
            if _CARD.fullmatch(card) and isinstance(facts, dict):
                cells = {name: str(value) for name, value in facts.items()}
                yield _sample(card, cells, f"{where}, {card}")


def read_text(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample of a card from lines up to the one that says the same again. Raises InputError."""
    known = {*_VALUES, *_NAMES}
    cards: dict[str, tuple[str, dict[str, str]]] = {}
    for line, text in lines:
        if not (fact := TEXT_LINE.match(text)):
            continue
        card, name, value = fact.groups()
        if level := _LEVEL.fullmatch(name):
            name, clock = f"{level[1].lower()} clock speed:", _CLOCK.search(value)
            value = clock[1] if clock else "N/A"
        if name not in known:
            continue
        if name in cards.get(card, ("", {}))[1]:
            yield _sample(card, cards[card][1], cards.pop(card)[0])
        cards.setdefault(card, (f"{path}: row {line}", {}))[1][name] = value
    for card, (where, cells) in cards.items():
        yield _sample(card, cells, where)


def read_table(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of the table, whose cells begin below their names in the header.

    A form of it has a card's name in a line of its own, below. Raises InputError.
    """
    starts: dict[str, int] = {}
    for (line, text), (_, below) in pairwise([*lines, (0, "")]):
        if TABLE_HEADER.match(text):
            starts = {match[0]: match.start() for match in re.finditer(r"\S+", text)}
        elif index := _ROW.match(text):
            names = [match[0] for match in _PCI.finditer(text)]
            if below[: starts.get("[Model", 0)].isspace():
                names.insert(0, below)
            values = _table_values(text, starts, f"{path}: row {line}")
            yield Sample(index[1], _name(names), None, values)


def _table_values(text: str, starts: Mapping[str, int], where: str) -> dict[str, float]:
    """Raises InputError, beginning with `where`, where a cell is not below its name."""
    cells = {}
    for column in filter(starts.__contains__, _COLUMNS):
        start = starts[column]
        cell = (text[start:].split() or [""])[0]
        begins = text[start : start + 1] == cell[:1] and text[start - 1 : start].isspace()
        is_unknown = _UNKNOWN.fullmatch(cell) is not None
        if not begins or not (is_unknown or _FORMS[column].fullmatch(cell)):
            raise InputError(
                f"{where}, column '{column}': '{cell}' does not stand below its name; use the log "
                "as rocm-smi wrote it, or log with --csv"
            )
        cells[column] = "N/A" if is_unknown else cell
    return values_of(cells, _COLUMNS, where)


def _sample(card: str, cells: Mapping[str, str], where: str) -> Sample:
    values = values_of(
        {name: "N/A" if cell == _SECONDARY else cell for name, cell in cells.items()},
        _VALUES,
        where,
    )
    name = _name([cells[name] for name in _NAMES if name in cells])
    return Sample(card.removeprefix("card"), name, None, values)


def _name(names: Iterable[str]) -> str | None:
    """The first of a card's names that the device table knows, else the first of its product."""
    texts = [_PCI.sub(r"1002:\1", name.strip()) for name in names]
    products = (text for text in texts if text != "N/A" and not text.startswith("1002:"))
    return next((text for text in texts if find_device(text)), next(products, None))
