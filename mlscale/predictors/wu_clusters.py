"""Clusters of scaling values, the networks that choose among them, and how both predict.

Source: Wu et al., HPCA 2015. Scaling values and the walk that multiplies them into a surface:
section III-B, Fig. 7 and 8, Eq. (1). Clusters and networks: section III-C and Fig. 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.predictors.state import INLINE

Singles = NDArray[np.float32]

LOSSES = CROSS_ENTROPY, SQUARED = ("cross-entropy", "squared")  # that networks are trained by
CU_AXIS = -1  # the region of the cluster set for the CU axis; the others are indices of CU counts
KERNELS_AT_ONCE = 512  # whose surfaces the processor's cache holds


@dataclass(frozen=True, eq=False)
class ScalingValues:
    """Ratios next / previous along each axis; leading dimensions (kernels, clusters) are free.

    memory (..., C, E, M-1) for a fixed engine clock (Fig. 7b), engine (..., C, E-1, M) for a
    fixed memory clock (Fig. 7c), cu (..., C-1) at the base engine and memory clock (Fig. 8).
    An axis of length 1 has no values.
    """

    memory: Floats
    engine: Floats
    cu: Floats


def scaling_values(quantity: Floats, base: Index) -> ScalingValues:
    """Return the scaling values of kernels whose time or power is known on the whole grid.

    quantity: (..., C, E, M), positive. base: the index of the base configuration.
    """
    _, base_engine, base_memory = base
    at_base_clocks = quantity[..., base_engine, base_memory]
    return ScalingValues(
        memory=quantity[..., 1:] / quantity[..., :-1],
        engine=quantity[..., 1:, :] / quantity[..., :-1, :],
        cu=at_base_clocks[..., 1:] / at_base_clocks[..., :-1],
    )


def walk(scaling: ScalingValues, base: Index) -> Floats:
    """Return the surface (..., C, E, M), relative to the base, that the scaling values span.

    The walk goes from the base to every target: CU steps first, at the base's clocks; then
    engine steps at the base's memory clock; then memory steps at the target's engine clock, where
    Equation (1) as printed, m_(i,2), runs over rows of Fig. 7, which are engine clocks. The last
    two use the values of the target's CU count; a step down divides.
    """
    base_cu, base_engine, base_memory = base
    cu_steps = _log_from(scaling.cu, base_cu)[..., :, None, None]
    engine_steps = _log_from(scaling.engine[..., base_memory], base_engine)[..., None]
    memory_steps = _log_from(scaling.memory, base_memory)
    return np.exp(cu_steps + engine_steps + memory_steps)


def _log_from(ratios: Floats, start: int) -> Floats:
    """Return the running log product of step ratios along the last axis, 0 at index start."""
    total = np.zeros((*ratios.shape[:-1], ratios.shape[-1] + 1))
    np.cumsum(np.log(ratios), axis=-1, out=total[..., 1:])
    return np.asarray(total - total[..., start : start + 1])


@dataclass(frozen=True, eq=False)
class Network:
    """A classifier (Fig. 9): F features -> K hidden -> K outputs, sigmoid on both layers.

    hidden_weights (F, K), hidden_bias (K,), output_weights (K, K), output_bias (K,).
    """

    hidden_weights: Annotated[Floats, "F K"]
    hidden_bias: Annotated[Floats, "K"]
    output_weights: Annotated[Floats, "K K"]
    output_bias: Annotated[Floats, "K"]


@dataclass(frozen=True, eq=False)
class ClusterSet:
    """The clusters of one region (section III-C) and the network that chooses among them.

    region: the index of a CU count, or CU_AXIS. centroids (K, V): mean scaling values.
    """

    region: int
    centroids: Annotated[Floats, "K V"]
    network: Annotated[Network, INLINE]


def region_values(scaling: ScalingValues) -> dict[int, Floats]:
    """Return what K-means sees: for each region the scaling values (n, V) of n kernels.

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


def scaling_from_regions(regions: dict[int, Floats], shape: Index, count: int) -> ScalingValues:
    """Return the inverse of region_values, for `count` kernels on a grid of the shape (C, E, M)."""
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


