"""The kernels of a run as tables: those that the page shows in full, and all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np

from mlscale.advice.recommendation import Advice, OperatingPoint, Recommendation
from mlscale.counters.roofline import RooflinePlace, roofline
from mlscale.data.grid import AXES, ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.report.markup import (
    Child,
    Markup,
    element,
    folded,
    joined,
    name,
    paragraph,
    percent,
    table,
)
from mlscale.text import number, rounded, share_in_percent

MOST_KERNELS = 20  # that have a section of their own
_MOST_ROWS = 30  # of kernels without a section of their own, before they are folded away
_AXIS_HEADERS = {"cu_count": "CUs", "engine_mhz": "engine MHz", "memory_mhz": "memory MHz"}
# From which value on a cost is divided by what, and is then in which unit.
_SCALES = {
    "time_ms": ((1e4, 1e3, "s"), (0, 1, "ms")),
    "power_w": ((0, 1, "W"),),
    "energy_mj": ((1e10, 1e9, "MJ"), (1e7, 1e6, "kJ"), (1e4, 1e3, "J"), (0, 1, "mJ")),
}


def largest_kernels(profiles: Profiles) -> list[int]:
    """The positions of the kernels that most of the run's time goes to, MOST_KERNELS at most."""
    order = np.argsort(-profiles.run_times_ms, kind="stable")
    return [int(k) for k in order[:MOST_KERNELS]]


@dataclass(frozen=True, eq=False)
class RunReport:
    """All kernels of a run; shown: the positions of those that have sections of their own."""

    advice: Advice
    profiles: Profiles
    shown: tuple[int, ...]

    @property
    def grid(self) -> ConfigGrid:
        """The configurations that are predicted."""
        return self.advice.surfaces["time"].grid

    @cached_property
    def places(self) -> tuple[RooflinePlace, ...]:
        """Of every kernel between the GPU's peaks."""
        return roofline(self.profiles)

    @cached_property
    def by_share(self) -> tuple[int, ...]:
        """The positions of all kernels, those of most of the run's time first."""
        return tuple(sorted(range(len(self.advice.kernels)), key=lambda k: -self.share(k)))

    @cached_property
    def rest(self) -> tuple[int, ...]:
        """The positions of the kernels that are not shown in full."""
        return tuple(k for k in self.by_share if k not in set(self.shown))

    def share(self, k: int) -> float:
        """A kernel's share of the kernels' time at the base, 0 to 1."""
        share = self.advice.kernels[k].share
        return 0.0 if share is None else share.percent / 100

    def bound(self, k: int) -> str:
        """What bounds a kernel, in a word or two."""
        if not self.profiles.has_counters[k]:
            return "no counters"
        return self.places[k].bound or "not known"


def axis_headers(grid: ConfigGrid) -> list[str]:
    """Of the settings that the grid varies."""
    return [_AXIS_HEADERS[axis] for axis in AXES if len(getattr(grid, axis)) > 1]


def settings(point: OperatingPoint, grid: ConfigGrid) -> list[Child]:
    """Those that the grid varies, at one point."""
    values = point.config.as_dict()
    return [f"{values[axis]:g}" for axis in AXES if len(getattr(grid, axis)) > 1]


def change(kernel: Recommendation, cost: str) -> str:
    """Of time_ms, power_w or energy_mj, from the base to the best."""
    return percent(getattr(kernel.best, cost) / getattr(kernel.base, cost) - 1)


def range_in_words(percents: tuple[float, float]) -> str:
    """The ends of an interval of changes [%]."""
    ends = sorted(percents)
    return " to ".join(percent(end / 100) if isfinite(end) else "not known" for end in ends)


def scale_and_unit(value: float, cost: str) -> tuple[float, str]:
    """By what to divide a run's time_ms, power_w or energy_mj for a reader, and its unit then."""
    fitting = ((scale, unit) for least, scale, unit in _SCALES[cost] if value >= least)
    return next(fitting)


def shown_kernels(run: RunReport) -> Markup:
    """The kernels that have sections of their own, with links to them."""
    has_energy = run.advice.whole_run.base.energy_mj is not None
    headers = ["", "kernel", *_row_headers(run), "time ms", "time there"]
    headers += ["energy there"] if has_energy else []
    headers += ["bound", "flags"]
    rows = []
    for i, k in enumerate(run.shown, start=1):
        kernel = run.advice.kernels[k]
        link = element("a", name(run.profiles.kernels[k]), href=f"#kernel-{i}")
        there = [change(kernel, cost) for cost in ("time_ms", "energy_mj")[: 1 + has_energy]]
        cells = [number(kernel.base.time_ms), *there, run.bound(k), str(len(kernel.flags))]
        rows.append([str(i), link, *_row(run, k), *cells])
    sums = [_sum(run, run.by_share, "whole run", len(headers) - 1)]
    if run.rest:
        sums = [
            _sum(run, run.shown, f"these {len(run.shown)}", len(headers) - 1),
            _sum(run, run.rest, f"the other {len(run.rest)}, below", len(headers) - 1),
            *sums,
        ]
    return element(
        "nav",
        element("h3", "Kernels", id="kernels"),
        paragraph(
            "The best clocks are those for the kernel alone; there its time and energy change "
            "against the base as shown.",
            kind="soft",
        ),
        table(headers, rows, words=(1, len(headers) - 2), sums=[["", *row] for row in sums]),
        aria_label="Kernels",
    )


def other_kernels(run: RunReport) -> Markup:
    """The kernels without sections of their own, and their sum."""
    headers = ["kernel", *_row_headers(run), "bound"]
    rows = [[name(run.profiles.kernels[k]), *_row(run, k), run.bound(k)] for k in run.rest]
    sums = [_sum(run, run.rest, "sum", len(headers))]
    whole = table(headers, rows, words=(0, len(headers) - 1), sums=sums)
    if len(rows) > _MOST_ROWS:
        whole = folded(f"All {len(rows)} as a table", whole)
    one = len(rows) == 1
    return joined(
        element("h3", "The other kernel" if one else f"The other {len(rows)} kernels"),
        paragraph("mlscale report --kernel NAME shows one in full.", kind="soft"),
        whole,
    )


def _row_headers(run: RunReport) -> list[str]:
    launches = ["launches"] if run.advice.run.launches is not None else []
    return [*launches, "% of time", *(f"best {header}" for header in axis_headers(run.grid))]


def _row(run: RunReport, k: int) -> list[Child]:
    """Launches, share, and the best settings for this kernel alone."""
    return [
        *_launches(run, [k]),
        share_in_percent(run.share(k)),
        *settings(run.advice.kernels[k].best, run.grid),
    ]


def _sum(run: RunReport, kernels: Sequence[int], label: str, width: int) -> list[Child]:
    """Launches and share of some kernels together, filled up to a width."""
    row: list[Child] = [label, *_launches(run, kernels)]
    row.append(share_in_percent(sum(run.share(k) for k in kernels)))
    return [*row, *[None] * (width - len(row))]


def _launches(run: RunReport, kernels: Sequence[int]) -> list[Child]:
    """Of these kernels together; nothing where the profile does not say."""
    if run.advice.run.launches is None:
        return []
    return [rounded(float(run.profiles.weights[list(kernels)].sum()))]
