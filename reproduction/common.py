"""What the scripts of this folder share: the public tables, claims with verdicts, and figures."""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mlscale import HardwareConfig, Measurements, read
from mlscale.data.nv_dvfs import read_nv_dvfs

HOLDS, DIFFERS, UNTESTED = "holds", "does not hold", "cannot be tested on these data"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
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


@cache
def table(name: str) -> Measurements:
    """Return a public table, or the simulated one that ships. FileNotFoundError without data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the known faults of the files
        if name not in TABLES:
            return read(REPOSITORY / "datasets" / f"{name}.parquet")
        folder = os.environ.get("MLSCALE_DATA")
        if not folder:
            raise FileNotFoundError("MLSCALE_DATA does not name the folder of the public tables")
        return read_nv_dvfs(Path(folder) / TABLES[name][0], None)


def base_of(name: str) -> HardwareConfig:
    """Return the configuration at which a public table's kernels count as profiled."""
    return HardwareConfig(*TABLES[name][1])


@dataclass
class Report:
    """Where the parts of a script put what they find, with the script's options."""

    folder: Path
    options: argparse.Namespace
    claims: list[tuple[str, str]] = field(default_factory=list)

    def claim(self, where: str, claim: str, value: str, holds: bool | None) -> None:
        """Print a claim of the paper, the value here, and whether it holds; None: untestable."""
        verdict = UNTESTED if holds is None else HOLDS if holds else DIFFERS
        self.claims.append((where, verdict))
        print(f"{where}: {claim} -> {value} -> {verdict}", flush=True)

    def rows(self, title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a small table."""
        lines = [list(map(str, row)) for row in (header, *rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"\n{title}")
        for line in lines:
            cells = (c.ljust(w) for c, w in zip(line, widths, strict=True))
            print("  ".join(cells).rstrip())
        print(flush=True)

    def save(self, figure: Figure, name: str) -> None:
        """Write a figure as PNG."""
        self.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.folder / f"{name}.png", dpi=120)


def panels(title: str, rows: int, columns: int, **shared: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, one row after the other."""
    figure = Figure(figsize=(4.2 * columns + 0.8, 3.4 * rows + 0.8), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **shared).flat)


def run(
    description: str,
    parts: dict[str, Callable[[Report], None]],
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> Report:
    """Run the parts that the command line names, or all; what lacks its data is left out."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("-o", "--output", type=Path, default=Path("out/reproduction"))
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
