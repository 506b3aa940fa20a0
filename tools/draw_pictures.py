"""Draw the pictures of README and documents whose data were measured.

    MLSCALE_DATA=FOLDER PYTHONPATH=reproduction python tools/draw_pictures.py docs/images [NAME ...]

Names: those of PICTURES; all without one. Every GPU that is drawn was left out of what predicts it,
and every kernel of `cu-axis` and `pareto`, with its application. `regret`, `errors`, `intervals`
and `tune` draw docs/tables/*.csv. `clocks` writes docs/tables/clocks.csv too, which README's
caption has.
"""

import csv
import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import table as public_table
from common import write_csv
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch
from matplotlib.ticker import MaxNLocator
from run_caps import SECOND, capped_a100
from run_predictions import COVERAGE, Prediction, by_law, read_at, true_ratios
from run_tables import tables

import mlscale
from mlscale import Bottleneck, ConfigGrid, Measurements
from mlscale.advice.caps import cap_curve
from mlscale.arrays import Floats
from mlscale.data.datasets import path as shipped

TABLES = Path(__file__).parents[1] / "docs" / "tables"
# Okabe and Ito's colours. Everything else is ink on a card.
LIGHT = {"card": "#ffffff", "edge": "#d0d7de", "ink": "#24292f", "faint": "#8b949e"}
LIGHT |= {"predicted": "#0072B2", "advised": "#D55E00", "best": "#009E73"}
DARK = {"card": "#161b22", "edge": "#30363d", "ink": "#e6edf3", "faint": "#8b949e"}
DARK |= {"predicted": "#56B4E9", "advised": "#F0883E", "best": "#3fca9b"}
INKED = ("text.color", "xtick.color", "ytick.color", "axes.edgecolor", "axes.labelcolor")
STYLE = {
    "svg.hashsalt": "mlscale",
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
}
WIDTH = 5.2  # inches: a phone's 390 px show it nearly in its size
MARGIN, ROUND = 0.03, 0.14  # inches, of the card
POINTS_OF_CURVE = 28
Look = dict[str, str]
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
KEY: dict[str, Any] = {"handlelength": 1.2, "columnspacing": 1.2, "ncols": 3, "borderpad": 0}
HERO = "rtx5060ti-16gb", "layernorm"
CAP_W, CAP_STEPS = 225, 60  # in the picture of caps
FOUR = {
    "gtx980-low": "GTX 980 low",
    "gtx980-high": "GTX 980 high",
    "gtx1080ti": "GTX 1080 Ti",
    "p100": "P100",
}
PREDICTORS = (
    *("bottleneck", "max-overlap", "wang-chu", "extra-trees", "wu", "nearest"),
    *("mean-surface", "no-scaling"),
)
SM_KERNELS = {
    "tensor_2048": "matrices on tensor cores",
    "copy_64m": "copying",
    "nbody_32k": "n-body",
    "spmv_scalar_128k": "sparse matrix times vector",
}
PARETO = "gtx980-high", "convolutionSeparable"
NAMES = {
    "a100-sxm4-80gb": "A100",
    "rtx5060ti-16gb": "RTX 5060 Ti",
    "rtx3070ti": "RTX 3070 Ti",
    "rtx2060s": "RTX 2060 Super",
    "rtx-5000-ada": "RTX 5000 Ada",
    "rtx-4000-ada": "RTX 4000 Ada",
    "rtx3080ti": "RTX 3080 Ti",
    "rtx4050-laptop": "RTX 4050 Laptop",
    "rtx-pro-6000-blackwell": "RTX PRO 6000",
    "h100-sxm5": "H100",
}
MOST_DRAWN_PERCENT = 55  # more energy


