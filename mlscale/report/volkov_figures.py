"""The two figures of Volkov's poster, drawn for the models of mlscale.papers.volkov.

The poster's dots are measurements on a GTX 980; here they are the idealised simulation, and the
figures say so, or somebody's measurements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mlscale.papers import volkov
from mlscale.papers.volkov_simulation import GRID_WARPS, simulate
from mlscale.report.style import legend_below, panels_in_rows, save_figure, shades

PANELS = {
    "classical bounds": volkov.classical_bounds,
    "Hong & Kim": volkov.hong_kim,
    "Chen & Aamodt, $\\lambda_1$": volkov.chen_aamodt_1,
    "Chen & Aamodt, $\\lambda_2$": volkov.chen_aamodt_2,
    "Chen & Aamodt, $\\lambda_3$": volkov.chen_aamodt_3,
    "Huang et al., round robin": volkov.huang,
    "Sim et al. / Zhang & Owens": volkov.zhang_owens,
    "the same, $\\mu = 1/B$": volkov.zhang_owens_peak,
}

SIMULATION = "simulation (idealised, not hardware)"
MOST_WARPS = max(GRID_WARPS)
# On the linear axis of Fig. 1 the issue limit, and the first of what breaks it, must be seen.
HIGHEST_OF_ISSUE = 1.25


@dataclass(frozen=True)
class SurveyedGpu:
    """The GPU of the figures, and its dots.

    label: what the dots are; dots: `warps`, `intensity` and `ipc` of each.
    """

    name: str
    cu: volkov.ComputeUnit
    label: str
    dots: Sequence[Mapping[str, float]]


def draw_survey(
    folder: Path,
    intensities: Sequence[int],
    name: str,
    cu: volkov.ComputeUnit,
    measured: Sequence[Mapping[str, float]] | None = None,
) -> list[Path]:
    """Write survey-figure-1 and -2, each as PNG and SVG, into a folder; returns their paths.

    intensities: the arithmetic instructions per memory instruction that are shown. measured:
    `warps`, `intensity` and `ipc` of each dot; None for the simulation of the CU. Raises
    InputError where a file cannot be written or an intensity cannot be simulated.
    """
    if measured is not None:
        subject = SurveyedGpu(name, cu, "measured", measured)
    else:
        dots = [
            {"warps": n, "intensity": intensity, "ipc": simulate(n, intensity, cu)}
            for intensity in intensities
            for n in GRID_WARPS
        ]
        subject = SurveyedGpu(name, cu, SIMULATION, dots)
    return [
        *save_figure(figure_1(intensities, subject), folder / "survey-figure-1"),
        *save_figure(figure_2(intensities, subject), folder / "survey-figure-2"),
    ]


def figure_1(intensities: Sequence[int], subject: SurveyedGpu) -> Figure:
    """Draw throughput against occupancy: a panel for each model, a colour for each intensity."""
    title = f"Throughput of Volkov's microbenchmark by model (his Fig. 1), {subject.name}"
    count = len(PANELS)
    figure, panels = panels_in_rows(title, count, 4, (3.25, 3.3), (0, 0), sharex=True, sharey=True)
    for panel, (name, model) in zip(panels, PANELS.items(), strict=True):
        _draw_model(panel, name, model, intensities, subject)
        for intensity, (colour, _) in _looks(intensities).items():
            vendor = float(volkov.vendor_warps(intensity, subject.cu))
            if vendor <= MOST_WARPS:
                panel.axvline(vendor, color=colour, linestyle="--", linewidth=1.2)
        panel.set_ylim(0, HIGHEST_OF_ISSUE * subject.cu.issue_per_cycle)
    label = f"warps needed by the vendor's guide, if at most {MOST_WARPS}"
    vendor_line = Line2D([], [], color="grey", linestyle="--", label=label)
    handles = [*_handles(intensities, subject), vendor_line]
    return _finished(figure, panels[-4:], handles)


def figure_2(intensities: Sequence[int], subject: SurveyedGpu) -> Figure:
    """Left, Baghsorkhi et al. below the simulation; right, Huang et al. above the issue limit."""
    title = f"Underestimate and broken issue limit (his Fig. 2), {subject.name}"
    figure, (left, right) = panels_in_rows(title, 2, 2, (4.75, 4.9), (0, 0), sharex=True)
    _draw_model(left, "Baghsorkhi et al. (reconstructed)", volkov.baghsorkhi, intensities, subject)
    left.set_yscale("log")
    _draw_model(right, "Huang et al., round robin", volkov.huang, intensities, subject)
    limit = subject.cu.issue_per_cycle
    right.axhline(limit, color="black", linestyle=":", linewidth=1.5)
    right.annotate("issue limit", (1, limit), (0, 3), textcoords="offset points")
    right.set_ylim(bottom=0)
    return _finished(figure, [left, right], _handles(intensities, subject))


def _draw_model(
    panel: Axes,
    name: str,
    model: volkov.ThroughputModel,
    intensities: Sequence[int],
    subject: SurveyedGpu,
) -> None:
    """Draw the model thick, the classical bounds thin, the dots as markers."""
    warps = np.linspace(1, MOST_WARPS, 631)
    for intensity, (colour, marker) in _looks(intensities).items():
        estimate = model(warps, intensity, subject.cu)
        panel.plot(warps, estimate, color=colour, lw=3, alpha=0.75)
        bounds = volkov.classical_bounds(warps, intensity, subject.cu)
        panel.plot(warps, bounds, color="black", lw=0.8)
        dots = [dot for dot in subject.dots if dot["intensity"] == intensity]
        warps_ipc = ([dot[axis] for dot in dots] for axis in ("warps", "ipc"))
        panel.plot(*warps_ipc, marker, color=colour, ms=4.5, mec="black", mew=0.6)
    panel.set_title(name, fontsize=10)
    panel.set_xlim(0, MOST_WARPS + 1)
    panel.set_xticks(range(0, MOST_WARPS + 1, 16))
    panel.grid(visible=True, alpha=0.3)


def _looks(intensities: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return the colour, dark to light, and marker of each intensity."""
    return dict(zip(intensities, shades(len(intensities)), strict=True))


def _handles(intensities: Sequence[int], subject: SurveyedGpu) -> list[Line2D]:
    """Return what the legends of both figures explain."""
    return [
        *(
            Line2D([], [], ls="", marker=marker, color=colour, label=f"$\\alpha$ = {intensity}")
            for intensity, (colour, marker) in _looks(intensities).items()
        ),
        Line2D([], [], ls="", marker="o", color="grey", mec="black", label=subject.label),
        Line2D([], [], color="grey", lw=3, label="model"),
        Line2D([], [], color="black", lw=0.8, label="classical bounds"),
    ]


def _finished(figure: Figure, lowest: Sequence[Axes], handles: list[Line2D]) -> Figure:
    """Return the figure with its axes named, those across below the lowest panels, and its key."""
    figure.supylabel("throughput [instructions per cycle and CU]", fontsize=10)
    for panel in lowest:
        panel.set_xlabel("occupancy [warps per CU]")
    legend_below(figure, handles, min(8, len(handles)))
    return figure
