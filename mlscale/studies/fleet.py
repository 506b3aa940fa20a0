"""A fleet predicted or advised: row group by row group, into a folder of Parquet files.

The whole run is advised from the sums of the parts, as its kernels do not fit in memory.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.advice.advise import Terms, advice_on, kernel_flags, search_for, search_on
from mlscale.advice.document import run_document
from mlscale.advice.search import Advice, Exchanges, Row, Run, RunBase, Search, exchanges_of
from mlscale.arrays import Floats
from mlscale.data.fleet import Fleet
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.supply import UNLIMITED, drawn_w, supply_of
from mlscale.data.surfaces import BOUNDED, Surfaces, run_in_sequence
from mlscale.data.table_files import parquet_file, write_tables
from mlscale.errors import InputError
from mlscale.files import parse_json_object
from mlscale.model.model import Model, feature_warnings
from mlscale.model.prediction_table import PART, arrow_table, as_arrow
from mlscale.model.predictions import COVERAGE

SUMS = "mlscale_sums"


@dataclass(frozen=True, eq=False)
class Sums:
    """Some kernels as if they were one that runs all their launches one after the other.

    time_ms (S, C, E, M) [ms] and power_w [W], the mean over that time, None where it is not
    predicted; S: the value, and the low and high end of its interval where there are intervals.
    peak_w (C, E, M) [W]: power of the most demanding kernel. is_bounded: whether times are bounds.
    """

    time_ms: Floats
    power_w: Floats | None
    peak_w: Floats | None
    is_bounded: bool = False

    @classmethod
    def from_search(cls, search: Search) -> "Sums":
        """Sum up the kernels of a search."""
        sides: dict[str, Floats] = {}
        for quantity, surfaces in search.of_objective.items():
            ends = [end for end in (surfaces.low, surfaces.high) if end is not None]
            sides[quantity] = np.stack([surfaces.values, *ends], axis=1)
        summed = run_in_sequence(sides["time"], sides.get("power"), search.launches)
        return cls(*summed, search.most_demanding_w, search.surfaces["time"].is_bounded)

    @classmethod
    def from_footer(cls, path: Path) -> "Sums":
        """Those of a part, as its file says them. Raises InputError."""
        with parquet_file(path) as file:
            state = parse_json_object(file.metadata.metadata[SUMS.encode()], str(path))
        power_w, peak_w = (state[n] and np.array(state[n]) for n in ("power_w", "peak_w"))
        return cls(np.array(state["time_ms"]), power_w, peak_w, state["is_bounded"])

    def footer(self) -> dict[str, str]:
        """What `from_footer` reads."""
        arrays = {"time_ms": self.time_ms, "power_w": self.power_w, "peak_w": self.peak_w}
        state = {name: None if a is None else a.tolist() for name, a in arrays.items()}
        return {SUMS: json.dumps({**state, "is_bounded": self.is_bounded})}

    def __add__(self, other: "Sums") -> "Sums":
        time_ms, power_w, peak_w = np.stack([self.time_ms, other.time_ms]), None, None
        if self.power_w is not None and other.power_w is not None:
            power_w = np.stack([self.power_w, other.power_w])
        if self.peak_w is not None and other.peak_w is not None:
            peak_w = np.maximum(self.peak_w, other.peak_w)
        both = run_in_sequence(time_ms, power_w, np.ones(2))
        return Sums(*both, peak_w, self.is_bounded or other.is_bounded)

    def surfaces(self, model: Model) -> dict[str, Surfaces]:
        """The one kernel's, absolute."""
        sides = {"time": self.time_ms, "power": self.power_w}
        flags = ((BOUNDED,),) if self.is_bounded else ()
        return {
            quantity: Surfaces(model.grid, model.base, values[:1], flags, *values[1:, None])
            for quantity, values in sides.items()
            if values is not None
        }


def run_base(parts: Iterable[Profiles], terms: Terms) -> RunBase:
    """What the whole run, all kernels of all parts, takes and draws at the base."""
    time_ms, peak_w = 0.0, 0.0
    for profiles in parts:
        time_ms += float(profiles.run_times_ms.sum())
        peak_w = max(peak_w, drawn_w(profiles))
    static_w = terms.power.static_w or 0.0
    return RunBase(time_ms, None if terms.power.absent else peak_w + static_w)


def advise_part(
    model: Model, profiles: Profiles, terms: Terms, base: RunBase
) -> tuple[dict[str, Any], Sums]:
    """What is best for each of some kernels of a run, as columns (K,), and the kernels' sums.

    The columns are those of `mlscale advise --format csv`, without the front. Raises InputError.
    """
    predictions, search = search_for(model, profiles, terms, base)
    columns: dict[str, Any] = {"kernel": np.array(profiles.kernels, dtype=object)}
    columns |= search.kernel_columns()
    flags = ["; ".join(flags) for flags in kernel_flags(search, predictions)]
    columns["flags"] = np.array(flags, dtype=object)
    return columns, Sums.from_search(search)


def advise_run(model: Model, sums: Sums, terms: Terms, run: Run, notes: Sequence[str]) -> Advice:
    """The advice for the whole run alone, from the sums of all its kernels. Raises InputError.

    notes: the warnings of the profiles.
    """
    surfaces, peak_w = sums.surfaces(model), sums.peak_w
    at_base = 0.0 if peak_w is None else float(peak_w[model.grid.index(model.base)])
    supply = UNLIMITED if terms.power.absent else supply_of(model.device, at_base)
    search = search_on(surfaces, np.ones(1), terms, supply, peak_w=peak_w)
    return advice_on(search, terms, run, notes, model.trained_range)


