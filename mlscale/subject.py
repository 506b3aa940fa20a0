"""What predictions and advice are about: files -> profiles -> the model that fits them.

All files are read first, those of further runs too; then the model is chosen.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mlscale.counters.kernel_use import lack_of_peaks
from mlscale.data import datasets
from mlscale.data.checks import check_named_clocks
from mlscale.data.column_names import Columns
from mlscale.data.datasets import input_file
from mlscale.data.devices import known_device
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig, parse_settings
from mlscale.data.logs import RATED_UNITS, SHARES, is_sampled
from mlscale.data.points import add_points
from mlscale.data.profiles import (
    MeasuredPoint,
    Profiles,
    configurations,
    only_config,
    profiles_at,
    with_weights,
)
from mlscale.data.table import Table, with_base_clocks, with_cu_counts
from mlscale.data.table_files import is_table, is_tidy, read_table
from mlscale.errors import InputError, UsageError
from mlscale.model.model import Model, load
from mlscale.model.shipped import FORMER, choice_note, extrapolations, model_for, shipped_model
from mlscale.model.unprofiled import left_out
from mlscale.notes import Note
from mlscale.predictors.base import Predictor, PredictsOtherGpus
from mlscale.readers.given import Given
from mlscale.text import counted

Reading = tuple[Path | Table, HardwareConfig | None]  # None: where its rows say

_MODEL_SUFFIX = ".mlscale"


@dataclass(frozen=True)
class Asked:
    """What a command line or a call from Python names.

    Attributes:
        files: of the run, or the one of a fleet.
        given: what the files do not say.
        run: a table or profiles in place of files.
        model: itself, a file, or the name of a shipped one; None takes the shipped one that fits.
        predictor: the class of a predictor that the model file only names.
        also: further runs, FILE or FILE@CONFIG, or a table.
        also_times_ms: the true time of each further log's run [ms]; none where the log tells it.
        weights: a table that says how often kernels run.
        profiled_only: without the kernels of which only the time is known.
        extrapolate: beyond what the model was trained on too.
        force: a real GPU by a model of simulated data too.
        at: where to predict; none for everywhere.
        peaks: profiles of other kernels of a GPU without training data.
        columns: what tables call our columns.
    """

    files: tuple[str, ...]
    given: Given
    run: Table | Profiles | None = None
    model: Model | str | None = None
    predictor: type[Predictor] | None = None
    also: tuple[str | Table, ...] = ()
    also_times_ms: tuple[float, ...] = ()
    weights: str | None = None
    profiled_only: bool = False
    extrapolate: bool = False
    force: bool = False
    at: tuple[str, ...] = ()
    peaks: str | None = None
    columns: Columns = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """Profiles and the model that predicts them.

    targets: where to predict, as configurations of the profiles' GPU, none for everywhere.
    model_name and profile_name: of the files, for a reader. notes: what was chosen for the user.
    files: of the profiles.
    """

    model: Model
    profiles: Profiles
    targets: tuple[HardwareConfig, ...]
    model_name: str
    profile_name: str
    notes: tuple[Note, ...] = ()
    files: tuple[Path, ...] = ()


def read(asked: Asked, head: Table | None = None) -> Subject:
    """Read all files, then choose the model. Raises InputError, with all that lacks at once.

    head: the first rows of a fleet, which then stand for it.
    """
    predictors = [asked.predictor] if asked.predictor else []
    named = load_model(asked.model, predictors) if isinstance(asked.model, str) else asked.model
    paths = tuple(map(input_file, asked.files))
    profiles, notes = _profiles(asked, paths, named, head)
    if named is None:
        _require_peaks(profiles, asked.given.device)
        name, model = shipped_model(profiles)
        notes.append(choice_note(name, model, profiles))
    else:
        name, model = asked.model if isinstance(asked.model, str) else named.device, named
    targets = _targets(asked.at, model, profiles)
    peaks = _peaks(input_file(asked.peaks), asked.columns, profiles) if asked.peaks else None
    model = model_for(model, profiles, targets, peaks, asked.extrapolate, asked.force)
    notes += extrapolations(model, bool(profiles.points))
    profile_name = ", ".join(path.name for path in paths) or "data from Python"
    return Subject(
        model, profiles, tuple(targets), Path(name).name, profile_name, tuple(notes), paths
    )


def measured_again(asked: Asked, text: str) -> tuple[MeasuredPoint, ...]:
    """What a file says of the run at other settings, as --also reads it; nothing is predicted.

    text: FILE or FILE@CONFIG. Raises InputError.
    """
    paths = tuple(map(input_file, asked.files))
    first, _ = _profiles(replace(asked, also=()), paths, None, None)
    both, _ = _profiles(replace(asked, also=(text,), also_times_ms=()), paths, None, None)
    return both.points[len(first.points) :]


def _profiles(
    asked: Asked, paths: Sequence[Path], model: Model | None, head: Table | None
) -> tuple[Profiles, list[Note]]:
    """The profiles that all files hold, with further measured points; and notes on them.

    model: one that is named, whose base is a table's where nothing else is. Raises InputError.
    """
    readings: list[Reading] = []
    table = asked.run if isinstance(asked.run, Table) else head
    if table is None and len(paths) == 1 and is_tidy(paths[0], asked.columns):
        table = read_table(paths[0], columns=asked.columns)
    if isinstance(asked.run, Profiles):
        profiles = asked.run
    elif table is not None:
        if model is not None:
            base = {**model.base.as_dict(), **asked.given.base}
            table = with_base_clocks(table, base, model.snap_clocks)
        profiles = _profiles_of_rows(table, asked.given, model)
        if head is None and _has_readings_elsewhere(table, profiles):
            readings = [(table, None)]
    else:
        profiles = _profiles_of_exports(paths, asked)
    if asked.weights:
        profiles = with_weights(profiles, input_file(asked.weights))
    notes: list[Note] = []
    if asked.profiled_only:
        notes += left_out(profiles) if head is None else []
        profiles = profiles.profiled
    snap_clocks = 0.0 if model is None else model.snap_clocks
    further = [*_further_runs(profiles, asked, paths, snap_clocks), *readings]
    return add_points(profiles, further) if further else profiles, notes


def with_rates(asked: Asked, rates: Sequence[float]) -> Asked:
    """Times by the work per second of each run, of RATED_UNITS of it. Raises InputError."""
    if len(rates) != 1 + len(asked.also):
        told = f"{len(rates)} numbers for {1 + len(asked.also)} runs"
        raise InputError(f"--rate has {told}; give one for each, as 2400:2250")
    first_ms, *further_ms = (1e3 * RATED_UNITS / rate for rate in rates)
    given = replace(asked.given, time_ms=first_ms)
    return replace(asked, given=given, also_times_ms=tuple(further_ms))


def rate_note(profiles: Profiles) -> Note:
    """Of what times and energies are that `with_rates` made. Raises InputError but on logs."""
    if not is_sampled(profiles.metadata):
        raise InputError("--rate is for logs of a monitor, whose span is not that of the work")
    return Note("M02", f"times and energies are of {RATED_UNITS:,.0f} units of work")


# Models.


def is_model_name(text: str) -> bool:
    """Whether a file is a model by its name."""
    return Path(text).suffix == _MODEL_SUFFIX


def load_model(name: Path | str, predictors: Sequence[type[Predictor]] = ()) -> Model:
    """Load a model file, or the shipped model of that name; no code is run on its word.

    predictors: the classes of predictors of one's own, which a file only names. Raises InputError.

    Example:
        model = mlscale.load("kernels")
    """
    text, file = str(name), Path(name)
    if not os.path.exists(text) and "/" not in text:  # noqa: PTH110, which raises on some names
        stem = text.removesuffix(_MODEL_SUFFIX)
        if stem in FORMER:
            raise InputError(f"{text}: this model is no longer shipped; {FORMER[stem]}")
        models = {
            path.stem: path for path in datasets.shipped().values() if is_model_name(path.name)
        }
        if stem not in models:
            raise InputError(
                f"{text}: there is no such model file; those that ship are "
                f"{', '.join(sorted(models))}"
            )
        file = models[stem]
    return load(file, predictors)


# The first run.


def _profiles_of_exports(paths: Sequence[Path], asked: Asked) -> Profiles:
    """Profiles of the exports, or the log, of a run. Raises InputError."""
    from mlscale.readers.reading import read as read_run

    if tables := [path for path in paths if is_table(path, asked.columns)]:
        raise UsageError(
            f"{tables[0]}: is a table, and several files are exports of one run; give one "
            "table alone, which may hold all kernels"
        )
    return read_run(paths, asked.given)


def _profiles_of_rows(table: Table, given: Given, model: Model | None) -> Profiles:
    """Profiles of a table's rows at the base. Raises InputError."""
    table = with_cu_counts(table)
    device, base = _device_and_base(table, given, model)
    if given.power is not None:
        from mlscale.readers.power import with_power

        table = with_power(table, given.power, given.gpu)
    return profiles_at(table, base, device)


