"""mlscale report: one HTML page to look around in, of a run and the answer for it."""

import argparse
from pathlib import Path

import numpy as np

from mlscale import subject
from mlscale.advice.recommendation import Row
from mlscale.cli import advise, options, outputs, server
from mlscale.cli.parser import Parser
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.data.logs import is_sampled
from mlscale.data.profiles import MeasuredPoint, gpu_count_of
from mlscale.data.table_files import is_tidy
from mlscale.errors import InputError, UsageError
from mlscale.files import write_text
from mlscale.text import counted

_EXAMPLES = """\
examples:
  mlscale report ncu.csv trace.json.gz --power power.csv -o page.html
  mlscale report before.csv --compare after.csv -o page.html
  mlscale report fast.csv --measured slow.csv -o page.html
"""


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.set_defaults(commands=True, rate=None, rest=[])
    parser.add("-o", "--output", required=True, metavar="FILE", help="HTML file to write")
    options.add_goal(parser)
    options.add_subject(parser)
    what = "a second run's files, for a second tab; --also, --power, --time and --weights are not"
    parser.add("--compare", nargs="+", metavar="FILE", help=f"{what} for it")
    what = "the same work measured at the clocks that were set, to compare with the prediction"
    parser.add("--measured", metavar="FILE[@CONFIG]", help=what)


def run(arguments: argparse.Namespace) -> None:
    """Write the page. Raises InputError."""
    from mlscale.report.page import Shown, page

    if server.is_asked(arguments):
        raise UsageError(server.NO_PAGE)
    output = outputs.output_file(arguments.output)
    runs = [advise.answered(arguments)]
    if arguments.compare:
        facts = {"file": arguments.compare, "also": [], "power": None, "time": None}
        second = argparse.Namespace(**{**vars(arguments), **facts, "weights": None})
        runs.append(advise.answered(second))
    measured = _measured(arguments, runs[0]) if arguments.measured else ()
    shown = [
        Shown(
            *(one.document, ", ".join(_names(one)), one.advice, one.read),
            *(() if i else measured, one.caps),
        )
        for i, one in enumerate(runs)
    ]
    write_text(output, page(shown))
    kernels = " and ".join(counted(one.document["run"]["kernels"], "kernel") for one in runs)
    print(f"{output}: {kernels}, {output.stat().st_size / 1000:.0f} kB")


def _names(one: advise.Answered) -> list[str]:
    """The files of a run, without their folders."""
    return [Path(name).name for name in one.files]


def _measured(arguments: argparse.Namespace, first: advise.Answered) -> tuple[Row, ...]:
    """What was measured at other settings, and what is predicted there. Raises InputError."""
    from mlscale.report.measured import against_measured

    text, found = arguments.measured, first.read
    if first.advice is None or found is None:
        raise InputError(f"--measured {text}: runs under caps have no known clock to compare at")
    path, settings = subject.file_and_settings(text)
    is_log = path.is_file() and not is_tidy(path, arguments.map) and subject.is_log(path)
    if is_log and not is_sampled(found.profiles.metadata):
        points = [_logged_power(path, settings, found)]
    else:
        asked = options.asked_run(arguments, arguments.weights)
        points = [*subject.measured_again(asked, found.profiles, text)]
    return tuple(against_measured(first.advice, found.profiles, point) for point in points)


def _logged_power(path: Path, settings: str, found: subject.Subject) -> MeasuredPoint:
    """The mean power in a log of the run that was profiled; settings: see `file_and_settings`.

    Raises InputError.
    """
    from mlscale.readers.given import Given
    from mlscale.readers.reading import read_table

    profiles = found.profiles
    base = (subject.config_beside(profiles, settings) if settings else profiles.base).as_dict()
    if not settings:
        subject.require_engine_clock(path)
        del base["engine_mhz"]
    given = Given(device=profiles.device, base=base)
    table = read_table([path], given).table
    if len(table) != 1 or gpu_count_of(table) > 1 or "power_w" not in table.numbers:
        raise InputError(f"{path}: does not show one GPU's power to compare with")
    at = {axis: float(table.numbers[axis][0]) for axis in AXES}
    config = HardwareConfig(int(at["cu_count"]), at["engine_mhz"], at["memory_mhz"])
    watts = np.full(len(profiles.kernels), table.numbers["power_w"][0])
    return MeasuredPoint(config, np.full(len(watts), np.nan), watts, path.name)
