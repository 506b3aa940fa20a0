"""What the figures of section V of Wu et al., HPCA 2015, show, from the rows of a study.

Every function takes the rows of one table and quantity and gives errors [%] by label: the
candidate with its number of clusters ('wu 12'), or its name where it has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.data.grid import AXES, HardwareConfig
from mlscale.studies.statistics import standard_error

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True)
class Spread:
    """The mean over the seeds, the lowest and highest of them, and the mean's standard error."""

    mean: float
    low: float
    high: float
    standard_error: float | None


@dataclass(frozen=True)
class BoxStatistics:
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
    """Return the name of what a row is of."""
    clusters = row["clusters"]
    return str(row["predictor"]) if clusters is None else f"{row['predictor']} {clusters}"


def labels(rows: Sequence[Row], *predictors: str) -> list[str]:
    """Return the labels in the rows, in their order; of some predictors alone, if any is named."""
    shown = [label(row) for row in rows if not predictors or row["predictor"] in predictors]
    return list(dict.fromkeys(shown))


def by_base(rows: Sequence[Row]) -> dict[str, dict[HardwareConfig, Spread]]:
    """Fig. 10, 11, 13, 16: the mean error from each base."""
    groups = _frame(rows).groupby(["label", "base", "seed"], sort=False)
    return _spreads(groups["mape"].mean())


def overall(rows: Sequence[Row]) -> dict[str, Spread]:
    """Return the last bars of Fig. 13, and Fig. 15: the mean over the bases."""
    groups = _frame(rows).assign(all="").groupby(["label", "all", "seed"], sort=False)
    return {name: of[""] for name, of in _spreads(groups["mape"].mean()).items()}


def boxes(rows: Sequence[Row]) -> dict[str, dict[float, BoxStatistics]]:
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


def box(errors: Sequence[float]) -> BoxStatistics:
    """Return the distribution of some errors."""
    mean, std = float(np.mean(errors)), float(np.std(errors))
    return BoxStatistics(len(errors), mean, std, min(errors), max(errors))


def shares(rows: Sequence[Row]) -> dict[str, dict[float, Spread]]:
    """Fig. 14 and 17: the share of all values [%] by the low end of the bin; bases are pooled."""
    counts = _frame(rows).groupby(["label", "bin_low", "seed"], sort=False)["count"].sum()
    return _spreads(100 * counts / counts.groupby(["label", "seed"]).transform("sum"))


def _frame(rows: Sequence[Row]) -> "pd.DataFrame":
    """Return the rows with their labels and bases."""
    import pandas as pd

    bases: Any = [HardwareConfig(*(row[axis] for axis in AXES)) for row in rows]
    return pd.DataFrame(list(rows)).assign(label=[label(row) for row in rows], base=bases)


def _spreads(by_seed: "pd.Series[Any]") -> dict[str, dict[Any, Spread]]:
    """By label and key the spread over the seeds, of values by label, key and seed."""
    spreads: dict[str, dict[Any, Spread]] = {}
    groups: Any = by_seed.groupby(level=[0, 1], sort=False)
    for (name, key), of in groups:
        error = standard_error(of.tolist())
        spread = Spread(float(of.mean()), float(of.min()), float(of.max()), error)
        spreads.setdefault(name, {})[key] = spread
    return spreads
