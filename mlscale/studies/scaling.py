"""How measured kernels scale over a grid: what each axis gains, and kernels that differ most.

Source: Wu et al., HPCA 2015, section II and Fig. 1, which shows four such surfaces.
"""

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import AXES
from mlscale.data.measurements import Measurements
from mlscale.studies.base import Rows


def speed_ups(data: Measurements) -> Floats:
    """Return the speed-up (K, C, E, M) over the configuration with every axis at its lowest."""
    return data.time_ms[:, :1, :1, :1] / data.time_ms


def scaling_rows(data: Measurements) -> Rows:
    """Return for each kernel what the axes gain, and where it is fastest.

    gain: by axis, of those with several steps, how much faster its highest step is than its lowest
    one, the other axes at their highest. speed_up: of all axes together. highest_behind_percent:
    by how much the highest configuration takes longer than the fastest one, 0 where it is that.
    """
    rates = speed_ups(data)
    long = [a for a, axis in enumerate(AXES) if len(getattr(data.grid, axis)) > 1]
    rows = []
    for kernel, application, of_kernel in zip(data.kernels, data.applications, rates, strict=True):
        top = of_kernel[-1, -1, -1]
        best = np.unravel_index(of_kernel.argmax(), of_kernel.shape)
        rows.append(
            {
                "kernel": kernel,
                "application": application,
                "gain": {AXES[a]: float(top / of_kernel[_lowest_of(a)]) for a in long},
                "speed_up": float(top),
                "fastest": data.grid.config(tuple(map(int, best))).as_dict(),
                "highest_behind_percent": float(100 * (of_kernel[best] / top - 1)),
            }
        )
    return rows


def unlike_kernels(data: Measurements, count: int) -> list[int]:
    """Return the positions of kernels whose surfaces differ most.

    The first is the one with the largest speed-up; each further one is farthest from the nearest
    of those before, by the logarithms of the speed-ups.
    """
    points = np.log(speed_ups(data)).reshape(len(data.kernels), -1)
    positions = [int(points[:, -1].argmax())]
    while len(positions) < min(count, len(points)):
        apart = np.linalg.norm(points[:, None] - points[positions], axis=2).min(axis=1)
        positions.append(int(apart.argmax()))
    return positions


def _lowest_of(axis: int) -> tuple[int, ...]:
    """Return the index of the highest configuration with that axis at its lowest step."""
    return tuple(0 if a == axis else -1 for a in range(len(AXES)))
