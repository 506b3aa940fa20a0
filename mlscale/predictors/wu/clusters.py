"""Regions, cluster sets and the networks that choose among clusters (Wu et al., HPCA 2015)."""

from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import Index
from mlscale.predictors.wu.scaling import ScalingValues

CU_AXIS = -1  # the region of the cluster set for the CU axis; the others are indices of CU counts


@dataclass(frozen=True, eq=False)
class Network:
    """A classifier (Fig. 9): F features -> K hidden -> K outputs, sigmoid on both layers.

    hidden_weights (F, K), hidden_bias (K,), output_weights (K, K), output_bias (K,).
    """

    hidden_weights: Floats
    hidden_bias: Floats
    output_weights: Floats
    output_bias: Floats

    def outputs(self, features: Floats) -> Floats:
        """One value in (0, 1) per cluster, (N, K), from features (N, F) in [0, 1]."""
        hidden = sigmoid(features @ self.hidden_weights + self.hidden_bias)
        return sigmoid(hidden @ self.output_weights + self.output_bias)


@dataclass(frozen=True, eq=False)
class ClusterSet:
    """The clusters of one region (section III-C) and the network that chooses among them.

    region: the index of a CU count, or CU_AXIS. centroids (K, V): mean scaling values.
    """

    region: int
    centroids: Floats
    network: Network


def region_values(scaling: ScalingValues) -> dict[int, Floats]:
    """What K-means sees: for each region the scaling values (n, V) of n kernels.

    Per CU count memory and engine scaling values, concatenated; the CU axis by itself. A region
    without values (every axis of length 1) does not exist.
    """
    count, cu_counts = scaling.memory.shape[:2]
    values = {
        c: np.concatenate(
            [scaling.memory[:, c].reshape(count, -1), scaling.engine[:, c].reshape(count, -1)],
            axis=1,
        )
        for c in range(cu_counts)
    }
    values[CU_AXIS] = scaling.cu
    return {region: v for region, v in values.items() if v.shape[1]}


def region_sizes(shape: Index) -> dict[int, int]:
    """V of every region that exists on a grid of the shape (C, E, M)."""
    cu_counts, engines, memories = shape
    sizes = dict.fromkeys(range(cu_counts), engines * (memories - 1) + (engines - 1) * memories)
    sizes[CU_AXIS] = cu_counts - 1
    return {region: size for region, size in sizes.items() if size}


def scaling_from_regions(regions: dict[int, Floats], shape: Index, count: int) -> ScalingValues:
    """The inverse of region_values, for `count` kernels on a grid of the shape (C, E, M)."""
    cu_counts, engines, memories = shape
    memory = np.ones((count, cu_counts, engines, memories - 1))
    engine = np.ones((count, cu_counts, engines - 1, memories))
    split = engines * (memories - 1)
    for region, values in regions.items():
        if region != CU_AXIS:
            memory[:, region] = values[:, :split].reshape(count, engines, memories - 1)
            engine[:, region] = values[:, split:].reshape(count, engines - 1, memories)
    cu = regions.get(CU_AXIS, np.ones((count, cu_counts - 1)))
    return ScalingValues(memory, engine, cu)


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))
