"""The tidy table as columns, what its values must be, and repeated rows beside each other."""

import math
import re
from collections.abc import Collection, Iterable, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.devices import find_device, register_facts
from mlscale.errors import InputError
from mlscale.text import counted, without_controls

IDENTITY = ("device", "application", "kernel")
SAVED_INDEX = ("Unnamed: ", "__index_level_")  # how pandas' names of a saved index begin
# Of what is measured, in its unit: beyond these nothing is, and products could overflow.
LEAST, MOST = 1e-9, 1e15
LARGEST_COUNTER = 2.0**63  # a larger one ran below 0, or was damaged
_UNITS = ("_mhz", "_ms", "_w")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of measurements by column.

    text: the identity columns; numbers: every other column, (rows,), NaN where not given;
    lines: where each row stands in its file, empty for 1, 2, 3, ….
    """

    source: str
    text: dict[str, list[str]]
    numbers: dict[str, Floats]
    metadata: dict[str, Any] = field(default_factory=dict)
    lines: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All column names."""
        return (*self.text, *self.numbers)

    def __len__(self) -> int:
        columns: list[Sized] = [*self.text.values(), *self.numbers.values()]
        return len(columns[0]) if columns else 0

    def numbered(self, name: str) -> tuple[tuple[str, ...], Indices]:
        """Number an identity column: its distinct cells in order, and which one each row has."""
        positions: dict[str, int] = {}
        of_row = [positions.setdefault(cell, len(positions)) for cell in self.text[name]]
        return tuple(positions), np.array(of_row, dtype=np.intp)

    def select(self, rows: Sequence[int]) -> "Table":
        """Some rows of it, by position."""
        positions = list(rows)
        return replace(
            self,
            text={name: [cells[row] for row in positions] for name, cells in self.text.items()},
            numbers={name: values[positions] for name, values in self.numbers.items()},
            lines=tuple(self.lines[row] for row in positions) if self.lines else (),
        )

    def row(self, position: int) -> str:
        """Say where a row stands, for messages: its line in the CSV file, or its row number."""
        return f"row {self.lines[position] if self.lines else position + 1}"

    def require(self, names: Iterable[str]) -> None:
        """Raise InputError, naming all that are missing, unless every named column is there."""
        require_columns(self.source, names, self.columns)

    def check_text(self) -> None:
        """Raise InputError where a row has no name in an identity column."""
        for name, cells in self.text.items():
            for position, cell in enumerate(cells):
                if not cell or cell.isspace():
                    where = f"{self.source}: {self.row(position)}, column '{name}'"
                    raise InputError(f"{where}: is empty; every row needs a name there")

    def positive(self, name: str, optional: bool = False, or_zero: bool = False) -> Floats:
        """Return a numeric column; every value must be from LEAST to MOST, or InputError.

        optional: a value may be missing, NaN; or_zero: it may be 0.
        """
        values = self.numbers[name]
        good = (values >= LEAST) & (values <= MOST) | (or_zero & (values == 0))
        bad = np.flatnonzero(~(good | np.isnan(values)) if optional else ~good)
        if bad.size:
            value = float(values[bad[0]])
            says = "is not given" if np.isnan(value) else f"is {value:g}"
            mend = "; leave out the rows without it" if np.isnan(value) else ""
            limits = "0 or positive, and finite" if or_zero else "positive and finite"
            if 0 < value < np.inf:
                limits = f"from {LEAST:g} to {MOST:g}"
            raise InputError(
                f"{self.source}: {self.row(bad[0])}, column '{name}': the value {says}; "
                f"it must be {limits}{mend}{_and_more(bad.size)}"
            )
        return values

    def setting(self, axis: str) -> Floats:
        """Return a column of the configuration; CU counts must be whole too. Raises InputError."""
        values = self.positive(axis)
        if axis == "cu_count" and (values % 1).any():
            row = int(np.flatnonzero(values % 1)[0])
            raise InputError(
                f"{self.source}: {self.row(row)}, column 'cu_count': {values[row]:g} is not a "
                "whole number of compute units"
            )
        return values

    def has_values(self, name: str) -> bool:
        """Tell whether there is a numeric column of that name that is not empty."""
        return name in self.numbers and not np.isnan(self.numbers[name]).all()

    def counter(self, name: str) -> Floats:
        """Return a counter: from 0 to LARGEST_COUNTER, or NaN where missing. Raises InputError."""
        values = self.numbers[name]
        bad = np.flatnonzero((values < 0) | (values >= LARGEST_COUNTER))
        if bad.size:
            value = values[bad[0]]
            says = "infinite" if np.isinf(value) else f"{value:g}, which no counter is"
            raise InputError(
                f"{self.source}: {self.row(bad[0])}, column '{name}': the value is {says}; "
                "leave the cell empty where a counter is missing, and the column out if it is none"
                f"{_and_more(bad.size)}"
            )
        return values


