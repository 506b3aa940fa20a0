"""The tidy table as columns of words and of numbers, and what its values must be."""

import math
import re
from collections.abc import Collection, Iterable, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.devices import find_device
from mlscale.errors import InputError, warn

IDENTITY = ("device", "application", "kernel")
SAVED_INDEX = ("Unnamed: ", "__index_level_")  # how pandas' names of a saved index begin
# Of what is measured, in its unit: beyond these nothing is, and products could overflow.
LEAST, MOST = 1e-9, 1e15
LARGEST_COUNTER = 2.0**63  # a larger one ran below 0, or was damaged


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
    lines: Sequence[int] = ()

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
        places = [positions.setdefault(cell, len(positions)) for cell in self.text[name]]
        return tuple(positions), np.array(places, dtype=np.intp)

    def select(self, rows: Sequence[int]) -> "Table":
        """Some rows of it, by position."""
        positions = list(rows)
        return replace(
            self,
            text={name: [cells[row] for row in positions] for name, cells in self.text.items()},
            numbers={name: values[positions] for name, values in self.numbers.items()},
            lines=[self.lines[row] for row in positions] if self.lines else (),
        )

    def row(self, position: int) -> str:
        """Say where a row stands, for messages: its line in the CSV file, or its row number."""
        return f"row {self.lines[position] if self.lines else position + 1}"

    def cell(self, position: int, name: str) -> str:
        """Say where a cell stands, for messages: the file, its row and its column."""
        return f"{self.source}: {self.row(position)}, column '{name}'"

    def require(self, names: Iterable[str]) -> None:
        """Raise InputError, naming all that are missing, unless every named column is there."""
        require_columns(self.source, names, self.columns)

    def check_text(self) -> None:
        """Raise InputError where a row has no name in an identity column."""
        for name, cells in self.text.items():
            if not all(map(str.strip, set(cells))):
                row = next(row for row, cell in enumerate(cells) if not cell.strip())
                where = self.cell(row, name)
                raise InputError(f"{where}: is empty; every row needs a name there")

    def positive(self, name: str, optional: bool = False, or_zero: bool = False) -> Floats:
        """Return a numeric column; every value must be from LEAST to MOST, or InputError.

        optional: a value may be missing, NaN; or_zero: it may be 0.
        """
        values = self.numbers[name]
        bad = ~((values >= LEAST) & (values <= MOST))
        if or_zero:
            bad &= values != 0
        if optional:
            bad &= ~np.isnan(values)
        if (row := _first(bad)) is not None:
            value = values[row]
            limits = "0 or positive, and finite" if or_zero else "positive and finite"
            if 0 < value < np.inf:
                limits = f"from {LEAST:g} to {MOST:g}"
            problem = f"is {value:g}; it must be {limits}"
            if np.isnan(value):
                problem = f"is not given; it must be {limits}; leave out the rows without it"
            raise InputError(f"{self.cell(row, name)}: the value {problem}")
        return values

    def setting(self, axis: str) -> Floats:
        """Return a column of the configuration; CU counts must be whole too. Raises InputError."""
        values = self.positive(axis)
        if axis == "cu_count" and (row := _first(values % 1 != 0)) is not None:
            raise InputError(
                f"{self.cell(row, axis)}: {values[row]:g} is not a whole number of compute units"
            )
        return values

    def has_values(self, name: str) -> bool:
        """Tell whether there is a numeric column of that name that is not empty."""
        return name in self.numbers and not np.isnan(self.numbers[name]).all()

    def counter(self, name: str) -> Floats:
        """Return a counter: from 0 to LARGEST_COUNTER, or NaN where missing. Raises InputError."""
        values = self.numbers[name]
        if (row := _first((values < 0) | (values >= LARGEST_COUNTER))) is not None:
            value = values[row]
            says = "infinite" if np.isinf(value) else f"{value:g}, which no counter is"
            raise InputError(
                f"{self.cell(row, name)}: the value is {says}; leave the cell empty where a "
                "counter is missing, and the column out if it is none"
            )
        return values


def _first(bad: Mask) -> int | None:
    """The first row that is bad."""
    rows = np.flatnonzero(bad)
    return int(rows[0]) if rows.size else None


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


def with_snapped_clocks(table: Table, within_mhz: float) -> Table:
    """The table whose clocks within so many MHz of the next are one: their mean, rounded."""
    snapped = dict(table.numbers)
    for axis in ("engine_mhz", "memory_mhz") if within_mhz > 0 else ():
        clocks, clock_of = np.unique(table.setting(axis), return_inverse=True)
        group_of = np.cumsum(np.diff(clocks, prepend=clocks[0]) > within_mhz)[clock_of]
        means = (np.bincount(group_of, table.numbers[axis]) / np.bincount(group_of)).round()
        if len(means) < len(clocks):
            snapped[axis] = means[group_of]
            listed = ", ".join(f"{mhz:g}" for mhz in means)
            warn(f"{table.source}: {len(clocks)} values of {axis} became {len(means)}: {listed}")
    return replace(table, numbers=snapped)


def missing_column(name: str, present: Iterable[str]) -> str:
    """Say that a column is missing, and which one may be meant."""
    close = _column_like(name, present)
    hint = f"; is '{close}' meant? Names are matched to the letter" if close else ""
    return f"there is no column '{name}'{hint}"


def require_columns(source: str, names: Iterable[str], present: Collection[str]) -> None:
    """Raise InputError, naming all that are missing, unless every named column is present."""
    missing = {name: _column_like(name, present) for name in names if name not in present}
    if len(missing) == 1:
        raise InputError(f"{source}: {missing_column(next(iter(missing)), present)}")
    if missing:
        meant = {
            name: f" (is '{close}' meant?)" if close else "" for name, close in missing.items()
        }
        named = ", ".join(f"'{name}'{hint}" for name, hint in meant.items())
        raise InputError(
            f"{source}: there are no columns {named}; names are matched to the letter, and the "
            "unit stands in them (docs/file-formats.md)"
        )


def _column_like(name: str, present: Iterable[str]) -> str | None:
    """The column whose name is nearly this one."""
    from difflib import get_close_matches

    by_folded = {re.sub(r"\W|_", "", column.casefold()): column for column in present}
    folded = re.sub(r"\W|_", "", name.casefold())
    close = get_close_matches(folded, by_folded, n=1, cutoff=0.8)
    return by_folded[close[0]] if close else None


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
