"""mlscale advise: the configuration to set for a run, and for each of its kernels."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise

from mlscale import subject
from mlscale.advice.answer import PlainAnswer, RunGoal, answer_on_run
from mlscale.cli import advise_text, options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import (
    columns_wide,
    csv_text,
    held_warnings,
    json_text,
    print_or_write,
    shows_colours,
    tell,
)
from mlscale.data.grid import SHORT_NAMES
from mlscale.data.profiles import Profiles
from mlscale.errors import UsageError, extra_named
from mlscale.notes import Note
from mlscale.readers.source import Source, further
from mlscale.text import shell_line

FORMATS = ("table", "csv", "json")
_NOT_OF_SERVERS = ("model", "max_slowdown", "max_time", "max_power", "static_power", "weights",
                   "power", "time", "power_cap", "rate", "kernel")  # fmt: skip

# What the user alone knows of the further run: by the option a word that stands for it.
_KNOWN_TO_USER = {
    "time": ("MS", "the time of that run, in ms"),
    "power": ("W", "the board's power in that run, or a log"),
}

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
    add_server(parser)
    parser.set_defaults(rest=[])  # words that are left: logs of --also RESULT LOG
    what = "work per second of each run, such as tokens, instead of its time, e.g. 2400:2250"
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
    if arguments.kernel is not None and form != "table":
        raise UsageError("--kernel is for the terminal; csv and json have all kernels")
    give(answered(arguments), arguments, form)


def answered(arguments: argparse.Namespace) -> PlainAnswer:
    """The answer that is asked for. Raises InputError."""
    if is_of_server(arguments):
        return _served(arguments)
    with held_warnings() as told:  # by files that are read to find out what they are
        found = _capped if _is_of_caps(arguments) else _advised
    return found(arguments, options.goal(arguments), told)


def _is_of_caps(arguments: argparse.Namespace) -> bool:
    """Whether the files are readings of one run under caps. Raises InputError."""
    if not arguments.also and options.caps_asked(arguments) is None:
        return False
    return subject.is_of_caps(options.asked_run(arguments), arguments.lever)


def give(found: PlainAnswer, arguments: argparse.Namespace, form: str) -> None:
    """Print or write an answer in that form, then notes on stderr. Raises NotMetError at last."""
    if form == "json":
        from mlscale.advice.document import document

        text = json_text(document(found))
    elif form == "csv":
        text = csv_text(advise_text.rows(found, arguments.all))
    else:
        has_colours = arguments.output is None and shows_colours(arguments.color)
        layout = advise_text.Layout(columns_wide(), has_colours, arguments.all, arguments.kernel)
        text = advise_text.text(found, layout)
    if form == "table" and arguments.output is None:
        sys.stdout.write(text)  # fit for a terminal, and in its colours
    else:
        print_or_write(text, arguments.output)
    if form != "json":
        tell(found.notes, arguments.notes or form == "csv")
    advise_text.require(found.sure, arguments.require)


def _advised(arguments: argparse.Namespace, goal: RunGoal, before: Sequence[Note]) -> PlainAnswer:
    """The advice on a run; before: what was told already. Raises InputError."""
    with held_warnings(before) as told:
        asked = options.asked_run(arguments, arguments.weights)
        asked = subject.with_rates(asked, arguments.rate) if arguments.rate else asked
        found = subject.read(asked)
        if arguments.rate:
            told.append(subject.rate_note())
        answer = answer_on_run(found, goal, arguments.commands).with_notes(told)
    step = answer.next_step
    if step is None or step.engine_mhz is None:
        return answer
    again = _further_commands(step.engine_mhz, arguments, found.files, found.profiles)
    return replace(answer, next_step=replace(step, commands=again))


def _further_commands(
    engine_mhz: int, arguments: argparse.Namespace, files: Sequence[Source], profiles: Profiles
) -> tuple[str, ...]:
    """What sets that clock for the same work again, resets it, and advises with both runs.

    files: of the first run.
    """
    from mlscale.advice.commands import commands_for_further_run

    commands, first = commands_for_further_run(profiles, engine_mhz), files[0]
    stem, dot, ending = first.path.name.partition(".")
    file = f"{stem}-{engine_mhz}{dot}{ending}"
    is_table = first.is_table(arguments.map)
    is_of_monitor = not is_table and first.is_log
    has_clock = is_table or (is_of_monitor and first.tells_engine_clock)
    also = file if has_clock else f"{file}@engine={engine_mhz}"
    imported: list[str] = []
    lacking = [name for name in _KNOWN_TO_USER if getattr(arguments, name) is not None]
    if is_of_monitor and lacking:
        also = f"{stem}-{engine_mhz}-table.csv"
        given = _import_options(arguments, None if has_clock else engine_mhz)
        name = ["--application", profiles.applications[0]]
        stands = [word for one in lacking for word in (f"--{one}", _KNOWN_TO_USER[one][0])]
        imported = ["# replace {} with {}".format(*_KNOWN_TO_USER[one]) for one in lacking]
        words = ["mlscale", "import", file, *given, *name, *stands, "-o", also]
        imported.append(shell_line(words))
    how = "" if commands.set else "locked or by a low power cap, "
    return (
        *commands.set,
        *(f"# {note}" for note in commands.notes),
        f"# run the same work again, {how}recorded as before, into {file}",
        *commands.reset,
        *imported,
        shell_line(["mlscale", *arguments.words, "--also", also]),
    )


def _import_options(arguments: argparse.Namespace, engine_mhz: int | None) -> list[str]:
    """What the further log does not say either, as options of `import`; engine_mhz: if it must."""
    base = {axis: step for axis, step in (arguments.base or {}).items() if axis != "engine_mhz"}
    base |= {} if engine_mhz is None else {"engine_mhz": engine_mhz}
    told = {
        "--device": _as_given(arguments.words, "--device") or arguments.device,
        "--base": ",".join(f"{SHORT_NAMES[axis]}={step:.15g}" for axis, step in base.items()),
        "--gpu": arguments.gpu,
        "--interval": arguments.interval and f"{arguments.interval:.15g}",
    }
    return [word for option, value in told.items() if value for word in (option, value)]


def _as_given(words: Sequence[str], option: str) -> str | None:
    """The value of an option on the command line, such as a device's file; None where not whole."""
    for word, after in pairwise([*words, ""]):
        name, has_value, value = word.partition("=")
        if name == option:
            return value if has_value else after
    return None


