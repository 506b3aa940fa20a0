"""What predictions and advice are about: files -> profiles -> the model that fits them.

All files are read first, those of further runs too; then the model is chosen.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.kernel_use import lack_of_peaks, tells_traffic
from mlscale.data.checks import check_named_clocks
from mlscale.data.column_names import RATED, RATED_UNITS, Columns, source_meant
from mlscale.data.datasets import input_file
from mlscale.data.devices import known_device
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig, parse_settings
from mlscale.data.logs import SAME_CLOCK, SHARES, is_sampled, with_ran_clocks
from mlscale.data.points import add_points, warn_of_base
from mlscale.data.profiles import (
    NOT_COUNTERS,
    MeasuredPoint,
    Profiles,
    configurations,
    height,
    highest_config,
    only_config,
    profiles_at,
    with_weights,
)
from mlscale.data.table import Table, as_one_run, with_base_clocks, with_cu_counts, with_time
from mlscale.data.table_files import read_table
from mlscale.errors import DataWarning, InputError, UsageError, warn
from mlscale.model.model import Model, load
from mlscale.model.shipped import choice_note, extrapolations, model_for, shipped_model
from mlscale.model.unprofiled import left_out
from mlscale.notes import Note
from mlscale.parameters import command, parameter
from mlscale.predictors.base import Predictor, PredictsOtherGpus
from mlscale.readers.given import Given
from mlscale.readers.source import Source
from mlscale.text import counted

Reading = tuple[Table, HardwareConfig | None]  # None: where its rows say

CLEARLY = 0.5  # how near a clock is to one log's that it names, over how near to the next, in logs


@dataclass(frozen=True)
class Asked:
    """What a command line or a call from Python names.

    Attributes:
        files: of the run, or the one of a fleet.
        given: what the files do not say.
        run: a table or profiles in place of files.
        model: itself, a file, or the name of a shipped one; None takes the shipped one that fits.
        predictor: the class of a predictor that the model file only names.
        also: further runs, files, each perhaps with its configuration, or tables.
        also_times_ms: the true time of each further log's run [ms]; none where the log tells it.
        weights: a table that says how often kernels run.
        profiled_only: without the kernels of which only the time is known.
        extrapolate: beyond what the model was trained on too.
        force: a real GPU by a model of simulated data too.
        at: where to predict; none for everywhere.
        peaks: profiles of other kernels of a GPU without training data.
        columns: what tables call our columns.
    """

    files: tuple[Source, ...]
    given: Given
    run: Table | Profiles | None = None
    model: Model | str | None = None
    predictor: type[Predictor] | None = None
    also: tuple[Source | Table, ...] = ()
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
    files: tuple[Source, ...] = ()


def read(asked: Asked, head: Table | None = None) -> Subject:
    """Read all files, then choose the model. Raises InputError, naming all that is missing at once.

    head: the first rows of a fleet, which then stand for it.
    """
    for settings in filter(None, (file.settings for file in asked.files)):
        base = {**parse_settings(settings), **asked.given.base}
        asked = replace(asked, given=replace(asked.given, base=base))
    predictors = [asked.predictor] if asked.predictor else []
    named = load(asked.model, predictors) if isinstance(asked.model, str) else asked.model
    profiles, notes = _profiles(asked, named, head)
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
    profile_name = ", ".join(file.path.name for file in asked.files) or "data from Python"
    return Subject(
        model, profiles, tuple(targets), Path(name).name, profile_name, tuple(notes), asked.files
    )


def measured_again(asked: Asked, profiles: Profiles, file: Source) -> tuple[MeasuredPoint, ...]:
    """What a file says of a run at other settings, as `also` reads it; nothing is predicted.

    Raises InputError.
    """
    further = _further_runs(profiles, replace(asked, also=(file,), also_times_ms=()), 0.0)
    return add_points(replace(profiles, points=()), further).points


def _profiles(asked: Asked, model: Model | None, head: Table | None) -> tuple[Profiles, list[Note]]:
    """The profiles that all files hold, with further measured points; and notes on them.

    model: one that is named, whose base is a table's where nothing else is. Raises InputError.
    """
    first: Table | None = None
    table = asked.run if isinstance(asked.run, Table) else head
    if table is None and len(asked.files) == 1 and asked.files[0].is_table(asked.columns):
        table = asked.files[0].table(asked.columns)
    if isinstance(asked.run, Profiles):
        profiles = asked.run
    elif table is not None:
        if model is not None:
            base = {**model.base.as_dict(), **asked.given.base}
            table = with_base_clocks(table, base, model.snap_clocks)
        first, profiles = _profiles_of_rows(table, asked, model)
    else:
        first, profiles = _profiles_of_exports(asked)
    snap_clocks = 0.0 if model is None else model.snap_clocks
    further = _further_runs(profiles, asked, snap_clocks)
    readings: list[Reading] = [*further] if first is None else [(first, None), *further]
    is_of_model = model and (model.device, model.base) == (profiles.device, profiles.base)
    if first is not None and head is None:
        base_reading = readings[0]
        _require_power(asked.given, profiles, further)
        if further and not is_of_model:
            base_reading, profiles = _base_of(readings, profiles, asked.given.base)
        further = [one for one in readings if one[0] is not base_reading[0]]
        if _has_readings_elsewhere(base_reading[0], profiles):
            further.append(base_reading)
    if asked.weights:
        profiles = with_weights(profiles, input_file(asked.weights))
    notes: list[Note] = []
    if asked.profiled_only:
        notes += left_out(profiles) if head is None else []
        profiles = profiles.profiled
    profiles = add_points(profiles, further) if further else profiles
    profiles, told = with_ran_clocks(profiles, [] if is_of_model else [one for one, _ in readings])
    return profiles, notes + told


def with_rates(asked: Asked, rates: Sequence[float]) -> Asked:
    """Times by the work per second of each run, a log or a table of one row. Raises InputError."""
    first_ms, *further_ms = rated_times_ms(rates, 1 + len(asked.also))
    files = [one for one in (*asked.files, *asked.also) if isinstance(one, Source)]
    profiled = [one for one in files if not one.is_table(asked.columns) and not one.is_log]
    if profiled or isinstance(asked.run, Profiles):
        raise InputError(
            f"{parameter('rate')} is for logs, and for tables of one run; a profile says the time "
            "of each kernel"
        )
    if asked.given.time_ms is not None:
        raise InputError(f"give {parameter('time_ms')} or {parameter('rate')}, not both")
    given = replace(asked.given, time_ms=first_ms)
    return replace(asked, given=given, also_times_ms=tuple(further_ms))


def rated_times_ms(rates: Sequence[float], runs: int) -> list[float]:
    """The time of RATED_UNITS of work of each run [ms]. Raises InputError."""
    if len(rates) != runs:
        told = f"{len(rates)} numbers for {runs} runs"
        raise InputError(f"{parameter('rate')} has {told}; give one for each, as 2400:2250")
    return [1e3 * RATED_UNITS / rate for rate in rates]


def rate_note() -> Note:
    """Of what times and energies are that `with_rates` made."""
    return Note("M02", f"times and energies are for {RATED}")


# Models.


# The first run.


def _profiles_of_exports(asked: Asked) -> tuple[Table | None, Profiles]:
    """Profiles of the exports, or the log, of a run; of a log its table too. Raises InputError."""
    from mlscale.readers.reading import profiles_of
    from mlscale.readers.reading import read_table as read_run

    files = asked.files
    if tables := [file for file in files if file.is_file and file.is_table(asked.columns)]:
        raise UsageError(
            f"{tables[0].path}: is a table, but several files must be exports of one run; give "
            "one table with all kernels, and a second run, at another clock, with "
            f"{parameter('also', 'FILE')}"
        )
    given, is_of_log = asked.given, files[0].is_log
    if is_of_log and asked.also and "engine_mhz" in given.base and files[0].tells_engine_clock:
        base = {axis: step for axis, step in given.base.items() if axis != "engine_mhz"}
        given = replace(given, base=base)  # it names one of the readings, perhaps another
    imported = read_run(files, given)
    if is_of_log:
        imported = replace(imported, table=_at_set_clock(imported.table, asked.given))
    return imported.table if is_of_log else None, profiles_of(imported, files)


def _at_set_clock(log: Table, given: Given) -> Table:
    """A log's row at the engine clock that the user names as base, if it ran at nearly that one."""
    clocks = log.numbers["engine_mhz"]
    was_set = np.full(len(log), given.base.get("engine_mhz", np.nan))
    is_near = np.abs(clocks / was_set - 1) <= SAME_CLOCK
    return replace(log, numbers=log.numbers | {"engine_mhz": np.where(is_near, was_set, clocks)})


