"""mlscale import: from somebody else's files to a tidy table."""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import columns, print_or_write
from mlscale.data.grid import AXES
from mlscale.data.table import Table
from mlscale.errors import InputError
from mlscale.readers.source import Source, with_sysinfo
from mlscale.text import counted, number, share_in_percent

if TYPE_CHECKING:
    from mlscale.data.measurements import Incomplete
    from mlscale.readers.given import Given
    from mlscale.readers.run import Imported


_FROM_BEST = ("exact", "nearest", "missing")  # statuses of a feature
_BY_ROW = {
    "launches", "busy_spans", "sample_ms", "idle_ms", "working_ms", "open_ends",
    "utilisation_sources",
}  # fmt: skip
_LISTS = {"gpus", "profiled_gpus", "asked_clocks"}
_WRITTEN_BY = """\
profiles and logs are written by, for example:
  ncu --section SpeedOfLight --section LaunchStats --section Occupancy \\
      --clock-control none --log-file run.txt ./app
  nsys export --type sqlite -o run.sqlite run.nsys-rep
  rocprofv3 --kernel-trace --output-format csv -- ./app
  prof.export_chrome_trace("trace.json.gz")     (PyTorch)
  nvidia-smi --query-gpu=timestamp,index,name,power.draw,clocks.sm,clocks.mem,\\
      utilization.gpu,utilization.memory --format=csv -lms 100 > log.csv
  dcgmi dmon -e 1001,1002,1005,203,204,155,100,101 -d 100 > log.txt
  amd-smi metric --csv --watch 1 > log.csv
"""


def add_arguments(parser: Parser) -> None:
    """Add the files, what they may not say, and where the table goes."""
    from mlscale.data.measurements import INCOMPLETE

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _WRITTEN_BY
    parser.usage = (
        "%(prog)s FILE ... -o TABLE [options]\n"
        "       %(prog)s dvfs FILE -o TABLE\n"
        "       %(prog)s kernel-tuner CACHE ... -o TABLE"
    )
    what = (
        "profile, further passes and trace of a run; or logs, each of one run; after 'dvfs' one of "
        "'datasets list' or of NV-DVFS-Benchmark; after 'kernel-tuner' caches or T4 files"
    )
    parser.add("file", nargs="+", metavar="FILE", help=what)
    what = "table to write; Parquet if it ends in .parquet, else CSV"
    parser.add("-o", "--output", required=True, metavar="TABLE", help=what)
    what = "add the rows to TABLE if it exists, for example those of another clock"
    parser.add("--append", action="store_true", help=what)
    options.add_facts(
        parser,
        device="its GPU: a name of 'mlscale devices list', a device file, or any other name",
        base="what it ran at, e.g. cu=56,engine=1303,memory=715",
    )
    what = "the application of all kernels (default: the profiled program, else the file's name)"
    parser.add_more("--application", metavar="NAME", help=what)
    what = "write a row for each launch (default: the mean of those with one grid and block)"
    parser.add_more("--each", action="store_true", help=what)
    what = f"of 'dvfs': {options.INCOMPLETE_HELP}"
    parser.add_more("--incomplete", choices=INCOMPLETE, default="error", help=what)
    what = "print each feature of Table II: exact, nearest or missing, and by which formula"
    parser.add_more("-v", "--verbose", action="store_true", help=what)


def run(arguments: argparse.Namespace) -> None:
    """Import the files. Raises InputError."""
    output = outputs.output_file(arguments.output)
    first, *files = arguments.file
    if first == "dvfs" and len(files) == 1:
        text = _import_dvfs(files[0], arguments.device, arguments.incomplete, output)
    elif first == "kernel-tuner" and files:
        text = _import_tuned(files, arguments.device, arguments.base, output)
    else:
        sources = with_sysinfo([Source(name) for name in arguments.file])
        if sources[0].is_file and sources[0].is_table():
            raise InputError(f"{first}: is a tidy table; other commands read it directly")
        given = options.given(arguments, arguments.application, arguments.each)
        text = _import_run(sources, given, output, arguments.append, arguments.verbose)
    print_or_write(f"{text}\n", None)


