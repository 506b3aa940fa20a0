"""The study of every base of Wu et al., one split, against scikit-learn, on one core each.

Made HD 7970 set, time, 12 clusters, holdout, seed 0, every one of the 448 bases. Both sides do the
same 8 + 56 clusterings once and train nine networks for each base in single precision; the peer
with KMeans and MLPClassifier (lbfgs until it converges), on one BLAS thread. Its networks take
minutes: those of every 45th base are trained, and their seconds count as those of all.

Times are the processor's, of one process, so that other work on the cores does not count.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import peer
from make_hd7970 import make_hd7970
from sklearn.preprocessing import MinMaxScaler
from table import Row
from timing import peak_mib, timed

from mlscale.counters.features import compute_features
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import absolute_percentage_error, without_base
from mlscale.predictors.wu import Wu
from mlscale.predictors.wu_clusters import (
    CU_AXIS,
    region_values,
    scaling_from_regions,
    scaling_values,
    walk,
)
from mlscale.studies.crossval import Fold, cross_validate, folds

CLUSTERS, SEED = 12, 0
BASES_AT_ONCE = 32
PEER_STEP = 45  # no multiple of a number of steps of an axis, so that all of them are met


def ours(
    data: Measurements, bases: Sequence[HardwareConfig], fold: Fold
) -> dict[HardwareConfig, float]:
    """Error of each base [%], by the cross-validation of all studies.

    Bases that share clocks share the clusters of the CU axis, so they are taken together.
    """

    def make() -> list[Wu]:
        return [Wu(features="table2", clusters=CLUSTERS, seed=SEED)]

    errors = {}
    for start in range(0, len(bases), BASES_AT_ONCE):
        some = bases[start : start + BASES_AT_ONCE]
        for found in cross_validate(data, some, [fold], make):
            errors[found.surfaces.base] = float(found.errors.mean())
    return errors


def their_clusters(
    training: Measurements, bases: Sequence[HardwareConfig]
) -> dict[object, peer.Clustering]:
    """The clusterings of all bases, each once."""
    found: dict[object, peer.Clustering] = {}
    for base in bases:
        scaling = scaling_values(training.time_ms, training.grid.index(base))
        for region, values in region_values(scaling).items():
            key = key_of(region, base)
            if key not in found:
                found[key] = peer.cluster(values, CLUSTERS, SEED)
    return found


def key_of(region: int, base: HardwareConfig) -> object:
    """What a clustering depends on."""
    return (base.engine_mhz, base.memory_mhz) if region == CU_AXIS else region


def error_of_base(
    training: Measurements,
    held_out: Measurements,
    base: HardwareConfig,
    found: dict[object, peer.Clustering],
) -> tuple[float, int]:
    """Error of one base [%], and how many of its networks did not converge."""
    seen, asked = (
        compute_features("table2", data.profiles(base), None).values.astype(np.float32)
        for data in (training, held_out)
    )
    scaler = MinMaxScaler((-1, 1), clip=True).fit(seen)
    regions = (*range(len(training.grid.cu_count)), CU_AXIS)
    clusterings = {region: found[key_of(region, base)] for region in regions}
    networks, missed = peer.train(scaler.transform(seen), clusterings, CLUSTERS, SEED)
    chosen = peer.choose(scaler.transform(asked), networks, clusterings)
    at, shape = training.grid.index(base), training.grid.shape
    predicted = walk(scaling_from_regions(chosen, shape, len(asked)), at)
    actual = held_out.time_ms / held_out.time_ms[(slice(None), *at)][:, None, None, None]
    errors = without_base(absolute_percentage_error(predicted, actual), at)
    return float(errors.mean()), missed


def rows() -> Iterator[Row]:
    """Seconds and errors of both, and the memory of ours."""
    data = make_hd7970(SEED)
    bases = sorted(data.grid, key=lambda b: (b.engine_mhz, b.memory_mhz, b.cu_count))
    [(train, test)] = folds("holdout", data.applications, SEED)
    errors, spent = timed(lambda: ours(data, bases, (train, test)))
    peak = peak_mib()
    training, held_out = data.select(train), data.select(test)
    found, clustering = timed(lambda: their_clusters(training, bases))
    theirs, networks = timed(
        lambda: [error_of_base(training, held_out, base, found) for base in bases[::PEER_STEP]]
    )
    spent_peer = clustering.processor_s + networks.processor_s * len(bases) / len(theirs)
    missed = sum(lacking for _, lacking in theirs)
    what = f"study of {len(bases)} bases, {9 * len(bases)} networks"
    peer_is = (
        f"scikit-learn (lbfgs), from {len(theirs)} bases; processor time; "
        f"{missed} networks not converged"
    )
    yield Row.beside(what, spent.processor_s, spent_peer, "{:.1f} s", peer_is, "{:.1f}")
    error = float(np.mean([error for error, _ in theirs]))
    same = float(np.mean([errors[base] for base in bases[::PEER_STEP]]))
    yield Row("its validation error at these bases", f"{same:.2f} %", f"{error:.2f} %")
    yield Row("its peak memory", f"{peak:.0f} MiB")
