"""A fleet predicted or advised: row group by row group, into a folder of Parquet files."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from mlscale.advice.advise import Terms
from mlscale.advice.document import run_document
from mlscale.advice.exchange import Exchanges, exchanges_of
from mlscale.advice.fleet import Sums, advise_part, advise_run, run_base
from mlscale.advice.recommendation import Row, Run
from mlscale.advice.search import RunBase
from mlscale.data.fleet import Fleet
from mlscale.data.grid import HardwareConfig
from mlscale.data.parquet import parquet_file, write_tables
from mlscale.errors import InputError
from mlscale.files import parse_json_object
from mlscale.model import Model
from mlscale.model_warnings import feature_warnings
from mlscale.prediction_table import PART, arrow_table, as_arrow
from mlscale.predictions import COVERAGE

SUMS = "mlscale_sums"


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
    parts = (part for group in fleet.groups for part in fleet.without_counters(group, PART))
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