def _import_dvfs(name: str, device: str | None, incomplete: "Incomplete", output: Path) -> str:
    """Import a table of NV-DVFS-Benchmark; what there is to say of it."""
    from mlscale.data import datasets
    from mlscale.data.devices import load_device
    from mlscale.data.nv_dvfs import read_nv_dvfs

    file = datasets.named_file(name)
    if device is not None:
        device = load_device(device).key
    elif file != Path(name):
        device = datasets.dataset(name).device
    measurements = read_nv_dvfs(file, device, incomplete)
    measurements.write(output)
    power = "with" if measurements.power_samples is not None else "without"
    return (
        f"{output}: {counted(len(measurements.kernels), 'kernel')} of "
        f"{counted(len(set(measurements.applications)), 'application')} on {measurements.device}, "
        f"{measurements.grid.text}, {counted(len(measurements.counter_names), 'counter')}, "
        f"{power} power"
    )


def _import_tuned(
    files: Sequence[str], device: str | None, base: Mapping[str, float] | None, output: Path
) -> str:
    """Import caches of kernel_tuner; what there is to say of them."""
    from mlscale.data.table_files import write_table
    from mlscale.readers.kernel_tuner import import_tuned

    imported = import_tuned([Path(file) for file in files], device, base)
    table = imported.table
    write_table(table, output)
    kernels, applications = set(table.text["kernel"]), set(table.text["application"])
    engine_mhz, memory_mhz = (
        len(set(table.numbers[name].tolist())) for name in ("engine_mhz", "memory_mhz")
    )
    power = "with" if "power_w" in table.numbers else "without"
    return (
        f"{output}: {counted(len(kernels), 'kernel')} of "
        f"{counted(len(applications), 'application')} on {table.text['device'][0]}, "
        f"{counted(engine_mhz, 'engine clock')} x {counted(memory_mhz, 'memory clock')}, "
        f"{counted(len(table), 'row')}, {power} power; left out: "
        f"{counted(imported.failed, 'configuration')} that failed, {imported.off_clock} that ran "
        "more than 2 % off their clock"
    )


def _import_run(
    sources: Sequence[Source], given: "Given", output: Path, append: bool, verbose: bool
) -> str:
    """Import the exports of a run, or the logs of some; what there is to say of them."""
    from tqdm import tqdm

    from mlscale.readers.reading import read_table

    size_bytes = sum(source.file.size_bytes for source in sources if source.is_file)
    with tqdm(total=size_bytes, unit="B", unit_scale=True, disable=None, leave=False) as bar:
        imported = read_table(sources, given, progress=bar.update)
    table = imported.table
    spans: dict[str, str] = table.metadata.get("busy_spans", {})
    said = f"{counted(len(table), 'row')} on {table.text['device'][0]}"
    if not spans:
        said = _summary(imported, given.each)
    if "power_source" in table.metadata:
        watts = number(float(table.numbers["power_w"][0]))
        said += f"; board power {watts} W ({table.metadata['power_source']})"
    lines = [f"{output}: {said}{_write(table, output, append)}"]
    lines += [f"{kernel}: {span}\n  {_averages(table, kernel)}" for kernel, span in spans.items()]
    if verbose and not spans:
        titles = zip(sources, imported.titles, strict=True)
        lines += [f"{source.path}: {title}" for source, title in titles]
        lines.append(_mapping(imported))
    return "\n".join(lines)


def _averages(table: Table, kernel: str) -> str:
    """The numbers of a row, in words."""
    row = table.text["kernel"].index(kernel)
    values = {name: float(column[row]) for name, column in table.numbers.items()}
    return ", ".join(
        f"{name} {number(value)}"
        for name, value in values.items()
        if name not in ("cu_count", "gpu_count") and not math.isnan(value)
    )


def _write(table: Table, output: Path, append: bool) -> str:
    """Write the rows, below those of the table that is there to append; say what came of that."""
    from mlscale.data.table_files import read_table, write_table

    if not (append and output.exists()):
        write_table(table, output)
        return ""
    before = read_table(output, leaves_texts=False)  # as it is written again
    whole = appended(before, table, str(output))
    write_table(whole, output)
    again = repeated_rows(before, table)
    repeated = f"; {counted(again, 'repetition')} of rows already there" if again else ""
    return f"{repeated}; {len(whole)} rows in total"


