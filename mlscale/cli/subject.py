"""--also: the same kernels, or the same run, measured at further configurations.

What predict, advise and report work on: a profile, and the model that fits it.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mlscale.cli import options
from mlscale.counters.kernel_use import device_with_peaks
from mlscale.data.grid import AXES, HardwareConfig, parse_settings
from mlscale.data.logs import SHARES, is_sampled
from mlscale.data.points import add_points
from mlscale.data.profiles import Profiles, configurations, only_config, profiles_at, with_weights
from mlscale.data.table import Table, with_cu_counts
from mlscale.data.table_files import is_tidy, read_table
from mlscale.errors import InputError, UsageError
from mlscale.model.model import Model
from mlscale.model.shipped import FARTHEST, choice_note, extrapolations, model_for, shipped_model
from mlscale.model.unprofiled import left_out
from mlscale.predictors.base import PredictsOtherGpus
from mlscale.text import counted, plain_number


def add_also(parser: argparse.ArgumentParser) -> None:
    """Add the option of every command that can take further measured points."""
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="FILE[@CONFIG]",
        help="times (and powers) of these kernels measured at another configuration: a table whose "
        "rows name theirs, a table or a trace of the same application at CONFIG, e.g. "
        "more.csv@engine=800 (the rest as at the base), or a monitor's log of the same run; may be "
        "given again. A model that cannot use it says which can",
    )


def with_points(
    profiles: Profiles,
    files: Sequence[Path],
    also: Iterable[str],
    tables: Iterable[Table],
    arguments: argparse.Namespace,
) -> Profiles:
    """The profiles with points of further runs: of `also`, and the rows elsewhere of tables.

    files: of the profiles. also: tables, and traces or logs. Raises InputError.
    """
    further: list[tuple[Path | Table, HardwareConfig | None]] = []
    for text in also:
        file, separator, settings = text.rpartition("@")
        is_named = bool(separator) and "=" in settings
        if is_named and not file:
            raise InputError(f"--also {text}: names no file before '@'")
        path = options.input_file(file if is_named else text)
        config = None
        if is_named:
            config = options.config_of(
                parse_settings(settings), profiles.device, profiles.base.as_dict()
            )
        if is_tidy(path):
            further.append((path, config))
        elif options.is_log(path):
            further.append((_of_log(profiles, files[0], path, config, arguments), None))
        else:
            further.append((_of_trace(profiles, files, path, config, arguments.gpu), config))
    further += [(table, None) for table in tables]
    return add_points(profiles, further) if further else profiles


def tells_engine_clock(log: Path) -> bool:
    """Whether a monitor's log says at which engine clock the GPU ran. Raises InputError."""
    from mlscale.readers.monitor import read_log

    return any("engine_mhz" in samples.columns for samples in read_log(log))


def _of_log(
    profiles: Profiles,
    first: Path,
    path: Path,
    config: HardwareConfig | None,
    arguments: argparse.Namespace,
) -> Table:
    """The averages of a further run, by a monitor's log, under the names of the first run."""
    from mlscale.readers.reading import read_table

    if is_tidy(first) or not options.is_log(first):
        raise InputError(
            f"{path}: is a monitor's log, and {first} is none; import both as tables "
            "(mlscale import LOG), or give the logs of both runs; for the power of a further "
            "trace import that trace with --power LOG, and give the table"
        )
    if arguments.time is not None:
        raise InputError(
            f"{path}: --time tells the time of the first run alone; leave it away, or import "
            "each log with its own (mlscale import LOG --time MS) and give the tables"
        )
    base = (config or profiles.base).as_dict()
    if config is None:
        if not tells_engine_clock(path):
            raise InputError(
                f"{path}: does not say at which engine clock it ran: --also {path.name}@engine=…"
            )
        del base["engine_mhz"]
    given = replace(options.given(arguments), device=profiles.device, base=base, power=None)
    table = read_table([path], given).table
    if len(table) != len(profiles.kernels):
        raise InputError(
            f"{path}: has {counted(len(table), 'busy GPU')}, {first} has {len(profiles.kernels)}; "
            "name one with --gpu"
        )
    names = {"kernel": list(profiles.kernels), "application": list(profiles.applications)}
    return replace(table, source=str(path), text=table.text | names)


