"""Advice on an LLM server's clock: what --slo, --pool and --capacity ask for."""

import argparse
from pathlib import Path

from mlscale.advice.recommendation import Row
from mlscale.cli import options
from mlscale.cli.parser import Parser
from mlscale.cli.text import held_warnings
from mlscale.data.datasets import input_file
from mlscale.errors import UsageError
from mlscale.readers.files import is_benchmark

NO_PAGE = "a server's answer has no page; 'mlscale advise' prints it, or writes *.csv or *.json"
_NO_USE = ("model", "max_slowdown", "max_time", "max_power", "static_power", "weights", "power",
           "time", "power_cap", "rate", "kernel")  # fmt: skip


def add_arguments(parser: Parser) -> None:
    """Add the options of a server."""
    what = "limits of an LLM server's latencies, e.g. ttft=500ms@p90,tpot=1.1x@p90"
    parser.add("--slo", metavar="LIMITS", help=what)
    what = "a server's results with --request-rate inf at the highest and the lowest clock"
    parser.add_more("--capacity", type=options.names, metavar="FILE,FILE", help=what)
    what = "what the server does, if only one of the two: prefill or decode"
    parser.add_more("--pool", choices=("prefill", "decode"), metavar="POOL", help=what)


def is_asked(arguments: argparse.Namespace) -> bool:
    """Whether the files are of a server. Raises UsageError on its options with others."""
    path = input_file(arguments.file[0])
    if is_benchmark(path):
        return True
    for name in ("slo", "pool", "capacity"):
        if getattr(arguments, name, None):
            what = "needs a benchmark's result first, such as one of vllm bench serve --save-result"
            raise UsageError(f"--{name} {what}; {path} is none")
    if arguments.rest:
        told = f"; for a server give RESULT LOG --also RESULT LOG, but {path} is no RESULT"
        raise UsageError(f"unrecognized arguments: {' '.join(arguments.rest)}{told}")
    return False


def advised(arguments: argparse.Namespace) -> Row:
    """The document of the advice on a server. Raises InputError."""
    from mlscale.advice.server_answer import server_answer

    for name in _NO_USE:
        if getattr(arguments, name) not in (None, False, []):
            raise UsageError(f"--{name.replace('_', '-')} does not work for a server; use --slo")
    if arguments.minimize not in (None, "energy") or arguments.lever != "clock":
        raise UsageError("for a server, only the clock with most tokens per joule can be advised")
    if (len(arguments.file), len(arguments.rest)) != (2, len(arguments.also)):
        raise UsageError("give each result its log: RESULT LOG --also RESULT LOG")
    further = zip(arguments.also, arguments.rest, strict=True)
    files = [Path(word) for pair in (arguments.file, *further) for word in pair]
    results = [input_file(name) for name in arguments.capacity or ()]
    given, slo, pool = options.given(arguments), arguments.slo or "", arguments.pool
    with held_warnings() as told:
        return server_answer(files, given, slo, pool, results, told, arguments.commands)
