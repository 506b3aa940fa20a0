"""What error tables show: the summary of percentage errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats


@dataclass(frozen=True)
class ErrorSummary:
    """The figures every error table shows, all in percent.

    mape: mean over kernels and targets; median_kernel: median of the kernels' means;
    p90: 90th percentile over kernel x target; worst_kernel: the kernel of the largest mean.
    """

    mape: float
    median_kernel: float
    p90: float
    worst_kernel: str
    worst_kernel_mape: float


def kernel_means(errors: Floats, kernels: Sequence[str]) -> dict[str, float]:
    """Return the mean error [%] of each kernel; errors (n, targets), the kernel of each row."""
    names = np.array(kernels)
    return {kernel: float(errors[names == kernel].mean()) for kernel in dict.fromkeys(kernels)}


def summarise(errors: Floats, kernels: Sequence[str]) -> ErrorSummary:
    """Summarise errors (n, targets) [%]; a kernel may have several rows, one for each seed."""
    means = kernel_means(errors, kernels)
    worst = max(means, key=lambda kernel: means[kernel])
    return ErrorSummary(
        mape=float(errors.mean()),
        median_kernel=float(np.median(list(means.values()))),
        p90=float(np.percentile(errors, 90)),
        worst_kernel=worst,
        worst_kernel_mape=means[worst],
    )