@dataclass(frozen=True, eq=False)
class WalkTables:
    """The walk in two parts, which multiply: along the CU axis, then within a CU count.

    S networks, one for each CU count if the grid has several clocks, then that of the CU axis if
    it has one. They are padded to K clusters, in single precision as they were trained, to be
    multiplied from the left: hidden_weights (S*K, F), hidden_bias (S*K, 1), output_weights
    (S, K, K), output_bias (S, K, 1); they make of sigmoid(x) = (1 + tanh(x / 2)) / 2 a tanh.
    cu_factors (K, C): the base's clocks at every CU count; clock_factors (C, K, E*M): every pair
    of clocks, relative to the base's clocks at that CU count.
    """

    shape: Index
    hidden_weights: Singles
    hidden_bias: Singles
    output_weights: Singles
    output_bias: Singles
    cu_factors: Floats
    clock_factors: Floats

    @classmethod
    def from_sets(
        cls, sets: Sequence[ClusterSet], features: int, grid: ConfigGrid, base: HardwareConfig
    ) -> Self:
        """Walk along every centroid once, and put the networks of F features side by side."""
        cu_counts, engines, memories = grid.shape
        most = max((len(one.centroids) for one in sets), default=1)
        hidden_weights = np.zeros((len(sets), most, features), np.float32)
        hidden_bias = np.zeros((len(sets), most, 1), np.float32)
        output_weights = np.zeros((len(sets), most, most), np.float32)
        output_bias = np.full((len(sets), most, 1), -np.inf, np.float32)
        cu_factors = np.ones((most, cu_counts))
        clock_factors = np.ones((cu_counts, most, engines * memories))
        cu_axis_last = sorted(sets, key=lambda one: (one.region == CU_AXIS, one.region))
        for s, one in enumerate(cu_axis_last):
            network, count = one.network, len(one.centroids)
            hidden_weights[s, :count] = network.hidden_weights.T / 2
            hidden_bias[s, :count, 0] = network.hidden_bias / 2
            output_weights[s, :count, :count] = network.output_weights.T / 2
            output_bias[s, :count, 0] = network.output_bias + network.output_weights.sum(axis=0) / 2
            factors = centroid_factors(one.region, one.centroids, grid.shape, grid.index(base))
            if one.region == CU_AXIS:
                cu_factors[:count] = factors
            else:
                clock_factors[one.region, :count] = factors.reshape(count, -1)
        return cls(
            shape=grid.shape,
            hidden_weights=hidden_weights.reshape(-1, features),
            hidden_bias=hidden_bias.reshape(-1, 1),
            output_weights=output_weights,
            output_bias=output_bias,
            cu_factors=cu_factors,
            clock_factors=clock_factors,
        )

    def surfaces(self, features: Floats) -> Floats:
        """Return factors (n, C, E, M) from normalised features (n, F)."""
        cu_counts, _, pairs = self.clock_factors.shape
        values = np.empty((len(features), cu_counts, pairs))
        for start in range(0, len(features), KERNELS_AT_ONCE):
            part = slice(start, start + KERNELS_AT_ONCE)
            chosen = self.chosen(features[part])
            values[part] = 1
            if pairs > 1:
                values[part] = self.clock_factors[np.arange(cu_counts), chosen[:cu_counts].T]
            if cu_counts > 1:
                values[part] *= self.cu_factors[chosen[-1], :, None]
        return values.reshape(-1, *self.shape)

    def chosen(self, features: Floats) -> Indices:
        """Return the cluster (S, n) whose output is largest in each network.

        The output layer's sigmoid is left out: it does not change which is largest.
        """
        hidden = np.tanh(self.hidden_weights @ features.T.astype(np.float32) + self.hidden_bias)
        hidden = hidden.reshape(*self.output_bias.shape[:2], len(features))
        return np.asarray((self.output_weights @ hidden + self.output_bias).argmax(axis=1))


def centroid_factors(region: int, centroids: Floats, shape: Index, at: Index) -> Floats:
    """Return the surfaces that a region's centroids (K, V) span, on a grid of the shape (C, E, M).

    Of the CU axis (K, C), at the clocks of the base, whose index is `at`; else (K, E, M), relative
    to the base's clocks at that CU count.
    """
    scaling = scaling_from_regions({region: centroids}, shape, len(centroids))
    walked = walk(scaling, at)
    return walked[:, :, at[1], at[2]] if region == CU_AXIS else walked[:, region]
