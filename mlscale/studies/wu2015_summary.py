"""What the figures of section V of Wu et al., HPCA 2015, show, from the rows of a study.

Every function takes the rows of one table and quantity and gives errors [%] by label: the
candidate with its number of clusters ('wu 12'), or its name where it has none.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mlscale.data.grid import AXES, HardwareConfig

Row = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Spread:
    """The mean over the seeds, and the lowest and highest of them."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Box:
    """Fig. 12: the distribution of the mean errors of some bases.

    In the paper's meaning: the box's middle is the mean, its ends are one standard deviation
    away, the whiskers end at the extremes.
    """

    bases: int
    mean: float
    std: float
    low: float
    high: float


def label(row: Row) -> str:
    """The name of what a row is of."""
    clusters = row["clusters"]
    return str(row["predictor"]) if clusters is None else f"{row['predictor']} {clusters}"


def labels(rows: Sequence[Row], *predictors: str) -> list[str]:
    """The labels in the rows, in their order; of some predictors alone, if any is named."""
    found = [label(row) for row in rows if not predictors or row["predictor"] in predictors]
    return list(dict.fromkeys(found))


def base_of(row: Row) -> HardwareConfig:
    """The base configuration of a row."""
    return HardwareConfig(*(row[axis] for axis in AXES))


def by_base(rows: Sequence[Row]) -> dict[str, dict[HardwareConfig, Spread]]:
    """Fig. 10, 11, 13, 16: the mean error from each base."""
    return {
        name: _over_seeds(own, base_of, lambda some: _mean(row["mape"] for row in some))
        for name, own in _grouped(rows, label).items()
    }


def overall(rows: Sequence[Row]) -> dict[str, Spread]:
    """The last bars of Fig. 13, and Fig. 15: the mean over the bases."""
    return _over_seeds(rows, label, lambda some: _mean(row["mape"] for row in some))


def boxes(rows: Sequence[Row]) -> dict[str, dict[float, Box]]:
    """Fig. 12: a box for each engine clock of the base, over its CU counts and memory clocks."""
    return {
        name: {
            engine: box(
                [spread.mean for base, spread in means.items() if base.engine_mhz == engine]
            )
            for engine in sorted({base.engine_mhz for base in means})
        }
        for name, means in by_base(rows).items()
    }


def box(errors: Sequence[float]) -> Box:
    """The distribution of some errors."""
    mean, std = float(np.mean(errors)), float(np.std(errors))
    return Box(len(errors), mean, std, min(errors), max(errors))


def shares(rows: Sequence[Row]) -> dict[str, dict[float, Spread]]:
    """Fig. 14 and 17: the share of all values [%] by the low end of the bin; bases are pooled."""
    found = {}
    for name, own in _grouped(rows, label).items():
        total = {seed: _count(some) for seed, some in _grouped(own, _seed).items()}

        def share(some: Sequence[Row], total: dict[int, int] = total) -> float:
            return 100 * _count(some) / total[_seed(some[0])]

        found[name] = _over_seeds(own, _bin_low, share)
    return found


def _over_seeds(
    rows: Sequence[Row], key: Callable[[Row], Key], figure: Callable[[Sequence[Row]], float]
) -> dict[Key, Spread]:
    """A figure of the rows of each key, seed by seed."""
    spreads = {}
    for of, own in _grouped(rows, key).items():
        by_seed = [figure(some) for some in _grouped(own, _seed).values()]
        spreads[of] = Spread(_mean(by_seed), min(by_seed), max(by_seed))
    return spreads


def _grouped(rows: Sequence[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _seed(row: Row) -> int:
    return int(row["seed"])


def _bin_low(row: Row) -> float:
    return float(row["bin_low"])


def _count(rows: Sequence[Row]) -> int:
    return sum(row["count"] for row in rows)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
