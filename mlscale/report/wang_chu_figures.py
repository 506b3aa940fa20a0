"""The figures of Wang and Chu 2018 from any table: Fig. 2, 12, 13 and 14, each as PNG and SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import ConfigGrid
from mlscale.papers.wang_chu_gpus import GpuParameters
from mlscale.report.style import (
    COLOURS,
    HATCH,
    MARKERS,
    bars_with_values,
    legend_below,
    name_rows,
    one_panel,
    panels_in_rows,
    save_figure,
)
from mlscale.studies.wang_chu import WangChuErrors

_COMPUTE, _MEMORY = COLOURS[1], COLOURS[0]
_OTHERS = "#BBBBBB"


@dataclass(frozen=True)
class _Sweep:
    """One panel: the clock that moves, and where the other one stands."""

    name: str
    clocks: tuple[float, ...]
    fixed: str
    index: tuple[slice | int, slice | int]

    def of(self, values: Floats) -> Floats:
        """Values (K, E, M) along the clock that moves, (K, clocks)."""
        return np.asarray(values[(slice(None), *self.index)])


def draw_figures(folder: Path, title: str, errors: WangChuErrors, gpu: GpuParameters) -> list[Path]:
    """All figures of the errors of a table; returns the files. Raises InputError."""
    data, signed = errors.data, errors.signed_errors[:, 0]
    in_table = f"{data.device}, {data.metadata.get('origin') or 'in the table'}"
    compute_bound = (errors.base_case == 9) | (errors.base_case == 15)
    return [
        *draw_speedups(folder, in_table, data.grid, data.kernels, data.time_ms[:, 0]),
        *draw_instructions(folder, in_table, data.kernels, errors.instructions(gpu)),
        *draw_signed_errors(folder, title, data.grid, data.kernels, signed),
        *draw_kernel_errors(folder, title, data.kernels, errors.errors.mean(axis=1), compute_bound),
    ]


def draw_speedups(
    folder: Path, title: str, grid: ConfigGrid, kernels: Sequence[str], time_ms: Floats
) -> list[Path]:
    """Fig. 2: speed-up along one clock at the ends of the other; time_ms (K, E, M) measured.

    Named are kernels spread over the speed-ups of the first panel, the others are grey.
    Returns the files; none where neither clock varies. Raises InputError.
    """
    sweeps = _sweeps(grid)
    if not sweeps:
        return []
    times = sweeps[0].of(time_ms)
    named = _evenly_spread(times[:, 0] / times[:, -1])
    figure, panels = _figure(title, sweeps)
    for sweep, panel in zip(sweeps, panels, strict=True):
        times = sweep.of(time_ms)
        _draw_kernels(panel, sweep, times[:, :1] / times, named)
        clocks = np.array(sweep.clocks)
        panel.plot(clocks, clocks / clocks[0], color="grey", linestyle=":")
        panel.set_ylabel(f"speed-up over {clocks[0]:g} MHz")
    proportional = Line2D([], [], color="grey", linestyle=":", label="proportional to the clock")
    _legend(figure, kernels, named, proportional)
    return save_figure(figure, folder / "fig2-speedup")


def draw_instructions(
    folder: Path, title: str, kernels: Sequence[str], counts: Mapping[str, Floats]
) -> list[Path]:
    """Fig. 12: the share of each kind of instruction that occurs; counts (K,) by kind.

    Returns the files. Raises InputError.
    """
    counts = {kind: count for kind, count in counts.items() if count.any()}
    total = np.sum([*counts.values()], axis=0)
    figure, panel = one_panel(7, 1.6 + 0.24 * len(kernels), title)
    rows = name_rows(panel, kernels, "share of a warp's instructions [%]")
    left = np.zeros(len(kernels))
    for (kind, count), colour in zip(counts.items(), COLOURS, strict=False):
        share = 100 * count / np.maximum(total, 1)
        panel.barh(rows, share, left=left, color=colour, label=kind)
        left += share
    legend_below(figure, panel.get_legend_handles_labels()[0], columns=len(counts))
    return save_figure(figure, folder / "fig12-instructions")


def draw_signed_errors(
    folder: Path, title: str, grid: ConfigGrid, kernels: Sequence[str], errors: Floats
) -> list[Path]:
    """Fig. 13: error along each clock at the ends of the other; errors (K, E, M) signed [%].

    Named are the kernels of the largest mean absolute error. Returns the files; none where
    neither clock varies. Raises InputError.
    """
    sweeps = _sweeps(grid)
    if not sweeps:
        return []
    named = np.argsort(-np.abs(errors).mean(axis=(1, 2)), kind="stable")[: len(COLOURS)]
    figure, panels = _figure(title, sweeps)
    for sweep, panel in zip(sweeps, panels, strict=True):
        panel.axhspan(-10, 10, color="#EEEEEE", zorder=0)
        panel.axhline(0, color="grey", linewidth=0.8)
        _draw_kernels(panel, sweep, sweep.of(errors), named)
        panel.set_ylabel("error of the predicted time [%]")
    _legend(figure, kernels, named, Patch(color="#EEEEEE", label="within 10 %"))
    return save_figure(figure, folder / "fig13-signed-error")


def draw_kernel_errors(
    folder: Path, title: str, kernels: Sequence[str], errors: Floats, compute_bound: Mask
) -> list[Path]:
    """Fig. 14: mean absolute error of each kernel; errors (K,) [%], compute_bound (K,) at the base.

    Returns the files. Raises InputError.
    """
    order = np.argsort(errors, kind="stable")
    figure, panel = one_panel(7, 1.6 + 0.24 * len(kernels), title)
    names = [kernels[k] for k in order]
    rows = name_rows(panel, names, "mean absolute error over the configurations [%]")
    colours = [_COMPUTE if compute_bound[k] else _MEMORY for k in order]
    bars_with_values(panel, rows, errors[order], colours, compute_bound[order])
    panel.axvline(errors.mean(), color="black", linestyle="--", linewidth=1, zorder=0)
    handles = [
        Patch(facecolor=_MEMORY, edgecolor="white", label="memory-bound at the base"),
        Patch(
            facecolor=_COMPUTE, edgecolor="white", hatch=HATCH, label="compute-bound at the base"
        ),
        Line2D([], [], color="black", linestyle="--", label=f"mean {errors.mean():.1f} %"),
    ]
    panel.legend(handles=handles, loc="lower right", fontsize=8)
    return save_figure(figure, folder / "fig14-kernel-error")


def _sweeps(grid: ConfigGrid) -> list[_Sweep]:
    """Return panels for each clock that varies and each end of the other."""
    every = slice(None)
    sweeps = []
    if len(grid.memory_mhz) > 1:
        for end in dict.fromkeys((0, len(grid.engine_mhz) - 1)):
            fixed = f"engine {grid.engine_mhz[end]:g} MHz"
            sweeps.append(_Sweep("memory", grid.memory_mhz, fixed, (end, every)))
    if len(grid.engine_mhz) > 1:
        for end in dict.fromkeys((0, len(grid.memory_mhz) - 1)):
            fixed = f"memory {grid.memory_mhz[end]:g} MHz"
            sweeps.append(_Sweep("engine", grid.engine_mhz, fixed, (every, end)))
    return sweeps


def _evenly_spread(values: Floats) -> Indices:
    """The positions of as many values as there are colours, evenly from largest to smallest."""
    rest = np.array(values)
    positions = []
    for target in np.linspace(values.max(), values.min(), min(len(COLOURS), len(values))):
        positions.append(int(np.nanargmin(np.abs(rest - target))))
        rest[positions[-1]] = np.nan
    return np.array(sorted(positions, key=lambda k: -values[k]))


def _figure(title: str, sweeps: Sequence[_Sweep]) -> tuple[Figure, list[Axes]]:
    """Panels two by two, lettered as in the paper; those of one clock share a row."""
    figure, panels = panels_in_rows(title, len(sweeps), 2, (3.6, 3.0), (1.8, 1.2), sharey=True)
    for letter, sweep, panel in zip("abcd", sweeps, panels, strict=False):
        panel.set_title(f"({letter}) {sweep.fixed}", fontsize=10)
        panel.set_xlabel(f"{sweep.name} clock [MHz]")
        panel.set_xticks(sweep.clocks)
        panel.tick_params(labelsize=8, labelleft=True)
        panel.grid(visible=True, alpha=0.3)
    return figure, panels


def _draw_kernels(panel: Axes, sweep: _Sweep, values: Floats, named: Indices) -> None:
    """Draw a line for each kernel: the named in colour, the others thin and grey behind them."""
    for k in set(range(len(values))) - set(named.tolist()):
        panel.plot(sweep.clocks, values[k], color=_OTHERS, linewidth=0.7, zorder=1)
    for k, colour, marker in zip(named, COLOURS, MARKERS, strict=False):
        panel.plot(sweep.clocks, values[k], color=colour, marker=marker, ms=4, linewidth=1.3)


def _legend(figure: Figure, kernels: Sequence[str], named: Indices, extra: Artist) -> None:
    handles: list[Artist] = [
        Line2D([], [], color=colour, marker=marker, ms=4, label=kernels[k])
        for k, colour, marker in zip(named, COLOURS, MARKERS, strict=False)
    ]
    if len(kernels) > len(named):
        handles.append(Line2D([], [], color=_OTHERS, linewidth=0.7, label="other kernels"))
    legend_below(figure, [*handles, extra], 3 if len(figure.axes) > 1 else 2)
