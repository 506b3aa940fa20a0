"""mlscale cite: the references of the models and data sets in use."""

import argparse
import os
from dataclasses import asdict
from typing import Any

from mlscale.cli import options, outputs
from mlscale.cli.text import json_text
from mlscale.papers.citations import Reference, citable_names, references_of

MODEL_SUFFIX = ".mlscale"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        help="a predictor, a model of the literature or a data set "
        f"({', '.join(citable_names())}), or a model file, for its predictors (default: all)",
    )
    parser.add_argument("--bibtex", action="store_true", help="print BibTeX entries")
    outputs.add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the references. Raises InputError on a name that is not known."""
    if arguments.json:
        options.refuse_unused(arguments, ["bibtex"], "with --json")
    names = [name for word in arguments.name for name in _citable(word)]
    names = list(dict.fromkeys(names or citable_names()))
    references = references_of([name for name in names if ":" not in name])  # else an own class
    if arguments.json:
        print(json_text([_row(*reference) for reference in references]), end="")
        return
    if arguments.bibtex:
        paragraphs = [reference.as_bibtex() for reference, _ in references]
    else:
        paragraphs = [f"{ref.as_text()}\n  for {', '.join(users)}" for ref, users in references]
    cited = {user for _, users in references for user in users}
    if uncited := [name for name in names if name not in cited]:
        comment = "% " if arguments.bibtex else ""
        paragraphs.append(f"{comment}nothing to cite for {', '.join(uncited)}")
    print("\n\n".join(paragraphs))


def _row(reference: Reference, users: list[str]) -> dict[str, Any]:
    row = asdict(reference)
    fields = row.pop("fields")
    return {**row, **fields, "for": users}


def _citable(word: str) -> list[str]:
    """Return the name itself, or the names of the predictors of the model file of that name."""
    known = word in citable_names()
    if known or not (word.endswith(MODEL_SUFFIX) or os.path.isfile(word)):  # noqa: PTH113
        return [word]
    from mlscale.model_file import predictor_names

    return predictor_names(options.input_file(word))
