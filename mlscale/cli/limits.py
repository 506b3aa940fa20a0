"""Options of the commands that advise: limits to keep, and static power."""

import argparse

from mlscale.advice.objectives import Limits


def add_limits(parser: argparse.ArgumentParser) -> None:
    """What an advised configuration must keep, and what makes dynamic power whole."""
    parser.add_argument(
        "--max-power", type=float, metavar="W", help="only where the power is at most that"
    )
    parser.add_argument(
        "--max-time", type=float, metavar="MS", help="only where the time is at most that"
    )
    parser.add_argument(
        "--max-slowdown",
        type=float,
        metavar="PCT",
        help="only where the time is at most that many percent longer than at the base",
    )
    parser.add_argument(
        "--static-power",
        type=float,
        metavar="W",
        help="what the board draws beside power_w, where that is dynamic power",
    )


def read_limits(arguments: argparse.Namespace) -> Limits:
    """The limits that were given. Raises InputError."""
    return Limits(arguments.max_power, arguments.max_time, arguments.max_slowdown)
