"""mlscale report: one HTML page to look around in, of a run and the answer for it."""

import argparse

import numpy as np

from mlscale import subject
from mlscale.advice.answer import PlainAnswer
from mlscale.advice.document import Row
from mlscale.cli import advise, options, outputs
from mlscale.cli.parser import Parser
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.data.logs import is_sampled
from mlscale.data.profiles import MeasuredPoint, gpu_count_of
from mlscale.errors import InputError, UsageError
from mlscale.files import write_text
from mlscale.readers.source import Source, further
from mlscale.text import counted

_EXAMPLES = """\
examples:
  mlscale report ncu.csv trace.json.gz --power power.csv -o page.html
  mlscale report before.csv --compare after.csv -o page.html
  mlscale report fast.json fast.csv --also slow.json slow.csv -o page.html
"""


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.set_defaults(commands=True, rate=None, rest=[])
    parser.add("-o", "--output", required=True, metavar="FILE", help="HTML file to write")
    options.add_goal(parser)
    options.add_subject(parser)
    advise.add_server(parser)
    what = "a second run's files, for a second tab, without --also, --power, --time or --weights"
    parser.add("--compare", nargs="+", type=Source, metavar="FILE", help=what)
    what = "the same work measured at the clocks that were set, to compare with the prediction"
    parser.add("--measured", type=further, metavar="FILE[@CONFIG]", help=what)


def run(arguments: argparse.Namespace) -> None:
    """Write the page. Raises InputError."""
    from mlscale.pages.page import page

    if advise.is_of_server(arguments) and (arguments.compare or arguments.measured):
        raise UsageError("--compare and --measured do not work for a server; omit them")
    output = outputs.output_file(arguments.output)
    runs = [advise.answered(arguments)]
    if arguments.compare:
        facts = {"file": arguments.compare, "also": [], "power": None, "time": None}
        second = argparse.Namespace(**{**vars(arguments), **facts, "weights": None})
        runs.append(advise.answered(second))
    measured = _measured(arguments, runs[0]) if arguments.measured else ()
    write_text(output, page(runs, measured))
    told = " and ".join(
        counted(len(one.server.clocks), "clock") if one.server else one.what_ran for one in runs
    )
    print(f"{output}: {told}, {output.stat().st_size / 1000:.0f} kB")


def _measured(arguments: argparse.Namespace, first: PlainAnswer) -> tuple[Row, ...]:
    """What was measured at other settings, and what is predicted there. Raises InputError."""
    from mlscale.pages.measured import against_measured

    file, found = arguments.measured, first.subject
    if first.advice is None or found is None:
        raise InputError(f"--measured {file}: runs under caps have no known clock to compare at")
    is_log = file.is_file and not file.is_table(arguments.map) and file.is_log
    if is_log and not is_sampled(found.profiles.metadata):
        points = [_logged_power(file, found)]
    else:
        asked = options.asked_run(arguments, arguments.weights)
        points = [*subject.measured_again(asked, found.profiles, file)]
    return tuple(against_measured(first.advice, found.profiles, point) for point in points)


def _logged_power(log: Source, found: subject.Subject) -> MeasuredPoint:
    """The mean power in a log of the run that was profiled. Raises InputError."""
    from mlscale.readers.given import Given
    from mlscale.readers.reading import read_table

    profiles, path, at_log = found.profiles, log.path, log.settings
    base = (subject.config_beside(profiles, at_log) if at_log else profiles.base).as_dict()
    if not at_log:
        subject.require_engine_clock(log)
        del base["engine_mhz"]
    given = Given(device=profiles.device, base=base)
    table = read_table([log], given).table
    if len(table) != 1 or gpu_count_of(table) > 1 or "power_w" not in table.numbers:
        raise InputError(f"{path}: does not show one GPU's power to compare with")
    at = {axis: float(table.numbers[axis][0]) for axis in AXES}
    config = HardwareConfig(int(at["cu_count"]), at["engine_mhz"], at["memory_mhz"])
    watts = np.full(len(profiles.kernels), table.numbers["power_w"][0])
    return MeasuredPoint(config, np.full(len(watts), np.nan), watts, path.name)
