"""mlscale import: from somebody else's file to a tidy table."""

import argparse
from pathlib import Path

from mlscale.cli import options
from mlscale.counters.devices import device_keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "format",
        choices=("dvfs",),
        metavar="FORMAT",
        help="dvfs: the measurement files of NV-DVFS-Benchmark",
    )
    parser.add_argument("file", metavar="FILE", help="the file to import")
    parser.add_argument(
        "--device",
        choices=device_keys(),
        metavar="DEVICE",
        help=f"the GPU it was measured on: {', '.join(device_keys())} "
        "(default: that of a public file, known by its checksum)",
    )
    parser.add_argument(
        "--incomplete",
        choices=("error", "drop"),
        default="error",
        help="what to do with a kernel that lacks configurations (default: %(default)s)",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="TABLE",
        help="tidy table to write; Parquet if it ends in .parquet, else CSV",
    )


def run(arguments: argparse.Namespace) -> None:
    """Import one file. Raises InputError."""
    from mlscale.datasets.nv_dvfs import read_nv_dvfs

    output = options.output_file(arguments.output)
    measurements = read_nv_dvfs(Path(arguments.file), arguments.device, arguments.incomplete)
    measurements.write(output)
    c, e, m = measurements.grid.shape
    power = "with" if measurements.power_samples is not None else "without"
    print(
        f"{output}: {len(measurements.kernels)} kernels of "
        f"{len(set(measurements.applications))} applications on {measurements.device}, "
        f"{c} CU counts x {e} engine clocks x {m} memory clocks, "
        f"{len(measurements.counter_names)} counters, {power} power"
    )