def _has_readings_elsewhere(table: Table, profiles: Profiles) -> bool:
    """Whether a table without counters has rows beside the base: further measured points."""
    is_at_base = {*configurations(table, profiles.base)} == {profiles.base}
    return not _has_counters(profiles) and not is_at_base


def is_log(path: Path) -> bool:
    """Whether a file is a monitor's log. Raises InputError where it cannot be read."""
    from mlscale.readers import reading

    return reading.is_log(path)


def tells_engine_clock(log: Path) -> bool:
    """Whether a monitor's log says at which engine clock the GPU ran. Raises InputError."""
    from mlscale.readers.monitor import read_log

    return any("engine_mhz" in samples.columns for samples in read_log(log))


def _has_counters(profiles: Profiles) -> bool:
    return not set(profiles.counter_names) <= set(SHARES)


def _require_peaks(profiles: Profiles, device: str | None) -> None:
    """Raise InputError where counters are of a GPU that --device names and nobody knows.

    Bounds alone would hide a mistyped name. Averages, times and two clocks need no peaks.
    """
    needs_no_peaks = profiles.points or profiles.are_times_alone or is_sampled(profiles.metadata)
    lack = lack_of_peaks(device) if device and _has_counters(profiles) else ""
    if lack and not needs_no_peaks:
        raise InputError(f"{lack}; or measure at a second clock too, which needs none: --also")


