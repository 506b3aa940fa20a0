"""Repeated measurements: rows spread to samples, and samples made one number."""

import math
import warnings
from typing import Literal

import numpy as np

from mlscale.arrays import Floats, Indices

Aggregate = Literal["median", "mean", "min"]


def spread(values: Floats, cells: tuple[Indices, ...], shape: tuple[int, ...]) -> Floats:
    """Spread rows of values (rows, …) to samples (R, *shape, …), repetitions in order.

    cells: where each row belongs in `shape`. R is the largest number of rows of one cell; the
    rest of the others is NaN.
    """
    cell = np.ravel_multi_index(cells, shape)
    order = np.argsort(cell, kind="stable")
    counts = np.bincount(cell, minlength=math.prod(shape))
    repetition = np.empty(len(cell), dtype=np.intp)
    repetition[order] = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    samples = np.full((int(counts.max(initial=0)), *shape, *values.shape[1:]), np.nan)
    samples[(repetition, *cells)] = values
    return samples


def over_repetitions(samples: Floats, how: Aggregate) -> Floats:
    """Make one number of the repetitions (R, …) of each cell; NaN where all are missing."""
    if len(samples) == 1:
        return np.asarray(samples[0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(All-NaN|Mean of empty)", RuntimeWarning)
        match how:
            case "median":
                return np.asarray(np.nanmedian(samples, axis=0))
            case "mean":
                return np.asarray(np.nanmean(samples, axis=0))
            case "min":
                return np.asarray(np.nanmin(samples, axis=0))
