"""mlscale cite: the references of the models and data sets in use."""

import argparse
import os

from mlscale.cli import options
from mlscale.papers.citations import citable_names, references_of

_MODEL_SUFFIX = ".mlscale"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        help="a predictor, a model of the literature or a data set "
        f"({', '.join(citable_names())}), or a model file, for its predictors (default: all)",
    )
    parser.add_argument("--bibtex", action="store_true", help="print BibTeX entries")


def run(arguments: argparse.Namespace) -> None:
    """Print the references. Raises InputError on a name that is not known."""
    behind = [name for given in arguments.name for name in _names_behind(given)]
    names = list(dict.fromkeys(behind or citable_names()))
    references = references_of(names)
    used = {user for _, users in references for user in users}
    if arguments.bibtex:
        blocks = [reference.as_bibtex() for reference, _ in references]
    else:
        blocks = [f"{ref.as_text()}\n  for {', '.join(users)}" for ref, users in references]
    if without := [name for name in names if name not in used]:
        comment = "% " if arguments.bibtex else ""
        blocks.append(f"{comment}nothing to cite for {', '.join(without)}")
    print("\n\n".join(blocks))


def _names_behind(given: str) -> list[str]:
    """The name itself, or the predictors of the model file that is given."""
    known = given in citable_names()
    if known or not (given.endswith(_MODEL_SUFFIX) or os.path.isfile(given)):  # noqa: PTH113
        return [given]
    from mlscale.model_file import load

    model = load(options.input_file(given))
    return [predictor.name for predictor in model.predictors.values()]
