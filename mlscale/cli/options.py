"""Options that several commands share, and how they are read."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlscale.advice.objectives import Limits
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.public import registry
from mlscale.errors import InputError

LARGEST_SEED = 2**32 - 1


def input_file(text: str) -> Path:
    """A file to read: the path, or else the shipped file of that name."""
    if not os.path.exists(text) and "/" not in text:  # noqa: PTH110, which raises on some names
        try:
            return registry.path(text)
        except InputError:
            pass
    return Path(text)


def add_model_and_profile(parser: argparse.ArgumentParser) -> None:
    """What every command that predicts works on."""
    parser.add_argument("model", metavar="MODEL", help="model file, or the name of a shipped one")
    parser.add_argument(
        "profile",
        metavar="PROFILE",
        help="CSV or Parquet with a row for each kernel, measured at the model's base",
    )


def add_also(parser: argparse.ArgumentParser) -> None:
    """The option of every command that can take further measured points."""
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PROFILE[@CONFIG]",
        help="times, and powers where given, of these kernels at other configurations, each row "
        "naming its own, or all at CONFIG, e.g. more.csv@cu=16,engine=800,memory=925 (may be "
        "given again; predictors that use it: bottleneck)",
    )


def read_also(texts: list[str], profiles: Profiles, grid: ConfigGrid) -> Profiles:
    """The profiles with the points that `--also` names. Raises InputError."""
    from mlscale.data.points import add_points

    tables: list[tuple[Path, HardwareConfig | None]] = []
    for text in texts:
        file, separator, config = text.rpartition("@")
        if separator and "=" in config:
            tables.append((input_file(file), grid.parse(config)))
        else:
            tables.append((input_file(text), None))
    return add_points(profiles, tables, grid) if tables else profiles


def output_file(text: str) -> Path:
    """A file to write; its folder must exist. Raises InputError."""
    path = Path(text)
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    return path


def add_output_table(parser: argparse.ArgumentParser) -> None:
    """The option of every command that writes a tidy table."""
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="TABLE",
        help="tidy table to write; Parquet if it ends in .parquet, else CSV",
    )


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
    add_static_power(parser)


def add_static_power(parser: argparse.ArgumentParser) -> None:
    """What makes dynamic power whole."""
    parser.add_argument(
        "--static-power",
        type=float,
        metavar="W",
        help="what the board draws beside power_w, where that is dynamic power",
    )


def read_limits(arguments: argparse.Namespace) -> Limits:
    """The limits that were given. Raises InputError."""
    return Limits(arguments.max_power, arguments.max_time, arguments.max_slowdown)


@contextmanager
def output_folder(text: str) -> Iterator[Path]:
    """A folder to write to, made if it is not there, and taken away again if nothing came of it.

    Raises InputError.
    """
    folder = Path(text)
    try:
        is_new = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
    try:
        yield folder
    finally:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Options of every command that reads tables."""
    from mlscale.data.measurements import AGGREGATES, INCOMPLETE

    parser.add_argument(
        "--incomplete",
        choices=INCOMPLETE,
        default="error",
        help="what to do with a kernel that lacks configurations (default: %(default)s)",
    )
    parser.add_argument(
        "--repetitions",
        choices=AGGREGATES,
        default="median",
        help="how repeated measurements become one (default: %(default)s)",
    )


def predictor_name(text: str) -> str:
    """A name with which there is a predictor, for argparse."""
    from mlscale.predictors import find_predictor

    try:
        find_predictor(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def seed(text: str) -> int:
    """A seed that every library takes, for argparse."""
    if not text.isdecimal() or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 to {LARGEST_SEED}")
    return int(text)


def whole_number(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number
