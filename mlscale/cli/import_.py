"""mlscale import: from somebody else's file to a tidy table, a sub-command for each format."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from mlscale.cli import options
from mlscale.cli.text import columns, number
from mlscale.data.devices import device_keys
from mlscale.data.grid import parse_settings
from mlscale.profilers import TOOLS
from mlscale.profilers.reader import titles

if TYPE_CHECKING:
    from mlscale.profilers import ImportedTable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A sub-command for each format."""
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    dvfs = formats.add_parser(
        "dvfs",
        help="the measurement files of NV-DVFS-Benchmark, and sampled ones in the A100's form",
        description="Import a measurement file of NV-DVFS-Benchmark, with nvprof's counters or "
        "with DCGM's shares, or a file in the form of the A100's sampled profiles.",
    )
    dvfs.add_argument(
        "file", metavar="FILE", help="the file to import, or a name of 'datasets list'"
    )
    dvfs.add_argument(
        "--device",
        choices=device_keys(),
        help="the GPU it was measured on (default: what the file says)",
    )
    dvfs.add_argument(
        "--incomplete",
        choices=("error", "drop"),
        default="error",
        help="what to do with a kernel that lacks configurations (default: %(default)s)",
    )
    options.add_output_table(dvfs)
    export = _export_options()
    formats.add_parser(
        "auto",
        parents=[export],
        help="a profiler's export, the profiler known by the file",
        description="Import a profiler's export; the profiler is known by the file.",
    )
    for tool in TOOLS:
        layouts = ", ".join(titles(tool))
        formats.add_parser(
            tool, parents=[export], help=layouts, description=f"Import an export: {layouts}."
        )


def _export_options() -> argparse.ArgumentParser:
    """What every profiler's sub-command takes."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="the export, and further passes of the same run and its trace",
    )
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help=f"the GPU it was measured on: {', '.join(device_keys())}, or any other name "
        "(default: what the file says)",
    )
    parser.add_argument(
        "--base",
        metavar="CONFIG",
        help="what the GPU was set to, as far as the files do not say: "
        "cu=56,engine=1303,memory=715 (clocks in MHz)",
    )
    parser.add_argument(
        "--application",
        metavar="NAME",
        help="application of all kernels (default: the program that was profiled, else the file)",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="a row for each launch, as repetitions (default: the mean over the launches of a "
        "kernel with the same grid and block)",
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
    options.add_output_table(parser)
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Import the files. Raises InputError."""
    output = options.output_file(arguments.output)
    if arguments.format == "dvfs":
        print(_import_dvfs(arguments, output))
    else:
        print(_import_export(arguments, output))


def _import_dvfs(arguments: argparse.Namespace, output: Path) -> str:
    from mlscale.data.public import fetching
    from mlscale.data.public.nv_dvfs import read_nv_dvfs

    file = fetching.named_file(arguments.file)
    measurements = read_nv_dvfs(file, arguments.device, arguments.incomplete)
    measurements.write(output)
    c, e, m = measurements.grid.shape
    power = "with" if measurements.power_samples is not None else "without"
    return (
        f"{output}: {len(measurements.kernels)} kernels of "
        f"{len(set(measurements.applications))} applications on {measurements.device}, "
        f"{c} CU counts x {e} engine clocks x {m} memory clocks, "
        f"{len(measurements.counter_names)} counters, {power} power"
    )


def _import_export(arguments: argparse.Namespace, output: Path) -> str:
    from tqdm import tqdm

    from mlscale.data.tables import read_table, write_table
    from mlscale.profilers import append, import_exports

    paths = [Path(name) for name in arguments.file]
    size_bytes = sum(path.stat().st_size for path in paths if path.is_file())
    with tqdm(total=size_bytes, unit="B", unit_scale=True, disable=None, leave=False) as bar:
        imported = import_exports(
            paths,
            None if arguments.format == "auto" else arguments.format,
            device=arguments.device,
            base=parse_settings(arguments.base) if arguments.base else None,
            application=arguments.application,
            each=arguments.each,
            progress=bar.update,
        )
    table = imported.table
    if arguments.append and output.exists():
        table = append(read_table(output), table, str(output))
    write_table(table, output)
    text = f"{output}: {_summary(imported, arguments.each)}"
    if len(table) > len(imported.table):
        text += f"; {len(table)} rows in all"
    if arguments.verbose:
        titles = (f"{path}: {title}" for path, title in zip(paths, imported.titles, strict=True))
        text = "\n".join([text, *titles, _mapping(imported)])
    return text


def _summary(imported: "ImportedTable", each: bool) -> str:
    """What was imported, in one line."""
    statuses = [feature.status for feature in imported.features.values()]
    return (
        f"{imported.kernels} kernels from {imported.launches} launches "
        f"({'one row for each' if each else 'means'}) on {imported.table.text['device'][0]} at "
        f"{imported.config}; Table II: {statuses.count('exact')} exact, "
        f"{statuses.count('nearest')} nearest, {statuses.count('missing')} missing"
    )


def _mapping(imported: "ImportedTable") -> str:
    """Each feature of Table II: its status, its value in the first row, and its formula."""
    rows = []
    for name, feature in imported.features.items():
        value = float(imported.table.numbers.get(name, [math.nan])[0])
        formula = feature.formula + (f"  ({feature.note})" if feature.note else "")
        shown = "-" if feature.value is None or math.isnan(value) else number(value)
        rows.append([name, feature.status, shown, formula])
    return columns(["feature", "status", "first row", "formula"], rows)
