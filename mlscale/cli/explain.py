"""mlscale explain: what the code of a note means, and what to do."""

import argparse
import textwrap

from mlscale.cli.parser import Parser
from mlscale.errors import InputError
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
        print("".join(f"{code}  {meaning.title}\n" for code, meaning in NOTES.items()), end="")
        return
    code = arguments.code.upper()
    if code not in NOTES:
        hint = did_you_mean(code, NOTES) or "; mlscale explain lists them all"
        raise InputError(f"there is no code '{arguments.code}'{hint}")
    meaning = NOTES[code]
    paragraphs = (f"{code}: {meaning.title}", meaning.explanation, f"What to do: {meaning.mend}")
    print("\n\n".join(textwrap.fill(text, _COLUMNS) for text in paragraphs))
