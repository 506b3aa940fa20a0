"""mlscale literature: the models of the papers, by themselves and against measurements."""

import argparse
import importlib
from types import ModuleType

MODELS = {
    "wu": "how kernels scale over clocks and compute units (Wu et al., 2015, Fig. 1)",
    "wang-chu": "time under core and memory clocks (Wang and Chu, 2018)",
    "nagasaka": "power from counters per second (Nagasaka et al., 2010)",
    "survey": "the models of Volkov's survey (PPoPP 2018), side by side",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each model."""
    models = parser.add_subparsers(dest="literature", required=True, metavar="MODEL")
    for name, summary in MODELS.items():
        model = models.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        _module(name).add_arguments(model)


def run(arguments: argparse.Namespace) -> None:
    """Run one model. Raises InputError."""
    _module(arguments.literature).run(arguments)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"mlscale.cli.literature.{name.replace('-', '_')}")
