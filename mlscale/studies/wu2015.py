"""The studies of Wu et al., HPCA 2015, section V, on any table of measurements.

A study is a list of units; a unit is one contender with one number of clusters, one seed, and
some bases. It gives tidy rows. The networks of all its bases train as one batch, and K-means is
done once for what several bases share; see varied_bases.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictors import create
from mlscale.predictors.base import fit_all
from mlscale.predictors.wu.estimator import DEFAULT_CLUSTERS
from mlscale.records import Progress
from mlscale.studies.candidates import (
    ORACLE,
    Contender,
    contenders,
    has_parameter,
    predicts,
)
from mlscale.studies.metrics import absolute_percentage_error, summarise, without_base
from mlscale.studies.oracle import oracle_surfaces
from mlscale.studies.parallel import sweep
from mlscale.studies.splits import folds, is_random

if TYPE_CHECKING:
    from distributed import Client

Rows = list[dict[str, Any]]

STUDIES = ("base-configuration", "cluster-count", "error-distribution", "oracle")
CLUSTER_COUNTS = tuple(range(2, 21, 2))  # Fig. 13, 15, 16
DISTRIBUTION_COUNTS = (2, 6, 12)  # Fig. 14, 17
BIN_WIDTH, BINS = 10.0, 11  # Fig. 14, 17; the last bin is >= 100 %
BASES_IN_UNIT = 32


@dataclass(frozen=True)
class Settings:
    """What is studied. clusters: of the base-configuration study; the others vary it.

    None takes 12 or, where a fold trains on fewer kernels, as many as there are.
    """

    study: str
    quantities: tuple[str, ...]
    clusters: int | None
    protocol: str
    seeds: int


@dataclass(frozen=True)
class PaperUnit:
    """One share of a study. clusters: None for a contender that has none.

    In the oracle study the oracle stands in the unit of its network: they share the clusters.
    """

    study: str
    table: str
    quantity: str
    contender: Contender
    clusters: int | None
    protocol: str
    seed: int
    bases: tuple[HardwareConfig, ...]


def five_bases(grid: ConfigGrid) -> tuple[HardwareConfig, ...]:
    """The bases of all studies but base-configuration; the paper names the first only (Fig. 13).

    Most CUs and engine clock with least memory clock; mid-grid; everything highest; fewest CUs
    and engine clock with the highest memory clock; everything lowest. Fewer on a grid where
    these coincide.
    """
    low, high = (0, 0, 0), tuple(length - 1 for length in grid.shape)
    indices = [
        (high[0], high[1], low[2]),
        grid.index(grid.mid),
        (high[0], high[1], high[2]),
        (low[0], low[1], high[2]),
        low,
    ]
    return tuple(grid.config(index) for index in dict.fromkeys(indices))


def varied_bases(
    grid: ConfigGrid, around: HardwareConfig, axes: Sequence[str]
) -> tuple[HardwareConfig, ...]:
    """Every base along these axes, the others as in `around`; all axes when none is named.

    In the order of engine clock, memory clock, CU count: bases that share their clocks share
    the clusters of the CU axis. Raises InputError on an axis with one step only.
    """
    for axis in axes:
        if len(getattr(grid, axis)) < 2:
            raise InputError(
                f"a study over {axis} needs several; the table has one, {getattr(grid, axis)[0]:g}"
            )
    fixed = [axis for axis in AXES if axes and axis not in axes]
    bases = [b for b in grid if all(getattr(b, axis) == getattr(around, axis) for axis in fixed)]
    return tuple(sorted(bases, key=lambda b: (b.engine_mhz, b.memory_mhz, b.cu_count)))


def beside_baselines(predictor: str, kinds: Sequence[str], data: Measurements) -> list[Contender]:
    """The predictor with its features, then the baselines."""
    found = contenders([predictor], kinds, data)
    found.sort(key=lambda contender: contender.predictor != predictor)
    return [contender for contender in found if contender.predictor != ORACLE]


def plan(
    settings: Settings,
    tables: dict[str, Measurements],
    bases: dict[str, tuple[HardwareConfig, ...]],
    chosen: dict[str, list[Contender]],
) -> list[PaperUnit]:
    """All units of a study; power is left out for a table that has none.

    What no random number enters is done for the first seed only. Raises InputError on a table
    of one configuration, too few applications, and more clusters than a fold has kernels.
    """
    units = []
    for table, data in tables.items():
        if data.grid.size < 2:
            raise InputError(f"'{table}' has one configuration; a study needs two at least")
        width = len(data.grid.cu_count) * max(1, BASES_IN_UNIT // len(data.grid.cu_count))
        for quantity in settings.quantities:
            if quantity == "power" and data.power_samples is None:
                continue
            units += [
                PaperUnit(
                    settings.study, table, quantity, contender, clusters, settings.protocol, seed,
                    bases[table][start : start + width],
                )
                for seed in range(settings.seeds)
                for contender in chosen[table]
                if predicts(contender.predictor, quantity)
                if seed == 0
                or is_random(settings.protocol)
                or has_parameter(contender.predictor, "seed")
                for clusters in _cluster_counts(settings, contender, data)
                for start in range(0, len(bases[table]), width)
            ]  # fmt: skip
    return units


def _cluster_counts(
    settings: Settings, contender: Contender, data: Measurements
) -> Sequence[int | None]:
    """The numbers of clusters to try: never more than a fold of any seed trains on kernels."""
    splits = [folds(settings.protocol, data.applications, n) for n in range(settings.seeds)]
    if not has_parameter(contender.predictor, "clusters"):
        return (None,)
    most = min(len(train) for split in splits for train, _ in split)
    match settings.study:
        case "base-configuration":
            if settings.clusters is None:
                return (min(DEFAULT_CLUSTERS, most),)
            if settings.clusters > most:
                raise InputError(
                    f"{settings.clusters} clusters, but a fold trains on {most} kernels; give "
                    f"--clusters {most} or less"
                )
            return (settings.clusters,)
        case "oracle":  # beyond the paper's counts, to where every kernel has its own cluster
            beyond = np.geomspace(CLUSTER_COUNTS[-1], max(most, CLUSTER_COUNTS[-1]), 5)
            counts = [*CLUSTER_COUNTS, *beyond.round().astype(int).tolist()]
        case "cluster-count":
            counts = list(CLUSTER_COUNTS)
        case _:
            counts = list(DISTRIBUTION_COUNTS)
    return sorted({min(count, most) for count in counts})


def run(
    units: Sequence[PaperUnit],
    tables: dict[str, Measurements],
    jobs: int = 1,
    kept: Progress | None = None,
    client: "Client | None" = None,
) -> Iterator[tuple[int, Rows]]:
    """Number and rows of each unit as they come; see sweep."""
    calls = [(unit, tables[unit.table]) for unit in units]
    return sweep(run_unit, calls, jobs, kept, client)


def run_unit(unit: PaperUnit, data: Measurements) -> Rows:
    """The rows of one unit: docs/file-formats.md. Raises InputError."""
    rows = _rows(unit, data)
    if unit.study == "oracle" and unit.contender.predictor == "wu":
        rows += _rows(replace(unit, contender=Contender(ORACLE, None)), data)
    return rows


def _rows(unit: PaperUnit, data: Measurements) -> Rows:
    rows: Rows = []
    errors, kernels = _errors_by_base(unit, data)
    for base, found in errors.items():
        row = {
            "table": unit.table,
            "quantity": unit.quantity,
            "predictor": unit.contender.predictor,
            "features": unit.contender.features,
            "clusters": unit.clusters,
            "seed": unit.seed,
            **base.as_dict(),
            "n_kernels": len(set(kernels)),
        }
        if unit.study == "error-distribution":
            counts = histogram(found)
            lows = BIN_WIDTH * np.arange(BINS)
            rows += [
                {**row, "bin_low": low, "count": count}
                for low, count in zip(lows.tolist(), counts.tolist(), strict=True)
            ]
        else:
            rows.append({**row, **vars(summarise(found, kernels))})
    return rows


def histogram(errors: Floats) -> Indices:
    """How many errors fall in each bin: 0 to < 10 %, …, 90 to < 100 %, >= 100 %."""
    bins = np.minimum(errors.ravel() // BIN_WIDTH, BINS - 1).astype(np.intp)
    return np.bincount(bins, minlength=BINS)


def _errors_by_base(
    unit: PaperUnit, data: Measurements
) -> tuple[dict[HardwareConfig, Floats], list[str]]:
    """Errors [%] (n, targets) by base, and the kernel of each row.

    Of the kernels held out; in the oracle study of those trained on (section V-B2, Fig. 15).
    """
    found: dict[HardwareConfig, list[Floats]] = {base: [] for base in unit.bases}
    kernels: list[str] = []
    for train, test in folds(unit.protocol, data.applications, unit.seed):
        training = data.select(train)
        scored = training if unit.study == "oracle" else data.select(test)
        kernels += scored.kernels
        truth = scored.quantity(unit.quantity)
        for base, predicted in _surfaces(unit, training, scored):
            at = data.grid.index(base)
            actual = truth / truth[(slice(None), *at)][:, None, None, None]
            found[base].append(without_base(absolute_percentage_error(predicted, actual), at))
    return {base: np.concatenate(errors) for base, errors in found.items()}, kernels


def _surfaces(
    unit: PaperUnit, training: Measurements, scored: Measurements
) -> Iterator[tuple[HardwareConfig, Floats]]:
    """For each base the surfaces (n, C, E, M) that a model of it predicts."""
    if unit.contender.predictor == ORACLE:
        clusters = cast("int", unit.clusters)
        for base in unit.bases:
            yield base, oracle_surfaces(training, scored, base, unit.quantity, clusters, unit.seed)
        return
    new = partial(
        create,
        unit.contender.predictor,
        quantity=unit.quantity,
        features=unit.contender.features,
        clusters=unit.clusters,
        seed=unit.seed,
    )
    models = [new() for _ in unit.bases]
    jobs = [(model, training, base) for model, base in zip(models, unit.bases, strict=True)]
    fit_all(jobs)
    for model, base in zip(models, unit.bases, strict=True):
        yield base, model.predict(scored.profiles(base)).values
