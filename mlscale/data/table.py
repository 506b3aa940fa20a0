"""The tidy table as columns of words and of numbers, and what its values must be."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.column_names import (
    RATE,
    Columns,
    column_meant,
    converted,
    is_of_limits,
    is_usual,
    source_meant,
    split_source,
)
from mlscale.data.devices import facts_to_carry, find_device, key_or_name
from mlscale.errors import InputError, warn
from mlscale.parameters import parameter
from mlscale.text import plain_number

IDENTITY = ("device", "application", "kernel")
SAVED_INDEX = ("Unnamed: ", "__index_level_")  # how pandas' names of a saved index begin
MEASURED = ("cu_count", "engine_mhz", "memory_mhz", "time_ms", "power_w")
CAP_COLUMNS = ("power_cap_w", "cap_w")  # a table of capped runs has one of them
# Of what is measured, in its unit: beyond these nothing is, and products could overflow.
LEAST, MOST = 1e-9, 1e15
SNAP_CLOCKS = "snap_clocks"  # in metadata: how near clocks became one [MHz]
OF_LAUNCH = ("NumWorkGroups", "workgroups", "workgroup_size", "waves", "warps", "n_launches")
NO_TIMES = "no_times"  # in metadata: of a table that has power alone; its times are all 1 ms
LARGEST_COUNTER = 2.0**63  # a larger one ran below 0, or was damaged
# What a user may say of our columns for all rows, and what a column is that only a table can say.
_FOR_ALL_ROWS = {"device": "GPU", "cu_count": "N", "engine_mhz": "MHZ", "memory_mhz": "MHZ"}
_TO_ADD = {
    "application": "the program that each kernel belongs to",
    "kernel": "the name of each kernel",
    "time_ms": "how long one launch takes, in ms (or tokens_per_s, of a run)",
    "power_w": "the mean power drawn, in W, not a limit",
}

_LONGEST_NAME = 1 << 17  # as the standard library's CSV has it


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of measurements by column.

    text: the identity columns; numbers: every other column, (rows,), NaN where not given;
    lines: the line of each row in its file, empty for 1, 2, 3, ….
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
        """Where a row is, for messages: its line in the CSV file, or its row number."""
        return f"row {self.lines[position] if self.lines else position + 1}"

    def cell(self, position: int, name: str) -> str:
        """Where a cell is, for messages: the file, its row and its column."""
        return f"{self.source}: {self.row(position)}, column '{name}'"

    def require(self, names: Iterable[str]) -> None:
        """Raise InputError, naming all that are missing, unless every named column is there."""
        require_columns(self.source, names, self.columns)

    def check_text(self) -> None:
        """Raise InputError if a row has no name in an identity column, or one too long."""
        for name, cells in self.text.items():
            if bad := {
                cell for cell in set(cells) if not cell.strip() or len(cell) > _LONGEST_NAME
            }:
                row = next(row for row, cell in enumerate(cells) if cell in bad)
                problem = "is too long a name" if cells[row].strip() else "is empty"
                raise InputError(f"{self.cell(row, name)}: {problem}; every row needs a name there")

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
            what = self.metadata.get("cu_axis", "compute units")
            raise InputError(
                f"{self.cell(row, axis)}: {values[row]:g} is not a whole number of {what}"
            )
        return values

    def has_values(self, name: str) -> bool:
        """Whether there is a numeric column of that name that is not empty."""
        return name in self.numbers and not np.isnan(self.numbers[name]).all()

    def counter(self, name: str) -> Floats:
        """Return a counter: from 0 to LARGEST_COUNTER, or NaN where missing. Raises InputError."""
        values = self.numbers[name]
        if (row := _first((values < 0) | (values >= LARGEST_COUNTER))) is not None:
            value = values[row]
            says = "infinite" if np.isinf(value) else f"{value:g}, which no counter can be"
            raise InputError(
                f"{self.cell(row, name)}: the value is {says}; leave the cell empty where a "
                "counter is missing, and delete the column if it is not a counter"
            )
        return values


def _first(bad: Mask) -> int | None:
    """The first row that is bad."""
    rows = np.flatnonzero(bad)
    return int(rows[0]) if rows.size else None


def with_device_keys(table: Table) -> Table:
    """The table with the key of each device in place of the name that tools print.

    An unknown name, or one shared by several GPUs, is kept.
    """
    names = table.text.get("device", [])
    found = {name: find_device(name.strip()) for name in set(names)}
    keys = {name: device.key for name, device in found.items() if device is not None}
    if keys:
        table.text["device"] = [keys.get(name, name) for name in names]
    return table


def with_cu_counts(table: Table) -> Table:
    """The table with all CUs of its GPUs, if it has no such column and all are known."""
    devices = [find_device(name) for name in table.text.get("device", ())]
    counts = [device.cu_count for device in devices if device is not None]
    if "cu_count" in table.numbers or not counts or len(counts) < len(table):
        return table
    return replace(table, numbers={"cu_count": np.array(counts, np.float64), **table.numbers})


def as_one_run(table: Table) -> Table:
    """The table; a single row without a kernel's name becomes that of a whole run."""
    if len(table) != 1 or "kernel" in table.text:
        return table
    return replace(table, text={**table.text, "kernel": ["run"]})


