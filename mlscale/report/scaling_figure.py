"""Measured scaling surfaces of kernels as in Fig. 1 of Wu et al., HPCA 2015; PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mlscale.data.grid import AXES
from mlscale.data.measurements import Measurements
from mlscale.report.style import save_figure, with_origin
from mlscale.report.surface_panels import surface_panels, with_unit
from mlscale.studies.scaling import speed_ups
from mlscale.text import shortened


def draw_scaling(
    folder: Path, table: str, data: Measurements, kernels: Sequence[int]
) -> list[Path]:
    """Draw the speed-up of these kernels, by position, a panel each; the files. InputError.

    CU count across where it varies, else the engine clock; a line for each memory clock, else for
    each engine clock. A third axis stays at its highest step.
    """
    long = [axis for axis in AXES if len(getattr(data.grid, axis)) > 1] or ["engine_mhz"]
    across, lines = long[0], long[-1] if len(long) > 1 else _another(long[0])
    shown = {across, lines}
    part = tuple(slice(None) if axis in shown else slice(-1, None) for axis in AXES)
    order = [AXES.index(across), AXES.index(lines)]
    rates = speed_ups(data)
    surfaces = {
        f"({chr(ord('a') + n)}) {shortened(data.kernels[k], 28)}": np.moveaxis(
            rates[k][part], order, (0, 1)
        )[:, :, 0]
        for n, k in enumerate(kernels)
    }
    fixed = [with_unit(axis, getattr(data.grid, axis)[-1]) for axis in AXES if axis not in shown]
    heading = f"{with_origin(table, data.metadata.get('origin'))} on {data.device}"
    title = f"{heading}\nspeed-up over the lowest configuration, {', '.join(fixed)}"
    figure = surface_panels(
        title,
        "speed-up",
        surfaces,
        (across, getattr(data.grid, across)),
        (lines, getattr(data.grid, lines)),
    )
    return save_figure(figure, folder / f"fig1-scaling-{table}")


def _another(axis: str) -> str:
    return next(one for one in AXES if one != axis)
