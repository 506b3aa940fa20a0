"""mlscale import: from somebody else's file to a tidy table."""

import argparse
from pathlib import Path

from mlscale.cli import import_exports, options
from mlscale.data.devices import device_keys
from mlscale.errors import InputError
from mlscale.profilers.layouts import TOOLS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "format",
        choices=("dvfs", "auto", *TOOLS),
        metavar="FORMAT",
        help="dvfs: the measurement files of NV-DVFS-Benchmark; "
        f"{', '.join(TOOLS)}: that profiler's CSV export; auto: a profiler known by the file",
    )
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="the file to import; dvfs: also a name of 'datasets list'; of a profiler also further "
        "passes of the same run and its trace",
    )
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help=f"the GPU it was measured on: {', '.join(device_keys())}, or for a profiler's export "
        "any other name (default: what the file says)",
    )
    parser.add_argument(
        "--incomplete",
        choices=("error", "drop"),
        default="error",
        help="dvfs: what to do with a kernel that lacks configurations (default: %(default)s)",
    )
    import_exports.add_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="TABLE",
        help="tidy table to write; Parquet if it ends in .parquet, else CSV",
    )


def run(arguments: argparse.Namespace) -> None:
    """Import the files. Raises InputError."""
    output = options.output_file(arguments.output)
    if arguments.format == "dvfs":
        _import_dvfs(arguments, output)
    else:
        import_exports.run(arguments, output)


def _import_dvfs(arguments: argparse.Namespace, output: Path) -> None:
    from mlscale.data.public import fetching
    from mlscale.data.public.nv_dvfs import read_nv_dvfs

    if len(arguments.file) > 1:
        raise InputError("dvfs takes one file")
    if arguments.device not in (None, *device_keys()):
        raise InputError(
            f"argument --device: invalid choice: '{arguments.device}' "
            f"(choose from {', '.join(device_keys())}); see 'mlscale import --help'"
        )
    for name, given in import_exports.given_options(arguments).items():
        if given:
            raise InputError(f"{name} is for profilers' exports, not for dvfs")
    file = fetching.named_file(arguments.file[0])
    measurements = read_nv_dvfs(file, arguments.device, arguments.incomplete)
    measurements.write(output)
    c, e, m = measurements.grid.shape
    power = "with" if measurements.power_samples is not None else "without"
    print(
        f"{output}: {len(measurements.kernels)} kernels of "
        f"{len(set(measurements.applications))} applications on {measurements.device}, "
        f"{c} CU counts x {e} engine clocks x {m} memory clocks, "
        f"{len(measurements.counter_names)} counters, {power} power"
    )
