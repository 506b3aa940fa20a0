"""Where to measure next, as `mlscale advise --next-profile` prints it: a table, CSV or JSON."""

from collections.abc import Sequence
from typing import Any

from mlscale.advice.next_point import NextPoint, next_points
from mlscale.advice.recommendation import WHOLE_RUN
from mlscale.cli.shown_warnings import print_warnings
from mlscale.cli.text import (
    AXIS_HEADINGS,
    columns,
    csv_text,
    json_text,
    kernel_names,
    or_dash,
    setting_cells,
    warning_lines,
)
from mlscale.data.profiles import Profiles
from mlscale.model import Model
from mlscale.predictions import COVERAGE


def next_points_text(model: Model, profiles: Profiles, warnings: Sequence[str], form: str) -> str:
    """Return where to measure next as a table, CSV or JSON. Raises InputError.

    What CSV has no place for goes to stderr.
    """
    each, for_all = next_points(model, profiles)
    if form == "json":
        return json_text(_document(model, profiles, each, for_all, warnings))
    points = [*each, *([for_all] if for_all else [])]
    if form == "csv":
        print_warnings(warnings)
        return csv_text([{"kernel": _name(point), **point.row()} for point in points])
    return (
        f"Measure next, for --also:\n{_table(points)}\n\n"
        f"+- %: half the {100 * COVERAGE:g} % interval of time, mean over the grid; "
        f"base {model.base} on {model.device}\n" + "".join(warning_lines(warnings))
    )


def _document(
    model: Model,
    profiles: Profiles,
    each: Sequence[NextPoint],
    for_all: NextPoint | None,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """Return all that JSON has of it."""
    return {
        "device": model.device,
        "base": model.base.as_dict(),
        "also": [point.config.as_dict() for point in profiles.points],
        "coverage": COVERAGE,
        "kernels": [{"kernel": point.kernel, **point.row()} for point in each],
        "whole_run": for_all and for_all.row(),
        "warnings": list(warnings),
    }


def _table(points: Sequence[NextPoint]) -> str:
    """Return the points in columns; those of the intervals, where they were calibrated."""
    headers = ["kernel", *AXIS_HEADINGS, "narrower %"]
    if points[0].now_percent is not None:
        headers += ["now +- %", "then +- %"]
    names = kernel_names(map(_name, points))
    lines = [
        [
            names[_name(point)],
            *setting_cells(point.config),
            f"{point.narrower_percent:.0f}",
            or_dash(point.now_percent, ".1f"),
            or_dash(point.after_percent, ".1f"),
        ][: len(headers)]
        for point in points
    ]
    return columns(headers, lines)


def _name(point: NextPoint) -> str:
    return point.kernel or WHOLE_RUN
