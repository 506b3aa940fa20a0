"""Kernels that run one after the other: their summed time and mean power."""

from typing import TypeVar

import numpy as np

from mlscale.arrays import Floats

Power = TypeVar("Power", Floats, Floats | None)


def run_in_sequence(time_ms: Floats, power_w: Power, launches: Floats) -> tuple[Floats, Power]:
    """Kernels run one after the other: summed time [ms], and mean power over that time [W].

    time_ms, power_w (K, ...) of one launch each, such as (K, C, E, M); launches (K,): how often
    each kernel runs. Time x power of the answer, (...), is the sum of all launches' energies.

    An end of an interval needs its own times where energy is meant, the predicted ones where
    power is: mean power falls as a kernel of little power takes longer, so with the times' ends
    the high end may be the lower, or miss the prediction.

    Example:
        >>> power_w, times_ms = np.array([100.0, 300.0]), [[0.5, 1.0], [1.0, 1.0], [2.0, 1.0]]
        >>> for time_ms in times_ms:  # the low end, the prediction, the high end; power is exact
        ...     run_ms, run_w = run_in_sequence(np.array(time_ms), power_w, np.ones(2))
        ...     print(run_ms.round(1), run_w.round(1), (run_ms * run_w).round(1))
        1.5 233.3 350.0
        2.0 200.0 400.0
        3.0 166.7 500.0
    """
    of_kernels = launches.reshape(-1, *[1] * (time_ms.ndim - 1)) * time_ms
    total = np.asarray(of_kernels.sum(axis=0))
    return total, power_w if power_w is None else (of_kernels * power_w).sum(axis=0) / total
