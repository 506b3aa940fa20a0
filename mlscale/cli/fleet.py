"""predict and advise on a fleet: row group by row group, into a folder of Parquet files."""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import joblib

from mlscale import __version__
from mlscale.advice.advise import Terms, terms_of
from mlscale.advice.fleet import Sums, advise_part, advise_run, run_base
from mlscale.advice.recommendation import Run
from mlscale.advice.search import RunBase
from mlscale.cli import goal, levers, options, subject
from mlscale.cli.advise import run_document
from mlscale.cli.prediction_table import PART, arrow_table, as_arrow
from mlscale.cli.shown_warnings import print_warnings
from mlscale.cli.study.run import finished_document, in_order
from mlscale.data.fleet import Fleet, digest, row_groups
from mlscale.data.grid import HardwareConfig
from mlscale.data.parquet import parquet_file, write_tables
from mlscale.data.sampled import is_sampled
from mlscale.errors import InputError, UsageError
from mlscale.files import remove_unfinished, write_text
from mlscale.model import Model, feature_warnings
from mlscale.predictions import COVERAGE
from mlscale.records import Progress
from mlscale.studies.dask_client import connected
from mlscale.studies.parallel import sweep
from mlscale.text import counted

DOCUMENT = "_fleet.json"  # readers of a folder of Parquet pass over names with _
SUMS = "mlscale_sums"
HEAD_ROWS = 1000  # that stand for the fleet where the model is chosen
MOST_PROCESSES = 5  # of one machine, so that they have 2 GiB together
OF_NO_USE = ("power", "gpu", "interval", "time", "skip_untimed", "also")

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Work:
    """What is done with each row group of a fleet, and where its part of the results goes.

    targets: where to predict, none for everywhere; terms and base: of the whole run, where advice
    is asked for.
    """

    fleet: Fleet
    folder: Path
    targets: tuple[HardwareConfig, ...]
    terms: Terms | None = None
    base: RunBase | None = None

    def path(self, number: int) -> Path:
        """The part of a row group."""
        return self.folder / f"part-{number:06}.parquet"


def predict(arguments: argparse.Namespace) -> None:
    """Predict a fleet into a folder. Raises InputError."""
    _refuse(arguments, ("parquet", "json"))
    of, fleet = _subject(arguments, arguments.at, arguments.peaks)
    work = Work(fleet, Path(arguments.output).resolve(), of.targets)
    _carry_out(arguments, of, work)


def advise(arguments: argparse.Namespace) -> None:
    """Advise on a fleet: its kernels into a folder, the run on the terminal. Raises InputError."""
    _refuse(arguments, ("table", "json"), ("weights", "next_profile", *levers.OPTIONS))
    of, fleet = _subject(arguments)
    limits = goal.read_limits(arguments)
    terms = terms_of(of.model, of.profiles, arguments.minimize, limits, arguments.static_power)
    parts = (part for group in fleet.groups for part in fleet.without_counters(group, PART))
    base = run_base(parts, terms)
    _carry_out(arguments, of, Work(fleet, Path(arguments.output).resolve(), (), terms, base))


