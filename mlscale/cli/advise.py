"""mlscale advise: the configuration to set for a run, and for each of its kernels."""

import argparse
from dataclasses import replace

from mlscale.advice.advise import advise
from mlscale.advice.document import kernel_document, run_document
from mlscale.advice.recommendation import Advice
from mlscale.cli import further_runs, goal, levers, options, outputs, subject
from mlscale.cli.advice_table import advice_table
from mlscale.cli.levers import Levers
from mlscale.cli.second_run import SecondRun, second_run
from mlscale.cli.shown_warnings import kept_warnings, print_warnings
from mlscale.cli.text import csv_text, json_text, print_or_write
from mlscale.errors import extra_named
from mlscale.model import Model

FORMATS = ("table", "csv", "json")
_EXAMPLES = """\
examples, of an export of ncu, two logs of nvidia-smi, a training step, two traces:
  mlscale advise ncu.csv --max-slowdown 5
  mlscale advise fast.csv --also slow.csv --commands
  mlscale advise ncu.csv trace.json.gz --power power.csv
  mlscale advise fast.sqlite --base engine=1980,memory=2619 --also slow.sqlite@engine=1335
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    subject.add_arguments(parser)
    subject.add_weights(parser)
    goal.add_arguments(parser)
    further_runs.add_also(parser)
    outputs.add_output_of_format(parser, FORMATS)
    options.add_fleet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Advise and print or write. Raises InputError."""
    if options.is_of_fleet(arguments):
        with extra_named("a fleet", "study"):
            from mlscale.cli import fleet
        fleet.advise(arguments)
        return
    form = outputs.format_of_output(arguments, FORMATS)
    limits = goal.read_limits(arguments)
    with kept_warnings() as told:
        of = subject.read(arguments, also=arguments.also)
    model, profiles, notes = of.model, of.profiles, (*(told if form == "json" else ()), *of.notes)
    advice = advise(model, profiles, arguments.minimize, limits, arguments.static_power)
    advice = replace(advice, warnings=(*notes, *advice.warnings))
    asked = levers.read(arguments, model, profiles, advice)
    further = second_run(arguments, of.files[0], profiles) if advice.is_bounded else None
    text = _advice_text(model, advice, form, asked, further)
    print_or_write(text, arguments.output)


def _advice_text(
    model: Model, advice: Advice, form: str, asked: Levers, further: SecondRun | None
) -> str:
    """Return the advice as a table, CSV or JSON; what CSV has no place for goes to stderr.

    further: the run that it asks for, if any.
    """
    if form == "json":
        kernels = [kernel_document(kernel) for kernel in advice.kernels]
        document = {**run_document(model, advice), "kernels": kernels, **asked.document(advice)}
        return json_text(document | ({"second_run": further.document()} if further else {}))
    if form == "table":
        clocks = "" if asked.is_cap else advice_table(advice, model.device, model.base)
        parts = [clocks, asked.text(advice), further.text() if further else ""]
        return "\n".join(filter(None, parts))
    of_caps = asked.caps.warnings if asked.caps else ()
    of_further = [further.warning()] if further else []
    print_warnings([*advice.warnings, *of_caps, *of_further])
    if asked.is_cap and asked.caps:
        return csv_text([p.row() | {"flags": "; ".join(p.flags)} for p in asked.caps.points])
    return csv_text(advice.rows())