def card(height: float, look: Look) -> Figure:
    """An empty figure on a rounded card. height [inches]."""
    pads = {"w_pad": 0.16, "h_pad": 0.14, "hspace": 0.06}
    layout = ConstrainedLayoutEngine(**pads)
    figure = Figure(figsize=(WIDTH, height), layout=layout, facecolor="none")
    size = WIDTH - 2 * MARGIN, height - 2 * MARGIN
    back = FancyBboxPatch(
        (MARGIN + ROUND, MARGIN + ROUND),
        *(length - 2 * ROUND for length in size),
        boxstyle=f"round,pad={ROUND}",
        transform=figure.dpi_scale_trans,
        facecolor=look["card"],
        edgecolor=look["edge"],
        zorder=-1,
    )
    back.set_in_layout(False)
    figure.add_artist(back)
    return figure


def panels(figure: Figure, rows: int, **options: Any) -> list[Axes]:
    """Panels below one another, which the card shows through."""
    found = list(figure.subplots(rows, 1, squeeze=False, **options)[:, 0])
    for panel in found:
        panel.patch.set_alpha(0)
    return found


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a table of docs/tables."""
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def a_run(device: str, kernel: str) -> Measurements:
    """One run of the tables of runs.py, at the clocks at which it was measured."""
    for table in tables()[device]:
        if kernel in table.kernels:
            return table.select([table.kernels.index(kernel)])
    raise SystemExit(f"no {kernel} among the runs of {device}")


def curve(table: Measurements) -> tuple[Floats, Prediction]:
    """What is predicted from two readings over the clock [MHz], but for what was read."""
    clocks, read = np.array(table.grid.engine_mhz), read_at(table, (SECOND,))
    steps = np.union1d(np.linspace(clocks[0], clocks[-1], POINTS_OF_CURVE), clocks[read])
    grid = ConfigGrid(table.grid.cu_count, tuple(steps.tolist()), table.grid.memory_mhz)
    new = ~np.isin(steps, clocks[read[:-1]]) | (steps == clocks[0])
    predicted = by_law(table, read, grid)
    return steps[new], {name: values[:, :, new] for name, values in predicted.items()}


def band(panel: Axes, steps: Any, ends: Floats, look: Look) -> None:
    """A prediction and its interval. ends: low end, value, high end (3, E)."""
    low, value, high = ends
    panel.fill_between(steps, low, high, color=look["predicted"], alpha=0.2, lw=0)
    panel.plot(steps, value, color=look["predicted"], lw=1.8)


def key(figure: Figure, look: Look, measured: str = "measured", readings: str = "") -> None:
    """A legend below: the prediction, what was measured, and the readings if they are named."""
    ink = {"color": look["ink"], "ls": "none", "marker": "o"}
    shade = Patch(color=look["predicted"], alpha=0.2, lw=0)
    entries = {
        "predicted, 90 % interval": (shade, Line2D([], [], color=look["predicted"])),
        measured: Line2D([], [], ms=4.5, **ink),
        readings: Line2D([], [], ms=9, mfc="none", **ink),
    }
    entries.pop("", None)
    labels = list(entries)
    figure.legend(list(entries.values()), labels, loc="outside lower center", **KEY)


def over_clock(panel: Axes, look: Look, table: Measurements, quantity: str, every: int = 1) -> None:
    """Time, power or energy of a run over the clock: predicted, measured, and read."""
    steps, predicted = curve(table)
    shown, read = slice(None, None, every), read_at(table, (SECOND,))
    at, truth = np.array(table.grid.engine_mhz), true_ratios(table)[quantity][0]
    band(panel, steps, 100 * predicted[quantity][:, 0] - 100, look)
    panel.plot(at[shown], 100 * truth[shown] - 100, "o", ms=4.5, color=look["ink"])
    panel.plot(at[read], 100 * truth[read] - 100, "o", ms=10, mfc="none", color=look["ink"])
    panel.set_title(f"{quantity.capitalize()}, against the highest clock")
    changes_upwards(panel)
    panel.margins(x=0.03)


def signed(percent: float, place: int | None = None) -> str:  # noqa: ARG001
    """A change [%] as an axis has it."""
    return f"{percent:+.0f} %".replace("-", "\N{MINUS SIGN}") if round(percent) else "0 %"


def changes_upwards(panel: Axes) -> None:
    """Few round changes [%] on the vertical axis."""
    panel.yaxis.set_major_formatter(signed)
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def named_rows(panel: Axes, names: Sequence[str], title: str) -> None:
    """A row for each name, the first one below, and percent across."""
    panel.set_yticks(range(len(names)), names)
    panel.tick_params(axis="y", length=0)
    panel.xaxis.set_major_formatter("{x:.0f} %")
    panel.set_title(title, x=0)


def chosen(table: Measurements) -> dict[str, float]:
    """The clocks [MHz] of least predicted energy, of least measured energy, and the highest."""
    predicted = by_law(table, read_at(table, (SECOND,)))["energy"][1, 0]
    clocks, measured = table.grid.engine_mhz, true_ratios(table)["energy"][0]
    places = {"advised": predicted.argmin(), "best": measured.argmin(), "highest": -1}
    return {name: clocks[place] for name, place in places.items()}


def choices(table: Measurements) -> list[list[str]]:
    """A header, and what the run takes at each clock that is chosen."""
    truth, clocks = true_ratios(table), table.grid.engine_mhz
    time, energy = truth["time"][0], truth["energy"][0]
    lines = [["clock", "MHz", "slower [%]", "energy above the least [%]", "energy saved [%]"]]
    for name, mhz in chosen(table).items():
        at = clocks.index(mhz)
        values = 100 * (time[at] - 1), 100 * (energy[at] / energy.min() - 1), 100 * (1 - energy[at])
        lines.append([name, f"{mhz:g}", *(f"{value:.1f}" for value in values)])
    return lines


def inside(table: Measurements) -> str:
    """How many energies lie inside their intervals, of the clocks that were not read."""
    read, energy = read_at(table, (SECOND,)), true_ratios(table)["energy"][0]
    low, _, high = by_law(table, read)["energy"][:, 0]
    holds = np.delete((low <= energy) & (energy <= high), read)
    return f"{holds.sum()} of {len(holds)}"


def clocks(look: Look) -> Figure:
    """Time and energy of a run over the clock, with the clock that is advised and the best."""
    table, figure = a_run(*HERO), card(4.6, look)
    for panel, quantity in zip(panels(figure, 2, sharex=True), ("time", "energy"), strict=True):
        over_clock(panel, look, table, quantity)
        for name in ("advised", "best"):
            mhz = chosen(table)[name]
            value = true_ratios(table)[quantity][0, table.grid.engine_mhz.index(mhz)]
            panel.plot(mhz, 100 * value - 100, "o", ms=6, color=look[name])
            panel.axvline(mhz, color=look[name], lw=1, alpha=0.6, zorder=0)
            if quantity == "time":
                words = {"advised": f"  advised: {mhz:g} MHz", "best": "best  "}[name]
                side = {"ha": "left" if name == "advised" else "right", "va": "top"}
                top = panel.get_xaxis_transform()
                panel.text(mhz, 1.02, words, color=look[name], weight="bold", transform=top, **side)
    panel.set_xlabel("engine clock [MHz]")
    key(figure, look, readings="the two readings")
    return figure


def two_readings(look: Look) -> Figure:
    """Time and power of a run from two readings, and what was measured at other clocks."""
    table, figure = a_run("a100-sxm4-80gb", "lbm"), card(4.6, look)
    for panel, quantity in zip(panels(figure, 2, sharex=True), ("time", "power"), strict=True):
        over_clock(panel, look, table, quantity, every=4)
    panel.set_xlabel("engine clock of an A100 [MHz]")
    key(figure, look, "measured later", "the two readings")
    return figure


def caps(look: Look) -> Figure:
    """Power over the clock with a cap, and time under caps: predicted, and measured."""
    run = capped_a100()[2]
    if run.sweep is None:
        raise SystemExit("no clocks of the capped run are known")
    steps, predicted = curve(run.sweep)
    power_w = predicted["power"][:, 0] * run.sweep.quantity("power")[0, 0, -1, 0]
    times = predicted["time"][1] * run.sweep.quantity("time")[0, 0, -1, 0]
    figure = card(5.2, look)
    over_clocks, under_caps = panels(figure, 2)
    band(over_clocks, steps, power_w, look)
    at = np.array(run.sweep.grid.engine_mhz)
    over_clocks.plot(at, run.sweep.quantity("power")[0, 0, :, 0], "o", ms=4.5, color=look["ink"])
    clock = float(np.interp(CAP_W, power_w[1], steps))
    bent = {"color": look["advised"], "lw": 1.5}
    over_clocks.plot([steps[0], clock, clock], [CAP_W, CAP_W, power_w.min()], **bent)
    over_clocks.text(steps[0], CAP_W + 4, f"cap: {CAP_W} W", color=look["advised"], weight="bold")
    words = f" {clock:.0f} MHz"
    over_clocks.text(clock, power_w.min() + 2, words, color=look["advised"], weight="bold")
    over_clocks.set(title="Power over the clock [W]", xlabel="engine clock of an A100 [MHz]")
    caps_w = np.linspace(power_w[1].min(), run.caps_w.max(), CAP_STEPS)
    under = cap_curve(caps_w, steps, times, power_w[1][None]).run_time_ms
    free = run.times[run.caps_w.argmax()]
    under_caps.plot(caps_w, 100 * under / free - 100, color=look["predicted"], lw=1.8)
    under_caps.plot(run.caps_w, 100 * run.times / free - 100, "o", ms=4.5, color=look["ink"])
    under_caps.set(title="Time, against no cap", xlabel="power cap [W]")
    changes_upwards(under_caps)
    key(figure, look)
    return figure


def regret(look: Look) -> Figure:
    """By GPU, the energy above the least at the clock that is advised, and by simple rules."""
    known = [row for row in rows_of("by-gpu") if row["regret"]]
    rows = sorted(known, key=lambda row: float(row["highest clock"]))
    bars = {"advised": ("regret", look["advised"])}
    bars["straight line"] = ("straight line", look["faint"])
    bars["highest clock"] = ("highest clock", look["edge"])
    figure = card(7.4, look)
    (panel,) = panels(figure, 1)
    for place, (label, (column, color)) in enumerate(bars.items()):
        heights = np.arange(len(rows)) + 0.27 * (1 - place)
        values = [float(row[column]) for row in rows]
        panel.barh(heights, values, 0.25, color=color, label=label)
        for height, value in zip(heights, values, strict=True):
            if value > MOST_DRAWN_PERCENT:
                panel.text(MOST_DRAWN_PERCENT + 1, height, f"{value:.0f} %", va="center", size=9)
    panel.set(xlim=(0, MOST_DRAWN_PERCENT), ylim=(-0.6, len(rows) - 0.4))
    named_rows(panel, [full_name(row["GPU"]) for row in rows], "Energy above the least possible")
    figure.legend(loc="outside lower center", **KEY)
    return figure


def full_name(gpu: str) -> str:
    """A GPU as its maker writes it."""
    return NAMES.get(gpu, gpu.upper().replace("RTX", "RTX "))


def errors(look: Look) -> Figure:
    """Mean errors of time with standard errors, by predictor and table."""
    suited = ("", "utilisation")  # the counters that suit these tables
    rows = [row for row in rows_of("new-kernels") if row["features"] in suited]
    found = [row for row in rows if row["quantity"] == "time"]
    figure = card(5.2, look)
    (panel,) = panels(figure, 1)
    for n, (table, color) in enumerate(zip(FOUR, SERIES, strict=True)):
        for place, name in enumerate(reversed(PREDICTORS)):
            (row,) = (r for r in found if (r["table"], r["predictor"]) == (table, name))
            value, spread = float(row["mape"]), float(row["standard_error"])
            height = place + 0.16 * (1.5 - n)
            panel.errorbar(
                value,
                height,
                xerr=spread,
                fmt="o",
                ms=5,
                color=color,
                lw=1.2,
                label=FOUR[table] if not place else None,
            )
    named_rows(panel, PREDICTORS[::-1], "Mean error of time on applications never seen")
    panel.set_xlim(left=0)
    panel.grid(axis="x", color=look["edge"], lw=0.6)
    panel.set_axisbelow(True)
    figure.legend(loc="outside lower center", **KEY | {"ncols": 4})
    return figure


def intervals(look: Look) -> Figure:
    """How often 90 % intervals hold, by GPU and quantity."""
    rows = rows_of("by-gpu")[::-1]
    figure = card(6.0, look)
    (panel,) = panels(figure, 1)
    panel.axvline(90, color=look["faint"], lw=1, ls="--", zorder=0)
    for quantity, color, marker in zip(("time", "power", "energy"), SERIES, "osD", strict=False):
        known = [
            (float(row[f"intervals hold, {quantity}"]), n)
            for n, row in enumerate(rows)
            if row[f"intervals hold, {quantity}"]
        ]
        panel.plot(*zip(*known, strict=True), marker, ms=6, color=color, alpha=0.9, label=quantity)
    named_rows(
        panel, [full_name(row["GPU"]) for row in rows], "True values inside the 90 % intervals"
    )
    panel.set_xlim(30, 102)
    panel.grid(axis="y", color=look["edge"], lw=0.6)
    figure.legend(loc="outside lower center", **KEY)
    return figure


def held_out(data: Measurements, applications: tuple[str, ...], base: Any) -> Bottleneck:
    """`bottleneck` for time, trained on all other applications."""
    train = [k for k, name in enumerate(data.applications) if name not in applications]
    return Bottleneck(quantity="time").fit(data.select(train), base)


def cu_axis(look: Look) -> Figure:
    """Time of four kernels on fewer SMs of an H100: predicted from all of them, and measured."""
    data = mlscale.read(shipped("h100-suite.csv"))
    base, counts = data.grid.highest, data.grid.cu_count
    drawn = data.select([data.kernels.index(name) for name in SM_KERNELS])
    predictor = held_out(data, drawn.applications, base)
    surfaces = predictor.predict_interval(drawn.profiles(base), COVERAGE, data.grid)
    found = np.array([surfaces.low, surfaces.values, surfaces.high])[:, :, :, 0, 0]
    figure, truth = card(5.0, look), drawn.relative("time", base)[:, :, 0, 0]
    for k, panel in enumerate(figure.subplots(2, 2, sharex=True).flat):
        panel.patch.set_alpha(0)
        band(panel, counts, found[:, k], look)
        panel.plot(counts, truth[k], "o", ms=4.5, color=look["ink"])
        panel.set_title(SM_KERNELS[drawn.kernels[k]], fontsize=10)
        panel.set(xscale="log", yscale="log")
        panel.set_xticks(counts, [str(count) if count != 96 else "" for count in counts])
        panel.minorticks_off()
        panel.yaxis.set_major_formatter("{x:g}x")
    for panel in figure.axes[2:]:
        panel.set_xlabel("SMs of an H100")
    figure.suptitle("Time on fewer SMs, against all 132", fontsize=11)
    key(figure, look)
    return figure


def pareto(look: Look) -> Figure:
    """Time and energy of a kernel at every setting: measured, and those that nothing beats."""
    table, kernel = PARETO
    data = public_table(table)
    one = data.select([data.kernels.index(kernel)])
    base = data.grid.highest
    time, power = (100 * one.relative(name, base)[0, 0].ravel() for name in ("time", "power"))
    energy = time * power / 100
    front = [n for n in range(time.size) if not ((time < time[n]) & (energy < energy[n])).any()]
    front.sort(key=lambda n: time[n])
    figure = card(4.4, look)
    (panel,) = panels(figure, 1)
    every = {"ms": 5, "color": look["faint"], "label": "measured settings"}
    panel.plot(time - 100, energy - 100, "o", **every)
    best = {"ms": 7, "lw": 1.2, "color": look["best"], "label": "none is both faster and cheaper"}
    panel.plot(time[front] - 100, energy[front] - 100, "o-", **best)
    settings = [
        (engine, memory) for engine in data.grid.engine_mhz for memory in data.grid.memory_mhz
    ]
    for n in (front[0], front[-1]):
        at = {"xytext": (3, 11), "textcoords": "offset points", "color": look["best"]}
        panel.annotate(
            "{:g} / {:g} MHz".format(*settings[n]), (time[n] - 100, energy[n] - 100), **at
        )
    panel.set(title="Energy, against the highest clocks", xlabel="time, against the highest clocks")
    panel.xaxis.set_major_formatter(signed)
    panel.yaxis.set_major_formatter(signed)
    figure.legend(loc="outside lower center", **KEY)
    return figure


def tune(look: Look) -> Figure:
    """By limit, the energy above the best clock's of jobs that tune themselves, and who is slow."""
    rows = rows_of("tune")
    limits = list(dict.fromkeys(row["limit"] for row in rows))
    colors = {"mlscale.tune": look["advised"], "Zeus": look["predicted"], "stay": look["faint"]}
    titles = {"regret": "Energy above the best clock's, in points"}
    titles["over by 1 %"] = "Jobs slower than the limit by over a point, %"
    figure = card(5.4, look)
    for panel, (column, title) in zip(panels(figure, 2), titles.items(), strict=True):
        for place, (way, color) in enumerate(colors.items()):
            values = [float(row[column]) for row in rows if row["way"] == way]
            at = np.arange(len(limits)) + 0.27 * (1 - place)
            label = way if column == "regret" else None
            panel.barh(at, values, 0.25, color=color, label=label)
        named_rows(
            panel, [f"limit {one}".replace("limit none", "no limit") for one in limits], title
        )
    figure.legend(loc="outside lower center", **KEY)
    return figure


