"""The full base-configuration study, one split, against scikit-learn on the same cores.

Made HD 7970 set, time, 12 clusters, holdout, seed 0, every one of the 448 bases. Both sides do the
same 8 + 56 clusterings once and train nine networks for each base in single precision; the peer
with KMeans, MLPClassifier (lbfgs until it converges) and joblib, one BLAS thread a worker.
"""

import os
import time
from collections.abc import Iterator, Sequence

import numpy as np
import peer
from joblib import Parallel, delayed
from sklearn.preprocessing import MinMaxScaler
from table import Row, peak_mib

from mlscale.counters.features import compute_features
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import absolute_percentage_error, without_base
from mlscale.data.synthetic.hd7970 import make_hd7970
from mlscale.predictors.wu.clusters import CU_AXIS, region_values, scaling_from_regions
from mlscale.predictors.wu.scaling import scaling_values, walk
from mlscale.studies import wu2015
from mlscale.studies.splits import folds

CLUSTERS, SEED = 12, 0
JOBS = os.cpu_count() or 1


def ours(data: Measurements) -> list[float]:
    """Error of each base [%], by the study itself."""
    study = wu2015.WuStudy(
        name="base-configuration",
        tables={"t": data},
        features=["table2"],
        quantity="time",
        clusters=CLUSTERS,
        seeds=1,
    )
    rows = study.rows(study.results(JOBS))
    return [row["mape"] for row in rows if row["predictor"] == "wu"]


def peak_of_all_mib() -> float:
    """Peak memory of this process and of JOBS workers, each as large as the largest [MiB]."""
    peaks = Parallel(JOBS)(delayed(peak_mib)() for _ in range(4 * JOBS))
    return peak_mib() + JOBS * max(peaks)


def theirs(data: Measurements, bases: Sequence[HardwareConfig]) -> list[tuple[float, int]]:
    """The same study of scikit-learn's parts: error [%] and networks that did not converge."""
    [(train, test)] = folds("holdout", data.applications, SEED)
    training, held_out = data.select(train), data.select(test)
    found: dict[object, peer.Clustering] = {}
    for base in bases:
        scaling = scaling_values(training.time_ms, training.grid.index(base))
        for region, values in region_values(scaling).items():
            key = key_of(region, base)
            if key not in found:
                found[key] = peer.cluster(values, CLUSTERS, SEED)
    work = delayed(error_of_base)
    return Parallel(JOBS)(work(training, held_out, base, found) for base in bases)


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
    bases = wu2015.varied_bases(data.grid, data.grid.mid, ())
    started = time.perf_counter()
    errors = ours(data)
    spent = time.perf_counter() - started
    peak = peak_of_all_mib()
    started = time.perf_counter()
    found = theirs(data, bases)
    spent_peer = time.perf_counter() - started
    missed = sum(lacking for _, lacking in found)
    yield Row(
        f"study of {len(bases)} bases, {9 * len(bases)} networks",
        f"{spent:.1f} s", f"{spent_peer:.1f} s", f"{spent_peer / spent:.1f}",
        f"scikit-learn (lbfgs) and joblib, {JOBS} processes; {missed} networks not converged",
    )  # fmt: skip
    error = float(np.mean([error for error, _ in found]))
    yield Row("its validation error", f"{np.mean(errors):.2f} %", f"{error:.2f} %")
    yield Row("its peak memory, all processes at most", f"{peak:.0f} MiB")
