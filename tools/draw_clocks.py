"""Draw time and energy of a real run over the clock: predicted from two readings, and measured.

    MLSCALE_DATA=FOLDER PYTHONPATH=reproduction python tools/draw_clocks.py docs/images

The run is `layernorm` of headroom's RTX 5060 Ti, a GPU that is left out of what predicts it; the
others are those of reproduction/runs.py. Writes clocks-light.svg and clocks-dark.svg, and prints
what their caption says.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from run_caps import SECOND
from run_predictions import Prediction, by_board, read_at, true_ratios
from run_tables import tables

from mlscale import ConfigGrid, Measurements

DEVICE, KERNEL = "rtx5060ti-16gb", "layernorm"
STEP_MHZ = 20
# The page's ink, and Okabe and Ito's colours for what is predicted, advised and best.
LOOKS = {
    "light": {"ink": "#24292f", "predicted": "#0072B2", "advised": "#D55E00", "best": "#009E73"},
    "dark": {"ink": "#d0d7de", "predicted": "#56B4E9", "advised": "#E69F00", "best": "#3fca9b"},
}
INKED = ("text.color", "xtick.color", "ytick.color", "axes.edgecolor", "axes.labelcolor")
STYLE = {"svg.hashsalt": "mlscale", "axes.spines.top": False, "axes.spines.right": False}


def the_run() -> Measurements:
    """The run alone, at the clocks at which it was measured."""
    for table in tables()[DEVICE]:
        if KERNEL in table.kernels:
            return table.select([table.kernels.index(KERNEL)])
    raise SystemExit(f"no {KERNEL} among the runs of {DEVICE}")


def draw(path: Path, table: Measurements, curve: Prediction, steps: list[float]) -> None:
    """A panel each for time and energy; curve: what is predicted at steps [MHz]."""
    look = LOOKS[path.stem.removeprefix("clocks-")]
    ink, clocks, read = look["ink"], np.array(table.grid.engine_mhz), read_at(table, (SECOND,))
    with rc_context({**STYLE, **dict.fromkeys(INKED, ink)}):
        figure = Figure(figsize=(8, 3.4), layout="constrained")
        for panel, name in zip(figure.subplots(1, 2), ("time", "energy"), strict=True):
            low, value, high = 100 * curve[name][:, 0] - 100
            band = {"color": look["predicted"], "alpha": 0.25, "lw": 0}
            panel.fill_between(steps, low, high, label="90 % interval", **band)
            panel.plot(steps, value, color=look["predicted"], label="predicted from two readings")
            measured = 100 * true_ratios(table)[name][0] - 100
            panel.plot(clocks, measured, "o", ms=5, color=ink, label="measured")
            ring = {"ms": 11, "mfc": "none", "color": ink}
            panel.plot(clocks[read], measured[read], "o", label="the two readings", **ring)
            for style, (words, mhz) in zip(("--", ":"), chosen(table).items(), strict=True):
                line = {"color": look[words], "ls": style, "lw": 2}
                panel.axvline(mhz, label=f"{words}: {mhz:g} MHz", **line)
            panel.set(xlabel="engine clock [MHz]", title=f"{name}, against the highest clock")
            panel.yaxis.set_major_formatter("{x:+.0f} %")
        entries = panel.get_legend_handles_labels()
        place = {"loc": "outside lower center", "ncols": 3, "frameon": False, "labelcolor": ink}
        figure.legend(*entries, **place)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def chosen(table: Measurements) -> dict[str, float]:
    """The clocks [MHz] of least predicted energy and of least measured energy."""
    predicted = by_board(table, read_at(table, (SECOND,)))["energy"][1, 0]
    energies = {"advised": predicted, "best": true_ratios(table)["energy"][0]}
    return {words: table.grid.engine_mhz[energy.argmin()] for words, energy in energies.items()}


def main(folder: Path) -> None:
    """Draw both pictures, and print what the run takes at each clock."""
    table, truth = the_run(), true_ratios(the_run())
    clocks = table.grid.engine_mhz
    steps = np.union1d(np.arange(clocks[0], clocks[-1], STEP_MHZ), clocks).tolist()
    grid = ConfigGrid(table.grid.cu_count, tuple(steps), table.grid.memory_mhz)
    curve = by_board(table, read_at(table, (SECOND,)), grid)
    for name in LOOKS:
        draw(folder / f"clocks-{name}.svg", table, curve, steps)
    for words, mhz in (chosen(table) | {"highest": clocks[-1]}).items():
        at = clocks.index(mhz)
        slower, energy = 100 * (truth["time"][0, at] - 1), truth["energy"][0]
        more = 100 * (energy[at] / energy.min() - 1)
        print(f"{words}: {mhz:g} MHz, {slower:.1f} % slower, {more:.1f} % above the least energy")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
