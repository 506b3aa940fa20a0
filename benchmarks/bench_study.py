"""The full base-configuration study, one split, against scikit-learn on the same cores.

    python benchmarks/bench_study.py [BASES]

Made HD 7970 set, time, 12 clusters, holdout, seed 0; BASES of the 448 bases, evenly spread
(default: all). Both sides do the same 8 + 56 clusterings once and train nine networks for each base
in single precision; the peer with KMeans, MLPClassifier (lbfgs until it converges) and joblib, one
BLAS thread a worker.
"""

import os
import sys
import time
import warnings
from collections.abc import Sequence

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MinMaxScaler
from threadpoolctl import threadpool_limits

from mlscale.counters.features import compute_features
from mlscale.datasets.hd7970 import make_hd7970
from mlscale.grid import HardwareConfig
from mlscale.measurements import Measurements
from mlscale.metrics import absolute_percentage_error, without_base
from mlscale.predictors.wu_clusters import CU_AXIS, region_values, scaling_from_regions
from mlscale.predictors.wu_training import WEIGHT_DECAY
from mlscale.scaling import scaling_values, walk
from mlscale.studies import paper
from mlscale.studies.contenders import Contender
from mlscale.studies.protocols import folds

CLUSTERS, SEED, MAX_ITERATIONS = 12, 0, 3000
JOBS = os.cpu_count() or 1

Clustering = tuple[NDArray[np.intp], NDArray[np.float64]]


def ours(data: Measurements, bases: tuple[HardwareConfig, ...]) -> list[float]:
    """Error of each base [%], by the study itself."""
    settings = paper.Settings("base-configuration", ("time",), CLUSTERS, "holdout", 1)
    units = paper.plan(settings, {"t": data}, {"t": bases}, {"t": [Contender("wu", "table2")]})
    rows = [row for _, found in paper.run(units, {"t": data}, JOBS) for row in found]
    return [row["mape"] for row in rows]


def clusterings(
    training: Measurements, bases: Sequence[HardwareConfig]
) -> dict[object, Clustering]:
    """K-means of every CU count, and of the CU axis for every pair of clocks."""
    found: dict[object, Clustering] = {}
    for base in bases:
        scaling = scaling_values(training.time_ms, training.grid.index(base))
        for region, values in region_values(scaling).items():
            key = key_of(region, base)
            if key not in found:
                means = KMeans(CLUSTERS, n_init=10, random_state=SEED).fit(
                    values.astype(np.float32)
                )
                found[key] = (means.labels_, means.cluster_centers_)
    return found


def key_of(region: int, base: HardwareConfig) -> object:
    """What a clustering depends on."""
    return (base.engine_mhz, base.memory_mhz) if region == CU_AXIS else region


def peer_error(
    training: Measurements,
    held_out: Measurements,
    base: HardwareConfig,
    found: dict[object, Clustering],
) -> tuple[float, int]:
    """Error of one base [%], and how many of its networks did not converge."""
    seen, asked = (
        compute_features("table2", data.profiles(base), None).values.astype(np.float32)
        for data in (training, held_out)
    )
    scaler = MinMaxScaler((-1, 1), clip=True).fit(seen)
    seen, asked = scaler.transform(seen), scaler.transform(asked)
    chosen = {}
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always", ConvergenceWarning)
        for region in (*range(len(training.grid.cu_count)), CU_AXIS):
            labels, centroids = found[key_of(region, base)]
            network = MLPClassifier(
                (CLUSTERS,), "logistic", solver="lbfgs", alpha=WEIGHT_DECAY,
                max_iter=MAX_ITERATIONS, random_state=SEED,
            ).fit(seen, labels)  # fmt: skip
            chosen[region] = centroids[network.predict(asked)].astype(np.float64)
    at, shape = training.grid.index(base), training.grid.shape
    predicted = walk(scaling_from_regions(chosen, shape, len(asked)), at)
    actual = held_out.time_ms / held_out.time_ms[(slice(None), *at)][:, None, None, None]
    errors = without_base(absolute_percentage_error(predicted, actual), at)
    return float(errors.mean()), len(caught)


def theirs(data: Measurements, bases: Sequence[HardwareConfig]) -> list[tuple[float, int]]:
    """The same study of scikit-learn's parts."""
    [(train, test)] = folds("holdout", data.applications, SEED)
    training, held_out = data.select(train), data.select(test)
    with threadpool_limits(1):
        found = clusterings(training, bases)
    work = delayed(peer_error)
    return Parallel(JOBS)(work(training, held_out, base, found) for base in bases)


def main() -> None:
    """Print seconds and errors of both, and the ratio of the seconds."""
    data = make_hd7970(SEED)
    every = paper.varied_bases(data.grid, data.grid.mid, ())
    count = int(sys.argv[1]) if len(sys.argv) > 1 else len(every)
    bases = tuple(every[i] for i in np.linspace(0, len(every) - 1, count).round().astype(int))
    started = time.perf_counter()
    errors = ours(data, bases)
    spent = time.perf_counter() - started
    started = time.perf_counter()
    peer = theirs(data, bases)
    spent_peer = time.perf_counter() - started
    missed = sum(lacking for _, lacking in peer)
    print(f"{count} bases x 9 networks, {JOBS} processes")
    print(f"{'mlscale':16s} {spent:8.1f} s   validation error {np.mean(errors):6.2f} %")
    print(
        f"{'scikit-learn':16s} {spent_peer:8.1f} s   validation error "
        f"{np.mean([error for error, _ in peer]):6.2f} %   ({missed} networks not converged)"
    )
    print(f"{'ratio':16s} {spent_peer / spent:8.1f}")


if __name__ == "__main__":
    main()