def _profiles_of_rows(table: Table, asked: Asked, model: Model | None) -> tuple[Table, Profiles]:
    """A table's rows, and profiles of those at the base. Raises InputError."""
    given = asked.given
    table = with_cu_counts(with_time(as_one_run(table), given.time_ms))
    if asked.also and model is None:
        clock = given.base.get("engine_mhz") or source_meant("engine_mhz", table.columns)
        _require_told(clock, table.source, f"give its clock, {parameter('base', 'engine=…')}")
    device, base = _device_and_base(table, given, model)
    if asked.also and "engine_mhz" in given.base and base not in configurations(table, base):
        base = highest_config(table, given.base) or base  # that of a further run is named
    if given.power is not None:
        from mlscale.readers.power import with_power

        table = with_power(table, given.power, given.gpu)
    return table, profiles_at(table, base, device)


def _base_of(
    readings: Sequence[Reading], first: Profiles, said: Mapping[str, float]
) -> tuple[Reading, Profiles]:
    """The reading that is the base, and the profiles there: the highest, or what the user says.

    Where two or more have power, or some have counters that a model takes, it is one of these.
    first: the profiles of readings[0]. Raises InputError; warns of a base that was not given first.
    """
    check_named_clocks(known_device(first.device), said)
    kernels = set(readings[0][0].text["kernel"])
    filled, found = [readings[0][0]], [(0, first)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the base's are told below
        for place, (table, config) in enumerate(readings[1:], start=1):
            filled.append(_with_settings(table, config, first.base))
            highest = highest_config(filled[-1], said, kernels)
            if highest and set(table.text.get("device", [first.device])) == {first.device}:
                found.append((place, profiles_at(filled[-1], highest, first.device)))
    has_energies = sum(_has_power(one) for _, one in found) > 1  # else it is the highest, by time
    place, profiles = max(found, key=lambda one: _rank(one[1], said, has_energies))
    source, at = readings[place][0].source, profiles.base
    top, higher = max(found, key=lambda one: _rank(one[1], said, by_power=False))
    lacks_power = has_energies and not _has_power(higher)
    if place:
        profiles = profiles_at(filled[place], at, first.device)
    if place or lacks_power:
        base = f"{source}, at {at.engine_mhz:g} MHz"
        warn_of_base(base, readings[0][0].source, readings[top][0].source if lacks_power else "")
    mhz, is_of_log = said.get("engine_mhz", at.engine_mhz), is_sampled(profiles.metadata)
    off, *others = sorted(abs(np.log(one.base.engine_mhz / mhz)) for _, one in found)
    if mhz != at.engine_mhz and (not is_of_log or off > CLEARLY * min(others, default=np.inf)):
        raise InputError(f"{source}: no reading is at engine={mhz:g}; the nearest is at {at}")
    if abs(at.engine_mhz / mhz - 1) > SAME_CLOCK:
        ran = f"was set to {mhz:g}, but ran at {at.engine_mhz:.0f} on average"
        warn("L04", f"{source}: engine_mhz {ran}; the row is at {at.engine_mhz:.0f}")
    return readings[place], profiles


def _require_power(given: Given, profiles: Profiles, further: Sequence[Reading]) -> None:
    """Raise InputError where the given power may be of a further run: their order would count."""
    is_told = given.power is None or _has_counters(profiles)
    for table, _ in () if is_told else further:
        if not table.has_values("power_w"):
            from mlscale.readers.power import power_of_which

            raise power_of_which(table.source, "shows no power either")


def _with_settings(table: Table, config: HardwareConfig | None, base: HardwareConfig) -> Table:
    """A table's rows at one configuration, if that is meant; what it does not say is as there."""
    known = (config or base).as_dict().items()
    numbers = {axis: np.full(len(table), step) for axis, step in known} | table.numbers
    filled = replace(table, numbers=numbers)
    if config is None:
        return filled
    return filled.select([n for n, at in enumerate(configurations(filled)) if at == config])


def _rank(profiles: Profiles, said: Mapping[str, float], by_power: bool) -> tuple[float, ...]:
    """What is larger of the reading that is the base: one that is named counts before power."""
    is_of_run = is_sampled(profiles.metadata) or profiles.are_times_alone
    has_use = not (is_of_run or lack_of_peaks(profiles.device)) and tells_traffic(profiles)
    nearness, *highest = height(profiles.base, said)
    return has_use, nearness, by_power and _has_power(profiles), *highest


def _has_power(profiles: Profiles) -> bool:
    return profiles.power_w is not None and not np.isnan(profiles.power_w).any()


def _has_readings_elsewhere(table: Table, profiles: Profiles) -> bool:
    """Whether a table without counters has rows beside the base: further measured points."""
    is_at_base = {*configurations(table, profiles.base)} == {profiles.base}
    return not _has_counters(profiles) and not is_at_base


def require_engine_clock(log: Source) -> None:
    """Raise InputError where a log does not say at which engine clock it ran."""
    _require_told(log.tells_engine_clock, log.path, f"give {log.name}@engine=…")


def _require_told(clock: object, source: Path | str, mend: str) -> None:
    """Raise InputError, with a mend, where nothing tells the engine clock of a reading."""
    if not clock:
        raise InputError(f"{source}: does not say at which engine clock it ran: {mend}")


def _has_counters(profiles: Profiles) -> bool:
    return not set(profiles.counter_names) <= set(SHARES)


def _require_peaks(profiles: Profiles, device: str | None) -> None:
    """Raise InputError where counters are of a GPU that the user names and nobody knows.

    Bounds alone would hide a mistyped name. Averages, times and two clocks need no peaks.
    """
    needs_no_peaks = profiles.points or profiles.are_times_alone or is_sampled(profiles.metadata)
    lack = lack_of_peaks(device) if device and _has_counters(profiles) else ""
    if lack and not needs_no_peaks:
        also = parameter("also")
        raise InputError(f"{lack}; or measure at a second clock too, which needs none: {also}")


def _device_and_base(table: Table, given: Given, model: Model | None) -> tuple[str, HardwareConfig]:
    """The GPU of a table, and its base: as given, the model's, the one of its rows or the highest.

    The highest is that of a table without counters. Raises InputError.
    """
    names = sorted(set(table.text.get("device", ())))
    for name in names:
        if given.device not in (None, name):
            raise InputError(
                f"{table.source}: is of device '{name}', {parameter('device')} says "
                f"'{given.device}'; if that is right, give "
                f"{parameter('columns', {'device': given.device})}"
            )
    if model is not None and not (given.device or given.base) and _is_for(model, table):
        return model.device, model.base
    possible = [given.device, *names, model and model.device]
    device, named = next((name for name in possible if name), None), parameter("device")
    if device is None and "cu_count" in given.base:
        from mlscale.readers.run import UNLISTED, UNNAMED

        device = UNLISTED
        warn("G03", f"{table.source}: {UNNAMED.format(named)}")
    if device is None:
        raise InputError(f"{table.source}: does not say the GPU; name it with {named}")
    numbers = {**_usual_settings(device, len(table)), **table.numbers}
    filled, highest = replace(table, numbers=numbers), None
    if set(AXES) <= numbers.keys() <= {*NOT_COUNTERS, *SHARES}:
        highest = highest_config(filled, given.base)
    if not given.base:
        return device, highest or only_config(filled)
    settings = {axis: set(numbers.get(axis, np.empty(0)).tolist()) for axis in AXES}
    usual = {axis: values.pop() for axis, values in settings.items() if len(values) == 1}
    usual |= highest.as_dict() if highest else {}
    if model is not None and device == model.device:
        at_base = model.base.as_dict().items()
        usual |= {axis: step for axis, step in at_base if axis not in table.numbers}
        if model.base.cu_axis:
            usual = {**model.base.as_dict(), **usual}
            return device, _config(given.base, device, usual, model.base.cu_axis)
    return device, _config(given.base, device, usual)


def _usual_settings(device: str, rows: int) -> dict[str, Floats]:
    """All CUs and the highest memory clock of a GPU, as far as they are known, for (rows,)."""
    known = known_device(device)
    usual = (
        {"cu_count": known.cu_count, "memory_mhz": known.highest_mhz("memory_mhz")} if known else {}
    )
    return {axis: np.full(rows, float(value)) for axis, value in usual.items() if value}


def _is_for(model: Model, table: Table) -> bool:
    """Whether the table is of the model's GPU and base, or the model takes no other."""
    if not isinstance(model.lead, PredictsOtherGpus):
        return True
    is_same_device = set(table.text.get("device", [model.device])) == {model.device}
    return is_same_device and model.base in configurations(table, model.base)


# Further runs: the same kernels, or the same run, measured at further configurations.


def _further_runs(profiles: Profiles, asked: Asked, snap_clocks: float) -> list[Reading]:
    """What `also` names, tables, traces or logs, as `add_points` takes it. Raises InputError.

    snap_clocks [MHz]: clocks so near to the base's are the base's.
    """
    further: list[Reading] = []
    times_ms = asked.also_times_ms or (None,) * len(asked.also)
    for file, time_ms in zip(asked.also, times_ms, strict=True):
        if isinstance(file, Table):
            table = with_time(as_one_run(file), time_ms)
            table = with_base_clocks(table, profiles.base.as_dict(), snap_clocks)
            further.append((table, None))
            continue
        path = file.path
        config = config_beside(profiles, file.settings) if file.settings else None
        if file.is_table(asked.columns):
            table = with_time(as_one_run(file.table(asked.columns)), time_ms)
            clock = config or source_meant("engine_mhz", table.columns)
            _require_told(clock, path, f"give {file.name}@engine=…")
            table = with_base_clocks(table, profiles.base.as_dict(), snap_clocks)
            further.append((table, config))
        elif file.is_log:
            further.append((_further_log(profiles, file, config, asked.given, time_ms), None))
        else:
            further.append((_further_trace(profiles, file, config, asked), config))
    return further


def _further_log(
    profiles: Profiles,
    log: Source,
    config: HardwareConfig | None,
    given: Given,
    time_ms: float | None,
) -> Table:
    """The averages of a further run, by a monitor's log, under the names of the first run.

    time_ms: its true time [ms], None where the log tells it.
    """
    from mlscale.readers.reading import read_table

    path = log.path
    if not is_sampled(profiles.metadata):
        raise InputError(
            f"{path}: is a monitor's log, but the first file is not; give the logs of both runs, "
            "or the traces of both (for the power of a further trace import that trace with "
            f"{parameter('power', 'LOG')}, and give the table)"
        )
    if given.time_ms is not None and time_ms is None:
        raise InputError(
            f"{path}: {parameter('time_ms')} is only of the first run; omit it, or import "
            f"each log with its own ({command('import LOG', time_ms='MS')}) and give the tables"
        )
    base = (config or profiles.base).as_dict()
    if config is None:
        require_engine_clock(log)
        del base["engine_mhz"]
    beside = replace(given, device=profiles.device, base=base, power=None, time_ms=time_ms)
    table = _at_set_clock(read_table([log], beside).table, given)
    if len(table) != len(profiles.kernels):
        raise InputError(
            f"{path}: has {counted(len(table), 'run')}, but the first file has "
            f"{len(profiles.kernels)}; name one GPU with {parameter('gpu')}"
        )
    names = {"kernel": list(profiles.kernels), "application": list(profiles.applications)}
    return replace(table, source=str(path), text=table.text | names)


def _further_trace(
    profiles: Profiles, trace: Source, config: HardwareConfig | None, asked: Asked
) -> Table:
    """The times of a further run, by its trace, under the names of the first one's kernels."""
    from mlscale.readers.table import read_again

    path, first = trace.path, asked.files
    trace.sheet_of_launches()
    if config is None:
        raise InputError(
            f"{path}: is a profile or trace; give its clock: {trace.name}@engine=…, and memory=… "
            "or cu=… if they are not the base's"
        )
    if not first or first[0].is_table() or first[0].is_log:
        raise InputError(
            f"{path}: is a trace, which needs the exports of the first run next to it, but "
            f"{first[0].path if first else 'what was given'} is not one; give these instead, or "
            "import them with this trace and give the table that comes out"
        )
    return replace(read_again(first, trace, profiles, config, asked.given.gpu), source=str(path))


# Configurations.


def _targets(at: Sequence[str], model: Model, profiles: Profiles) -> list[HardwareConfig]:
    """Where to predict; what a text leaves out is as at the base. Raises InputError."""
    if (model.device, model.base) == (profiles.device, profiles.base):
        return [model.grid.parse(text, model.base) for text in at]
    return [config_beside(profiles, text) for text in at]


def config_beside(profiles: Profiles, text: str) -> HardwareConfig:
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
    for other in sorted({*table.text.get("device", ())} - {profiles.device}):
        raise InputError(
            f"{table.source}: is of device '{other}', the profile of '{profiles.device}'"
        )
    return profiles_at(table, profiles.base, profiles.device)


# Runs under power caps.


def is_of_caps(asked: Asked, lever: str) -> bool:
    """Whether a cap is asked for, by readings of which none tells an engine clock.

    Raises InputError of such readings, several or with caps, where the answer is to be a clock.
    """
    readings = readings_of(asked)
    if asked.model is not None or "engine_mhz" in asked.given.base or not readings:
        return False
    if not all(_lacks_clock(one, asked.columns) for one in readings):
        return False
    if lever != "cap":
        first = readings[0]
        name = first.source if isinstance(first, Table) else first.name
        raise InputError(
            f"{name}: no file has an engine clock; for runs under power caps, ask for the best "
            f"cap with {parameter('lever', 'cap')}; for others, give the clock with "
            f"{parameter('base', 'engine=…')}, and that of a further file as FILE@engine=…"
        )
    return True


def readings_of(asked: Asked) -> list[Source | Table]:
    """The files and tables of all readings; none where one is profiles."""
    given = [*asked.files, *([] if asked.run is None else [asked.run]), *asked.also]
    readings = [one for one in given if isinstance(one, Source | Table)]
    return readings if len(readings) == len(given) else []


def _lacks_clock(file: Source | Table, columns: Columns) -> bool:
    """Whether a reading is a table or a log without an engine clock."""
    if isinstance(file, Table):
        return "engine_mhz" not in file.numbers
    if file.settings or not file.is_file:
        return False
    if file.is_table_of_caps(columns):
        return "engine_mhz" not in file.table_columns(columns)
    return file.is_log and not file.tells_engine_clock
