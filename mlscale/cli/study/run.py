"""How a study is carried out: a progress bar, what is done kept, and the results written."""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mlscale.cli import outputs
from mlscale.errors import InputError
from mlscale.files import parse_json_object, whole_file, write_text
from mlscale.predictors.wu.estimator import AUTO
from mlscale.progress import Progress
from mlscale.studies.base import Rows, Study
from mlscale.text import spreadsheet_cell

DOCUMENT = "study.json"

Document = dict[str, Any]
Draw = Callable[[Study, Path, Document, dict[str, Rows]], list[Path]]


def carry_out(
    study: Study, arguments: argparse.Namespace, draw: Draw | None
) -> tuple[Document, list[Path]]:
    """Run a study: its document, and the files that were written. Raises InputError.

    What is done is kept in the folder of --output until all is; an interrupt says so. draw: what
    makes the study's figures.
    """
    from mlscale.studies.dask_client import connected

    fingerprint = study.fingerprint()
    with ExitStack() as stack:
        folder = progress = client = None
        if arguments.output:
            folder = stack.enter_context(outputs.output_folder(arguments.output))
            finished = finished_document(folder / DOCUMENT, fingerprint)
            if finished and arguments.resume and not Progress.is_in(folder):
                return finished, []
        if arguments.dask:
            client = stack.enter_context(connected(arguments.dask))
        if folder:
            progress = stack.enter_context(Progress(folder, fingerprint, arguments.resume))
        jobs = min(os.cpu_count() or 1, len(study.parts))
        running = study.run(jobs, progress, client)
        try:
            results = in_order(running, len(study.parts), progress, arguments.output)
        except InputError:
            if progress:
                progress.remove()
            raise
        document = {**study.document(results), "fingerprint": fingerprint}
        written = []
        if folder and progress:
            tables = study.files(results)
            for name, rows in tables.items():
                written.append(_write_rows(folder / f"{name}.{arguments.format}", rows))
            written += draw(study, folder, document, tables) if draw else []
            write_text(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
            written.append(folder / DOCUMENT)
            progress.remove()
    return document, written


def finished_document(path: Path, fingerprint: str, what: str = "study") -> Document | None:
    """Return the document of this study, if the file holds one.

    what: it is called in messages. Raises InputError when the file holds one of another.
    """
    try:
        document = parse_json_object(path.read_bytes(), str(path))
    except (OSError, InputError):
        return None
    if document.get("fingerprint") != fingerprint:
        of = f"{document.get(what)} of {', '.join(document.get('tables', []))}"
        raise InputError(
            f"{path.parent}: holds the results of another {what} ({of}), or of the same with other "
            "data or settings; name another folder"
        )
    return document


def in_order(
    running: Iterator[tuple[int, Any]], total: int, progress: Progress | None, folder: str | None
) -> list[Any]:
    """Return all results in order, with a progress bar; an interrupt says what is kept."""
    from tqdm import tqdm

    done = len(progress.done) if progress else 0
    results: dict[int, Any] = {}
    bar = tqdm(total=total, initial=done, unit="part", disable=None, leave=False)
    try:
        with bar:
            for number, result in running:
                results[number] = result
                bar.update(len(results) > done)
    except KeyboardInterrupt:
        if not progress:
            raise
        raise KeyboardInterrupt(
            f"interrupted; {len(progress.done)} of {total} parts are kept in {folder}; "
            "go on with --resume"
        ) from None
    return [results[number] for number in range(total)]


def _write_rows(path: Path, rows: Rows) -> Path:
    """Write rows as Parquet, if the name ends so, or CSV; whole or not at all. InputError."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    if "clusters" in frame and AUTO not in frame["clusters"].to_list():
        # Whole numbers, though a candidate without clusters has none.
        frame = frame.astype({"clusters": "Int64"})
    with whole_file(path) as temporary:
        if path.suffix == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.map(spreadsheet_cell).to_csv(temporary, index=False)
    return path