def _summary(imported: "Imported", each: bool) -> str:
    """Return what was imported, in one line."""
    statuses = [feature.status for feature in imported.features.values()]
    covered = ""
    if "total_time_ms" in imported.table.numbers and imported.covered > 0:
        covered = (
            f"counters cover {share_in_percent(imported.covered)} % of the "
            f"{number(imported.time_ms)} ms of the run's kernels; "
        )
    return (
        f"{covered}{counted(len(set(imported.table.text['kernel'])), 'kernel')} from "
        f"{counted(imported.launches, 'launch')} "
        f"({'one row for each' if each else 'means'}) on {imported.table.text['device'][0]} at "
        f"{imported.config}; Table II: {statuses.count('exact')} exact, "
        f"{statuses.count('nearest')} nearest, {statuses.count('missing')} missing"
    )


def _mapping(imported: "Imported") -> str:
    """Return each feature of Table II: its status, its value in the first row, and its formula."""
    rows = []
    for name, feature in imported.features.items():
        value = float(imported.table.numbers.get(name, [math.nan])[0])
        formula = feature.formula + (f"  ({feature.note})" if feature.note else "")
        shown = "-" if feature.value is None or math.isnan(value) else number(value)
        rows.append([name, feature.status, shown, formula])
    return columns(["feature", "status", "first row", "formula"], rows)


def appended(table: Table, new: Table, source: str) -> Table:
    """Both tables' rows; a counter that one of them lacks is missing in its rows.

    source: what messages call the table. Raises InputError where the tables are of different
    devices or profilers.
    """
    for name, cells in new.text.items():
        if name not in table.text:
            raise InputError(f"{source}: has no column '{name}'; it was not imported")
        if name == "device" and set(cells) != set(table.text[name]):
            raise InputError(
                f"{source}: is of '{table.text[name][0]}', the new rows are of '{cells[0]}'"
            )
    before, tool = table.metadata.get("counter_tool"), new.metadata["counter_tool"]
    if before != tool:
        raise InputError(
            f"{source}: its counters are of {before or 'an unknown tool'}, the new ones of {tool}; "
            "one table has counters of one tool"
        )
    numbers = {
        name: np.concatenate(
            [part.numbers.get(name, np.full(len(part), np.nan)) for part in (table, new)]
        )
        for name in dict.fromkeys([*table.numbers, *new.numbers])
    }
    text = {name: [*table.text[name], *cells] for name, cells in new.text.items()}
    return Table(source, text, numbers, _metadata(table.metadata, new.metadata))


def _metadata(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What is said of both tables' rows: the new table's word, joined to the old one's."""
    metadata = {**old, **{name: value for name, value in new.items() if name != "clocks"}}
    for name in _BY_ROW & old.keys() & new.keys():
        metadata[name] = {**old[name], **new[name]}
    for name in _LISTS & old.keys() & new.keys():
        metadata[name] = list(dict.fromkeys([*old[name], *new[name]]))
    metadata["source"] = _each_once([old.get("source", ""), new["source"]])
    for name, text in old.get("utilisation_sources", {}).items():
        both = [text, new["utilisation_sources"].get(name, "")]
        metadata["utilisation_sources"][name] = _each_once(both)
    statuses = old.get("feature_status", {})
    metadata["feature_status"] = {
        name: max(status, statuses.get(name, status), key=_FROM_BEST.index)
        for name, status in new["feature_status"].items()
    }
    return metadata


def _each_once(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(part for text in texts for part in text.split("; ") if part))


def repeated_rows(table: Table, new: Table) -> int:
    """How many of the new rows are of a kernel and configuration that the table has already."""

    def keys(one: Table) -> list[tuple[Any, ...]]:
        settings = (one.numbers[axis].tolist() for axis in AXES)
        return list(zip(one.text["application"], one.text["kernel"], *settings, strict=True))

    known = set(keys(table))
    return sum(key in known for key in keys(new))