def with_time(table: Table, time_ms: float | None) -> Table:
    """The table of one run with that time [ms], None for its own. InputError if it has several."""
    if time_ms is None:
        return table
    if len(table) > 1:
        raise InputError(
            f"{table.source}: {parameter('rate')} or {parameter('time_ms')} is of one run, and it "
            f"has {len(table)} rows; give a file for each, or a column tokens_per_s or time_ms"
        )
    return replace(table, numbers={**table.numbers, "time_ms": np.full(1, time_ms)})


def divided(columns: Columns) -> tuple[set[str], Columns]:
    """The columns that are left out, and what the others are called."""
    left_out = {name for name, said in columns.items() if said == ""}
    return left_out, {name: said for name, said in columns.items() if name not in left_out}


def mapped(table: Table, columns: Columns) -> Table:
    """The table with columns under our names, in our units; their source columns are left out.

    columns: by our name COLUMN or COLUMN:UNIT, a number for all rows, or a device's name or file;
    '' leaves a column of the table out. What stands for compute units under no usual name is an
    axis of its own. Raises InputError.
    """
    used, columns = divided(columns)
    columns = {name: _number_or_column(name, columns[name], table.columns) for name in columns}
    _check_mapping(table, columns)
    text, numbers = {}, {}
    for name, said in columns.items():
        column, unit = split_source(name, str(said), table.columns)
        if column not in table.columns:  # application=kernel, beside kernel=COLUMN
            column = str(columns.get(column, column))
        used.add(column)
        if name in IDENTITY and column in table.text:
            text[name] = table.text[column]
        elif name == "device":
            text[name] = [key_or_name(column)] * len(table)
            table.metadata.update(facts_to_carry(text[name][0]))
        elif isinstance(said, int | float):
            numbers[name] = np.full(len(table), float(said))
        elif name in IDENTITY or column not in table.numbers:
            problem = missing_column(column, table.columns)
            problem += "" if name in IDENTITY else "; give a column, or a number for all rows"
            raise InputError(f"{table.source}: the mapping {name}={said}: {problem}")
        else:
            numbers[name] = converted(name, table.numbers[column], unit)
        if name in table.numbers and name != column:
            warn("T05", f"{table.source}: {name}={said} replaces its column '{name}'")
        if name == "cu_count" and isinstance(said, str) and not is_usual(name, column):
            table.metadata["cu_axis"] = column
        if unit == RATE:
            warn(
                "T05",
                f"{table.source}: if '{column}' is relative to a reference, so are times: "
                "their ratios are right, and nothing else that is computed from them is",
                "note",
            )
    used -= {*IDENTITY, *MEASURED}
    text |= {name: cells for name, cells in table.text.items() if name not in {*used, *text}}
    rest = {n: values for n, values in table.numbers.items() if n not in {*used, *numbers}}
    return replace(table, text=text, numbers=numbers | rest)


def _number_or_column(name: str, said: str | float, present: Collection[str]) -> str | float:
    """What `columns` says of a column of ours: '20' is a number, unless a column is called so."""
    if isinstance(said, str) and name not in IDENTITY and said not in present:
        with suppress(ValueError):
            return plain_number(said)
    return said


def _check_mapping(table: Table, columns: Columns) -> None:
    """Raise InputError on a counter that has nearly our name, and on two numbers of one column."""
    ours, names = (*IDENTITY, *MEASURED), dict[str, str]()
    for name, said in columns.items():
        where = f"{table.source}: the mapping {name}={said}"
        near = [one for one in ours if source_meant(one, [name])]
        if near and name not in ours:
            raise InputError(f"{where}: there is no '{name}'; did you mean {near[0]}?")
        if name not in IDENTITY and isinstance(said, str):
            column, _ = split_source(name, said, table.columns)
            is_itself = column in MEASURED and column in table.columns and column not in columns
            if (other := column if is_itself else names.setdefault(column, name)) != name:
                raise InputError(f"{where}: '{column}' is {other} already; each needs its own")
            if name == "power_w" and is_of_limits(column):
                raise InputError(f"{where}: '{column}' is a limit; add power_w, {_TO_ADD[name]}")


def with_times(table: Table) -> Table:
    """The table, with times of 1 ms if it has only power, which its metadata then say."""
    is_lacking = "time_ms" not in table.numbers and source_meant("time_ms", table.columns) is None
    if not is_lacking or not table.has_values("power_w"):
        return table
    warn("T09", f"{table.source}: no times: a model of power alone", "note")
    numbers = {**table.numbers, "time_ms": np.ones(len(table))}
    return replace(table, numbers=numbers, metadata={**table.metadata, NO_TIMES: True})


