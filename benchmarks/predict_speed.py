"""Predictions in this process: one kernel, and a batch, to all 448 configurations of the made set.

The peer is the same model built of scikit-learn's parts: a fitted MinMaxScaler, an MLPClassifier
for each cluster set with the weights of ours, the centroids and the walk. Both must agree. Times
are the processor's, on all cores together, so that other work on them does not count.
"""

import statistics
import sys
from collections.abc import Callable, Iterator

import numpy as np
from make_hd7970 import make_hd7970
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MinMaxScaler
from table import Row
from timing import runs

from mlscale.data.measurements import Measurements
from mlscale.predictors.wu import Wu
from mlscale.predictors.wu_clusters import Network, scaling_from_regions, walk

Floats = NDArray[np.float64]

RUNS = 501
BATCH, BATCH_RUNS = 100_000, 5


def as_classifier(network: Network, points: Floats) -> MLPClassifier:
    """A scikit-learn network with the weights of ours, but for its softmax."""
    clusters = len(network.output_bias)
    peer = MLPClassifier((clusters,), "logistic", max_iter=1)
    labels = np.arange(clusters)
    peer.partial_fit(np.resize(points, (clusters, points.shape[1])), labels, classes=labels)
    peer.coefs_ = [network.hidden_weights, network.output_weights]
    peer.intercepts_ = [network.hidden_bias, network.output_bias]
    return peer


def scikit_learn_parts(model: Wu, data: Measurements) -> Callable[[Floats], Floats]:
    """The model as counters (n, F) -> surfaces (n, C, E, M)."""
    at = data.grid.index(model.base_)
    columns = [data.counter_names.index(name) for name in model.scaling_.names]
    counters = data.profiles(model.base_).counters[:, columns]
    scaler = MinMaxScaler(clip=True).fit(counters)
    points = scaler.transform(counters)
    sets = [(s.region, s.centroids, as_classifier(s.network, points)) for s in model.cluster_sets_]

    def predict(rows: Floats) -> Floats:
        scaled = scaler.transform(rows[:, columns])
        chosen = {region: means[network.predict(scaled)] for region, means, network in sets}
        return walk(scaling_from_regions(chosen, data.grid.shape, len(rows)), at)

    return predict


def median_us(work: Callable[[], object]) -> float:
    """Median processor time of a call [us]."""
    return 1e6 * statistics.median(spent.processor_s for spent in runs(work, RUNS))


def rows() -> Iterator[Row]:
    """Microseconds for one kernel, and the speed of a batch as a share of a copy's."""
    data = make_hd7970(0)
    base = data.grid.mid
    model = Wu(features="table2", clusters=12).fit(data, base)
    profiles = data.profiles(base)
    peer = scikit_learn_parts(model, data)
    if not np.allclose(peer(profiles.counters), model.predict(profiles).values, rtol=1e-9):
        sys.exit("predict_speed: the peer predicts something else")
    one = profiles.select([0])
    ours, theirs = median_us(lambda: model.predict(one)), median_us(lambda: peer(one.counters))
    what = f"one kernel, {data.grid.size} configurations"
    peer_is = f"the same of scikit-learn's parts; processor time, medians of {RUNS}"
    yield Row.beside(what, ours, theirs, "{:.0f} us", peer_is, "{:.1f}")
    drawn = np.random.default_rng(0).integers(len(profiles.kernels), size=BATCH)
    batch = profiles.select(drawn.tolist())
    values = model.predict(batch).values
    predicting, copying = (
        min(spent.processor_s for spent in runs(work, BATCH_RUNS))
        for work in (
            lambda: model.predict(batch).values,
            lambda: np.copyto(np.empty_like(values), values),
        )
    )
    size = values.nbytes / 1e9
    yield Row(
        f"{BATCH} kernels, {size:.2f} GB of surfaces",
        f"{size / predicting:.2f} GB/s", f"{size / copying:.2f} GB/s",
        f"{copying / predicting:.2f}",
        f"np.copyto to a new array; processor time, best of {BATCH_RUNS}",
    )  # fmt: skip
