"""What the scripts of this folder share: the public tables, claims with verdicts, and figures."""

import argparse
import csv
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mlscale import HardwareConfig, Measurements, read
from mlscale.data.nv_dvfs import read_nv_dvfs

HOLDS, DIFFERS, UNTESTED = "holds", "does not hold", "cannot be shown on these data"
COLOURS = (  # as many as a figure has curves: the 11 kernels of Wang and Chu
    *("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000", "#882255"),
    *("#999999", "#7B3F00", "#332288"),
)
MARKERS = "osD^vP*X"
REPOSITORY = Path(__file__).parents[1]

# Each table's file in the folder MLSCALE_DATA, and the base that its figures are printed for.
TABLES = {
    "gtx980-49": ("wang-chu-gtx980/gtx980-DVFS-Performance.csv", (16, 700, 700)),
    "gtx980-low": (
        "dvfs/gtx980-low-dvfs-real-small-workload-Performance-Power.csv",
        (16, 700, 700),
    ),
    "gtx980-high": (
        "dvfs/gtx980-high-dvfs-real-small-workload-Performance-Power.csv",
        (16, 1100, 3100),
    ),
    "gtx1080ti": ("dvfs/gtx1080ti-dvfs-real-Performance-Power.csv", (28, 1800, 5000)),
    "p100": ("dvfs/p100-dvfs-real-Performance-Power.csv", (56, 1012, 715)),
}
MEASURED = ("gtx980-low", "gtx980-high", "gtx1080ti", "p100")  # the four with power
SUITES = ("h100-suite", "h200-suite")  # measured over numbers of SMs, counters on all of them


@cache
def table(name: str) -> Measurements:
    """Return a public table, or one that ships. FileNotFoundError without data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the known faults of the files
        if name not in TABLES:
            ending = "csv" if name in SUITES else "parquet"
            return read(REPOSITORY / "datasets" / f"{name}.{ending}")
        folder = os.environ.get("MLSCALE_DATA")
        if not folder:
            raise FileNotFoundError("MLSCALE_DATA does not name the folder of the public tables")
        return read_nv_dvfs(Path(folder) / TABLES[name][0], None)


def base_of(name: str) -> HardwareConfig:
    """Return the configuration at which a public table's kernels count as profiled."""
    return HardwareConfig(*TABLES[name][1])


class Panel(NamedTuple):
    """A panel of a figure: its title, the names of its axes, and by label steps and values."""

    title: str
    across: str
    value: str
    series: Mapping[str, tuple[Sequence[Any], Any]]


@dataclass
class Report:
    """Where the parts of a script put what they find, with the script's options."""

    folder: Path
    options: argparse.Namespace
    claims: list[tuple[str, str]] = field(default_factory=list)

    def claim(self, where: str, claim: str, value: str, holds: bool | None) -> None:
        """Print a claim of the paper, the value here, and whether it holds; None: not shown."""
        verdict = UNTESTED if holds is None else HOLDS if holds else DIFFERS
        self.claims.append((where, verdict))
        print(f"{where}: {claim} -> {value} -> {verdict}", flush=True)

    def rows(
        self, title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], name: str = ""
    ) -> None:
        """Print a small table, and with --csv write one that has a name."""
        lines = [list(map(str, row)) for row in (header, *rows)]
        if name and self.options.csv:
            write_csv(self.options.csv / f"{name}.csv", lines)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"\n{title}")
        for line in lines:
            cells = (c.ljust(w) for c, w in zip(line, widths, strict=True))
            print("  ".join(cells).rstrip())
        print(flush=True)

    def lines(self, name: str, title: str, panels: Sequence[Panel]) -> None:
        """Draw panels of curves, each over its steps, and write them as a PNG."""
        figure, axes = _figure(title, len(panels))
        for axis, panel in zip(axes, panels, strict=True):
            for n, (label, (steps, values)) in enumerate(panel.series.items()):
                look = {"color": COLOURS[n % len(COLOURS)], "marker": MARKERS[n % len(MARKERS)]}
                axis.plot(steps, values, ms=4, label=label, **look)
            axis.set(title=panel.title, xlabel=panel.across, ylabel=panel.value)
        self._write(figure, axes, name)

    def bars(self, name: str, title: str, panels: Sequence[Panel]) -> None:
        """Draw panels of horizontal bars, those of each name beside each other, as a PNG."""
        figure, axes = _figure(title, len(panels))
        for axis, panel in zip(axes, panels, strict=True):
            height = 0.8 / len(panel.series)
            for n, (label, (names, values)) in enumerate(panel.series.items()):
                places = np.arange(len(names)) - n * height
                axis.barh(places, values, height, color=COLOURS[n % len(COLOURS)], label=label)
                axis.set_yticks(np.arange(len(names)), names, fontsize=6)
            axis.set(title=panel.title, xlabel=panel.value)
        self._write(figure, axes, name)

    def _write(self, figure: Figure, axes: Sequence[Axes], name: str) -> None:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=6, loc="outside right center")
        self.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.folder / f"{name}.png", dpi=120)


def write_csv(path: Path, lines: Sequence[Sequence[str]]) -> None:
    """Write a header and rows as CSV, '-' as an empty cell.

    A column whose cells are `time / power / energy` becomes three.
    """
    columns = []
    for head, *cells in zip(*lines, strict=True):
        if any(" / " in cell for cell in cells):
            heads = [f"{head}, {quantity}" for quantity in ("time", "power", "energy")]
            parts = zip(*(cell.split(" / ") for cell in cells), strict=True)
            columns += [[name, *part] for name, part in zip(heads, parts, strict=True)]
        else:
            columns.append([head, *cells])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in zip(*columns, strict=True):
            csv.writer(file, lineterminator="\n").writerow(["" if c == "-" else c for c in line])


def _figure(title: str, count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure and so many panels, at most four in a row."""
    columns = min(count, 4)
    rows = -(-count // columns)
    figure = Figure(figsize=(4.2 * columns + 2, 3.4 * rows + 0.8), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)[:count]


def run(
    description: str,
    parts: dict[str, Callable[[Report], None]],
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> Report:
    """Run the parts that the command line names, or all; what lacks its data is left out."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("-o", "--output", type=Path, default=Path("out/reproduction"))
    parser.add_argument("--csv", type=Path, help="folder for tables as CSV")
    options(parser)
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.parts) - set(parts)):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(parts)}")
    report = Report(arguments.output / Path(sys.argv[0]).stem, arguments)
    for name in arguments.parts or parts:
        started = time.perf_counter()
        try:
            parts[name](report)
        except FileNotFoundError as error:
            print(f"{name}: left out: {error}")
            continue
        print(f"[{name}: {time.perf_counter() - started:.0f} s]", file=sys.stderr)
    return report
