"""The short answer of mlscale predict: the whole run, or each kernel, at a few settings."""

import math
from collections.abc import Sequence

import numpy as np

from mlscale.advice.recommendation import WHOLE_RUN
from mlscale.arrays import Floats
from mlscale.cli.brief import INDENT, percent, sentences, table
from mlscale.cli.terminal import Meaning, columns_wide, painted, si
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig
from mlscale.model.predictions import (
    ABOVE_LIMIT,
    EXTRAPOLATED,
    INTERPOLATED,
    MEASURED,
    TIME_MEASURED,
    Column,
    Predictions,
)
from mlscale.text import counted, share_in_percent, short_names

SIGNS = {ABOVE_LIMIT: "!", MEASURED: "=", TIME_MEASURED: "t", INTERPOLATED: "~", EXTRAPOLATED: "?"}
HEADINGS = dict(zip(AXES, ("CUs", "engine MHz", "memory MHz"), strict=True))
SETTINGS = 6  # that are shown where none are asked for
MOST_SETTINGS = 14
MOST_KERNELS = 14
LARGE_PERCENT = 9.95  # from which on the ends of an interval are whole ones
_SHORTEST_NAME = 16  # of a kernel, beside columns that are so wide
_COLUMN_OF_A_SETTING, _OTHER_COLUMNS = 9, 14
_LEAST_SHARE_OF_CLOCK = 0.5  # of the base's, below which a clock is shown if there are few others

Run = dict[str, Column]