def _capped(arguments: argparse.Namespace, goal: RunGoal, before: Sequence[Note]) -> PlainAnswer:
    """The best cap of runs under caps, whose clock no file tells. Raises InputError."""
    from mlscale.advice.capped_runs import answer_on_caps

    with held_warnings(before) as told:
        asked = options.asked_run(arguments, arguments.weights)
        found, notes = answer_on_caps(asked, goal, arguments.rate or (), arguments.commands)
    return found.with_notes([*told, *notes])


# A server.


def add_server(parser: Parser) -> None:
    """Add the options of a server."""
    what = "limits of an LLM server's latencies, e.g. ttft=500ms@p90,tpot=1.1x@p90"
    parser.add("--slo", metavar="LIMITS", help=what)
    what = "a server's results with --request-rate inf at the highest and the lowest clock"
    parser.add_more("--capacity", type=options.names, metavar="FILE,FILE", help=what)
    what = "prefill or decode, if the server does only one of the two"
    parser.add_more("--pool", choices=("prefill", "decode"), metavar="POOL", help=what)


def is_of_server(arguments: argparse.Namespace) -> bool:
    """Whether the files are of a server. Raises UsageError on its options with others."""
    first: Source = arguments.file[0]
    if first.is_benchmark:
        return True
    for name in ("slo", "pool", "capacity"):
        if getattr(arguments, name, None):
            what = "needs a benchmark's result first, such as one of vllm bench serve --save-result"
            raise UsageError(f"--{name} {what}; {first.path} is not one")
    if arguments.rest:
        words = " ".join(arguments.rest)
        if any(one.is_benchmark for one in (*arguments.file, *arguments.also)):
            told = f"give RESULT LOG --also RESULT LOG, but {first.path} is not a RESULT"
        else:
            told = f"give each further run its own option: --also {arguments.rest[0]}"
        raise UsageError(f"unrecognized arguments: {words}; {told}")
    return False


def _served(arguments: argparse.Namespace) -> PlainAnswer:
    """The answer on a server. Raises InputError."""
    from mlscale.advice.server_answer import answer_on_server

    for name in _NOT_OF_SERVERS:
        if getattr(arguments, name, None) not in (None, False, []):
            raise UsageError(f"--{name.replace('_', '-')} does not work for a server; use --slo")
    if arguments.minimize not in (None, "energy"):
        raise UsageError("advice on a server is for most tokens per joule; omit --minimize")
    if arguments.lever == "cap" and arguments.capacity:
        raise UsageError("with a power cap omit the capacity, which is only for runs at a rate")
    if (len(arguments.file), len(arguments.rest)) != (2, len(arguments.also)):
        raise UsageError("give each result its log: RESULT LOG --also RESULT LOG")
    result, log = arguments.file
    logs = [log, *map(further, arguments.rest)]
    files = list(chain(*zip([result, *arguments.also], logs, strict=True)))
    results = [*map(Source, arguments.capacity or ())]
    given, slo, pool = options.given(arguments), arguments.slo or "", arguments.pool
    with held_warnings() as told:
        commands, lever = arguments.commands, arguments.lever
        answer = answer_on_server(files, given, slo, pool, results, commands, lever)
    return answer.with_notes(told)
