"""mlscale advise: the configuration to set for a run, and for each of its kernels."""

import argparse
import sys
from typing import TYPE_CHECKING

from mlscale import subject
from mlscale.advice.advise import advise
from mlscale.advice.document import NextStep, capped_document, document
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Row, Setting
from mlscale.cli import answer, capped, options, outputs, server
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import columns_wide, shows_colours
from mlscale.cli.text import csv_text, held_warnings, json_text, print_or_write
from mlscale.errors import extra_named

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice
    from mlscale.advice.commands import Commands

FORMATS = ("table", "csv", "json")

_EXAMPLES = """\
examples, of a profile of ncu, two logs of nvidia-smi, a training step, a server:
  mlscale advise ncu.csv --max-slowdown 5
  mlscale advise fast.csv --also slow.csv --commands
  mlscale advise ncu.csv trace.json.gz --power power.csv
  mlscale advise vllm-1980.json 1980.csv --also vllm-1320.json 1320.csv --slo ttft=1s@p90
"""


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    options.add_goal(parser)
    options.add_answer(parser)
    options.add_subject(parser)
    server.add_arguments(parser)
    parser.set_defaults(takes_rest=True)
    what = "work per second in each log, such as tokens, in place of its time, e.g. 2400:2250"
    parser.add_more("--rate", metavar="N:N", type=options.rates, help=what)
    outputs.add_output_of_format(parser, FORMATS)
    options.add_fleet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Advise and print or write. Raises InputError, and NotMetError after that."""
    if options.is_of_fleet(arguments):
        with extra_named("a fleet", "study"):
            from mlscale.cli import fleet
        fleet.advise(arguments)
        return
    form = outputs.format_of_output(arguments, FORMATS)
    if server.is_asked(arguments):
        give(server.advised(arguments), arguments, form)
        return
    limits = options.read_limits(arguments)
    found = _capped if capped.is_asked(arguments) else _advised
    give(found(arguments, limits), arguments, form)


def give(found: Row, arguments: argparse.Namespace, form: str) -> None:
    """Print or write an answer in that form, its notes on stderr. Raises NotMetError after that."""
    if form == "json":
        text = json_text(found)
    elif form == "csv":
        text = csv_text(answer.rows(found, arguments.all))
    else:
        text = answer.text(found, _layout(arguments))
    if form != "json":
        answer.tell_notes(found, arguments.notes)
    if form == "table" and arguments.output is None:
        sys.stdout.write(text)  # fit for a terminal, and in its colours
    else:
        print_or_write(text, arguments.output)
    answer.require(found, arguments.require)


def _layout(arguments: argparse.Namespace) -> answer.Layout:
    has_colours = arguments.output is None and shows_colours(arguments.color)
    return answer.Layout(columns_wide(), has_colours, arguments.all, arguments.kernel)


def _advised(arguments: argparse.Namespace, limits: Limits) -> Row:
    """The document of the advice on a run. Raises InputError."""
    with held_warnings() as told:
        asked = options.asked_run(arguments, arguments.weights)
        if arguments.rate:
            asked = subject.with_rates(asked, arguments.rate)
            told.append(subject.rate_note())
        read = subject.read(asked)
        if arguments.lever == "cap":
            from mlscale.advice.caps import require_other_clock

            require_other_clock(read.profiles)
        advice = advise(
            read.model, read.profiles, arguments.minimize, limits, arguments.static_power
        )
        caps = _caps(arguments, read, advice)
    return document(
        advice,
        read.model_name.removesuffix(".mlscale"),
        caps,
        arguments.lever,
        [*told, *read.notes],
        _commands(arguments, read, advice, caps),
        _next_step(arguments, read, advice, caps),
    )


def _capped(arguments: argparse.Namespace, limits: Limits) -> Row:
    """The document of runs under caps, whose clock no file tells. Raises InputError."""
    from mlscale.advice.capped_runs import advise_capped
    from mlscale.advice.commands import commands_for_cap

    with held_warnings() as told:
        run = capped.read(arguments)
        cap_w = options.caps_asked(arguments) or ()
        caps = advise_capped(run.readings, run.device, cap_w, arguments.minimize, limits)
    commands = commands_for_cap(caps, {}) if arguments.commands else None
    return capped_document(caps, told, commands)


def _caps(
    arguments: argparse.Namespace, read: subject.Subject, advice: Advice
) -> "CapAdvice | None":
    """The run under power caps, where they are asked for. Raises InputError."""
    cap_w, objective = options.caps_asked(arguments), arguments.minimize
    if cap_w is None:
        return None
    from mlscale.advice.caps import advise_caps

    if objective == "clock" and arguments.lever != "cap":  # says nothing of caps
        objective = None
    return advise_caps(
        read.model,
        read.profiles,
        cap_w,
        objective,
        options.read_limits(arguments),
        advice.static_power_w,
        advice.surfaces,
    )


def _commands(
    arguments: argparse.Namespace,
    read: subject.Subject,
    advice: Advice,
    caps: "CapAdvice | None",
) -> "Commands | None":
    """What sets the answer, where it is asked for."""
    if not arguments.commands:
        return None
    from mlscale.advice.commands import commands_for_cap, commands_for_clocks

    if caps and arguments.lever == "cap":
        return commands_for_cap(caps, read.profiles.metadata)
    return commands_for_clocks(advice, read.profiles.metadata)


def _next_step(
    arguments: argparse.Namespace,
    read: subject.Subject,
    advice: Advice,
    caps: "CapAdvice | None",
) -> NextStep | None:
    """What would make the answer surer, or tell energy too."""
    from mlscale.cli.further_run import next_step

    best: Setting | None = advice.whole_run.best
    if arguments.lever == "cap":
        best = caps.best.run if caps and caps.best else None

    return next_step(arguments, read.files, read.model, read.profiles, advice, best)
