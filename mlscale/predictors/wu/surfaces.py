"""The clusters of a fitted `wu` for a reader: centroids as surfaces, and the kernels of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.predictors.features import TrainingKernels
from mlscale.predictors.wu.clusters import CU_AXIS, ClusterSet, centroid_factors


@dataclass(frozen=True, eq=False)
class ClusterSurfaces:
    """The K clusters of one region.

    region: what it covers, for a reader. grid: that part of the model's; base: where on it every
    factor is 1. factors (K, C, E, M) on that grid. kernels: for each cluster the training kernels
    that the network gives to it; None where the model file does not keep them.
    """

    region: str
    grid: ConfigGrid
    base: HardwareConfig
    factors: Floats
    kernels: tuple[tuple[str, ...], ...] | None


def cluster_surfaces(
    sets: Sequence[ClusterSet],
    grid: ConfigGrid,
    base: HardwareConfig,
    training: TrainingKernels | None,
    chosen: Indices | None,
) -> tuple[ClusterSurfaces, ...]:
    """Return the clusters of each set. chosen (S, n): those of the training kernels."""
    surfaces = []
    for s, one in enumerate(sets):
        part, at = region_part(one.region, grid, base)
        factors = centroid_factors(one, grid.shape, grid.index(base))
        kernels = None
        if training is not None and chosen is not None:
            kernels = tuple(
                tuple(
                    name
                    for name, cluster in zip(training.kernels, chosen[s], strict=True)
                    if cluster == k
                )
                for k in range(len(one.centroids))
            )
        region = region_name(one.region, grid)
        surfaces.append(
            ClusterSurfaces(region, part, at, factors.reshape(-1, *part.shape), kernels)
        )
    return tuple(surfaces)


def region_part(
    region: int, grid: ConfigGrid, base: HardwareConfig
) -> tuple[ConfigGrid, HardwareConfig]:
    """Return the part of the grid that a region covers, and where its factors are 1."""
    if region == CU_AXIS:
        return ConfigGrid(grid.cu_count, (base.engine_mhz,), (base.memory_mhz,)), base
    cu_count = grid.cu_count[region]
    at = HardwareConfig(cu_count, base.engine_mhz, base.memory_mhz)
    return ConfigGrid((cu_count,), grid.engine_mhz, grid.memory_mhz), at


def region_name(region: int, grid: ConfigGrid) -> str:
    """Return what a cluster set covers, for a reader."""
    if region == CU_AXIS:
        return "compute units at the base's clocks"
    return f"clocks at {grid.cu_count[region]} compute units"
