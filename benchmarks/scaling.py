"""Time and memory of `wu` as kernels and configurations grow, each size in its own process.

Made kernels: the made HD 7970 set's, drawn with replacement; each takes its surface, interpolated
to the grid and raised to a power of its own, and its counters with 5 % noise. Fitting and
predicting are of as many kernels; the data's own memory is in the peak. The peer is Wu's method of
scikit-learn's parts, on one thread.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from make_hd7970 import make_hd7970
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MinMaxScaler
from table import Row
from threadpoolctl import threadpool_limits
from timing import in_own_process, peak_mib, timed

from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import interpolate
from mlscale.predictors.wu import Wu
from mlscale.predictors.wu_clusters import WEIGHT_DECAY, region_values, scaling_values

KERNELS = (100, 1000, 10_000)
SHAPES = ((2, 5, 5), (8, 8, 7), (10, 20, 20))
CLUSTERS, SEED = 12, 0
MAX_ITERATIONS_OF_LBFGS = 3000


def made_kernels(count: int, shape: tuple[int, int, int]) -> Measurements:
    """So many kernels on a grid of the shape over the ranges of the made set."""
    made = make_hd7970(SEED)
    old, base = made.grid, made.grid.mid
    cu, engine, memory = (
        np.linspace(axis[0], axis[-1], steps)
        for axis, steps in zip((old.cu_count, old.engine_mhz, old.memory_mhz), shape, strict=True)
    )
    grid = ConfigGrid(
        tuple(np.rint(cu).astype(int).tolist()), tuple(engine.tolist()), tuple(memory.tolist())
    )
    times = np.stack([interpolate(made.time_ms, old, config)[0] for config in grid], axis=1)
    random = np.random.default_rng(SEED)
    drawn = random.integers(len(times), size=count)
    time_ms = times[drawn] ** random.uniform(0.8, 1.2, (count, 1))
    counters = made.profiles(base).counters[drawn]
    counters = counters * np.exp(random.normal(0, 0.05, counters.shape))
    everywhere = (1, count, *grid.shape, counters.shape[1])
    return replace(
        made,
        grid=grid,
        kernels=tuple(f"kernel{k}" for k in range(count)),
        applications=tuple(made.applications[k] for k in drawn),
        time_samples=time_ms.reshape(1, count, *grid.shape),
        power_samples=None,
        counter_samples=np.broadcast_to(counters[None, :, None, None, None], everywhere),
    )


def measure(who: str, count: int, shape: tuple[int, int, int]) -> dict[str, float]:
    """Seconds to fit and, of ours, to predict, and the peak memory [MiB]."""
    data = made_kernels(count, shape)
    base = data.grid.mid
    profiles = data.profiles(base)
    if who == "peer":
        _, fit = timed(lambda: fit_peer(data, profiles.counters.astype(np.float32)))
        return {"fit": fit.wall_s, "peak": peak_mib()}
    import torch  # noqa: F401, which the first fit imports: the peer's parts are there too

    wu = Wu(features="table2", clusters=CLUSTERS, seed=SEED)
    model, fit = timed(lambda: wu.fit(data, base))
    _, predict = timed(lambda: model.predict(profiles))
    return {"fit": fit.wall_s, "predict": predict.wall_s, "peak": peak_mib()}


def fit_peer(data: Measurements, counters: NDArray[np.float32]) -> None:
    """K-means and a network for each region by scikit-learn, in single precision as ours."""
    points = MinMaxScaler((-1, 1)).fit_transform(counters)
    scaling = scaling_values(data.time_ms, data.grid.index(data.grid.mid))
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for values in region_values(scaling).values():
            means = KMeans(CLUSTERS, n_init=10, random_state=SEED).fit(values.astype(np.float32))
            MLPClassifier(
                (CLUSTERS,), "logistic", solver="lbfgs", alpha=WEIGHT_DECAY,
                max_iter=MAX_ITERATIONS_OF_LBFGS, random_state=SEED,
            ).fit(points, means.labels_)  # fmt: skip


def rows() -> Iterator[Row]:
    """Two rows for each size: fitting beside the peer, and predicting."""
    for shape in SHAPES:
        for count in KERNELS:
            ours, theirs = (
                in_own_process(measure, who, count, shape) for who in ("mlscale", "peer")
            )
            size = f"{count} kernels x {int(np.prod(shape))} configurations"
            peer_is = "scikit-learn's KMeans and MLPClassifier"
            yield Row.beside(
                f"fit {size}", ours["fit"], theirs["fit"], "{:.2f} s", peer_is, "{:.1f}"
            )
            yield Row.beside("  its peak memory", ours["peak"], theirs["peak"], "{:.0f} MiB")
            yield Row("  predict as many", f"{1e6 * ours['predict'] / count:.1f} us each")
