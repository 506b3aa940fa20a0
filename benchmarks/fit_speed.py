"""Training `bottleneck` on 30 kernels over clocks: made kernels of the HD 7970 set at 32 CUs.

The peer in the same run is `extra-trees`, scikit-learn's forest on the same counters.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from make_hd7970 import make_hd7970
from table import Row
from timing import seconds

from mlscale.data.measurements import Measurements
from mlscale.predictors import create
from mlscale.predictors.bottleneck.fit import CurveFit, GpuKernels, fit_curves

KERNELS, SEED = 30, 0


def clocks_only() -> Measurements:
    """Every third kernel of the made set, at all CUs: (30, 1, 8, 7)."""
    made = make_hd7970(SEED).select(range(0, 3 * KERNELS, 3))
    return replace(made.at_steps("cu_count", slice(-1, None)), power_samples=None)


def rows() -> Iterator[Row]:
    """Seconds of the whole training, of one fit, and of the forest."""
    data = clocks_only()
    base = data.grid.mid
    what = f"train {KERNELS} kernels x {data.grid.size} configurations"
    ours = seconds(lambda: create("bottleneck").fit(data, base))
    forest = seconds(lambda: create("extra-trees", features="table2").fit(data, base))
    peer_is = "extra-trees, by scikit-learn; without intervals"
    yield Row.beside(what, ours, forest, "{:.2f} s", peer_is, "{:.1f}")
    kernels = GpuKernels.from_table(data, base)
    each = [CurveFit((kernels.select(np.delete(np.arange(KERNELS), k)),), 1.0) for k in range(11)]
    batch, alone = seconds(lambda: fit_curves(each)), seconds(lambda: fit_curves(each[:1]))
    yield Row("one of its fits of the curve, in its batch", f"{1e3 * batch / len(each):.0f} ms")
    yield Row("the same alone", f"{1e3 * alone:.0f} ms")