def _device_and_base(table: Table, given: Given, model: Model | None) -> tuple[str, HardwareConfig]:
    """The GPU of a table, and its base: --base, the model's, or its one configuration.

    Raises InputError.
    """
    names = sorted(set(table.text.get("device", ())))
    for name in names:
        if given.device not in (None, name):
            raise InputError(
                f"{table.source}: is of device '{name}', --device says '{given.device}'"
            )
    if model is not None and not (given.device or given.base) and _is_for(model, table):
        return model.device, model.base
    known = [given.device, *names, model and model.device]
    device = next((name for name in known if name), None)
    if device is None:
        raise InputError(f"{table.source}: does not say the GPU; name it with --device")
    if not given.base:
        return device, only_config(table)
    settings = {axis: set(table.numbers.get(axis, np.empty(0)).tolist()) for axis in AXES}
    usual = {axis: values.pop() for axis, values in settings.items() if len(values) == 1}
    if model is not None and device == model.device:
        at_base = model.base.as_dict().items()
        usual |= {axis: step for axis, step in at_base if axis not in table.numbers}
        if model.base.cu_axis:
            usual = {**model.base.as_dict(), **usual}
            return device, _config(given.base, device, usual, model.base.cu_axis)
    return device, _config(given.base, device, usual)


def _is_for(model: Model, table: Table) -> bool:
    """Whether the table is of the model's GPU and base, or the model takes no other."""
    if not isinstance(model.lead, PredictsOtherGpus):
        return True
    is_same_device = set(table.text.get("device", [model.device])) == {model.device}
    return is_same_device and model.base in configurations(table, model.base)


# Further runs: the same kernels, or the same run, measured at further configurations.


def _further_runs(
    profiles: Profiles, asked: Asked, paths: Sequence[Path], snap_clocks: float
) -> list[Reading]:
    """What --also names, tables, traces or logs, as `add_points` takes it. Raises InputError.

    paths: of the profiles. snap_clocks [MHz]: clocks so near to the base's are the base's.
    """
    further: list[Reading] = []
    times_ms = asked.also_times_ms or (None,) * len(asked.also)
    for text, time_ms in zip(asked.also, times_ms, strict=True):
        if isinstance(text, Table):
            table = with_base_clocks(text, profiles.base.as_dict(), snap_clocks)
            further.append((table, None))
            continue
        file, separator, settings = text.rpartition("@")
        config = None
        if separator and "=" in settings:
            if not file:
                raise InputError(f"--also {text}: names no file before '@'")
            config = _config_beside(profiles, settings)
        path = input_file(text if config is None else file)
        if is_tidy(path, asked.columns):
            table = read_table(path, columns=asked.columns)
            table = with_base_clocks(table, profiles.base.as_dict(), snap_clocks)
            further.append((table, config))
        elif is_log(path):
            further.append((_further_log(profiles, path, config, asked.given, time_ms), None))
        else:
            further.append((_further_trace(profiles, path, config, paths, asked.given), config))
    return further


