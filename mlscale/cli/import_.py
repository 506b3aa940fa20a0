"""mlscale import: from somebody else's files to a tidy table."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from mlscale.cli import options, outputs
from mlscale.cli.text import columns, print_or_write
from mlscale.errors import InputError
from mlscale.text import counted, number, share_in_percent

if TYPE_CHECKING:
    from mlscale.data.table import Table
    from mlscale.readers.reading import Imported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files, what they may not say, and where the table goes."""
    parser.usage = (
        "%(prog)s FILE ... -o TABLE [options]\n"
        "       %(prog)s dvfs FILE -o TABLE\n"
        "       %(prog)s kernel-tuner CACHE ... -o TABLE"
    )
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="a profiler's export, with further passes and traces of the same run; or monitors' "
        "logs, each of one run; after 'dvfs' a measurement file of NV-DVFS-Benchmark or a name of "
        "'datasets list'; after 'kernel-tuner' its caches or T4 files, whose tuned clocks are the "
        "grid",
    )
    options.add_device(
        parser,
        "the GPU it was measured on: a name of 'devices list', a device file (docs/devices.md), or "
        "any other name (default: what the file says)",
    )
    options.add_settings(
        parser,
        "what the GPU was set to, where the files do not say it, e.g. "
        "cu=56,engine=1303,memory=715 (clocks in MHz)",
    )
    parser.add_argument(
        "--application",
        metavar="NAME",
        help="the application of all kernels (default: the profiled program, else the file's name)",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="write a row for each launch, as repetitions (default: the mean over the launches of "
        "a kernel with the same grid and block)",
    )
    options.add_untimed(parser)
    options.add_power(parser, "of all rows")
    options.add_log(parser)
    parser.add_argument(
        "--incomplete",
        choices=("error", "drop"),
        default="error",
        help="what to do with a kernel of 'dvfs' that lacks configurations (default: %(default)s)",
    )
    parser.add_argument(
        "--append",
        action="store_true",
        help="add the rows to TABLE if it exists, for example those of another configuration",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print each feature of Table II: exact, nearest or missing, and by which formula",
    )
    outputs.add_output_table(parser)


def run(arguments: argparse.Namespace) -> None:
    """Import the files. Raises InputError."""
    output = outputs.output_file(arguments.output)
    first, *files = arguments.file
    if first == "dvfs" and len(files) == 1:
        text = _import_dvfs(arguments, files[0], output)
    elif first == "kernel-tuner" and files:
        text = _import_tuned(arguments, files, output)
    elif options.is_table(Path(first)):
        raise InputError(f"{first}: is a tidy table; other commands take it as it is")
    else:
        text = _import_run(arguments, output)
    print_or_write(f"{text}\n", None)


def _import_dvfs(arguments: argparse.Namespace, name: str, output: Path) -> str:
    from mlscale.data import datasets
    from mlscale.data.devices import load_device
    from mlscale.data.nv_dvfs import read_nv_dvfs

    file = datasets.named_file(name)
    device = arguments.device and load_device(arguments.device).key
    if device is None and file != Path(name):
        device = datasets.dataset(name).device
    measurements = read_nv_dvfs(file, device, arguments.incomplete)
    measurements.write(output)
    power = "with" if measurements.power_samples is not None else "without"
    return (
        f"{output}: {counted(len(measurements.kernels), 'kernel')} of "
        f"{counted(len(set(measurements.applications)), 'application')} on {measurements.device}, "
        f"{measurements.grid.text}, {counted(len(measurements.counter_names), 'counter')}, "
        f"{power} power"
    )


def _import_tuned(arguments: argparse.Namespace, files: list[str], output: Path) -> str:
    from mlscale.data.table_files import write_table
    from mlscale.readers.kernel_tuner import import_tuned

    imported = import_tuned([Path(f) for f in files], arguments.device, arguments.base)
    write_table(imported.table, output)
    table = imported.table
    settings = {
        name: len(set(table.numbers[name].tolist())) for name in ("engine_mhz", "memory_mhz")
    }
    power = "with" if "power_w" in table.numbers else "without"
    return (
        f"{output}: {counted(len(set(table.text['kernel'])), 'kernel')} of "
        f"{counted(len(set(table.text['application'])), 'application')} on "
        f"{table.text['device'][0]}, {counted(settings['engine_mhz'], 'engine clock')} x "
        f"{counted(settings['memory_mhz'], 'memory clock')}, "
        f"{counted(len(table), 'row')}, {power} power; left out: "
        f"{counted(imported.failed, 'configuration')} that "
        f"failed, {imported.off_clock} that ran more than 2 % off their clock"
    )


def _import_run(arguments: argparse.Namespace, output: Path) -> str:
    """Import the exports of a run, or the logs of some."""
    from tqdm import tqdm

    from mlscale.readers.reading import read_table

    paths = [Path(name) for name in arguments.file]
    size_bytes = sum(path.stat().st_size for path in paths if path.is_file())
    with tqdm(total=size_bytes, unit="B", unit_scale=True, disable=None, leave=False) as bar:
        imported = read_table(paths, options.given(arguments), progress=bar.update)
    table = imported.table
    spans: dict[str, str] = table.metadata.get("busy_spans", {})
    if spans:
        said = f"{counted(len(table), 'row')} on {table.text['device'][0]}"
    else:
        said = _summary(imported, arguments.each)
    lines = [f"{output}: {said}{_write(table, arguments, output)}"]
    lines += [f"{kernel}: {span}\n  {_averages(table, kernel)}" for kernel, span in spans.items()]
    if arguments.verbose and not spans:
        lines += [f"{path}: {title}" for path, title in zip(paths, imported.titles, strict=True)]
        lines.append(_mapping(imported))
    return "\n".join(lines)


def _averages(table: "Table", kernel: str) -> str:
    """The numbers of a row, in words."""
    row = table.text["kernel"].index(kernel)
    values = {name: float(column[row]) for name, column in table.numbers.items()}
    return ", ".join(
        f"{name} {number(value)}"
        for name, value in values.items()
        if name != "cu_count" and not math.isnan(value)
    )


def _write(table: "Table", arguments: argparse.Namespace, output: Path) -> str:
    """Write the rows, and say what the summary cannot."""
    from mlscale.data.table_files import read_table, write_table
    from mlscale.readers.table import appended, repeated_rows

    text = ""
    if "power_source" in table.metadata:
        watts = number(float(table.numbers["power_w"][0]))
        text = f"; board power {watts} W ({table.metadata['power_source']})"
    rows = len(table)
    if arguments.append and output.exists():
        before, new = read_table(output), table
        table = appended(before, new, str(output))
        if again := repeated_rows(before, new):
            text += f"; {counted(again, 'repetition')} of rows that were there"
    write_table(table, output)
    return text + (f"; {len(table)} rows in all" if len(table) > rows else "")


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
