"""mlscale explain: what the code of a note means, and what to do."""

import argparse
import textwrap

from mlscale.advice.sureness import REASONS
from mlscale.cli.parser import Parser
from mlscale.errors import InputError
from mlscale.keywords import in_shell
from mlscale.notes import NOTES
from mlscale.text import did_you_mean

_COLUMNS = 80


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    what = "such as G03; without one all codes are listed"
    parser.add("code", nargs="?", metavar="CODE", help=what)


def run(arguments: argparse.Namespace) -> None:
    """Print the meaning of a code, or all codes. Raises InputError."""
    if arguments.code is None:
        titles = {code: meaning.title for code, meaning in NOTES.items()}
        titles |= {code: reason.words for code, reason in REASONS.items()}
        print("".join(f"{code}  {title}\n" for code, title in titles.items()), end="")
        return
    code = arguments.code.upper()
    if reason := REASONS.get(code):
        print(f"{code}: {reason.words}\n\nThis makes an answer {reason.level} in sureness.")
        return
    if code not in NOTES:
        hint = did_you_mean(code, [*NOTES, *REASONS]) or "; mlscale explain lists them all"
        raise InputError(f"there is no code '{arguments.code}'{hint}")
    meaning = NOTES[code]
    paragraphs = (f"{code}: {meaning.title}", meaning.explanation, f"What to do: {meaning.mend}")
    print("\n\n".join(textwrap.fill(in_shell(text), _COLUMNS) for text in paragraphs))
