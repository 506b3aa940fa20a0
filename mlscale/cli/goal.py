"""Options of advice: what is to be least, within which limits, and what is to set it."""

import argparse
from typing import TYPE_CHECKING

from mlscale.cli import values

if TYPE_CHECKING:
    from mlscale.advice.objectives import Limits

LEVERS = ("clock", "cap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is asked of advice on a run."""
    from mlscale.advice.objectives import OBJECTIVES

    parser.add_argument(
        "--minimize",
        choices=tuple(OBJECTIVES),
        help="what is to be least: energy, edp (energy x time), ed2p (energy x time^2), time, "
        "power, or clock: the engine clock within a limit of time, by default 5 %% slower than "
        "the base (default: energy, or clock where model or profile give no energy)",
    )
    add_limits(parser, "the whole run (all launches summed up)")
    parser.add_argument(
        "--lever",
        choices=LEVERS,
        default="clock",
        help="what the answer is to set: clocks, or a power cap (default: %(default)s)",
    )
    parser.add_argument(
        "--power-cap",
        nargs="*",
        type=values.positive_number,
        metavar="W",
        help="add time and energy of the run under these power caps, in W (without W, and by "
        "default with --lever cap: from the GPU's lowest power limit to its highest)",
    )
    parser.add_argument(
        "--commands",
        action="store_true",
        help="print the commands that set the advice on this GPU, and those that reset it; none is "
        "run",
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
    parser.add_argument(
        "--static-power",
        type=values.number_from_0,
        metavar="W",
        help="what the board draws beside power_w, in W, if power_w is dynamic power only",
    )


def read_limits(arguments: argparse.Namespace) -> "Limits":
    """Return the limits that were given."""
    from mlscale.advice.objectives import Limits

    return Limits(
        max_power_w=arguments.max_power,
        max_time_ms=arguments.max_time,
        max_slowdown_percent=arguments.max_slowdown,
    )


def caps_asked(arguments: argparse.Namespace) -> tuple[float, ...] | None:
    """The caps to tell the run under, empty for those that the GPU takes; None where none are."""
    if arguments.power_cap is None and arguments.lever != "cap":
        return None
    return tuple(arguments.power_cap or ())
