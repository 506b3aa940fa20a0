"""mlscale import: from somebody else's file to a tidy table, a sub-command for each format."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli import options, outputs, values
from mlscale.cli.text import columns, print_or_write
from mlscale.errors import InputError
from mlscale.profilers import sampled
from mlscale.profilers.exports.layouts import TOOLS, titles
from mlscale.profilers.sampled.formats import FORMATS
from mlscale.text import counted, number, share_in_percent

if TYPE_CHECKING:
    from mlscale.data.table import Table
    from mlscale.profilers import ImportedTable
    from mlscale.profilers.sampled import SampledTable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each format."""
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    _add_datasets(formats)
    auto = formats.add_parser(
        "auto",
        help="a profiler's export or a monitor's log; the file tells which tool made it",
        description="Import a profiler's export or a monitor's log; the file tells which tool "
        "made it.",
    )
    _add_table(auto)
    _add_export(auto)
    options.add_log(auto)
    for tool in TOOLS:
        layouts = "; ".join(titles(tool))
        of_tool = formats.add_parser(
            tool, help=layouts, description=f"Import an export: {layouts}."
        )
        _add_table(of_tool)
        _add_export(of_tool)
    for tool in sampled.TOOLS:
        logs = "; ".join(form.title for form in FORMATS if form.tool == tool)
        of_tool = formats.add_parser(
            tool,
            help=f"logs: {logs}",
            description=f"Import logs of runs, averaged over the time in which the GPU works: "
            f"{logs}.",
        )
        _add_table(of_tool)
        options.add_log(of_tool)


def _add_datasets(formats: Any) -> None:
    """Add the formats that hold a whole training table."""
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
        type=values.known_device_key,
        metavar="DEVICE",
        help="the GPU it was measured on, a name of 'devices list' or a device file (default: "
        "what the file says)",
    )
    dvfs.add_argument(
        "--incomplete",
        choices=("error", "drop"),
        default="error",
        help="what to do with a kernel that lacks configurations (default: %(default)s)",
    )
    outputs.add_output_table(dvfs)
    tuned = formats.add_parser(
        "kernel-tuner",
        help="caches of kernel_tuner and T4 files with tuned clocks",
        description="Import caches of kernel_tuner or T4 files: each configuration of the tuned "
        "parameters is a kernel, each file an application, and the tuned clocks are the grid.",
    )
    tuned.add_argument("file", nargs="+", metavar="CACHE", help="a cache or a T4 file, of one GPU")
    options.add_device(
        tuned,
        "the GPU it was measured on, where the files do not say it (a T4 file does not)",
    )
    options.add_settings(
        tuned,
        "what the GPU was set to on axes that were not tuned, e.g. cu=48,memory=7001 (MHz)",
    )
    outputs.add_output_table(tuned)


def _add_table(parser: argparse.ArgumentParser) -> None:
    """Add the options that every profiler and monitor takes."""
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="an export, with further passes and traces of the same run; or logs, each of one run",
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
        "--append",
        action="store_true",
        help="add the rows to TABLE if it exists, for example those of another configuration",
    )
    options.add_power(parser, "of all rows")
    outputs.add_output_table(parser)


def _add_export(parser: argparse.ArgumentParser) -> None:
    """Add what every profiler's sub-command takes besides."""
    parser.add_argument(
        "--each",
        action="store_true",
        help="write a row for each launch, as repetitions (default: the mean over the launches of "
        "a kernel with the same grid and block)",
    )
    options.add_untimed(parser)
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print each feature of Table II: exact, nearest or missing, and by which formula",
    )


def run(arguments: argparse.Namespace) -> None:
    """Import the files. Raises InputError."""
    output = outputs.output_file(arguments.output)
    if arguments.format == "dvfs":
        text = _import_dvfs(arguments, output)
    elif arguments.format == "kernel-tuner":
        text = _import_tuned(arguments, output)
    elif options.is_table(Path(arguments.file[0])):
        raise InputError(f"{arguments.file[0]}: is a tidy table; other commands take it as it is")
    elif _is_log(arguments):
        text = _import_logs(arguments, output)
    else:
        text = _import_export(arguments, output)
    print_or_write(f"{text}\n", None)


def _is_log(arguments: argparse.Namespace) -> bool:
    """Whether the files are a monitor's logs."""
    if arguments.format != "auto":
        return arguments.format in sampled.TOOLS
    return sampled.log_format(Path(arguments.file[0])) is not None


def _import_dvfs(arguments: argparse.Namespace, output: Path) -> str:
    from mlscale.data.public import fetching, registry
    from mlscale.data.public.nv_dvfs import read_nv_dvfs

    file = fetching.named_file(arguments.file)
    device = arguments.device
    if device is None and file != Path(arguments.file):
        device = registry.dataset(arguments.file).device
    measurements = read_nv_dvfs(file, device, arguments.incomplete)
    measurements.write(output)
    power = "with" if measurements.power_samples is not None else "without"
    return (
        f"{output}: {counted(len(measurements.kernels), 'kernel')} of "
        f"{counted(len(set(measurements.applications)), 'application')} on {measurements.device}, "
        f"{measurements.grid.text}, {counted(len(measurements.counter_names), 'counter')}, "
        f"{power} power"
    )


