"""mlscale import kernel-tuner: caches of kernel_tuner and T4 files to a training table."""

import argparse
from pathlib import Path
from typing import Any

from mlscale.cli import options, values
from mlscale.text import counted

FORMAT = "kernel-tuner"


def add_parser(formats: Any) -> None:
    """Add the sub-command."""
    parser = formats.add_parser(
        FORMAT,
        help="caches of kernel_tuner and T4 files with tuned clocks",
        description="Import caches of kernel_tuner or T4 files: each configuration of the tuned "
        "parameters is a kernel, each file an application, and the tuned clocks are the grid.",
    )
    parser.add_argument("file", nargs="+", metavar="CACHE", help="a cache or a T4 file, of one GPU")
    parser.add_argument(
        "--device",
        type=values.device_key,
        metavar="DEVICE",
        help="the GPU it was measured on, where the files do not say it (a T4 file does not)",
    )
    parser.add_argument(
        "--base",
        type=values.settings,
        metavar="CONFIG",
        help="what the GPU was set to, as far as it was not tuned: cu=48,memory=7001",
    )
    options.add_output_table(parser)


def run(arguments: argparse.Namespace, output: Path) -> str:
    """Import; what there is to say of it. Raises InputError."""
    from mlscale.data.tables import write_table
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
        f"{len(table)} rows, {power} power; left out: {imported.failed} configurations that "
        f"failed, {imported.off_clock} that ran more than 2 % off their clock"
    )
