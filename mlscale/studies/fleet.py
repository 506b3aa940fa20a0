"""A fleet predicted or advised: row group by row group, into a folder of Parquet files.

The whole run is advised from the sums of the parts, as its kernels do not fit in memory.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.advice.advise import (
    advise_run,
    exchange_warnings,
    exchanged_ms,
    kernel_flags,
    predicted_costs,
)
from mlscale.advice.answer import PlainAnswer, answer_by
from mlscale.advice.document import Row, document
from mlscale.advice.recommendation import Advice, Costs, Terms, Workload
from mlscale.advice.search import best_of_kernels, choices_at
from mlscale.advice.sureness import Grounds
from mlscale.data.fleet import Fleet
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.supply import UNLIMITED, drawn_w, supply_of
from mlscale.data.table_files import parquet_file, write_tables
from mlscale.errors import InputError
from mlscale.files import parse_json_object
from mlscale.model.model import Model, feature_warnings
from mlscale.model.prediction_table import PART, as_arrow
from mlscale.model.predictions import COVERAGE
from mlscale.notes import Note, note_rows, notes_from

SUMS = "mlscale_sums"
_ARRAYS = ("time_ms", "power_w", "peak_w")


def joined(one: Costs, other: Costs) -> Costs:
    """Two parts of a run, each summed, as one."""
    power_w = peak_w = None
    if one.power_w is not None and other.power_w is not None:
        power_w = np.concatenate([one.power_w, other.power_w])
    if one.peak_w is not None and other.peak_w is not None:
        peak_w = np.concatenate([one.peak_w, other.peak_w])
    both = replace(
        one,
        launches=np.ones(2),
        time_ms=np.concatenate([one.time_ms, other.time_ms]),
        power_w=power_w,
        peak_w=peak_w,
        power_ends_w=None,
        is_bounded=one.is_bounded or other.is_bounded,
    )
    return both.summed()


def state_of(costs: Costs) -> dict[str, Any]:
    """Summed costs as JSON values."""
    arrays = {name: getattr(costs, name) for name in _ARRAYS}
    state = {name: None if array is None else array.tolist() for name, array in arrays.items()}
    return {**state, "is_bounded": costs.is_bounded}


def restored(state: dict[str, Any], model: Model) -> Costs:
    """Summed costs from what `state_of` gave."""
    arrays = {name: None if state[name] is None else np.array(state[name]) for name in _ARRAYS}
    known = {**arrays, "is_bounded": state["is_bounded"]}
    return Costs(model.grid, model.base, np.ones(1), **known)


def run_base(parts: Iterable[Profiles], terms: Terms) -> tuple[float, float]:
    """What the whole run, all kernels of all parts, takes [ms] and draws [W] at the base."""
    time_ms, peak_w = 0.0, 0.0
    for profiles in parts:
        time_ms += float(profiles.run_times_ms.sum())
        peak_w = max(peak_w, drawn_w(profiles))
    return time_ms, peak_w + terms.added_w


def advise_part(
    model: Model, profiles: Profiles, terms: Terms, base: tuple[float, float]
) -> tuple[dict[str, Any], Costs]:
    """What is best for each of some kernels of a run, as columns (K,), and the kernels' sums.

    The columns are those of the CSV of `mlscale advise`, without the front. base: of the whole
    run. Raises InputError.
    """
    run_ms, run_peak_w = base
    predictions, costs, _, _ = predicted_costs(model, profiles, terms, run_peak_w)
    best, too_slow = best_of_kernels(costs, terms, run_ms)
    chosen = choices_at(costs, terms, np.arange(len(best)), best)
    columns: dict[str, Any] = {"kernel": np.array(profiles.kernels, dtype=object)}
    columns["cu_count"] = np.array([one.cu_count for one in chosen])
    for name in ("engine_mhz", "memory_mhz", "time_ms", "power_w", "energy_mj"):
        columns[name] = np.array([getattr(one, name) for one in chosen], dtype=np.float64)
    columns["launches"] = costs.launches
    columns["share_percent"] = 100 * costs.launches * costs.base_ms / run_ms
    for name in ("saving", "slowdown"):
        ends = [getattr(one, f"{name}_range") or (np.nan, np.nan) for one in chosen]
        columns[f"{name}_percent"] = np.array([getattr(one, f"{name}_percent") for one in chosen])
        columns[f"{name}_low_percent"], columns[f"{name}_high_percent"] = np.array(ends).T
    by_kernel = kernel_flags(predictions, best, too_slow)
    flags = ["; ".join(map(str, flags)) for flags in by_kernel]
    columns["flags"] = np.array(flags, dtype=object)
    return columns, costs.summed()


def advise_fleet(
    model: Model, run: Costs, terms: Terms, workload: Workload, notes: Sequence[Note]
) -> Advice:
    """The advice for the whole run alone, from the sums of all its kernels. Raises InputError.

    notes: the warnings of the profiles.
    """
    supply = UNLIMITED
    if run.peak_w is not None:
        supply = supply_of(model.device, float(run.peak_w[0][run.grid.index(run.base)]))
    grounds = Grounds(model.device, not model.untrained, is_simulated=model.is_simulated)
    return advise_run(model, replace(run, supply=supply), terms, workload, notes, grounds)


@dataclass(frozen=True, eq=False)
class FleetWork:
    """What is done with each row group of a fleet, and where its part of the results goes.

    targets: where to predict, none for everywhere; drawn_w: the most that any kernel was measured
    to draw there [W]. terms and base (see `run_base`): of the whole run, where advice is asked for.
    """

    fleet: Fleet
    folder: Path
    targets: tuple[HardwareConfig, ...]
    drawn_w: float = 0.0
    terms: Terms | None = None
    base: tuple[float, float] | None = None

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
    part: Row = {
        "kernels": 0,
        "launches": 0.0,
        "says_launches": False,
        "bytes": 0,
        "exchanged_ms": 0.0,
    }
    notes: dict[Note, None] = {}
    sums: list[Costs] = []

    def tables() -> Iterator[Any]:
        for profiles in work.fleet.profiles(group, max(1, PART // model.grid.size)):
            part["kernels"] += len(profiles.kernels)
            part["launches"] += float(profiles.weights.sum())
            part["says_launches"] |= profiles.launches is not None
            part["exchanged_ms"] += exchanged_ms(profiles)
            if work.terms is None or work.base is None:
                predictions = model.predict(profiles, COVERAGE)
                predictions = replace(predictions, run_drawn_w=work.drawn_w)
                notes.update(dict.fromkeys(predictions.warnings))
                yield as_arrow(predictions.columns(list(work.targets) or None))
            else:
                notes.update(dict.fromkeys(feature_warnings(model, profiles)))
                columns, part_sums = advise_part(model, profiles, work.terms, work.base)
                sums[:] = [reduce(joined, [*sums, part_sums])]
                yield as_arrow(columns)

    def footer() -> dict[str, str]:
        return {SUMS: json.dumps(state_of(sums[0]))} if sums else {}

    try:
        write_tables(work.path(number), tables(), footer)
    except InputError as error:
        known = str(error).startswith((str(group.path), str(work.path(number))))
        raise InputError(str(error) if known else f"{group}: {error}") from None
    size = work.path(number).stat().st_size if part["kernels"] else 0
    return {
        **part,
        "bytes": size,
        "notes": [[note.code, note.text, note.severity] for note in notes],
    }


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
    model_name: str,
    notes: Sequence[Note],
) -> Row:
    """What is known of the whole fleet of that name, and with terms the advice for the whole run.

    parts: what `do_part` gave of each row group. notes: of the model's choice. Raises InputError
    where no kernel is left.
    """
    told = (Note(*note) for part in parts for note in part["notes"])
    notes = [*notes, *dict.fromkeys(told)]
    kernels = sum(part["kernels"] for part in parts)
    numbers = [number for number, part in enumerate(parts) if part["bytes"]]
    if not numbers:
        raise InputError(f"{name}: no kernel has counters")
    counts = {"kernels": kernels, "parts": len(numbers)}
    if work.terms is None:
        return {**counts, "notes": note_rows(notes)}
    launches = sum(part["launches"] for part in parts)
    says_launches = any(part["says_launches"] for part in parts)
    workload = Workload(
        kernels=kernels, launches=launches if says_launches else None, counters_cover_percent=100.0
    )
    run_ms, _ = work.base or (1.0, 0.0)
    notes += exchange_warnings(sum(part["exchanged_ms"] for part in parts) / run_ms)
    answer = _answer(work, work.terms, model, workload, model_name, notes)
    return {"parts": len(numbers), **document(answer)}


def written_answer(work: FleetWork, model: Model, written: Row) -> PlainAnswer | None:
    """The answer of which `whole_document` wrote this document; None of a fleet that is predicted.

    Raises InputError.
    """
    if work.terms is None:
        return None
    run = written["run"]
    workload = Workload(run["kernels"], run["launches"], run["counters_cover_percent"])
    answer = _answer(work, work.terms, model, workload, written["model"], ())
    return replace(answer, notes=notes_from(written["notes"]))


def _answer(
    work: FleetWork,
    terms: Terms,
    model: Model,
    workload: Workload,
    model_name: str,
    notes: Sequence[Note],
) -> PlainAnswer:
    """The answer for the whole run, from the sums that the parts have. Raises InputError."""
    paths = [work.path(number) for number in range(len(work.fleet.groups))]
    run = reduce(joined, (_sums(path, model) for path in paths if path.is_file()))
    return answer_by(advise_fleet(model, run, terms, workload, notes), model_name)


def _sums(path: Path, model: Model) -> Costs:
    with parquet_file(path) as file:
        state = parse_json_object(file.metadata.metadata[SUMS.encode()], str(path))
    return restored(state, model)
