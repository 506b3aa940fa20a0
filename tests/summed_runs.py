"""One file of a profiler summed up by its reader, as `mlscale.readers.source` does it."""

from pathlib import Path

from mlscale.readers.launches import LaunchSums, SummedFile
from mlscale.readers.source import Source


def run_of(path: Path, each: bool = False, gpu: str | None = None) -> SummedFile:
    """All launches of a file."""
    return Source(str(path)).launches(each, gpu)


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