def as_read(table: Table) -> Table:
    """The table without control characters in its names, a device of its own made known."""
    for name, cells in table.text.items():
        if not "".join(cells).isprintable():
            table.text[name] = [without_controls(cell) for cell in cells]
    register_facts(table.metadata, table.source)
    return with_device_keys(table)


def with_device_keys(table: Table) -> Table:
    """The table with the key of each device that it calls by another name, as tools print it.

    A name that is none, or that several GPUs bear, is kept.
    """
    names = table.text.get("device", [])
    found = {name: find_device(name.strip()) for name in set(names)}
    keys = {name: device.key for name, device in found.items() if device is not None}
    if keys:
        table.text["device"] = [keys.get(name, name) for name in names]
    return table


def with_cu_counts(table: Table) -> Table:
    """The table with all CUs of its GPUs, where it has no such column and all are known."""
    devices = [find_device(name) for name in table.text.get("device", ())]
    counts = [device.cu_count for device in devices if device is not None]
    if "cu_count" in table.numbers or not counts or len(counts) < len(table):
        return table
    return replace(table, numbers={"cu_count": np.array(counts, np.float64), **table.numbers})


def missing_column(name: str, present: Iterable[str]) -> str:
    """Say that a column is missing, and which one may be meant."""
    close = _column_like(name, present)
    hint = f"; is '{close}' meant? Names are matched to the letter" if close else ""
    if close and name.endswith(_UNITS):
        hint += ", and the unit stands in them"
    return f"there is no column '{name}'{hint}"


def require_columns(source: str, names: Iterable[str], present: Collection[str]) -> None:
    """Raise InputError, naming all that are missing, unless every named column is present."""
    missing = [name for name in names if name not in present]
    if len(missing) == 1:
        raise InputError(f"{source}: {missing_column(missing[0], present)}")
    if missing:
        close = {name: _column_like(name, present) for name in missing}
        said = [f"'{name}'" + (f" (is '{of}' meant?)" if of else "") for name, of in close.items()]
        raise InputError(
            f"{source}: there are no columns {', '.join(said)}; names are matched to the letter, "
            "and the unit stands in them (docs/file-formats.md)"
        )


def _column_like(name: str, present: Iterable[str]) -> str | None:
    """The column whose name is nearly this one."""
    from difflib import get_close_matches

    by_folded = {re.sub(r"\W|_", "", column.casefold()): column for column in present}
    folded = re.sub(r"\W|_", "", name.casefold())
    close = get_close_matches(folded, by_folded, n=1, cutoff=0.8)
    return by_folded[close[0]] if close else None


def _and_more(count: int) -> str:
    return f" (and {counted(count - 1, 'more row')})" if count > 1 else ""


def to_samples(values: Floats, cells: tuple[Indices, ...], shape: tuple[int, ...]) -> Floats:
    """Make of rows of values (rows, …) samples (R, *shape, …), repetitions in order.

    cells: where each row belongs in `shape`. R is the largest number of rows of one cell; the
    rest of the others is NaN.
    """
    cell = np.ravel_multi_index(cells, shape)
    order = np.argsort(cell, kind="stable")
    counts = np.bincount(cell, minlength=math.prod(shape))
    repetition = np.empty(len(cell), dtype=np.intp)
    repetition[order] = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    samples = np.full((int(counts.max(initial=0)), *shape, *values.shape[1:]), np.nan)
    samples[(repetition, *cells)] = values
    return samples
