"""mlscale report: one HTML page on what a model predicts of profiled kernels."""

import argparse
from collections.abc import Sequence

from mlscale import subject
from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.text import held_warnings, print_warnings
from mlscale.errors import InputError
from mlscale.files import write_text
from mlscale.report.kernel_report import MOST_KERNELS, largest_kernels
from mlscale.text import did_you_mean

_EXAMPLES = """\
examples:
  mlscale report export.csv -o report.html
  mlscale report gtx980.mlscale profile.csv --kernel gemm --kernel scan -o report.html
"""


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add("-o", "--output", required=True, metavar="FILE", help="HTML file to write")
    options.add_goal(parser)
    options.add_subject(parser)
    what = (
        "a kernel to show in full; may be given again (default: the "
        f"{MOST_KERNELS} that most of the run's time goes to)"
    )
    parser.add("--kernel", action="append", metavar="NAME", help=what)
    parser.add_more("--date", metavar="TEXT", help="a date to print on the page")


def run(arguments: argparse.Namespace) -> None:
    """Write the report. Raises InputError."""
    from mlscale.report.page import Source, page

    output = outputs.output_file(arguments.output)
    with held_warnings() as told:
        found = subject.read(options.asked_run(arguments, arguments.weights))
    print_warnings(told)
    profiles = found.profiles
    shown = largest_kernels(profiles)
    if arguments.kernel is not None:
        shown = [_position(name, profiles.kernels) for name in dict.fromkeys(arguments.kernel)]
    source = Source(
        model_file=found.model_name,
        profile_file=found.profile_name,
        command=options.command_line(arguments.words),
        date=arguments.date,
        notes=(*told, *found.notes),
        goal=options.goal(arguments),
        has_commands=arguments.commands,
    )
    write_text(output, page(found.model, profiles, shown, source))
    print(f"{output}: {len(shown)} of {len(profiles.kernels)} kernels")


def _position(kernel: str, kernels: Sequence[str]) -> int:
    """Where a kernel stands in the profile. Raises InputError where it does not."""
    if kernel in kernels:
        return kernels.index(kernel)
    raise InputError(f"the profile has no kernel '{kernel}'{did_you_mean(kernel, kernels)}")
