"""How a study is carried out: a progress bar, what is done kept, and the results written."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli import options
from mlscale.errors import InputError
from mlscale.files import parse_json_object, whole_file, write_text

if TYPE_CHECKING:
    from mlscale.data.grid import HardwareConfig
    from mlscale.data.measurements import Measurements
    from mlscale.records import Progress

DOCUMENT = "study.json"
FORMATS = ("csv", "parquet")

Document = dict[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """A planned study. units and asked: all that it depends on besides the measurements.

    run(jobs, kept, client) gives a result for each unit; document(results) sums them up as JSON
    values; as_text(document) for the terminal; write(folder, suffix, document, results) writes
    tables of that format, and figures, and returns their paths.
    """

    units: Sequence[Any]
    asked: list[str]
    run: Callable[..., Iterator[Any]]
    document: Callable[[list[Any]], Document]
    as_text: Callable[[Document], str]
    write: Callable[[Path, str, Document, list[Any]], list[Path]]


def at_one_base(
    arguments: argparse.Namespace, tables: dict[str, Measurements]
) -> dict[str, tuple[Measurements, HardwareConfig]]:
    """Each table with the one base of the study, mid-grid unless asked otherwise.

    Raises InputError.
    """
    if len(arguments.base or []) > 1 or arguments.vary:
        raise InputError(f"the study '{arguments.study}' takes one --base, and no --vary")
    found = {}
    for name, data in tables.items():
        base = data.grid.parse((arguments.base or ["mid"])[0])
        data.grid.index(base)
        found[name] = data, base
    return found


def carry_out(
    study: Study, tables: dict[str, Measurements], arguments: argparse.Namespace
) -> tuple[Document, list[Path]]:
    """Run a study: its document, and the files that were written. Raises InputError.

    What is done is kept in the folder of --output until all is; an interrupt says so.
    """
    from mlscale.records import Progress
    from mlscale.studies.dask_client import connected
    from mlscale.studies.parallel import fingerprint

    mark = fingerprint(tables, {"asked": study.asked, "units": [repr(u) for u in study.units]})
    with ExitStack() as stack:
        folder = kept = client = None
        if arguments.output:
            folder = stack.enter_context(options.output_folder(arguments.output))
            finished = _results_there(folder, mark)
            if finished and arguments.resume and not Progress.is_in(folder):
                return finished, []
        if arguments.dask:
            client = stack.enter_context(connected(arguments.dask))
        if folder:
            kept = stack.enter_context(Progress(folder, mark, arguments.resume))
        jobs = min(os.cpu_count() or 1, len(study.units))
        running = study.run(jobs=jobs, kept=kept, client=client)
        results = _all(running, len(study.units), kept, arguments.output)
        document = {**study.document(results), "fingerprint": mark}
        written = []
        if folder and kept:
            written = study.write(folder, arguments.format, document, results)
            write_text(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
            written.append(folder / DOCUMENT)
            kept.remove()
    return document, written


def _results_there(folder: Path, mark: str) -> Document | None:
    """The document of this study, if the folder holds one.

    Raises InputError when it holds one of another study.
    """
    path = folder / DOCUMENT
    try:
        document = parse_json_object(path.read_bytes(), str(path))
    except (OSError, InputError):
        return None
    if document.get("fingerprint") != mark:
        of = f"{document.get('study')} of {', '.join(document.get('tables', []))}"
        raise InputError(
            f"{folder}: holds the results of another study ({of}), or of the same with other data "
            "or settings; name another folder"
        )
    return document


def _all(
    running: Iterator[Any], total: int, kept: Progress | None, folder: str | None
) -> list[Any]:
    """All results; an interrupt tells what is kept, and what cannot be studied keeps nothing."""
    from tqdm import tqdm

    there = len(kept.done) if kept else 0
    results = []
    bar = tqdm(total=total, initial=there, unit="part", disable=None, leave=False)
    try:
        with bar:
            for result in running:
                results.append(result)
                bar.update(len(results) > there)
    except InputError:
        if kept:
            kept.remove()
        raise
    except KeyboardInterrupt:
        if not kept:
            raise
        raise KeyboardInterrupt(
            f"interrupted; {len(kept.done)} of {total} parts are kept in {folder}; "
            "go on with --resume"
        ) from None
    return results


def write_rows(path: Path, rows: Rows) -> Path:
    """Write rows as Parquet, if the name ends so, or CSV; whole or not at all. InputError."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    if "clusters" in frame:  # whole numbers, though a contender without clusters has none
        frame = frame.astype({"clusters": "Int64"})
    with whole_file(path) as temporary:
        if path.suffix == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, index=False)
    return path