def _import_tuned(arguments: argparse.Namespace, output: Path) -> str:
    from mlscale.data.table_files import write_table
    from mlscale.profilers.kernel_tuner import import_tuned

    imported = import_tuned([Path(f) for f in arguments.file], arguments.device, arguments.base)
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


def _import_export(arguments: argparse.Namespace, output: Path) -> str:
    from tqdm import tqdm

    from mlscale.profilers import import_exports

    paths = [Path(name) for name in arguments.file]
    size_bytes = sum(path.stat().st_size for path in paths if path.is_file())
    with tqdm(total=size_bytes, unit="B", unit_scale=True, disable=None, leave=False) as bar:
        imported = import_exports(
            paths,
            None if arguments.format == "auto" else arguments.format,
            device=arguments.device,
            base=arguments.base,
            application=arguments.application,
            each=arguments.each,
            gpu=arguments.gpu,
            skip_untimed=arguments.skip_untimed,
            power=arguments.power,
            progress=bar.update,
        )
    text = f"{output}: {_summary(imported, arguments.each)}"
    text += _write(imported.table, arguments, output)
    if arguments.verbose:
        titles = (f"{path}: {title}" for path, title in zip(paths, imported.titles, strict=True))
        text = "\n".join([text, *titles, _mapping(imported)])
    return text


def _import_logs(arguments: argparse.Namespace, output: Path) -> str:
    imported = sampled.import_logs(
        [Path(name) for name in arguments.file],
        None if arguments.format == "auto" else arguments.format,
        options.run_facts(arguments, arguments.base),
    )
    rows = counted(len(imported.table), "row")
    text = f"{output}: {rows} on {imported.table.text['device'][0]}"
    text += _write(imported.table, arguments, output)
    return "\n".join([text, *_spans(imported)])


def _spans(imported: "SampledTable") -> list[str]:
    """Return for each row what it is an average of, and the averages."""
    lines = []
    for row, (label, span) in enumerate(zip(imported.rows, imported.spans, strict=True)):
        values = {name: values[row] for name, values in imported.table.numbers.items()}
        averages = ", ".join(
            f"{name} {number(value)}"
            for name, value in values.items()
            if name != "cu_count" and not math.isnan(value)
        )
        lines += [f"{label}: {span}", f"  {averages}"]
    return lines


def _write(table: "Table", arguments: argparse.Namespace, output: Path) -> str:
    """Write the rows, with the power of --power, and say what the summary cannot."""
    from mlscale.data.table_files import read_table, write_table
    from mlscale.profilers.appending import append, repeated_rows

    text = ""
    if arguments.power is not None:
        table = sampled.join_power(table, arguments.power, arguments.gpu)
        watts = number(float(table.numbers["power_w"][0]))
        text = (
            f"; {table.metadata['power_kind']} power {watts} W ({table.metadata['power_source']})"
        )
    rows = len(table)
    if arguments.append and output.exists():
        before, new = read_table(output), table
        table = append(before, new, str(output))
        if again := repeated_rows(before, new):
            text += f"; {counted(again, 'repetition')} of rows that were there"
    write_table(table, output)
    return text + (f"; {len(table)} rows in all" if len(table) > rows else "")


def _summary(imported: "ImportedTable", each: bool) -> str:
    """Return what was imported, in one line."""
    statuses = [feature.status for feature in imported.features.values()]
    covered = ""
    if "total_time_ms" in imported.table.numbers and imported.covered > 0:
        covered = (
            f"counters cover {share_in_percent(imported.covered)} % of the "
            f"{number(imported.time_ms)} ms of the run's kernels; "
        )
    return (
        f"{covered}{counted(imported.kernels, 'kernel')} from "
        f"{counted(imported.launches, 'launch')} "
        f"({'one row for each' if each else 'means'}) on {imported.table.text['device'][0]} at "
        f"{imported.config}; Table II: {statuses.count('exact')} exact, "
        f"{statuses.count('nearest')} nearest, {statuses.count('missing')} missing"
    )


def _mapping(imported: "ImportedTable") -> str:
    """Return each feature of Table II: its status, its value in the first row, and its formula."""
    rows = []
    for name, feature in imported.features.items():
        value = float(imported.table.numbers.get(name, [math.nan])[0])
        formula = feature.formula + (f"  ({feature.note})" if feature.note else "")
        shown = "-" if feature.value is None or math.isnan(value) else number(value)
        rows.append([name, feature.status, shown, formula])
    return columns(["feature", "status", "first row", "formula"], rows)
