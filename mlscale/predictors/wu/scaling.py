"""Scaling values of a kernel and the walk that multiplies them into a surface.

Source: Wu et al., HPCA 2015, section III-B, Fig. 7 and 8, Eq. (1).
"""

from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import Index


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
    engine steps at the base's memory clock; then memory steps at the target's engine clock.
    The last two use the values of the target's CU count; a step down divides. Equation (1)
    prints its memory product as m_(i,2). A row of that matrix is an engine clock (Fig. 7): as it is
    printed the product would run over rows; with the indices exchanged, m_(2,i), at row 2, and not
    at row 3, which is its target's. Here it runs at the row of the target.
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
