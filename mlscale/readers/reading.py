"""From the files of one run to profiles, or to a tidy table that later commands read."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlscale.data.grid import setting_of
from mlscale.data.profiles import Profiles, configurations, profiles_at
from mlscale.errors import InputError
from mlscale.files import ByteProgress, no_progress
from mlscale.guesses import written
from mlscale.parameters import parameter
from mlscale.readers.given import Given
from mlscale.readers.run import Imported
from mlscale.readers.source import Source, source_of


@written("mlscale.import_profile(files), and of a table mlscale.predict(path, columns={…})")
def import_profile(  # noqa: PLR0913, what files may not say
    files: str | Path | Sequence[str | Path],
    *,
    device: str | None = None,
    base: Any = None,
    gpu: str | None = None,
    application: str | None = None,
    power: float | str | Path | None = None,
    interval_s: float | None = None,
    time_ms: float | None = None,
    each: bool = False,
    skip_untimed: bool = False,
) -> Profiles:
    """Read a profiler's exports of one run, or a monitor's log of it, as profiles to predict from.

    files: one file, or several of the same run: further passes, and traces for times and launches.
    The other arguments add what the files do not say; `mlscale.readers.given.Given` explains each;
    base as for `mlscale.advise`, {'engine': 1000} or 'engine=1000'.
    Raises InputError if a file cannot be read, if the files contradict each other or an argument,
    or if something is missing; warns of what was left out.

    Example:
        profiles = mlscale.import_profile("run.csv", base={"engine_mhz": 1000, "memory_mhz": 900})
    """
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    at = setting_of(base) if base else {}
    return read(
        paths, Given(device, at, gpu, application, power, interval_s, time_ms, each, skip_untimed)
    )


def read(files: Sequence[Path | Source], given: Given | None = None) -> Profiles:
    """Read the files of one run as profiles; see `import_profile`. Raises InputError."""
    return profiles_of(read_table(files, given), files)


def profiles_of(imported: Imported, files: Sequence[Path | Source]) -> Profiles:
    """The profiles in the table of a run's files. InputError if it has several GPUs or clocks."""
    table = imported.table
    runs = dict.fromkeys(zip(table.text["device"], configurations(table), strict=True))
    clocks = dict.fromkeys(config.engine_mhz for _, config in runs)
    if len(runs) == len(clocks) == len(files) > 1:
        first, second = (shlex.quote(str(file)) for file in files[:2])
        also = parameter("also", second if len(files) == 2 else "FILE")
        ran = " and ".join(f"{mhz:g}" for mhz in clocks)
        raise InputError(
            f"{files[0]}: the files are of {len(files)} runs, at {ran} MHz; give each further run "
            f"with {parameter('also')}: {first} {also}"
        )
    if len(runs) > 1:
        names = ", ".join(f"{device} at {config}" for device, config in runs)
        raise InputError(
            f"{table.source}: has several GPUs or clocks, {names}; name one GPU with "
            f"{parameter('gpu')}, and give the log of another run with {parameter('also')}"
        )
    [(device, config)] = runs
    return profiles_at(table, imported.config or config, device)


def read_table(
    files: Sequence[Path | Source], given: Given | None = None, progress: ByteProgress = no_progress
) -> Imported:
    """Read the files of one run into a tidy table: counters of one tool and traces of any.

    progress: is called with numbers of bytes as they are read. The rest is as for `read`; logs may
    have several GPUs, and several runs.
    """
    given, sources = given or Given(), [source_of(file) for file in files]
    if not sources:
        raise InputError("no file was given")
    if sources[0].is_log:
        from mlscale.readers.log_table import samples_to_table

        table = samples_to_table([log for source in sources for log in source.samples], given)
        imported = Imported(table, str(table.metadata["counter_tool"]), ())
    else:
        from mlscale.readers.table import read_exports

        imported = read_exports(sources, given, progress)
    if given.power is None:
        return imported
    from mlscale.readers.power import with_power

    return replace(imported, table=with_power(imported.table, given.power, given.gpu))
