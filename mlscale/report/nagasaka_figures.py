"""The figures of Nagasaka et al. 2010 from any table: Fig. 2 to 5, each as PNG and SVG."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from matplotlib.patches import Patch

from mlscale.data.surfaces import percentage_error
from mlscale.papers.nagasaka_inputs import BASELINE
from mlscale.report.style import (
    COLOURS,
    HATCH,
    bars_with_values,
    legend_below,
    name_rows,
    new_figure,
    one_panel,
    save_figure,
)
from mlscale.studies.nagasaka import Grouping, PowerCase, model_row, unseen_rows

_TRUTH, _ESTIMATED = "#000000", "#999999"
_BY_KERNEL, _BY_APPLICATION = COLOURS[4], COLOURS[0]
_UNSEEN = _NEGATIVE = COLOURS[1]


def draw_figures(folder: Path, cases: Sequence[PowerCase], counters: str) -> list[Path]:
    """Fig. 2 to 5 of every table, with one set of counters; returns the files.

    Fig. 2 to 4: the kernels as in the paper, where the table has enough, else all; Fig. 5: all.
    Raises InputError where a file cannot be written.
    """
    files = []
    for table in dict.fromkeys(case.table for case in cases):
        everyone, *as_in_paper = [case for case in cases if case.table == table]
        case = as_in_paper[0] if as_in_paper else everyone
        unseen = {row["kernel"] for one in (everyone, case) for row in unseen_rows(one)}
        files += [
            *draw_sets(case, folder / f"{table}-nagasaka-fig2"),
            *draw_watts(case, counters, unseen, folder / f"{table}-nagasaka-fig3"),
            *draw_contributions(case, counters, folder / f"{table}-nagasaka-fig4"),
            *draw_watts(everyone, counters, unseen, folder / f"{table}-nagasaka-fig5"),
        ]
    return files


def draw_sets(case: PowerCase, stem: Path) -> list[Path]:
    """Fig. 2: squared error and error ratio of the sets of counters, for both groupings of folds.

    Returns the files. Raises InputError.
    """
    sets = tuple(case.inputs.sets)
    title = _title(case, "power by sets of counters")
    figure = new_figure(10, 1.5 + 0.42 * len(sets), title)
    panels = figure.subplots(1, 2, sharey=True)
    name_rows(panels[1], sets, "average error [%]", upwards=False)
    rows = name_rows(panels[0], sets, "average squared error [W²]", upwards=False)
    colours: dict[Grouping, str] = {"kernel": _BY_KERNEL, "application": _BY_APPLICATION}
    is_baseline = [name == BASELINE for name in sets]
    for offset, (grouping, colour) in zip((0.2, -0.2), colours.items(), strict=True):
        results = [case.result(name, grouping) for name in sets]
        squared_w2 = [result.mean_squared_error_w2 for result in results]
        percent = [float(result.errors_percent.mean()) for result in results]
        for panel, values in zip(panels, (squared_w2, percent), strict=True):
            bars_with_values(panel, rows + offset, values, colour, is_baseline, height=0.38)
    handles = [
        Patch(facecolor=_BY_KERNEL, label="ten folds by kernel, as in the paper"),
        Patch(facecolor=_BY_APPLICATION, label="ten folds by application"),
        Patch(facecolor="#BBBBBB", edgecolor="white", hatch=HATCH, label="no counters (baseline)"),
    ]
    legend_below(figure, handles, 3)
    return save_figure(figure, stem)


def draw_watts(case: PowerCase, counters: str, unseen: Collection[str], stem: Path) -> list[Path]:
    """Fig. 3 and 5: the table's and the estimated watts of each kernel, by the table's.

    unseen: the kernels that the model cannot see, which are hatched and marked by a star. Returns
    the files. Raises InputError.
    """
    order = np.argsort(case.inputs.power_w, kind="stable")
    truth, true_w = case.origin or "in the table", case.inputs.power_w[order]
    estimated_w = case.result(counters).estimated_w.mean(axis=0)[order]
    kernels = [case.inputs.kernels[k] for k in order]
    is_unseen = [kernel in unseen for kernel in kernels]
    title = _title(case, f"power estimated with {counters} counters, folds by application")
    figure, panel = one_panel(8, 1.8 + 0.27 * len(kernels), title)
    names = [f"{k} *" if blind else k for k, blind in zip(kernels, is_unseen, strict=True)]
    label = f"average power [W]; beside the bars: 100 (estimated / {truth} - 1)"
    rows = name_rows(panel, names, label)
    panel.barh(rows + 0.2, true_w, height=0.38, color=_TRUTH)
    panel.barh(
        rows - 0.2,
        estimated_w,
        height=0.38,
        color=[_UNSEEN if blind else _ESTIMATED for blind in is_unseen],
        hatch=[HATCH if blind else "" for blind in is_unseen],
        edgecolor="white",
        linewidth=0.5,
    )
    errors = percentage_error(estimated_w, true_w)
    for row, end, error in zip(rows, np.maximum(true_w, estimated_w), errors, strict=True):
        text = panel.annotate(f"{error:+z.0f} %", (end, row), (4, 0), textcoords="offset points")
        text.set(va="center", fontsize=7)
    unseen_label = "* estimated, held out: the model cannot see all of the kernel"
    handles = [
        Patch(facecolor=_TRUTH, label=truth),
        Patch(facecolor=_ESTIMATED, label="estimated, held out"),
        Patch(facecolor=_UNSEEN, edgecolor="white", hatch=HATCH, label=unseen_label),
    ]
    legend_below(figure, handles if any(is_unseen) else handles[:2], 3)
    return save_figure(figure, stem)


def draw_contributions(case: PowerCase, counters: str, stem: Path) -> list[Path]:
    """Fig. 4: the average share of each counter, and of the intercept, in the estimated power.

    Of the model that all kernels of the case give. Returns the files. Raises InputError.
    """
    shares = model_row(case, counters)["contribution_percent"]
    names, percent = list(shares), np.array(list(shares.values()))
    title = _title(case, f"what the estimated power is made of, {counters} counters")
    figure, panel = one_panel(7, 1.4 + 0.36 * len(names), title)
    rows = name_rows(panel, names, "average contribution to the estimated power [%]", upwards=False)
    colours = [_NEGATIVE if value < 0 else _BY_APPLICATION for value in percent]
    bars_with_values(panel, rows, percent, colours, percent < 0, height=0.7)
    panel.axvline(0, color="grey", linewidth=0.8)
    return save_figure(figure, stem)


def _title(case: PowerCase, subject: str) -> str:
    count = len(case.inputs.kernels)
    described = f"{count} kernels ({case.kernels}), {case.device}, base {case.base}"
    return f"{case.table}: {subject}\n{described}"
