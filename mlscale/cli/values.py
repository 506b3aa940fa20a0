"""Values of options as argparse reads them: numbers, names, configurations, GPUs, predictors."""

import argparse
import math
from contextlib import suppress
from typing import TYPE_CHECKING

from mlscale.data.grid import BASE_NAMES, parse_settings
from mlscale.data.table import MOST
from mlscale.errors import InputError
from mlscale.text import plain_number

if TYPE_CHECKING:
    from mlscale.predictors.base import Predictor

LARGEST_SEED = 2**32 - 1


def device_key(text: str) -> str:
    """The key of the GPU that --device names, for argparse; a name that is not known stays.

    text: a key or another name of the device table, or a device file, which is made known.
    """
    from mlscale.data.device_table import find_device, load_device_file

    try:
        device = load_device_file(text) if text.endswith(".json") else find_device(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text if device is None else device.key


def known_device_key(text: str) -> str:
    """As device_key, for a GPU that must be known."""
    from mlscale.data.device_table import load_device

    try:
        return load_device(device_key(text)).key
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def predictor_names() -> str:
    """Return what `--predictor` can name, for a help text."""
    from mlscale.predictors import PREDICTORS

    return (
        f"{', '.join(PREDICTORS)}, package.module:Class for one of your own, or default: what "
        "'train' takes on the table"
    )


def predictor_name(text: str) -> str:
    """Return the text if it is 'default' or the name of a predictor, for argparse."""
    from mlscale.predictors import DEFAULT

    if text != DEFAULT:
        _predictor(text)
    return text


def own_predictor(text: str) -> "type[Predictor]":
    """Return the class of a predictor that is not part of mlscale, for argparse."""
    from mlscale.predictors import PREDICTORS

    if text in PREDICTORS:
        raise argparse.ArgumentTypeError(f"'{text}' is mlscale's own, and a model file says so")
    return _predictor(text)


def _predictor(text: str) -> "type[Predictor]":
    from mlscale.predictors import find_predictor

    try:
        return find_predictor(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seed(text: str) -> int:
    """Return a seed that every library takes, for argparse."""
    if not text.isdecimal() or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 to {LARGEST_SEED}")
    return int(text)


def whole_number(text: str) -> int:
    """Return a whole number of at least 1, for argparse."""
    with suppress(ValueError):
        if plain_number(text) > MOST:
            raise argparse.ArgumentTypeError(f"'{text[:20]}…' is more than {MOST:g}")
        if plain_number(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")


def cluster_count(text: str) -> int | str:
    """Return a number of clusters, or 'auto', for argparse."""
    from mlscale.predictors.wu.estimator import AUTO

    return text if text == AUTO else whole_number(text)


def positive_number(text: str) -> float:
    """Return a finite number above 0, for argparse."""
    with suppress(ValueError):
        if 0 < plain_number(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a positive, finite number")


def number_from_0(text: str) -> float:
    """Return a finite number of at least 0, for argparse."""
    with suppress(ValueError):
        if 0 <= plain_number(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a finite number of at least 0")


def configuration(text: str) -> str:
    """Return the text if it is 'mid', 'highest' or a configuration, for argparse.

    A grid completes it.
    """
    if text not in BASE_NAMES:
        settings(text)
    return text


def settings(text: str) -> dict[str, float]:
    """Return the settings of some axes or of all, for argparse."""
    try:
        return parse_settings(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def names(text: str) -> tuple[str, ...]:
    """Return names that commas part, for argparse."""
    return tuple(name.strip() for name in text.split(","))
