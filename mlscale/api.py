"""What a Python user calls: files, data frames or profiles in, answers and predictions out.

Thin, over what the commands use; what they have as an option is a keyword of its name here.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.advice.advise import advise as advise_profiles
from mlscale.advice.commands import commands_for_cap, commands_for_clocks
from mlscale.advice.document import document
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Row
from mlscale.answer import Answer, ServerAnswer
from mlscale.data import measurements as tables
from mlscale.data import profiles as profile_tables
from mlscale.data.devices import device_keys, key_or_name, load_device
from mlscale.data.grid import AXES, settings_of
from mlscale.data.profiles import Profiles
from mlscale.data.table import Table
from mlscale.data.table_files import table_from_frame
from mlscale.errors import DataWarning, InputError, extra_named
from mlscale.keywords import in_python, speaks_python
from mlscale.model import model as models
from mlscale.model.model import Model
from mlscale.model.predictions import COVERAGE, Predictions
from mlscale.notes import Note, note_rows
from mlscale.readers import reading
from mlscale.readers.given import Given
from mlscale.subject import Asked, Subject, is_model_name, load_model, rate_note, with_rates
from mlscale.subject import read as read_subject
from mlscale.text import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from mlscale.advice.caps import CapAdvice

_FACTS = ("device", "base", "power", "gpu", "interval_s", "time_ms", "skip_untimed")  # of Given
_CHOICES = ("model", "weights", "profiled_only", "extrapolate", "force", "columns", "peaks")
_INSTEAD = {  # what is guessed
    "objective": "minimize=",
    "limits": "max_slowdown=, max_time= or max_power=",
    **{axis: f"at={{'{axis}': …}}" for axis in (*AXES, "engine", "memory", "cu")},
}

load = speaks_python(load_model)
train = speaks_python(models.train)
import_profile = speaks_python(reading.import_profile)
read = speaks_python(tables.read)
read_profiles = speaks_python(profile_tables.read_profiles)


@speaks_python
def advise(
    *run: Any,
    minimize: str | None = None,
    max_slowdown: float | None = None,
    max_time: float | None = None,
    max_power: float | None = None,
    lever: str = "clock",
    caps: Sequence[float] | None = None,
    static_power: float | None = None,
    **known: Any,
) -> Answer:
    """What to set for a run, and what it costs and saves: `mlscale advise` from Python.

    run: files of one run as the tools wrote them (profile, trace, log), a table's file, a data
    frame, or `Profiles`. minimize: 'energy', 'edp', 'ed2p', 'time', 'power' or 'clock'; by default
    energy, or the clock where power is not known. max_slowdown [%], max_time [ms] of the run,
    max_power [W] of each kernel. lever: 'clock' or 'cap'. caps [W]: power caps to tell the run
    under, empty for the GPU's range. known: what the files do not say, device, base, power [W, or
    a log's file], gpu, interval_s, time_ms, skip_untimed; also, the same work at another setting: a
    file, 'FILE@engine=1335' or a frame, or several; rate, work per second of each run, such as
    tokens, for logs that do not begin and end with it (times and energies are then of RATED_UNITS
    of it); model, the name of a shipped one, a file, or a `Model`; weights, profiled_only,
    extrapolate, force, columns.

    Of an LLM server the run is a benchmark's result and its log, also those at a second clock; slo
    limits latencies, as {'ttft': '500ms@p90'}, '' for none; pool is 'prefill' or 'decode', capacity
    two results of all requests at once.

    Warns of nothing: what a reader should know is in the answer's notes. Raises InputError.

    Example:
        answer = mlscale.advise("ncu.csv", power=500, max_slowdown=5)
        answer.best.engine_mhz, answer.best.slowdown_percent
    """
    from mlscale.advice.caps import advise_caps, require_other_clock

    if "slo" in known or "pool" in known or "capacity" in known:
        return _server_answer(run, known)
    if lever not in ("clock", "cap"):
        raise InputError(f"the lever is 'clock' or 'cap', not {lever!r}")
    is_cap, capped = lever == "cap", None
    limits = Limits(max_power_w=max_power, max_time_ms=max_time, max_slowdown_percent=max_slowdown)
    with _kept_notes() as notes:
        found = read_subject(_asked("advise", run, known))
        if is_cap:
            require_other_clock(found.profiles)
        advice = advise_profiles(found.model, found.profiles, minimize, limits, static_power)
        if is_cap or caps is not None:
            goal = None if minimize == "clock" and not is_cap else minimize
            asked_w, held = tuple(caps or ()), (static_power, advice.surfaces)
            capped = advise_caps(found.model, found.profiles, asked_w, goal, limits, *held)
    if "rate" in known:
        notes.append(rate_note())
    found = replace(found, notes=_in_python([*notes, *found.notes]))
    return Answer(_document(advice, found, capped, lever), advice, found, (minimize, limits))


@speaks_python
def predict(*run: Any, at: Any = None, **known: Any) -> Predictions:
    """Time and, where it can be, power and energy of each kernel, with 90 % intervals.

    at: where, as {'engine': [1200, 1400]}, 'engine=1200' or a configuration, or a list of these; by
    default everywhere. run and known: as for `advise`, and peaks. Raises InputError.

    Example:
        predictions = mlscale.predict("ncu.csv", at={"engine": [1200, 1400]})
        predictions.frame
    """
    settings = [] if at is None else settings_of(at)
    texts = [",".join(f"{axis}={one[axis]:.15g}" for axis in one) for one in settings]
    with _kept_notes() as notes:
        found = read_subject(replace(_asked("predict", run, known), at=tuple(texts)))
        predictions = found.model.predict(found.profiles, COVERAGE)
    notes = [*notes, *found.notes, *predictions.warnings]
    return replace(predictions, warnings=_in_python(notes), asked=found.targets or None)


def save(model: Model, path: Path | str) -> None:
    """Write a model file whole or not at all. Raises InputError.

    Example:
        mlscale.save(model, "my.mlscale")
    """
    if not isinstance(model, Model):
        raise InputError("save takes the model first: mlscale.save(model, 'my.mlscale')")
    model.save(path)


@extra_named("'devices'")
def devices() -> "pd.DataFrame":
    """The GPUs that mlscale knows, a row each with its facts, as a pandas DataFrame.

    Example:
        mlscale.devices().query("cu_count > 100")
    """
    import pandas as pd

    return pd.DataFrame([load_device(key).as_dict() for key in device_keys()])


# What a call names.


def _asked(function: str, run: Sequence[Any], known: Mapping[str, Any]) -> Asked:
    """What is asked for. Raises InputError on what cannot be, with what to write."""
    for name in known.keys() - {*_FACTS, *_CHOICES, "also", "rate"}:
        near = did_you_mean(name, (*_FACTS, *_CHOICES, "also", "rate", "max_slowdown"))
        instead = f"; write {_INSTEAD[name]}" if name in _INSTEAD else near
        raise InputError(f"{function} has no '{name}'{instead}")
    run = [one for part in run for one in (part if isinstance(part, list | tuple) else [part])]
    if not run or any(isinstance(one, Model) or is_model_name(str(one)) for one in run):
        raise InputError(f"{function} takes the run first: write {function}(run, model=model)")
    is_files = all(map(_is_file, run))
    if len(run) > 1 and not is_files:
        raise InputError(f"{function} takes several files, or one data frame, or one Profiles")
    further = known.get("also", ())
    further = [further] if _is_file(further) or hasattr(further, "columns") else further
    facts = {name: known[name] for name in _FACTS if known.get(name) is not None}
    if "device" in facts:
        facts["device"] = key_or_name(facts["device"])
    if "base" in facts:
        facts["base"] = settings_of(facts["base"])[0]
    if facts and isinstance(run[0], Profiles):
        raise InputError(
            "profiles say base, device and power themselves: give these where they are read, "
            "mlscale.import_profile(file, power=500)"
        )
    choices = {name: known[name] for name in _CHOICES if name in known}
    model = choices.pop("model", "auto")
    asked = Asked(
        tuple(map(str, run)) if is_files else (),
        Given(**facts),
        None if is_files else _table_or_profiles(run[0]),
        None if model == "auto" else model if isinstance(model, Model) else str(model),
        also=tuple(str(one) if _is_file(one) else _table(one) for one in further),
        **choices,
    )
    return with_rates(asked, known["rate"]) if "rate" in known else asked


def _server_answer(run: Sequence[Any], known: Mapping[str, Any]) -> Answer:
    """The answer of a server. Raises InputError."""
    from mlscale.advice.server_answer import server_answer

    facts = {"device", "base", "gpu", "interval_s"}
    for name in known.keys() - {*facts, "also", "slo", "pool", "capacity"}:
        raise InputError(f"advise on a server has no '{name}'{did_you_mean(name, facts)}")
    also = known.get("also", ())
    pairs = [run, *([also] if any(map(_is_file, also)) else also)]
    files = [Path(one) for pair in pairs for one in pair]
    given = Given(**{name: known[name] for name in facts if known.get(name) is not None})
    results = [Path(one) for one in known.get("capacity", ())]
    with _kept_notes() as notes:
        row = server_answer(files, given, known.get("slo", ""), known.get("pool"), results)
    row["notes"] = [*note_rows(_in_python(notes)), *row["notes"]]
    row["notes"] = [{**note, "text": in_python(note["text"])} for note in row["notes"]]
    return ServerAnswer(row)


def _is_file(run: Any) -> bool:
    return isinstance(run, str | Path)


def _table_or_profiles(run: Any) -> Table | Profiles:
    return run if isinstance(run, Profiles) else _table(run)


def _table(run: Any) -> Table:
    """A data frame as a table. Raises InputError."""
    if not hasattr(run, "columns"):
        kind = type(run).__name__
        raise InputError(f"a run is a file, a pandas DataFrame or Profiles, not {kind}")
    return table_from_frame(run)


# What is answered.


@contextmanager
def _kept_notes() -> Iterator[list[Note]]:
    """Keep what is warned of the data meanwhile, as notes."""
    notes: list[Note] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DataWarning)
        yield notes
    for one in told:
        if isinstance(one.message, DataWarning):
            notes.append(one.message.note)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _in_python(notes: Sequence[Note]) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(replace(note, text=in_python(note.text)) for note in notes))


def _document(advice: Advice, found: Subject, caps: "CapAdvice | None", lever: str) -> Row:
    """The answer's document, in Python's words."""
    from mlscale.cli.further_run import next_step

    metadata = found.profiles.metadata
    if lever == "cap" and caps is not None:
        commands, best = commands_for_cap(caps, metadata), caps.best.run if caps.best else None
    else:
        commands, best = commands_for_clocks(advice, metadata), advice.whole_run.best
    step = next_step(None, found.files, found.model, found.profiles, advice, best)
    name = found.model_name.removesuffix(".mlscale")
    row = document(advice, name, caps, lever, found.notes, commands, step)
    row["notes"] = [{**note, "text": in_python(note["text"])} for note in row["notes"]]
    return {**row, "next": row["next"] and in_python(row["next"])}