def _further_log(
    profiles: Profiles,
    path: Path,
    config: HardwareConfig | None,
    given: Given,
    time_ms: float | None,
) -> Table:
    """The averages of a further run, by a monitor's log, under the names of the first run.

    time_ms: its true time [ms], None where the log tells it.
    """
    from mlscale.readers.reading import read_table

    if not is_sampled(profiles.metadata):
        raise InputError(
            f"{path}: is a monitor's log, and the first file is none; give the logs of both runs, "
            "or the traces of both (for the power of a further trace import that trace with "
            "--power LOG, and give the table)"
        )
    if given.time_ms is not None and time_ms is None:
        raise InputError(
            f"{path}: --time is of the first run alone; leave it out, or import "
            "each log with its own (mlscale import LOG --time MS) and give the tables"
        )
    base = (config or profiles.base).as_dict()
    if config is None:
        if not tells_engine_clock(path):
            raise InputError(
                f"{path}: does not say at which engine clock it ran: --also {path.name}@engine=…"
            )
        del base["engine_mhz"]
    given = replace(given, device=profiles.device, base=base, power=None, time_ms=time_ms)
    table = read_table([path], given).table
    if len(table) != len(profiles.kernels):
        raise InputError(
            f"{path}: has {counted(len(table), 'busy GPU')}, the first log has "
            f"{len(profiles.kernels)}; name one with --gpu"
        )
    names = {"kernel": list(profiles.kernels), "application": list(profiles.applications)}
    return replace(table, source=str(path), text=table.text | names)


def _further_trace(
    profiles: Profiles,
    path: Path,
    config: HardwareConfig | None,
    first: Sequence[Path],
    given: Given,
) -> Table:
    """The times of a further run, by its trace, under the names of the first one's kernels."""
    from mlscale.readers.reading import read_again

    if config is None:
        raise InputError(
            f"{path}: is no table; of a trace say where it ran: {path.name}@engine=…, and memory=… "
            "or cu=… where they are not the base's"
        )
    if not first or is_tidy(first[0]) or is_log(first[0]):
        raise InputError(
            f"{path}: is a trace, which needs the exports of the first run beside it, and "
            f"{first[0] if first else 'what was given'} is none; give these in its place, or "
            "import them with this trace and give the table that comes out"
        )
    return replace(read_again(first, path, profiles, config, given.gpu), source=str(path))


# Configurations.


def _targets(at: Sequence[str], model: Model, profiles: Profiles) -> list[HardwareConfig]:
    """Where to predict; what a text leaves out is as at the base. Raises InputError."""
    if (model.device, model.base) == (profiles.device, profiles.base):
        return [model.grid.parse(text, model.base) for text in at]
    return [_config_beside(profiles, text) for text in at]


def _config_beside(profiles: Profiles, text: str) -> HardwareConfig:
    """The configuration of a text; what it leaves out is as at the base. Raises InputError."""
    base = profiles.base
    settings = parse_settings(text, base.cu_axis or "cu")
    return _config(settings, profiles.device, base.as_dict(), base.cu_axis)


def _config(
    settings: Mapping[str, float], device: str, usual: Mapping[str, float], cu_axis: str = ""
) -> HardwareConfig:
    """A configuration of a GPU; what the settings leave out is as usual, or all of its CUs.

    cu_axis: what stands for CUs, of which there are as many as there are. Raises InputError.
    """
    known = None if cu_axis else known_device(device)
    check_named_clocks(known_device(device), settings)
    all_cus = {"cu_count": float(known.cu_count)} if known else {}
    complete = {**all_cus, **usual, **settings}
    if known and complete["cu_count"] > known.cu_count:
        raise InputError(
            f"{device} has {known.cu_count} compute units, not {complete['cu_count']:g}"
        )
    if missing := [axis for axis in AXES if axis not in complete]:
        said = ",".join(f"{SHORT_NAMES[axis]}={value:g}" for axis, value in settings.items())
        lacking = ",".join(f"{SHORT_NAMES[axis]}=…" for axis in missing)
        raise InputError(f"'{said}' gives no {' and no '.join(missing)}; say {lacking} too")
    clocks = complete["engine_mhz"], complete["memory_mhz"]
    return HardwareConfig(int(complete["cu_count"]), *clocks, cu_axis=cu_axis)


def _peaks(file: Path, columns: Columns, profiles: Profiles) -> Profiles:
    """Profiles of other kernels of the same GPU at the same base. Raises InputError."""
    table = read_table(file, columns=columns)
    for other in set(table.text.get("device", ())) - {profiles.device}:
        raise InputError(
            f"{table.source}: is of device '{other}', the profile of '{profiles.device}'"
        )
    return profiles_at(table, profiles.base, profiles.device)