@dataclass(frozen=True, eq=False)
class FleetWork:
    """What is done with each row group of a fleet, and where its part of the results goes.

    targets: where to predict, none for everywhere; drawn_w: the most that any kernel was measured
    to draw there [W]. advice: the terms of the whole run and its base, where advice is asked for.
    """

    fleet: Fleet
    folder: Path
    targets: tuple[HardwareConfig, ...] = ()
    drawn_w: float = 0.0
    advice: tuple[Terms, RunBase] | None = None

    def path(self, number: int) -> Path:
        """The part of a row group."""
        return self.folder / f"part-{number:06}.parquet"

    def is_written(self, number: int, part: Row) -> bool:
        """Whether the part that `do_part` told of is there."""
        path = self.path(number)
        return bool(part["bytes"] == (path.stat().st_size if path.is_file() else 0))


def prediction_work(fleet: Fleet, folder: Path, targets: tuple[HardwareConfig, ...]) -> FleetWork:
    """The work of predictions of a fleet, of which all power is read once."""
    return FleetWork(fleet, folder, targets, fleet.most_drawn_w(PART))


def advice_work(fleet: Fleet, folder: Path, terms: Terms) -> FleetWork:
    """The work of advice on a fleet, for which all of it is read once, without its counters."""
    parts = (part for group in fleet.groups for part in fleet.without_counters(group, PART))
    return FleetWork(fleet, folder, advice=(terms, run_base(parts, terms)))


@dataclass
class _PartTotals:
    """What is known of the kernels of a part so far."""

    kernels: int = 0
    launches: float = 0.0
    says_launches: bool = False
    exchanges: Exchanges = field(default_factory=Exchanges)
    warnings: dict[str, None] = field(default_factory=dict)
    sums: Sums | None = None

    def table(self, model: Model, work: FleetWork, profiles: Profiles) -> Any:
        """Add some kernels; their rows of results, as an Arrow table. Raises InputError."""
        self.kernels += len(profiles.kernels)
        self.launches += float(profiles.weights.sum())
        self.says_launches |= profiles.launches is not None
        self.exchanges += exchanges_of(profiles)
        if work.advice is None:
            predictions = model.predict(profiles, COVERAGE)
            predictions = replace(predictions, run_drawn_w=work.drawn_w)
            self.warnings.update(dict.fromkeys(predictions.warnings))
            return arrow_table(predictions, list(work.targets) or None)
        self.warnings.update(dict.fromkeys(feature_warnings(model, profiles)))
        columns, sums = advise_part(model, profiles, *work.advice)
        self.sums = sums if self.sums is None else self.sums + sums
        return as_arrow(columns)


def do_part(model: Model, work: FleetWork, number: int) -> Row:
    """Predict or advise a row group, and write its part: what is known of it, as JSON values.

    Raises InputError, naming the row group.
    """
    group, path = work.fleet.groups[number], work.path(number)
    totals = _PartTotals()
    kernels = work.fleet.profiles(group, max(1, PART // model.grid.size))
    tables = (totals.table(model, work, profiles) for profiles in kernels)
    try:
        write_tables(path, tables, lambda: totals.sums.footer() if totals.sums else {})
    except InputError as error:
        known = str(error).startswith((str(group.path), str(path)))
        raise InputError(str(error) if known else f"{group}: {error}") from None
    return {
        "kernels": totals.kernels,
        "launches": totals.launches,
        "says_launches": totals.says_launches,
        "exchanges": asdict(totals.exchanges),
        "warnings": list(totals.warnings),
        "bytes": path.stat().st_size if totals.kernels else 0,
    }


def checked(work: FleetWork, running: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """The parts as they come. Raises InputError where one is not in this machine's folder."""
    for number, part in running:
        if not work.is_written(number, part):
            raise InputError(
                f"{work.path(number)}: is not what a worker wrote; all machines must see the "
                "folder, and the fleet, under the same name"
            )
        yield number, part


def whole_document(
    work: FleetWork,
    model: Model,
    parts: Sequence[Row],
    name: str,
    notes: Sequence[str],
    is_of_monitor: bool,
) -> Row:
    """What is known of the whole fleet of that name, and with terms the advice for the whole run.

    parts: what `do_part` gave of each row group. notes: of the model's choice. is_of_monitor:
    whether the kernels are runs. Raises InputError where no kernel is left.
    """
    notes = [*notes, *dict.fromkeys(note for part in parts for note in part["warnings"])]
    kernels = sum(part["kernels"] for part in parts)
    numbers = [number for number, part in enumerate(parts) if part["bytes"]]
    if not numbers:
        raise InputError(f"{name}: no kernel has counters")
    counts = {"kernels": kernels, "parts": len(numbers)}
    if work.advice is None:
        return {**counts, "warnings": notes}
    launches = sum(part["launches"] for part in parts)
    says_launches = any(part["says_launches"] for part in parts)
    run = Run(kernels, launches if says_launches else None, 100.0, is_of_monitor)
    sums = reduce(add, (Sums.from_footer(work.path(number)) for number in numbers))
    notes += reduce(add, (Exchanges(**part["exchanges"]) for part in parts)).warnings
    advice = advise_run(model, sums, work.advice[0], run, notes)
    return {**counts, **run_document(model, advice)}
