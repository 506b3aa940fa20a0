"""One file of a profiler summed up by its reader, as `mlscale.readers.reading` does it."""

from pathlib import Path

from mlscale.readers.files import open_file
from mlscale.readers.launches import Facts, LaunchSums, SummedFile, summed
from mlscale.readers.mapping import needed_counters
from mlscale.readers.reading import PROFILERS


def run_of(path: Path, each: bool = False, gpu: str | None = None) -> SummedFile:
    """All launches of a file; it must be of a form that is read."""
    sheet = open_file(path, PROFILERS)
    assert sheet is not None, f"{path} is of no form"
    assert sheet.form.read is not None
    facts, tool = Facts(), sheet.form.tool
    launches = sheet.form.read(sheet, facts, needed_counters(tool))
    return summed(launches, str(path), tool, sheet.form.title, facts, each, gpu)


def run_of_text(
    folder: Path, text: str | bytes, each: bool = False, gpu: str | None = None
) -> SummedFile:
    """All launches of a made file of that content."""
    path = folder / "run.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return run_of(path, each, gpu)


def only(run: SummedFile) -> LaunchSums:
    """The only group of launches."""
    [sums] = run.groups.values()
    return sums


def totals(run: SummedFile) -> tuple[int, int, float]:
    """How many groups, how many launches, and the time of them all [ms]."""
    groups = run.groups.values()
    time_ms = 1e3 * sum(sums.time_total_s for sums in groups)
    return len(groups), round(sum(sums.launches for sums in groups)), time_ms