def with_snapped_clocks(table: Table, within_mhz: float) -> Table:
    """The table with clocks within that many MHz merged to their rounded mean. InputError.

    A group of clocks that spans more is refused.
    """
    snapped = dict(table.numbers)
    for axis in ("engine_mhz", "memory_mhz") if within_mhz > 0 else ():
        clocks, clock_of = np.unique(table.setting(axis), return_inverse=True)
        begins = np.diff(clocks, prepend=clocks[0]) > within_mhz
        starts, group_of = np.append(0, np.flatnonzero(begins)), np.cumsum(begins)[clock_of]
        means = (np.bincount(group_of, table.numbers[axis]) / np.bincount(group_of)).round()
        spans = np.maximum.reduceat(clocks, starts) - np.minimum.reduceat(clocks, starts)
        if (wide := np.flatnonzero(spans > within_mhz)).size:
            first = clocks[starts[wide[0]]]
            raise InputError(
                f"{table.source}: {axis} {first:g} to {first + spans[wide[0]]:g} MHz are a chain "
                f"of steps, each within {within_mhz:g} MHz of the next: give a smaller number"
            )
        if len(means) < len(clocks):
            snapped[axis] = means[group_of]
            listed = ", ".join(f"{mhz:g}" for mhz in means)
            warn(
                "L04",
                f"{table.source}: {len(clocks)} values of {axis} became {len(means)}: {listed}",
            )
    kept = {SNAP_CLOCKS: within_mhz} if within_mhz > 0 else {}
    return replace(table, numbers=snapped, metadata={**table.metadata, **kept})


def with_base_clocks(table: Table, base: Mapping[str, float], within_mhz: float) -> Table:
    """The table whose clocks within so many MHz of the base's are the base's."""
    numbers = dict(table.numbers)
    for axis in numbers.keys() & {"engine_mhz", "memory_mhz"}:
        is_near = np.abs(numbers[axis] - base[axis]) <= within_mhz
        numbers[axis] = np.where(is_near, base[axis], numbers[axis])
    return replace(table, numbers=numbers)


def missing_column(name: str, present: Collection[str]) -> str:
    """Say that a column is missing, and which one may be meant."""
    close = column_meant(name, present)
    hint = f"; is '{close}' meant? Names must match exactly" if close else ""
    return f"there is no column '{name}'{hint}"


def require_header(source: str, names: Collection[str], present: Collection[str]) -> None:
    """As `require_columns`, but a device answers for CUs, and power can be learnt without times.

    Not where a column of another name may be meant.
    """
    answers = {"cu_count": "device", "time_ms": "power_w"}
    lacking = [name for name in names if name not in present]
    if any(answers.get(n) not in present or source_meant(n, present) for n in lacking):
        require_columns(source, names, present)


def require_columns(source: str, names: Iterable[str], present: Collection[str]) -> None:
    """Raise InputError, naming all that are missing, unless every named column is present."""
    missing = [name for name in names if name not in present]
    if not missing:
        return
    said = missing_column(missing[0], present)
    if len(missing) > 1:
        meant = {name: column_meant(name, present) for name in missing}
        each = [f"'{name}'" + (f" (is '{c}' meant?)" if c else "") for name, c in meant.items()]
        said = f"there are no columns {', '.join(each)}; names must match exactly, "
        said += "including the unit"
    raise InputError(f"{source}: {said}{_mends(missing, present)}")


def _mends(missing: Sequence[str], present: Collection[str]) -> str:
    """What to do about missing columns of ours: `columns` for what it can say, others to add."""
    sources = {name: source_meant(name, present) or _FOR_ALL_ROWS.get(name) for name in missing}
    said = {name: column for name, column in sources.items() if column}
    for name in MEASURED if said else ():  # not required, but else counters
        if name not in {*missing, *present} and (column := source_meant(name, present)):
            said[name] = column
    what = "it is" if len({*missing, *said}) == 1 else "they are"
    mends = [f"say what {what} with {parameter('columns', said)}"] if said else []
    if list(missing) == ["engine_mhz"] and any(name in present for name in CAP_COLUMNS):
        mends = [f"for the best power cap of such runs, advise with {parameter('lever', 'cap')}"]
    to_add = [n for n, column in sources.items() if n in _TO_ADD and not column]
    if to_add:
        mends.append("add " + " and ".join(f"a column '{n}', {_TO_ADD[n]}" for n in to_add))
    if "application" in to_add:
        kernel = sources.get("kernel") or "kernel"
        mapped = parameter("columns", {"application": kernel})
        mends.append(f"if no two kernels are variants of one program, {mapped}")
    return "".join(f"; {mend}" for mend in mends) if {*IDENTITY, *MEASURED} >= set(missing) else ""


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