def _refuse(
    arguments: argparse.Namespace, formats: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Raise UsageError on what a fleet has no use for."""
    options.refuse_unused(arguments, (*OF_NO_USE, *more), "with a fleet")
    if arguments.format not in (None, *formats):
        raise UsageError(f"--format {arguments.format}: the results of a fleet are Parquet files")
    if arguments.output is None:
        raise UsageError(
            "a fleet is predicted into a folder of Parquet files: name it with -o DIR/"
        )


def _subject(
    arguments: argparse.Namespace, at: Sequence[str] = (), peaks: str | None = None
) -> tuple[subject.Subject, Fleet]:
    """The model, which the first rows choose, and the fleet. Raises InputError."""
    _, files = subject.model_and_files(arguments)
    if len(files) > 1:
        raise UsageError("a fleet is one Parquet file, or one folder of them")
    groups, columns = row_groups(options.input_file(files[0]))
    of = subject.read(arguments, at, peaks, next(groups[0].tables(HEAD_ROWS)))
    has_power = of.profiles.power_w is not None
    device, base = of.profiles.device, of.profiles.base
    return of, Fleet(groups, columns, device, base, arguments.profiled_only, has_power)


def _carry_out(arguments: argparse.Namespace, of: subject.Subject, work: Work) -> None:
    """Do the work, resume it, or find it done, and say what came of it. Raises InputError."""
    fleet, command = work.fleet, arguments.command
    content = (digest(fleet.groups), [group.number for group in fleet.groups])
    of_fleet = (fleet.columns, fleet.device, fleet.base, fleet.profiled_only)
    settings = (command, *of_fleet, work.targets, work.terms)
    fingerprint = joblib.hash((__version__, content, of.model, settings))
    with ExitStack() as stack:
        folder = stack.enter_context(options.output_folder(arguments.output))
        document = finished_document(folder / DOCUMENT, fingerprint, "fleet")
        parts_there = sum(1 for _ in folder.glob("*.parquet"))
        if document is None and parts_there and not Progress.is_in(folder):
            raise InputError(f"{folder}: holds other Parquet files; name another folder")
        is_lost = document is not None and parts_there < document["parts"]
        if document is None or is_lost or not arguments.resume or Progress.is_in(folder):
            client = stack.enter_context(connected(arguments.dask)) if arguments.dask else None
            progress = stack.enter_context(Progress(folder, fingerprint, arguments.resume, "fleet"))
            done = progress.done.items()
            progress.done = {n: part for n, part in done if _is_whole(work, n, part)}
            calls = [(of.model, work, number) for number in range(len(fleet.groups))]
            jobs = min(os.cpu_count() or 1, MOST_PROCESSES)
            running = _checked(work, sweep(do_part, calls, jobs, progress, client))
            try:
                parts = in_order(running, len(calls), progress, arguments.output)
                result = _document(of, work, parts)
            except InputError:
                if not any(folder.glob("*.parquet")):
                    progress.remove()
                raise
            remove_unfinished(folder)
            document = {
                "fleet": command,
                "tables": [of.profile_name],
                **result,
                "fingerprint": fingerprint,
            }
            write_text(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
            progress.remove()
    _tell(document, arguments)


def do_part(model: Model, work: Work, number: int) -> Row:
    """Predict or advise a row group, and write its part: what is known of it, as JSON values.

    Raises InputError, naming the row group.
    """
    group = work.fleet.groups[number]
    part: Row = {"kernels": 0, "launches": 0.0, "says_launches": False, "bytes": 0}
    notes: dict[str, None] = {}
    sums: list[Sums] = []

    def tables() -> Iterator[Any]:
        for profiles in work.fleet.profiles(group, max(1, PART // model.grid.size)):
            part["kernels"] += len(profiles.kernels)
            part["launches"] += float(profiles.weights.sum())
            part["says_launches"] |= profiles.launches is not None
            part["idle_ms"] = profiles.idle_ms
            if work.terms is None or work.base is None:
                predictions = model.predict(profiles, COVERAGE)
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


def _is_whole(work: Work, number: int, part: Row) -> bool:
    """Whether the part that was written is there."""
    path = work.path(number)
    return bool(part["bytes"] == (path.stat().st_size if path.is_file() else 0))


def _checked(work: Work, running: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """The parts as they come. Raises InputError where one is not in this machine's folder."""
    for number, part in running:
        if not _is_whole(work, number, part):
            raise InputError(
                f"{work.path(number)}: is not what a worker wrote; all machines must see the "
                "folder, and the fleet, under the same name"
            )
        yield number, part


def _document(of: subject.Subject, work: Work, parts: Sequence[Row]) -> Row:
    """What is known of the whole fleet, and with terms the advice for the whole run."""
    notes = dict.fromkeys(note for part in parts for note in part["warnings"])
    kernels = sum(part["kernels"] for part in parts)
    numbers = [number for number, part in enumerate(parts) if part["bytes"]]
    if not numbers:
        raise InputError(f"{of.profile_name}: no kernel has counters")
    counts = {"kernels": kernels, "parts": len(numbers)}
    if work.terms is None:
        return {**counts, "warnings": [*of.notes, *notes]}
    launches = sum(part["launches"] for part in parts)
    says_launches = any(part["says_launches"] for part in parts)
    files = {group.path: n for n, group in enumerate(work.fleet.groups) if parts[n]["bytes"]}
    idle_ms = sum(parts[number]["idle_ms"] for number in files.values())
    is_of_monitor = is_sampled(of.profiles.metadata)
    run = Run(kernels, launches if says_launches else None, idle_ms, 100.0, is_of_monitor)
    sums = reduce(add, (_sums(work.path(number)) for number in numbers))
    advice = advise_run(of.model, sums, work.terms, run, [*of.notes, *notes])
    return {**counts, **run_document(of.model, advice)}


def _sums(path: Path) -> Sums:
    """The sums of a part, as its file says them. Raises InputError."""
    with parquet_file(path) as file:
        return Sums.restored(json.loads(file.metadata.metadata[SUMS.encode()]))


def _tell(document: Row, arguments: argparse.Namespace) -> None:
    """Print what came of it, or the whole document."""
    if arguments.format == "json":
        print(json.dumps(document, indent=1))
        return
    print_warnings(document["warnings"])
    if "verdict" in document:
        print(f"{document['verdict']}\n")
    counts = f"{counted(document['kernels'], 'kernel')} in {counted(document['parts'], 'part')}"
    print(f"Written: {counts} in {arguments.output}")
