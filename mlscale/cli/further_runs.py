"""--also: the same kernels, or the same run, measured at further configurations."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mlscale.cli import options
from mlscale.data.grid import HardwareConfig, parse_settings
from mlscale.data.points import add_points
from mlscale.data.profiles import Profiles
from mlscale.data.table import Table
from mlscale.data.table_files import is_tidy
from mlscale.errors import InputError
from mlscale.text import counted


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