def _of_trace(
    profiles: Profiles,
    files: Sequence[Path],
    path: Path,
    config: HardwareConfig | None,
    gpu: str | None,
) -> Table:
    """The times of a further run, by its trace, under the names of the first one's kernels."""
    from mlscale.readers.reading import read_again

    if config is None:
        raise InputError(
            f"{path}: is no table; of a trace say where it ran: {path.name}@engine=…, and memory=… "
            "or cu=… where they are not the base's"
        )
    if path.resolve() in [file.resolve() for file in files]:
        raise InputError(f"{path}: is of the base already; give the trace of a run at {config}")
    if is_tidy(files[0]):
        raise InputError(
            f"{path}: is no table, and the profile, {files[0]}, does not tell its "
            "counters' launches; give the exports that it was imported from in its place, or "
            "import these with this trace and give the table that comes out"
        )
    if options.is_log(files[0]):
        raise InputError(
            f"{path}: is no log, and {files[0]} is a monitor's; give the log of the further "
            "run, or the traces of both"
        )
    table = read_again(files, path, profiles, config, gpu)
    return replace(table, source=str(path))


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
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files, the model, and what the files may not say."""
    parser.usage = "%(prog)s FILE ... [--model MODEL] [options]"
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="a profiler's export (with further passes and the trace of the same run), a monitor's "
        "log, or a profile table (CSV or Parquet, a row for each kernel); a first file "
        "*.mlscale is the model",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model file, or the name of a shipped one (default: the shipped one that fits FILE)",
    )
    add_own_predictor(parser)
    parser.add_argument(
        "--profiled-only",
        action="store_true",
        help="leave out kernels without counters, of which a trace knows the time alone (default: "
        "predict them like the mean of the others)",
    )
    parser.add_argument(
        "--extrapolate",
        action="store_true",
        help="predict beyond the trained clocks and CU counts too, with a flag and wider "
        f"intervals: wherever the GPU can be set to, up to {FARTHEST:g} times beyond (of "
        "'predict', where --at asks for it)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="predict a real GPU with a model of simulated data too",
    )
    _add_facts(parser)


def add_own_predictor(parser: argparse.ArgumentParser) -> None:
    """Add the class of a predictor that a model file only names."""
    parser.add_argument(
        "--predictor",
        type=options.own_predictor,
        metavar="PREDICTOR",
        help="package.module:Class of your own predictor, if MODEL was trained with it (a model "
        "file never imports code by itself)",
    )


def _add_facts(parser: argparse.ArgumentParser) -> None:
    """Add what the files may not say."""
    group = parser.add_argument_group("what FILE does not say")
    options.add_device(
        group,
        "the GPU it was measured on: a name of 'mlscale devices list', or a device file",
    )
    options.add_settings(
        group,
        "what the GPU was set to, e.g. cu=132,engine=1980,memory=2619 (clocks in MHz); of a "
        "table with several configurations, the one to predict from",
    )
    options.add_untimed(group)
    options.add_power(group, "at the base")
    options.add_log(group)


def add_weights(parser: argparse.ArgumentParser) -> None:
    """Add what says how often each kernel runs."""
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="CSV with the columns kernel and launches, which says how often kernels run; kernels "
        "that it does not name keep the launches of the profile",
    )


def read(
    arguments: argparse.Namespace,
    at: Sequence[str] = (),
    peaks: str | None = None,
    head: Table | None = None,
    also: Sequence[str] = (),
) -> Subject:
    """Read all files, then choose the model. Raises InputError, with all that lacks at once.

    at: where to predict, by default everywhere on the model's grid, or at all clocks that a GPU
    without training data offers; peaks: profiles of other kernels of such a GPU, a file. head: the
    first rows of a fleet, which then stand for it. also: the files of further runs.
    """
    model_text, files = model_and_files(arguments)
    named = options.load_model(arguments, model_text) if model_text else None
    paths = tuple(map(options.input_file, files))
    profiles, own_points = _profiles(paths, arguments, named, head, also)
    if weights := getattr(arguments, "weights", None):
        profiles = with_weights(profiles, options.input_file(weights))
    notes: list[str] = []
    if arguments.profiled_only:
        notes = [*left_out(profiles)] if head is None else []
        profiles = profiles.profiled
    profiles = with_points(profiles, paths, also, own_points, arguments)
    name, model = (str(model_text), named) if named else shipped_model(profiles)
    notes += [] if named else [choice_note(name, model, profiles)]
    targets = _targets(at, model, profiles)
    peak_profiles = _peaks(peaks, profiles)
    model = model_for(
        model, profiles, targets, peak_profiles, arguments.extrapolate, arguments.force
    )
    notes += extrapolations(model, bool(profiles.points))
    profile_name = ", ".join(path.name for path in paths)
    return Subject(
        model, profiles, tuple(targets), Path(name).name, profile_name, tuple(notes), paths
    )


def _is_of_same_base(model: Model, profiles: Profiles) -> bool:
    return (model.device, model.base) == (profiles.device, profiles.base)


def _targets(at: Sequence[str], model: Model, profiles: Profiles) -> list[HardwareConfig]:
    """Where to predict; what a text leaves out is as at the base. Raises InputError."""
    if _is_of_same_base(model, profiles):
        return [model.grid.parse(text, model.base) for text in at]
    base = profiles.base.as_dict()
    return [options.config_of(parse_settings(text), profiles.device, base) for text in at]


def model_and_files(arguments: argparse.Namespace) -> tuple[str | None, list[str]]:
    """The model, if one is named, and the other files; a first file *.mlscale is the model."""
    first, *others = arguments.file
    if not options.is_model_name(first):
        return arguments.model, arguments.file
    if arguments.model:
        raise UsageError(f"{first} is a model too; give --model or MODEL PROFILE, not both")
    if not others:
        raise UsageError(f"{first} is a model; name the profile to predict too")
    return first, others


def _profiles(
    paths: Sequence[Path],
    arguments: argparse.Namespace,
    model: Model | None,
    head: Table | None,
    also: Sequence[str],
) -> tuple[Profiles, list[Table]]:
    """The profiles that the files hold, with the power of --power. Raises InputError.

    And a table of readings itself, as its rows elsewhere are points, where it has no counters.
    """
    power = arguments.power
    if _names_log(power):
        power = options.input_file(power)
    if len(paths) > 1 or not is_tidy(paths[0]):
        if tables := [path for path in paths if options.is_table(path)]:
            raise UsageError(
                f"{tables[0]}: is a table, and several files are exports of one run; give one "
                "table alone, which may hold all kernels"
            )
        from mlscale.readers.reading import read as read_run

        profiles = read_run(paths, replace(options.given(arguments), power=power))
        _require_peaks(profiles, arguments, model, bool(also))
        return profiles, []
    as_read = read_table(paths[0]) if head is None else head
    table = with_cu_counts(as_read)
    device, base = _device_and_base(table, arguments, model)
    if power is not None:
        from mlscale.readers.power import with_power

        table = with_power(table, power, arguments.gpu)
    profiles = profiles_at(table, base, device)
    _require_peaks(profiles, arguments, model, bool(also))
    has_counters = not set(profiles.counter_names) <= set(SHARES)
    is_of_readings = head is None and not has_counters and {*configurations(table)} != {base}
    return profiles, [as_read] if is_of_readings else []


def _require_peaks(
    profiles: Profiles, arguments: argparse.Namespace, model: Model | None, has_further: bool
) -> None:
    """Raise InputError where counters are of a GPU that --device names and nobody knows.

    Bounds alone would hide a mistyped name. Averages, times and two clocks need no peaks.
    """
    has_counters = not (profiles.are_times_alone or set(profiles.counter_names) <= set(SHARES))
    is_free = model is not None or has_further or not arguments.device
    if has_counters and not is_sampled(profiles.metadata) and not is_free:
        device_with_peaks(arguments.device)


def _names_log(power: str | None) -> bool:
    """Whether --power names a log, not watts."""
    if power is None:
        return False
    try:
        plain_number(power)
    except ValueError:
        return True
    return False


def _device_and_base(
    table: Table, arguments: argparse.Namespace, model: Model | None
) -> tuple[str, HardwareConfig]:
    """The GPU of a table, and its base: --base, the model's, or its one configuration.

    Raises InputError.
    """
    names = sorted(set(table.text.get("device", ())))
    for name in names:
        if arguments.device not in (None, name):
            raise InputError(
                f"{table.source}: is of device '{name}', --device says '{arguments.device}'"
            )
    if model is not None and not (arguments.device or arguments.base) and _is_for(model, table):
        return model.device, model.base
    device: str | None = arguments.device or (names[0] if names else None)
    if device is None and model is not None:
        device = model.device
    if device is None:
        raise InputError(f"{table.source}: does not say the GPU; name it with --device")
    if not arguments.base:
        return device, only_config(table)
    settings = {axis: set(table.numbers.get(axis, np.empty(0)).tolist()) for axis in AXES}
    only = {axis: values.pop() for axis, values in settings.items() if len(values) == 1}
    return device, options.config_of(arguments.base, device, only)


def _is_for(model: Model, table: Table) -> bool:
    """Whether the table is of the model's GPU and base, or the model takes no other."""
    if not isinstance(model.predictors["time"], PredictsOtherGpus):
        return True
    is_same_device = set(table.text.get("device", [model.device])) == {model.device}
    return is_same_device and model.base in configurations(table)


def _peaks(file: str | None, profiles: Profiles) -> Profiles | None:
    """Profiles of other kernels of the same GPU at the same base. Raises InputError."""
    if file is None:
        return None
    table = read_table(options.input_file(file))
    for other in set(table.text.get("device", ())) - {profiles.device}:
        raise InputError(
            f"{table.source}: is of device '{other}', the profile of '{profiles.device}'"
        )
    return profiles_at(table, profiles.base, profiles.device)
