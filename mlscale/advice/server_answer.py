"""From the files of a server to the document of its advice."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mlscale.advice.commands import Commands, commands_for_further_run
from mlscale.advice.document import server_document
from mlscale.advice.recommendation import Row
from mlscale.advice.server import advise_server
from mlscale.advice.server_readings import base_of, read_readings
from mlscale.advice.slo import read_slos
from mlscale.data.datasets import input_file
from mlscale.data.grid import parse_settings
from mlscale.data.supply import limit_notes
from mlscale.errors import InputError
from mlscale.model.shipped import RUNS
from mlscale.notes import Note
from mlscale.readers.files import is_benchmark
from mlscale.readers.given import Given
from mlscale.readers.serving import read_result
from mlscale.subject import file_and_settings, load_model


def server_answer(
    files: Sequence[Path],
    given: Given,
    slo: str | Mapping[str, str] = "",
    pool: str | None = None,
    capacity: Sequence[Path] = (),
    notes: Sequence[Note] = (),
    has_commands: bool = True,
) -> Row:
    """The document. notes: a list that reading fills.

    files: a result, its log, and so on; a log without clocks as LOG@engine=MHZ.
    """
    if len(files) % 2 or not files:
        raise InputError("give each result its log, in pairs: RESULT LOG --also RESULT LOG")
    pairs = []
    for result, text in zip(map(str, files[::2]), map(str, files[1::2]), strict=True):
        log, settings = file_and_settings(text)
        if is_benchmark(log):
            told = f"is a benchmark's result, not the log of {result}"
            raise InputError(f"{log}: {told}; give each result its log: RESULT LOG")
        pairs.append((input_file(result), log, parse_settings(settings) if settings else {}))
    slos, results = read_slos(slo), [read_result(path) for path in capacity]
    readings = read_readings(pairs, given)
    base = base_of(readings, pairs[0][0], given.base)
    advice = advise_server(load_model(RUNS), readings, slos, pool, results, base)
    commands: Commands | None = None
    if has_commands and (best := advice.best(is_sure=True)):
        commands = commands_for_further_run(base.log, best["engine_mhz"])
    held = [note for reading in readings for note in limit_notes(reading.log)]
    return server_document(advice, [*notes, *held], commands)
