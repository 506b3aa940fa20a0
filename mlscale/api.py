"""What a Python user calls: files, data frames or profiles in, answers and predictions out.

Thin, over what the commands use; what they have as an option is a keyword of its name here.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlscale.advice.answer import RunGoal, advised, document_of_run, next_step
from mlscale.advice.objectives import Limits
from mlscale.answer import Answer
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
from mlscale.quantities import quantity
from mlscale.readers import reading
from mlscale.readers.files import is_benchmark
from mlscale.readers.given import Given
from mlscale.subject import Asked, is_model_name, load_model, rate_note, with_rates
from mlscale.subject import read as read_subject
from mlscale.text import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from mlscale.sensors.meter import Meter

_FACTS = ("device", "base", "power", "gpu", "interval_s", "time_ms", "skip_untimed")  # of Given
_CHOICES = ("model", "weights", "profiled_only", "extrapolate", "force", "columns", "peaks")
_OF_SERVERS = {"slo", "pool", "capacity"}
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
    max_slowdown: float | str | None = None,
    max_time: float | str | None = None,
    max_power: float | str | None = None,
    lever: Literal["clock", "cap"] = "clock",
    caps: Sequence[float | str] | float | str | None = None,
    static_power: float | str | None = None,
    **known: Any,
) -> Answer:
    """What to set for a run, and what it costs and saves: `mlscale advise` from Python.

    run: files of one run as the tools wrote them (profile, trace, log), a table's file, a data
    frame, or `Profiles`. minimize: 'energy', 'edp', 'ed2p', 'time', 'power' or 'clock'; by default
    energy, or the clock where power is not known. max_slowdown [%], max_time [ms] of the run,
    max_power [W] of each kernel; texts such as '5%' and '0.5kW' too. lever: 'clock' or 'cap'.
    caps [W]: power caps to tell the run under, empty for the GPU's range. known: what the files do
    not say, device, base, power [W, or a log's file], gpu, interval_s, time_ms, skip_untimed; also,
    the same work at another setting: a file, 'FILE@engine=1335' or a frame, or several; rate, work
    per second of each run, such as tokens, for logs that do not begin and end with it (times and
    energies are then of RATED_UNITS of it); model, the name of a shipped one, a file, or a `Model`;
    weights, profiled_only, extrapolate, force, columns.

    Of an LLM server the run is a benchmark's result and its log, also those at a second clock; slo
    limits latencies, as {'ttft': '500ms@p90'}; pool is 'prefill' or 'decode', capacity two results
    of all requests at once.

    Warns of nothing: what a reader should know is in the answer's notes. Raises InputError.

    Example:
        answer = mlscale.advise("ncu.csv", power=500, max_slowdown=5)
        answer.best.engine_mhz, answer.best.slowdown_percent
    """
    if known.keys() & _OF_SERVERS or (run and _is_file(run[0]) and is_benchmark(Path(run[0]))):
        if (minimize, max_slowdown, max_time, max_power, caps, static_power) != (None,) * 6:
            raise InputError("of a server the limits are slo=, and energy per token is minimized")
        return _server_answer(run, known)
    if lever not in ("clock", "cap"):
        raise InputError(f"the lever is 'clock' or 'cap', not {lever!r}")
    limits = Limits(
        max_power_w=_number("max_power", max_power, "W"),
        max_time_ms=_number("max_time", max_time, "ms"),
        max_slowdown_percent=_number("max_slowdown", max_slowdown, "%"),
    )
    each_w = [_number("caps", cap_w, "W") for cap_w in _each(caps)]
    caps_w = None if caps is None and lever == "clock" else tuple(w for w in each_w if w)
    static_power_w = _number("static_power", static_power, "W")
    goal = RunGoal(minimize, limits, static_power_w, lever, caps_w)
    with _kept_notes() as notes:
        found = read_subject(_asked("advise", run, known))
        advice, capped = advised(found.model, found.profiles, goal)
    if known.get("rate") is not None:
        notes.append(rate_note(found.profiles))
    found = replace(found, notes=_in_python([*notes, *found.notes]))
    step = next_step(found, goal, advice, capped)
    row = document_of_run(found, goal, advice, capped, (), step, has_commands=True)
    row["notes"] = [{**note, "text": in_python(note["text"])} for note in row["notes"]]
    row["next"] = row["next"] and in_python(row["next"])
    return Answer(row, advice, found, capped)


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


def measure(log: str | Path, *, gpu: int | str | None = None, rate: float | None = None) -> "Meter":
    """Sample a GPU while a block runs, into a log that `advise` reads; a context manager.

    log: the file to write; one that is there is replaced, with a warning. gpu: its index or UUID;
    by default the one that CUDA_VISIBLE_DEVICES names, or the first. rate: work per second of a
    block that is part of a longer run. Raises InputError without a GPU.

    Example::

        with mlscale.measure("fast.csv") as log:
            step()
        log.mean_w, log.energy_j
    """
    from mlscale.sensors.meter import Meter

    return Meter(log, gpu, rate)


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
    further = _each(known.get("also"))
    facts = {name: known[name] for name in _FACTS if known.get(name) is not None}
    if "device" in facts:
        facts["device"] = key_or_name(facts["device"])
    if "base" in facts:
        facts["base"] = settings_of(facts["base"])[0]
    rates = [_number("rate", rate, "") or 1.0 for rate in _each(known.get("rate"))]
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
        None if is_files else run[0] if isinstance(run[0], Profiles) else _table(run[0]),
        None if model in ("auto", None) else model if isinstance(model, Model) else str(model),
        also=tuple(str(one) if _is_file(one) else _table(one) for one in further),
        **choices,
    )
    return with_rates(asked, rates) if rates else asked


def _server_answer(run: Sequence[Any], known: Mapping[str, Any]) -> Answer:
    """The answer of a server. Raises InputError."""
    from mlscale.advice.server_answer import server_answer

    facts = {"also", "device", "base", "gpu", "interval_s", *_OF_SERVERS}
    for name in known.keys() - facts:
        raise InputError(f"advise on a server has no '{name}'{did_you_mean(name, facts)}")
    said = {name: known[name] for name in known.keys() - {"also", *_OF_SERVERS}}
    asked = _asked("advise", [*run, *_each(known.get("also"))], said)
    files, results = (list(map(Path, each)) for each in (asked.files, _each(known.get("capacity"))))
    slo, pool = known.get("slo") or "", known.get("pool")
    with _kept_notes() as notes:
        row = server_answer(files, asked.given, slo, pool, results)
    every = [*note_rows(notes), *row["notes"]]
    row["notes"] = [{**note, "text": in_python(note["text"])} for note in every]
    return Answer(row)


def _each(given: Any) -> list[Any]:
    """What was given, one or several or None, as a list."""
    is_one = _is_file(given) or hasattr(given, "columns") or not hasattr(given, "__iter__")
    return [] if given is None else [given] if is_one else list(given)


def _number(name: str, given: float | str | None, unit: str) -> float | None:
    """A number above 0, or 0 for percent, of that unit. Raises InputError."""
    if given is None:
        return None
    is_known = isinstance(given, str | float | int | np.number) and not isinstance(given, bool)
    if not is_known:
        raise InputError(f"{name} is a number, or a text with a unit, not {given!r}")
    number = quantity(given, unit) if isinstance(given, str) else float(given)
    if not 0 <= number < np.inf or (number == 0 and unit != "%"):
        raise InputError(f"{name} is {given}, which cannot be")
    return number


def _is_file(run: Any) -> bool:
    return isinstance(run, str | Path)


def _table(run: Any) -> Table:
    """A data frame as a table. Raises InputError."""
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
