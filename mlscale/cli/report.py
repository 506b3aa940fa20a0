"""mlscale report: one HTML page on what a model predicts of profiled kernels."""

import argparse

from mlscale.cli import options, outputs, subject
from mlscale.cli.text import kept_warnings
from mlscale.files import write_text
from mlscale.report.kernel_report import MOST_KERNELS, largest_kernels

_EXAMPLES = """\
examples:
  mlscale report export.csv -o report.html
  mlscale report simulated-gcn3.mlscale simulated-gcn3-profile.csv -o report.html
  mlscale report gtx980.mlscale profile.csv --kernel gemm --kernel scan -o report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "Write one HTML file, which needs nothing else, on what a model predicts of profiled "
        "kernels:\nsurfaces, curves, the Pareto front of time and energy, the best configurations, "
        "and what the\npredictions rest on. It has no scripts and loads nothing from anywhere."
    )
    parser.epilog = _EXAMPLES
    subject.add_arguments(parser)
    subject.add_weights(parser)
    parser.add_argument(
        "--kernel",
        action="append",
        metavar="NAME",
        help="a kernel to show in full; may be given again (default: the "
        f"{MOST_KERNELS} that most of the run's time goes to)",
    )
    parser.add_argument(
        "--date", metavar="TEXT", help="a date to print on the page (default: none)"
    )
    options.add_arguments(parser)
    subject.add_also(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HTML file to write")


def run(arguments: argparse.Namespace) -> None:
    """Write the report. Raises InputError."""
    from mlscale.report.page import Source, page

    output = outputs.output_file(arguments.output)
    limits = options.read_limits(arguments)
    with kept_warnings() as told:
        of = subject.read(arguments, also=arguments.also)
    model, profiles = of.model, of.profiles
    if arguments.kernel is None:
        shown = largest_kernels(profiles)
    else:
        shown = options.positions(arguments.kernel, profiles.kernels, "the profile")
    source = Source(
        model_file=of.model_name,
        profile_file=of.profile_name,
        command=options.command_line(arguments.words),
        date=arguments.date,
        static_power_w=arguments.static_power,
        notes=(*told, *of.notes),
        power_caps_w=options.caps_asked(arguments),
        objective=arguments.minimize,
        limits=limits,
        has_commands=arguments.commands,
        is_cap=arguments.lever == "cap",
    )
    write_text(output, page(model, profiles, shown, source))
    print(f"{output}: {len(shown)} of {len(profiles.kernels)} kernels")
