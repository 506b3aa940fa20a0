"""Options that say what is to be least, and within which limits."""

import argparse
from typing import TYPE_CHECKING

from mlscale.cli import values

if TYPE_CHECKING:
    from mlscale.advice.objectives import Limits


def add_objective(parser: argparse.ArgumentParser) -> None:
    """Add what is to be least."""
    from mlscale.advice.objectives import OBJECTIVES

    parser.add_argument(
        "--minimize",
        choices=tuple(OBJECTIVES),
        help="what is to be least: energy, edp (energy x time), ed2p (energy x time^2), time, "
        "power, or clock: the engine clock within a limit of time, by default 5 %% slower than "
        "the base (default: energy, or clock where model or profile give no energy)",
    )


def add_limits(parser: argparse.ArgumentParser, of: str) -> None:
    """Add what an advised configuration must keep, and what makes dynamic power whole.

    of: what the limits of time are of, such as 'the kernel'.
    """
    parser.add_argument(
        "--max-power",
        type=values.positive_number,
        metavar="W",
        help="highest power of each kernel, in W (default: no limit)",
    )
    parser.add_argument(
        "--max-time",
        type=values.positive_number,
        metavar="MS",
        help=f"highest time of {of}, in ms (default: no limit)",
    )
    parser.add_argument(
        "--max-slowdown",
        type=values.number_from_0,
        metavar="PCT",
        help=f"how much longer {of} may take than at the base, in percent",
    )
    add_static_power(parser)


def add_static_power(parser: argparse.ArgumentParser) -> None:
    """Add what makes dynamic power whole."""
    parser.add_argument(
        "--static-power",
        type=values.number_from_0,
        metavar="W",
        help="what the board draws beside power_w, in W, if power_w is dynamic power only",
    )


def read_limits(arguments: argparse.Namespace) -> "Limits":
    """Return the limits that were given."""
    from mlscale.advice.objectives import Limits

    return Limits(arguments.max_power, arguments.max_time, arguments.max_slowdown)
