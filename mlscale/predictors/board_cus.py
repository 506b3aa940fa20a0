"""How time follows the CU count, and how sure that is: the law of time over counts, n for f.

No model file holds a table of it for any GPU, so that what is known of kernels before they are read
is set here. 178 kernels at 6 SM counts of an H100 and an H200 (datasets/) have a bend p of 1.2 in
median; kernels that fill an RTX A6000 or an L40 have 2.5 to 7.
"""

from statistics import NormalDist

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import scaling_bounds
from mlscale.predictors.board_law import Population
from mlscale.predictors.conditioning import SurfacePosterior

CU_LAW = Population(np.array([1.5, 1.0]), np.diag([2.5, 0.8]) ** 2, 0.05)
# Of intervals' half-widths, in the log, the least; and times a Gaussian's: 90 % of the two suites'
# times at other counts were held, from a second reading at 96, 64 or 32 SMs of 132.
LEAST_CU_SPREAD, SCORE = 0.03, 1.2
WAVES = 0.05  # of the log; workgroups are dealt to CUs as wholes, so that times rise in steps


def ends_over_cus(
    profiles: Profiles, grid: ConfigGrid, fit: SurfacePosterior, coverage: float
) -> list[Floats]:
    """Low and high log time ratios (K, N) on a grid of CU counts, given all readings.

    From each reading time is unchanged to in proportion to the count, WAVES further out.
    """
    score = SCORE * NormalDist().inv_cdf((1 + coverage) / 2)
    is_base = grid.settings()["cu_count"] == profiles.base.cu_count
    width = np.where(is_base, 0, score * np.sqrt(fit.after + LEAST_CU_SPREAD**2))
    low, high = fit.logs - width, fit.logs + width
    at_base = np.ones(len(profiles.kernels))
    for config, factors in [(profiles.base, at_base), *profiles.measured_factors("time")]:
        least, most = (np.log(end).ravel() for end in scaling_bounds(grid, config))
        reading = np.log(factors)[:, None]
        low = np.fmax(low, reading + least - WAVES)
        high = np.fmin(high, reading + most + WAVES)
    return [np.minimum(low, fit.logs), np.maximum(high, fit.logs)]
