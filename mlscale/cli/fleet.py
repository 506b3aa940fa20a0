"""predict and advise on a fleet: row group by row group, into a folder of Parquet files."""

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib

from mlscale import __version__, subject
from mlscale.advice.advise import terms_of
from mlscale.advice.answer import PlainAnswer
from mlscale.advice.document import Row
from mlscale.cli import advise_text, options, outputs
from mlscale.cli.terminal import columns_wide, json_text, notes_line, shown, shows_colours, tell
from mlscale.data.fleet import Fleet, digest, first_rows, row_groups
from mlscale.errors import InputError, UsageError
from mlscale.files import write_text
from mlscale.notes import notes_from
from mlscale.progress import Progress
from mlscale.studies.fleet import (
    FleetWork,
    advice_work,
    checked,
    do_part,
    is_written,
    prediction_work,
    whole_document,
    written_answer,
)
from mlscale.studies.parallel import connected, sweep
from mlscale.text import counted

DOCUMENT = "_fleet.json"  # readers of a folder of Parquet pass over names with _
HEAD_ROWS = 1000  # that stand for the fleet where the model is chosen
MOST_PROCESSES = 5  # on one machine, so that they have 2 GiB together


def predict(arguments: argparse.Namespace) -> None:
    """Predict a fleet into a folder. Raises InputError."""
    _refuse(arguments, ("parquet", "json"))
    head, fleet = _subject(options.asked_run(arguments, at=arguments.at, peaks=arguments.peaks))
    folder = Path(arguments.output).resolve()
    _carry_out(arguments, head, prediction_work(fleet, folder, head.targets))


def advise(arguments: argparse.Namespace) -> None:
    """Advise on a fleet: its kernels into a folder, the run on the terminal. Raises InputError."""
    _refuse(arguments, ("table", "json"))
    head, fleet = _subject(options.asked_run(arguments, arguments.weights))
    limits = options.read_limits(arguments)
    terms = terms_of(head.model, head.profiles, arguments.minimize, limits, arguments.static_power)
    _carry_out(arguments, head, advice_work(fleet, Path(arguments.output).resolve(), terms))


def _refuse(arguments: argparse.Namespace, formats: Sequence[str]) -> None:
    if arguments.format not in (None, *formats):
        raise UsageError(f"--format {arguments.format}: the results of a fleet are Parquet files")
    if arguments.output is None:
        folder = arguments.file[-1]
        told = "name a file in it, or, if it holds Parquet files, a folder for results: -o DIR/"
        raise UsageError(f"{folder}: is a folder; {told}")


def _subject(asked: subject.Asked) -> tuple[subject.Subject, Fleet]:
    """The model, which the first rows choose, and the fleet. Raises InputError."""
    if len(asked.files) > 1:
        raise UsageError("a fleet is one Parquet file, or one folder of them")
    groups, columns = row_groups(asked.files[0].path, asked.columns)
    rows = first_rows(groups, HEAD_ROWS, asked.profiled_only)
    head = subject.read(replace(asked, also=()), rows)
    has_power = head.profiles.power_w is not None
    device, base = head.profiles.device, head.profiles.base
    snap_clocks = head.model.snap_clocks
    return head, Fleet(groups, columns, device, base, asked.profiled_only, has_power, snap_clocks)


def _carry_out(arguments: argparse.Namespace, head: subject.Subject, work: FleetWork) -> None:
    """Do the work, resume it, or find it done, and say what came of it. Raises InputError."""
    fleet, command = work.fleet, arguments.command
    content = (digest(fleet.groups), [(one.number, one.called) for one in fleet.groups])
    told = (fleet.columns, fleet.device, fleet.base, fleet.profiled_only)
    settings = (command, *told, work.targets, work.terms)
    fingerprint = joblib.hash((__version__, content, head.model, settings))
    with ExitStack() as stack:
        folder = stack.enter_context(outputs.output_folder(arguments.output))
        document = outputs.finished_document(folder / DOCUMENT, fingerprint, "fleet")
        parts_there = sum(1 for _ in folder.glob("*.parquet"))
        if document is None and parts_there and not Progress.is_in(folder):
            raise InputError(f"{folder}: holds other Parquet files; name another folder")
        is_lost = document is not None and parts_there < document["parts"]
        if document is None or is_lost or not arguments.resume or Progress.is_in(folder):
            client = stack.enter_context(connected(arguments.dask)) if arguments.dask else None
            progress = stack.enter_context(Progress(folder, fingerprint, arguments.resume, "fleet"))
            try:
                result = _result(head, work, progress, client, arguments.output)
            except InputError:
                if not any(folder.glob("*.parquet")):
                    progress.remove()
                raise
            document = {
                "fleet": command,
                "tables": [head.profile_name],
                **result,
                "fingerprint": fingerprint,
            }
            write_text(folder / DOCUMENT, json_text(document))
            progress.remove()
    answer = written_answer(work, head.model, document)
    if arguments.format == "json":
        print(json_text(document), end="")
    else:
        _tell(document, answer, arguments)
    if answer:
        advise_text.require(answer.sure, arguments.require)


def _result(
    head: subject.Subject, work: FleetWork, progress: Progress, client: Any, output: str
) -> Row:
    """Do the parts that are not written yet, in parallel, and sum all up. Raises InputError."""
    done = progress.done.items()
    progress.done = {number: part for number, part in done if is_written(work, number, part)}
    calls = [(head.model, work, number) for number in range(len(work.fleet.groups))]
    jobs = min(os.cpu_count() or 1, MOST_PROCESSES)
    running = checked(work, sweep(do_part, calls, jobs, progress, client))
    parts = outputs.in_order(running, [1] * len(calls), progress, output)
    names = head.profile_name, head.model_name.removesuffix(".mlscale")
    return whole_document(work, head.model, parts, *names, head.notes)


def _tell(document: Row, answer: PlainAnswer | None, arguments: argparse.Namespace) -> None:
    """Print what came of it."""
    if answer:
        layout = advise_text.Layout(columns_wide(), shows_colours(arguments.color))
        print(advise_text.text(answer, layout))
    notes = notes_from(document["notes"])
    kernels = answer.workload.kernels if answer else document["kernels"]
    counts = f"{counted(kernels, 'kernel')} in {counted(document['parts'], 'part')}"
    print(f"Written: {counts} in {arguments.output}")
    if not answer:
        print(shown(notes_line(note.code for note in notes)), end="")
    tell(notes, arguments.notes)
