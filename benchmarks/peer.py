"""The peer in `train_speed` and `scaling`: Wu's method of scikit-learn's parts."""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from mlscale.predictors.wu_training import WEIGHT_DECAY

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Clustering = tuple[NDArray[np.intp], Singles]

MAX_ITERATIONS = 3000  # of lbfgs


def cluster(values: Floats, clusters: int, seed: int) -> Clustering:
    """Labels and centroids of scaling values (n, V), in single precision as ours."""
    with threadpool_limits(1):
        means = KMeans(clusters, n_init=10, random_state=seed).fit(values.astype(np.float32))
    return means.labels_, means.cluster_centers_


def train(
    points: Singles, clusterings: dict[int, Clustering], clusters: int, seed: int
) -> tuple[dict[int, MLPClassifier], int]:
    """A network for each region from features (n, F), and how many did not converge."""
    networks = {}
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always", ConvergenceWarning)
        for region, (labels, _) in clusterings.items():
            networks[region] = MLPClassifier(
                (clusters,), "logistic", solver="lbfgs", alpha=WEIGHT_DECAY,
                max_iter=MAX_ITERATIONS, random_state=seed,
            ).fit(points, labels)  # fmt: skip
    return networks, len(caught)


def choose(
    points: Singles, networks: dict[int, MLPClassifier], clusterings: dict[int, Clustering]
) -> dict[int, Floats]:
    """For each region the centroids that the networks choose."""
    return {
        region: clusterings[region][1][network.predict(points)].astype(np.float64)
        for region, network in networks.items()
    }
