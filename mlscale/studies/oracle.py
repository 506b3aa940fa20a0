"""The oracle of Wu et al., section V-B2: it knows the kernel's surface, and picks its cluster."""

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.predictors.wu.clusters import region_values, scaling_from_regions
from mlscale.predictors.wu.scaling import scaling_values, walk


def oracle_surfaces(
    training: Measurements,
    kernels: Measurements,
    base: HardwareConfig,
    quantity: str,
    clusters: int,
    seed: int,
) -> Floats:
    """Surfaces (K, C, E, M) of kernels whose best cluster is known in every cluster set.

    The clusters are those of the training kernels; each kernel takes the centroid nearest to
    its own scaling values. For the training kernels themselves this is the paper's oracle; for
    others it bounds what any classifier could reach with these clusters.
    """
    from mlscale.predictors.wu.training import cluster

    at = training.grid.index(base)
    learnt = region_values(scaling_values(training.quantity(quantity), at))
    own = region_values(scaling_values(kernels.quantity(quantity), at))
    chosen = {}
    for region, values in learnt.items():
        _, centroids = cluster(values, clusters, seed)
        distances = np.linalg.norm(own[region][:, None, :] - centroids, axis=2)
        chosen[region] = centroids[distances.argmin(axis=1)]
    return walk(scaling_from_regions(chosen, training.grid.shape, len(kernels.kernels)), at)
