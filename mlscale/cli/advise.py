"""mlscale advise: the configuration to set for a run, and for each of its kernels."""

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlscale import subject
from mlscale.advice.answer import RunGoal, advised, document_of_run, next_step
from mlscale.advice.document import capped_document
from mlscale.advice.recommendation import Advice, Row
from mlscale.cli import answer, options, outputs, server
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import columns_wide, shows_colours
from mlscale.cli.text import csv_text, held_warnings, json_text, print_or_write, tell
from mlscale.data.datasets import input_file
from mlscale.errors import UsageError, extra_named

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice

FORMATS = ("table", "csv", "json")

_EXAMPLES = """\
examples, of a profile of ncu, two logs of nvidia-smi, a training step, a server:
  mlscale advise ncu.csv --max-slowdown 5
  mlscale advise fast.csv --also slow.csv --commands
  mlscale advise ncu.csv trace.json.gz --power power.csv
  mlscale advise fast.json fast.csv --also slow.json slow.csv --slo ttft=1s@p90
"""


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    options.add_goal(parser)
    options.add_answer(parser)
    outputs.add_notes(parser)
    outputs.add_colours(parser)
    options.add_subject(parser)
    server.add_arguments(parser)
    parser.set_defaults(rest=[])  # words that are left: logs of --also RESULT LOG
    what = "work per second of each log, such as tokens, instead of its time, e.g. 2400:2250"
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
    is_of_server = server.is_asked(arguments)
    if is_of_server and (arguments.output or "").endswith(".html"):
        raise UsageError(server.NO_PAGE)
    form = outputs.format_of_output(arguments, FORMATS)
    if arguments.kernel is not None and form != "table":
        raise UsageError("--kernel is for the terminal; csv and json have all kernels")
    if is_of_server:
        give(server.advised(arguments), arguments, form)
        return
    give(answered(arguments).document, arguments, form)


@dataclass(frozen=True)
class Answered:
    """An answer's document, what it rests on, None of runs under caps, and the run's files."""

    document: Row
    files: tuple[Path, ...]
    advice: Advice | None = None
    read: subject.Subject | None = None
    caps: "CapAdvice | None" = None


def answered(arguments: argparse.Namespace) -> Answered:
    """The answer that is asked for. Raises InputError."""
    found = _capped if _is_of_caps(arguments) else _advised
    return found(arguments, options.goal(arguments))


def _is_of_caps(arguments: argparse.Namespace) -> bool:
    """Whether the files are readings of one run under caps. Raises InputError."""
    if not arguments.also and options.caps_asked(arguments) is None:
        return False
    from mlscale.cli import capped

    return capped.is_asked(arguments)


def give(found: Row, arguments: argparse.Namespace, form: str) -> None:
    """Print or write an answer in that form, then notes on stderr. Raises NotMetError at last."""
    if form == "json":
        text = json_text(found)
    elif form == "csv":
        text = csv_text(answer.rows(found, arguments.all))
    else:
        has_colours = arguments.output is None and shows_colours(arguments.color)
        layout = answer.Layout(columns_wide(), has_colours, arguments.all, arguments.kernel)
        text = answer.text(found, layout)
    if form == "table" and arguments.output is None:
        sys.stdout.write(text)  # fit for a terminal, and in its colours
    else:
        print_or_write(text, arguments.output)
    if form != "json":
        tell(found["notes"], arguments.notes)
    answer.require(found, arguments.require)


def _advised(arguments: argparse.Namespace, goal: RunGoal) -> Answered:
    """The advice on a run. Raises InputError."""
    with held_warnings() as told:
        asked = options.asked_run(arguments, arguments.weights)
        asked = subject.with_rates(asked, arguments.rate) if arguments.rate else asked
        found = subject.read(asked)
        if arguments.rate:
            told.append(subject.rate_note(found.profiles))
        advice, caps = advised(found.model, found.profiles, goal)
    step = next_step(found, goal, advice, caps)
    if step and step.engine_mhz:
        from mlscale.cli.further_run import commands_at

        again = commands_at(step.engine_mhz, arguments, found.files, found.profiles)
        step = replace(step, commands=again)
    row = document_of_run(found, goal, advice, caps, told, step, arguments.commands)
    return Answered(row, found.files, advice, found, caps)


def _capped(arguments: argparse.Namespace, goal: RunGoal) -> Answered:
    """The best cap of runs under caps, whose clock no file tells. Raises InputError."""
    from mlscale.advice.capped_runs import advise_capped
    from mlscale.advice.commands import commands_for_cap
    from mlscale.cli import capped
    from mlscale.data.supply import limiter_notes

    with held_warnings() as told:
        run = capped.read(arguments)
        caps_w = goal.caps_w or ()
        caps = advise_capped(run.readings, run.device, caps_w, goal.objective, goal.limits)
    notes = [*told, *limiter_notes(run.metadata, caps.runs.supply.cap_w)]
    commands = commands_for_cap(caps, run.metadata) if arguments.commands else None
    files = tuple(map(input_file, [*arguments.file, *arguments.also]))
    return Answered(capped_document(caps, notes, commands), files, caps=caps)