PICTURES: dict[str, Callable[[Look], Figure]] = {
    "clocks": clocks,
    "two-readings": two_readings,
    "caps": caps,
    "regret": regret,
    "errors": errors,
    "intervals": intervals,
    "cu-axis": cu_axis,
    "pareto": pareto,
    "tune": tune,
}


def smaller(svg: str) -> str:
    """A picture without comments, lengths above 1 pt to a hundredth of it."""
    svg = re.sub(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"\b([1-9]\d*\.\d\d)\d+", r"\1", svg)


def main(folder: Path, *names: str) -> None:
    """Draw the pictures that are named, or all."""
    for name in names or PICTURES:
        looks = {"-light": LIGHT, "-dark": DARK} if name == "clocks" else {"": LIGHT}
        for suffix, look in looks.items():
            with rc_context({**STYLE, **dict.fromkeys(INKED, look["ink"])}):
                text = io.StringIO()
                PICTURES[name](look).savefig(text, format="svg", metadata={"Date": None})
            file = folder / f"{name}{suffix}.svg"
            file.write_text(smaller(text.getvalue()), encoding="utf-8")
            print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
    if not names or "clocks" in names:
        lines = choices(a_run(*HERO))
        write_csv(TABLES / "clocks.csv", lines)
        for clock, mhz, slower, more, saved in lines[1:]:
            words = f"{slower} % slower, {more} % above the least energy, saves {saved} %"
            print(f"{clock}: {mhz} MHz, {words}")
        print(f"energies inside the 90 % interval: {inside(a_run(*HERO))} that were not read")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
