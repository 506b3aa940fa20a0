"""A fleet predicted or advised: row group by row group, into a folder of Parquet files.

The whole run is advised from the sums of the parts, as its kernels do not fit in memory.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
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
    def of(cls, search: Search) -> "Sums":
        """Of the kernels of a search."""
        sides: dict[str, Floats] = {}
        for quantity, of in search.of_objective.items():
            ends = [end for end in (of.low, of.high) if end is not None]
            sides[quantity] = np.stack([of.values, *ends], axis=1)
        of_run = run_in_sequence(sides["time"], sides.get("power"), search.launches)
        return cls(*of_run, search.most_demanding_w, search.surfaces["time"].is_bounded)

    @classmethod
    def restored(cls, state: dict[str, Any]) -> "Sums":
        """From what `state` gave."""
        power_w, peak_w = (state[n] and np.array(state[n]) for n in ("power_w", "peak_w"))
        return cls(np.array(state["time_ms"]), power_w, peak_w, state["is_bounded"])

    @property
    def state(self) -> dict[str, Any]:
        """The fields as JSON values."""
        arrays = {"time_ms": self.time_ms, "power_w": self.power_w, "peak_w": self.peak_w}
        state = {name: of if of is None else of.tolist() for name, of in arrays.items()}
        return {**state, "is_bounded": self.is_bounded}

    def __add__(self, other: "Sums") -> "Sums":
        time_ms, power_w, peak_w = np.stack([self.time_ms, other.time_ms]), None, None
        if self.power_w is not None and other.power_w is not None:
            power_w = np.stack([self.power_w, other.power_w])
        if self.peak_w is not None and other.peak_w is not None:
            peak_w = np.maximum(self.peak_w, other.peak_w)
        of_both = run_in_sequence(time_ms, power_w, np.ones(2))
        return Sums(*of_both, peak_w, self.is_bounded or other.is_bounded)

    def surfaces(self, model: Model) -> dict[str, Surfaces]:
        """The one kernel's, absolute."""
        sides = {"time": self.time_ms, "power": self.power_w}
        flags = ((BOUNDED,),) if self.is_bounded else ()
        return {
            quantity: Surfaces(model.grid, model.base, of[:1], flags, *of[1:, None])
            for quantity, of in sides.items()
            if of is not None
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
    flags = ["; ".join(of) for of in kernel_flags(search, predictions)]
    columns["flags"] = np.array(flags, dtype=object)
    return columns, Sums.of(search)


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
    to draw there [W]. terms and base: of the whole run, where advice is asked for.
    """

    fleet: Fleet
    folder: Path
    targets: tuple[HardwareConfig, ...]
    drawn_w: float = 0.0
    terms: Terms | None = None
    base: RunBase | None = None

    def path(self, number: int) -> Path:
        """The part of a row group."""
        return self.folder / f"part-{number:06}.parquet"


def prediction_work(fleet: Fleet, folder: Path, targets: tuple[HardwareConfig, ...]) -> FleetWork:
    """The work of predictions of a fleet, of which all power is read once."""
    return FleetWork(fleet, folder, targets, fleet.most_drawn_w(PART))


def advice_work(fleet: Fleet, folder: Path, terms: Terms) -> FleetWork:
    """The work of advice on a fleet, for which all of it is read once, without its counters."""
    parts = (
        part for group in fleet.groups for part in fleet.profiles(group, PART, with_counters=False)
    )
    return FleetWork(fleet, folder, (), terms=terms, base=run_base(parts, terms))


def do_part(model: Model, work: FleetWork, number: int) -> Row:
    """Predict or advise a row group, and write its part: what is known of it, as JSON values.

    Raises InputError, naming the row group.
    """
    group = work.fleet.groups[number]
    part: Row = {"kernels": 0, "launches": 0.0, "says_launches": False, "bytes": 0}
    part["exchanges"] = asdict(Exchanges())
    notes: dict[str, None] = {}
    sums: list[Sums] = []

    def tables() -> Iterator[Any]:
        for profiles in work.fleet.profiles(group, max(1, PART // model.grid.size)):
            part["kernels"] += len(profiles.kernels)
            part["launches"] += float(profiles.weights.sum())
            part["says_launches"] |= profiles.launches is not None
            own = exchanges_of(profiles)
            part["exchanges"] = asdict(Exchanges(**part["exchanges"]) + own)
            if work.terms is None or work.base is None:
                predictions = model.predict(profiles, COVERAGE)
                predictions = replace(predictions, run_drawn_w=work.drawn_w)
                notes.update(dict.fromkeys(predictions.warnings))
                yield arrow_table(predictions, list(work.targets) or None)
            else:
                notes.update(dict.fromkeys(feature_warnings(model, profiles)))
                columns, of_these = advise_part(model, profiles, work.terms, work.base)
                sums[:] = [reduce(add, [*sums, of_these])]
                yield as_arrow(columns)

    def footer() -> dict[str, str]:
        return {SUMS: json.dumps(sums[0].state)} if sums else {}

    try:
        write_tables(work.path(number), tables(), footer)
    except InputError as error:
        known = str(error).startswith((str(group.path), str(work.path(number))))
        raise InputError(str(error) if known else f"{group}: {error}") from None
    size = work.path(number).stat().st_size if part["kernels"] else 0
    return {**part, "bytes": size, "warnings": list(notes)}


def is_written(work: FleetWork, number: int, part: Row) -> bool:
    """Whether the part that was written is there."""
    path = work.path(number)
    return bool(part["bytes"] == (path.stat().st_size if path.is_file() else 0))


def checked(work: FleetWork, running: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """The parts as they come. Raises InputError where one is not in this machine's folder."""
    for number, part in running:
        if not is_written(work, number, part):
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
    if work.terms is None:
        return {**counts, "warnings": notes}
    launches = sum(part["launches"] for part in parts)
    says_launches = any(part["says_launches"] for part in parts)
    exchanges = reduce(add, (Exchanges(**part["exchanges"]) for part in parts))
    run = Run(
        kernels=kernels,
        launches=launches if says_launches else None,
        counters_cover_percent=100.0,
        is_sampled=is_of_monitor,
    )
    sums = reduce(add, (_sums(work.path(number)) for number in numbers))
    notes += exchanges.warnings
    return {**counts, **run_document(model, advise_run(model, sums, work.terms, run, notes))}


def _sums(path: Path) -> Sums:
    """The sums of a part, as its file says them. Raises InputError."""
    with parquet_file(path) as file:
        return Sums.restored(parse_json_object(file.metadata.metadata[SUMS.encode()], str(path)))
