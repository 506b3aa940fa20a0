"""rocm-smi's CSV: each call prints a snapshot of all cards, and a log holds several."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mlscale.data.device_table import find_device
from mlscale.profilers.sampled.log import Lines, Sample, csv_cells, rows, values_of

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


def read_csv(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a card; the header may come again. Raises InputError."""
    for where, row in rows(path, lines, _card_cells, lambda cells: cells[0] == "device"):
        yield _sample(row["device"], row, where)


def _card_cells(text: str) -> list[str] | None:
    cells = csv_cells(text)
    return cells if cells[0] == "device" or _CARD.fullmatch(cells[0]) else None


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
