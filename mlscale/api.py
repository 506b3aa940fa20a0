"""What a Python user calls: files, data frames or profiles in, answers and predictions out.

Thin, over what the commands use; what they have as an option is a keyword of its name here.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.advice.advise import advise as advise_profiles
from mlscale.advice.commands import commands_for_cap, commands_for_clocks
from mlscale.advice.document import document
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Row
from mlscale.answer import Answer
from mlscale.data import measurements as tables
from mlscale.data import profiles as profile_tables
from mlscale.data.devices import device_keys, find_device, load_device, load_device_file
from mlscale.data.grid import AXES, Base, settings_of
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.table import Table
from mlscale.data.table_files import table_from_frame
from mlscale.errors import DataWarning, InputError, extra_named, warn
from mlscale.keywords import in_python, kept_warnings, speaks_python, warn_again
from mlscale.model import model as models
from mlscale.model.model import Model
from mlscale.model.predictions import COVERAGE, Predictions
from mlscale.notes import Note
from mlscale.predictors.base import Predictor, TrainingSet
from mlscale.readers import reading
from mlscale.readers.given import Given
from mlscale.subject import Asked, Subject, is_model_name, load_model
from mlscale.subject import read as read_subject
from mlscale.text import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from mlscale.advice.caps import CapAdvice

RATED_UNITS = 1e6  # of work, such as tokens: times and energies of rates are of so many

_FACTS = ("gpu", "interval_s", "time_ms", "skip_untimed")  # of Given
_CHOICES = ("weights", "profiled_only", "extrapolate", "force", "columns", "peaks")  # of Asked
_INSTEAD = {  # what was called otherwise, or is guessed
    "objective": "minimize=",
    "limits": "max_slowdown=, max_time= or max_power=",
    "max_slowdown_percent": "max_slowdown=",
    "max_time_ms": "max_time=",
    "max_power_w": "max_power=",
    "power_w": "power=",
    "power_cap": "caps=",
    "coverage": "nothing: the intervals are of 90 %",
    "profiles": "the profiles first, without a name",
    **{axis: f"at={{'{axis}': …}}" for axis in (*AXES, "engine", "memory", "cu")},
}


import_profile = speaks_python(reading.import_profile)
read = speaks_python(tables.read)
read_profiles = speaks_python(profile_tables.read_profiles)


def advise(  # noqa: PLR0913, what the command has
    *run: Any,
    also: Any = (),
    base: Any = None,
    device: str | None = None,
    power: float | str | Path | None = None,
    rate: Sequence[float] | None = None,
    model: "Model | str | Path" = "auto",
    minimize: str | None = None,
    max_slowdown: float | None = None,
    max_time: float | None = None,
    max_power: float | None = None,
    lever: str = "clock",
    caps: Sequence[float] | None = None,
    **more: Any,
) -> Answer:
    """What to set for a run, and what it costs and saves: `mlscale advise` from Python.

    run: files of one run as the tools wrote them (profile, trace, log), a table's file, a data
    frame, or `Profiles`. also: the same work at another setting, a file, 'FILE@engine=1335' or a
    frame, or several. base, device, power [W, or a log's file]: what the files do not say. rate:
    work per second of each run, such as tokens, for logs that do not begin and end with it; times
    and energies are then of RATED_UNITS of it. model: the name of a shipped one, a file, or a
    `Model`; 'auto' takes the shipped one that fits. minimize: 'energy', 'edp', 'ed2p', 'time',
    'power' or 'clock'; by default energy, or the clock where power is not known. max_slowdown [%],
    max_time [ms] of the run, max_power [W] of each kernel. lever: 'clock' or 'cap'. caps [W]: power
    caps to tell the run under, empty for the GPU's range. more: gpu, interval_s, time_ms,
    skip_untimed, static_power [W], weights, profiled_only, extrapolate, force, columns.

    Warns of nothing: what a reader should know is in the answer's notes. Raises InputError.

    Example:
        answer = mlscale.advise("ncu.csv", power=500, max_slowdown=5)
        answer.best.engine_mhz, answer.best.slowdown_percent
    """
    from mlscale.advice.caps import advise_caps, require_other_clock

    if lever not in ("clock", "cap"):
        raise InputError(f"the lever is 'clock' or 'cap', not {lever!r}")
    static_power, is_cap, capped = more.pop("static_power", None), lever == "cap", None
    limits = Limits(max_power_w=max_power, max_time_ms=max_time, max_slowdown_percent=max_slowdown)
    with kept_warnings() as told:
        asked = _asked("advise", run, also, base, device, power, rate, model, more)
        found = read_subject(asked)
        if is_cap:
            require_other_clock(found.profiles)
        advice = advise_profiles(found.model, found.profiles, minimize, limits, static_power)
        if is_cap or caps is not None:
            goal = None if minimize == "clock" and not is_cap else minimize, limits
            asked_w, held = tuple(caps or ()), (static_power, advice.surfaces)
            capped = advise_caps(found.model, found.profiles, asked_w, *goal, *held)
    notes = _notes(told, *found.notes)
    if rate is not None:
        notes += (Note("", f"times and energies are of {RATED_UNITS:,.0f} units of work"),)
    found = replace(found, notes=notes)
    return Answer(_document(advice, found, capped, lever), advice, found, (minimize, limits))


def predict(
    *run: Any,
    at: Any = None,
    also: Any = (),
    base: Any = None,
    device: str | None = None,
    power: float | str | Path | None = None,
    model: "Model | str | Path" = "auto",
    **more: Any,
) -> Predictions:
    """Time and, where it can be, power and energy of each kernel, with 90 % intervals.

    at: where, as {'engine': [1200, 1400]}, 'engine=1200' or a configuration, or a list of these; by
    default everywhere. The others are those of `advise`; more has peaks too. Raises InputError.

    Example:
        predictions = mlscale.predict("ncu.csv", at={"engine": [1200, 1400]})
        predictions.frame
    """
    with kept_warnings() as told:
        asked = _asked("predict", run, also, base, device, power, None, model, more)
        found = read_subject(replace(asked, at=_texts(at)))
        predictions = found.model.predict(found.profiles, COVERAGE)
    notes = _notes(told, *found.notes, *predictions.warnings)
    targets = found.targets or None
    return replace(predictions, warnings=notes, asked=targets)


@speaks_python
def train(
    table: "Measurements | str | Path | pd.DataFrame",
    base: Base | None = None,
    predictor: str | type[Predictor] | Predictor | None = None,
    others: Sequence[TrainingSet] = (),
    quantity: str | None = None,
    **parameters: Any,
) -> Model:
    """Train a model on a table of measurements: itself, its file, or a data frame.

    base: where new kernels are profiled: 'highest' (the default, which a note says), 'mid', or a
    configuration. The others are those of `mlscale.model.model.train`. Raises InputError.

    Example:
        model = mlscale.train("table.parquet", base="mid", predictor="wu")
        model.score("further-kernels.parquet")
    """
    data = table if isinstance(table, Measurements) else tables.read(table)
    if base is None:
        base = data.grid.highest
        told = f"the base is the highest setting, {base}: profile new kernels there, or give --base"
        warn("P08", told, "note")
    return models.train(data, base, predictor, others, quantity, **parameters)


@speaks_python
def load(name: "str | Path", predictors: Sequence[type[Predictor]] = ()) -> Model:
    """Load a model file, or a shipped model by its name; no code is run on its word.

    predictors: the classes of predictors of one's own, which a file only names. Raises InputError.

    Example:
        model = mlscale.load("kernels")
    """
    return load_model(str(name), predictors)


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


def _asked(  # noqa: PLR0913, PLR0917
    function: str,
    run: Sequence[Any],
    also: Any,
    base: Any,
    device: str | None,
    power: Any,
    rate: Sequence[float] | None,
    model: Any,
    more: Mapping[str, Any],
) -> Asked:
    """What a call names. Raises InputError on what cannot be, with what to write."""
    _refuse_unknown(function, more)
    run = [one for part in run for one in (part if isinstance(part, list | tuple) else [part])]
    _refuse_models(function, run)
    further = [also] if isinstance(also, str | Path) or hasattr(also, "columns") else list(also)
    times_ms = [1e3 * RATED_UNITS / each for each in rate or ()]
    if rate is not None and len(times_ms) != 1 + len(further):
        raise InputError(f"rate= has {len(times_ms)} numbers for {1 + len(further)} runs")
    facts = {name: more[name] for name in _FACTS if name in more}
    given = Given(
        device=_device_key(device),
        base={} if base is None else settings_of(base)[0],
        power=power,
        **({"time_ms": times_ms[0]} if times_ms else {}) | facts,
    )
    asked = Asked(
        tuple(str(one) for one in run if _is_file(one)),
        given,
        model=None if model == "auto" else str(model) if isinstance(model, Path) else model,
        also=tuple(str(one) if _is_file(one) else _table(one) for one in further),
        also_times_ms=tuple(times_ms[1:]),
        **{name: more[name] for name in _CHOICES if name in more},
    )
    if len(asked.files) == len(run):
        return asked
    if len(run) > 1:
        raise InputError(f"{function} takes several files, or one data frame, or one Profiles")
    if not isinstance(run[0], Profiles):
        return replace(asked, run=_table(run[0]))
    if given != Given():
        raise InputError(
            "profiles say base, device and power themselves: give these where they are read, "
            "mlscale.import_profile(file, power=500)"
        )
    return replace(asked, run=run[0])


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


def _refuse_unknown(function: str, more: Mapping[str, Any]) -> None:
    """Raise InputError on a keyword that there is not."""
    known = (*_FACTS, *_CHOICES)
    for name in more:
        if name in _INSTEAD:
            raise InputError(f"{function} has no '{name}'; write {_INSTEAD[name]}")
        if name not in known:
            close = did_you_mean(name, (*known, "also", "device", "power", "max_slowdown"))
            raise InputError(f"{function} has no '{name}'{close}")


def _refuse_models(function: str, run: Sequence[Any]) -> None:
    """Raise InputError where no run is named, or a model in its place."""
    if not run:
        raise InputError(f"{function} needs a run: mlscale.{function}('profile.csv')")
    if any(isinstance(one, Model) or (_is_file(one) and is_model_name(str(one))) for one in run):
        raise InputError(f"{function} takes the run alone: write {function}(run, model=model)")


def _is_file(run: Any) -> bool:
    return isinstance(run, str | Path)


def _table(run: Any) -> Table:
    """A data frame as a table. Raises InputError."""
    if not hasattr(run, "columns"):
        kind = type(run).__name__
        raise InputError(f"a run is a file, a pandas DataFrame or Profiles, not {kind}")
    return table_from_frame(run)


def _device_key(name: str | None) -> str | None:
    """The key of a GPU; a name that is not known stays. A device file is made known."""
    if name is None:
        return None
    device = load_device_file(name) if name.endswith(".json") else find_device(name)
    return name if device is None else device.key


def _texts(at: Any) -> tuple[str, ...]:
    """Where to predict, as the command line has it. Raises InputError."""
    settings = [] if at is None else settings_of(at)
    return tuple(",".join(f"{axis}={one[axis]:.15g}" for axis in one) for one in settings)


def _notes(told: Sequence[warnings.WarningMessage], *more: Note) -> tuple[Note, ...]:
    """What was warned of while reading, and what is told beside, each once."""
    notes = []
    for one in told:
        if isinstance(one.message, DataWarning):
            notes.append(one.message.note)
        else:
            warn_again([one])
    notes += more
    return tuple(dict.fromkeys(replace(one, text=in_python(one.text)) for one in notes))