def brief(
    predictions: Predictions,
    targets: Sequence[HardwareConfig] | None,
    by_kernel: bool,
    has_colours: bool,
) -> list[str]:
    """The answer, line by line.

    targets: the settings that are asked for. by_kernel: what each kernel takes longer there.
    """
    if targets:
        settings = targets[: MOST_SETTINGS - 1]
        further = "All settings: without --at."
        if left_out := len(targets) - len(settings):
            further = f"{counted(left_out, 'more setting')}: -o all.csv. {further}"
    else:
        every = predictions.whole_run()
        settings = _chosen(every, predictions.base)
        axis, one = _varying(settings)[0], settings[len(settings) // 2]
        name = SHORT_NAMES[axis] if axis != AXES[0] else one.cu_axis or SHORT_NAMES[axis]
        count = counted(len(every["time_ms"]), "setting")
        further = f"{count} in all: -o all.csv. One: --at {name}={getattr(one, axis):g}."
    settings = [predictions.base, *(one for one in settings if one != predictions.base)]
    is_by_kernel = by_kernel or "time" not in predictions  # of a model of power alone
    further += "" if is_by_kernel else " By kernel: --kernels."
    heading = [painted(line, "bold", has_colours) for line in sentences(_subject(predictions))]
    body = _by_kernel if is_by_kernel else _whole_run
    ending = [painted(line, "dim", has_colours) for line in sentences(further)]
    return [*heading, "", *body(predictions, settings, has_colours), "", *ending]


def _subject(predictions: Predictions) -> str:
    """Whose prediction it is, and from where."""
    profiles, base = predictions.profiles, predictions.base
    kernels = profiles.kernels
    who = counted(len(kernels), "kernel")
    if len(kernels) == 1:
        who = short_names(kernels)[kernels[0]]
    elif profiles.launches is None:
        who += ", each counted once,"
    cus = f"{base.cu_count} {base.cu_axis or 'CUs'}, " * (len(predictions.grid.cu_count) > 1)
    at = f"{cus}{base.engine_mhz:g} / {base.memory_mhz:g} MHz"
    if "time" not in predictions:
        return f"{counted(len(kernels), 'kernel')} on {predictions.device}, measured at {at}"
    taken = si(float(profiles.run_times_ms.sum()) / 1e3, "s")
    return f"{who} on {predictions.device}, measured at {at}: {taken}"


def _chosen(run: Run, base: HardwareConfig) -> list[HardwareConfig]:
    """The base and settings spread evenly along one axis, highest first, the rest as at the base.

    The axis is the engine clock, if it has other steps; clocks below half of the base's are left
    out where there are enough others.
    """
    settings = [
        HardwareConfig(*values, cu_axis=base.cu_axis)
        for values in zip(*(run[axis].tolist() for axis in AXES), strict=True)
    ]
    for axis in ("engine_mhz", "cu_count", "memory_mhz"):
        others = [name for name in AXES if name != axis]
        along = [
            one for one in settings if all(getattr(one, o) == getattr(base, o) for o in others)
        ]
        if len(along) > 1:
            break
    along = sorted({*along, base}, reverse=True)
    least = _LEAST_SHARE_OF_CLOCK * getattr(base, axis)
    near = [one for one in along if getattr(one, axis) >= least]
    along = near if len(near) >= SETTINGS else along
    places = {round(place) for place in np.linspace(0, len(along) - 1, SETTINGS).tolist()}
    at_base = along.index(base)
    nearest = min(places, key=lambda place: abs(place - at_base))
    return [along[place] for place in sorted(places - {nearest} | {at_base})]


def _varying(settings: Sequence[HardwareConfig]) -> list[str]:
    """The axes along which settings differ; the engine clock if there is none."""
    varying = [axis for axis in AXES if len({getattr(one, axis) for one in settings}) > 1]
    return varying or ["engine_mhz"]


def _whole_run(
    predictions: Predictions, settings: Sequence[HardwareConfig], has_colours: bool
) -> list[str]:
    """A row for each setting, and what the signs in the rows mean."""
    run, base = predictions.whole_run(settings), predictions.base
    profiles = predictions.profiles
    is_run = len(profiles.kernels) > 1 and profiles.launches is not None
    axes = _varying(settings)
    names = [base.cu_axis or HEADINGS[axis] if axis == AXES[0] else HEADINGS[axis] for axis in axes]
    marks = [flags.split("; ") if flags else [] for flags in run["flags"].tolist()]
    slower = 100 * (run["time_factor"] - 1)
    base_ms = float(profiles.run_times_ms.sum())
    ends = [100 * (run[f"time_ms_{end}"] / base_ms - 1) for end in ("low", "high")]
    energy = 100 * (run["time_factor"] * run["power_factor"] - 1)
    rows = []
    for place, setting in enumerate(settings):
        at_base = setting == base
        low, high = (_end(float(end[place])) for end in ends)
        base_energy = si(float(run["energy_mj"][place]) / 1e3, "J") if at_base else ""
        rows.append([
            *(f"{getattr(setting, axis):g}" for axis in axes),
            si(float(run["time_ms"][place]) / 1e3, "s"),
            "base" if at_base else percent(float(slower[place])),
            f"{low} to {high} %" if low and high and not at_base else "",
            si(float(run["power_w"][place]), "W").removeprefix("-"),
            base_energy.removeprefix("-") or percent(float(energy[place])),
            "".join(SIGNS[mark] for mark in marks[place] if mark in SIGNS),
        ])  # fmt: skip
    headings = [*names, WHOLE_RUN if is_run else "time", "slower", "90 % interval", "power",
                "energy", ""]  # fmt: skip
    meanings: list[Meaning | None] = [
        "over" if ABOVE_LIMIT in flags else "bold" if setting == base else None
        for setting, flags in zip(settings, marks, strict=True)
    ]
    lines = table(headings, rows, [""], _shares(slower), meanings, has_colours)
    used = [mark for mark in SIGNS if any(mark in flags for flags in marks)]
    legend = [f"{INDENT}{',  '.join(f'{SIGNS[mark]} {mark}' for mark in used)}"] if used else []
    return [*lines, *legend]


def _end(value: float) -> str:
    """An end of an interval of percentages in two digits, and all of whole percents."""
    return "" if math.isnan(value) else f"{value:+z.{int(abs(value) < LARGE_PERCENT)}f}"


def _shares(slower: Floats) -> list[float]:
    """How long a bar of each setting is, beside that of the slowest one."""
    most = float(np.nanmax(slower))
    return [max(one, 0.0) / most if most > 0 else 0.0 for one in np.nan_to_num(slower).tolist()]


def _by_kernel(
    predictions: Predictions, settings: Sequence[HardwareConfig], has_colours: bool
) -> list[str]:
    """A row for each kernel, those of the largest share of the run first: how much slower it is.

    Of a model of power alone, the change of its power.
    """
    quantity = "time" if "time" in predictions else "power"
    axes = _varying(settings)
    settings = settings[1:SETTINGS] or settings
    profiles = predictions.profiles
    factors = predictions.columns(settings)[f"{quantity}_factor"].reshape(-1, len(settings))
    times = profiles.run_times_ms
    room = columns_wide() - _OTHER_COLUMNS - _COLUMN_OF_A_SETTING * len(settings)
    shown = short_names(profiles.kernels, max(room, _SHORTEST_NAME))
    rows = []
    for number, k in enumerate(np.argsort(-times, kind="stable")[:MOST_KERNELS].tolist(), start=1):
        share = f"{share_in_percent(float(times[k] / times.sum()))} %" * (quantity == "time")
        rows.append(
            [
                str(number),
                shown[profiles.kernels[k]],
                share,
                *(percent(100 * (one - 1)) for one in factors[k].tolist()),
            ]
        )
    if quantity == "time":
        whole = predictions.whole_run(settings)["time_factor"].tolist()
        rows.append(["", WHOLE_RUN, "", *(percent(100 * (one - 1)) for one in whole)])
    at = [" / ".join(f"{getattr(one, axis):g}" for axis in axes) for one in settings]
    meanings: list[Meaning | None] = ["bold" if row[1] == WHOLE_RUN else None for row in rows]
    headings = ["", "kernel", "share", *at]
    lines = table(headings, rows, ["kernel"], meanings=meanings, has_colours=has_colours)
    names = " / ".join(HEADINGS[axis] for axis in axes)
    more = len(profiles.kernels) - MOST_KERNELS
    untold = f" {counted(more, 'more kernel')}: --all." if more > 0 else ""
    return [*lines, *sentences(f"Changes of {quantity} from the base, at {names}.{untold}")]
